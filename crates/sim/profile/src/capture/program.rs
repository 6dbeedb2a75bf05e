//! Which program a command will execute.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use sha2::{Digest, Sha256};

use super::CaptureError;

/// Scripts that interpret scripts: as deep as the kernel goes.
const DEEPEST: usize = 4;

/// A program and what stands before the command's arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Executable {
    /// The x86-64 executable.
    pub(super) binary: PathBuf,
    /// Arguments before the command's own: for a script, its interpreter's and
    /// the script itself.
    pub(super) before: Vec<OsString>,
}

/// Finds the program of a command as a shell would.
pub(super) fn find(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, CaptureError> {
    let missing = || CaptureError::NoProgram { name: name.to_string_lossy().into_owned() };
    let usable = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if name.as_bytes().contains(&b'/') {
        let path = std::path::absolute(name).map_err(|_| missing())?;
        return Some(path).filter(usable).ok_or_else(missing);
    }
    std::env::split_paths(path.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin")))
        .map(|folder| folder.join(name))
        .filter_map(|path| std::path::absolute(path).ok())
        .find(usable)
        .ok_or_else(missing)
}

/// Follows a program to the x86-64 executable that runs it.
pub(super) fn resolve(program: &Path) -> Result<Executable, CaptureError> {
    let mut binary = program.to_owned();
    let mut before: Vec<OsString> = Vec::new();
    for _ in 0..=DEEPEST {
        let mut head = Vec::new();
        File::open(&binary)
            .and_then(|file| file.take(512).read_to_end(&mut head))
            .map_err(CaptureError::io(format!("read {}", binary.display())))?;
        let Some((interpreter, argument)) = shebang(&head) else {
            is_x86_64(&head).map_err(|why| CaptureError::NotX86 { path: binary.clone(), why })?;
            return Ok(Executable { binary, before });
        };
        let mut words: Vec<OsString> = argument.into_iter().collect();
        words.push(binary.into_os_string());
        words.append(&mut before);
        before = words;
        binary = interpreter;
    }
    Err(CaptureError::NotX86 { path: program.to_owned(), why: "scripts run by scripts".into() })
}

/// The interpreter and argument in the first line of a script.
fn shebang(head: &[u8]) -> Option<(PathBuf, Option<OsString>)> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = line.trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (interpreter, argument) = line.split_at(end);
    let word = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    let argument = argument.trim_ascii();
    Some((PathBuf::from(word(interpreter)), (!argument.is_empty()).then(|| word(argument))))
}

/// Checks the header of an ELF file (see elf(5)).
fn is_x86_64(head: &[u8]) -> Result<(), String> {
    const X86_64: [u8; 2] = [62, 0];
    let Some(rest) = head.strip_prefix(b"\x7fELF") else {
        return Err("it is neither an ELF file nor a script".to_owned());
    };
    if rest.first() != Some(&2) {
        return Err("it is a 32-bit program".to_owned());
    }
    match head.get(18..20) {
        Some(machine) if machine == X86_64 => Ok(()),
        _ => Err("it is for another kind of processor".to_owned()),
    }
}

/// SHA-256 of a file, in hexadecimal digits.
pub(super) fn digest(path: &Path) -> Result<String, CaptureError> {
    let failed = || CaptureError::io(format!("read {}", path.display()));
    let mut file = File::open(path).map_err(failed())?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut buffer).map_err(failed())?;
        match buffer.get(..read) {
            None | Some([]) => break,
            Some(bytes) => hasher.update(bytes),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn executable(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn elf(class: u8, machine: u8) -> Vec<u8> {
        let mut head = b"\x7fELF".to_vec();
        head.extend([class, 1, 1]);
        head.resize(18, 0);
        head.extend([machine, 0]);
        head
    }

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = executable(dir.path(), "tool", &elf(2, 62));
        std::fs::write(dir.path().join("data"), "x").unwrap();
        let search = Some(dir.path().as_os_str());
        assert_eq!(find("tool".as_ref(), search).unwrap(), path);
        assert_eq!(find(path.as_os_str(), None).unwrap(), path);
        for missing in ["data", "none", "./none"] {
            let error = find(missing.as_ref(), search).unwrap_err();
            assert!(matches!(error, CaptureError::NoProgram { .. }), "{missing}");
        }
    }

    #[test]
    fn scripts_lead_to_their_interpreters() {
        let dir = tempfile::tempdir().unwrap();
        let binary = executable(dir.path(), "interpreter", &elf(2, 62));
        let inner =
            executable(dir.path(), "inner", format!("#! {} -x y \nz", binary.display()).as_bytes());
        let outer = executable(dir.path(), "outer", format!("#!{}\n", inner.display()).as_bytes());
        let found = resolve(&outer).unwrap();
        assert_eq!(found.binary, binary);
        assert_eq!(found.before, ["-x y".into(), inner.into_os_string(), outer.into_os_string()]);
        assert_eq!(resolve(&binary).unwrap().before, Vec::<OsString>::new());
    }

    #[test]
    fn what_cannot_be_emulated_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let error = |name: &str, bytes: &[u8]| {
            resolve(&executable(dir.path(), name, bytes)).unwrap_err().to_string()
        };
        assert!(error("a", &elf(1, 3)).contains("32-bit"));
        assert!(error("b", &elf(2, 183)).contains("another kind of processor"));
        assert!(error("c", b"echo").contains("neither"));
        assert!(error("d", b"").contains("neither"));
        let own = dir.path().join("e");
        assert!(error("e", format!("#!{}\n", own.display()).as_bytes()).contains("scripts"));
        assert!(error("f", b"#!\n").contains("cannot read"));
    }

    #[test]
    fn digests_are_sha_256() {
        let dir = tempfile::tempdir().unwrap();
        let path = executable(dir.path(), "abc", b"abc");
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest(&path).unwrap(), known);
    }
}
