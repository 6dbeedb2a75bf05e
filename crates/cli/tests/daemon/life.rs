//! Programs come and go; the daemon dies, comes back, and ends.

use libtest_mimic::Trial;
use rustix::process::Signal;

use crate::service::{Service, command};
use crate::settings::{changed, own, wait_for_change};
use crate::test_folder::{TestFolder, is_alive, stderr, wait_until};
use crate::trials::{BUSY, own_cpus, skip, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("run_hands_its_program_to_the_daemon", run_is_a_client),
        trial("a_run_within_a_managed_program_says_that_the_daemon_manages_it", nested),
        trial("the_daemon_is_urgent_and_its_programs_are_not", urgency),
        trial("exit_status_and_signals_are_the_programs_own", statuses),
        trial("a_program_that_ended_is_forgotten", forgotten),
        trial("an_end_restores_everything", end),
        trial("after_a_crash_what_lives_is_managed_again", crash),
        trial("a_bad_configuration_keeps_the_old_one", reload),
        trial("another_policy_than_the_daemons_is_refused", conflict),
        trial("what_needs_a_manager_of_its_own_is_refused", own_manager),
        trial("a_name_breaks_no_line_of_status", hostile_name),
        trial("a_stopped_daemon_is_named_and_programs_run_without_it", stopped),
        trial("what_a_killed_daemon_left_is_not_in_the_way_of_later_runs", killed),
    ]
}

fn run_is_a_client() {
    let service = Service::start("random");
    let mut busy = service.place.run(&[], &["sh", "-c", BUSY]);
    let program = service.place.start(&mut busy);
    wait_until("it is managed", || service.programs().len() == 1);
    let listed = &service.programs()[0];
    assert_eq!((&listed["name"], &listed["roots"][0]), (&"sh".into(), &program.id().into()));
    let why = service.client(&["why", &program.id().to_string()]);
    let text = String::from_utf8_lossy(&why.stdout).into_owned();
    assert!(
        why.status.success() && text.contains("policy       random"),
        "{text} {}",
        stderr(&why)
    );
    assert!(text.contains("this policy does not predict slowdowns"), "{text}");
    let json = service.client(&["why", "--json", &program.id().to_string()]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["threads"][0]["thread"], program.id());
    let unknown = service.client(&["why", "1"]);
    assert!(!unknown.status.success() && stderr(&unknown).contains("not managed"));
    program.kill_all();
}

fn nested() {
    let service = Service::start("stay");
    let inner = service.place.run(&[], &["sh", "-c", "echo ran; exit 7"]);
    let words: Vec<_> = [inner.get_program()].into_iter().chain(inner.get_args()).collect();
    let output = service.place.run(&[], &words).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(7), &b"ran\n"[..]));
    let said = format!("symbiont: already managed by process {} (the daemon)\n", service.id());
    assert_eq!(stderr(&output), said);
}

/// Its thread competes with all that it manages.
fn urgency() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root may be more urgent");
    }
    let service = Service::start("random");
    let mut busy = service.place.run(&[], &["sh", "-c", BUSY]);
    let program = service.place.start(&mut busy);
    // Nice value and class, fields 19 and 41 of proc_pid_stat(5).
    let urgency = |process: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let fields = stat.rsplit_once(')').unwrap().1;
        [16, 38].map(|at| fields.split_whitespace().nth(at).unwrap().parse::<i32>().unwrap())
    };
    let [nice, class] = urgency(service.id());
    const ROUND_ROBIN: i32 = 2;
    assert!(class == ROUND_ROBIN || nice == symbiont_linux::launch::MANAGER_NICE, "{class} {nice}");
    assert_eq!(urgency(program.id()), urgency(std::process::id()));
    program.kill_all();
}

fn statuses() {
    let service = Service::start("stay");
    let run = |script: &str| {
        let output = service.place.run(&[], &["sh", "-c", script]).output().unwrap();
        (output.status.code(), stderr(&output))
    };
    assert_eq!(run("exit 3"), (Some(3), String::new()));
    assert_eq!(run("kill -9 $$"), (None, String::new()));
    let report =
        service.place.run(&["--report", "text"], &["sh", "-c", "exit 4"]).output().unwrap();
    assert_eq!(report.status.code(), Some(4));
    let text = stderr(&report);
    assert!(text.contains("policy stay") && text.contains("symbiontd"), "{text}");
}

