//! Man pages and shell completions, from the same description as `--help`.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::{Shell, generate_to};

use crate::args::Cli;

/// Writes a man page for `symbiont` and one for each of its commands.
pub fn man(folder: &Path) -> anyhow::Result<()> {
    make(folder)?;
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("cannot write man pages to {}", folder.display()))
}

/// Writes completion scripts for the shells in use on Linux.
pub fn completions(folder: &Path) -> anyhow::Result<()> {
    make(folder)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish] {
        generate_to(shell, &mut Cli::command(), "symbiont", folder)
            .with_context(|| format!("cannot write completions to {}", folder.display()))?;
    }
    Ok(())
}

fn make(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}
