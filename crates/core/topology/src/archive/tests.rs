use std::io::Write;

use proptest::prelude::*;
use tar::{Builder, EntryType, Header};

use super::*;
use crate::synthetic::tests::lines;
use crate::sysfs::read_sys_tree;
use crate::{CpuSet, scratch, sys_tree};

/// An archive of files: names and what they hold.
fn packed<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for (name, content) in files {
        add(&mut tar, EntryType::Regular, name, None, content.as_bytes());
    }
    tar.into_inner().unwrap()
}

/// Adds an entry as it is, also one that the crate would refuse to write.
fn add(tar: &mut Builder<Vec<u8>>, kind: EntryType, name: &str, to: Option<&str>, content: &[u8]) {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    let fields = header.as_gnu_mut().unwrap();
    fields.name[..name.len()].copy_from_slice(name.as_bytes());
    let to = to.unwrap_or_default();
    fields.linkname[..to.len()].copy_from_slice(to.as_bytes());
    header.set_cksum();
    tar.append(&header, content).unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    to.write_all(bytes).unwrap();
    to.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut to = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    to.write_all(bytes).unwrap();
    to.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<Topology, ArchiveError> {
    read_packed(bytes, "m.tar", Bounds::default()).map(|(topology, _)| topology)
}

fn refusal(bytes: &[u8]) -> String {
    read(bytes).unwrap_err().to_string()
}

/// The machine of a line as files below a folder.
fn files(line: &str, folder: &str) -> Vec<(String, String)> {
    let files = sys_tree(&Topology::synthetic(line).unwrap());
    files.into_iter().map(|(path, content)| (format!("{folder}{path}"), content)).collect()
}

fn of_line(line: &str, folder: &str) -> Vec<u8> {
    let files = files(line, folder);
    packed(files.iter().map(|(name, content)| (name.as_str(), content.as_str())))
}

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn an_archive_is_read_as_its_folder(
        line in lines(),
        folder in prop_oneof![Just(""), Just("sys/"), Just("./a/host 1/sys/"), Just("/sys/")],
        pack in 0usize..3,
    ) {
        let root = scratch::tree(files(&line, "")).unwrap();
        let expected = read_sys_tree(root.path()).unwrap();
        let tar = of_line(&line, folder);
        let bytes = [tar.clone(), gzip(&tar), bzip2(&tar)][pack].clone();
        let read = read(&bytes).unwrap();
        prop_assert_eq!(read.cores(), expected.cores());
        prop_assert_eq!(read.llcs(), expected.llcs());
        prop_assert_eq!(read.nodes(), expected.nodes());
        prop_assert_eq!(read.packages(), expected.packages());
    }

    #[test]
    fn damaged_archives_do_not_panic(
        at in any::<prop::sample::Index>(),
        put in prop::collection::vec(any::<u8>(), 1..20),
        pack in 0usize..3,
        fixed in any::<bool>(),
    ) {
        let mut tar = of_line("core:2 smt:2", "sys/");
        let damage = |bytes: &mut Vec<u8>| {
            let at = at.index(bytes.len());
            for (byte, put) in bytes.iter_mut().skip(at).zip(&put) {
                *byte = *put;
            }
        };
        if fixed || pack == 0 {
            damage(&mut tar);
            // With its checksum set right again, the header counts.
            let header = at.index(tar.len()) / 512 * 512;
            let mut fixed = Header::new_old();
            if let Some(bytes) = tar.get_mut(header..header + 512) {
                fixed.as_mut_bytes().copy_from_slice(bytes);
                fixed.set_cksum();
                bytes.copy_from_slice(fixed.as_bytes());
            }
        }
        let mut bytes = [tar.clone(), gzip(&tar), bzip2(&tar)][pack].clone();
        if !fixed {
            damage(&mut bytes);
        }
        let _ = read(&bytes);
    }
}

#[test]
fn links_are_followed_inside_the_archive_only() {
    let mut tar = Builder::new(Vec::new());
    let cpu = "a/sys/devices/system/cpu";
    let mut link = |kind, name: &str, to: &str| add(&mut tar, kind, name, Some(to), b"");
    // One folder above the archive.
    let out = format!("{}{cpu}/cpufreq/policy0", "../".repeat(7));
    let (symbolic, hard) = (EntryType::Symlink, EntryType::Link);
    link(symbolic, &format!("{cpu}/cpu0/cpufreq"), "../cpufreq/policy0");
    link(hard, &format!("{cpu}/cpu0/topology/core_cpus_list"), &format!("{cpu}/siblings"));
    link(symbolic, &format!("{cpu}/cpu1/cpufreq"), &out);
    link(symbolic, &format!("{cpu}/cpu2/cpufreq"), "/sys/devices/system/cpu/cpufreq/policy0");
    link(symbolic, &format!("{cpu}/cpu3/cpufreq"), "../cpu3/cpufreq");
    link(symbolic, "a/sys/devices/system/node/node0", "../node/real");
    let files = [
        ("online", "0-3"),
        ("siblings", "0,2"),
        ("cpufreq/policy0/cpuinfo_max_freq", "2000000"),
        ("cpu2/topology/core_cpus_list", "0,2"),
    ];
    for (name, content) in files {
        add(&mut tar, EntryType::Regular, &format!("{cpu}/{name}"), None, content.as_bytes());
    }
    let memory = "a/sys/devices/system/node/real/meminfo";
    add(&mut tar, EntryType::Regular, memory, None, b"Node 0 MemTotal: 2048 kB");
    let read = read(&tar.into_inner().unwrap()).unwrap();
    let cores: Vec<_> = read.cores().iter().map(|c| (c.cpus.to_string(), c.max_khz)).collect();
    let expected = [("0,2", Some(2_000_000)), ("1", None), ("3", None)];
    assert_eq!(cores, expected.map(|(cpus, khz)| (cpus.to_owned(), khz)));
    assert_eq!(read.nodes()[0].memory_bytes, Some(2 << 20));
}

