//! What `make install` puts where, and that it works there.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libtest_mimic::Trial;
use rustix::process::{Signal, geteuid};

use crate::test_folder::{TIMEOUT, TestFolder, send, stderr};
use crate::trials::{skip, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("installed_files_are_where_debian_expects_them", files),
        trial("uninstall_leaves_nothing_but_a_changed_configuration", uninstall),
        trial("every_command_has_a_man_page_and_is_completed", described),
        trial("the_installed_unit_starts_and_reports_to_the_service_manager", starts),
    ]
}

/// A tree to install into.
struct Tree {
    place: TestFolder,
    prefix: PathBuf,
    configuration: PathBuf,
}

impl Tree {
    fn new() -> Option<Self> {
        if Command::new("make").arg("--version").output().is_err() {
            skip("there is no make");
            return None;
        }
        Some(Self { place: TestFolder::new(), prefix: "/usr".into(), configuration: "/etc".into() })
    }

    fn root(&self) -> PathBuf {
        self.place.path("tree")
    }

    fn make(&self, target: &str, destination: &Path) {
        let mut make = Command::new("make");
        make.arg("-C").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).arg(target);
        make.arg(format!("DESTDIR={}", destination.display()));
        make.arg(format!("PREFIX={}", self.prefix.display()));
        make.arg(format!("SYSCONFDIR={}", self.configuration.display()));
        make.arg(format!("BINARY={}", env!("CARGO_BIN_EXE_symbiont")));
        // What tests of this crate do not build; it is copied only.
        for variable in ["SYNTH", "PLUGIN", "SCX"] {
            let file = self.place.path(variable);
            fs::write(&file, variable).unwrap();
            make.arg(format!("{variable}={}", file.display()));
        }
        // As a user would call it: without the settings of the make that runs these tests.
        let made = make.env_remove("MAKEFLAGS").env_remove("MFLAGS").output().unwrap();
        assert!(made.status.success(), "{}", stderr(&made));
    }

    fn install(&self) {
        self.make("install", &self.root());
    }

    /// All files and links, by their paths below the root.
    fn files(&self) -> BTreeSet<String> {
        let mut files = BTreeSet::new();
        let mut folders = vec![self.root()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false => {
                        let path = entry.path();
                        let below = path.strip_prefix(self.root()).unwrap();
                        files.insert(below.display().to_string());
                    }
                }
            }
        }
        files
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }
}

const UNIT: &str = "usr/lib/systemd/system/symbiontd.service";
const CONFIG: &str = "etc/symbiont/symbiontd.toml";
const RULES: &str = "etc/symbiont/rules.d/10-example.toml";
const PLUGIN: &str = "usr/lib/symbiont/libsymbiont_profile_plugin.so";
const PROFILES: &str = "usr/share/symbiont/profiles/";

/// The programs that a unit starts, with their arguments.
fn commands_of(unit: &str) -> Vec<Vec<&str>> {
    let commands = unit.lines().filter(|line| line.starts_with("Exec"));
    commands.map(|line| line.split_once('=').unwrap().1.split_whitespace().collect()).collect()
}

fn files() {
    let Some(tree) = Tree::new() else { return };
    tree.install();
    let (pages, others): (Vec<String>, Vec<String>) =
        tree.files().into_iter().partition(|path| path.starts_with("usr/share/man/man1/symbiont"));
    assert!(pages.len() > 20, "{pages:?}");
    let (profiles, others): (Vec<String>, Vec<String>) =
        others.into_iter().partition(|path| path.starts_with(PROFILES));
    assert!(profiles.contains(&format!("{PROFILES}gzip.profile")), "{profiles:?}");
    assert_eq!(
        others,
        [
            RULES,
            CONFIG,
            "usr/bin/symbiont",
            "usr/bin/symbiont-scx",
            "usr/bin/symbiont-synth",
            PLUGIN,
            UNIT,
            "usr/lib/systemd/system/symbiontd.service.d/symbiont-scx.conf",
            "usr/sbin/symbiontd",
            "usr/share/bash-completion/completions/symbiont",
            "usr/share/doc/symbiont/CHANGELOG.md",
            "usr/share/doc/symbiont/LICENSE-APACHE",
            "usr/share/doc/symbiont/LICENSE-MIT",
            "usr/share/doc/symbiont/README.md",
            "usr/share/fish/vendor_completions.d/symbiont.fish",
            "usr/share/symbiont/grafana-dashboard.json",
            "usr/share/symbiont/slurm/Makefile",
            "usr/share/symbiont/slurm/copyright",
            "usr/share/symbiont/slurm/deb.sh",
            "usr/share/symbiont/slurm/job_submit.lua",
            "usr/share/symbiont/slurm/symbiont-slurm.service",
            "usr/share/symbiont/slurm/symbiont_spank.c",
            "usr/share/zsh/vendor-completions/_symbiont",
        ]
    );
    let mode =
        |path: &str| fs::metadata(tree.root().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("usr/bin/symbiont"), mode(UNIT), mode(CONFIG)), (0o755, 0o644, 0o644));
    assert_eq!((mode("usr/bin/symbiont-synth"), mode(PLUGIN)), (0o755, 0o644));
    assert_eq!(
        (tree.read("usr/bin/symbiont-synth"), tree.read(PLUGIN)),
        ("SYNTH".into(), "PLUGIN".into())
    );
    let link = Command::new(tree.root().join("usr/sbin/symbiontd")).arg("--help").output().unwrap();
    assert!(String::from_utf8_lossy(&link.stdout).contains("Run the daemon"), "{link:?}");
    for command in commands_of(&tree.read(UNIT)) {
        assert_eq!(command[0], "/usr/bin/symbiont", "it is installed there");
    }
}

