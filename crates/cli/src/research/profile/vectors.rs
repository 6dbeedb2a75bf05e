//! Activity by super-set: caches to simulate, and what came out, for people and scripts.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use indicatif::HumanCount;
use symbiont_profile::vectors::{CACHES, Counts, Geometry, Hierarchy, Vectors};
use symbiont_sim_fast::description::{Cache, Description};

/// What this machine is called.
const HOST: &str = "host";
/// Caches of this machine's first CPU.
const FOLDER: &str = "/sys/devices/system/cpu/cpu0/cache";

/// The caches of a described machine's first core, or of this machine.
pub(super) fn hierarchy(machine: &str) -> anyhow::Result<Hierarchy> {
    if machine == HOST {
        return of_this_machine();
    }
    let description = Description::named(machine)
        .with_context(|| format!("'{HOST}' stands for the caches of this machine"))?;
    of_description(&description)
}

/// The caches of this machine.
pub fn of_this_machine() -> anyhow::Result<Hierarchy> {
    sane(of_host(Path::new(FOLDER))?, "this machine")
}

/// The caches of a described machine's first core.
pub fn of_description(description: &Description) -> anyhow::Result<Hierarchy> {
    let core = description.core_types.first().context("a machine without cores")?;
    let of = |cache: &Cache| Geometry {
        sets: (cache.lines() / u64::from(cache.ways.max(1))).max(1) as u32,
        ways: cache.ways,
        line: cache.line,
    };
    let hierarchy = Hierarchy { l1d: of(&core.l1d), l1i: of(&core.l1i), l2: of(&core.l2) };
    sane(hierarchy, &description.name)
}

fn sane(hierarchy: Hierarchy, machine: &str) -> anyhow::Result<Hierarchy> {
    ensure!(hierarchy.is_sane(), "the caches of {machine} cannot be simulated: {hierarchy}");
    Ok(hierarchy)
}

/// The caches that a folder of `/sys` describes.
fn of_host(folder: &Path) -> anyhow::Result<Hierarchy> {
    let mut found = [None; 3];
    for index in 0..16 {
        let folder = folder.join(format!("index{index}"));
        let read = |name: &str| {
            std::fs::read_to_string(folder.join(name)).map(|text| text.trim().to_owned())
        };
        let Ok(level) = read("level") else { continue };
        let number = |name: &str| -> anyhow::Result<u32> {
            let path = folder.join(name);
            let text = read(name).with_context(|| path.display().to_string())?;
            text.parse().with_context(|| format!("{}: '{text}'", path.display()))
        };
        let at = match (level.as_str(), read("type")?.as_str()) {
            ("1", "Data") => 0,
            ("1", "Instruction") => 1,
            ("2", "Unified" | "Data") => 2,
            _ => continue,
        };
        found[at] = Some(Geometry {
            sets: number("number_of_sets")?,
            ways: number("ways_of_associativity")?,
            line: number("coherency_line_size")?,
        });
    }
    let [Some(l1d), Some(l1i), Some(l2)] = found else {
        bail!(
            "{} has no first-level cache of data or instructions, or a second-level one",
            folder.display()
        );
    };
    Ok(Hierarchy { l1d, l1i, l2 })
}

/// What a file holds.
pub(super) fn said(vectors: &Vectors, path: &Path, json: bool) -> anyhow::Result<String> {
    if json {
        return Ok(crate::out::json(vectors)?);
    }
    let instructions: u64 = vectors.intervals.iter().map(|interval| interval.instructions).sum();
    let mut text = format!(
        "{}: {} ({} instructions in {} intervals)\n{}",
        path.display(),
        vectors.command.join(" "),
        HumanCount(instructions),
        vectors.intervals.len(),
        vectors.hierarchy,
    );
    for (at, name) in CACHES.iter().enumerate() {
        let sum = |of: fn(&Counts) -> &Vec<u32>| -> u64 {
            let all = vectors.intervals.iter().map(|interval| of(&interval.caches[at]));
            all.flatten().map(|count| u64::from(*count)).sum()
        };
        let (uses, misses) = (sum(|counts| &counts.uses), sum(|counts| &counts.misses));
        text += &format!("\n{name}: {} accesses, {} misses", HumanCount(uses), HumanCount(misses));
    }
    for gap in &vectors.gaps {
        text += &format!("\n{gap}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_described_machine_has_caches_to_simulate() {
        for (name, _) in Description::builtin() {
            let hierarchy = hierarchy(name).unwrap();
            assert!(hierarchy.l2.sets >= hierarchy.l1d.sets, "{name}: {hierarchy}");
        }
        let Hierarchy { l1d, l2, .. } = hierarchy("xsim").unwrap();
        assert_eq!((l1d.sets, l1d.ways, l2.sets, l2.ways), (128, 4, 1024, 8));
    }

    #[test]
    fn caches_of_a_machine_are_read_from_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let of = |index: u32, level: &str, kind: &str, sets: &str| {
            let folder = folder.path().join(format!("index{index}"));
            std::fs::create_dir(&folder).unwrap();
            let files = [
                ("level", level),
                ("type", kind),
                ("number_of_sets", sets),
                ("ways_of_associativity", "8"),
                ("coherency_line_size", "64"),
            ];
            for (name, text) in files {
                std::fs::write(folder.join(name), format!("{text}\n")).unwrap();
            }
        };
        of(0, "1", "Data", "64");
        of(1, "1", "Instruction", "32");
        let few = of_host(folder.path()).unwrap_err().to_string();
        assert!(few.contains("has no first-level cache"), "{few}");
        of(2, "2", "Unified", "2048");
        of(3, "3", "Unified", "9");
        let Hierarchy { l1d, l1i, l2 } = of_host(folder.path()).unwrap();
        assert_eq!([l1d.sets, l1i.sets, l2.sets], [64, 32, 2048]);
        std::fs::write(folder.path().join("index2/number_of_sets"), "many").unwrap();
        assert!(format!("{:#}", of_host(folder.path()).unwrap_err()).contains("'many'"));
    }

    #[test]
    fn an_unknown_machine_is_refused() {
        let error = format!("{:#}", hierarchy("abacus").unwrap_err());
        assert!(error.contains("abacus") && error.contains("'host'"), "{error}");
    }
}
