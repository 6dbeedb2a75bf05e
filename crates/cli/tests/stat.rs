//! `symbiont stat` and `symbiont doctor`, end to end, with the events that
//! every kernel has.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Keeps a CPU busy for a while, whatever else runs.
const BUSY: &str = "i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done";

fn symbiont(words: &[&str]) -> Output {
    let mut symbiont = Command::new(env!("CARGO_BIN_EXE_symbiont"));
    symbiont.args(words).stdin(Stdio::null()).output().expect("symbiont starts")
}

/// Can anything be counted here? Says so if not.
fn can_count() -> bool {
    let support = symbiont_linux::perf::support();
    if let Err(error) = &support.software {
        eprintln!("skipped: {error}");
    }
    support.software.is_ok()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The lines of JSON that were written to a file.
fn lines(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_command_has_the_ignored_signals_of_the_shell() {
    if !can_count() {
        return;
    }
    for trap in ["", "trap '' PIPE; ", "trap '' HUP XFSZ; "] {
        let ignored = |with: &str| {
            let line = format!("{trap}{with} grep SigIgn /proc/self/status");
            let mut shell = Command::new("sh");
            let output = shell.args(["-c", &line]).stdin(Stdio::null()).output().unwrap();
            text(&output.stdout)
        };
        let counted = ignored(concat!(env!("CARGO_BIN_EXE_symbiont"), " stat -o /dev/null --"));
        assert!(counted.starts_with("SigIgn"), "{counted}");
        assert_eq!(counted, ignored(""), "{trap}");
    }
}

#[test]
fn a_commands_threads_are_counted_and_its_status_is_kept() {
    if !can_count() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stat.json");
    let script = format!("echo out; {BUSY}; exit 7");
    let done = symbiont(&[
        "stat",
        "--catalogue=software",
        "--event=page-faults",
        "--interval=100ms",
        "--json",
        "--output",
        file.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        &script,
    ]);
    assert_eq!((done.status.code(), text(&done.stdout)), (Some(7), "out\n".into()), "{done:?}");
    let accounts = lines(&file);
    let last = accounts.last().unwrap();
    assert_eq!((&last["total"], &last["catalogue"]), (&true.into(), &"software".into()));
    let shell = &last["threads"][0];
    assert_eq!(shell["name"], "sh");
    let cpu = shell["cpu_s"].as_f64().unwrap();
    assert!(cpu > 0.05 && cpu <= last["over_s"].as_f64().unwrap() * 1.1, "{shell}");
    assert!(shell["coverage"].as_f64().unwrap() > 0.3, "{shell}");
    assert!(shell["values"]["fault_rate"]["value"].as_f64().unwrap() >= 0.0, "{shell}");
    assert!(shell["events"]["page-faults"]["count"].is_u64(), "{shell}");
    // What was reported meanwhile adds up to no more than the whole.
    let meanwhile: f64 = accounts
        .iter()
        .filter(|account| account["total"] == false)
        .filter_map(|account| account["all"]["cpu_s"].as_f64())
        .sum();
    assert!(meanwhile > 0.0 && meanwhile <= cpu * 1.01, "{meanwhile} of {cpu}");
}

#[test]
fn tables_for_people_go_to_standard_error_and_say_what_is_absent() {
    if !can_count() {
        return;
    }
    // Its events are other machines' on almost every machine.
    let done = symbiont(&["stat", "--catalogue=power8", "--", "sh", "-c", BUSY]);
    let said = text(&done.stderr);
    assert!(done.status.success() && done.stdout.is_empty(), "{said}");
    assert!(
        said.contains("catalogue power8") && said.contains("of CPU time in 1 thread;"),
        "{said}"
    );
    let hardware = symbiont_linux::perf::support().hardware.is_ok();
    assert!(hardware || said.contains("absent: "), "{said}");
    let done = symbiont(&["stat", "--catalogue=software", "--", "sh", "-c", BUSY]);
    let said = text(&done.stderr);
    for words in ["faults/s", "sh", "CPU time"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn a_process_that_runs_already_is_watched_for_a_time() {
    if !can_count() {
        return;
    }
    let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let pid = busy.id().to_string();
    let done = symbiont(&["stat", "--catalogue=software", "--json", "--for=400ms", "--pid", &pid]);
    busy.kill().unwrap();
    busy.wait().unwrap();
    assert!(done.status.success(), "{done:?}");
    let account: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(account["threads"][0]["process"].to_string(), pid);
    assert!(account["over_s"].as_f64().unwrap() >= 0.4, "{account}");
    assert!(account["threads"][0]["cpu_s"].as_f64().unwrap() > 0.0, "{account}");
}

#[test]
fn what_cannot_be_done_is_reported_before_anything_runs() {
    if !can_count() {
        return;
    }
    for (words, code, said) in [
        (&["--", "/no/such/program"][..], 127, "cannot run '/no/such/program': not found"),
        (
            &["--catalogue=zen9", "--", "true"],
            1,
            "no event catalogue is called 'zen9'; did you mean 'zen",
        ),
        (&["--event=no-such", "--", "true"], 1, "no event 'no-such' here"),
        (&["--catalogue=zen4", "--formula=ipcs", "--", "true"], 1, "no formula 'ipcs'"),
        (&["--pid=4194304"], 1, "there is no process 4194304"),
        (&[], 2, "--pid"),
    ] {
        let done = symbiont(&[&["stat"], words].concat());
        let shown = text(&done.stderr);
        assert!(done.status.code() == Some(code) && shown.contains(said), "{words:?}: {shown}");
    }
}

#[test]
fn doctor_describes_this_machine_and_of_any_other() {
    let here = symbiont(&["doctor"]);
    let said = text(&here.stdout);
    assert!(here.status.success(), "{}", text(&here.stderr));
    for words in ["Counting", "catalogue", "NMI watchdog", "paranoid level", "Policies"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let json = symbiont(&["doctor", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(json["counting"]["catalogue"].is_string() && json["policies"].is_array());
    assert!(json["core_scheduling"]["ability"].is_string(), "{}", json["core_scheduling"]);
    let other = symbiont(&["doctor", "--machine", "power8"]);
    assert!(text(&other.stdout).contains("PM_CMPLU_STALL_THRD"));
    let json = symbiont(&["doctor", "--machine", "zen4", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["name"], "zen4");
    assert!(json["events"].as_array().is_some_and(|events| events.len() > 20));
    let unknown = symbiont(&["doctor", "--machine", "zen9"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("did you mean 'zen2'"), "{}", text(&unknown.stderr));
}

/// Two packages of 160 cores of SMT4 as an archive, and four nodes in a package as a string.
#[test]
fn doctor_describes_machines_from_archives_and_strings() {
    let folder = tempfile::tempdir().unwrap();
    let large = symbiont_topology::Topology::synthetic("package:2 core:160 smt:4").unwrap();
    let archive = folder.path().join("gathered");
    let mut tar = tar::Builder::new(std::fs::File::create(&archive).unwrap());
    for (path, content) in symbiont_topology::sys_tree(&large) {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, format!("host/sys/{path}"), content.as_bytes()).unwrap();
    }
    tar.finish().unwrap();
    let given = archive.to_str().unwrap();
    let said = symbiont(&["doctor", "--topology", given]);
    let said = text(&said.stdout);
    for words in
        ["320 cores, SMT4, 1280 hardware threads", "cpu 0-1279", "Machine (copy of /sys in"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    let clusters = "pack:2 l3:1(size=32MiB) numa:4 core:4 pu:2";
    let json = symbiont(&["doctor", "--json", "--topology", clusters]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let short = json["in_short"].as_str().unwrap();
    assert!(short.contains("2 last-level caches, 8 NUMA nodes"), "{short}");
    let refused = symbiont(&["advise", "--topology", clusters]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("doctor --topology"), "{}", text(&refused.stderr));
}

#[test]
fn doctor_finds_slurms_plugin_through_includes_and_headers_of_another_folder() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().display().to_string();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let configuration = write("etc/slurm.conf", "");
    write("etc/plugstack.conf", "include plugstack.conf.d/*.conf\n");
    write(
        "etc/plugstack.conf.d/symbiont.conf",
        "optional symbiont_spank.so\ninclude symbiont.conf\n",
    );
    write("lib/slurm/symbiont_spank.so", "symbiont-spank built for Slurm 22.05\0");
    write("include/slurm/slurm_version.h", "#define SLURM_VERSION_NUMBER 0x180b01\n");
    let says = format!("PluginDir               = {here}/none:{here}/lib/slurm");
    for (name, says) in [("sinfo", "slurm 24.11.1"), ("scontrol", &says)] {
        let command = write(&format!("bin/{name}"), &format!("#!/bin/sh\necho '{says}'\n"));
        std::fs::set_permissions(&command, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let path = format!("{here}/bin:{}", std::env::var("PATH").unwrap());
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_symbiont"));
    doctor.args(["doctor", "--json"]).env("SLURM_CONF", configuration).env("PATH", path);
    let output = doctor.output().expect("symbiont starts");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let notes = json["slurm"]["notes"].to_string();
    for words in [
        &format!(
            "{here}/lib/slurm/symbiont_spank.so was built for Slurm 22.05, and 24.11 is installed"
        ),
        &format!("make -C /usr/share/symbiont/slurm SLURM={here} DESTDIR= install"),
        "symbiont.conf, line 2, includes",
        "in a cycle",
    ] {
        assert!(notes.contains(words), "{words}: {notes}");
    }
}
