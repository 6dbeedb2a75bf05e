//! The files of the service: read by what they are for.

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Trial;

use crate::test_folder::stderr;
use crate::trials::{skip, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("systemd_finds_nothing_wrong_with_the_unit", unit),
        trial("systemd_finds_the_unit_little_exposed", exposure),
        trial("the_shipped_configuration_names_every_key_with_its_default", configuration),
    ]
}

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

fn unit() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return skip("systemd-analyze is not installed");
    }
    // The unit names the installed program, which must exist to be verified.
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(packaging().join("symbiontd.service")).unwrap();
    let unit = folder.path().join("symbiontd.service");
    let binary = env!("CARGO_BIN_EXE_symbiont");
    std::fs::write(&unit, text.replace("/usr/bin/symbiont", binary)).unwrap();
    let verified = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output();
    let verified = verified.unwrap();
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("symbiontd")).collect();
    assert!(verified.status.success() && ours.is_empty(), "{said}");
}

/// Of 10, by systemd 252. Other versions may look at more: they get a margin.
const MOST_EXPOSED: f64 = 2.0;
const MARGIN: f64 = 0.2;

fn exposure() {
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["security", "--offline=true"]).arg(packaging().join("symbiontd.service"));
    let Ok(analyzed) = analyze.output() else {
        return skip("systemd-analyze is not installed");
    };
    let said = String::from_utf8_lossy(&analyzed.stdout).into_owned();
    let level = said.lines().find_map(|line| line.split_once("Overall exposure level for "));
    let Some((_, level)) = level else {
        return skip(&format!("this systemd-analyze rates no files: {}", stderr(&analyzed)));
    };
    let level: f64 = level.split_whitespace().nth(1).unwrap().parse().unwrap();
    let version = Command::new("systemd-analyze").arg("--version").output().unwrap();
    let is_known = version.stdout.starts_with(b"systemd 252 ");
    let most = if is_known { MOST_EXPOSED } else { MOST_EXPOSED + MARGIN };
    assert!(level <= most, "{said}");
}

fn configuration() {
    let text = std::fs::read_to_string(packaging().join("symbiontd.toml")).unwrap();
    let keys = text.lines().filter_map(|line| line.strip_prefix('#')?.split_once(" = "));
    let keys: Vec<&str> = keys.map(|(key, _)| key).filter(|key| !key.contains(' ')).collect();
    let plain = [
        "policy",
        "quantum",
        "seed",
        "hold",
        "budget",
        "narrow",
        "actuator",
        "model",
        "slowdowns",
        "catalogue",
    ];
    let of_containers = [
        "annotations",
        "metrics",
        "root",
        "containerd",
        "docker",
        "storage",
        "runc",
        "crun",
        "of_users",
    ];
    let of_policy = ["threshold", "seniority"];
    let of_metrics = ["file", "listen", "jobs"];
    assert_eq!(keys, [&plain[..], &of_policy, &of_metrics, &of_containers].concat());
    // With every key given it is still a configuration.
    let given: String = text
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .filter(|line| {
            line.starts_with('[') || keys.iter().any(|key| line.starts_with(&format!("{key} = ")))
        })
        .filter(|line| !line.contains("/var/lib"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let service = crate::service::Service::start("stay");
    std::fs::write(service.config(), given).unwrap();
    let reloaded = service.client(&["reload"]);
    assert!(reloaded.status.success(), "{reloaded:?}");
}
