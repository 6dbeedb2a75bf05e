//! The releaser over a cluster that does what it is asked for at once; here is what all tests share.

mod assigned;
mod daemons;
mod fake;
mod released;

use std::collections::BTreeMap;

use symbiont_jobs::slurm::{
    EndedJob, Memory, Needs, NodeState, QueuedJob, Reservation, Selection, State,
};
use symbiont_jobs::{CompletedRun, Observations, ProgramKey, Rules, Store};
use symbiont_model::{
    Coefficients, Components, Fit, Model, SmtMode, SmtModel, Terms, TrainedMode, Training,
};

use self::fake::{Fake, TwoQueues};
use crate::{Cluster, Decision, Journal, ReleaseOptions, Releaser};

/// What waits for memory disturbs what waits for memory.
pub fn model() -> Model {
    let terms = |delta| Terms { alpha: 0.5, beta: 0.0, gamma: 0.0, delta };
    let of = |memory| Coefficients::new(vec![terms(0.0), terms(memory)]).unwrap();
    let errors = vec![Terms::default(); 2];
    let fit = Fit {
        model: SmtModel::new(1.0, of(0.0), of(0.8)).unwrap(),
        linear_errors: errors.clone(),
        delta_errors: errors,
        observed: 1,
    };
    Model {
        machine: "A processor".to_owned(),
        core: symbiont_topology::CoreKind::Performance,
        catalogue: "two-causes".to_owned(),
        components: Components::named(["base", "memory"]).unwrap(),
        training: Training {
            date: "2026-01-02T03:04:05Z".to_owned(),
            programs: Vec::new(),
            quantum_ms: 100,
            note: String::new(),
        },
        modes: [(SmtMode::Smt2, TrainedMode { fit, throttling: None, scores: Vec::new() })].into(),
    }
}

pub fn waits(id: u64, submitted_s: f64) -> QueuedJob {
    QueuedJob {
        id,
        state: State::Pending,
        reason: "BeginTime".to_owned(),
        priority: 1000 - id,
        partition: "p".to_owned(),
        qos: String::new(),
        user: 7,
        cpus: 1,
        nodes: 1,
        submitted_s,
        start_s: Some(submitted_s + 3600.0),
        eligible_s: Some(submitted_s + 3600.0),
        restarts: 0,
        ends_s: None,
        limit_s: None,
        runs_on: Vec::new(),
        asked: String::new(),
        needs: Needs { tasks: 1, ..Needs::default() },
        is_marked: true,
        marked_until_s: Some(submitted_s + 3600.0),
        is_batch: true,
        name: format!("job{id}"),
    }
}

fn runs(id: u64, node: &str) -> QueuedJob {
    let runs_on = vec![node.to_owned()];
    QueuedJob { state: State::Running, reason: "None".to_owned(), runs_on, ..waits(id, 0.0) }
}

pub fn node(name: &str, cpus: usize, idle: usize) -> NodeState {
    let address = "127.0.0.1".to_owned();
    NodeState {
        name: name.to_owned(),
        address,
        cpus,
        idle,
        takes_jobs: true,
        partitions: vec!["p".to_owned()],
        ..NodeState::default()
    }
}

fn options() -> ReleaseOptions {
    let rules = Rules { most_wait_s: 1800.0, ..Rules::default() };
    ReleaseOptions {
        partition: None,
        qos: None,
        rules,
        ahead: 0,
        first_come: false,
        dry_run: false,
    }
}

/// One that finds what an earlier one has noted next to the store.
fn releaser<C: Cluster>(
    cluster: C,
    options: ReleaseOptions,
    store: Store,
    known: Observations,
) -> Releaser<C> {
    let journal = Journal::next_to(store.path());
    let released = journal.read().unwrap();
    Releaser::new(cluster, options, store, known, (journal, released))
}

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(&folder.path().join("jobs.json"));
    (folder, store)
}

/// The program of a script of several commands is its text.
fn script(name: &str) -> String {
    format!("#!/bin/sh\n{name}\ntrue\n")
}

pub fn key(name: &str) -> ProgramKey {
    ProgramKey { user: 7, digest: symbiont_jobs::digest_of_text(&script(name)) }
}
