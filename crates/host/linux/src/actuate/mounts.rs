//! Whether anything was mounted or unmounted since it was last asked; not what.

use std::fs::File;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// This process's mounts, kept open: the kernel reports a change once to each opener (proc(5)).
#[derive(Debug)]
pub(super) struct Mounts {
    file: Option<File>,
}

impl Mounts {
    pub fn watch() -> Self {
        Self { file: File::open("/proc/self/mountinfo").ok() }
    }

    /// Did they change since the last call, or since watching began?
    pub fn have_changed(&self) -> bool {
        let Some(file) = &self.file else { return false };
        let mut polled = [PollFd::new(file, PollFlags::PRI)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&at_once)).is_ok()
            && polled[0].revents().intersects(PollFlags::PRI | PollFlags::ERR)
    }
}

#[cfg(test)]
mod tests {
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

    use super::*;

    #[test]
    fn a_mount_is_noticed_once() {
        let folder = tempfile::tempdir().unwrap();
        let mounts = Mounts::watch();
        // Another test may have mounted something.
        let _ = mounts.have_changed();
        if mount("none", folder.path(), "tmpfs", MountFlags::empty(), None).is_err() {
            return eprintln!("skipped: this process may not mount");
        }
        let noticed = mounts.have_changed();
        unmount(folder.path(), UnmountFlags::DETACH).unwrap();
        assert!(noticed && mounts.have_changed());
    }
}
