//! Containers whose state was made to harm: the daemon says so in one line for each, and goes on.

use std::fs::{self, File};
use std::os::unix::fs::{chown, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Trial;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::cgroup::Cgroup;
use crate::service::Service;
use crate::test_folder::{Program, TestFolder, wait_until};
use crate::trials::{skip, trial};

/// Each with the reason that is to be logged.
const KINDS: [(&str, &str); 8] = [
    ("another user's", "belongs to user 4242"),
    ("link", "symbolic links"),
    ("folder link", "symbolic links"),
    ("fifo", "a pipe (FIFO)"),
    ("long", "longer than"),
    ("broken", "cannot be understood"),
    ("deep", "cannot be understood"),
    ("borrowed", "not in this cgroup"),
];
/// Names of two containers.
const NAMED: &str = "shop/web-0/nginx";
/// State that cannot be read is tried again after five seconds.
const TRIED_AGAIN: Duration = Duration::from_secs(7);

pub fn trials() -> Vec<Trial> {
    vec![trial("hostile_state_of_containers_is_one_line_in_the_log", refused)]
}

fn tasks(place: &TestFolder) -> std::path::PathBuf {
    place.path("containerd/io.containerd.runtime.v2.task/k8s.io")
}

/// A container that is idle.
struct Container {
    path: String,
    program: Program,
    _cgroup: Cgroup,
}

impl Container {
    /// In the cgroup of a container of this id.
    fn new(service: &Service, slice: &str, id: &str) -> Option<Self> {
        let path = format!("{slice}/cri-containerd-{id}.scope");
        let cgroup = Cgroup::new(&path)?;
        let program = service.place.start(Command::new("sleep").arg("1000"));
        cgroup.add(program.id()).then_some(Self { path, program, _cgroup: cgroup })
    }
}

fn bundle(path: &str) -> String {
    let kind = |key: &str| format!("io.kubernetes.cri.{key}");
    let annotations = json!({
        kind("sandbox-namespace"): "shop", kind("sandbox-name"): "web-0", kind("container-name"): "nginx",
    });
    json!({ "linux": { "cgroupsPath": format!("/{path}") }, "annotations": annotations })
        .to_string()
}

/// Makes the state of a container of that kind; all that there is to be read names [`NAMED`].
fn write(place: &TestFolder, id: &str, kind: &str, text: &str) {
    let (folder, away) = (tasks(place).join(id), place.path("away").join(id));
    let plain = |folder: &Path, text: &str| {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("config.json"), text).unwrap();
    };
    plain(&away, text);
    if kind == "folder link" {
        return symlink(away, folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("config.json");
    match kind {
        "link" => symlink(away.join("config.json"), file).unwrap(),
        "fifo" => mknodat(CWD, &file, FileType::Fifo, Mode::RUSR, 0).unwrap(),
        "long" => File::create(file).unwrap().set_len(100 << 20).unwrap(),
        "broken" => fs::write(file, &text[..text.len() / 2]).unwrap(),
        "deep" => fs::write(file, "[".repeat(1 << 20)).unwrap(),
        "another user's" => {
            plain(&folder, text);
            chown(file, Some(4242), Some(4242)).unwrap();
        }
        _ => plain(&folder, text),
    }
}

fn refused() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can make such containers");
    }
    let service = Service::configured(|place| {
        fs::create_dir_all(tasks(place)).unwrap();
        let rule = "[[rule]]\npod = \"shop/*\"\nmanage = true\n";
        fs::write(place.path("rules.d/50-test.toml"), rule).unwrap();
        let state = place.path("containerd");
        format!(
            "policy = \"stay\"\nquantum = \"20ms\"\n[containers.folders]\ncontainerd = [{state:?}]\n"
        )
    });
    let slice = format!("kubepods-burstable-pod{}.slice", service.id());
    let Some(_slice) = Cgroup::new(&slice) else { return skip("no cgroup can be made here") };
    let start = |number: usize, kind: &str| {
        let id = format!("{:056x}{number:08x}", service.id());
        let path = format!("{slice}/cri-containerd-{id}.scope");
        // Of another cgroup, whose name this one has.
        let path = if kind == "borrowed" { format!("elsewhere/{path}") } else { path };
        write(&service.place, &id, kind, &bundle(&path));
        Container::new(&service, &slice, &id)
    };
    let hostile: Option<Vec<_>> =
        KINDS.iter().enumerate().map(|(at, (kind, _))| start(at, kind)).collect();
    let Some(hostile) = hostile else { return skip("no process can be moved to a cgroup here") };
    // Two that are called alike: neither hides the other.
    let alike = [start(100, "good"), start(101, "good")].map(Option::unwrap);

    let lines_of = |of: &Container| -> Vec<String> {
        let log = service.log();
        log.lines().filter(|line| line.contains(&of.path)).map(str::to_owned).collect()
    };
    wait_until("all are found out", || hostile.iter().all(|of| !lines_of(of).is_empty()));
    wait_until("the others are managed", || service.programs().len() == 2);
    std::thread::sleep(TRIED_AGAIN);
    for (of, (kind, reason)) in hostile.iter().zip(KINDS) {
        let lines = lines_of(of);
        assert!(lines.len() == 1 && lines[0].contains(reason), "{kind}: {lines:?}");
    }
    let programs = service.programs();
    let mut roots: Vec<u64> =
        programs.iter().filter_map(|program| program["roots"][0].as_u64()).collect();
    roots.sort_unstable();
    let mut expected = alike.each_ref().map(|of| u64::from(of.program.id()));
    expected.sort_unstable();
    assert_eq!(roots, expected, "{programs:?}");
    assert!(programs.iter().all(|program| program["name"] == NAMED), "{programs:?}");
    hostile.iter().chain(&alike).for_each(|of| of.program.kill_all());
}
