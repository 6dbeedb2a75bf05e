//! A manager in a cgroup namespace of its own, as container runtimes give one: cgroups of other processes have paths
//! there that lead out of it.

use std::path::Path;
use std::process::Stdio;

use symbiont_machine::Outcome;
use symbiont_topology::CpuSet;

use crate::cpuset::{Cpuset, resize};
use crate::roles::{STATE, actor};
use crate::support::*;

/// What the manager of these tests is called.
pub const ROLE: &str = "manager in a cgroup namespace";
const VICTIM: &str = "SYMBIONT_TEST_VICTIM";
/// Goes to a cgroup, and to a namespace that begins there.
const ENTER: &str = "echo $$ >\"$0/cgroup.procs\" && exec unshare --cgroup \"$@\"";
/// The same, where no cgroup is mounted.
const ENTER_BLINDLY: &str = "echo $$ >\"$0/cgroup.procs\" && exec unshare --cgroup --mount sh -c '
    umount --lazy --recursive /sys/fs/cgroup && exec \"$@\"' sh \"$@\"";

/// A manager of a process in a cpuset that changes, and where it is.
fn manage_from(script: &str) {
    let Some((all, _, _)) = two_cpus() else { return };
    if !is_root() {
        return skip("only root makes cgroup namespaces");
    }
    // So deep that the path of the other one does not begin with that of the mount's root.
    let Some(above) = Cpuset::make(&all) else { return };
    let (Some(around), Some(own)) = (above.inner(&all), above.inner(&all)) else { return };
    let victim = Victim::sleeper();
    around.admit(victim.id());
    let role = actor(ROLE);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]).arg(own.path());
    command.arg(std::env::current_exe().unwrap()).args(role.get_args());
    command.envs(role.get_envs().filter_map(|(name, value)| Some((name, value?))));
    // The manager has another view of the mounts.
    let seen = format!("/proc/{}/root{}", std::process::id(), around.path().display());
    command.env(STATE, seen).env(VICTIM, victim.id().to_string()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    if said.contains("unshare failed") {
        return skip("no cgroup namespace can be made here");
    }
    assert!(output.status.success(), "{said}");
    assert_eq!(mask_of(victim.id()), all, "its own mask again, after the manager's end");
}

/// Manages a process while the cpuset around it shrinks and grows.
pub fn manager(cpuset: &Path) {
    let victim: u32 = std::env::var(VICTIM).unwrap().parse().unwrap();
    let path = std::fs::read_to_string(format!("/proc/{victim}/cpuset")).unwrap();
    assert!(path.starts_with("/../"), "it is not outside of this namespace: {path}");
    let (all, first, second) = two_cpus().unwrap();
    let (rig, thread) = (Rig::new(), thread_id(victim, victim));
    let allowed = || CpuSet::clone(&rig.actuator.allowed(&thread).unwrap());
    assert_eq!(*rig.actuator.adopt(&thread).unwrap(), all);
    assert_eq!(rig.pin(&thread, &first), Outcome::Done);
    // Nothing is left of what was set.
    resize(cpuset, &second);
    assert_nothing(&rig.actuator.lapsed());
    assert_refused(&rig.pin(&thread, &first), "may run on");
    assert_eq!(allowed(), second);
    resize(cpuset, &all);
    rig.actuator.refresh().unwrap();
    // Where the cpuset had to be asked of the thread, it lost what was set.
    let lapsed = rig.actuator.lapsed();
    assert!(lapsed.iter().all(|(_, outcome)| *outcome == Outcome::Done), "{lapsed:?}");
    assert_eq!(allowed(), all);
    // It ends while the cpuset is small, too.
    assert_eq!(rig.pin(&thread, &second), Outcome::Done);
    resize(cpuset, &first);
    assert_nothing(&rig.actuator.restore_all().left_alone);
    assert_eq!(mask_of(victim), first);
    resize(cpuset, &all);
    assert_eq!(mask_of(victim), all);
    keeps_a_chosen_mask(victim, &first);
    set_mask(victim, &all);
}

/// What its user chose is not widened, be it seen why or not.
fn keeps_a_chosen_mask(victim: u32, chosen: &CpuSet) {
    set_mask(victim, chosen);
    let (rig, thread) = (Rig::new(), thread_id(victim, victim));
    assert_eq!(*rig.actuator.adopt(&thread).unwrap(), *chosen);
    rig.actuator.refresh().unwrap();
    assert_nothing(&rig.actuator.lapsed());
    assert_eq!(mask_of(victim), *chosen);
    rig.actuator.restore_all();
    assert_eq!(mask_of(victim), *chosen);
}

#[test]
fn a_cpuset_that_changes_is_followed_from_a_cgroup_namespace() {
    manage_from(ENTER);
}

#[test]
fn a_cpuset_that_changes_unseen_leaves_no_thread_narrowed() {
    manage_from(ENTER_BLINDLY);
}
