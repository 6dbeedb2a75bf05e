//! The properties of a process that rules match.

use procfs::process::Process;

/// The facts about one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Path of its cgroup (of the unified hierarchy), as `/system.slice/cron.service`.
    pub cgroup: String,
    /// Its systemd unit: the innermost part of that path that is a service or a scope.
    pub unit: Option<String>,
    /// The program that it runs.
    pub executable: Option<String>,
    /// Its user, by number.
    pub uid: u32,
    /// And by name, where it has one.
    pub user: Option<String>,
}

impl Facts {
    /// Reads them; none if the process is gone or is the kernel's.
    pub fn read(process: &Process, name_of: &mut dyn FnMut(u32) -> Option<String>) -> Option<Self> {
        let uid = process.uid().ok()?;
        let executable = match process.exe() {
            Ok(path) => Some(path.to_string_lossy().trim_end_matches(" (deleted)").to_owned()),
            // Another user's is hidden from those without CAP_SYS_PTRACE. Kernel threads have no words.
            Err(_) => process.cmdline().ok().and_then(|words| words.into_iter().next()),
        };
        let executable = executable.filter(|path| !path.is_empty())?;
        let groups = process.cgroups().ok()?;
        let own = groups.0.iter().find(|group| group.hierarchy == 0).or_else(|| groups.0.first());
        let cgroup = own.map_or_else(|| "/".to_owned(), |group| group.pathname.clone());
        let unit = unit_of(&cgroup);
        Some(Self { cgroup, unit, executable: Some(executable), uid, user: name_of(uid) })
    }
}

/// The unit of a cgroup's path, as systemd names its cgroups.
pub(super) fn unit_of(cgroup: &str) -> Option<String> {
    let is_unit = |part: &&str| part.ends_with(".service") || part.ends_with(".scope");
    cgroup.rsplit('/').find(is_unit).map(str::to_owned)
}
