//! What the daemon has learned of jobs that share cores.
//!
//! # Approach
//! Every few seconds the daemon is asked for the programs that it manages. Those whose first processes are jobs of this
//! batch say next to which others they ran, for how long since they began, and what was learned of that; what is new
//! since the answer before goes into the store with the next run that ends there. Without a daemon, or with one whose
//! policy learns nothing of pairs, nothing is added.
//!
//! Property: each answer adds what is new of jobs of this batch (`each_answer_adds_what_is_new`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use symbiont_daemon::Client;
use symbiont_jobs::{Identity, NextTo, Observations, ProgramKey};
use symbiont_wire::{ProgramStatus, Request, Status};

/// How often the daemon is asked.
const EVERY: Duration = Duration::from_secs(3);
/// How long its answer is waited for, and after what time one that gave none is asked again.
const ANSWERS_WITHIN: Duration = Duration::from_millis(500);
const AGAIN: Duration = Duration::from_secs(60);
/// Pairs that wait for the store.
const MOST_WAITING: usize = 4096;

/// What was learned of a program next to another one.
#[derive(Debug, Clone, PartialEq)]
struct Gained {
    program: Identity,
    other: ProgramKey,
    next: NextTo,
}

/// Asks the daemon.
#[derive(Debug)]
pub struct Cores {
    sockets: Vec<PathBuf>,
    processor: String,
    /// When it is asked next.
    next: Instant,
    /// CPU times together that the store has, or will have, by the daemon's numbers of both.
    known_s: BTreeMap<(u32, u32), f64>,
    waiting: Vec<Gained>,
}

impl Cores {
    /// By these sockets, on this processor.
    pub fn new(sockets: Vec<PathBuf>, processor: String) -> Self {
        let (known_s, waiting) = Default::default();
        Self { sockets, processor, next: Instant::now() + EVERY, known_s, waiting }
    }

    /// How long until it is to be asked again; none: there is no daemon to ask.
    pub fn pause(&self) -> Option<Duration> {
        let left = self.next.saturating_duration_since(Instant::now());
        (!self.sockets.is_empty()).then_some(left)
    }

    /// Asks, if it is time; `jobs`: the programs of the jobs that run, by their first processes.
    pub fn hear(&mut self, jobs: impl FnOnce() -> BTreeMap<u32, Identity>) {
        if self.pause().is_none_or(|pause| !pause.is_zero()) {
            return;
        }
        let connect = |socket: &PathBuf| Client::connect_within(socket, ANSWERS_WITHIN).ok();
        let pages = match self.sockets.iter().find_map(connect) {
            Some(mut client) => client.call_more::<Status>(Request::Status {}),
            // One that is started later is asked then.
            None => Ok(Vec::new()),
        };
        self.next = Instant::now() + if pages.is_ok() { EVERY } else { AGAIN };
        let Ok(pages) = pages else { return };
        let programs: Vec<ProgramStatus> =
            pages.into_iter().flat_map(|page| page.programs).collect();
        self.take(&programs, &jobs());
    }

    fn take(&mut self, programs: &[ProgramStatus], jobs: &BTreeMap<u32, Identity>) {
        let job = |program: &ProgramStatus| program.roots.iter().find_map(|root| jobs.get(root));
        let ours: BTreeMap<u32, &Identity> =
            programs.iter().filter_map(|one| Some((one.program, job(one)?))).collect();
        self.known_s.retain(|(one, other), _| ours.contains_key(one) && ours.contains_key(other));
        for program in programs {
            let Some(identity) = ours.get(&program.program) else { continue };
            for next in &program.next_to {
                let Some(other) = ours.get(&next.program) else { continue };
                let known_s = self.known_s.entry((program.program, next.program)).or_default();
                // Less than before: the daemon has begun anew.
                let before_s = if next.together_s < *known_s { 0.0 } else { *known_s };
                let together_s = next.together_s - before_s;
                *known_s = next.together_s;
                if together_s > 0.0 && self.waiting.len() < MOST_WAITING {
                    let processor = self.processor.clone();
                    let next = NextTo { processor, ln: next.ln, together_s };
                    let (program, other) = ((*identity).clone(), other.key.clone());
                    self.waiting.push(Gained { program, other, next });
                }
            }
        }
    }

    /// Puts what waits into the store's observations.
    pub fn add_to(&mut self, known: &mut Observations, at_s: u64) {
        for Gained { program, other, next } in self.waiting.drain(..) {
            known.add_next_to((&program.key, &program.name), &other, at_s, &next);
        }
    }
}

#[cfg(test)]
mod tests {
    use symbiont_wire::NextToProgram;

    use super::*;

    fn identity(name: &str) -> Identity {
        let digest = symbiont_jobs::digest_of_text(name);
        Identity { key: ProgramKey { user: 7, digest }, name: name.to_owned() }
    }

    fn program(program: u32, root: u32, next_to: &[(u32, f64, f64)]) -> ProgramStatus {
        let next = |&(program, ln, together_s): &(u32, f64, f64)| NextToProgram {
            program,
            ln,
            together_s,
        };
        let next_to = next_to.iter().map(next).collect();
        ProgramStatus { program, roots: vec![root], next_to, ..ProgramStatus::default() }
    }

    fn added(cores: &mut Cores, programs: &[ProgramStatus]) -> Vec<(String, f64, f64)> {
        let jobs = [(10, identity("a")), (20, identity("b"))].into();
        cores.take(programs, &jobs);
        let mut known = Observations::default();
        cores.add_to(&mut known, 1);
        let rows = known.records().values().flat_map(|record| {
            let of = move |next: &NextTo| (record.name.clone(), next.ln, next.together_s);
            record.next_to.values().map(of)
        });
        rows.collect()
    }

    #[test]
    fn each_answer_adds_what_is_new() {
        let mut cores = Cores::new(Vec::new(), "A processor".to_owned());
        // Program 3 is of no job of ours.
        let first = [
            program(1, 10, &[(2, -0.2, 5.0), (3, -0.4, 5.0)]),
            program(2, 20, &[]),
            program(3, 30, &[(1, -0.1, 5.0)]),
        ];
        assert_eq!(added(&mut cores, &first), [("a".to_owned(), -0.2, 5.0)]);
        assert_eq!(added(&mut cores, &first), [], "nothing is new");
        let more = [program(1, 10, &[(2, -0.3, 7.0)]), program(2, 20, &[])];
        assert_eq!(added(&mut cores, &more), [("a".to_owned(), -0.3, 2.0)]);
        let anew = [program(1, 10, &[(2, -0.1, 1.0)]), program(2, 20, &[])];
        assert_eq!(added(&mut cores, &anew), [("a".to_owned(), -0.1, 1.0)]);
    }

    #[test]
    fn without_a_daemon_it_never_asks() {
        let mut cores = Cores::new(Vec::new(), String::new());
        assert_eq!(cores.pause(), None);
        cores.hear(|| panic!("nothing is asked"));
    }
}
