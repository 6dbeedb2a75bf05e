//! Runs the two real programs.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use crate::harness::{self, Site};
use crate::phases::command;
use crate::phases::plan::Grouping;
use crate::phases::record::{PhasesRecord, Timed};
use symbiont_campaign::{Error, Experiment, FinishedRunOf, Progress, carry_out, read_json};

/// The serial program.
const CHAIN: &str = include_str!("chain.py");
/// Steps of the run that shows how fast the machine is.
const TRIAL_STEPS: u64 = 100_000;
/// Bytes of text that `xz` gets at a time.
const TEXT_BYTES: usize = 1 << 20;
/// Time that preparing may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where the real programs are; names without a slash are looked up in `PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    /// The Python interpreter.
    pub python: PathBuf,
    /// `xz`, from XZ Utils.
    pub xz: PathBuf,
}

impl Default for Tools {
    fn default() -> Self {
        Self { python: "python3".into(), xz: "xz".into() }
    }
}

/// What the real programs are to do: the same in every run of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// The Python interpreter itself, not a script that starts it.
    python: PathBuf,
    xz: PathBuf,
    /// Steps of the chain.
    steps: u64,
    /// Its last digest, from an unmanaged run.
    digest: String,
    /// The text for `xz`.
    text: PathBuf,
}

/// What a run of the chain reports.
#[derive(Deserialize)]
struct Chained {
    #[serde(flatten)]
    timed: Timed,
    python: PathBuf,
}

/// Fits the serial program's work to a time, and makes the text for `xz`; once for all runs.
pub(in crate::phases) struct Prepare<'a> {
    pub tools: &'a Tools,
    pub site: &'a Site,
    pub time: Duration,
    pub seed: u64,
}

impl Prepare<'_> {
    /// What the programs are to do.
    ///
    /// # Errors
    /// When a program is missing or does not work, or the folder cannot be used.
    pub fn work(&self, progress: &mut dyn Progress) -> Result<Work, Error> {
        let done = carry_out(self, &self.site.folder, 1, progress)?;
        let work = done.into_iter().next().map(|done| done.record);
        work.ok_or_else(|| Error::evaluation("nothing was prepared"))
    }
}

impl Experiment for Prepare<'_> {
    type Run = String;
    type Record = Work;

    fn name(&self) -> String {
        "real-programs".to_owned()
    }

    fn basis(&self, _: &String) -> String {
        let parts = [format!("{:?}", self.tools), format!("{:?} {}", self.time, self.seed)];
        self.site.machine.basis(&parts.each_ref().map(String::as_str))
    }

    fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<String> {
        let first = done.is_empty().then(|| "fitting the real programs' work".to_owned());
        first.into_iter().collect()
    }

    fn cost(&self, _: &String) -> Duration {
        self.time + Duration::from_secs(1)
    }

    fn carry_out(&self, _: &String, stop: &AtomicBool) -> Result<Work, Error> {
        let scratch = harness::scratch(&self.site.folder)?;
        let [out, err, done] =
            ["real.json", "real.stderr", "real.done"].map(|name| scratch.path().join(name));
        let cancelled = || stop.load(Ordering::Relaxed);
        let run = |words: &[String]| harness::run(words, &out, &err, TIMEOUT, &cancelled);
        let chain = |python: &Path, steps: u64| -> Result<Chained, Error> {
            run(&chain(python, steps, 0.0, &done))?;
            read_json(&out)
        };
        let xz = &self.tools.xz;
        run(&[xz.display().to_string(), "--version".to_owned()])?;
        let trial = chain(&self.tools.python, TRIAL_STEPS)?;
        let steps = TRIAL_STEPS as f64 * self.time.as_secs_f64() / trial.timed.seconds.max(1e-6);
        let steps = steps.clamp(1.0, 1e9) as u64;
        let digest = chain(&trial.python, steps)?.timed.digest;
        let path = self.site.folder.join("real.txt");
        fs::write(&path, text(self.seed)).map_err(Error::io(&path))?;
        Ok(Work { python: trial.python, xz: xz.clone(), steps, digest, text: path })
    }
}

/// Text that compresses about as well as real text does.
fn text(seed: u64) -> Vec<u8> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let words: Vec<Vec<u8>> = (0..4096)
        .map(|_| (0..rng.random_range(2..10)).map(|_| rng.random_range(b'a'..=b'z')).collect())
        .collect();
    let mut text = Vec::with_capacity(TEXT_BYTES + 16);
    while text.len() < TEXT_BYTES {
        text.extend(words.choose(&mut rng).into_iter().flatten());
        text.push(b' ');
    }
    text.truncate(TEXT_BYTES);
    text
}

/// The serial program's command line; it starts at once if `start` is 0.
fn chain(python: &Path, steps: u64, start: f64, done: &Path) -> Vec<String> {
    let (python, done) = (python.display().to_string(), done.display().to_string());
    [python, "-c".to_owned(), CHAIN.to_owned(), steps.to_string(), format!("{start:.6}"), done]
        .into()
}

