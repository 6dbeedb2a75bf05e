//! The threads that ask most of memory run near it, where a node has none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use symbiont_counters::catalogue::Catalogue;
use symbiont_linux::perf::processor_name;
use symbiont_model::{Components, Depth, Model, Training};
use symbiont_topology::CoreKind;

use crate::given::Given;
use crate::test_folder::TestFolder;

use super::STAND_IN;
use super::siblings::{LASTS, cpus_of, wait_until_seen, workers};
use super::workers::{TURN, command};

/// A signal that the policy asks for and that is not in the stand-in catalogue. Nothing is decided by it.
const STACK: &str = r#"
[formula.cpi_stall]
expr = "0.5 * cpi"
unit = "nanoseconds/faults"
source = "stands for stalls"

[formula.cpi_base]
expr = "cpi - cpi_stall"
unit = "nanoseconds/faults"
source = "the residue"

[[sum]]
name = "cpi_stack"
total = "cpi"
parts = ["cpi_base", "cpi_stall"]
"#;

/// Files of a catalogue, and of a model that knows no groups, so that each thread gets a
/// core of its own.
fn knowledge(place: &TestFolder) -> [PathBuf; 2] {
    let text = [STAND_IN.1, STACK].concat();
    let catalogue = Catalogue::parse("stand-in", &text).unwrap();
    let model = Model {
        machine: processor_name(&fs::read_to_string("/proc/cpuinfo").unwrap()).unwrap(),
        core: CoreKind::default(),
        catalogue: catalogue.name().to_owned(),
        components: Components::of(&catalogue, Depth::Coarse.sum()).unwrap(),
        training: Training {
            date: "2026-01-01T00:00:00Z".to_owned(),
            programs: Vec::new(),
            quantum_ms: 200,
            note: String::new(),
        },
        modes: BTreeMap::new(),
    };
    let paths = [place.path("catalogue.toml"), place.path("model.toml")];
    fs::write(&paths[0], text).unwrap();
    model.save(&paths[1]).unwrap();
    paths
}

/// Pages of a process on each node that holds some (proc_pid_numa_maps(5)).
pub fn pages_by_node(process: u32) -> BTreeMap<usize, u64> {
    let maps = fs::read_to_string(format!("/proc/{process}/numa_maps")).unwrap();
    let shown = |word: &str| -> Option<(usize, u64)> {
        let (node, pages) = word.strip_prefix('N')?.split_once('=')?;
        Some((node.parse().ok()?, pages.parse().ok()?))
    };
    let mut by_node = BTreeMap::new();
    for (node, pages) in maps.split_whitespace().filter_map(shown) {
        *by_node.entry(node).or_default() += pages;
    }
    by_node
}

/// One program asks much of memory, another one little; then they change places. Each time
/// the one that asks most goes to a node with memory, and the other one leaves it.
pub fn near(given: &Given) {
    let place = TestFolder::new();
    let [catalogue, model] = knowledge(&place);
    let (catalogue, model) = (catalogue.to_str().unwrap(), model.to_str().unwrap());
    let policy = ["--policy", "symbiotic-numa", "--quantum", "200ms"];
    let options = [&policy[..], &["--catalogue", catalogue, "--model", model]].concat();
    let words = command(&["group", "all", "1", "early", "late"]);
    let program = place.start(&mut place.run(&options, &words));

    let nodes = given.nodes.iter().zip(&given.memory_mib);
    let with_memory = nodes.filter(|(_, mib)| **mib > 0);
    let close: BTreeSet<u32> = with_memory.flat_map(|(cpus, _)| cpus).copied().collect();
    let mask = |role: &str| {
        let worker = workers(&program, role).first().copied();
        worker.map(cpus_of).unwrap_or_default()
    };
    let wait_until_near = |most: &str, least: &str| {
        let mut right = 0;
        wait_until_seen("the program that asks most of memory runs near it", |seen| {
            let (most, least) = (mask(most), mask(least));
            *seen = format!("asks most {most:?}, asks least {least:?}");
            let there = !most.is_empty() && most.is_subset(&close);
            let away = !least.is_empty() && least.is_disjoint(&close);
            right = if there && away { right + 1 } else { 0 };
            right >= LASTS
        });
    };
    wait_until_near("early", "late");
    fs::write(TURN, "").unwrap();
    wait_until_near("late", "early");

    let holders = pages_by_node(workers(&program, "late")[0]);
    println!("its pages by node: {holders:?}");
    let right = holders.keys().all(|node| given.memory_mib[*node] > 0);
    assert!(right && !holders.is_empty(), "pages by node: {holders:?}");
}
