//! Programs with cores of their own, through a daemon and without one.

use libtest_mimic::Trial;

use crate::service::Service;
use crate::settings::tree;
use crate::test_folder::{Program, TestFolder, stderr, wait_until};
use crate::trials::{BUSY, own_cpus, skip, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_latency_program_has_a_core_and_the_others_keep_off", latency),
        trial("a_measured_program_is_not_run_where_it_cannot_be_alone", not_alone),
        trial("what_a_measured_command_leaves_behind_keeps_no_core", left_behind),
        trial("a_class_outlives_a_crash_of_the_daemon", crash),
        trial("without_a_daemon_a_run_keeps_its_core_too", private),
        trial("an_intrusion_is_reported_at_the_end_of_what_is_measured", || intrusion(false)),
        trial("a_daemon_reports_an_intrusion", || intrusion(true)),
        trial("what_a_latency_program_waits_for_is_named", waits),
        trial("the_log_says_what_comes_and_goes", log),
    ]
}

/// Where the kernel lets a process run, as a list.
fn allowed(process: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap().trim().to_owned()
}

fn start(place: &TestFolder, options: &[&str]) -> Program {
    place.start(&mut place.run(options, &["sh", "-c", BUSY]))
}

/// The tests need exactly what they say of two cores without siblings.
fn has_two_cpus() -> bool {
    let has = own_cpus().len() == 2;
    if !has {
        skip("needs two CPUs, no more");
    }
    has
}

fn latency() {
    if !has_two_cpus() {
        return;
    }
    let service = Service::start("stay");
    let fast = start(&service.place, &["--class", "latency"]);
    wait_until("it is managed", || service.programs().len() == 1);
    let other = start(&service.place, &[]);
    let parted = || {
        let masks = [allowed(fast.id()), allowed(other.id())];
        masks == ["0", "1"] || masks == ["1", "0"]
    };
    wait_until("each has its CPU", parted);
    assert_eq!(allowed(service.id()), allowed(other.id()), "the daemon keeps off its core, too");
    let programs = service.programs();
    assert_eq!(
        (&programs[0]["class"], &programs[1]["class"]),
        (&"latency".into(), &"normal".into())
    );
    let why = service.client(&["why", &fast.id().to_string()]);
    let why = String::from_utf8_lossy(&why.stdout).into_owned();
    assert!(why.contains("latency: these cores run no other managed program"), "{why}");

    let second = service.place.run(&["--class", "latency"], &["true"]).output().unwrap();
    assert!(second.status.success());
    assert!(stderr(&second).contains("no core of its own"), "{}", stderr(&second));
    fast.kill_all();
    wait_until("its core is free again", || allowed(other.id()) == "0-1");
    wait_until("also for the daemon", || allowed(service.id()) == "0-1");
    other.kill_all();
}

fn not_alone() {
    if !has_two_cpus() {
        return;
    }
    let service = Service::start("random");
    let measured = start(&service.place, &["--alone"]);
    wait_until("it is managed", || service.programs().len() == 1);
    let refused = |output: std::process::Output, part: &str| {
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        let said = stderr(&output);
        assert!(said.contains("not run") && said.contains(part), "{said}");
        assert!(output.stdout.is_empty(), "it did not run");
    };
    for report in [&["--alone"][..], &["--alone", "--report", "text"]] {
        let second = service.place.run(report, &["echo", "ran"]).output().unwrap();
        refused(second, "1 of 2 cores are kept for other programs");
    }
    // A program that waits for a core has none: it is counted as none, at the start as in its reason.
    let waiting = start(&service.place, &["--class", "latency"]);
    wait_until("it is managed, too", || service.programs().len() == 2);
    let kept = "no core of its own: 1 of 2 cores are kept for other programs";
    let third = service.place.run(&["--class", "latency"], &["true"]).output().unwrap();
    assert!(stderr(&third).contains(kept), "{}", stderr(&third));
    let why = || service.client(&["why", &waiting.id().to_string()]).stdout;
    wait_until("its reason says the same", || String::from_utf8_lossy(&why()).contains(kept));
    assert_eq!(
        allowed(service.id()),
        allowed(waiting.id()),
        "the daemon keeps off what is measured"
    );
    waiting.kill_all();
    let log = service.log();
    assert!(log.contains(" asks to manage echo, which is refused: not alone: "), "{log}");
    measured.kill_all();
    // One after the other each has its core.
    for _ in 0..4 {
        let next = service.place.run(&["--alone"], &["echo", "ran"]).output().unwrap();
        assert!(next.status.success(), "{next:?}");
    }

    let place = TestFolder::new();
    let symbiont = env!("CARGO_BIN_EXE_symbiont");
    let state_dir = place.state_dir();
    let mut pinned = std::process::Command::new("taskset");
    pinned.args(["-c", "0", symbiont, "run", "--alone", "--state-dir"]).arg(state_dir);
    refused(pinned.args(["--", "echo", "ran"]).output().unwrap(), "takes two");
}

