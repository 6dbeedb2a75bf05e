//! The machine that an experiment runs on, as far as its results depend on it.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use symbiont_linux::perf::processor_name;

use symbiont_campaign::{Error, digest, make_folder, read_json};

/// The file that keeps the machine as it was when measuring in a folder began.
const KEPT: &str = "machine.json";

/// The machine as it is now; what it does not report is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Seconds since 1970.
    pub time: u64,
    /// CPUs that this process may use: the n of the paper.
    pub cpus: u32,
    /// The processor's name for itself.
    pub processor: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Does the kernel share CPU time out between sessions first?
    pub autogroup: Option<bool>,
    /// Load averages over 1, 5 and 15 minutes.
    pub load: Option<String>,
    /// The machine is a virtual one, as far as the processor reports.
    pub virtual_machine: bool,
}

impl Machine {
    /// Reads the facts.
    #[must_use]
    pub fn read() -> Self {
        let line = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let load = line("/proc/loadavg").map(|text| first_words(&text, 3));
        Self {
            time: SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs()),
            cpus: std::thread::available_parallelism()
                .map_or(1, |n| n.get().try_into().unwrap_or(u32::MAX)),
            processor: processor_name(&cpuinfo),
            kernel: line("/proc/sys/kernel/osrelease"),
            autogroup: line("/proc/sys/kernel/sched_autogroup_enabled").map(|text| text == "1"),
            load,
            virtual_machine: cpuinfo
                .lines()
                .any(|line| line.starts_with("flags") && line.contains(" hypervisor")),
        }
    }

    /// The machine as it was when measuring in this folder began; as it is now where no runs are kept there, or
    /// where it is another one by now. To be asked for before anything is measured; makes the folder if need be.
    ///
    /// # Errors
    /// When the folder cannot be made, read or written.
    pub fn measured_in(folder: &Path) -> Result<Self, Error> {
        make_folder(folder)?;
        let (now, path) = (Self::read(), folder.join(KEPT));
        let kept = if has_runs(folder)? { read_json::<Self>(&path).ok() } else { None };
        let as_now =
            |kept: &Self| *kept == Self { time: kept.time, load: kept.load.clone(), ..now.clone() };
        if let Some(kept) = kept.filter(as_now) {
            return Ok(kept);
        }
        let text = serde_json::to_string_pretty(&now).map_err(Error::json(&path))?;
        fs::write(&path, text).map_err(Error::io(&path))?;
        Ok(now)
    }

    /// A digest of what records of runs follow from on any machine, and of further such parts.
    pub fn basis(&self, parts: &[&str]) -> String {
        let unknown = String::new();
        let kernel = self.kernel.as_ref().unwrap_or(&unknown);
        let processor = self.processor.as_ref().unwrap_or(&unknown);
        let cpus = self.cpus.to_string();
        let own = [env!("CARGO_PKG_VERSION"), kernel, processor, &cpus];
        digest(&[&own, parts].concat())
    }

    /// Names and values for a report.
    #[must_use]
    pub fn facts(&self) -> Vec<(String, String)> {
        let virtual_machine = if self.virtual_machine { " (virtual machine)" } else { "" };
        let began = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(self.time));
        let began = began.map(|began| humantime::format_rfc3339_seconds(began).to_string());
        let named = [
            ("Measured from", began),
            ("Processor", self.processor.as_ref().map(|name| format!("{name}{virtual_machine}"))),
            ("CPUs used", Some(self.cpus.to_string())),
            ("Kernel", self.kernel.as_ref().map(|release| format!("Linux {release}"))),
            (
                "Autogroup",
                self.autogroup.map(|on| {
                    let text = if on { "on: sessions get equal CPU time" } else { "off" };
                    text.to_owned()
                }),
            ),
            ("Load averages at the start", self.load.clone()),
        ];
        named
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.unwrap_or_else(|| "unknown".to_owned())))
            .collect()
    }
}

fn has_runs(folder: &Path) -> Result<bool, Error> {
    let files = fs::read_dir(folder).map_err(Error::io(folder))?;
    Ok(files.flatten().any(|file| file.path().extension().is_some_and(|is| is == "jsonl")))
}

fn first_words(text: &str, count: usize) -> String {
    text.split_whitespace().take(count).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_reported_is_said_to_be_unknown() {
        let facts = Machine::default().facts();
        assert!(facts.contains(&("Kernel".to_owned(), "unknown".to_owned())));
    }

    #[test]
    fn a_report_of_kept_runs_is_about_when_they_were_measured() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(KEPT);
        let at_first = Machine::measured_in(folder.path()).unwrap();
        let earlier = Machine { time: 1, load: Some("7 7 7".to_owned()), ..at_first };
        let keep = |machine: &Machine| {
            fs::write(&path, serde_json::to_string(machine).unwrap()).unwrap();
        };
        keep(&earlier);
        // Nothing was measured then, so measuring begins now.
        assert_ne!(Machine::measured_in(folder.path()).unwrap().time, 1);
        fs::write(folder.path().join("runs.jsonl"), "").unwrap();
        keep(&earlier);
        assert_eq!(Machine::measured_in(folder.path()).unwrap(), earlier);
        // Runs of another machine are measured anew, and so is a spoilt file.
        keep(&Machine { kernel: Some("0.1".to_owned()), ..earlier });
        assert_ne!(Machine::measured_in(folder.path()).unwrap().time, 1);
        fs::write(&path, "{").unwrap();
        assert_ne!(Machine::measured_in(folder.path()).unwrap().time, 1);
        assert!(read_json::<Machine>(&path).is_ok());
    }

    #[test]
    fn this_machine_has_a_cpu_and_a_kernel() {
        let machine = Machine::read();
        assert!(machine.cpus >= 1 && machine.kernel.is_some());
    }
}