fn forgotten() {
    let service = Service::start("stay");
    for _ in 0..20 {
        assert!(service.place.run(&[], &["true"]).status().unwrap().success());
    }
    wait_until("none is listed", || service.programs().is_empty());
}

fn end() {
    let (mut service, own) = (Service::start("random"), own());
    let program = service.place.start(&mut service.place.run(&[], &["sh", "-c", BUSY]));
    if own_cpus().len() > 1 {
        wait_for_change(program.id(), &own);
    } else {
        skip("there is one CPU only, so nothing is placed");
    }
    service.end();
    assert_eq!(changed(program.id(), &own), [].into());
    assert!(is_alive(program.id()));
    assert_eq!(service.journals(), Vec::<std::path::PathBuf>::new());
    assert!(!service.socket().exists());
    program.kill_all();
}

fn crash() {
    let (mut service, own) = (Service::start("random"), own());
    // What waited for a child before it became the program makes none itself.
    let script = format!("env true; exec sh -c \"{BUSY}\"");
    let program = service.place.start(&mut service.place.run(&[], &["sh", "-c", &script]));
    for _ in 0..5 {
        wait_until("it is noted for the next start", || {
            let noted = std::fs::read(service.place.state_dir().join("enrolments.json"));
            noted.is_ok_and(|text| text.len() > 2) && service.programs().len() == 1
        });
        if own_cpus().len() > 1 {
            wait_for_change(program.id(), &own);
        }
        service.crash_and_restart();
        assert!(is_alive(program.id()));
        let listed = service.programs();
        assert_eq!(listed.len(), 1, "{listed:?} {}", service.log());
        assert_eq!(listed[0]["name"], "sh");
    }
    if own_cpus().len() > 1 {
        let healed = "symbiontd: restored what a killed manager left changed: ";
        assert_eq!(service.log().matches(healed).count(), 5, "{}", service.log());
    }
    service.end();
    assert_eq!(changed(program.id(), &own), [].into());
    assert_eq!(service.journals(), Vec::<std::path::PathBuf>::new());
    program.kill_all();
}

