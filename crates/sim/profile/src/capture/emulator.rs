//! Finds out which version of its plugin interface an emulator accepts.
//!
//! # Problem
//! A QEMU refuses a plugin of a version that it does not support before the plugin can say anything, and no
//! version is supported by all. Some have no plugins at all, and ignore the option that asks for one.
//!
//! # Approach
//!
//! ```text
//! for each version that there is, the newest first:
//!     run a command that does nothing with the plugin of that version
//!     the plugin wrote something  →  that version
//! ```
//!
//! Since QEMU 8.1, a program's addresses depend on where the kernel maps things. Where it can be asked to, the
//! kernel uses the same places each time ([`at_fixed_addresses`]).
//!
//! # Properties
//! - An emulator without plugins is reported as such (`an_emulator_without_plugins_is_reported`).
//! - The reason why none is taken is the one that is not about versions, if there is one
//!   (`the_reason_is_the_one_that_is_not_about_versions`).

use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::{CaptureError, INTERFACES, Scratch};

/// Which version of the interface this emulator takes. Each try writes to the folder `try/raw`.
pub(super) fn interface(
    emulator: &Path,
    plugin: &Path,
    scratch: &Scratch,
) -> Result<i32, CaptureError> {
    let mut reasons = Vec::new();
    for version in INTERFACES {
        let output = Command::new(emulator)
            .args(["/bin/sh", "-c", ":"])
            .env("QEMU_PLUGIN", scratch.plugin_option(version, "try/raw", None))
            .stdin(Stdio::null())
            .output()
            .map_err(CaptureError::io(format!("start {}", emulator.display())))?;
        let wrote = scratch.path("try/raw/000000.raw").exists();
        match outcome(&output, wrote) {
            Outcome::Taken => return Ok(version),
            Outcome::Ignored => {
                return Err(CaptureError::NoPlugins { emulator: emulator.to_owned() });
            }
            Outcome::Refused(why) => reasons.push(why),
        }
    }
    let (emulator, plugin) = (emulator.to_owned(), plugin.to_owned());
    Err(CaptureError::Plugin { emulator, plugin, why: reason(&reasons) })
}

/// What an emulator did with a plugin.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// It loaded it, and the program ran.
    Taken,
    /// The program ran, but not the plugin.
    Ignored,
    /// It stopped, for this reason.
    Refused(String),
}

fn outcome(output: &Output, wrote: bool) -> Outcome {
    match (output.status.success(), wrote) {
        (true, true) => Outcome::Taken,
        (true, false) => Outcome::Ignored,
        (false, _) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.trim().lines().last();
            Outcome::Refused(last.map_or_else(|| output.status.to_string(), str::to_owned))
        }
    }
}

/// Why none was taken.
fn reason(reasons: &[String]) -> String {
    let other = reasons.iter().find(|why| !why.contains("API version"));
    other.or(reasons.first()).cloned().unwrap_or_default()
}

/// The first version of the interface whose QEMU leaves it to the kernel where the program's stack and mapped memory
/// lie, which puts them elsewhere each time.
const KERNEL_PLACES: i32 = 2;

/// The command with addresses that are the same each time, as far as this machine allows it; the emulator takes this
/// version of the interface.
pub(super) fn at_fixed_addresses(command: Command, version: i32) -> Command {
    let mut fixed = Command::new("setarch");
    fixed.arg("--addr-no-randomize");
    let try_it = || Command::new("setarch").args(["--addr-no-randomize", "true"]).output();
    // Containers may forbid it.
    if version < KERNEL_PLACES || !try_it().is_ok_and(|output| output.status.success()) {
        return command;
    }
    fixed.arg(command.get_program()).args(command.get_args());
    fixed
}

/// Variables for this: the emulator's threads have no heaps of their own, which would lie before or behind the stack
/// depending on which is first. The program does not get to see this.
pub(super) fn variables(version: i32) -> &'static [(&'static str, &'static str)] {
    if version < KERNEL_PLACES {
        return &[];
    }
    &[("GLIBC_TUNABLES", "glibc.malloc.arena_max=1"), ("QEMU_UNSET_ENV", "GLIBC_TUNABLES")]
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{ExitStatus, Output};

    use super::{Outcome, outcome, reason};

    fn ended(status: i32, said: &str) -> Output {
        let status = ExitStatus::from_raw(status);
        Output { status, stdout: Vec::new(), stderr: said.into() }
    }

    #[test]
    fn an_emulator_without_plugins_is_reported() {
        assert_eq!(outcome(&ended(0, ""), true), Outcome::Taken);
        assert_eq!(outcome(&ended(0, "a warning"), false), Outcome::Ignored);
        let refused = Outcome::Refused("second".into());
        assert_eq!(outcome(&ended(256, "first\nsecond\n"), false), refused);
        let Outcome::Refused(why) = outcome(&ended(11, ""), true) else { panic!("not refused") };
        assert!(why.contains("signal"), "{why}");
    }

    #[test]
    fn the_reason_is_the_one_that_is_not_about_versions() {
        let version = "plugin requires API version 7, but this QEMU supports only up to version 4";
        let reasons = [version.to_owned(), "undefined symbol".to_owned(), version.to_owned()];
        assert_eq!(reason(&reasons), "undefined symbol");
        assert_eq!(reason(&reasons[..1]), version);
        assert_eq!(reason(&[]), "");
    }
}
