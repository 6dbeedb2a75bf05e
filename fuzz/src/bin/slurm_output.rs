//! What Slurm's commands write, and its lists of nodes.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_jobs::slurm::{
    Layout, MOST_HOSTS, Selection, confirm, hosts, parse_ended, parse_jobs, parse_qos,
};

fuzz_target!(|text: &str| {
    let lines = text.lines().count();
    if let Ok((jobs, _)) = parse_jobs(text) {
        assert!(jobs.iter().all(|job| job.cpus > 0 && job.runs_on.len() <= MOST_HOSTS));
        assert!(jobs.iter().all(|job| confirm(text, job).is_err()), "JSON confirms no job");
    }
    let (nodes, _) = Layout::parse_nodes(text);
    let _ =
        (Layout::parse_partitions(text), Layout::parse_reservations(text), Selection::parse(text));
    assert!(nodes.iter().all(|node| node.idle <= node.cpus && !node.name.is_empty()));
    assert!(nodes.windows(2).all(|two| two[0].name < two[1].name));
    let _ = parse_ended(text, 3);
    assert!(parse_qos(text).len() <= lines);
    if let Ok(all) = hosts(text) {
        assert!(!all.is_empty() && all.len() <= MOST_HOSTS);
    }
});
