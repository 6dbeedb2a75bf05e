//! The kernel's PMUs, as it lists them in sysfs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use symbiont_topology::CpuSet;

/// A unit that counts, as under /sys/bus/event_source/devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pmu {
    /// Its number, for [`Spec::kind`](super::Spec::kind).
    pub kind: u32,
    /// The hardware threads that it is for, as the kernel lists them; none: all.
    pub cpus: Option<String>,
    /// Are these fewer than all that are online?
    pub some_cpus: bool,
    /// The events that the kernel names, with their fields
    /// (`event=0x3c,umask=0x1`).
    pub events: BTreeMap<String, String>,
    /// Where the fields go (`event` to `config:0-7`).
    pub format: BTreeMap<String, String>,
}

impl Pmu {
    /// The numbers of the events that the kernel names.
    pub(super) fn codes(&self) -> impl Iterator<Item = u64> {
        let code = |text: &String| {
            let hex = text.split(',').find_map(|field| field.strip_prefix("event=0x"))?;
            u64::from_str_radix(hex, 16).ok()
        };
        self.events.values().filter_map(code)
    }
}

/// Reads the kernel's PMUs; `sys` is where sysfs is mounted.
///
/// # Errors
/// When the directory cannot be listed. A PMU that cannot be read is left out.
pub fn pmus(sys: &Path) -> io::Result<BTreeMap<String, Pmu>> {
    let online = fs::read_to_string(sys.join("devices/system/cpu/online")).ok();
    let online: Option<CpuSet> = online.and_then(|text| text.trim().parse().ok());
    let mut pmus = BTreeMap::new();
    for entry in fs::read_dir(sys.join("bus/event_source/devices"))? {
        let folder = entry?.path();
        let text = |file| fs::read_to_string(folder.join(file)).ok();
        let Some(kind) = text("type").and_then(|text| text.trim().parse().ok()) else { continue };
        let cpus = text("cpus").or_else(|| text("cpumask")).map(|text| text.trim().to_owned());
        let all = |cpus: &String| {
            let cpus: CpuSet = cpus.parse().ok()?;
            online.as_ref().map(|online| online.is_subset(&cpus))
        };
        let some_cpus = cpus.as_ref().is_some_and(|cpus| all(cpus) != Some(true));
        let (events, format) = (texts(&folder.join("events")), texts(&folder.join("format")));
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        pmus.insert(name, Pmu { kind, cpus, some_cpus, events, format });
    }
    Ok(pmus)
}

/// The files of a folder, by name; none if there is no such folder.
fn texts(folder: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let read = |file: fs::DirEntry| {
        let text = fs::read_to_string(file.path()).ok()?;
        Some((file.file_name().into_string().ok()?, text.trim().to_owned()))
    };
    // An event's scale and unit are in files next to it.
    files.filter_map(read).filter(|(name, _)| !name.contains('.')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pmus_are_read_and_broken_ones_left_out() {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("devices/system/cpu/online", "0-23\n"),
            ("bus/event_source/devices/cpu_core/type", "4\n"),
            ("bus/event_source/devices/cpu_core/cpus", "0-15\n"),
            ("bus/event_source/devices/cpu_core/format/event", "config:0-7\n"),
            ("bus/event_source/devices/cpu_core/events/cpu-cycles", "event=0x3c\n"),
            ("bus/event_source/devices/cpu_core/events/slots", "event=0x00,umask=0x4\n"),
            ("bus/event_source/devices/cpu_core/events/slots.unit", "none\n"),
            ("bus/event_source/devices/armv8_pmuv3_0/type", "8\n"),
            ("bus/event_source/devices/armv8_pmuv3_0/cpus", "0-23\n"),
            ("bus/event_source/devices/software/type", "1\n"),
            ("bus/event_source/devices/broken/type", "many\n"),
        ] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = pmus(root.path()).unwrap();
        let names: Vec<_> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["armv8_pmuv3_0", "cpu_core", "software"]);
        let core = &found["cpu_core"];
        assert_eq!((core.kind, core.cpus.as_deref(), core.some_cpus), (4, Some("0-15"), true));
        assert_eq!(core.format, [("event".to_owned(), "config:0-7".to_owned())].into());
        assert_eq!(core.codes().collect::<Vec<_>>(), [0x3c, 0x00]);
        assert_eq!(core.events.len(), 2);
        assert!(!found["armv8_pmuv3_0"].some_cpus);
        assert_eq!(found["software"], Pmu { kind: 1, ..Pmu::default() });
        assert!(pmus(&root.path().join("nowhere")).is_err());
    }
}
