//! The programs that go into a guest: this machine's, or built for the guest.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::cache::Cache;
use super::initramfs::Initramfs;
use crate::inside::{INIT, rivals};

/// Symbiont, and this test as the guest's init.
struct Programs {
    symbiont: PathBuf,
    init: PathBuf,
}

/// The loader of the scheduler in the kernel, in this checkout; it is built by `make scx`.
const LOADER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scx/target/release/symbiont-scx");
/// The loader's package.
const LOADER_MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scx/Cargo.toml");
/// Compilers of C for any architecture, as `scx/build.rs` looks for them.
const CLANGS: [&str; 6] = ["clang", "clang-21", "clang-20", "clang-19", "clang-17", "clang-16"];

/// Two functions of its own are missing from Debian's static libelf. They begin and end a tree of what is read from a
/// file; the loader's object is in memory, and the tree is all zeros: a function that does nothing will do.
const UNUSED_BY_LIBELF: [&str; 2] = [
    "link-arg=--defsym=eu_search_tree_init=getuid",
    "link-arg=--defsym=eu_search_tree_fini=getuid",
];

/// Other schedulers, in this checkout; they are built by `scripts/rivals.sh`.
const RIVALS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/rivals/bin");

/// Adds the other schedulers that are built, and what they read of the kernel.
pub fn add_rivals(archive: &mut Initramfs, cache: &Cache) -> Result<(), String> {
    if let Ok(text) = std::fs::read(cache.kernel_configuration()) {
        archive.file(Path::new(rivals::CONFIGURATION), &text);
    }
    for name in rivals::NAMES {
        let program = Path::new(RIVALS).join(name);
        if program.is_file() {
            add_own(archive, &program, &Path::new(rivals::FOLDER).join(name))?;
        }
    }
    Ok(())
}

/// Adds both programs, symbiont where the tests in the guest look for it, and what
/// they load.
pub fn add(archive: &mut Initramfs, cache: &Cache) -> Result<(), String> {
    let io = |why: std::io::Error| why.to_string();
    let foreign = cache.is_foreign();
    let programs = if foreign { build(cache)? } else { own()? };
    let Programs { symbiont, init } = &programs;
    for (program, path) in [(symbiont, symbiont.as_path()), (init, Path::new(INIT))] {
        if foreign {
            // Linked as they are needed here.
            archive.file(path, &std::fs::read(program).map_err(io)?);
        } else {
            add_own(archive, program, path)?;
        }
    }
    if !Path::new(LOADER).is_file() {
        return Ok(());
    }
    for program in [symbiont, Path::new(INIT)] {
        let path = program.with_file_name("symbiont-scx");
        if !foreign {
            add_own(archive, Path::new(LOADER), &path)?;
        } else if let Some(libraries) = cache.elf_libraries() {
            let loader = build_loader(cache, &libraries)?;
            archive.file(&path, &std::fs::read(loader).map_err(io)?);
        }
    }
    Ok(())
}

/// Adds a program of this machine under a path, and what it loads.
pub fn add_own(archive: &mut Initramfs, program: &Path, path: &Path) -> Result<(), String> {
    archive.file(path, &stripped(program)?);
    for library in libraries_of(program)? {
        archive.file(&library, &std::fs::read(&library).map_err(|why| why.to_string())?);
    }
    Ok(())
}

fn own() -> Result<Programs, String> {
    let symbiont = PathBuf::from(env!("CARGO_BIN_EXE_symbiont"));
    let init = std::env::current_exe().map_err(|why| why.to_string())?;
    Ok(Programs { symbiont, init })
}

/// Builds both for the guest's architecture, statically linked. What only research needs is left out.
fn build(cache: &Cache) -> Result<Programs, String> {
    let mut cargo = cargo_for(cache, &[]);
    let package = env!("CARGO_PKG_NAME");
    cargo
        .args(["--no-default-features", "--profile", "guest", "-p", package])
        .args(["--bin", "symbiont", "--test", "lab"]);
    let built = Built::by(cargo, cache)?;
    Ok(Programs { symbiont: built.executable("symbiont")?, init: built.executable("lab")? })
}

