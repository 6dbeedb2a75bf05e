//! The properties of a process that rules match.

use std::sync::Arc;
use std::time::Instant;

use procfs::process::Process;
use symbiont_containers::{Identity, main_path};

use crate::surroundings::{Surroundings, text_of};

/// Bytes of a command line that are read.
const MOST_COMMAND: u64 = 64 << 10;

/// What rules ask for beyond what is cheap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// The container.
    pub container: bool,
    /// The command line or the short name.
    pub command: bool,
}

/// The facts about one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Path of its cgroup, as `/system.slice/cron.service`: of the unified hierarchy, or, where it is in the root of
    /// that, of the one that says most.
    pub cgroup: String,
    /// Its systemd unit: the innermost part of that path that is a service or a scope.
    pub unit: Option<String>,
    /// The container that it is in.
    pub container: Option<Arc<Identity>>,
    /// The program that it runs.
    pub executable: Option<String>,
    /// The words of its command line, joined by spaces.
    pub command: Option<String>,
    /// Its short name, which it can choose.
    pub comm: Option<String>,
    /// Its user, by number.
    pub uid: u32,
    /// And by name, where it has one.
    pub user: Option<String>,
}

impl Facts {
    /// Reads them; none if the process is gone or is the kernel's.
    pub fn read(process: &Process, needs: Needs, around: &mut Surroundings) -> Option<Self> {
        let uid = process.uid().ok()?;
        let executable = match process.exe() {
            Ok(path) => Some(path.to_string_lossy().trim_end_matches(" (deleted)").to_owned()),
            // Another user's is hidden from those without CAP_SYS_PTRACE. Kernel threads have no words.
            Err(_) => process.cmdline().ok().and_then(|words| words.into_iter().next()),
        };
        let executable = executable.filter(|path| !path.is_empty())?;
        let text = |file: &str, most| text_of(process, file, most).ok();
        let lines = around.cgroups_of(process)?;
        let cgroup = main_path(&lines).to_owned();
        let container = match needs.container {
            true => around.container(&lines, uid, Instant::now()),
            false => None,
        };
        let named = |file: &str| needs.command.then(|| text(file, MOST_COMMAND)).flatten();
        let (command, comm) = (named("cmdline"), named("comm"));
        Some(Self {
            unit: unit_of(&cgroup),
            cgroup,
            container,
            executable: Some(executable),
            command: command.map(|words| words.trim_end_matches('\0').replace('\0', " ")),
            comm: comm.map(|name| name.trim_end_matches('\n').to_owned()),
            uid,
            user: around.name_of(uid),
        })
    }
}

/// The unit of a cgroup's path, as systemd names its cgroups.
pub(super) fn unit_of(cgroup: &str) -> Option<String> {
    let is_unit = |part: &&str| part.ends_with(".service") || part.ends_with(".scope");
    cgroup.rsplit('/').find(is_unit).map(str::to_owned)
}
