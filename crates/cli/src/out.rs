//! Standard output, for all commands: `say!` and `say_all!` instead of `println!` and
//! `print!`, which panic when nobody reads any more (`symbiont machines | head -1`).

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

/// Writes a line to standard output.
macro_rules! say {
    () => { $crate::out::write(format_args!("\n")) };
    ($($words:tt)*) => { $crate::out::write(format_args!("{}\n", format_args!($($words)*))) };
}

/// Writes text to standard output as it is.
macro_rules! say_all {
    ($($words:tt)*) => { $crate::out::write(format_args!($($words)*)) };
}

/// Writes to standard output. Once nobody reads it there is nothing left to do: the
/// program ends, successfully, as the reader has what it wanted. Other errors (a full
/// disk) are told, and end it as a failure.
pub fn write(text: Arguments<'_>) {
    let mut out = io::stdout().lock();
    match out.write_fmt(text).and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            // Where standard error is closed there is nobody to tell.
            let _ = writeln!(io::stderr(), "symbiont: standard output: {error}");
            std::process::exit(1);
        }
    }
}
