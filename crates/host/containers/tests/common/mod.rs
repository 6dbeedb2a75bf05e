//! State folders as the runtimes write them, below a folder of this test.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a failed test panics; not each test uses all of it"
)]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use symbiont_containers::{Containers, Folders, Identity, Owner};

pub const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
pub const OTHER: &str = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";
pub const POD: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

pub struct Host {
    pub folder: tempfile::TempDir,
    pub containers: Containers,
    pub now: Instant,
}

/// Root's processes.
pub fn root() -> Owner {
    Owner { uid: 0, home: None }
}

/// All state folders below one, where files of the user of this test count as root's.
pub fn folders_below(root: &Path) -> Folders {
    Folders { root: root.to_owned(), superuser: own_uid(), ..Folders::default() }
}

impl Host {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let containers = Containers::new(folders_below(folder.path()));
        Self { folder, containers, now: Instant::now() }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    pub fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub fn bundle(&self, path: &str, cgroup: &str, annotations: &Value) -> PathBuf {
        let bundle = json!({ "annotations": annotations, "linux": { "cgroupsPath": cgroup } });
        self.write(path, &bundle.to_string())
    }

    pub fn identify(&mut self, cgroup: &str, owner: &Owner) -> Option<Arc<Identity>> {
        self.containers.identify(&format!("0::{cgroup}\n"), owner, self.now)
    }

    pub fn notes(&mut self) -> Vec<String> {
        let notes = self.containers.take_notes();
        notes.into_iter().map(|note| format!("{}: {}", note.cgroup, note.error)).collect()
    }
}

pub fn is_root() -> bool {
    own_uid() == 0
}

pub fn own_uid() -> u32 {
    fs::metadata("/proc/self").unwrap().uid()
}
