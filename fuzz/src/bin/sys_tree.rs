//! Copies of /sys: each line of the input is a path, a tab, and what the file holds.
#![no_main]

use std::fs;
use std::path::Path;

use symbiont_fuzz::{fuzz_target, scratch};
use symbiont_topology::{CpuSet, Topology, read_sys_tree, sys_tree};

/// Files of one tree: more only take time.
const MOST_FILES: usize = 64;
/// CPUs of one tree.
const MOST_CPUS: usize = 256;

fuzz_target!(|text: &str| {
    let files = text.lines().filter_map(|line| line.split_once('\t'));
    // Of each CPU some ten files are looked for.
    let few = |(path, text): &(&str, &str)| {
        let cpus = text.parse::<CpuSet>().map_or(0, |cpus| cpus.len());
        !path.ends_with("online") || cpus <= MOST_CPUS
    };
    let Some(topology) = read(files.take(MOST_FILES).filter(few)) else { return };
    if topology.cpus().len() > 4 || topology.nodes().len() > 4 {
        return;
    }
    let written = sys_tree(&topology);
    let files = written.iter().map(|(path, content)| (path.as_str(), content.as_str()));
    let again = read(files).expect("what was written can be read");
    assert_eq!(again.cpus(), topology.cpus());
});

/// The machine in these files, if they describe one.
fn read<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Option<Topology> {
    let root = scratch().expect("a scratch directory");
    for (path, content) in files {
        let plain = |part: &str| !matches!(part, "" | "." | "..") && part.len() < 64;
        if path.len() > 200 || path.contains('\0') || !path.split('/').all(plain) {
            continue;
        }
        let path = root.path().join(path);
        // A file may stand where a directory is wanted: then the first one stays.
        let _ = fs::create_dir_all(path.parent().unwrap_or(Path::new("/")));
        let _ = fs::write(path, content);
    }
    read_sys_tree(root.path()).ok()
}
