//! `symbiont top` on cores of several hardware threads.

use std::collections::BTreeSet;

use crate::given::Given;
use crate::settings::of_tree;
use crate::test_folder::{Program, wait_until};

use super::daemon::{Daemon, RANDOM};
use super::siblings::{cpus, wait_until_seen, workers};

/// A terminal of this width.
const COLUMNS: usize = 80;
/// Threads of the program that is shown.
const COUNTS: [usize; 2] = [4, 64];

/// Printed once, it has a line for each core with all its CPUs, one for each thread with the CPU that it
/// ran on, and the last moves; none is wider than the terminal.
pub fn once(given: &Given) {
    let mut daemon = Daemon::start(RANDOM);
    for count in COUNTS {
        let program = daemon.run(&["group", "all", &(count - 1).to_string(), "dozer"]);
        wait_until("all have begun", || workers(&program, "dozer").len() == count - 1);
        wait_until_seen("each is shown", |seen| {
            *seen = printed(&daemon);
            seen.contains(&format!("1 program, {count} threads")) && seen.contains("\nMOVES\n")
        });
        is_right(given, &program, &printed(&daemon));
        program.kill_all();
        wait_until("it is forgotten", || {
            daemon.status()["programs"].as_array().is_some_and(Vec::is_empty)
        });
    }
    daemon.end();
}

fn printed(daemon: &Daemon) -> String {
    let mut top = daemon.place.symbiont("top");
    let output = top.args(["--once", "--interval", "1s"]).env("COLUMNS", COLUMNS.to_string());
    let output = output.output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn is_right(given: &Given, program: &Program, text: &str) {
    println!("{text}");
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(COLUMNS), "{widest:?} columns");
    let part =
        |title: &'static str| text.lines().skip_while(move |line| !line.contains(title)).skip(1);
    let cores = part("CORES").take_while(|line| !line.is_empty());
    let core = |line: &str| -> Vec<u32> {
        cpus(line.split_whitespace().next().unwrap()).into_iter().collect()
    };
    assert_eq!(cores.map(core).collect::<Vec<_>>(), given.cores);
    let title = text.lines().find(|line| line.contains("TID PROGRAM")).expect("a table");
    let at = title.split_whitespace().position(|word| word == "CPU").unwrap();
    let rows = part("TID PROGRAM").take_while(|line| !line.is_empty());
    let rows: Vec<Vec<&str>> = rows.map(|line| line.split_whitespace().collect()).collect();
    let shown: BTreeSet<u32> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
    assert_eq!(shown, of_tree(program.id()).into_keys().collect());
    assert_eq!(shown.len(), rows.len(), "each once");
    let ran_on = |row: &Vec<&str>| row[at].parse().is_ok_and(|cpu| given.cpus().contains(&cpu));
    assert!(rows.iter().all(ran_on), "{rows:?}");
}
