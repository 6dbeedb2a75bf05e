//! The command lines and job files of a run.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use symbiont_linux::slow::SlowCpu;

use super::plan::{Grouping, SyntheticProgram};

/// How the synthetic benchmark is asked to run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SynthArguments {
    /// Threads: the n of the paper.
    pub threads: u32,
    /// Mean length of a phase, in iterations of one thread.
    pub iterations_per_phase: f64,
    /// How long it runs.
    pub time: Duration,
    /// When, since 1970.
    pub start: Duration,
}

/// The synthetic benchmark's command line.
pub fn synth(path: &Path, program: SyntheticProgram, ask: SynthArguments) -> Vec<String> {
    let SynthArguments { threads, iterations_per_phase, time, start } = ask;
    [
        path.display().to_string(),
        "--json".to_owned(),
        format!("--ratio={}", program.ratio),
        format!("--seed={}", program.seed),
        format!("--threads={threads}"),
        format!("--iterations-per-phase={iterations_per_phase}"),
        format!("--duration={}ms", time.as_millis()),
        format!("--start-at={:.6}", start.as_secs_f64()),
    ]
    .into()
}

/// `symbiont run` over a job file.
pub fn symbiont(
    path: &Path,
    policy: &str,
    slow: &[SlowCpu],
    jobs: &Path,
    report: &Path,
) -> Vec<String> {
    let mut words: Vec<String> = [
        path.display().to_string(),
        "run".to_owned(),
        format!("--policy={policy}"),
        "--report=json".to_owned(),
        format!("--report-file={}", report.display()),
        format!("--job={}", jobs.display()),
    ]
    .into();
    words.extend(slow.iter().map(|slow| format!("--slower={slow}")));
    words
}

#[derive(Serialize)]
struct JobFile {
    job: Vec<Job>,
}

#[derive(Serialize)]
struct Job {
    name: String,
    command: Vec<String>,
    stdout: String,
    session: &'static str,
}

/// A job file: each command with the file for its standard output.
pub fn job_file(
    jobs: &[(Vec<String>, &Path)],
    grouping: Grouping,
) -> Result<String, toml::ser::Error> {
    let session = match grouping {
        Grouping::OneSession => "shared",
        Grouping::OwnSessions => "own",
    };
    let job = jobs
        .iter()
        .enumerate()
        .map(|(number, (command, stdout))| Job {
            name: format!("program-{number}"),
            command: command.clone(),
            stdout: stdout.display().to_string(),
            session,
        })
        .collect();
    toml::to_string(&JobFile { job })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_file_names_commands_outputs_and_sessions() {
        let command = vec!["/bin/synth".to_owned(), "--ratio=inf:1".to_owned()];
        let jobs = [(command.clone(), Path::new("/tmp/a")), (command, Path::new("/tmp/b"))];
        for (grouping, session) in
            [(Grouping::OneSession, "shared"), (Grouping::OwnSessions, "own")]
        {
            let text = job_file(&jobs, grouping).unwrap();
            let file: toml::Table = text.parse().unwrap();
            let read = file["job"].as_array().unwrap();
            assert_eq!(read.len(), 2);
            assert_eq!(read[1]["stdout"].as_str(), Some("/tmp/b"));
            assert_eq!(read[0]["session"].as_str(), Some(session));
            assert_eq!(read[0]["command"][1].as_str(), Some("--ratio=inf:1"));
        }
    }
}
