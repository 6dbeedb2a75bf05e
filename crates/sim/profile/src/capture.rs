//! Runs a program under the plugin and makes its profile.
//!
//! # Approach
//! The program runs in qemu's user-mode emulator with the plugin (`symbiont-profile-plugin`). A forked child
//! stays in the emulator, but another program that is executed would run natively, unseen. So where the kernel
//! allows it (Linux 6.7, user namespaces), the command runs in a namespace with binary formats of its own, by
//! which the kernel starts every x86-64 program under the emulator (`follow.sh`). Elsewhere the plugin notes each
//! execution of another program, and [`crate::Profile::gaps`] says what is missing.
//!
//! # Determinism
//! Profiled twice, a command gives the same bytes if it has one thread and one process, and if neither the clock,
//! nor random numbers from the kernel, nor its process id decide what it does. For this its environment is fixed
//! ([`environment`]), the processor is the emulator's most capable one, guest addresses are the emulator's (not
//! randomised), and the random bytes that the kernel hands to a new program are seeded. Since version 8.1, QEMU
//! leaves addresses to the kernel, which then must not randomise them. That works since 9.0, provided that
//! `setarch` may be used, which containers may forbid. Profiles of a program by different versions of QEMU are
//! equal except for where the stack lies; for the reported capabilities of the processor, by which libraries
//! choose their code; and for what QEMU no longer reports since 9.1: the accesses of instructions that save or
//! load x87's registers or all of the processor's state.
//!
//! Two things remain. The loader looks for the program's libraries in a cache of all that the machine has
//! (`/etc/ld.so.cache`), which takes a few instructions more or fewer as that cache grows, unless
//! `LD_LIBRARY_PATH` among the variables names their folders. And some programs ask which signals the caller
//! ignores: `nohup` ignores some, and so do shells for what runs in the background.
//!
//! Threads that wait for each other do so in another order each time. So profiles of a program with several
//! threads differ: instructions, micro-operations of each class, mispredictions and misses per instruction by at
//! most 2 %, or by 0.0002 per instruction where that is more (`threads_are_observed_again_within_two_percent`).
//! Programs that spin while they wait, or hand out work to whichever thread asks first, may differ by any amount.

mod cluster;
mod emulator;
mod error;
mod gather;
mod program;
mod traced;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{getgid, getuid};
use tempfile::TempDir;

use crate::raw::RawFile;
use crate::vectors::{Geometry, Hierarchy, Vectors};
use crate::{Profile, trace};
pub use error::CaptureError;
use gather::About;
use program::Executable;
pub use traced::Windows;

/// How often to check whether the program has ended, and after how many checks
/// progress is reported again.
const CHECK_EVERY: Duration = Duration::from_millis(20);
const CHECKS: u32 = 50;
/// Starts a command where children's programs are followed.
const FOLLOW: &str = include_str!("capture/follow.sh");
/// The emulator's file name.
const EMULATOR: &str = "qemu-x86_64";
/// File name of the plugin.
pub const PLUGIN: &str = "libsymbiont_profile_plugin.so";

/// Versions of QEMU's plugin interface that the plugin can export, the newest first. Each QEMU supports one or
/// more of them, and any that it supports will do: see the plugin's `interface`.
pub const INTERFACES: [i32; 3] = [7, 2, 1];

/// File name of the link to the plugin through which it exports this version. All these names have the same
/// length.
pub fn plugin_link(version: i32) -> String {
    format!("plug-{version}.so")
}

/// A program to be profiled.
#[derive(Debug, Clone)]
pub struct Capture {
    /// The command; its first word is looked up in PATH.
    pub command: Vec<OsString>,
    /// What the profile calls it; the program's file name if none.
    pub name: Option<String>,
    /// Variables in addition to those of [`environment`], which they override.
    pub variables: Vec<(OsString, OsString)>,
    /// The plugin.
    pub plugin: PathBuf,
    /// Instructions of an interval; none: the plugin's default of 50 million.
    pub interval: Option<u64>,
    /// Where the program's standard output goes; the caller's if none.
    pub stdout: Option<PathBuf>,
}

/// The environment of profiled programs: nothing of the caller's, since its
/// size moves their stacks, and fixed seeds for hashes that are random by default.
pub fn environment() -> Vec<(OsString, OsString)> {
    [
        ("HOME", "/"),
        ("LC_ALL", "C"),
        ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/games"),
        ("PERL_HASH_SEED", "0"),
        ("PERL_PERTURB_KEYS", "0"),
        ("PYTHONHASHSEED", "0"),
        ("TZ", "UTC"),
    ]
    .map(|(name, value)| (OsString::from(name), OsString::from(value)))
    .to_vec()
}

/// SHA-256 of the executable that runs for a command's first word, in hexadecimal digits: the interpreter's for a
/// script. `path`: where programs are looked for, as the variable PATH.
///
/// # Errors
/// When there is no such program, or it is of no kind that can be captured, or cannot be read.
pub fn executable_digest(name: &OsStr, path: Option<&OsStr>) -> Result<String, CaptureError> {
    program::digest(&program::resolve(&program::find(name, path)?)?.binary)
}

