//! Why a program cannot be profiled.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use crate::ProfileError;
use crate::trace::TraceError;

/// Why a capture gave no profile.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// There is no emulator.
    #[error(
        "qemu-x86_64 was not found: profiling needs QEMU's user-mode emulator with plugins; \
         install the package qemu-user (Debian, Ubuntu: apt install qemu-user; \
         Fedora: dnf install qemu-user; Arch: pacman -S qemu-user)"
    )]
    NoEmulator,
    /// The emulator does not take the plugin.
    #[error(
        "{}: this QEMU does not load the profiling plugin {}: {why}; \
         it must be one with plugins, version 6.2 or later",
        emulator.display(),
        plugin.display()
    )]
    Plugin {
        /// The emulator.
        emulator: PathBuf,
        /// The plugin.
        plugin: PathBuf,
        /// What it said.
        why: String,
    },
    /// The emulator has no plugins.
    #[error(
        "{}: this QEMU ignores plugins, as static ones do, such as the package qemu-user of Debian 13 and Ubuntu 24.04 \
         and later; scripts/build-emulator.sh of Symbiont's source builds one with plugins, which must come first in PATH",
        emulator.display()
    )]
    NoPlugins {
        /// The emulator.
        emulator: PathBuf,
    },
    /// The plugin's file is not where it is looked for.
    #[error(
        "the profiling plugin {} is missing: it is built together with symbiont \
         (cargo build --release --workspace) and lies next to it",
        path.display()
    )]
    NoPlugin {
        /// Where it was looked for last.
        path: PathBuf,
    },
    /// The command names no program.
    #[error("{name}: no such program")]
    NoProgram {
        /// The command's first word.
        name: String,
    },
    /// The program cannot be emulated.
    #[error("{}: only x86-64 programs and scripts for them can be profiled: {why}", path.display())]
    NotX86 {
        /// The program.
        path: PathBuf,
        /// What it is instead.
        why: String,
    },
    /// A file or process cannot be handled.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// What the plugin wrote cannot be read.
    #[error("{}: cannot read what the plugin wrote: {source}", path.display())]
    Scratch {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The program failed, so what it did is not what it normally does.
    #[error(
        "{program} ended with {status}, so no profile was made; \
         if that is how it should end, profile sh -c '…; true'"
    )]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// Nothing was executed under the plugin.
    #[error("the program executed nothing that could be observed")]
    NothingRan,
    /// The profile would be longer than a profile file may be.
    #[error(
        "the profile would be longer than 512 KiB: the program has {threads} threads; \
         profile a part of its work"
    )]
    TooLong {
        /// Threads of the program.
        threads: usize,
    },
    /// The profile contradicts itself.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The profile that says where to trace is of another executable.
    #[error(
        "{program} is not the executable that was profiled (SHA-256 {digest}, not {profiled}): \
         make its profile anew"
    )]
    OtherProgram {
        /// The program.
        program: String,
        /// Its digest.
        digest: String,
        /// That in the profile.
        profiled: String,
    },
    /// Nothing was traced.
    #[error("the program ended before any window of it could be traced: make its profile anew")]
    NoWindow,
    /// The trace cannot be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl CaptureError {
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
