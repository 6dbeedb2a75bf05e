//! Init: mounts what a system has, plays the scenarios, powers off.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};
use rustix::system::{RebootCommand, reboot};

use super::{INIT, SKIPPED};
use crate::given;

const OUTPUT: &str = "/tmp/output";
const MARK: &str = "@lab";

/// Never returns: the kernel panics when init does.
pub fn main() -> ! {
    mount_all();
    say("hello");
    let scenarios = fs::read(given::SCENARIOS).unwrap();
    let scenarios: Vec<String> = serde_json::from_slice(&scenarios).unwrap();
    let given = fs::read(given::FILE).unwrap();
    let longest = serde_json::from_slice::<given::Given>(&given).unwrap().longest();
    for scenario in scenarios {
        play(&scenario, longest);
        clean_up();
    }
    say("bye");
    let _ = reboot(RebootCommand::PowerOff);
    loop {
        std::thread::sleep(longest);
    }
}

/// Not on /tmp, below which the checkout may be, and so symbiont in the archive.
fn mount_all() {
    let mounts = [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("cgroup2", "/sys/fs/cgroup"),
        ("tracefs", "/sys/kernel/tracing"),
    ];
    for (kind, place) in mounts {
        if let Err(why) = mount("none", place, kind, MountFlags::empty(), None) {
            say(&format!("{kind} cannot be mounted on {place}: {why}"));
        }
    }
}

/// A line to the machine outside, at its beginning.
fn say(words: &str) {
    let mut out = std::io::stdout();
    // No other process could report it.
    let _ = writeln!(out, "{MARK} {words}");
    let _ = out.flush();
}

/// How often init looks what a scenario printed and whether it has ended.
const LOOK: Duration = Duration::from_millis(100);

/// Plays a scenario in a process of its own, and reports how it ended.
fn play(name: &str, longest: Duration) {
    let begin = Instant::now();
    say(&format!("begin {name}"));
    let output = fs::File::create(OUTPUT).unwrap();
    let mut command = Command::new(INIT);
    command.arg0(INIT).args(["scenario", name]).stdin(Stdio::null());
    command.stdout(output.try_clone().unwrap()).stderr(output);
    // Not waited for by its handle: init reaps all that ends.
    #[expect(clippy::zombie_processes, reason = "reaped below")]
    let child = command.spawn().unwrap();
    let mut printed = Printed::of(OUTPUT);
    let status = reap_until(child.id(), begin + longest, &mut printed);
    let printed = printed.all();
    let last = printed.lines().next_back().unwrap_or_default();
    let took = begin.elapsed().as_secs_f64();
    say(&format!("took {took:.1} s"));
    let code = status.and_then(WaitStatus::exit_status);
    match (status, code) {
        (_, Some(0)) => say(&format!("end {name} well")),
        (_, Some(SKIPPED)) => say(&format!("end {name} skipped {last}")),
        (None, _) => say(&format!("end {name} badly not done after {took:.0} s")),
        (Some(_), Some(_)) => say(&format!("end {name} badly {}", first_panic(&printed))),
        (Some(status), None) => say(&format!("end {name} badly {status:?}")),
    }
}

/// The message of a panic, in a line.
fn first_panic(printed: &str) -> String {
    let from = printed.lines().skip_while(|line| !line.contains("panicked at"));
    let words: Vec<&str> = from.take_while(|line| !line.starts_with("note:")).collect();
    words.join(" / ")
}

/// What a scenario prints, said line by line as it comes.
struct Printed {
    file: fs::File,
    bytes: Vec<u8>,
    said: usize,
}

impl Printed {
    fn of(path: &str) -> Self {
        Self { file: fs::File::open(path).unwrap(), bytes: Vec::new(), said: 0 }
    }

    fn say_more(&mut self) {
        self.file.read_to_end(&mut self.bytes).unwrap();
        while let Some(end) = self.bytes[self.said..].iter().position(|byte| *byte == b'\n') {
            let line = &self.bytes[self.said..self.said + end];
            say(&format!("say {}", String::from_utf8_lossy(line)));
            self.said += end + 1;
        }
    }

    /// All of it, after the last line was said, too.
    fn all(mut self) -> String {
        self.say_more();
        let rest = String::from_utf8_lossy(&self.bytes[self.said..]);
        if !rest.is_empty() {
            say(&format!("say {rest}"));
        }
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// Waits for a child, and for all other processes that end meanwhile.
fn reap_until(child: u32, deadline: Instant, printed: &mut Printed) -> Option<WaitStatus> {
    while Instant::now() < deadline {
        printed.say_more();
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get().unsigned_abs() == child => {
                return Some(status);
            }
            Ok(Some(_)) => {}
            // Seldom: it would disturb what is measured.
            _ => std::thread::sleep(LOOK),
        }
    }
    None
}

/// Ends what a scenario left behind, and undoes what it may have done to the guest.
fn clean_up() {
    super::cgroup::thaw_all();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // Threads of the kernel have no command line.
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if let (Some(pid), false, false) = (Pid::from_raw(pid), pid == 1, line.is_empty()) {
            // It may be gone.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => std::thread::sleep(Duration::from_millis(10)),
            // No process is left.
            Err(_) => break,
        }
    }
    super::cpus::all_online();
    super::cgroup::remove_all();
}
