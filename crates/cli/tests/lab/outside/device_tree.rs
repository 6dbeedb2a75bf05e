//! A guest's device tree: QEMU's own, edited.

use std::path::Path;
use std::process::{Command, Stdio};

use super::cache::Cache;

/// A change, as arguments of fdtput(1).
#[derive(Debug, Clone)]
pub struct Edit {
    /// Before and after the file's name.
    arguments: [Vec<String>; 2],
}

impl Edit {
    /// A new node.
    pub fn node(path: &str) -> Self {
        Self::new(&["-c"], &[path])
    }

    /// A property that is a text.
    pub fn text(node: &str, name: &str, value: &str) -> Self {
        Self::new(&["-t", "s"], &[node, name, value])
    }

    /// A property that is a 32-bit number.
    pub fn number(node: &str, name: &str, value: u32) -> Self {
        Self::new(&["-t", "i"], &[node, name, &value.to_string()])
    }

    /// A property without a value.
    pub fn flag(node: &str, name: &str) -> Self {
        Self::new(&[], &[node, name])
    }

    fn new(options: &[&str], rest: &[&str]) -> Self {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Self { arguments: [owned(options), owned(rest)] }
    }
}

/// Lets QEMU write the tree of a machine (its arguments, the first after `-M`) and
/// edits it.
pub fn write(machine: &[String], edits: &[Edit], cache: &Cache, file: &Path) -> Result<(), String> {
    let mut qemu = cache.qemu();
    let dump = format!("dumpdtb={}", file.display());
    // A second -M adds to the first.
    qemu.args(machine).args(["-M", &dump, "-nodefaults", "-display", "none"]);
    run(&mut qemu)?;
    for edit in edits {
        let mut fdtput = cache.fdtput();
        run(fdtput.args(&edit.arguments[0]).arg(file).args(&edit.arguments[1]))?;
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<(), String> {
    let done = command.stdin(Stdio::null()).status();
    let done = done.map_err(|why| format!("{command:?} does not start: {why}"))?;
    if done.success() { Ok(()) } else { Err(format!("{command:?}: {done}")) }
}
