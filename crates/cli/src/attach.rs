//! `symbiont attach`, `detach` and `reload`.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::{fs, io};

use anyhow::{Context, bail};
use glob::{Pattern, glob};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use symbiont_daemon::{ClientError, ContainerPatterns, FoundContainer, find_containers};
use symbiont_topology::counted;
use symbiont_wire::{Attached, Failure, Released, Reloaded, Request};

use crate::args::{Attach, Detach, Processes, Reload};
use crate::client::connect;
use crate::top::clean::clean;

const CGROUPS: &str = "/sys/fs/cgroup";
/// Hierarchies below it where there are several, in the order in which rules look for the path of a process; then
/// the one hierarchy, or a path that names its hierarchy.
const HIERARCHIES: [&str; 6] = ["unified", "systemd", "cpu", "cpu,cpuacct", "cpuset", ""];

/// Hands processes to the daemon.
pub fn attach(args: &Attach) -> anyhow::Result<()> {
    let mut client = connect(&args.state)?;
    let containers = in_containers(&args.processes, args.config.as_deref())?;
    let name = args.name.clone().or_else(|| name_of(&args.processes, &containers));
    let held = hold(&pids(&args.processes, &containers)?, &args.processes.pids)?;
    let class = args.class.map(|class| class.to_string());
    let name = name.unwrap_or_default();
    let done: Attached = client.call(Request::Attach { name, class }, &held.descriptors())?;
    let processes = counted(done.processes, "process");
    let threads = counted(done.threads, "thread");
    say!("{}: {processes} with {threads} managed", clean(&done.name));
    say_notes(held.missing.iter().chain(&done.notes));
    Ok(())
}

fn say_notes<'a>(notes: impl Iterator<Item = &'a String>) {
    for note in notes {
        say!("  note: {}", clean(note));
    }
}

/// Has the daemon release programs.
pub fn detach(args: &Detach) -> anyhow::Result<()> {
    let mut client = connect(&args.state)?;
    let containers = in_containers(&args.processes, args.config.as_deref())?;
    let held = hold(&pids(&args.processes, &containers)?, &args.processes.pids)?;
    let done: Released = match client.call(Request::Detach {}, &held.descriptors()) {
        Err(ClientError::Failure(Failure::NotManaged { .. })) if !containers.is_empty() => {
            let names: Vec<&str> = containers.iter().map(|of| of.name.as_str()).collect();
            bail!("nothing in {} is managed, or you may not see it", names.join(", "));
        }
        done => done?,
    };
    let processes = counted(done.processes, "process");
    say!("released {processes}; restored {}", counted(done.restored, "thread"));
    say_notes(held.missing.iter().chain(&done.notes));
    for failed in &done.failed {
        say!("  not restored: {failed}");
    }
    anyhow::ensure!(done.failed.is_empty(), "not everything could be restored; see above");
    Ok(())
}

/// Has the daemon read its configuration.
pub fn reload(args: &Reload) -> anyhow::Result<()> {
    let done: Reloaded = connect(&args.state)?.call(Request::Reload {}, &[])?;
    for note in done.notes {
        say!("{note}");
    }
    for failed in &done.failed {
        say!("  {failed}");
    }
    anyhow::ensure!(done.failed.is_empty(), "not everything could be applied; see above");
    Ok(())
}

/// Processes whose numbers cannot come to mean others.
#[derive(Debug, Default)]
struct Held {
    processes: Vec<OwnedFd>,
    /// Those that were named and do not exist, in words.
    missing: Vec<String>,
}

impl Held {
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.processes.iter().map(AsFd::as_fd).collect()
    }
}

/// Takes hold of processes, of which one exists at least. Of those that were not named, some may have ended.
fn hold(pids: &[u32], named: &[u32]) -> anyhow::Result<Held> {
    let mut held = Held::default();
    for pid in pids {
        let raw = i32::try_from(*pid).ok().and_then(Pid::from_raw);
        let opened = raw.ok_or(Errno::SRCH).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
        match opened {
            Ok(process) => held.processes.push(process),
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) if named.contains(pid) => {
                let why = "a thread must be named by its process";
                held.missing.push(format!("there is no process {pid} ({why})"));
            }
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot take hold of process {pid}"));
            }
        }
    }
    match (held.processes.is_empty(), &held.missing[..]) {
        (true, []) => bail!("all processes in it have ended"),
        (true, missing) => bail!("{}", missing.join("; ")),
        (false, _) => Ok(held),
    }
}

