//! perf's own tables: JSON files, one folder per microarchitecture; for the
//! kernel's own events the header of its interface.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use symbiont_counters::catalogue::{Catalogue, Encoding, Event};

type Table = Vec<Map<String, Value>>;

/// The tables of a kernel source tree.
pub struct Tables {
    /// `tools/perf/pmu-events/arch`.
    folder: PathBuf,
    read: RefCell<BTreeMap<String, Table>>,
}

impl Tables {
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.join("arch"), read: RefCell::default() }
    }

    pub fn are_there(&self) -> bool {
        self.folder.is_dir()
    }

    /// Is a catalogue newer than these tables? They then have no folder for its machine.
    pub fn are_older_than(&self, catalogue: &Catalogue) -> bool {
        let folder = catalogue.oracles().perf.as_ref().filter(|folder| *folder != "uapi");
        folder.is_some_and(|folder| !self.folder.join(folder).is_dir())
    }

    /// What the table of a catalogue says of an event, or why it says nothing.
    pub fn encoding(&self, catalogue: &Catalogue, event: &Event) -> Result<Encoding, String> {
        let oracles = catalogue.oracles();
        let folder = oracles.perf.as_ref().ok_or("has no table for this machine")?;
        self.listed(folder, oracles.perf_unit.as_deref(), event)
    }

    /// What the tables of the other processors that a catalogue is for say of an event.
    pub fn also<'a>(
        &'a self,
        catalogue: &'a Catalogue,
        event: &'a Event,
    ) -> impl Iterator<Item = (&'a str, Result<Encoding, String>)> {
        let oracles = catalogue.oracles();
        let said = move |folder: &'a String| {
            (folder.as_str(), self.listed(folder, oracles.perf_unit.as_deref(), event))
        };
        oracles.also.iter().map(said)
    }

    /// What the tables of a folder say of an event of a unit, or why they say nothing.
    fn listed(&self, folder: &str, unit: Option<&str>, event: &Event) -> Result<Encoding, String> {
        if folder == "uapi" {
            return interface(event.oracle.perf.as_deref().unwrap_or(&event.name));
        }
        if !self.folder.join(folder).is_dir() {
            return Err("its tables are not installed or too old".into());
        }
        let mut read = self.read.borrow_mut();
        let table =
            read.entry(folder.to_owned()).or_insert_with(|| entries(&self.folder.join(folder)));
        let wanted = event.oracle.perf.as_deref().unwrap_or(&event.name);
        // Events that differ in their mask only are counted together by the
        // union of the masks.
        let parts = wanted.split('|').map(|name| self.entry(table, folder, unit, name));
        parts.into_iter().try_fold(Encoding::default(), |all, part| {
            let part = part?;
            Ok(Encoding { config: all.config | part.config, config1: all.config1 | part.config1 })
        })
    }

    fn entry(
        &self,
        table: &Table,
        folder: &str,
        unit: Option<&str>,
        wanted: &str,
    ) -> Result<Encoding, String> {
        let (name, modifiers) = wanted.split_once(',').unwrap_or((wanted, ""));
        let entry = table.iter().find(|entry| {
            let called = text(entry, "EventName").or_else(|| text(entry, "ArchStdEvent"));
            called.is_some_and(|called| called.eq_ignore_ascii_case(name))
                // A processor that is no hybrid has cores of one kind, which need no name.
                && text(entry, "Unit").is_none_or(|named| Some(named) == unit)
        });
        let Some(entry) = entry else {
            // Arm's architecture fixes the codes of common events.
            return match folder.starts_with("arm64/") {
                true => self.standard(name).map(|config| Encoding { config, config1: 0 }),
                false => Err(format!("does not list {name}")),
            };
        };
        if folder.starts_with("x86/") {
            return Ok(x86(entry, modifiers));
        }
        let code = match text(entry, "ArchStdEvent") {
            None => number(entry, "EventCode"),
            Some(standard) => self.standard(standard)?,
        };
        Ok(Encoding { config: code, config1: 0 })
    }

    /// The code of an event that the Arm architecture itself names.
    fn standard(&self, name: &str) -> Result<u64, String> {
        let files = ["common-and-microarch.json", "recommended.json"];
        let tables = files.map(|file| entries_of(&self.folder.join("arm64").join(file)));
        let mut entries = tables.iter().flatten();
        let entry = entries.find(|entry| text(entry, "EventName") == Some(name));
        entry.map(|entry| number(entry, "EventCode")).ok_or(format!("does not list {name}"))
    }
}

/// The number of an enumerator of the kernel's interface, as in the header that
/// C programs are compiled with.
fn interface(name: &str) -> Result<Encoding, String> {
    let header = Path::new("/usr/include/linux/perf_event.h");
    let text = std::fs::read_to_string(header).map_err(|error| error.to_string())?;
    let value = text.lines().find_map(|line| {
        let (enumerator, value) = line.trim().trim_end_matches(',').split_once('=')?;
        (enumerator.trim() == name).then(|| parse(value))
    });
    let config = value.ok_or_else(|| format!("{} has no {name}", header.display()))?;
    Ok(Encoding { config, config1: 0 })
}

/// The words as `perf` makes them (`pmu-events/jevents.py` and the kernel's
/// `format` files of x86 core PMUs).
fn x86(entry: &Map<String, Value>, modifiers: &str) -> Encoding {
    let modifier = |key: &str| {
        let mut pairs = modifiers.split(',').filter_map(|part| part.split_once('='));
        pairs.find(|(name, _)| *name == key).map(|(_, value)| parse(value))
    };
    let field = |key: &str, json: &str| modifier(key).unwrap_or_else(|| number(entry, json));
    let name = text(entry, "EventName").unwrap_or_default().to_lowercase();
    // Fixed counters have no code of their own; perf asks for the event that
    // the kernel maps to them.
    let (event, umask) = match name.as_str() {
        "inst_retired.any" => (0xc0, 0),
        "cpu_clk_unhalted.thread" | "cpu_clk_unhalted.core" => (0x3c, 0),
        _ => (number(entry, "EventCode"), field("umask", "UMask")),
    };
    let config = event & 0xff
        | (umask & 0xff) << 8
        | umask >> 8 << 40
        | field("edge", "EdgeDetect") << 18
        | field("any", "AnyThread") << 21
        | field("inv", "Invert") << 23
        | field("cmask", "CounterMask") << 24
        | event >> 8 << 32;
    Encoding { config, config1: number(entry, "MSRValue") }
}

fn entries(folder: &Path) -> Table {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.flat_map(|file| entries_of(&file.path())).collect()
}

fn entries_of(file: &Path) -> Table {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    match serde_json::from_str(&text) {
        Ok(Value::Array(list)) => list.into_iter().filter_map(|entry| match entry {
            Value::Object(entry) => Some(entry),
            _ => None,
        }),
        _ => return Vec::new(),
    }
    .collect()
}

fn text<'a>(entry: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    entry.get(key).and_then(Value::as_str)
}

/// A number that may be missing (0), one of a list (the first) or in hex.
fn number(entry: &Map<String, Value>, key: &str) -> u64 {
    text(entry, key).map_or(0, parse)
}

fn parse(text: &str) -> u64 {
    let first = text.split(',').next().unwrap_or_default().trim().to_lowercase();
    match first.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap_or(0),
        None => first.parse().unwrap_or(0),
    }
}
