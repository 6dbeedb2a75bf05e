//! Which processes outlive which, and which must not notice.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};
use symbiont_linux::launch::Timeouts;

use crate::exits::{WAYS, launched};
use crate::helper::{TIMEOUT, is_alive, wait_until};

/// A directory with the file that lets lingering managers end.
struct Linger {
    directory: tempfile::TempDir,
}

impl Linger {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory") }
    }

    fn path(&self, extension: &str) -> std::path::PathBuf {
        self.directory.path().join("end").with_extension(extension)
    }

    fn file(&self) -> String {
        self.path("").display().to_string()
    }

    fn manager(&self) -> u32 {
        let text = fs::read_to_string(self.path("pid")).expect("the manager said its number");
        text.parse().expect("a number")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Lets the manager end, and sees that it does.
    fn end(&self) {
        let manager = self.manager();
        fs::write(self.path(""), "").expect("a file");
        wait_until("the manager ends", || !is_alive(manager));
    }
}

fn started(way: &[&str], script: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = launched(way, &["sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the launcher starts");
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    (child, output)
}

fn line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).expect("a pipe");
    line.trim_end().to_owned()
}

fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a process number")).expect("not zero");
    kill_process(pid, signal).expect("the process lives");
}

fn state(pid: u32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('?')
}

