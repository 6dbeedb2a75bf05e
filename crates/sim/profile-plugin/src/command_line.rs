//! Which program an emulator runs, where the emulator does not say so.
//!
//! # Problem
//! The function of the plugin interface that gives the program's path is missing in qemu 6.2, and also in the
//! user-mode emulator of 10.0, although its header has it.
//!
//! # Approach
//! The emulator's own command line is `qemu-x86_64 -0 NAME PROGRAM ARGUMENT…`, or `qemu-x86_64 PROGRAM NAME
//! ARGUMENT…` where the kernel starts it. The program is the first word that is neither an option nor an option's
//! value.
//!
//! # Properties
//! - Both forms give the program (`the_program_is_found_in_both_forms`).

/// The options that are known to have no value.
const ALONE: [&str; 4] = ["-one-insn-per-tb", "-singlestep", "-strace", "-version"];

/// The program of a command line as Linux gives it: words, each with a zero byte at its end.
pub fn program(line: &[u8]) -> String {
    let mut words = line.split(|byte| *byte == 0).skip(1).map(String::from_utf8_lossy);
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            return word.into_owned();
        }
        if !ALONE.contains(&word.as_ref()) {
            words.next();
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::program;

    #[test]
    fn the_program_is_found_in_both_forms() {
        for (line, expected) in [
            ("/usr/bin/qemu-x86_64\0-0\0sh\0/bin/sh\0-c\0:\0", "/bin/sh"),
            ("/tmp/x/qemu\0/bin/sh\0sh\0-c\0:\0", "/bin/sh"),
            ("qemu-x86_64\0-strace\0-0\0-x\0/bin/true\0", "/bin/true"),
            ("qemu-x86_64\0-0\0", ""),
            ("qemu-x86_64\0", ""),
            ("", ""),
        ] {
            assert_eq!(program(line.as_bytes()), expected, "{line:?}");
        }
    }
}
