//! What this test binary does when a scenario starts it as a launcher:
//! `launch @run [OPTION…] -- CMD…` becomes the command, `launch @job …`
//! supervises it. The manager waits for the end, and misbehaves on demand.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use symbiont_linux::launch::{
    Command, Job, Manager, Notice, Session, Timeouts, Wake, exec_in_place, finish, supervise,
};

/// No wait in these tests is longer; all but the broken end much sooner.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// How the manager behaves, and how jobs run.
#[derive(Default)]
struct HelperOptions {
    /// `--fail`, `--panic`, `--die`, `--die-later`, `--hang`: what the manager does.
    manner: Option<String>,
    /// `--linger FILE`: the manager writes its process number to FILE.pid, what
    /// woke it to FILE.log, and lives until FILE exists.
    linger: Option<PathBuf>,
    /// `--own`: the job gets a session of its own.
    own: bool,
    /// `--keep FILE`: the caller opens FILE, the manager writes to it.
    keep: Option<File>,
    /// `--thread`: the caller has a second thread.
    thread: bool,
    /// `--announce`: say when the report came.
    announce: bool,
    /// `--timeouts SECONDS`: how long the caller waits for the manager.
    timeouts: Timeouts,
    /// `--file JOBS`: a TOML file with several jobs.
    file: Option<PathBuf>,
}

#[derive(serde::Deserialize)]
struct Jobs {
    job: Vec<Job>,
}

/// Plays the role that the first argument names, if it names one.
pub fn play(mut arguments: impl Iterator<Item = String>) {
    let Some(role) = arguments.next().filter(|role| role.starts_with('@')) else { return };
    let mut options = HelperOptions::default();
    while let Some(option) = arguments.next() {
        match option.as_str() {
            "--" => break,
            "--keep" => {
                let file = arguments.next().map(File::create);
                options.keep = Some(file.expect("a path").expect("a place for the file"));
            }
            "--thread" => options.thread = true,
            "--announce" => options.announce = true,
            "--own" => options.own = true,
            "--linger" => options.linger = arguments.next().map(PathBuf::from),
            "--timeouts" => {
                let seconds = arguments.next().and_then(|text| text.parse().ok());
                let seconds = seconds.expect("seconds");
                options.timeouts = Timeouts::of(Duration::from_secs(seconds));
            }
            "--file" => options.file = arguments.next().map(PathBuf::from),
            manner => options.manner = Some(manner.to_owned()),
        }
    }
    if options.thread {
        std::thread::spawn(|| std::thread::sleep(TIMEOUT));
    }
    let keep: Vec<_> = options.keep.iter().map(AsFd::as_fd).collect();
    let say = |line: &str| {
        if !line.is_empty() {
            eprintln!("launch: {line}");
        }
    };
    if role == "@run" {
        let command = Command::new(arguments).expect("a command");
        let notify = |notice: Notice<'_>| say(&notice.to_string());
        let error = exec_in_place(&command, &keep, options.timeouts, notify, |manager| {
            manage(manager, &options);
        });
        say(&error.to_string());
        std::process::exit(error.exit_code());
    }
    let jobs = if let Some(file) = &options.file {
        let text = std::fs::read_to_string(file).expect("the job file");
        toml::from_str::<Jobs>(&text).expect("a good job file").job
    } else {
        let mut job = Job::from(Command::new(arguments).expect("a command"));
        job.session = if options.own { Session::Own } else { Session::Shared };
        vec![job]
    };
    let notify = |notice: Notice<'_>| say(&notice.to_string());
    match supervise(&jobs, &keep, options.timeouts, notify, |manager| manage(manager, &options)) {
        Err(error) => {
            say(&error.to_string());
            std::process::exit(125);
        }
        Ok(supervised) => {
            match supervised.report {
                Ok(report) => {
                    assert_eq!(report, b"report", "it arrives whole");
                    if options.announce {
                        say("the report is here");
                    }
                }
                Err(why) => say(&format!("no report: {why}")),
            }
            finish(&supervised.statuses);
        }
    }
}

fn manage(mut manager: Manager, options: &HelperOptions) {
    match options.manner.as_deref() {
        Some("--fail") => return manager.fail("the manager does not want to"),
        Some("--panic") => panic!("the manager panics"),
        Some("--die") => std::process::exit(1),
        _ => {}
    }
    if let Some(file) = &options.linger {
        write(&file.with_extension("pid"), &std::process::id().to_string());
    }
    if options.manner.as_deref() == Some("--hang") {
        wait_until("the manager may go on", || options.linger.as_ref().unwrap().exists());
    }
    if let Some(mut file) = options.keep.as_ref() {
        file.write_all(b"kept").expect("the descriptor works");
    }
    if manager.ready("").is_err() || options.manner.as_deref() == Some("--die-later") {
        return;
    }
    let mut woken = String::new();
    loop {
        let wake = manager.wait(TIMEOUT).expect("a kernel that waits");
        woken.push_str(&format!("{wake:?}\n"));
        if let Some(file) = &options.linger {
            write(&file.with_extension("log"), &woken);
        }
        if matches!(wake, Wake::RootsEnded | Wake::Finish | Wake::Terminate) {
            break;
        }
    }
    if let Some(file) = &options.linger {
        wait_until("the lingering manager may end", || file.exists());
    }
    let _ = manager.report(b"report".to_vec());
}

/// Writes a file such that a reader sees all of it or none.
fn write(path: &Path, text: &str) {
    let draft = path.with_extension("draft");
    std::fs::write(&draft, text).expect("a place for the file");
    std::fs::rename(&draft, path).expect("a place for the file");
}

/// Waits for a condition; panics when it never comes.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < TIMEOUT, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Is the process there, and not just waiting to be reaped?
pub fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}