/// Builds the loader of the scheduler; its C by clang, which compiles for any architecture.
fn build_loader(cache: &Cache, libraries: &Path) -> Result<PathBuf, String> {
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let clang = CLANGS.into_iter().find(runs).ok_or("no clang, which builds symbiont-scx")?;
    let architecture = cache.architecture();
    let target = target(cache).replace('-', "_");
    let folder = libraries.join(format!("usr/lib/{architecture}-linux-gnu"));
    let libraries_in = folder.to_string_lossy();
    // libelf reads what is compressed, too.
    let mut flags = vec!["-C", "link-arg=-lzstd"];
    for flag in UNUSED_BY_LIBELF {
        flags.extend(["-C", flag]);
    }
    flags.extend(["-L", &libraries_in]);
    let mut cargo = cargo_for(cache, &flags);
    cargo
        .args(["--release", "--manifest-path", LOADER_MANIFEST])
        .args(["--features", "libbpf-sys/static"])
        .env(format!("CC_{target}"), clang)
        .env(
            format!("CFLAGS_{target}"),
            format!("--target={architecture}-linux-gnu --sysroot={}", libraries.display()),
        )
        .env(format!("LIBBPF_SYS_LIBRARY_PATH_{target}"), &folder);
    Built::by(cargo, cache)?.executable("symbiont-scx")
}

fn target(cache: &Cache) -> String {
    format!("{}-unknown-linux-gnu", cache.architecture())
}

/// `cargo build` for the guest's architecture, by the compiler that was fetched for it; cargo is this machine's.
fn cargo_for(cache: &Cache, flags: &[&str]) -> Command {
    let target = target(cache);
    let linker = format!("CARGO_TARGET_{}_LINKER", target.replace('-', "_").to_uppercase());
    let usual = ["-C", "target-feature=+crt-static", "-C", "linker-flavor=ld"];
    // One for all architectures: what is built for this machine is built once.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--locked", "--message-format", "json-render-diagnostics"])
        .args(["--target", &target, "--target-dir"])
        .arg(folder)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("RUSTC", cache.compiler().join("rustc"))
        .env(linker, cache.compiler().join("ld"))
        .env("CARGO_ENCODED_RUSTFLAGS", [&usual, flags].concat().join("\x1f"))
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    cargo
}

/// What cargo reported of a build.
struct Built {
    said: String,
    target: String,
}

impl Built {
    fn by(mut cargo: Command, cache: &Cache) -> Result<Self, String> {
        let target = target(cache);
        let done = cargo.output().map_err(|why| format!("cargo does not start: {why}"))?;
        if !done.status.success() {
            return Err(format!("cargo builds nothing for {target}: {}", done.status));
        }
        Ok(Self { said: String::from_utf8_lossy(&done.stdout).into_owned(), target })
    }

    fn executable(&self, name: &str) -> Result<PathBuf, String> {
        let built = |line: &str| {
            let message: Value = serde_json::from_str(line).ok()?;
            let path = message["executable"].as_str()?;
            (message["target"]["name"] == name).then(|| PathBuf::from(path))
        };
        let found = self.said.lines().find_map(built);
        found.ok_or(format!("cargo reports no {name} for {}", self.target))
    }
}

/// A program without its symbols, where there is a tool for that.
fn stripped(program: &Path) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let small = folder.path().join("small");
    let done = Command::new("strip").arg("-o").arg(&small).arg(program).status();
    let path = if done.is_ok_and(|status| status.success()) { &small } else { program };
    std::fs::read(path).map_err(|why| why.to_string())
}

/// The shared libraries and the loader of a program, as `ldd` reports.
fn libraries_of(program: &Path) -> Result<Vec<PathBuf>, String> {
    let output = Command::new("ldd").arg(program).output();
    let output = output.map_err(|why| format!("ldd does not start: {why}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // `libc.so.6 => /lib/libc.so.6 (0x…)` and `/lib64/ld-linux.so.2 (0x…)`
    let path =
        |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    Ok(text.lines().filter_map(path).collect())
}
