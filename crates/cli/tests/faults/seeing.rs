//! How phases are seen, and what the policy gets of the machine.

use libtest_mimic::Trial;
use serde_json::Value;

use crate::test_folder::{TestFolder, stderr};
use crate::trials::{own_cpus, skip, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("phases_are_seen_by_tracepoints_or_it_is_said_why_not", by_tracepoints),
        trial("what_a_process_may_not_use_is_said", confined),
        trial("a_run_says_as_much_as_it_is_asked_to", verbosity),
        trial("a_core_that_is_said_to_be_slower_is_so_for_the_policy", slower),
    ]
}

/// Two programs: one alternates between one and three busy threads.
const JOBS: &str = r#"
[[job]]
name = "alternating"
command = ["sh", "-c", '''
n() { i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; }
for round in 1 2 3 4 5; do n; n & n & n; wait; done
''']
[[job]]
name = "serial"
command = ["sh", "-c", "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"]
"#;

fn by_tracepoints() {
    let place = TestFolder::new();
    let (jobs, report) = (place.path("jobs.toml"), place.path("report.json"));
    std::fs::write(&jobs, JOBS).expect("a file");
    let output = place
        .symbiont("run")
        .args(["--policy", "phases", "--see-by", "tracepoints", "--report", "json"])
        .arg("--report-file")
        .arg(&report)
        .arg("--job")
        .arg(&jobs)
        .output()
        .expect("symbiont starts");
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(&report).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    if stderr(&output).contains("once a quantum only") {
        assert!(report["alarms"].is_null(), "{report}");
        return skip("tracepoints may not be read here");
    }
    assert!(report["alarms"].is_u64(), "{report}");
    let findings = report["findings"].as_array().expect("a list");
    assert!(findings.iter().any(|f| f["name"] == "changes of joint state"), "{report}");
    assert_eq!(report["put_back"]["failed"], serde_json::json!([]), "{report}");
}

/// By a mask, as in a smaller cpuset.
fn confined() {
    let cpus = own_cpus();
    if cpus.len() < 2 {
        return skip("there is one CPU only");
    }
    let (place, symbiont) = (TestFolder::new(), env!("CARGO_BIN_EXE_symbiont"));
    let said = |words: &[&str]| {
        let mut taskset = std::process::Command::new("taskset");
        taskset.args(["-c", &cpus[0].to_string(), symbiont]).args(words);
        let output = taskset.output().expect("taskset starts");
        assert!(output.status.success(), "{output:?}");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output))
    };
    let doctor = said(&["doctor"]);
    assert!(doctor.starts_with("In short: "), "{doctor}");
    assert!(doctor.contains(&format!("may use         CPU {} of ", cpus[0])), "{doctor}");
    let state_dir = place.state_dir();
    let state_dir = state_dir.to_str().expect("UTF-8");
    let run = ["run", "--state-dir", state_dir, "--report", "text", "--", "sleep", "0.3"];
    let report = said(&run);
    assert!(report.contains(" hardware threads of which it may use 1"), "{report}");
}

fn verbosity() {
    let place = TestFolder::new();
    let said = |options: &[&str], command: &str| {
        let output = place.run(options, &[command]).output().expect("symbiont starts");
        (output.status.code(), stderr(&output))
    };
    let (code, text) = said(&["-v", "--policy", "stay", "--own-manager"], "true");
    assert_eq!(code, Some(0));
    assert!(text.contains("a manager of its own manages it, by policy stay, every "), "{text}");
    // Another symbiont has the state directory, not the one before, which may end a little later than its program.
    crate::test_folder::wait_until("that one has ended", || place.manager().is_none());
    let busy = place.start(&mut place.run(&["--policy", "stay"], &["sleep", "60"]));
    crate::test_folder::wait_until("it is managed", || place.manager().is_some());
    let (code, text) = said(&["-v", "--policy", "stay", "--own-manager"], "true");
    assert!(text.contains("runs unmanaged: ") && !text.contains("manages it"), "{code:?} {text}");
    busy.kill_all();
    drop(busy);
    assert_eq!(said(&["-q"], "true"), (Some(0), String::new()));
    let (code, text) = said(&["-q"], "/no/such/program");
    assert!(code == Some(127) && text.contains("/no/such/program"), "{code:?} {text}");
    assert_eq!(said(&["-q", "-v"], "true").0, Some(125), "one or the other");
}

fn slower() {
    let cpus = own_cpus();
    if cpus.len() < 2 {
        return skip("there is one CPU only");
    }
    let place = TestFolder::new();
    let record = place.path("record.jsonl");
    let slower = format!("--slower={}:4", cpus[0]);
    let recorded = format!("--record={}", record.display());
    let output = place.run(&["--policy", "phases", &slower, &recorded], &["true"]).output();
    assert!(output.expect("symbiont starts").status.success());
    let text = std::fs::read_to_string(&record).expect("a recording");
    let header: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    let cores = header["topology"]["cores"].as_array().expect("cores");
    let capacities: Vec<u64> = cores.iter().filter_map(|core| core["capacity"].as_u64()).collect();
    let (least, most) = (capacities.iter().min(), capacities.iter().max());
    assert_eq!(most, Some(&1024), "{capacities:?}");
    // On a machine of one core all of it is slower, and it is the fastest.
    assert!(cores.len() < 2 || least.is_some_and(|least| *least <= 256), "{capacities:?}");
}
