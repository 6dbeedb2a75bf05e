//! What README.md and docs/tour.md have a newcomer type first, typed: each command of the marked blocks is run, one after the other in
//! one shell, in a home of its own. `<!-- first run: begin -->` and `<!-- first run: end -->` mark what is run,
//! `<!-- first run, with a daemon: begin -->` what is run where a daemon of the same user's runs. What needs root or an
//! emulator that is not here is left out, and the reason printed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process_group};
use symbiont_profile::capture::{PLUGIN, plugin_next_to};

/// Far more than any command takes.
const LIMIT: Duration = Duration::from_secs(300);

/// Commands of the blocks between marks that begin so; one with its here-document is one.
pub fn commands(text: &str, begin: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for marked in text.split(begin).skip(1) {
        let marked = marked.split("<!-- first run: end -->").next().unwrap();
        for block in marked.split("```sh\n").skip(1) {
            let mut lines = block.split("```").next().unwrap().lines();
            while let Some(line) = lines.next() {
                let mut command = line.to_owned();
                while command.contains("<<'END'") && !command.ends_with("\nEND") {
                    command = format!("{command}\n{}", lines.next().expect("END"));
                }
                commands.push(command);
            }
        }
    }
    commands.retain(|command| !command.trim().is_empty());
    commands
}

/// Why a command cannot be run here; none: it can.
pub fn obstacle(command: &str, can_profile: bool) -> Option<&'static str> {
    let needs = |word: &str| command.split_whitespace().any(|other| other == word);
    let is_profiling = command.contains("symbiont profile") || needs("--vectors");
    if needs("sudo") {
        Some("it needs root")
    } else if is_profiling && !can_profile {
        Some(
            "it needs qemu-user with plugins, and the plugin, which a build of the workspace makes",
        )
    } else if needs("--alone") && std::thread::available_parallelism().is_ok_and(|n| n.get() < 2) {
        Some("it needs two CPUs")
    } else {
        None
    }
}

/// A user's home with the program on the path. Root's tests are run as another user: root's daemon may be anywhere.
struct Home {
    folder: tempfile::TempDir,
    user: u32,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let me = geteuid();
        let user = if me.is_root() { 57_100 + std::process::id() % 4_000 } else { me.as_raw() };
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        for name in ["bin", "run", "home"] {
            let path = folder.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
            chown(&path, Some(user), Some(user)).unwrap();
        }
        let home = Self { folder, user };
        let symbiont = Path::new(env!("CARGO_BIN_EXE_symbiont"));
        fs::copy(symbiont, home.path("bin/symbiont")).unwrap();
        if let Ok(plugin) = plugin_next_to(symbiont) {
            fs::copy(plugin, home.path("bin").join(PLUGIN)).unwrap();
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path =
            format!("{}:/usr/local/bin:/usr/bin:/bin:/usr/games", self.path("bin").display());
        let home = self.path("home");
        command.env_clear().env("PATH", path).env("HOME", &home).env("TERM", "dumb");
        command.env("XDG_RUNTIME_DIR", self.path("run")).current_dir(&home).stdin(Stdio::null());
        if geteuid().is_root() {
            command.uid(self.user).gid(self.user);
        }
        command.process_group(0);
        command
    }

    fn can_profile(&self) -> bool {
        let help = self.command("qemu-x86_64").arg("--help").output();
        let has_plugins =
            help.is_ok_and(|it| String::from_utf8_lossy(&it.stdout).contains("-plugin"));
        has_plugins && self.path("bin").join(PLUGIN).exists()
    }

    fn daemon(&self) -> Started {
        let mut daemon = self.command("symbiont");
        let log = fs::File::create(self.path("daemon.log")).unwrap();
        let started = Started(daemon.arg("daemon").stderr(log).spawn().unwrap());
        let begun = Instant::now();
        while !self.path("run/symbiont/symbiontd.sock").exists() {
            assert!(begun.elapsed() < LIMIT, "the daemon does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        started
    }

    /// Runs them in one shell; the first that fails or does not end ends the test.
    fn run(&self, commands: &[String]) {
        let (steps, said) = (self.path("home/.steps"), self.path("said"));
        let step = format!(">>'{}'", steps.display());
        let script: String =
            commands.iter().map(|command| format!("{command}\necho $? {step}\n")).collect();
        fs::write(self.path("script"), script).unwrap();
        let mut shell = self.command("sh");
        let log = fs::File::create(&said).unwrap();
        shell.arg(self.path("script")).stdout(log.try_clone().unwrap()).stderr(log);
        let _shell = Started(shell.spawn().unwrap());
        for (done, command) in commands.iter().enumerate() {
            let begun = Instant::now();
            let status = loop {
                let steps = fs::read_to_string(&steps).unwrap_or_default();
                match steps.lines().nth(done) {
                    Some(status) => break status.to_owned(),
                    None if begun.elapsed() > LIMIT => break "no end".to_owned(),
                    None => std::thread::sleep(Duration::from_millis(50)),
                }
            };
            let said = fs::read(&said).unwrap();
            assert!(status == "0", "`{command}`: {status}\n{}", String::from_utf8_lossy(&said));
        }
    }
}

/// A process with its group, which ends with this.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.0);
        // One that has ended has no group any more.
        let _ = kill_process_group(group, Signal::TERM);
        let _ = self.0.wait();
    }
}

pub fn run(readme: &str) {
    let home = Home::new();
    let can_profile = home.can_profile();
    let mut count = 0;
    for begin in ["<!-- first run, with a daemon: begin -->", "<!-- first run: begin -->"] {
        let _daemon = begin.contains("daemon").then(|| home.daemon());
        let mut able = commands(readme, begin);
        able.retain(|command| match obstacle(command, can_profile) {
            None => true,
            Some(why) => {
                eprintln!("skipped, as {why}: {}", command.lines().next().unwrap_or_default());
                false
            }
        });
        home.run(&able);
        count += able.len();
    }
    assert!(count > 20, "{count}");
}
