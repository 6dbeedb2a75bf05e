//! A daemon in a cgroup namespace of its own, as runtimes give it to a container.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libtest_mimic::Trial;
use serde_json::json;

use crate::cgroup::{CGROUPS, Cgroup};
use crate::service::Service;
use crate::test_folder::{TestFolder, stderr, wait_until};
use crate::trials::{BUSY, skip, trial};

/// Goes to the cgroups that are named up to `--`, and to a namespace that begins there.
const ENTER: &str =
    "while [ \"$1\" != -- ]; do echo $$ >\"$1/cgroup.procs\" || exit; shift; done; shift
    exec unshare --cgroup \"$@\"";
/// The same, where no cgroup is mounted.
const ENTER_BLINDLY: &str =
    "while [ \"$1\" != -- ]; do echo $$ >\"$1/cgroup.procs\" || exit; shift; done; shift
    exec unshare --cgroup --mount sh -c 'umount --lazy --recursive /sys/fs/cgroup; exec \"$@\"' sh \"$@\"";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_daemon_in_a_cgroup_namespace_names_what_is_outside_as_the_node_does", named),
        trial("a_daemon_that_sees_no_cgroups_says_what_is_missing", blind),
    ]
}

/// A cgroup within another one, both of this name, in the hierarchy that names programs and in the one with quotas.
/// The last is the first to go.
fn nested(name: &str) -> Option<Vec<Cgroup>> {
    let hierarchies: [&[&str]; 2] = [&["unified", "", "cpu"], &["cpu", "cpu,cpuacct", ""]];
    let mut all: Vec<Cgroup> = Vec::new();
    for hierarchies in hierarchies {
        let found = hierarchies
            .iter()
            .find(|name| Path::new(CGROUPS).join(name).join("cgroup.procs").exists())?;
        let folder = Path::new(CGROUPS).join(found).join(name);
        if !all.iter().any(|cgroup| cgroup.0 == folder) {
            all.insert(0, Cgroup::in_one_of(&[found], name)?);
            all.insert(0, Cgroup::in_one_of(&[found], &format!("{name}/{name}"))?);
        }
    }
    Some(all)
}

/// The inner ones.
fn inner(cgroups: &[Cgroup]) -> Vec<PathBuf> {
    cgroups.iter().step_by(2).map(|cgroup| cgroup.0.clone()).collect()
}

/// A command that enters these first.
fn entering(script: &str, cgroups: &[PathBuf], of: &Command) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).args(cgroups).arg("--");
    command.arg(of.get_program()).args(of.get_args()).stdin(Stdio::null());
    command.envs(of.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

fn can_enter() -> bool {
    let tried = Command::new("unshare").args(["--cgroup", "--mount", "true"]).output();
    tried.is_ok_and(|done| done.status.success())
}

fn named() {
    if !can_enter() {
        return skip("no cgroup namespace can be made here");
    }
    let id = format!("{:064x}", std::process::id());
    let pod = format!("kubepods-burstable-pod{}.slice", std::process::id());
    let (Some(own), Some(others)) = (nested(&format!("symbiont-own-{id}")), nested(&pod)) else {
        return skip("no cgroup can be made here");
    };
    let path = format!("/{pod}/{pod}");
    let configuration = |place: &TestFolder| {
        let rule = format!("[[rule]]\ncgroup = \"{path}\"\nclass = \"latency\"\n");
        fs::write(place.path("rules.d/50-test.toml"), rule).unwrap();
        "policy = \"stay\"\nquantum = \"20ms\"\n".to_owned()
    };
    let own = inner(&own);
    let service = Service::configured_by(configuration, |daemon| entering(ENTER, &own, &daemon));
    let program = service.place.start(Command::new("sh").args(["-c", BUSY]));
    for folder in inner(&others) {
        fs::write(folder.join("cgroup.procs"), program.id().to_string()).unwrap();
        let limits = [("cpu.cfs_quota_us", "5000"), ("cpu.max", "5000 100000")];
        for (file, text) in limits.map(|(file, text)| (folder.join(file), text)) {
            let _ = file.exists().then(|| fs::write(file, text));
        }
    }
    wait_until("the rule matches", || service.programs().len() == 1);
    let found = || service.programs()[0].clone();
    assert_eq!((&found()["class"], &found()["roots"]), (&json!("latency"), &json!([program.id()])));
    assert!(!service.log().contains("/sys/fs/cgroup"), "{}", service.log());
    if inner(&others).iter().any(|folder| folder.join("cpu.stat").exists()) {
        wait_until("its quota is known to stop it", || found()["throttled"].is_object());
        assert_eq!(found()["throttled"]["cgroup"], path);
    } else {
        skip("no quota can be set here");
    }
    program.kill_all();
    drop(service);
}

fn blind() {
    if !can_enter() {
        return skip("no cgroup namespace can be made here");
    }
    let Some(own) = nested(&format!("symbiont-blind-{}", std::process::id())) else {
        return skip("no cgroup can be made here");
    };
    let own = inner(&own);
    let configuration = |_: &TestFolder| "policy = \"stay\"\n".to_owned();
    let enter = |daemon| entering(ENTER_BLINDLY, &own, &daemon);
    let service = Service::configured_by(configuration, enter);
    let words = "Mount /sys/fs/cgroup of the node at /sys/fs/cgroup";
    assert_eq!(service.log().matches(words).count(), 1, "{}", service.log());
    let status = service.client(&["status"]);
    let said = String::from_utf8_lossy(&status.stdout).into_owned();
    let in_one_line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(in_one_line.contains(words), "{said}{}", stderr(&status));
}
