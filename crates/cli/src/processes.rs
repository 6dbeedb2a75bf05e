//! The processes of a user, as /proc lists them: for commands that find by themselves what to watch.
//!
//! Root's are those of all users. Kernel threads are left out, and so is this process. A process
//! that ends while it is looked at, or whose files cannot be read or understood, is not listed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Process of the kernel that is the parent of its threads.
const KTHREADD: u32 = 2;

/// Lists processes.
#[derive(Debug)]
pub struct Processes {
    proc: PathBuf,
    user: u32,
}

/// A process at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Name of its program, as the kernel has it.
    pub name: String,
    /// The process that made it.
    pub parent: u32,
    /// Its process group: in a shell, a job.
    pub group: u32,
    /// When it was made, in clock ticks since boot.
    pub born: u64,
}

impl Processes {
    /// Of the user that runs this command.
    pub fn of_this_user() -> Self {
        Self { proc: "/proc".into(), user: rustix::process::geteuid().as_raw() }
    }

    /// A process of any user.
    pub fn get(&self, process: u32) -> Option<Process> {
        let stat = fs::read(self.proc.join(process.to_string()).join("stat")).ok()?;
        Process::read(&String::from_utf8_lossy(&stat))
    }

    /// The process of a thread; of a process itself.
    pub fn of_thread(&self, thread: u32) -> Option<u32> {
        let status = fs::read(self.proc.join(thread.to_string()).join("status")).ok()?;
        let status = String::from_utf8_lossy(&status);
        status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
    }

    /// The user's processes that are not known yet and whose parents are not among them.
    pub fn unknown(&self, is_known: impl Fn(u32) -> bool) -> Vec<u32> {
        let own = std::process::id();
        let is_mine = |process: &u32| {
            let owner = fs::metadata(self.proc.join(process.to_string())).map(|file| file.uid());
            self.user == 0 || owner.is_ok_and(|owner| owner == self.user)
        };
        let entries = fs::read_dir(&self.proc).into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let parents: BTreeMap<u32, u32> = numbers
            .filter(|process| *process != own && !is_known(*process))
            .filter(is_mine)
            .filter_map(|process| Some((process, self.get(process)?)))
            .filter(|(process, found)| !self.is_of_kernel(*process, found))
            .map(|(process, found)| (process, found.parent))
            .collect();
        let all: BTreeSet<u32> = parents.keys().copied().collect();
        let firsts = parents.into_iter().filter(|(_, parent)| !all.contains(parent));
        firsts.map(|(process, _)| process).collect()
    }

    fn is_of_kernel(&self, process: u32, found: &Process) -> bool {
        match found.parent {
            0 => found.name == "kthreadd",
            // In a PID namespace of its own a process may have this number.
            KTHREADD => {
                let line = fs::read(self.proc.join(process.to_string()).join("cmdline"));
                line.is_ok_and(|line| line.is_empty())
            }
            _ => false,
        }
    }
}

impl Process {
    /// Of the text of `/proc/PID/stat`.
    fn read(stat: &str) -> Option<Self> {
        let (before, after) = stat.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let fields: Vec<&str> = after.split_whitespace().collect();
        Some(Self {
            name: name.to_owned(),
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            born: fields.get(19)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, parent: u32, group: u32) -> Vec<u8> {
        format!("7 ({name}) S {parent} {group} 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0").into()
    }

    /// A /proc with these processes, all of this user.
    fn proc(processes: &[(&str, &[u8])]) -> (tempfile::TempDir, Processes) {
        let folder = tempfile::tempdir().unwrap();
        for (number, stat) in processes {
            fs::create_dir(folder.path().join(number)).unwrap();
            fs::write(folder.path().join(number).join("stat"), stat).unwrap();
            fs::write(folder.path().join(number).join("cmdline"), "").unwrap();
        }
        let user = fs::metadata(folder.path()).unwrap().uid();
        let processes = Processes { proc: folder.path().to_owned(), user };
        (folder, processes)
    }

    #[test]
    fn names_may_hold_anything() {
        let found = Process::read(&String::from_utf8_lossy(&line("a) (b \n", 3, 5))).unwrap();
        let wanted = Process { name: "a) (b \n".to_owned(), parent: 3, group: 5, born: 4242 };
        assert_eq!(found, wanted);
        let mut strange = line("x", 3, 5);
        strange[3] = 0xff;
        let (_folder, processes) = proc(&[("9", &strange)]);
        assert_eq!(processes.get(9).unwrap().name, "\u{fffd}");
    }

    #[test]
    fn what_cannot_be_read_is_not_listed() {
        let (good, child) = (line("make", 1, 10), line("cc", 10, 10));
        let (folder, processes) = proc(&[
            ("10", &good),
            ("11", &child),
            ("12", b""),
            ("13", b"13 (x) S one"),
            ("self", &good),
            ("99999999999", &good),
        ]);
        // A directory in the place of a file, and a process without any.
        fs::create_dir_all(folder.path().join("14/stat")).unwrap();
        fs::create_dir(folder.path().join("15")).unwrap();
        assert_eq!(processes.unknown(|_| false), [10], "its child comes with it");
        assert_eq!(processes.unknown(|process| process == 10), [11]);
        let nowhere = Processes { proc: "/nowhere".into(), user: 0 };
        assert!(nowhere.unknown(|_| false).is_empty());
    }

    #[test]
    fn kernel_threads_and_others_processes_are_not_listed() {
        let (thread, own) = (line("kworker/0:0", KTHREADD, 0), line("own", 1, 5));
        let number = std::process::id().to_string();
        let (_folder, mut processes) =
            proc(&[("2", &line("kthreadd", 0, 0)), ("3", &thread), (&number, &own)]);
        assert!(processes.unknown(|_| false).is_empty());
        let (_folder, all) = proc(&[("5", &own)]);
        assert_eq!(all.unknown(|_| false), [5]);
        processes = Processes { user: all.user.wrapping_add(1), ..all };
        assert!(processes.user == 0 || processes.unknown(|_| false).is_empty());
    }

    #[test]
    fn this_users_processes_are_found() {
        let processes = Processes::of_this_user();
        let parent = processes.get(std::process::id()).unwrap().parent;
        assert!(processes.get(parent).is_some());
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        assert_eq!(processes.of_thread(thread), Some(std::process::id()));
        assert_eq!(processes.of_thread(0), None);
        assert!(!processes.unknown(|_| false).contains(&std::process::id()));
    }
}