/// This module's tests.
pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("pipeline_ends_with_the_program_not_with_the_manager", || {
            let linger = Linger::new();
            // The extra descriptor is a copy of the pipe's writing end.
            let way = ["@run", "--linger", &linger.file(), "--"];
            let words = launched(&way, &["sh", "-c", "echo out; exit 3"]);
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", "exec \"$@\" 9>&1", "sh"]).arg(words.get_program());
            let output = shell.args(words.get_args()).output()?;
            assert_eq!((output.status.code(), &output.stdout[..]), (Some(3), &b"out\n"[..]));
            assert!(is_alive(linger.manager()), "the manager lives longer");
            linger.end();
            assert_eq!(linger.log(), "RootsEnded\n");
            Ok(())
        }),
        Trial::test("pipeline_passes_input_through", || {
            for (name, way) in WAYS {
                let mut child = launched(way, &["wc", "-c"])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()?;
                let mut input = child.stdin.take().expect("a pipe");
                std::io::Write::write_all(&mut input, &vec![b'x'; 1 << 20])?;
                drop(input);
                let output = child.wait_with_output()?;
                let count = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                assert_eq!(count, (1 << 20).to_string(), "{name}");
            }
            Ok(())
        }),
        Trial::test("pipeline_writer_notices_that_the_program_closed_its_input", || {
            for (name, way) in WAYS {
                let mut child =
                    launched(way, &["sh", "-c", "exec <&-; echo closed; exec sleep 1000"])
                        .stdin(Stdio::piped())
                        .stdout(Stdio::piped())
                        .spawn()?;
                let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
                assert_eq!(line(&mut output), "closed", "{name}");
                let mut input = child.stdin.take().expect("a pipe");
                // Children of other tests may hold it for a moment, until they exec.
                wait_until("no process holds the pipe", || {
                    std::io::Write::write_all(&mut input, b"x").is_err()
                });
                assert!(is_alive(child.id()), "{name}: the program was there all the time");
                send(child.id(), Signal::TERM);
                child.wait()?;
            }
            Ok(())
        }),
        Trial::test("manager_holds_nothing_of_the_caller", || {
            for role in ["@run", "@job"] {
                let linger = Linger::new();
                let way = [role, "--linger", &linger.file(), "--"];
                let (mut child, mut output) = started(&way, "echo begun; exec sleep 1000");
                line(&mut output);
                let manager = Path::new("/proc").join(linger.manager().to_string());
                let stat = fs::read_to_string(manager.join("stat"))?;
                let stat: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
                let own = fs::read_to_string("/proc/self/stat")?;
                let own: Vec<&str> = own.rsplit(')').next().unwrap().split_whitespace().collect();
                assert_ne!(stat[1], child.id().to_string(), "it is no process's child");
                assert_ne!(stat[3], own[3], "it has a session of its own");
                assert_eq!(stat[4], "0", "it has no terminal");
                assert_eq!(fs::read_link(manager.join("cwd"))?, Path::new("/"));
                for descriptor in fs::read_dir(manager.join("fd"))? {
                    let target = fs::read_link(descriptor?.path())?.display().to_string();
                    let expected = ["/dev/null", "anon_inode:", "socket:"];
                    assert!(expected.iter().any(|kind| target.starts_with(kind)), "{target}");
                }
                send(child.id(), Signal::TERM);
                fs::write(linger.path(""), "")?;
                child.wait()?;
                linger.end();
            }
            Ok(())
        }),
        Trial::test("manager_that_hangs_costs_the_management_only", || {
            let runs = ["@run", "@job"].map(|role| {
                let linger = Linger::new();
                let way = [role, "--hang", "--linger", &linger.file(), "--"];
                let mut command = launched(&way, &["echo", "ran"]);
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                (linger, command.spawn().expect("the launcher starts"))
            });
            for (linger, child) in runs {
                let output = child.wait_with_output()?;
                assert_eq!(output.stdout, b"ran\n");
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(said.contains("did not answer in time"), "{said}");
                linger.end();
            }
            Ok(())
        }),
        Trial::test("manager_is_waited_for_as_long_as_was_asked", || {
            let usual = Timeouts::default().to_enrol;
            let asked = (usual + TIMEOUT).as_secs().to_string();
            let runs = ["@run", "@job"].map(|role| {
                let linger = Linger::new();
                let way = [role, "--hang", "--timeouts", &asked, "--linger", &linger.file(), "--"];
                let mut command = launched(&way, &["echo", "ran"]);
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                (linger, command.spawn().expect("the launcher starts"))
            });
            std::thread::sleep(usual + Duration::from_secs(1));
            for (linger, child) in runs {
                fs::write(linger.path(""), "")?;
                let output = child.wait_with_output()?;
                assert_eq!(output.stdout, b"ran\n");
                assert_eq!(String::from_utf8_lossy(&output.stderr), "", "it is managed");
            }
            Ok(())
        }),
        Trial::test("supervisor_passes_a_signal_on_once", || {
            let script = "trap 'echo term' TERM; trap 'exit 9' USR1; echo begun; \
                          while :; do sleep 0.02; done";
            for (name, way) in WAYS {
                let (mut child, mut output) = started(way, script);
                assert_eq!(line(&mut output), "begun");
                send(child.id(), Signal::TERM);
                assert_eq!(line(&mut output), "term", "{name}");
                send(child.id(), Signal::USR1);
                let mut rest = String::new();
                output.read_to_string(&mut rest)?;
                assert_eq!(rest, "", "{name}: it came twice");
                assert_eq!(child.wait()?.code(), Some(9), "{name}");
            }
            Ok(())
        }),
        Trial::test("supervisor_stops_and_continues_with_its_job", || {
            for (name, way) in &WAYS[2..] {
                let (mut child, mut output) =
                    started(way, "echo $$; kill -STOP $$; echo resumed; exit 4");
                let job: u32 = line(&mut output).parse()?;
                wait_until("both are stopped", || state(job) == 'T' && state(child.id()) == 'T');
                send(child.id(), Signal::CONT);
                assert_eq!(line(&mut output), "resumed", "{name}");
                assert_eq!(child.wait()?.code(), Some(4), "{name}");
            }
            Ok(())
        }),
        Trial::test("supervisor_killed_leaves_job_and_manager_to_go_on", || {
            let linger = Linger::new();
            let go = linger.path("go");
            let way = ["@job", "--linger", &linger.file(), "--"];
            let script = format!("echo $$; while [ ! -e {} ]; do sleep 0.02; done", go.display());
            let (mut child, mut output) = started(&way, &script);
            let job: u32 = line(&mut output).parse()?;
            child.kill()?;
            child.wait()?;
            wait_until("the manager notices", || linger.log() == "SupervisorGone\n");
            assert!(is_alive(job) && is_alive(linger.manager()));
            fs::write(go, "")?;
            wait_until("the manager notices", || linger.log() == "SupervisorGone\nRootsEnded\n");
            linger.end();
            Ok(())
        }),
        Trial::test("manager_asked_to_terminate_wakes", || {
            let linger = Linger::new();
            let way = ["@run", "--linger", &linger.file(), "--"];
            let (mut child, mut output) = started(&way, "echo begun; exec sleep 1000");
            line(&mut output);
            send(linger.manager(), Signal::TERM);
            wait_until("the manager wakes", || linger.log() == "Terminate\n");
            linger.end();
            assert!(is_alive(child.id()), "the program goes on");
            child.kill()?;
            child.wait()?;
            Ok(())
        }),
    ]
}
