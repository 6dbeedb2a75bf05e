//! What `scripts/fetch-lab.sh` fetched, and how to run QEMU from there.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// The lab's folder outside of the checkout.
#[derive(Debug, Clone)]
pub struct Cache(PathBuf);

impl Cache {
    /// The folder, if all of it is there; else the reason.
    pub fn find() -> Result<Self, String> {
        if !cfg!(target_arch = "x86_64") {
            return Err("QEMU is fetched for x86-64 machines only".to_owned());
        }
        let variable = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
        let folder = variable("SYMBIONT_LAB").map(PathBuf::from).or_else(|| {
            let base = variable("XDG_CACHE_HOME").map(PathBuf::from);
            let base = base.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")));
            Some(base?.join("symbiont-lab"))
        });
        let folder = folder.ok_or("there is no home directory to look for the lab in")?;
        for part in ["qemu", "x86_64"] {
            let complete = folder.join(part).join("complete");
            if !complete.is_file() {
                let what = complete.display();
                return Err(format!("{what} is not there; scripts/fetch-lab.sh fetches the lab"));
            }
        }
        Ok(Self(folder))
    }

    /// The kernel for an architecture.
    pub fn kernel(&self, architecture: &str) -> PathBuf {
        self.0.join(architecture).join("vmlinuz")
    }

    /// QEMU for an architecture, by its own loader and with its own libraries.
    pub fn qemu(&self, architecture: &str) -> Command {
        let root = self.0.join("qemu");
        let libraries = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|l| root.join(l));
        let libraries = std::env::join_paths(libraries).expect("no colon in the lab's path");
        let mut qemu = Command::new(root.join("usr/lib64/ld-linux-x86-64.so.2"));
        qemu.arg("--library-path").arg(libraries);
        qemu.arg(root.join("usr/bin").join(format!("qemu-system-{architecture}")));
        for firmware in ["usr/share/qemu", "usr/share/seabios"] {
            qemu.arg("-L").arg(root.join(firmware));
        }
        qemu
    }
}
