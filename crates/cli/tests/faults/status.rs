//! The exit status is the program's, whatever becomes of what symbiont has to say.

use std::fs::File;
use std::process::{Command, Stdio};

use libtest_mimic::Trial;

use crate::test_folder::{TestFolder, stderr};
use crate::trials::trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("status_is_the_programs_when_the_report_cannot_be_written", no_room),
        trial("status_is_the_programs_when_the_report_exceeds_the_size_of_files", too_large),
        trial("status_of_misuse_is_125_also_where_standard_error_is_full", misuse),
    ]
}

/// A standard error that takes nothing.
fn full() -> File {
    File::options().write(true).open("/dev/full").expect("/dev/full")
}

fn no_room() {
    let place = TestFolder::new();
    for form in ["text", "json"] {
        let mut run = place.run(&["--policy", "stay", "--report", form], &["sh", "-c", "exit 3"]);
        let status = run.stderr(full()).status().expect("symbiont starts");
        assert_eq!(status.code(), Some(3), "{form}: {status:?}");

        let options = ["--policy", "stay", "--report", form, "--report-file", "/dev/full"];
        let output = place.run(&options, &["sh", "-c", "exit 4"]).output().expect("a run");
        assert_eq!(output.status.code(), Some(4), "{form}: {output:?}");
        let said = stderr(&output);
        let why = "symbiont: cannot write the report to /dev/full: No space";
        assert!(said.starts_with(why), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

fn too_large() {
    let place = TestFolder::new();
    let report = place.path("report.json");
    let report = report.to_str().expect("UTF-8");
    let options = ["--policy", "stay", "--report", "json", "--report-file", report];
    let run = place.run(&options, &["sh", "-c", "ulimit -f; exit 5"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -S -f 0; exec \"$@\"", "sh"]).arg(run.get_program());
    let output = limited.args(run.get_args()).stdin(Stdio::null()).output().expect("a shell");
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert_eq!(output.stdout, b"0\n", "the program keeps the limit");
    let why = format!("cannot write the report to {report}: File too large");
    assert!(stderr(&output).contains(&why), "{output:?}");
}

fn misuse() {
    let place = TestFolder::new();
    for options in [&["--policy", "phase"][..], &["--polcy", "stay"], &["--job", "/no/such/file"]] {
        let mut run = place.symbiont("run");
        let status = run.args(options).stderr(full()).status().expect("symbiont starts");
        assert_eq!(status.code(), Some(125), "{options:?}: {status:?}");
    }
}
