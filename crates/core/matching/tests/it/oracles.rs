//! The same 200 instances, solved by other people's code.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustworkx_core::max_weight_matching::max_weight_matching;
use rustworkx_core::petgraph::graph::UnGraph;
use symbiont_matching::{Weights, perfect_matching};

use crate::families::{FAMILIES, instance, two_hundred};

fn ours(cells: &[Vec<i64>]) -> i128 {
    let weights = Weights::from_integers(cells.len(), |i, j| cells[i][j]).unwrap();
    let found = perfect_matching(&weights, []).unwrap();
    found.pairs().map(|(i, j)| i128::from(cells[i][j])).sum()
}

/// networkx, reimplemented in Rust.
fn rustworkx(cells: &[Vec<i64>]) -> i128 {
    let mut graph = UnGraph::<(), i128>::new_undirected();
    let nodes: Vec<_> = cells.iter().map(|_| graph.add_node(())).collect();
    for i in 0..cells.len() {
        for j in i + 1..cells.len() {
            graph.add_edge(nodes[i], nodes[j], i128::from(cells[i][j]));
        }
    }
    let weight = |edge: rustworkx_core::petgraph::graph::EdgeReference<'_, i128>| {
        Ok::<i128, std::convert::Infallible>(-edge.weight())
    };
    let mates = max_weight_matching(&graph, true, weight, false).unwrap();
    assert_eq!(mates.len(), cells.len() / 2);
    mates.iter().map(|&(i, j)| i128::from(cells[i][j])).sum()
}

#[test]
fn rustworkx_finds_the_same_weight() {
    for (family, vertices, seed) in two_hundred() {
        let cells = instance(family, vertices, seed);
        assert_eq!(ours(&cells), rustworkx(&cells), "{}, {vertices}, {seed}", FAMILIES[family]);
    }
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/networkx.txt")
}

/// A line for each instance, as in the golden file.
fn line(family: usize, vertices: usize, seed: u64, weight: i128) -> String {
    format!("{} {vertices} {seed} {weight}\n", FAMILIES[family].replace(' ', "-"))
}

#[test]
fn networkx_found_the_same_weight() {
    let written = std::fs::read_to_string(golden()).unwrap();
    let mut lines = written.lines().filter(|line| !line.starts_with('#'));
    for (family, vertices, seed) in two_hundred() {
        let cells = instance(family, vertices, seed);
        assert_eq!(lines.next(), Some(line(family, vertices, seed, ours(&cells)).trim_end()));
    }
    assert_eq!(lines.next(), None);
}

/// A Python that has networkx: the one that `scripts/networkx.sh` makes.
fn python() -> Option<PathBuf> {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/networkx/bin/python");
    let works = |python: &Path| {
        let mut command = Command::new(python);
        command.args(["-c", "import networkx"]).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    [made, PathBuf::from("python3")].into_iter().find(|python| works(python))
}

/// Asks networkx again, about the smaller instances; about all of them, and
/// writes the answers down, with `UPDATE_GOLDEN=1`.
#[test]
fn networkx_finds_what_is_written() {
    let Some(python) = python() else {
        println!("skipped: no Python here has networkx; scripts/networkx.sh gets one");
        return;
    };
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let asked: Vec<_> =
        two_hundred().filter(|&(_, vertices, _)| update || vertices <= 40).collect();
    let mut text = String::new();
    for &(family, vertices, seed) in &asked {
        let cells = instance(family, vertices, seed);
        let row = |i: usize| cells[i].iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        writeln!(text, "{}", (0..vertices).map(row).collect::<Vec<_>>().join(";")).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/networkx_oracle.py");
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).unwrap();
    let mut lines = answers.lines();
    let version = lines.next().unwrap();
    let weights: Vec<i128> = lines.map(|line| line.parse().unwrap()).collect();
    assert_eq!(weights.len(), asked.len());
    let found: Vec<String> =
        asked.iter().zip(&weights).map(|(&(f, n, s), &w)| line(f, n, s, w)).collect();
    if update {
        let head = format!("# family, vertices, seed, least weight; by networkx {version}\n");
        std::fs::write(golden(), head + &found.concat()).unwrap();
    }
    let written = std::fs::read_to_string(golden()).unwrap();
    for line in &found {
        assert!(written.contains(line.as_str()), "not in the golden file: {line}");
    }
}
