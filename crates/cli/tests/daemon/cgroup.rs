//! Programs that are named by their cgroup.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;

use crate::service::Service;
use crate::settings::{changed, own, tree, wait_for_change};
use crate::test_folder::{stderr, wait_until};
use crate::trials::{BUSY, own_cpus, skip, trial};

pub const CGROUPS: &str = "/sys/fs/cgroup";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("the_programs_of_a_cgroup_are_attached_and_detached_together", together),
        trial("a_program_that_its_quota_stops_blames_it_and_no_neighbour", quota),
    ]
}

/// A cgroup, removed with its value.
pub struct Cgroup(pub PathBuf);

impl Cgroup {
    /// Below the first root where one can be made and used: version 2's, or one of version 1.
    pub fn new(name: &str) -> Option<Self> {
        Self::in_one_of(&["", "unified", "pids", "freezer"], name)
    }

    /// Below the first of these hierarchies where one can be made and used.
    pub fn in_one_of(hierarchies: &[&str], name: &str) -> Option<Self> {
        let roots = hierarchies.iter().map(|root| Path::new(CGROUPS).join(root));
        roots.into_iter().find_map(|root| {
            let folder = root.join(name);
            let made = root.join("cgroup.procs").exists() && fs::create_dir(&folder).is_ok();
            let cgroup = made.then(|| Self(folder))?;
            cgroup.0.join("cgroup.procs").exists().then_some(cgroup)
        })
    }

    pub fn add(&self, process: u32) -> bool {
        fs::write(self.0.join("cgroup.procs"), process.to_string()).is_ok()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Busy until the last process is reaped.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        eprintln!("{} stays", self.0.display());
    }
}

/// A busy program of class latency that may have a twentieth of a CPU, next to one that may have all.
fn quota() {
    let service = Service::start("auto");
    let name = format!("symbiont-quota-{}", service.id());
    let folder = ["cpu", ""].map(|root| Path::new(CGROUPS).join(root).join(&name));
    let limited = folder.into_iter().find_map(|folder| {
        let made = fs::create_dir(&folder).is_ok();
        let cgroup = made.then(|| Cgroup(folder))?;
        let limits = [("cpu.cfs_quota_us", "5000"), ("cpu.max", "5000 100000")];
        let is_limited = |(file, limit)| {
            let file = cgroup.0.join(file);
            file.exists() && fs::write(file, limit).is_ok()
        };
        limits.into_iter().any(is_limited).then_some(cgroup)
    });
    let Some(cgroup) = limited else { return skip("no cgroup with a quota can be made here") };
    let mut latency = service.place.run(&["--class", "latency"], &["sh", "-c", BUSY]);
    let program = service.place.start(&mut latency);
    let neighbour = service.place.start(std::process::Command::new("sh").args(["-c", BUSY]));
    wait_until("it is managed", || service.programs().len() == 1);
    if !cgroup.add(program.id()) {
        return skip("no process can be moved to a cgroup here");
    }
    let id = program.id().to_string();
    let throttled = || service.programs()[0]["throttled"].clone();
    wait_until("its quota is known to stop it", || throttled().is_object());
    let found = throttled();
    assert_eq!((&found["cgroup"], &found["cpus"]), (&format!("/{name}").into(), &0.05.into()));
    assert!(found["throttled"].as_u64() > Some(0), "{found}");
    let said =
        |command: &[&str]| String::from_utf8_lossy(&service.client(command).stdout).into_owned();
    let words = format!("its quota of 0.05 CPUs (cgroup /{name}) was used up in");
    let why = said(&["why", &id]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(why.contains(&format!("throttled {words}")), "{why}");
    wait_until("its wait is the quota's", || {
        let status = said(&["status"]);
        assert!(!status.contains("also used CPU"), "{status}");
        status.contains(&format!("latency not met: {words}"))
    });
    for program in [program, neighbour] {
        program.kill_all();
    }
}

fn together() {
    let (service, own) = (Service::start("random"), own());
    let name = format!("symbiont-test-{}", service.id());
    let Some(cgroup) = Cgroup::new(&name) else {
        return skip("no cgroup can be made here");
    };
    let start = || service.place.start(std::process::Command::new("sh").args(["-c", BUSY]));
    let (first, second, outside) = (start(), start(), start());
    if !cgroup.add(first.id()) || !cgroup.add(second.id()) {
        return skip("no process can be moved to a cgroup here");
    }
    let below = cgroup.0.strip_prefix(CGROUPS).unwrap().to_str().unwrap();
    let pattern = below.replace("symbiont-", "*iont-");
    let done = service.client(&["attach", "--cgroup", &pattern]);
    assert!(done.status.success(), "{}", stderr(&done));
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(said, format!("{pattern}: 2 processes with 2 threads managed\n"));
    let programs = service.programs();
    assert_eq!(programs.len(), 1);
    let mut roots: Vec<u64> = programs[0]["roots"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(serde_json::Value::as_u64)
        .collect();
    roots.sort_unstable();
    let mut expected = [u64::from(first.id()), u64::from(second.id())];
    expected.sort_unstable();
    assert_eq!(roots, expected);
    if own_cpus().len() > 1 {
        wait_for_change(first.id(), &own);
        wait_for_change(second.id(), &own);
    } else {
        skip("there is one CPU only, so nothing is placed");
    }
    let done = service.client(&["detach", "--cgroup", &pattern]);
    assert!(done.status.success(), "{}", stderr(&done));
    for program in [&first, &second, &outside] {
        assert_eq!(changed(program.id(), &own), [].into());
        assert_eq!(tree(program.id()).len(), 1);
    }
    wait_until("none is managed", || service.programs().is_empty());
    let none = service.client(&["attach", "--cgroup", &format!("{below}-other")]);
    assert!(stderr(&none).contains("no cgroup below /sys/fs/cgroup"), "{}", stderr(&none));
    for program in [first, second, outside] {
        program.kill_all();
    }
}