#[test]
fn tar_fills_up_what_is_shorter_than_the_kernel_says() {
    let padded = format!("0-1\n{}", "\0".repeat(4092));
    let read = read(&packed([("sys/devices/system/cpu/online", padded.as_str())])).unwrap();
    assert_eq!(read.cpus(), set("0-1"));
}

#[test]
fn long_names_are_read_in_both_forms() {
    let folder = "long/".repeat(60) + "sys/";
    let tree = files("core:2 smt:2", &folder);
    let mut gnu = Builder::new(Vec::new());
    for (name, content) in &tree {
        let mut header = Header::new_gnu();
        header.set_size(content.len() as u64);
        gnu.append_data(&mut header, name, content.as_bytes()).unwrap();
    }
    let mut pax = Builder::new(Vec::new());
    for (name, content) in &tree {
        pax.append_pax_extensions([("mtime", &b"1.5"[..]), ("path", name.as_bytes())]).unwrap();
        add(&mut pax, EntryType::Regular, "short", None, content.as_bytes());
    }
    for bytes in [gnu.into_inner().unwrap(), pax.into_inner().unwrap()] {
        assert_eq!(read(&bytes).unwrap().smt_width(), 2);
    }
}

#[test]
fn hostile_archives_are_refused() {
    let online = "devices/system/cpu/online";
    assert_eq!(
        refusal(&packed([("sys/../../etc/devices/system/cpu/online", "0")])),
        "m.tar is refused: its entry 'sys/../../etc/devices/system/cpu/online' leads out of it"
    );
    assert_eq!(refusal(&packed([("sys/kernel/x", "0")])), "m.tar holds no devices/system/cpu");
    let device = |kind| {
        let mut tar = Builder::new(Vec::new());
        add(&mut tar, kind, online, None, b"");
        refusal(&tar.into_inner().unwrap())
    };
    for kind in [EntryType::Char, EntryType::Block, EntryType::Fifo, EntryType::Directory] {
        assert_eq!(device(kind), "m.tar holds no devices/system/cpu");
    }
    let two = [("a/sys/devices/system/cpu/online", "0"), ("b/sys/devices/system/cpu/online", "0")];
    assert_eq!(
        refusal(&packed(two)),
        "m.tar holds several copies of /sys, 'a/sys/' and 'b/sys/' for example: pack one of them"
    );
    // A copy inside another one is no second one.
    let nested =
        [("sys/devices/system/cpu/online", "0-1"), ("sys/x/devices/system/cpu/online", "0")];
    assert_eq!(read(&packed(nested)).unwrap().cpus(), set("0-1"));
    assert_eq!(
        refusal(&packed([("sys/devices/system/cpu/online", "all")])),
        "m.tar/sys/devices/system/cpu/online holds 'all': not a number at 'all'"
    );
}

#[test]
fn bounds_are_kept() {
    let bounds = Bounds { entries: 100, unpacked: 1 << 20, kept: 10_000 };
    let refusal = |bytes: &[u8]| read_packed(bytes, "m.tar", bounds).unwrap_err().to_string();
    let ends = "; pack only /sys/devices/system";
    // Compressed zeros of a size that no machine has: neither memory nor time is spent on them.
    let mut zeros = Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_path("sys/devices/system/cpu/online").unwrap();
    header.set_size(10 << 30);
    header.set_cksum();
    zeros.append(&header, io::repeat(0).take(4 << 20)).unwrap();
    let zeros = zeros.into_inner().unwrap();
    for bytes in [gzip(&zeros), bzip2(&zeros), zeros] {
        assert_eq!(refusal(&bytes), format!("m.tar is refused: it holds more than 1 MiB{ends}"));
    }
    let many: Vec<String> = (0..101).map(|n| format!("f{n}")).collect();
    let many = packed(many.iter().map(|name| (name.as_str(), "")));
    assert_eq!(refusal(&many), format!("m.tar is refused: it holds more than 100 files{ends}"));
    let large = "x".repeat(10_000);
    let large = packed([("sys/devices/system/cpu/x", large.as_str())]);
    let kept = "0 MiB of devices/system";
    assert_eq!(refusal(&large), format!("m.tar is refused: it holds more than {kept}{ends}"));
}

#[test]
fn packings_are_known_by_their_first_bytes() {
    let xz = [0xfd, b'7', b'z', b'X', b'Z', 0, 0, 4];
    assert_eq!(
        refusal(&xz),
        "m.tar is packed by xz, which is not read here; decompress it (xz -dk FILE), and give the .tar"
    );
    assert!(refusal(b"PK\x03\x04").contains("packed by zip"));
    assert_eq!(Packing::of(b"<?xml version"), None);
    assert_eq!(Packing::of(b""), None);
    assert_eq!(Packing::of(&packed([("a", "b")])), Some(Packing::Tar));
    assert!(refusal(b"text").starts_with("m.tar is no whole archive: "), "{}", refusal(b"text"));
    let half = gzip(&of_line("core:2", "sys/"));
    let half = &half[..half.len() / 2];
    assert!(refusal(half).starts_with("m.tar is no whole archive: "), "{}", refusal(half));
}
