//! `symbiont top`: once for scripts, and on a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use libtest_mimic::Trial;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;

use crate::schema::{follows, schema};
use crate::service::{Service, command};
use crate::test_folder::{Program, TestFolder, send, stderr, wait_until};
use crate::trials::{BUSY, trial};
use crate::user::User;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("top_as_json_follows_its_schema", json),
        trial("top_once_prints_threads_and_moves", once),
        trial("without_a_daemon_top_watches_by_itself_and_changes_nothing", watched),
        trial("without_a_terminal_top_names_what_prints_once", no_terminal),
        trial("top_shows_a_user_own_threads_only", own_threads),
        trial("the_terminal_is_as_before_after_each_end", ends),
        trial("top_ends_with_its_terminal", hangup),
        trial("top_goes_on_when_the_daemon_ends", daemon_ends),
    ]
}

const SOON: &str = "200ms";

fn document(words: &[&str], service: &Service) -> Value {
    let output = service.client(&[&["top", "--json", "--interval", SOON], words].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn busy(service: &Service) -> Program {
    let program = service.place.start(&mut service.place.run(&[], &["sh", "-c", BUSY]));
    wait_until("it is managed", || {
        service.programs().first().is_some_and(|listed| listed["threads"] == 1)
    });
    program
}

fn json() {
    let service = Service::start("random");
    let schema = schema("top");
    follows(&schema, &document(&[], &service), &["", "/manager", "/manager/usage", "/cores/0"]);
    let program = busy(&service);
    wait_until("it has moved", || document(&[], &service)["moves"][0].is_object());
    let shown = document(&[], &service);
    follows(&schema, &shown, &["", "/programs/0", "/threads/0", "/moves/0"]);
    let thread = &shown["threads"][0];
    assert_eq!(
        (&thread["thread"], &thread["program"]),
        (&program.id().into(), &shown["programs"][0]["program"])
    );
    assert!(thread["ran_share"].as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)));
    assert_eq!(shown["manager"]["policy"], "random");
    assert_eq!(shown["moves"][0]["thread"], program.id());
    program.kill_all();
}

