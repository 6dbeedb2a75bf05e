//! Ordinary users of root's daemon.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use rustix::process::{Signal, geteuid};

use crate::service::{Service, command};
use crate::settings::tree;
use crate::test_folder::{Program, send, stderr, wait_until};
use crate::trials::{BUSY, skip};

/// An ordinary user of root's daemon.
pub struct User<'a> {
    service: &'a Service,
    pub id: u32,
    symbiont: PathBuf,
}

impl<'a> User<'a> {
    /// None where this is not root.
    pub fn of(service: &'a Service, number: u32) -> Option<Self> {
        if !geteuid().is_root() {
            skip("takes root");
            return None;
        }
        let id = 61_184 + (std::process::id() + number * 1_000) % 4_000;
        let folder = service.place.state_dir();
        let outer = folder.parent().unwrap().to_owned();
        std::fs::set_permissions(&outer, PermissionsExt::from_mode(0o711)).unwrap();
        let symbiont = outer.join(format!("symbiont-{number}"));
        // By another process: what this one has open for writing, children of other threads have
        // too, and such a file cannot be executed.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_symbiont")).arg(&symbiont).status();
        assert!(copied.unwrap().success());
        chown(&symbiont, Some(id), None).unwrap();
        Some(Self { service, id, symbiont })
    }

    pub fn client(&self, words: &[&str]) -> Output {
        let mut command = command(&self.symbiont, words, &self.service.place.state_dir());
        command.uid(self.id).gid(self.id).current_dir("/").output().unwrap()
    }

    /// A command that this user starts.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.uid(self.id).gid(self.id).current_dir("/").stdin(Stdio::null());
        command
    }

    pub fn start(&self) -> Program {
        self.start_script(BUSY)
    }

    pub fn start_script(&self, script: &str) -> Program {
        self.service.place.start(self.command("sh").args(["-c", script]))
    }

    /// A busy shell, which makes a sleeper that is root when it gets SIGUSR1; none where there is
    /// no setpriv.
    pub fn start_setuid(&self) -> Option<Program> {
        let setuid = self.service.place.path(&format!("become-root-{}", self.id));
        if std::fs::copy("/usr/bin/setpriv", &setuid).is_err() {
            skip("there is no setpriv");
            return None;
        }
        std::fs::set_permissions(&setuid, PermissionsExt::from_mode(0o4755)).unwrap();
        let sleeper = format!("{} --reuid 0 --clear-groups sleep 1000 &", setuid.display());
        let program = self.start_script(&format!("trap '{sleeper}' USR1; while :; do :; done"));
        wait_until("it catches the signal", || catches_usr1(program.id()));
        Some(program)
    }

    pub fn sees(&self, program: &Program) -> bool {
        let status = self.client(&["status"]);
        assert!(status.status.success(), "{}", stderr(&status));
        String::from_utf8(status.stdout).unwrap().contains(&program.id().to_string())
    }
}

fn catches_usr1(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t"));
    let mask = caught.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or_default();
    mask & (1 << (Signal::USR1.as_raw() - 1)) != 0
}

/// The sleepers of a tree that are root by now.
fn root_sleepers(program: &Program) -> Vec<u32> {
    let is_one = |process: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        status.starts_with("Name:\tsleep\n") && status.contains("\nUid:\t0\t0\t")
    };
    tree(program.id()).into_iter().filter(is_one).collect()
}

/// Has such a shell make its sleeper; gives the number of that one.
pub fn have_root_sleeper(program: &Program) -> u32 {
    send(program.id(), Signal::USR1);
    wait_until("a child is root", || !root_sleepers(program).is_empty());
    root_sleepers(program)[0]
}
