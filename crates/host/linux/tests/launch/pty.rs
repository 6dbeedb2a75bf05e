//! An interactive shell on a pseudo-terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

/// No wait for the terminal is longer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Shells that scenarios run in, with what makes them plain and interactive.
pub const SHELLS: [(&str, &[&str]); 2] =
    [("sh", &["-i"]), ("bash", &["--norc", "--noprofile", "--noediting", "-i"])];

const PROMPT: &str = "ready> ";

/// Key that a user presses to interrupt.
pub const CONTROL_C: &str = "\x03";
/// Key that a user presses to stop.
pub const CONTROL_Z: &str = "\x1a";

/// What the terminal showed so far; closed when no process writes to it any more.
#[derive(Default)]
struct Screen {
    text: String,
    closed: bool,
}

/// A shell, and a user at its terminal.
pub struct Terminal {
    shell: Child,
    keyboard: File,
    screen: Arc<(Mutex<Screen>, Condvar)>,
    /// Up to here the user has read.
    read: usize,
}

impl Terminal {
    /// Opens a terminal for a shell, if there is such a shell.
    pub fn open(shell: &str, options: &[&str]) -> Option<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let keyboard = openpt(flags).expect("a pseudo-terminal");
        grantpt(&keyboard).and_then(|()| unlockpt(&keyboard)).expect("its other end");
        let path = ptsname(&keyboard, Vec::new()).expect("its name");
        let path = path.to_str().expect("a name in UTF-8");
        let other = File::options().read(true).write(true).open(path).expect("the other end");
        let mut modes = tcgetattr(&other).expect("a terminal");
        modes.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&other, OptionalActions::Now, &modes).expect("a terminal");

        // Absent here?
        Command::new(shell).args(["-c", "exit"]).status().ok()?;
        // A shell that starts the tests in the background ignores these, and a shell
        // cannot change what it was started with.
        let mut command = Command::new("env");
        command
            .args(["--default-signal=INT,QUIT", shell])
            .args(options)
            .env("PS1", PROMPT)
            .env_remove("ENV")
            .env_remove("HISTFILE")
            .stdin(other.try_clone().expect("a descriptor"))
            .stdout(other.try_clone().expect("a descriptor"))
            .stderr(other);
        let take_terminal = || {
            rustix::process::setsid()?;
            Ok(rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?)
        };
        #[expect(unsafe_code, reason = "only so can the child take the terminal")]
        // SAFETY: two system calls, which are async-signal-safe.
        let command = unsafe { command.pre_exec(take_terminal) };
        let shell = command.spawn().ok()?;

        let keyboard = File::from(keyboard);
        let screen = Arc::<(Mutex<Screen>, Condvar)>::default();
        let (mut from, to) = (keyboard.try_clone().expect("a descriptor"), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                let count = from.read(&mut bytes).unwrap_or(0);
                let (screen, news) = &*to;
                let mut screen = screen.lock().expect("a screen");
                let text = String::from_utf8_lossy(&bytes[..count]);
                screen.text.push_str(&text.replace('\r', ""));
                screen.closed = count == 0;
                news.notify_all();
                if screen.closed {
                    break;
                }
            }
        });
        let mut terminal = Self { shell, keyboard, screen, read: 0 };
        // Some shells do not take the prompt from the environment.
        terminal.press(&format!("PS1='{PROMPT}'; ulimit -c 0; echo un\"\"used\n"));
        terminal.expect("unused");
        terminal.prompt();
        Some(terminal)
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("a terminal");
    }

    /// Types a line.
    pub fn line(&mut self, line: &str) {
        self.press(&format!("{line}\n"));
    }

    /// Reads on up to a text; gives what was before it.
    pub fn expect(&mut self, text: &str) -> String {
        let (screen, news) = &*self.screen;
        let shown = screen.lock().expect("a screen");
        let here = |screen: &Screen| screen.text[self.read..].find(text);
        let (shown, _) = news
            .wait_timeout_while(shown, TIMEOUT, |screen| here(screen).is_none() && !screen.closed)
            .expect("a screen");
        let Some(found) = here(&shown) else {
            panic!("waited in vain for {text:?}; the terminal shows:\n{}", shown.text);
        };
        let before = shown.text[self.read..][..found].to_owned();
        self.read += found + text.len();
        before
    }

    /// Reads on up to the prompt; gives what was before it.
    pub fn prompt(&mut self) -> String {
        self.expect(PROMPT)
    }

    /// Types a line that starts a background job, and waits until that printed
    /// a text, which may be before or after the prompt.
    pub fn background(&mut self, line: &str, text: &str) {
        if !self.ask(line).contains(text) {
            self.expect(text);
        }
    }

    /// Types a line and gives what it printed.
    pub fn ask(&mut self, line: &str) -> String {
        self.line(line);
        self.prompt()
    }
}

impl Drop for Terminal {
    /// Hangs up. What still runs in the foreground gets a hangup too.
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
