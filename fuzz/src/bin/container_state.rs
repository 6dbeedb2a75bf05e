//! Paths of cgroups and state files of container runtimes: the first byte chooses the reader.
#![no_main]

use symbiont_containers::files::{bundle, crun, docker, runc, storage};
use symbiont_containers::{MOST_LABELS, Subordinates, candidates, is_id, parse, paths};
use symbiont_fuzz::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((kind, bytes)) = input.split_first() else { return };
    let facts = match kind % 7 {
        0 => bundle(bytes),
        1 => docker(bytes),
        2 => runc(bytes),
        3 => crun(bytes),
        4 => {
            let _ = storage(bytes);
            return;
        }
        5 => {
            let text = String::from_utf8_lossy(bytes);
            for path in paths(&text) {
                for found in parse(path).into_iter().chain(candidates(path)) {
                    assert!(is_id(&found.id) && path.starts_with(&found.cgroup));
                }
            }
            return;
        }
        _ => {
            let _ = Subordinates::parse(&String::from_utf8_lossy(bytes), |_| None).user_of(100_000);
            return;
        }
    };
    if let Ok(facts) = facts {
        assert!(facts.labels.len() <= MOST_LABELS && facts.annotations.len() <= MOST_LABELS);
        for recorded in &facts.cgroups {
            let _ = (recorded.is("/docker/1", false), recorded.is("/../docker/1", true));
        }
    }
});
