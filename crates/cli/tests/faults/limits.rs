//! Limits of a user's shell are meant for the program, not for its manager.

use std::process::{Command, Stdio};

use libtest_mimic::Trial;
use rustix::process::Signal;
use serde_json::Value;

use crate::settings::{changed, own, wait_for_change};
use crate::test_folder::{TestFolder, is_alive, wait_until};
use crate::trials::{BUSY, own_cpus, skip, start_script, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("limit_of_file_sizes_does_not_end_the_manager", file_size),
        trial("limit_of_cpu_time_ends_the_manager_in_good_order", cpu_time),
        trial("limits_of_the_shell_are_the_programs_and_not_the_managers", raised),
    ]
}

/// A command as a shell with this limit runs it.
fn limited(limit: &str, run: &Command) -> Command {
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("{limit}; exec \"$@\""), "sh"]).arg(run.get_program());
    limited.args(run.get_args()).stdin(Stdio::null()).stdout(Stdio::piped());
    limited
}

/// Its journal grows beyond the limit many times.
fn file_size() {
    let place = TestFolder::new();
    let (report, stop) = (place.path("report.json"), place.path("stop"));
    let script = "while [ ! -e \"$0\" ]; do :; done & while [ ! -e \"$0\" ]; do :; done; wait";
    let options = ["--policy", "random", "--quantum", "2ms", "--report", "json", "--report-file"];
    let options = [&options[..], &[report.to_str().expect("UTF-8")]].concat();
    let run = place.run(&options, &["sh", "-c", script, stop.to_str().expect("UTF-8")]);
    let program = place.start(&mut limited("ulimit -f 8", &run));
    wait_until("it is managed", || place.manager().is_some());
    std::thread::sleep(std::time::Duration::from_secs(2));
    std::fs::write(&stop, "").expect("a file");
    let output = program.output();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = std::fs::read(&report).expect("a report");
    let report: Value = serde_json::from_slice(&text).expect("JSON");
    assert!(report["unmanaged"].is_null(), "{report}");
    assert_eq!(report["put_back"]["failed"], serde_json::json!([]), "{report}");
    assert!(place.journals().is_empty(), "{:?}", place.journals());
}

fn cpu_time() {
    let (place, own) = (TestFolder::new(), own());
    if own_cpus().len() < 2 {
        return skip("there is one CPU only, so nothing is placed");
    }
    let program = start_script(&place, &["--policy", "random", "--quantum", "20ms"], BUSY);
    wait_for_change(program.id(), &own);
    // What the kernel sends at the limit.
    place.signal_manager(Signal::XCPU);
    assert!(is_alive(program.id()), "the program runs on");
    assert!(changed(program.id(), &own).is_empty(), "{:?}", changed(program.id(), &own));
    assert!(place.journals().is_empty(), "{:?}", place.journals());
}

fn raised() {
    let place = TestFolder::new();
    let run = place.run(&["--policy", "stay"], &["sleep", "1000"]);
    let program = place.start(&mut limited("ulimit -S -f 8; ulimit -S -t 100", &run));
    wait_until("it is managed", || place.manager().is_some());
    let limits = |process: u32, name: &str| {
        let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).expect("limits");
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).expect("the limit");
        let mut words = line.split_whitespace().map(str::to_owned);
        (words.next().expect("a soft one"), words.next().expect("a hard one"))
    };
    let manager = place.manager().expect("a manager");
    for (name, users) in [("Max file size", "8192"), ("Max cpu time", "100")] {
        let (soft, _) = limits(program.id(), name);
        // Some shells count in blocks of half the size.
        assert!(soft == users || soft == "4096", "{name} of the program: {soft}");
        let (soft, hard) = limits(manager, name);
        assert_eq!(soft, hard, "{name} of the manager");
    }
}
