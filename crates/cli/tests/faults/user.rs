//! An ordinary user, that may place threads and not boost them.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use libtest_mimic::Trial;
use rustix::process::{Signal, geteuid};

use crate::settings::{changed, own, wait_for_change};
use crate::test_folder::{TestFolder, stderr, wait_until};
use crate::trials::{BUSY, own_cpus, skip, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("user_without_privilege_places_and_learns_once_that_nothing_is_boosted", places),
        trial("user_without_runtime_directory_has_a_state_directory_of_his_own", state_directory),
        trial("doctor_lists_what_can_run_without_privilege", doctor),
    ]
}

/// An ordinary user: this one, or one without processes.
pub struct User {
    pub id: u32,
    /// The binary, where this user can reach it.
    pub symbiont: PathBuf,
    pub home: TestFolder,
}

impl User {
    pub fn new() -> Self {
        let home = TestFolder::new();
        let symbiont = home.path("copy-of-symbiont");
        std::fs::copy(env!("CARGO_BIN_EXE_symbiont"), &symbiont).expect("a copy");
        let folder = symbiont.parent().expect("a folder");
        let me = geteuid();
        // Above what systems give to accounts, below "nobody".
        let id = if me.is_root() { 61_184 + std::process::id() % 4_000 } else { me.as_raw() };
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).expect("own folder");
        chown(folder, Some(id), None).expect("a folder for the user");
        Self { id, symbiont, home }
    }

    pub fn symbiont(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.symbiont);
        command.args(words).current_dir("/").stdin(Stdio::null());
        command.env("XDG_RUNTIME_DIR", self.runtime()).stderr(Stdio::piped());
        command.env("XDG_STATE_HOME", self.home.state_home());
        if geteuid().is_root() {
            command.uid(self.id).gid(self.id);
        }
        command
    }

    pub fn runtime(&self) -> PathBuf {
        self.symbiont.parent().expect("a folder").to_owned()
    }

    /// The manager that uses the default directory, in `$XDG_RUNTIME_DIR`.
    pub fn manager(&self) -> Option<u32> {
        let lock = std::fs::read_to_string(self.runtime().join("symbiont/lock")).ok()?;
        let lock: serde_json::Value = serde_json::from_str(&lock).ok()?;
        u32::try_from(lock["manager"]["process"].as_u64()?).ok()
    }
}

fn places() {
    let (user, own) = (User::new(), own());
    let symbiont = |policy| {
        user.symbiont(&[
            "run",
            "--narrow",
            "always",
            "--policy",
            policy,
            "--quantum",
            "20ms",
            "--",
            "sh",
            "-c",
            BUSY,
        ])
    };
    let program = user.home.start(&mut symbiont("random"));
    wait_until("it is managed", || user.manager().is_some());
    if own_cpus().len() > 1 {
        wait_for_change(program.id(), &own);
    } else {
        skip("there is one CPU only, so nothing is placed");
    }
    let manager = user.manager().expect("a manager");
    crate::test_folder::send(manager, Signal::TERM);
    user.home.wait_for_end_of(manager);
    assert!(changed(program.id(), &own).is_empty(), "{:?}", changed(program.id(), &own));
    program.kill_all();
    assert_eq!(stderr(&program.output()), "", "random boosts nothing, so nothing is said");

    let run = ["run", "--quantum", "20ms", "--", "sh", "-c", "sleep 0.3; exit 9"];
    let output = user.symbiont(&run).output().expect("symbiont starts");
    assert_eq!(output.status.code(), Some(9), "{output:?}");
    let said = stderr(&output);
    if geteuid().is_root() {
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("serial threads are placed, not boosted: "), "{said}");
    } else {
        // This user may be allowed to after all.
        assert!(said.lines().count() <= 1, "{said}");
    }
}

fn state_directory() {
    let user = User::new();
    if std::path::Path::new(&format!("/run/user/{}", user.id)).exists() {
        return skip("this user has a runtime directory");
    }
    let expected = PathBuf::from(format!("/tmp/symbiont-{}", user.id));
    let was_there = expected.exists();
    for words in [&["run", "--policy", "stay", "--", "true"][..], &["restore"]] {
        let output = user.symbiont(words).env_remove("XDG_RUNTIME_DIR").output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        let data = std::fs::symlink_metadata(&expected).expect("the directory");
        assert_eq!((data.uid(), data.mode() & 0o7777), (user.id, 0o700));
    }
    if !was_there {
        std::fs::remove_dir_all(&expected).expect("the directory");
    }
}

fn doctor() {
    let user = User::new();
    let output = user.symbiont(&["doctor"]).output().expect("symbiont starts");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(stderr(&output), "");
    let shown = String::from_utf8_lossy(&output.stdout);
    for word in ["Machine", "affinity", "boost (nice)", "phases", "can run"] {
        assert!(shown.contains(word), "{word} is missing in {shown}");
    }
    // CAP_SYS_NICE is no ordinary user's.
    let line = shown.lines().find(|line| line.contains("not placed")).unwrap_or_default();
    assert!(line.contains("processes that have made others"), "{shown}");
    assert!(shown.contains("Root's `symbiont daemon`"), "{shown}");
    let runtime = user.runtime().join("symbiont");
    assert!(shown.contains(runtime.to_str().expect("UTF-8")), "{shown}");
    assert!(!runtime.exists(), "it changes nothing");
}
