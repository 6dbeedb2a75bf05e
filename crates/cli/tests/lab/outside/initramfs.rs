//! Builds an initramfs: an archive in the "newc" form that the kernel unpacks
//! (Documentation/driver-api/early-userspace/buffer-format.rst).

use std::collections::BTreeSet;
use std::path::Path;

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const DEVICE: u32 = 0o020_600;
/// Major and minor number of /dev/console.
const CONSOLE: (u32, u32) = (5, 1);

/// An archive that grows.
#[derive(Debug, Default)]
pub struct Initramfs {
    bytes: Vec<u8>,
    folders: BTreeSet<String>,
    files: BTreeSet<String>,
    entries: u32,
}

impl Initramfs {
    /// The folders and devices that init must find.
    pub fn new() -> Self {
        let mut archive = Self::default();
        for folder in ["proc", "sys", "dev", "tmp", "lab"] {
            archive.folder(folder);
        }
        archive.entry("dev/console", DEVICE, &[], CONSOLE);
        archive
    }

    /// Adds a file under an absolute path, with the folders above it; what is there stays.
    pub fn file(&mut self, path: &Path, content: &[u8]) {
        let name = path.to_str().expect("UTF-8").trim_start_matches('/').to_owned();
        for (end, _) in name.match_indices('/') {
            self.folder(&name[..end]);
        }
        if self.files.insert(name.clone()) {
            self.entry(&name, PROGRAM, content, (0, 0));
        }
    }

    /// The whole archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[], (0, 0));
        self.bytes
    }

    fn folder(&mut self, name: &str) {
        if self.folders.insert(name.to_owned()) {
            self.entry(name, FOLDER, &[], (0, 0));
        }
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8], device: (u32, u32)) {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("less than 4 GiB");
        let named = u32::try_from(name.len() + 1).expect("a short name");
        // inode, mode, uid, gid, links, mtime, size, device of the file, device it is, name, sum
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, named, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}
