//! What `scripts/fetch-lab.sh` fetched, and how to run it from there.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// The lab's folder outside of the checkout, and an architecture of which all is there.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    architecture: &'static str,
}

impl Cache {
    /// The folder, if all that this architecture takes is there; else the reason.
    pub fn find(architecture: &'static str) -> Result<Self, String> {
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
        let cache = Self { folder, architecture };
        let compiler = cache.is_foreign().then(|| cache.compiler());
        for part in [cache.emulator(), cache.kernel_folder()].into_iter().chain(compiler) {
            let complete = part.join("complete");
            if !complete.is_file() {
                let what = complete.display();
                let fetch = format!("scripts/fetch-lab.sh {architecture}");
                return Err(format!("{what} is not there; {fetch} fetches it"));
            }
        }
        Ok(cache)
    }

    /// Rust's name of the architecture.
    pub fn architecture(&self) -> &'static str {
        self.architecture
    }

    /// Must programs be built for it, in addition to those of this machine?
    pub fn is_foreign(&self) -> bool {
        self.architecture != std::env::consts::ARCH
    }

    /// The kernel.
    pub fn kernel(&self) -> PathBuf {
        self.kernel_folder().join("vmlinuz")
    }

    /// What the kernel was built with.
    pub fn kernel_configuration(&self) -> PathBuf {
        self.kernel_folder().join("config")
    }

    /// A compiler and a linker (`rustc` and `ld`) for a foreign architecture.
    pub fn compiler(&self) -> PathBuf {
        self.folder.join(format!("rust-{}", self.architecture))
    }

    /// What the loader of the scheduler is linked with for a foreign architecture, and its headers; none: this
    /// architecture's guests have no such scheduler, or it was not fetched.
    pub fn elf_libraries(&self) -> Option<PathBuf> {
        let folder = self.folder.join(format!("elf-{}", self.architecture));
        folder.join("complete").is_file().then_some(folder)
    }

    /// QEMU.
    pub fn qemu(&self) -> Command {
        let name = match self.architecture {
            "powerpc64le" => "ppc64",
            name => name,
        };
        let mut qemu = self.program(&format!("qemu-system-{name}"));
        for firmware in ["usr/share/qemu", "usr/share/seabios"] {
            qemu.arg("-L").arg(self.emulator().join(firmware));
        }
        qemu
    }

    /// The editor of device trees.
    pub fn fdtput(&self) -> Command {
        self.program("fdtput")
    }

    /// A program next to QEMU, by its own loader and with its own libraries.
    fn program(&self, name: &str) -> Command {
        let root = self.emulator();
        let libraries = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|l| root.join(l));
        let libraries = std::env::join_paths(libraries).expect("no colon in the lab's path");
        let mut program = Command::new(root.join("usr/lib64/ld-linux-x86-64.so.2"));
        program.arg("--library-path").arg(libraries).arg(root.join("usr/bin").join(name));
        program
    }

    fn emulator(&self) -> PathBuf {
        self.folder.join(format!("qemu-{}", self.architecture))
    }

    fn kernel_folder(&self) -> PathBuf {
        self.folder.join(self.architecture)
    }
}