/// The parallel program's command line: until `done` exists.
fn compress(work: &Work, threads: u32, done: &Path) -> Vec<String> {
    let script =
        "while [ ! -e \"$1\" ]; do cat \"$2\"; done | \"$3\" -c -6 -T\"$4\" --block-size=256KiB";
    let mut words: Vec<String> = ["sh", "-c", script, "sh"].map(str::to_owned).into();
    words.extend([done, &work.text, &work.xz].map(|path| path.display().to_string()));
    words.push(threads.to_string());
    words
}

/// The command lines of a run, with the files for their output, and how to
/// check what came out.
#[derive(Debug)]
pub struct PreparedRun<'a> {
    work: &'a Work,
    serial: PathBuf,
    parallel: PathBuf,
    done: PathBuf,
    start: Duration,
    threads: u32,
}

/// A run in `folder` whose serial program starts working at `start`, since 1970.
pub fn start<'a>(work: &'a Work, folder: &Path, start: Duration, threads: u32) -> PreparedRun<'a> {
    let [serial, parallel, done] =
        ["serial.json", "parallel.xz", "done"].map(|name| folder.join(name));
    PreparedRun { work, serial, parallel, done, start, threads }
}

impl PreparedRun<'_> {
    /// The serial program's command line and the file for its output.
    pub fn alone(&self) -> (Vec<String>, &Path) {
        let Work { python, steps, .. } = self.work;
        (chain(python, *steps, self.start.as_secs_f64(), &self.done), &self.serial)
    }

    /// The job file of both programs.
    pub fn job_file(&self, grouping: Grouping) -> Result<String, Error> {
        let parallel = (compress(self.work, self.threads, &self.done), &*self.parallel);
        command::job_file(&[self.alone(), parallel], grouping).map_err(Error::evaluation)
    }

    /// The serial program's result, if it is right.
    pub fn serial(&self) -> Result<Timed, Error> {
        let Chained { timed, .. } = read_json(&self.serial)?;
        if timed.digest != self.work.digest {
            return Err(Error::WrongOutput { program: "python3".to_owned() });
        }
        Ok(timed)
    }

    /// Is what `xz` wrote its input, over and over?
    pub fn check_parallel(&self, cancelled: &dyn Fn() -> bool) -> Result<(), Error> {
        let (out, err) = (self.parallel.with_extension("out"), self.parallel.with_extension("err"));
        let words = [&*self.work.xz, Path::new("-dc"), &self.parallel]
            .map(|word| word.display().to_string());
        harness::run(&words, &out, &err, TIMEOUT, cancelled)?;
        let text = fs::read(&self.work.text).map_err(Error::io(&self.work.text))?;
        let file = fs::File::open(&out).map_err(Error::io(&out))?;
        if repeats(&text, file).map_err(Error::io(&out))? {
            Ok(())
        } else {
            Err(Error::WrongOutput { program: "xz".to_owned() })
        }
    }
}

/// Does `long` hold `text` once or more, whole, and nothing else?
fn repeats(text: &[u8], mut long: impl Read) -> std::io::Result<bool> {
    let mut times = 0;
    loop {
        let mut part = Vec::with_capacity(text.len());
        long.by_ref().take(text.len() as u64).read_to_end(&mut part)?;
        match part.is_empty() {
            true => return Ok(times > 0),
            false if part != text => return Ok(false),
            false => times += 1,
        }
    }
}

/// The runs of the real programs as a CSV table.
#[must_use]
pub fn csv(records: &[PhasesRecord]) -> String {
    let mut text = "run,round,policy,grouping,seconds\n".to_owned();
    for record in records {
        let Some(timed) = &record.real else { continue };
        let (policy, grouping) =
            record.run.what.managed().map_or(("", ""), |(policy, g)| (policy, g.id()));
        let (id, round) = (record.run.id(), record.run.round);
        text += &format!("{id},{round},{policy},{grouping},{}\n", timed.seconds);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_repetitions_count_as_the_input() {
        let is = |long: &str| repeats(b"abc", long.as_bytes()).unwrap();
        assert!(is("abc") && is("abcabcabc"));
        assert!(!is("") && !is("ab") && !is("abcab") && !is("abcabd") && !is("abcx"));
    }

    /// Otherwise the run lasts until its limit, and that it began late is not found.
    #[test]
    fn a_serial_program_that_is_late_ends_the_parallel_one() {
        let folder = tempfile::tempdir().unwrap();
        let done = folder.path().join("done");
        let words = chain(Path::new("python3"), 1, 1.0, &done);
        let output = std::process::Command::new(&words[0]).args(&words[1..]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(super::super::LATE), "{said}");
        assert!(done.exists());
    }

    #[test]
    fn the_text_follows_from_the_seed() {
        assert_eq!(text(1).len(), TEXT_BYTES);
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }
}