fn pids(asked: &Processes, containers: &[FoundContainer]) -> anyhow::Result<Vec<u32>> {
    let mut pids: BTreeSet<u32> = asked.pids.iter().copied().collect();
    if let Some(pattern) = &asked.cgroup {
        let members = in_hierarchies(CGROUPS, pattern)?;
        pids.extend(
            members.with_context(|| format!("no cgroup below {CGROUPS} is called {pattern}"))?,
        );
    }
    if let Some(unit) = &asked.unit {
        let members = members(CGROUPS, &format!("**/{}", Pattern::escape(unit)))?;
        pids.extend(members.with_context(|| {
            format!("no systemd unit {unit} runs here (no cgroup of that name below {CGROUPS})")
        })?);
    }
    pids.extend(containers.iter().flat_map(|container| &container.processes));
    anyhow::ensure!(!pids.is_empty(), "there is no process in it");
    // With a process its descendants are managed.
    let parents: BTreeMap<u32, u32> =
        pids.iter().filter_map(|pid| Some((*pid, parent(*pid)?))).collect();
    let is_first = |pid: &u32| parents.get(pid).is_none_or(|parent| !pids.contains(parent));
    Ok(pids.iter().copied().filter(is_first).collect())
}

/// The containers that are asked for.
fn in_containers(asked: &Processes, config: Option<&Path>) -> anyhow::Result<Vec<FoundContainer>> {
    let Processes { pod, container, .. } = asked;
    if pod.is_none() && container.is_none() {
        return Ok(Vec::new());
    }
    let patterns = ContainerPatterns::new(pod.as_deref(), container.as_deref())?;
    let folders = crate::daemon::configured(config)?.containers.folders;
    let found = find_containers(folders, &patterns);
    let named = [("pod", pod), ("container", container)].into_iter();
    let named = named.filter_map(|(what, name)| Some(format!("{what} {}", name.as_ref()?)));
    anyhow::ensure!(
        !found.is_empty(),
        "no process of {} is found here{}",
        named.collect::<Vec<_>>().join(" and "),
        if rustix::process::geteuid().is_root() {
            ""
        } else {
            "; most runtimes let only root read names"
        }
    );
    Ok(found)
}

fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}

/// What to call the program: the unit, the cgroup, the container, or the patterns of several. Where processes are named
/// by their numbers, symbiontd calls it by those that it takes in.
fn name_of(asked: &Processes, containers: &[FoundContainer]) -> Option<String> {
    let given = asked.unit.clone().or_else(|| asked.cgroup.clone());
    given.or_else(|| name_of_containers(asked, containers))
}

/// The container that is asked for, or the patterns of several.
fn name_of_containers(asked: &Processes, found: &[FoundContainer]) -> Option<String> {
    match found {
        [one] => Some(one.name.clone()),
        _ => asked.pod.clone().or_else(|| asked.container.clone()),
    }
}