fn left_behind() {
    if !has_two_cpus() {
        return;
    }
    let service = Service::start("stay");
    // What is left behind holds its output open.
    let said = service.place.path("said");
    let alone = |command: &str| {
        let mut run = service.place.run(&["--alone"], &["sh", "-c", command]);
        let said = std::fs::File::create(&said).unwrap();
        run.stdout(said.try_clone().unwrap()).stderr(said).status().unwrap().code()
    };
    for command in ["setsid sleep 9 & exit 0", "(setsid sleep 9 &)", "sleep 0.1 & exit 0"] {
        for _ in 0..6 {
            assert_eq!(alone(command), Some(0), "{command}: {}", service.log());
        }
    }
    wait_until("daemons are released", || service.programs().is_empty());
    // What stays in the session of its command is of the program, to its end.
    let pid = service.place.path("pid");
    let seen = service.place.path("seen");
    let (to, until) = (pid.display(), seen.display());
    let waits = format!("sleep 60 & echo $! >{to}; while [ ! -e {until} ]; do :; done");
    std::thread::scope(|scope| {
        let ended = scope.spawn(|| alone(&waits));
        // Where no births are reported, a child is seen at the next look, if its parent still lives.
        wait_until("both are seen", || {
            service.programs().first().is_some_and(|program| program["threads"] == 2)
        });
        std::fs::write(&seen, "").unwrap();
        assert_eq!(ended.join().unwrap(), Some(0));
    });
    assert_eq!(alone("true"), Some(125), "what is left has its core");
    let left = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    crate::test_folder::send(left, rustix::process::Signal::KILL);
    assert_eq!(alone("true"), Some(0), "it has ended: {}", service.log());
}

fn crash() {
    let mut service = Service::start("stay");
    let program = start(&service.place, &["--class", "batch"]);
    let class = |service: &Service| service.programs().first().map(|p| p["class"].clone());
    wait_until("it is noted for the next start", || {
        let noted = std::fs::read_to_string(service.place.state_dir().join("enrolments.json"));
        noted.is_ok_and(|text| text.contains("batch"))
    });
    service.crash_and_restart();
    assert_eq!(class(&service), Some("batch".into()));
    program.kill_all();
}

fn private() {
    if !has_two_cpus() {
        return;
    }
    let place = TestFolder::new();
    let program = start(&place, &["--class", "latency", "--policy", "stay"]);
    wait_until("it has its CPU", || ["0", "1"].contains(&allowed(program.id()).as_str()));
    program.kill_all();
}

/// A shell by another name that keeps a CPU busy, unmanaged.
fn intruder(place: &TestFolder, cpu: &str) -> std::process::Child {
    let named = place.path("intruder");
    std::os::unix::fs::symlink("/bin/sh", &named).unwrap();
    let mut taskset = std::process::Command::new("taskset");
    taskset.args(["-c", cpu]).arg(named).args(["-c", BUSY]);
    taskset.spawn().unwrap()
}

