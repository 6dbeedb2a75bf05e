//! Holds the manifests against the table of rooms in ARCHITECTURE.md, and the modules of each room against each other.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod circles;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Rows of the tables: room → rooms it may use; `None` stands for "all of them".
fn table(text: &str) -> BTreeMap<String, Option<BTreeSet<String>>> {
    let names = |cell: &str| -> BTreeSet<String> {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let mut table = BTreeMap::new();
    let mut is_inside = false;
    for row in text.lines() {
        is_inside = row.starts_with("| crate |") || is_inside && row.starts_with('|');
        if !is_inside || row.starts_with("| crate |") || row.starts_with("|---") {
            continue;
        }
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, uses] = cells[..] else { panic!("three cells expected in: {row}") };
        let room = names(name).into_iter().next().expect("a room's name in backquotes");
        table.insert(room, (uses != "all of them").then(|| names(uses)));
    }
    table
}

/// What the manifests say: room → rooms it uses, dev-dependencies excepted.
fn manifests() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .other_options(vec!["--offline".into(), "--locked".into()])
        .exec()
        .unwrap();
    let room = |name: &str| name.strip_prefix("symbiont-").map(str::to_owned);
    metadata
        .packages
        .iter()
        .map(|package| {
            let uses = package
                .dependencies
                .iter()
                .filter(|d| d.kind != DependencyKind::Development)
                .filter_map(|d| room(&d.name))
                .collect();
            (room(&package.name).expect("crates are named symbiont-…"), uses)
        })
        .collect()
}

/// The folders of all rooms, which are in wings but for `cli`.
fn rooms() -> Vec<PathBuf> {
    let inside = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let is_room = |folder: &PathBuf| folder.join("Cargo.toml").is_file();
    let (mut rooms, wings): (Vec<_>, Vec<_>) =
        inside(&root().join("crates")).into_iter().partition(is_room);
    rooms.extend(wings.iter().flat_map(|wing| inside(wing)).filter(is_room));
    rooms
}

#[test]
fn every_room_uses_what_the_table_says_and_no_more() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = table(&text);
    let manifests = manifests();
    assert_eq!(
        table.keys().collect::<Vec<_>>(),
        manifests.keys().collect::<Vec<_>>(),
        "ARCHITECTURE.md lists other rooms than crates/ holds"
    );
    for (room, uses) in &manifests {
        let Some(allowed) = &table[room] else { continue };
        let extra: Vec<_> = uses.difference(allowed).collect();
        assert!(extra.is_empty(), "{room} uses {extra:?}, which ARCHITECTURE.md does not allow");
        let unused: Vec<_> = allowed.difference(uses).collect();
        assert!(unused.is_empty(), "{room} does not use {unused:?}, which ARCHITECTURE.md allows");
    }
}

/// One screen or two, and ways through the code that exist.
#[test]
fn the_architecture_is_short_and_leads_somewhere() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    assert!(text.len() <= 10 * 1024, "{} bytes", text.len());
    let named: Vec<&str> =
        text.split('`').skip(1).step_by(2).filter(|word| word.ends_with(".rs")).collect();
    assert!(named.len() >= 30, "{named:?}");
    for path in named {
        let path = path.strip_prefix("crates/").unwrap_or(path);
        assert!(root().join("crates").join(path).is_file(), "there is no {path}");
    }
}

#[test]
fn the_table_is_read_as_written() {
    let text = "\n| crate | it holds | may use |\n|---|---|---|\n| `a` | x | – |\n\
                | `b` | y | `a` |\n| `c` | z | all of them |\n\nafter | the | table";
    let table = table(text);
    assert_eq!(table.len(), 3);
    assert_eq!(table["a"], Some(BTreeSet::new()));
    assert_eq!(table["b"], Some(BTreeSet::from(["a".to_owned()])));
    assert_eq!(table["c"], None);
}

/// `unsafe` belongs to `linux`, and to the plugin that qemu loads: every other room inherits the workspace's
/// `unsafe_code = "deny"` and none lifts it.
#[test]
fn only_linux_and_the_plugin_lift_the_ban_on_unsafe() {
    for room in rooms() {
        let manifest = std::fs::read_to_string(room.join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{} opts out", room.display());
        if room.ends_with("linux") || room.ends_with("profile-plugin") {
            continue;
        }
        let mut folders = vec![room];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let dense: String = text.split_whitespace().collect();
                    // Put together here, or this file would name itself.
                    let lint = ["unsafe", "code"].join("_");
                    let lifted = ["(", ","].map(|before| format!("{before}{lint}"));
                    assert!(!lifted.iter().any(|l| dense.contains(l)), "{}", path.display());
                }
            }
        }
    }
}