/// The plugin's file: next to `executable`, or where packages put it from there.
///
/// # Errors
/// [`CaptureError::NoPlugin`] if it is at none of these places.
pub fn plugin_next_to(executable: &Path) -> Result<PathBuf, CaptureError> {
    let folder = executable.parent().unwrap_or(Path::new("."));
    // cargo always writes to deps, and links it next to symbiont in builds only.
    let places = ["deps", ".", "../lib/symbiont", "../lib"];
    let mut candidates = places.iter().map(|place| folder.join(place).join(PLUGIN));
    candidates
        .find_map(|path| path.canonicalize().ok())
        .ok_or_else(|| CaptureError::NoPlugin { path: folder.join(PLUGIN) })
}

/// What a run needs, in a folder that is removed afterwards.
struct Scratch {
    dir: TempDir,
}

impl Scratch {
    /// Its name always has the same length, since it stands in the environment of
    /// the profiled program. The plugin is linked into it for the same reason,
    /// once for each version of the interface.
    fn new(plugin: &Path) -> Result<Self, CaptureError> {
        let make = || -> io::Result<TempDir> {
            let dir = tempfile::Builder::new().prefix("symbiont-").rand_bytes(8).tempdir()?;
            for version in INTERFACES {
                symlink(plugin, dir.path().join(plugin_link(version)))?;
            }
            for folder in ["raw", "try", "try/raw"] {
                fs::create_dir(dir.path().join(folder))?;
            }
            Ok(dir)
        };
        make().map(|dir| Self { dir }).map_err(CaptureError::io("make a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The plugin and its arguments, as the emulator wants them: a comma in a
    /// value is doubled.
    fn plugin_option(&self, version: i32, folder: &str, interval: Option<u64>) -> OsString {
        let comma = |path: PathBuf| path.to_string_lossy().replace(',', ",,");
        let (plugin, raw) = (comma(self.path(&plugin_link(version))), comma(self.path(folder)));
        let budget = interval.map_or(String::new(), |interval| format!(",budget={interval}"));
        format!("file={plugin},dir={raw}{budget}").into()
    }
}

/// How the command is started.
enum Start {
    /// By the kernel, which starts all programs under the emulator.
    Followed,
    /// Under the emulator; why children's programs are not followed.
    Alone(String),
}

impl Capture {
    /// Runs the program to its end and makes its profile. It has the caller's
    /// standard input and error and working directory. About once a second `progress` receives
    /// how many instructions were observed so far.
    ///
    /// # Errors
    /// When there is no emulator with plugins, the program cannot be found,
    /// emulated or fails, or its profile cannot be made.
    pub fn run(&self, progress: impl FnMut(u64)) -> Result<Profile, CaptureError> {
        let ran = self.prepare()?.run("", progress)?;
        gather::profile(&ran.files()?, self.about(&ran)?)
    }

    /// Runs the program to its end, as above, and writes the trace `path`: windows of the phases that its profile
    /// has. Gives what the trace was taken of.
    ///
    /// # Errors
    /// As [`Capture::run`]; when the profile is of another executable, or no window
    /// could be traced or written.
    pub fn trace(
        &self,
        profile: &Profile,
        windows: Windows,
        path: &Path,
        progress: impl FnMut(u64),
    ) -> Result<trace::About, CaptureError> {
        let prepared = self.prepare()?;
        let digest = program::digest(&prepared.executable.binary)?;
        if digest != profile.digest {
            let (program, profiled) = (prepared.file_name(), profile.digest.clone());
            return Err(CaptureError::OtherProgram { program, digest, profiled });
        }
        let places = windows.places(profile);
        let ran = prepared.run(&format!(",{}", windows.argument(profile, &places)), progress)?;
        let files = ran.files()?;
        windows.write(path, &files, &places, profile, self.about(&ran)?)
    }

    /// Runs the program to its end, as above, while these caches are simulated. Gives what it did to each region
    /// of them.
    ///
    /// # Errors
    /// As [`Capture::run`].
    pub fn vectors(
        &self,
        hierarchy: &Hierarchy,
        progress: impl FnMut(u64),
    ) -> Result<Vectors, CaptureError> {
        let Hierarchy { l1d, l1i, l2 } = hierarchy;
        let of = |cache: &Geometry| format!("{}:{}:{}", cache.sets, cache.ways, cache.line);
        let caches = [l1d, l1i, l2].map(of).join("+");
        let ran = self.prepare()?.run(&format!(",caches={caches}"), progress)?;
        gather::vectors(&ran.files()?, hierarchy, self.about(&ran)?)
    }

    /// Finds all that it takes to run the program.
    fn prepare(&self) -> Result<PreparedProgram<'_>, CaptureError> {
        let Some((name, arguments)) = self.command.split_first() else {
            return Err(CaptureError::NoProgram { name: String::new() });
        };
        let path = std::env::var_os("PATH");
        let emulator = program::find(EMULATOR.as_ref(), path.as_deref())
            .map_err(|_| CaptureError::NoEmulator)?;
        let program = program::find(name, path.as_deref())?;
        let executable = program::resolve(&program)?;
        let scratch = Scratch::new(&self.plugin)?;
        if !self.plugin.is_file() {
            return Err(CaptureError::NoPlugin { path: self.plugin.clone() });
        }
        let interface = emulator::interface(&emulator, &self.plugin, &scratch)?;
        let start = match try_following(&emulator, &scratch) {
            Ok(()) => Start::Followed,
            Err(why) => Start::Alone(why),
        };
        let capture = self;
        Ok(PreparedProgram {
            capture,
            emulator,
            interface,
            program,
            arguments,
            executable,
            scratch,
            start,
        })
    }

    fn about(&self, ran: &PreparedProgram<'_>) -> Result<About, CaptureError> {
        Ok(About {
            program: self.name.clone().unwrap_or_else(|| ran.file_name()),
            command: self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            digest: program::digest(&ran.executable.binary)?,
            not_followed: match &ran.start {
                Start::Followed => None,
                Start::Alone(why) => Some(why.clone()),
            },
        })
    }
}

/// A program with everything that a run of it needs.
struct PreparedProgram<'a> {
    capture: &'a Capture,
    emulator: PathBuf,
    /// The version of the plugin interface.
    interface: i32,
    program: PathBuf,
    arguments: &'a [OsString],
    executable: Executable,
    scratch: Scratch,
    start: Start,
}

impl PreparedProgram<'_> {
    /// Runs it to its end; `traced`: the plugin's options in addition to the usual ones.
    fn run(self, traced: &str, mut progress: impl FnMut(u64)) -> Result<Self, CaptureError> {
        let Self { capture, emulator, interface, program, arguments, executable, scratch, start } =
            &self;
        let command = match start {
            Start::Followed => {
                let mut command = followed(emulator, scratch.dir.path());
                command.arg(program).args(*arguments);
                command
            }
            Start::Alone(_) => alone(emulator, executable, program, arguments),
        };
        let mut command = emulator::at_fixed_addresses(command, *interface);
        let mut option = scratch.plugin_option(*interface, "raw", capture.interval);
        option.push(traced);
        command.env_clear().envs(environment());
        command.envs(emulator::variables(*interface).iter().copied());
        command.envs(capture.variables.iter().map(|(name, value)| (name, value)));
        command.env("QEMU_CPU", "max").env("QEMU_RAND_SEED", "1").env("QEMU_PLUGIN", option);
        if let Some(path) = &capture.stdout {
            let file = symbiont_safe_open::output::create(path);
            command.stdout(file.map_err(CaptureError::io(format!("write {}", path.display())))?);
        }
        let child = command.spawn().map_err(CaptureError::io("start the emulator"))?;
        let status = wait(child, || progress(gather::instructions(&scratch.path("raw"))))?;
        if status.success() {
            Ok(self)
        } else {
            Err(CaptureError::Failed { program: self.file_name(), status })
        }
    }

