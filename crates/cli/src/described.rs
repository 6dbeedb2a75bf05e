//! `--topology`: another machine than this one, in any form in which machines are described.
//!
//! # Problem
//! What Symbiont makes of a machine is asked where that machine is not: a bug report has a copy of `/sys`, a
//! cluster's documentation hwloc's export, a person an idea.
//!
//! # Approach
//! What exists as a folder is a copy of `/sys`, or has it as `sys`, as the archives of hwloc's
//! `hwloc-gather-topology` have. A file is such a copy in an archive, if its first bytes are those of one, else an
//! export of hwloc. What does not exist is a line such as `core:4 smt:2` or a synthetic string of hwloc such as
//! `core:4 pu:2`, unless it looks like a path.
//!
//! # Properties
//! - Each form is read, and what is neither is refused with what is expected
//!   (`each_form_of_a_machine_is_read`, `errors_name_the_path_and_what_is_expected`).

use std::path::Path;

use anyhow::{Context, bail};
use symbiont_topology::{LeftOut, Topology, archive, hwloc, read_tree_noting};

/// What can be given, for errors.
const EXPECTED: &str = "expected a copy of /sys (a folder with devices/system/cpu, or with sys, which has it, or a tar \
     archive of one), an XML export of hwloc 2 or 3, a line like 'core:4 smt:2', or a synthetic string of hwloc \
     like 'core:4 pu:2'";

/// A machine, and what of its description was not understood.
#[derive(Debug)]
pub struct Described {
    pub topology: Topology,
    pub left_out: Vec<String>,
}

impl From<Topology> for Described {
    fn from(topology: Topology) -> Self {
        Self { topology, left_out: Vec::new() }
    }
}

impl From<(Topology, Vec<LeftOut>)> for Described {
    fn from((topology, left_out): (Topology, Vec<LeftOut>)) -> Self {
        Self { topology, left_out: left_out.iter().map(ToString::to_string).collect() }
    }
}

/// Reads the machine that `--topology` names.
pub fn described(given: &str) -> anyhow::Result<Described> {
    let path = Path::new(given);
    if path.is_dir() {
        return tree(path);
    }
    if path.exists() {
        return file(path).with_context(|| format!("--topology {given}"));
    }
    let looks_like_a_path =
        given.contains('/') || given.ends_with(".xml") || given.contains(".tar");
    if hwloc::synthetic::is_hwloc_form(given) && !looks_like_a_path {
        return hwloc::from_synthetic(given)
            .map(Described::from)
            .context("--topology: no such file or folder");
    }
    if looks_like_a_path || !given.contains(':') {
        bail!("--topology {given}: there is no such file or folder; {EXPECTED}");
    }
    Topology::synthetic(given)
        .map(Described::from)
        .with_context(|| format!("--topology: no such file or folder, and no line; {EXPECTED}"))
}

fn file(path: &Path) -> anyhow::Result<Described> {
    match archive::packing(path).context(EXPECTED)? {
        Some(_) => Ok(archive::read_archive(path)?.into()),
        None => Ok(hwloc::from_xml(path).context(EXPECTED)?.into()),
    }
}

