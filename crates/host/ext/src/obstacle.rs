//! What keeps a machine from having a scheduler in the kernel.

use std::fs;
use std::path::{Path, PathBuf};

/// Functions of the kernel for schedulers that Linux 6.12, the first with `sched_ext`, had not yet.
const FUNCTIONS: [&str; 3] = ["scx_bpf_dsq_insert", "scx_bpf_dsq_move", "scx_bpf_now"];
/// The loader's name.
const LOADER: &str = "symbiont-scx";

/// The program that loads the scheduler: next to this one, else wherever `PATH` finds it; none: it is not installed.
#[must_use]
pub fn loader() -> Option<PathBuf> {
    let next_to_it = std::env::current_exe().ok().map(|own| own.with_file_name(LOADER));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(LOADER));
    next_to_it.into_iter().chain(found).find(|path| path.is_file())
}

/// Why the kernel that runs has no place for a scheduler; none if it has.
#[must_use]
pub fn obstacle() -> Option<String> {
    obstacle_in(Path::new("/sys/kernel"))
}

fn obstacle_in(kernel: &Path) -> Option<String> {
    let folder = kernel.join("sched_ext");
    let Ok(state) = fs::read_to_string(folder.join("state")) else {
        return Some(
            "this kernel has no sched_ext (it takes Linux 6.16 or newer with CONFIG_SCHED_CLASS_EXT)"
                .to_owned(),
        );
    };
    if state.trim() != "disabled" {
        let name = fs::read_to_string(folder.join("root/ops")).unwrap_or_default();
        let name = if name.trim().is_empty() { "another one" } else { name.trim() };
        return Some(format!(
            "a sched_ext scheduler is loaded ({name}), and the kernel has room for one"
        ));
    }
    let Ok(types) = fs::read(kernel.join("btf/vmlinux")) else {
        return Some(
            "this kernel does not describe its types, which libbpf needs (CONFIG_DEBUG_INFO_BTF)"
                .to_owned(),
        );
    };
    let missing = missing_from(&types)?;
    Some(format!("this kernel's sched_ext has no {missing} yet (it takes Linux 6.16 or newer)"))
}

/// The first of the functions that is not among the names in a kernel's description of its types (BTF).
fn missing_from(types: &[u8]) -> Option<&'static str> {
    let mut missing = FUNCTIONS.to_vec();
    for name in types.split(|byte| *byte == 0) {
        missing.retain(|function| function.as_bytes() != name);
    }
    missing.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_says_why_it_has_no_place() {
        let kernel = tempfile::tempdir().unwrap();
        let why = || obstacle_in(kernel.path()).unwrap_or_default();
        assert!(why().contains("no sched_ext"), "{}", why());
        fs::create_dir_all(kernel.path().join("sched_ext/root")).unwrap();
        fs::write(kernel.path().join("sched_ext/state"), "enabled\n").unwrap();
        assert!(why().contains("(another one)"), "{}", why());
        fs::write(kernel.path().join("sched_ext/root/ops"), "rusty\n").unwrap();
        assert!(why().contains("(rusty)"), "{}", why());
        fs::write(kernel.path().join("sched_ext/state"), "disabled\n").unwrap();
        assert!(why().contains("BTF"), "{}", why());
        fs::create_dir(kernel.path().join("btf")).unwrap();
        let names = |list: &[&str]| {
            fs::write(kernel.path().join("btf/vmlinux"), list.join("\0")).unwrap();
        };
        names(&["", "scx_bpf_dsq_insert", "scx_bpf_dsq_move_vtime", ""]);
        assert!(why().contains("has no scx_bpf_dsq_move yet"), "{}", why());
        names(&["", "scx_bpf_now", "scx_bpf_dsq_insert", "int", "scx_bpf_dsq_move", ""]);
        assert_eq!(obstacle_in(kernel.path()), None);
    }
}