fn waits() {
    if !has_two_cpus() {
        return;
    }
    let service = Service::start("stay");
    let fast = start(&service.place, &["--class", "latency"]);
    wait_until("it has its CPU", || ["0", "1"].contains(&allowed(fast.id()).as_str()));
    let mut intruder = intruder(&service.place, &allowed(fast.id()));
    let named = || {
        let programs = service.programs();
        programs.first().is_some_and(|one| one["waits"]["by"].to_string().contains("intruder"))
    };
    wait_until("what it waits for is named", named);
    let said = |words: &[&str]| String::from_utf8_lossy(&service.client(words).stdout).into_owned();
    for text in [said(&["status"]), said(&["top", "--once"])] {
        assert!(text.contains("latency not met: ") && text.contains("intruder"), "{text}");
    }
    assert_eq!(service.log().matches("latency not met for ").count(), 1, "{}", service.log());
    intruder.kill().unwrap();
    intruder.wait().unwrap();
    fast.kill_all();
}

fn log() {
    let service = Service::start("stay");
    let program = start(&service.place, &[]);
    wait_until("it is managed", || service.programs().len() == 1);
    assert!(service.client(&["reload"]).status.success());
    assert!(service.client(&["detach", "--pid", &program.id().to_string()]).status.success());
    let lines = [
        format!("sh (process {}, user 0) is managed, class normal, as user 0 asks", program.id()),
        "read again, as user 0 asks: policy stay, ".to_owned(),
        "sh is released, as user 0 asks: ".to_owned(),
    ];
    let uid = rustix::process::getuid().as_raw();
    for line in lines.map(|line| line.replace("user 0", &format!("user {uid}"))) {
        wait_until(&line, || service.log().contains(&line));
    }
    program.kill_all();
}

/// Another program is started by the test on the core that is kept for one that is measured.
fn intrusion(by_daemon: bool) {
    if !has_two_cpus() {
        return;
    }
    let service = by_daemon.then(|| Service::start("stay"));
    let own = TestFolder::new();
    let place = service.as_ref().map_or(&own, |service| &service.place);
    let report = place.path("report.json");
    let report_file = report.to_str().unwrap();
    let options = ["--alone", "--report", "json", "--report-file", report_file];
    let mut run = place.run(&options, &["sh", "-c", BUSY]);
    run.stderr(std::process::Stdio::piped());
    let symbiont = run.spawn().unwrap();
    let mut measured = None;
    wait_until("it has its CPU", || {
        measured = tree(symbiont.id()).into_iter().find(|process| *process != symbiont.id());
        measured.is_some_and(|process| ["0", "1"].contains(&allowed(process).as_str()))
    });
    let (measured, cpu) = (measured.unwrap(), allowed(measured.unwrap()));
    let mut intruder = intruder(place, &cpu);
    // For several windows: `run` asks the daemon twice a second, and what it hears last before its program's end
    // is what it reports.
    let heard = |service: &Service| {
        let programs = service.programs();
        let by = programs.first().and_then(|program| program["quiet"]["by"].as_array().cloned());
        let intruder = |one: &serde_json::Value| {
            one["name"].to_string().contains("intruder") && one["s"].as_f64() > Some(1.0)
        };
        by.is_some_and(|by| by.iter().any(intruder))
    };
    if let Some(service) = &service {
        assert_ne!(allowed(service.id()), "0-1", "the daemon keeps off its core");
    }
    match &service {
        Some(service) => wait_until("the daemon says so", || heard(service)),
        None => std::thread::sleep(std::time::Duration::from_secs(5)),
    }
    intruder.kill().unwrap();
    intruder.wait().unwrap();
    crate::test_folder::send(measured, rustix::process::Signal::KILL);
    let said = String::from_utf8_lossy(&symbiont.wait_with_output().unwrap().stderr).into_owned();
    let line =
        said.lines().find(|line| line.contains("alone:")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains("disturbed"), "{line}");
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    let quiet = &report["quiet"];
    assert!(quiet["others_s"].as_f64() > Some(0.1), "{quiet}");
    assert!(quiet["by"].to_string().contains("intruder"), "{quiet}");
    if let Some(service) = &service {
        let log = service.log();
        assert!(log.contains("is not alone: others ran for"), "{log}");
        wait_until("the daemon may use all CPUs again", || allowed(service.id()) == "0-1");
    }
}
