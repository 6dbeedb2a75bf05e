//! Newborn threads are found, by the kernel's reports and by looking.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::given::Given;
use crate::test_folder::{TestFolder, send, stderr, wait_until};

use super::siblings::{cpus_of, workers};
use super::workers::command;

pub fn connector(given: &Given) {
    finds_all("auto", "connector", given);
}

pub fn scan(given: &Given) {
    finds_all("scan", "/proc", given);
}

/// Ten processes are born while managed; each is placed, and the report says by
/// which method they were found.
fn finds_all(option: &str, method: &str, given: &Given) {
    let place = TestFolder::new();
    let options =
        ["--policy", "random", "--quantum", "100ms", "--report", "json", "--enrol-by", option];
    let mut run = place.run(&options, &command(&["births"]));
    let program = place.start(run.stderr(Stdio::piped()));
    let all = given.cpus().len();
    wait_until("ten newborn processes are placed", || {
        let born = workers(&program, "sleeper");
        born.len() == 10 && born.iter().all(|process| cpus_of(*process).len() < all)
    });
    for parent in workers(&program, "births") {
        send(parent, Signal::TERM);
    }
    let said = stderr(&program.output());
    let report: Value = serde_json::from_str(&said).expect("a report");
    let enrolment = report["enrolment"].as_str().unwrap_or_default();
    println!("{enrolment}");
    assert!(enrolment.contains(method), "found by: {enrolment}");
    assert!(report["threads"].as_u64() >= Some(11), "{said}");
}
