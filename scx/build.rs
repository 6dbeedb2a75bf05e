//! Compiles the scheduler for the kernel's virtual machine.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Debian's names of clang, the newest first; older ones do not know the kernel's iterators.
const COMPILERS: [&str; 6] = ["clang", "clang-21", "clang-20", "clang-19", "clang-17", "clang-16"];
const OLDEST: u32 = 16;

fn version(compiler: &str) -> Option<u32> {
    let output = Command::new(compiler).arg("-dumpversion").output().ok()?;
    String::from_utf8(output.stdout).ok()?.split('.').next()?.trim().parse().ok()
}

fn main() {
    println!("cargo:rerun-if-changed=src/bpf");
    let compiler = COMPILERS
        .into_iter()
        .find(|name| version(name).is_some_and(|version| version >= OLDEST))
        .unwrap_or_else(|| {
            panic!("symbiont-scx is built with clang {OLDEST} or newer, which is not here")
        });
    let folder = |name: &str| {
        PathBuf::from(env::var_os(name).unwrap_or_else(|| panic!("cargo sets no {name}")))
    };
    let object = folder("OUT_DIR").join("partner.bpf.o");
    let status = Command::new(compiler)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-I"])
        .arg(folder("DEP_BPF_INCLUDE"))
        .args(["-c", "src/bpf/partner.bpf.c", "-o"])
        .arg(&object)
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{compiler} does not compile the scheduler"
    );
}
