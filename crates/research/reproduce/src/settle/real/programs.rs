//! Eight memory-hungry programs: built, and their vectors for this machine's caches.
//!
//! Each repeats what it does as often as the variable REPEATS says; its vectors are of one repetition, behind whose
//! end they begin anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use symbiont_policy::KnownActivity;
use symbiont_profile::vectors::Vectors;

use crate::activity::intervals;
use symbiont_campaign::{Error, Experiment, FinishedRunOf, digest};
use symbiont_experiments_host::harness::{self, Machine, scratch};

/// A program of `programs/src`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    source: &'static str,
    arguments: &'static [&'static str],
    /// Repetitions that take about two seconds on a core of today.
    pub repeats: u32,
}

macro_rules! program {
    ($name:literal, $repeats:literal) => {
        Program {
            name: $name,
            source: include_str!(concat!("../../../../../../programs/src/", $name, ".c")),
            arguments: &[],
            repeats: $repeats,
        }
    };
}

/// All of them.
pub const PROGRAMS: [Program; 8] = [
    program!("stream", 3),
    program!("join", 6),
    program!("lbm", 6),
    program!("cg", 2),
    program!("fft", 4),
    program!("particles", 9),
    program!("bfs", 3),
    Program { name: "sparse", arguments: &["sparse", "250"], ..program!("kernels", 7) },
];

/// Calls what was the main function.
const REPEAT: &str = "#include <stdlib.h>
int once(int, char **);
int main(int words, char **word) {
    const char *repeats = getenv(\"REPEATS\");
    for (int left = repeats ? atoi(repeats) : 1; left > 0; left--)
        if (once(words, word)) return 1;
    return 0;
}
";
/// Time that a compiler or a capture may take.
const LIMIT: Duration = Duration::from_secs(600);

impl Program {
    /// Its command, in the folder of all programs.
    pub fn words(&self, folder: &Path) -> Vec<String> {
        let own = folder.join(self.name).display().to_string();
        std::iter::once(own).chain(self.arguments.iter().map(|&word| word.to_owned())).collect()
    }

    /// The file of its vectors.
    pub fn vectors(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.vectors", self.name))
    }
}

/// Compiles all of them.
pub fn build(folder: &Path, cancelled: &dyn Fn() -> bool) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(Error::io(folder))?;
    let (out, err) = (folder.join("cc.out"), folder.join("cc.err"));
    let path = |name: String| folder.join(name).display().to_string();
    let compile = |words: &[&str]| {
        let words: Vec<String> =
            ["cc", "-O2"].iter().chain(words).map(|&word| word.to_owned()).collect();
        harness::run(&words, &out, &err, LIMIT, cancelled).map(drop)
    };
    let write = |name: String, text: &str| {
        let file = folder.join(name);
        fs::write(&file, text).map_err(Error::io(&file))
    };
    write("repeat.c".to_owned(), REPEAT)?;
    for Program { name, source, .. } in PROGRAMS {
        write(format!("{name}.c"), source)?;
        let (source, object) = (path(format!("{name}.c")), path(format!("{name}.o")));
        compile(&["-Dmain=once", "-c", "-o", &object, &source])?;
        let repeat = path("repeat.c".to_owned());
        compile(&["-o", &path(name.to_owned()), &repeat, &object, "-lm", "-pthread"])?;
    }
    Ok(())
}

/// Makes vectors of the programs under the emulator, which needs no quiet machine.
pub struct Capture<'a> {
    /// `symbiont`.
    pub symbiont: &'a Path,
    /// Folder of the programs.
    pub folder: &'a Path,
    /// This machine.
    pub machine: &'a Machine,
}

impl Experiment for Capture<'_> {
    type Run = String;
    type Record = Vectors;

    fn name(&self) -> String {
        "settle-real-vectors".to_owned()
    }

    fn basis(&self, run: &String) -> String {
        let of = PROGRAMS.iter().find(|program| program.name == run);
        self.machine.basis(&[REPEAT, of.map_or("", |program| program.source), &digest(&[run])])
    }

    fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<String> {
        let all = PROGRAMS.iter().map(|program| program.name.to_owned()).collect();
        if done.is_empty() { all } else { Vec::new() }
    }

    fn carry_out(&self, run: &String, stop: &AtomicBool) -> Result<Vectors, Error> {
        let unknown = || Error::evaluation(format!("no program is called {run}"));
        let program = PROGRAMS.iter().find(|program| program.name == run).ok_or_else(unknown)?;
        let files = scratch(self.folder)?;
        let file = |name: &str| files.path().join(name);
        let made = file("vectors").display().to_string();
        let symbiont = self.symbiont.display().to_string();
        let options = ["profile", "--vectors", "host", "--stdout", "/dev/null", "-o"];
        let words = std::iter::once(symbiont).chain(options.map(str::to_owned));
        let words: Vec<String> =
            words.chain([made, "--".to_owned()]).chain(program.words(self.folder)).collect();
        let stopped = || stop.load(Ordering::Relaxed);
        harness::run(&words, &file("out"), &file("err"), LIMIT, &stopped)?;
        let made = Vectors::read(&file("vectors"));
        made.map_err(Error::evaluation)
    }

    fn cost(&self, _: &String) -> Duration {
        Duration::from_secs(40)
    }
}

/// Writes the vectors of each program to its file; `shift`: those of the program so many places further on, as a
/// control.
pub fn write(folder: &Path, all: &[Vectors], shift: usize) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(Error::io(folder))?;
    for (at, program) in PROGRAMS.iter().enumerate() {
        let (own, other) = (all.get(at), all.get((at + shift) % all.len().max(1)));
        let Some((own, other)) = own.zip(other) else { continue };
        let (digest, name) = (own.digest.clone(), program.name.to_owned());
        let vectors = Vectors { digest, program: name, ..other.clone() };
        let written = vectors.write(&program.vectors(folder));
        written.map_err(Error::evaluation)?;
    }
    Ok(())
}

/// The same as policies see them.
pub fn known(all: &[Vectors]) -> Result<KnownActivity, Error> {
    let named = PROGRAMS.iter().zip(all);
    let named = named.map(|(program, vectors)| (program.name.to_owned(), intervals(vectors)));
    KnownActivity::new(named.collect()).map_err(Error::evaluation)
}
