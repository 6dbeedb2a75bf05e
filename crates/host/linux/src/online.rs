//! Which CPUs are online, read cheaply enough for every quantum.

use std::fs::File;
use std::path::Path;

use rustix::fd::AsFd;
use symbiont_topology::CpuSet;

const LIST: &str = "/sys/devices/system/cpu/online";
/// Far more than the list of a machine whose every second CPU of 4,096 is offline.
const MOST: usize = 1 << 15;

/// The kernel's list of online CPUs, kept open: a read takes about a microsecond.
#[derive(Debug)]
pub(crate) struct Online {
    list: Option<File>,
}

impl Online {
    pub fn open() -> Self {
        Self::of(Path::new(LIST))
    }

    fn of(list: &Path) -> Self {
        Self { list: File::open(list).ok() }
    }

    /// The CPUs that are online now; none if the kernel does not say.
    pub fn now(&self) -> Option<CpuSet> {
        let list = self.list.as_ref()?.as_fd();
        let mut bytes = vec![0; 256];
        loop {
            let filled = rustix::io::pread(list, &mut bytes, 0).ok()?;
            if filled < bytes.len() || bytes.len() >= MOST {
                bytes.truncate(filled);
                break;
            }
            bytes.resize(bytes.len() * 2, 0);
        }
        let online: CpuSet = std::str::from_utf8(&bytes).ok()?.trim().parse().ok()?;
        (!online.is_empty()).then_some(online)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_online_is_read_anew_each_time() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let online = Online::of(file.path());
        assert_eq!(online.now(), None);
        let every_second: CpuSet = (0..999).map(|cpu| symbiont_topology::PuId(2 * cpu)).collect();
        for list in ["0-3", "0,2-3", &every_second.to_string(), "1"] {
            std::fs::write(file.path(), format!("{list}\n")).unwrap();
            assert_eq!(online.now().unwrap(), list.parse().unwrap());
        }
        std::fs::write(file.path(), "nonsense").unwrap();
        assert_eq!(online.now(), None);
        assert_eq!(Online::of(Path::new("/nowhere")).now(), None);
    }

    #[test]
    fn this_host_has_cpus_online() {
        let host = symbiont_topology::HostTopology::read().unwrap();
        assert_eq!(Online::open().now(), Some(host.cpus()));
    }
}