    fn file_name(&self) -> String {
        let name = self.program.file_name().unwrap_or(self.program.as_os_str());
        name.to_string_lossy().into_owned()
    }

    fn files(&self) -> Result<Vec<RawFile>, CaptureError> {
        gather::files(&self.scratch.path("raw"))
    }
}

/// Waits for the end of the program.
fn wait(mut child: Child, mut progress: impl FnMut()) -> Result<ExitStatus, CaptureError> {
    let mut checks = 0;
    loop {
        let ended = child.try_wait().map_err(CaptureError::io("wait for the program"))?;
        if let Some(status) = ended {
            return Ok(status);
        }
        checks += 1;
        if checks % CHECKS == 0 {
            progress();
        }
        std::thread::sleep(CHECK_EVERY);
    }
}

/// Tries the namespace with a command that does nothing. The error says in words
/// why children's programs cannot be followed.
fn try_following(emulator: &Path, scratch: &Scratch) -> Result<(), String> {
    let output = followed(emulator, &scratch.path("try"))
        .args(["/bin/sh", "-c", ":"])
        .env_remove("QEMU_PLUGIN")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("unshare(1): {error}"))?;
    let stands = scratch.path("try/following").exists();
    if output.status.success() && stands {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.trim().lines().last().unwrap_or("no reason given");
    Err(format!("the kernel does not grant binary formats of one's own (Linux 6.7): {last}"))
}

/// Starts what is appended so that all programs are followed.
fn followed(emulator: &Path, scratch: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "/bin/sh", "-c", FOLLOW, "sh"]);
    command.arg(scratch).arg(emulator);
    command.arg(getuid().as_raw().to_string()).arg(getgid().as_raw().to_string());
    command
}

/// Starts a program under the emulator.
fn alone(
    emulator: &Path,
    executable: &Executable,
    program: &Path,
    arguments: &[OsString],
) -> Command {
    let mut command = Command::new(emulator);
    let is_script = !executable.before.is_empty();
    command.arg("-0").arg(if is_script { executable.binary.as_path() } else { program });
    command.arg(&executable.binary);
    command.args(&executable.before).args(arguments);
    command
}
