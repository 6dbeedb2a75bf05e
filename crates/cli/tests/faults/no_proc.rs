//! Where /proc is not mounted nothing can be managed; programs run all the same.

use std::process::{Command, Stdio};

use libtest_mimic::Trial;

use crate::test_folder::{TestFolder, stderr};
use crate::trials::{skip, trial};

pub fn trials() -> Vec<Trial> {
    vec![trial("without_proc_programs_run_unmanaged_and_that_is_said", unmanaged)]
}

/// A command as it runs without /proc; none where it cannot be hidden.
fn without_proc(run: &Command) -> Option<Command> {
    let hide = |program: &str| {
        let mut hidden = Command::new("unshare");
        // A namespace of processes has its own above the one around it.
        let script = "while umount -l /proc 2>/dev/null; do :; done; \
                      test ! -e /proc/self && exec \"$@\"";
        hidden.args(["--mount", "sh", "-c", script, "sh", program]).stdin(Stdio::null());
        hidden
    };
    let can = hide("true").output().is_ok_and(|output| output.status.success());
    let mut hidden = hide(run.get_program().to_str()?);
    hidden.args(run.get_args());
    can.then_some(hidden)
}

fn unmanaged() {
    let place = TestFolder::new();
    let jobs = place.path("jobs.toml");
    let job = "[[job]]\ncommand = ['sh', '-c', 'echo $WORD; exit 7']\n[job.env]\nWORD = 'ran'\n";
    std::fs::write(&jobs, job).expect("a file");
    let program = ["sh", "-c", "echo ran; exit 7"];
    let mut job = place.symbiont("run");
    job.arg("--job").arg(&jobs);
    for run in [
        place.run(&["--policy", "stay"], &program),
        place.run(&["--policy", "random", "--report", "text"], &program),
        job,
    ] {
        let Some(mut run) = without_proc(&run) else {
            return skip("/proc cannot be hidden here");
        };
        let output = run.output().expect("unshare");
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        assert_eq!(output.stdout, b"ran\n", "{output:?}");
        let said = stderr(&output);
        assert!(said.starts_with("symbiont: runs unmanaged: /proc is not mounted here"), "{said}");
    }
}