/// The processes of the cgroups whose path matches in the first hierarchy that has one: so it is the path that
/// `/proc/PID/cgroup` shows and rules match.
fn in_hierarchies(root: &str, pattern: &str) -> anyhow::Result<Option<BTreeSet<u32>>> {
    for name in HIERARCHIES {
        if let Some(found) = members(&format!("{root}/{name}"), pattern)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The processes of the cgroups whose path below `root` matches, and of those within them; none
/// where no cgroup matches.
fn members(root: &str, pattern: &str) -> anyhow::Result<Option<BTreeSet<u32>>> {
    let files = format!("{}/{}/**/cgroup.procs", Pattern::escape(root), pattern.trim_matches('/'));
    let files = glob(&files).with_context(|| format!("{pattern} is no pattern of paths"))?;
    let mut members = None;
    for path in files.flatten() {
        let pids = members.get_or_insert_with(BTreeSet::new);
        match fs::read_to_string(&path) {
            Ok(text) => {
                pids.extend(text.lines().filter_map(|line| line.trim().parse::<u32>().ok()));
            }
            Err(error) if has_no_processes_of_its_own(&error) => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        }
    }
    Ok(members)
}

/// Of a cgroup that was removed meanwhile, or that holds threads of processes that are listed in a
/// cgroup above it (cgroups(7), "Threaded mode").
fn has_no_processes_of_its_own(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [Errno::NOENT, Errno::NODEV, Errno::OPNOTSUPP].iter().any(|e| code == Some(e.raw_os_error()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]

    use super::*;

    #[test]
    fn a_program_is_called_as_it_was_asked_for() {
        assert_eq!(name_of(&Processes::default(), &[]), None);
        let unit = Processes { unit: Some("nginx.service".to_owned()), ..Processes::default() };
        assert_eq!(name_of(&unit, &[]).unwrap(), "nginx.service");
        let pod = Processes { pod: Some("shop/web-*".to_owned()), ..Processes::default() };
        let found = ["shop/web-0/nginx", "shop/web-1/nginx"]
            .map(|name| FoundContainer { name: name.to_owned(), processes: vec![1] });
        assert_eq!(name_of(&pod, &found).unwrap(), "shop/web-*");
        assert_eq!(name_of(&pod, &found[..1]).unwrap(), "shop/web-0/nginx");
    }

    #[test]
    fn processes_that_do_not_exist_are_named_next_to_those_that_do() {
        let own = std::process::id();
        let named = [own, u32::MAX, 0];
        let held = hold(&[own, u32::MAX], &named).unwrap();
        assert_eq!((held.processes.len(), held.missing.len()), (1, 1));
        assert!(held.missing[0].starts_with("there is no process 4294967295"), "{held:?}");
        let held = hold(&[own, u32::MAX - 1], &named).unwrap();
        assert!(held.missing.is_empty(), "it was found, and has ended: {held:?}");
        assert!(hold(&[u32::MAX - 1], &named).unwrap_err().to_string().contains("have ended"));
        let none = hold(&[u32::MAX, 0], &named).unwrap_err().to_string();
        assert!(none.contains("no process 4294967295") && none.contains("no process 0 "), "{none}");
    }

    #[test]
    fn cgroups_are_found_by_path_and_units_by_name() {
        let root = tempfile::tempdir().unwrap();
        let make = |path: &str, pids: &str| {
            let folder = root.path().join(path);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("cgroup.procs"), pids).unwrap();
        };
        make("user.slice/u1/build-1", "11\n12\n");
        make("user.slice/u1/build-1/inner", "13\n");
        make("user.slice/u2/build-2", "21\n");
        make("user.slice/u2/other", "22\n");
        make("user.slice/u2/deeper/build-3", "23\n");
        let found = |pattern: &str| {
            let members = members(root.path().to_str().unwrap(), pattern).unwrap();
            members.map(|pids| pids.into_iter().collect::<Vec<_>>())
        };
        assert_eq!(found("user.slice/*/build-*").unwrap(), [11, 12, 13, 21], "no slash in a star");
        assert_eq!(found("/user.slice/u2/other/").unwrap(), [22]);
        assert_eq!(found("**/other").unwrap(), [22]);
        assert_eq!(found("user.slice/none"), None);
        make("unified/both/a", "31\n");
        make("systemd/both/a", "31\n32\n");
        make("cpu/one", "33\n");
        let anywhere = |pattern: &str| {
            let members = in_hierarchies(root.path().to_str().unwrap(), pattern).unwrap();
            members.map(|pids| pids.into_iter().collect::<Vec<_>>())
        };
        assert_eq!(anywhere("/both/a").unwrap(), [31], "the first hierarchy that has it");
        assert_eq!(anywhere("one").unwrap(), [33]);
        assert_eq!(anywhere("user.slice/u2/other").unwrap(), [22], "there is one hierarchy only");
        assert_eq!(anywhere("cpu/one").unwrap(), [33], "the hierarchy may be named");
        assert_eq!(anywhere("none"), None);
        assert!(members("/", "a***").unwrap_err().to_string().contains("a***"));
    }
}
