//! libpfm4: its example `check_events`, built for each architecture.

use std::path::{Path, PathBuf};
use std::process::Command;

use symbiont_counters::catalogue::{Catalogue, CpuRule, Encoding, Event};

/// User and kernel mode, interrupt and enable: bits that libpfm sets in the
/// x86 event-select register and that the kernel sets by itself.
const X86_CONTROL: u64 = 1 << 16 | 1 << 17 | 1 << 20 | 1 << 22;

/// The tool for each architecture.
pub struct Tools {
    folder: PathBuf,
}

impl Tools {
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    pub fn are_there(&self) -> bool {
        self.folder.is_dir()
    }

    /// What libpfm4 says of an event, or why it says nothing.
    pub fn encoding(&self, catalogue: &Catalogue, event: &Event) -> Result<Encoding, String> {
        let pmu = catalogue.oracles().libpfm.as_ref().ok_or("does not know this machine")?;
        let (architecture, mask) = match catalogue.rules().first() {
            Some(CpuRule::X86 { .. }) => ("x86_64", !X86_CONTROL),
            Some(CpuRule::Power { .. }) => ("powerpc", u64::MAX),
            Some(CpuRule::Arm { .. }) => ("arm64", 0xffff),
            None => return Err("cannot encode the kernel's own events".into()),
        };
        let tool = self.folder.join(format!("check_events-{architecture}"));
        if !tool.exists() {
            return Err("is not installed".into());
        }
        let name = event.oracle.libpfm.clone().unwrap_or_else(|| usual_name(&event.name));
        let output = Command::new(&tool)
            .arg(format!("{pmu}::{name}"))
            .env("LIBPFM_ENCODE_INACTIVE", "1")
            .output()
            .map_err(|error| format!("{} does not run: {error}", tool.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let codes = text.lines().find_map(|line| line.strip_prefix("Codes"));
        let codes = codes.ok_or_else(|| format!("does not list {name}"))?;
        let mut codes = codes
            .split_whitespace()
            .filter_map(|code| u64::from_str_radix(code.strip_prefix("0x")?, 16).ok());
        let config = codes.next().ok_or("gives no code")? & mask;
        Ok(Encoding { config, config1: codes.next().unwrap_or(0) })
    }
}

/// `EVENT.MASK.MORE` of a vendor is `EVENT:MASK_MORE` in libpfm4, in capitals.
fn usual_name(name: &str) -> String {
    let name = name.to_uppercase();
    match name.split_once('.') {
        None => name,
        Some((event, mask)) => format!("{event}:{}", mask.replace('.', "_")),
    }
}