fn reload() {
    let service = Service::start("random");
    std::fs::write(service.config(), "policy = \"stay\"\nquantum = \"30ms\"\n").unwrap();
    let done = service.client(&["reload"]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(service.status()["policy"], "stay");
    for (text, part) in [
        ("policy = \"nonsense\"\n", "nonsense"),
        ("polcy = \"stay\"\n", "polcy"),
        ("policy = \"symbiotic\"\n", "model"),
        ("policy = \"phases\"\n[set]\nthreshold = -1\n", "threshold=-1: expected a number above 0"),
        (
            "policy = \"stay\"\n[set]\nthreshold = 2\n",
            "belongs to 'auto', 'phases' and 'phases-online'",
        ),
        ("narrow = \"always\"\nactuator = \"sched-ext\"\n", "leave one of the two out"),
    ] {
        std::fs::write(service.config(), text).unwrap();
        let refused = service.client(&["reload"]);
        assert!(!refused.status.success());
        assert!(stderr(&refused).contains(part), "{}", stderr(&refused));
        assert_eq!(service.status()["policy"], "stay");
    }
    std::fs::write(service.config(), "policy = \"phases\"\n[set]\nthreshold = 2\n").unwrap();
    service.send(Signal::HUP);
    wait_until("the signal is heard", || service.status()["policy"] == "phases");
    std::fs::write(service.config(), "[").unwrap();
    service.send(Signal::HUP);
    wait_until("the refusal is logged", || service.log().contains("the configuration stays"));
    assert_eq!(service.status()["policy"], "phases");
}

fn conflict() {
    let service = Service::start("stay");
    let refused = service.place.run(&["--policy", "random"], &["true"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(125));
    let text = stderr(&refused);
    assert!(text.contains("'stay', not 'random'"), "{text}");
    let agreed = service.place.run(&["--policy", "stay"], &["true"]).output().unwrap();
    assert_eq!((agreed.status.code(), stderr(&agreed)), (Some(0), String::new()));
    // Not handed to the daemon, whose lock is in the way of a second manager in this state directory only.
    let own = ["--own-manager", "--policy", "random"];
    let apart = service.place.run(&own, &["true"]).output().unwrap();
    assert_eq!(apart.status.code(), Some(0));
    assert!(stderr(&apart).contains(&service.id().to_string()), "{}", stderr(&apart));
    let elsewhere = TestFolder::new().run(&own, &["true"]).output().unwrap();
    assert_eq!((elsewhere.status.code(), stderr(&elsewhere)), (Some(0), String::new()));
}

fn own_manager() {
    let service = Service::start("stay");
    for option in [
        &["--dry-run"][..],
        &["--quantum", "10ms"],
        &["--set", "threshold=2"],
        &["--slower", "0:2"],
        &["--vectors", "gzip.vectors"],
    ] {
        let refused = service.place.run(option, &["true"]).output().unwrap();
        assert_eq!(refused.status.code(), Some(125), "{option:?}");
        assert!(stderr(&refused).contains(option[0]), "{}", stderr(&refused));
    }
}

/// `symbiont run -- echo ran`, waiting no longer than usual.
fn echo(place: &TestFolder) -> std::process::Output {
    let symbiont = env!("CARGO_BIN_EXE_symbiont").as_ref();
    command(symbiont, &["run", "--", "echo", "ran"], &place.state_dir()).output().unwrap()
}

fn stopped() {
    let service = Service::start("stay");
    service.send(Signal::STOP);
    let ran = echo(&service.place);
    let jobs = service.place.path("jobs.txt");
    std::fs::write(&jobs, "echo one\necho two\n").unwrap();
    let mut batch = service.place.symbiont("batch");
    let store = service.place.path("known.json");
    let batch = batch.arg(jobs).args(["-n", "1", "--store"]).arg(&store).output().unwrap();
    service.send(Signal::CONT);
    assert!(ran.status.success() && ran.stdout == b"ran\n", "{ran:?}");
    let line = "symbiontd does not answer within 1s, it may be stopped";
    let said = stderr(&ran);
    assert!(said.lines().count() == 1 && said.contains(line), "{said}");
    // A batch says it once.
    assert!(batch.status.success(), "{batch:?}");
    assert_eq!(stderr(&batch).matches(line).count(), 1, "{batch:?}");
    // What was waited for is not the jobs' time.
    let known: serde_json::Value = serde_json::from_slice(&std::fs::read(store).unwrap()).unwrap();
    let programs = known["programs"].as_object().unwrap().values();
    let times: Vec<f64> = programs
        .flat_map(|program| program["runs"].as_array().unwrap())
        .map(|run| run["elapsed_s"].as_f64().unwrap())
        .collect();
    assert!(times.len() == 2 && times.iter().all(|time| *time < 0.9), "{times:?}");
}

fn killed() {
    let service = Service::start("stay");
    let socket = service.socket();
    service.send(Signal::KILL);
    wait_until("it is gone", || !is_alive(service.id()) || service.place.manager().is_none());
    // Long ago.
    let mut touch = std::process::Command::new("touch");
    assert!(touch.args(["-d", "1 hour ago"]).arg(&socket).status().unwrap().success());
    let ran = echo(&service.place);
    assert!(ran.status.success() && ran.stdout == b"ran\n", "{ran:?}");
    assert!(!socket.exists(), "the run's own manager has removed it");
    // So does a restore.
    wait_until("the run's manager has ended", || service.place.manager().is_none());
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    service.place.restore();
    assert!(!socket.exists());
}

fn hostile_name() {
    let service = Service::start("stay");
    let name = "ev\u{1b}]0;x\u{7}il\nline";
    let program = service.place.path(name);
    std::fs::copy("/bin/sleep", &program).unwrap();
    let run = service.place.run(&[], &[program.to_str().unwrap(), "1000"]);
    let program = service.place.start(&mut { run });
    wait_until("it is managed", || service.programs().len() == 1);
    // As it is, in JSON; nothing of it reaches a terminal.
    assert_eq!(service.programs()[0]["name"], name);
    for words in [&["status", "--json"][..], &["why", "--json", &program.id().to_string()]] {
        let json = String::from_utf8(service.client(words).stdout).unwrap();
        assert!(json.contains(r"ev\u001b]0;x\u0007il\nline"), "{json}");
    }
    for words in [&["status"][..], &["why", &program.id().to_string()], &["top", "--once"]] {
        let shown = service.client(words).stdout;
        let text = String::from_utf8(shown).unwrap();
        assert!(text.contains("il?line") && !text.contains("\nline"), "{text}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
    program.kill_all();
}
