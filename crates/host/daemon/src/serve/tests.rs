use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use symbiont_policy::{LearnedPairs, LearnedProgram, NextTo};
use symbiont_wire::{Reloaded, Request};

use super::*;

/// Leaves all threads to the OS, once.
struct Broken(bool);

impl Policy for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn place(&mut self, _: &symbiont_policy::View<'_>) -> symbiont_machine::Placement {
        assert!(!std::mem::replace(&mut self.0, true), "the second decision is wrong");
        symbiont_machine::Placement::new()
    }
}

#[test]
fn a_panic_in_the_loop_ends_the_daemon_with_an_error_after_everything_was_restored() {
    let folder = tempfile::tempdir().unwrap();
    let state_dir = folder.path().join("state");
    let ended = serve(Daemon {
        config: Config::default(),
        reread: &|| Ok(Config::default()),
        choose: &|_| {
            let quantum = Duration::from_millis(5);
            Ok(ChosenPolicy { policy: Box::new(Broken(false)), quantum })
        },
        counting: CountOptions::default(),
        rules: Vec::new(),
        socket: state_dir.join("socket"),
        state_dir: state_dir.clone(),
        learned: None,
        published: Vec::new(),
        for_all_users: false,
        log: &mut |_| {},
        ready: &mut || {},
        alive: &mut || {},
    });
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("panicked") && error.contains("second decision"), "{error}");
    assert!(!state_dir.join("socket").exists());
}

/// Has learned something else each time that it is asked.
struct Learns(Arc<AtomicU32>);

fn pairs(ln: f64) -> LearnedPairs {
    let next_to = vec![NextTo { program: "b".to_owned(), ln, variance: 1e-4 }];
    let core = symbiont_topology::CoreKind::Performance;
    LearnedPairs { programs: vec![LearnedProgram { program: "a".to_owned(), core, next_to }] }
}

impl Policy for Learns {
    fn name(&self) -> &'static str {
        "learns"
    }

    fn place(&mut self, _: &symbiont_policy::View<'_>) -> symbiont_machine::Placement {
        symbiont_machine::Placement::new()
    }

    fn learned(&self) -> Option<LearnedPairs> {
        Some(pairs(-0.1 * f64::from(1 + self.0.fetch_add(1, Ordering::Relaxed))))
    }
}

#[test]
fn what_was_learned_is_kept_before_a_reload_chooses_anew_and_not_after_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let state_dir = folder.path().join("state");
    let socket = state_dir.join("socket");
    let file = LearnedFile::new(&folder.path().join("learned.json"), "A processor");
    let (asked, panics) = (Arc::new(AtomicU32::new(0)), AtomicBool::new(false));
    let chosen_with = Mutex::new(Vec::new());
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            let begin = Instant::now();
            let mut client = loop {
                match crate::Client::connect(&socket) {
                    Ok(client) => break client,
                    Err(error) => assert!(begin.elapsed().as_secs() < 60, "{error}"),
                }
                std::thread::sleep(Duration::from_millis(5));
            };
            let reloaded: Result<Reloaded, _> = client.call(Request::Reload {}, &[]);
            panics.store(true, Ordering::Relaxed);
            reloaded.unwrap();
        });
        serve(Daemon {
            config: Config::default(),
            reread: &|| Ok(Config::default()),
            choose: &|_| {
                chosen_with.lock().unwrap().push(file.read());
                let quantum = Duration::from_millis(5);
                Ok(ChosenPolicy { policy: Box::new(Learns(Arc::clone(&asked))), quantum })
            },
            counting: CountOptions::default(),
            rules: Vec::new(),
            socket: socket.clone(),
            state_dir: state_dir.clone(),
            learned: Some(file.clone()),
            published: Vec::new(),
            for_all_users: false,
            log: &mut |_| {},
            ready: &mut || {},
            alive: &mut || assert!(!panics.load(Ordering::Relaxed), "enough"),
        })
    });
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("enough"), "{error}");
    let chosen_with = chosen_with.into_inner().unwrap();
    assert_eq!(chosen_with, [Ok(LearnedPairs::default()), Ok(pairs(-0.1))]);
    assert_eq!(file.read(), Ok(pairs(-0.1)));
    assert_eq!(asked.load(Ordering::Relaxed), 1, "a policy that panicked is not asked");
}