fn uninstall() {
    let Some(tree) = Tree::new() else { return };
    tree.install();
    fs::write(tree.root().join(CONFIG), "policy = \"stay\"\n").unwrap();
    tree.install();
    assert_eq!(tree.read(CONFIG), "policy = \"stay\"\n", "a configuration is kept");
    tree.make("uninstall", &tree.root());
    assert_eq!(tree.files().into_iter().collect::<Vec<_>>(), [CONFIG]);
    fs::remove_file(tree.root().join(CONFIG)).unwrap();
    tree.install();
    tree.make("uninstall", &tree.root());
    assert_eq!(tree.files(), BTreeSet::new());
}

fn described() {
    let Some(tree) = Tree::new() else { return };
    tree.install();
    let help = Command::new(env!("CARGO_BIN_EXE_symbiont")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let listed = help.lines().skip_while(|line| !line.starts_with("Usage:")).skip(1);
    let listed = listed.take_while(|line| *line != "Options:");
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let commands: Vec<&str> = names.filter(|name| *name != "help").collect();
    assert!(commands.len() > 12 && commands.contains(&"daemon"), "{help}");
    for command in &commands {
        let page = tree.read(&format!("usr/share/man/man1/symbiont-{command}.1"));
        let first = |section: &str| {
            let lines = page.lines().skip_while(|line| *line != format!(".SH {section}"));
            lines.skip(1).take_while(|line| !line.starts_with(".SH")).count()
        };
        assert!(first("NAME") > 0 && first("SYNOPSIS") > 0 && first("DESCRIPTION") > 0, "{page}");
    }
    assert_eq!(tree.read("usr/share/man/man1/symbiontd.1"), ".so man1/symbiont-daemon.1\n");

    let completions = tree.root().join("usr/share/bash-completion/completions/symbiont");
    let words = |given: &str| {
        let ask = format!(
            "source {}; COMP_WORDS=(symbiont {given}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _symbiont symbiont \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; \
             echo \"${{COMPREPLY[@]}}\"",
            completions.display()
        );
        let said = Command::new("bash").args(["-c", &ask]).output().unwrap();
        assert!(said.stderr.is_empty(), "{}", stderr(&said));
        String::from_utf8(said.stdout).unwrap()
    };
    assert_eq!(words("att"), "attach\n");
    assert_eq!(words("attach --cg"), "--cgroup\n");
    assert_eq!(words("run --policy never"), "never-twice\n");
    for command in commands {
        assert!(words(command).split_whitespace().any(|word| word == command), "{command}");
    }
}

/// Root's daemon uses /run/symbiont: it gets a /run of its own.
const HIDE_RUN: &str =
    "mount -t tmpfs tmpfs /run && mkdir -m 711 /run/symbiont && exec \"$0\" \"$@\"";

fn starts() {
    let Some(tree) = Tree::new() else { return };
    let hidden = Command::new("unshare").args(["--mount", "sh", "-c", HIDE_RUN, "true"]).output();
    if !geteuid().is_root() || !hidden.is_ok_and(|output| output.status.success()) {
        return skip("takes root and a mount namespace");
    }
    if Path::new("/etc/symbiont/symbiontd.toml").exists() {
        return skip("this machine has a configuration of its own");
    }
    // What the unit names is there.
    let (prefix, configuration) = (tree.root().join("usr"), tree.root().join("etc"));
    let tree = Tree { prefix, configuration, ..tree };
    tree.make("install", Path::new(""));
    let unit = tree.read(UNIT);
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let path = tree.place.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut daemon = Command::new("unshare");
    daemon.args(["--mount", "sh", "-c", HIDE_RUN]).args(start.split_whitespace());
    daemon.env("NOTIFY_SOCKET", &path).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut daemon = tree.place.start(&mut daemon);
    let mut heard = Vec::new();
    let mut hear_until = |word: &str, count: usize| {
        let mut bytes = [0; 4096];
        while heard.iter().filter(|heard: &&String| *heard == word).count() < count {
            let length = socket.recv(&mut bytes).unwrap();
            let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
            heard.extend(text.lines().map(str::to_owned));
        }
        heard.clone()
    };
    // The watchdog is fed as long as the loop turns, also while nothing is managed.
    let before = hear_until("WATCHDOG=1", 3);
    assert_eq!(before[0], "READY=1", "{before:?}");
    send(daemon.id(), Signal::TERM);
    hear_until("STOPPING=1", 1);
    assert!(daemon.wait().success());
    assert!(stderr(&daemon.output()).contains("listening at /run/symbiont/symbiontd.sock"));
}
