//! Jobs of a batch under a daemon.

use std::fs;

use libtest_mimic::Trial;

use crate::service::Service;
use crate::test_folder::wait_until;
use crate::trials::trial;

pub fn trials() -> Vec<Trial> {
    vec![trial("a_daemon_knows_the_jobs_of_a_batch_by_their_programs", known_by_programs)]
}

fn known_by_programs() {
    let mut service = Service::start("stay");
    let place = &service.place;
    fs::write(place.path("jobs.txt"), "sleep 1000\ncd / && sleep 1000\n").unwrap();
    let mut batch = place.symbiont("batch");
    batch.arg(place.path("jobs.txt")).args(["-n", "2", "--store"]).arg(place.path("known.json"));
    let batch = place.start(&mut batch);
    let names = |service: &Service| {
        let name = |program: &serde_json::Value| program["name"].as_str().unwrap().to_owned();
        let mut names: Vec<String> = service.programs().iter().map(name).collect();
        names.sort();
        names
    };
    wait_until("both are managed", || names(&service) == ["cd", "sleep"]);
    // What it knows them by is that of the batch's store, and outlives a crash.
    let identities = |service: &Service| {
        let file = service.place.state_dir().join("enrolments.json");
        let noted: serde_json::Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
        let of = |one: &serde_json::Value| Some(one["identity"].as_str()?.to_owned());
        noted.as_array()?.iter().map(of).collect::<Option<Vec<String>>>()
    };
    wait_until("they are noted", || identities(&service).is_some_and(|all| all.len() == 2));
    let before = identities(&service).unwrap();
    assert!(before[0] != before[1] && before.iter().all(|one| one.len() == 32), "{before:?}");
    service.crash_and_restart();
    wait_until("both are managed again", || names(&service) == ["cd", "sleep"]);
    wait_until("they are noted again", || identities(&service).as_ref() == Some(&before));
    crate::test_folder::send(batch.id(), rustix::process::Signal::TERM);
    wait_until("they have ended", || service.programs().is_empty());
}
