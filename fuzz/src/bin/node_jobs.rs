//! What the daemon of a node answers when it is asked for its jobs.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_wire::jobs::NodeJobs;

fuzz_target!(|response: &[u8]| {
    let Ok(node) = NodeJobs::of_response(response) else { return };
    assert!(node.jobs.windows(2).all(|two| two[0].job < two[1].job));
    for stack in node.jobs.iter().flat_map(|job| &job.stacks) {
        assert!(stack.counted_s >= 0.0 && stack.components.values().all(|share| *share >= 0.0));
    }
    let body = serde_json::to_string(&node).expect("what was read can be written");
    let again = format!("HTTP/1.1 200 OK\r\n\r\n{body}");
    assert_eq!(NodeJobs::of_response(again.as_bytes()), Ok(node));
});