fn once() {
    let service = Service::start("random");
    let program = busy(&service);
    let printed = || {
        let output = service.client(&["top", "--once", "--interval", SOON]);
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    wait_until("it has moved", || printed().contains("\nMOVES\n"));
    let text = printed();
    for part in
        ["policy random", "1 program, 1 thread", "CORES", "TID PROGRAM", &program.id().to_string()]
    {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(!text.contains('\u{1b}'), "{text}");
    program.kill_all();
}

fn watched() {
    let place = TestFolder::new();
    let mut busy = Command::new("sh");
    let program = place.start(busy.args(["-c", BUSY]).stdin(Stdio::null()));
    let symbiont = env!("CARGO_BIN_EXE_symbiont").as_ref();
    // A daemon of this machine, if one runs, has other programs.
    let words = ["top", "--json", "--interval", SOON];
    let output = command(symbiont, &words, &place.state_dir()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(!place.state_dir().exists(), "no lock, no journal");
    if !shown["manager"].is_null() {
        return crate::trials::skip("a daemon manages this machine");
    }
    follows(&schema("top"), &shown, &["", "/threads/0", "/programs/0"]);
    let threads = shown["threads"].as_array().unwrap();
    let thread = threads.iter().find(|thread| thread["thread"] == program.id()).unwrap();
    assert!(thread["ran_share"].as_f64().unwrap() > 0.0 && thread["placed"].is_null(), "{thread}");
    assert!(!thread["allowed"].as_str().unwrap().is_empty());
    let output = command(symbiont, &["top", "--once"], &place.state_dir()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("no daemon runs") && text.contains("`symbiont daemon`"), "{text}");
    program.kill_all();
}

fn no_terminal() {
    let output = TestFolder::new().symbiont("top").output().unwrap();
    assert!(!output.status.success());
    let text = stderr(&output);
    assert!(
        text.contains("no terminal") && text.contains("status") && text.contains("--once"),
        "{text}"
    );
}

fn own_threads() {
    let service = Service::start("random");
    let Some(user) = User::of(&service, 7) else { return };
    let roots = busy(&service);
    let theirs = user.start();
    let attached = user.client(&["attach", "--pid", &theirs.id().to_string()]);
    assert!(attached.status.success(), "{}", stderr(&attached));
    let shown = |output: std::process::Output| -> Vec<u64> {
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        let lists = ["threads", "moves"].map(|name| shown[name].as_array().unwrap().clone());
        let mut threads: Vec<u64> =
            lists.iter().flatten().map(|item| item["thread"].as_u64().unwrap()).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    };
    let words = ["top", "--json", "--interval", SOON];
    wait_until("root sees both", || shown(service.client(&words)).len() == 2);
    assert_eq!(shown(user.client(&words)), [u64::from(theirs.id())]);
    roots.kill_all();
    theirs.kill_all();
}

/// `symbiont top` on a terminal of 80 by 24.
struct OnTerminal {
    child: Program,
    keyboard: File,
    other: File,
    before: Termios,
    output: Receiver<Vec<u8>>,
    shown: String,
    hang_up: Arc<AtomicBool>,
}

fn size(rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }
}

impl OnTerminal {
    fn start(service: &Service) -> Self {
        let keyboard =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&keyboard).and_then(|()| unlockpt(&keyboard)).unwrap();
        let path = ptsname(&keyboard, Vec::new()).unwrap();
        let other = File::options().read(true).write(true).open(path.to_str().unwrap()).unwrap();
        tcsetwinsize(&other, size(24)).unwrap();
        let before = tcgetattr(&other).unwrap();
        let words = ["top", "--interval", SOON];
        let mut top =
            command(env!("CARGO_BIN_EXE_symbiont").as_ref(), &words, &service.place.state_dir());
        top.env("TERM", "xterm").env_remove("NO_COLOR").stdin(other.try_clone().unwrap());
        top.stdout(other.try_clone().unwrap()).stderr(other.try_clone().unwrap());
        let child = service.place.start(&mut top);
        let keyboard = File::from(keyboard);
        let (sender, output) = channel();
        let mut from = keyboard.try_clone().unwrap();
        let hang_up = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&hang_up);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while !is_over.load(Ordering::Relaxed) {
                let mut ready = [PollFd::new(&from, PollFlags::IN)];
                let pause = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
                if poll(&mut ready, Some(&pause)) != Ok(1) {
                    continue;
                }
                let count = from.read(&mut bytes).unwrap_or(0);
                if count == 0 || sender.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keyboard, other, before, output, shown: String::new(), hang_up }
    }

    fn resize(&self, rows: u16) {
        tcsetwinsize(&self.other, size(rows)).unwrap();
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// All that was written so far.
    fn written(&mut self) -> &str {
        while let Ok(bytes) = self.output.try_recv() {
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
        }
        &self.shown
    }

    fn wait_for(&mut self, text: &str) {
        wait_until(text, || self.written().contains(text));
    }

    fn is_raw(&self) -> bool {
        !tcgetattr(&self.other).unwrap().local_modes.contains(LocalModes::ICANON)
    }

    /// Waits for the end; the terminal must be as before then.
    fn end(mut self) -> std::process::ExitStatus {
        wait_until("it ends", || self.child.0.try_wait().unwrap().is_some());
        let now = tcgetattr(&self.other).unwrap();
        assert_eq!(now.local_modes, self.before.local_modes);
        assert_eq!(
            (now.input_modes, now.output_modes),
            (self.before.input_modes, self.before.output_modes)
        );
        // The alternate screen is left, and the cursor is shown.
        for (begin, end) in [("\u{1b}[?1049h", "\u{1b}[?1049l"), ("\u{1b}[?25l", "\u{1b}[?25h")] {
            self.wait_for(end);
            assert!(self.shown.rfind(end) > self.shown.rfind(begin), "{:?}", self.shown);
        }
        self.child.0.wait().unwrap()
    }
}

fn ends() {
    use std::os::unix::process::ExitStatusExt;
    let service = Service::start("random");
    for keys in ["q", "\u{3}", "hq", "/x\u{1b}q"] {
        let mut top = OnTerminal::start(&service);
        top.wait_for("h help");
        assert!(top.is_raw());
        for key in keys.chars() {
            top.press(&key.to_string());
            // Escape alone is one that nothing follows.
            std::thread::sleep(std::time::Duration::from_millis(150));
        }
        assert!(top.end().success(), "{keys:?}");
    }
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut top = OnTerminal::start(&service);
        top.wait_for("h help");
        send(top.child.id(), signal);
        assert_eq!(top.end().signal(), Some(signal.as_raw()));
    }
}

fn hangup() {
    let service = Service::start("random");
    for paused in [false, true] {
        let mut top = OnTerminal::start(&service);
        top.wait_for("h help");
        if paused {
            top.press(" ");
            top.wait_for("PAUSED");
        }
        let OnTerminal { mut child, keyboard, other, output, hang_up, .. } = top;
        hang_up.store(true, Ordering::Relaxed);
        drop((keyboard, other, output));
        wait_until("it ends with its terminal", || child.0.try_wait().unwrap().is_some());
    }
}

fn daemon_ends() {
    let mut service = Service::start("random");
    let mut top = OnTerminal::start(&service);
    top.wait_for("random");
    service.end();
    let mut rows = 24;
    wait_until("it says that no daemon runs", || {
        // At another size everything is drawn again, not just what has changed.
        rows = 49 - rows;
        top.resize(rows);
        std::thread::sleep(std::time::Duration::from_millis(300));
        top.written().contains("no daemon runs")
    });
    top.press("q");
    assert!(top.end().success());
}
