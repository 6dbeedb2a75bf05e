//! The golden corpus: machines that the reader of `/sys` must read right.
//!
//! Each machine is two files in `tests/golden`: `NAME.sys`, its `/sys` tree as
//! text ([`format`]), and `NAME.expected`, what is read from that as people
//! read it. To add a machine, run `scripts/gather-topology.sh` on it, put the
//! output there, and run the tests with `UPDATE_GOLDEN=1`, which writes the
//! second file; read it and check it. A `NAME.sys` that holds only the line
//! `# synthetic: …` is filled in at the same time: such a machine must be read
//! back as it was described.

mod format;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use proptest::prelude::*;
use tempfile::TempDir;

use crate::hwloc::tests::{as_hwloc_reads, lstopo};
use crate::synthetic::tests::lines;
use crate::{HostTopology, NumaNode, Topology, read_sys_tree, scratch, sys_tree};

fn bless() -> bool {
    env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1")
}

/// The files `NAME.sys`, in order.
fn corpus() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut machines: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    machines.retain(|path| path.extension().is_some_and(|e| e == "sys"));
    machines.sort();
    assert!(machines.len() >= 8, "the corpus is not complete");
    machines
}

/// Unpacks a machine so that `DIR/sys` stands for its `/sys`.
fn unpack(machine: &Path) -> TempDir {
    let text = fs::read_to_string(machine).unwrap();
    let files = format::unpack(&text).unwrap_or_else(|e| panic!("{}: {e}", machine.display()));
    let below_sys = files.into_iter().map(|(path, content)| (format!("sys/{path}"), content));
    scratch::tree(below_sys).unwrap()
}

fn read(root: &TempDir) -> Topology {
    read_sys_tree(&root.path().join("sys")).unwrap()
}

/// The line that a machine was described by.
fn described(machine: &Path) -> Option<Topology> {
    let text = fs::read_to_string(machine).unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix("# synthetic: "))?;
    Some(Topology::synthetic(line).unwrap())
}

#[test]
fn every_machine_is_read_as_expected() {
    for machine in corpus() {
        let synthetic = described(&machine);
        if let Some(synthetic) = synthetic.as_ref().filter(|_| bless()) {
            let text = fs::read_to_string(&machine).unwrap();
            let comments = text.lines().filter(|line| line.starts_with('#'));
            let comments: String = comments.map(|line| format!("{line}\n")).collect();
            fs::write(&machine, comments + &format::pack(&sys_tree(synthetic))).unwrap();
        }
        let topology = read(&unpack(&machine));
        if let Some(synthetic) = synthetic {
            assert_eq!(topology.cores(), synthetic.cores(), "{}", machine.display());
            assert_eq!(topology.llcs(), synthetic.llcs(), "{}", machine.display());
            assert_eq!(topology.nodes(), synthetic.nodes(), "{}", machine.display());
            assert_eq!(topology.packages(), synthetic.packages(), "{}", machine.display());
        }
        let expected = machine.with_extension("expected");
        if bless() {
            fs::write(&expected, topology.to_string()).unwrap();
        }
        let expected = fs::read_to_string(&expected).expect("UPDATE_GOLDEN=1 writes it");
        assert_eq!(topology.to_string(), expected, "{}", machine.display());
    }
}

/// What hwloc reports as we do: all sets of CPUs, cache sizes, and distances if
/// there are several nodes.
fn structure(t: &Topology) -> Vec<String> {
    let cores = t.cores().iter().map(|c| format!("{} {} on {}", c.id, c.cpus, c.node));
    let llcs = t.llcs().iter().map(|l| format!("{} {} {:?}", l.id, l.cpus, l.bytes));
    let several = t.nodes().len() > 1;
    let distances = |n: &NumaNode| several.then(|| n.distances.clone());
    let nodes = t.nodes().iter().map(|n| format!("{} {} {:?}", n.id, n.cpus, distances(n)));
    let packages = t.packages().iter().map(|p| format!("{} {}", p.id, p.cpus));
    cores.chain(llcs).chain(nodes).chain(packages).collect()
}

/// Makes hwloc read `/sys` only, and at CPUs that this process may not use.
fn over_sys(lstopo: &mut Command) -> &mut Command {
    lstopo.arg("--disallowed").env("HWLOC_COMPONENTS", "linux,stop")
}

#[test]
fn hwloc_reads_what_we_read() {
    let Some(mut over_host) = lstopo() else { return };
    let host = HostTopology::read().unwrap();
    assert_eq!(structure(&as_hwloc_reads(over_sys(&mut over_host))), structure(&host));

    for machine in corpus() {
        let root = unpack(&machine);
        let mut command = lstopo().unwrap();
        let theirs = as_hwloc_reads(over_sys(&mut command).env("HWLOC_FSROOT", root.path()));
        let ours = read(&root);
        assert_eq!(structure(&theirs), structure(&ours), "{}", machine.display());
        let speeds = |t: &Topology| t.cores().iter().map(|c| c.capacity).collect::<Vec<_>>();
        assert_eq!(speeds(&theirs), speeds(&ours), "{}", machine.display());
        let memory = |t: &Topology| {
            t.nodes().iter().map(|n| n.memory_bytes.unwrap_or(0)).collect::<Vec<_>>()
        };
        assert_eq!(memory(&theirs), memory(&ours), "{}", machine.display());
    }
}

proptest! {
    // Each case runs hwloc once.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn hwloc_reads_random_machines_as_we_do(line in lines()) {
        let Some(mut command) = lstopo() else { return Ok(()) };
        let machine = Topology::synthetic(&line).unwrap();
        let below_sys = sys_tree(&machine).into_iter().map(|(p, c)| (format!("sys/{p}"), c));
        let root = scratch::tree(below_sys).unwrap();
        let theirs = as_hwloc_reads(over_sys(&mut command).env("HWLOC_FSROOT", root.path()));
        prop_assert_eq!(structure(&theirs), structure(&machine));
    }
}

#[test]
fn the_gather_script_gathers_all_that_is_read() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts/gather-topology.sh");
    for machine in corpus() {
        let root = unpack(&machine);
        let mut command = Command::new("sh");
        command.arg(&script).arg("again").env("ROOT", root.path().join("sys"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let again = scratch::tree([("again.sys", output.stdout)]).unwrap();
        let (gathered, there) = (read(&unpack(&again.path().join("again.sys"))), read(&root));
        assert_eq!(structure(&gathered), structure(&there), "{}", machine.display());
        assert_eq!(gathered.to_string(), there.to_string(), "{}", machine.display());
    }
}