fn tree(folder: &Path) -> anyhow::Result<Described> {
    let below = folder.join("sys");
    let has_cpus = |root: &Path| root.join("devices/system/cpu").is_dir();
    let root = [folder, &below].into_iter().find(|root| has_cpus(root));
    let shown = folder.display();
    let Some(root) = root else {
        bail!("--topology {shown} has no devices/system/cpu; {EXPECTED}");
    };
    Ok(read_tree_noting(root).with_context(|| format!("--topology {shown}"))?.into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use symbiont_topology::sys_tree;

    use super::*;

    const LINE: &str = "package:2 core:2 smt:2";

    /// The machine of the line as a copy of `/sys` below a folder.
    fn written(root: &Path) {
        for (path, content) in sys_tree(&Topology::synthetic(LINE).unwrap()) {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }

    const EXPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x00000003">
    <object type="NUMANode" os_index="0" cpuset="0x00000003" local_memory="1024"/>
    <object type="Core" os_index="0">
      <object type="PU" os_index="0"/>
      <object type="PU" os_index="1"/>
    </object>
  </object>
</topology>"#;

    #[test]
    fn each_form_of_a_machine_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let line = described(LINE).unwrap().topology;
        assert_eq!((line.cores().len(), line.smt_width()), (4, 2));

        written(&folder.path().join("copy"));
        written(&folder.path().join("gathered/sys"));
        fs::write(at("copy/devices/system/node/node0/meminfo"), "?").unwrap();
        for (copy, left_out) in [("copy", 1), ("gathered", 0)] {
            let read = described(&at(copy)).unwrap();
            assert_eq!(read.topology.cores(), line.cores());
            assert_eq!(read.left_out.len(), left_out, "{:?}", read.left_out);
        }

        fs::write(at("m.xml"), EXPORT).unwrap();
        let export = described(&at("m.xml")).unwrap().topology;
        assert_eq!((export.cores().len(), export.smt_width()), (1, 2));

        let string = described("pack:2 core:2 pu:2").unwrap().topology;
        assert_eq!((string.cores().len(), string.smt_width()), (4, 2));

        let mut tar = tar::Builder::new(fs::File::create(at("m.tar")).unwrap());
        tar.append_dir_all("gathered", at("gathered")).unwrap();
        tar.finish().unwrap();
        // The packing is not known by the name.
        fs::rename(at("m.tar"), at("report")).unwrap();
        assert_eq!(described(&at("report")).unwrap().topology.cores(), line.cores());
    }

    #[test]
    fn what_is_no_regular_file_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
        for path in [fifo.as_path(), Path::new("/dev/zero")] {
            let error = format!("{:#}", described(path.to_str().unwrap()).unwrap_err());
            assert!(error.contains("not a regular file"), "{error}");
        }
        let online = folder.path().join("devices/system/cpu/online");
        fs::create_dir_all(online.parent().unwrap()).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &online, 0o600.into()).unwrap();
        let error = format!("{:#}", described(folder.path().to_str().unwrap()).unwrap_err());
        assert!(error.contains("not a regular file"), "{error}");
    }

    #[test]
    fn errors_name_the_path_and_what_is_expected() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::write(at("m.xml"), "<topology version=\"1.0\"/>").unwrap();
        fs::write(at("m.tar.gz"), [0x1f, 0x8b, 8]).unwrap();
        fs::write(at("m.tar.xz"), b"\xfd7zXZ\0").unwrap();
        fs::create_dir_all(at("broken/devices/system/cpu")).unwrap();
        fs::write(at("broken/devices/system/cpu/online"), "all").unwrap();
        let error = |given: &str| {
            let text = format!("{:#}", described(given).unwrap_err());
            text.replace(&format!("{}/", folder.path().display()), "")
        };
        let starts = [
            (at("none"), "--topology none: there is no such file or folder; expected a copy"),
            (at("none.xml"), "--topology none.xml: there is no such file or folder; expected"),
            (at("m.xml"), "--topology m.xml: expected a copy of /sys"),
            (at("m.tar.gz"), "--topology m.tar.gz: m.tar.gz is no whole archive: "),
            (
                at("m.tar.xz"),
                "--topology m.tar.xz: m.tar.xz is packed by xz, which is not read here; decom",
            ),
            (at("m.tar.bz2"), "--topology m.tar.bz2: there is no such file or folder; expected"),
            ("m.tar.bz2".into(), "--topology m.tar.bz2: there is no such file or folder; expected"),
            (
                "pack:2 core:4".into(),
                "--topology: no such file or folder: hwloc's synthetic string",
            ),
            (at("broken"), "--topology broken: broken/devices/system/cpu/online holds 'all'"),
            ("zen4".into(), "--topology zen4: there is no such file or folder; expected a copy"),
            ("core:x".into(), "--topology: no such file or folder, and no line; expected a copy"),
        ];
        for (given, start) in starts {
            assert!(error(&given).starts_with(start), "{given}: {}", error(&given));
        }
        assert!(error(&at("m.xml")).ends_with("not written by hwloc 2 or 3; export it again"));
        assert!(error("core:x").contains("column 6"), "{}", error("core:x"));
        let folder = folder.path().to_str().unwrap();
        assert!(error(folder).contains("has no devices/system/cpu; expected a copy"));
    }
}
