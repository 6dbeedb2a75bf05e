//! Workloads in the Standard Workload Format (Chapin et al., *Benchmarks and standards for the evaluation of
//! parallel job schedulers*, JSSPP 1999; version 2.2 as the Parallel Workloads Archive defines it).
//!
//! # Approach
//! A line is either a comment, which begins with `;`, or a job: 18 numbers between blanks, where −1 stands for what is
//! not known. A file with a line that is neither is refused, and such lines are named. Lines that are well formed but
//! no whole run are counted and left out ([`OmittedLines`]): jobs that never ran, and the parts of checkpointed jobs,
//! which follow a line of the whole job.
//!
//! # Terms and units
//! Times are in seconds from the start of the log. *Processors*: those that a job was given; if that is not known,
//! those that it asked for.
//!
//! # Properties
//! - What is written is read (`what_is_written_is_read`), and each bad line is named
//!   (`each_line_that_is_no_job_is_named`).
//! - Whatever the text, it is read or refused (`any_text_is_read_or_refused`).

/// Fields of a job.
const FIELDS: usize = 18;
/// The most jobs of a log; the largest of the archive has about two million.
const MOST_JOBS: usize = 8_000_000;
/// How many bad lines are named.
const MOST_ERRORS: usize = 8;
/// Longest time, seconds: 30 years.
const MOST_TIME_S: f64 = 1e9;
/// Most processors.
const MOST_PROCESSORS: f64 = 1e8;

/// A job that ran.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoggedJob {
    /// Its number.
    pub id: u64,
    /// When it was submitted.
    pub submitted_s: f64,
    /// How long it ran.
    pub run_s: f64,
    /// Its processors, at least one.
    pub processors: usize,
    /// What its user asked for, where known.
    pub requested_s: Option<f64>,
}

/// Lines that are well formed and no whole run, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OmittedLines {
    /// Jobs without a run time above 0: cancelled before they started.
    pub never_ran: usize,
    /// Jobs without processors.
    pub no_processors: usize,
    /// Parts of checkpointed jobs.
    pub parts: usize,
}

/// A log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Log {
    /// The jobs that ran, in the order of the file.
    pub jobs: Vec<LoggedJob>,
    /// The lines that are left out.
    pub left_out: OmittedLines,
}

/// Lines that are no jobs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct SwfError {
    /// Number of the line, from 1, and what is wrong with it; the first ones.
    pub lines: Vec<(usize, String)>,
    /// How many more there are.
    pub more: usize,
}

impl SwfError {
    fn text(&self) -> String {
        let each = self.lines.iter().map(|(line, why)| format!("line {line}: {why}"));
        let mut text = each.collect::<Vec<_>>().join("; ");
        if self.more > 0 {
            text.push_str(&format!("; and {} more", self.more));
        }
        text
    }
}

/// What a line holds.
enum Line {
    Job(LoggedJob),
    NeverRan,
    NoProcessors,
    Part,
}

/// Reads a log.
///
/// # Errors
/// [`SwfError`] with the lines that are no jobs.
pub fn read(text: &str) -> Result<Log, SwfError> {
    let (mut log, mut error) = (Log::default(), SwfError { lines: Vec::new(), more: 0 });
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(';') {
            continue;
        }
        let read = match log.jobs.len() < MOST_JOBS {
            true => job(line),
            false => Err(format!("more than {MOST_JOBS} jobs")),
        };
        match read {
            Ok(Line::Job(job)) => log.jobs.push(job),
            Ok(Line::NeverRan) => log.left_out.never_ran += 1,
            Ok(Line::NoProcessors) => log.left_out.no_processors += 1,
            Ok(Line::Part) => log.left_out.parts += 1,
            Err(why) if error.lines.len() < MOST_ERRORS => error.lines.push((number, why)),
            Err(_) => error.more += 1,
        }
    }
    if error.lines.is_empty() { Ok(log) } else { Err(error) }
}

fn job(line: &str) -> Result<Line, String> {
    let words: Vec<&str> = line.split_ascii_whitespace().take(FIELDS + 1).collect();
    let mut fields = [0.0; FIELDS];
    if words.len() != FIELDS {
        let count = if words.len() > FIELDS { "more".to_owned() } else { words.len().to_string() };
        return Err(format!("{count} fields, {FIELDS} expected"));
    }
    for (at, (field, word)) in (1..).zip(fields.iter_mut().zip(words)) {
        let shown = word.chars().take(20).collect::<String>();
        let number = word.parse::<f64>().ok().filter(|number| number.is_finite());
        *field = number
            .ok_or_else(|| format!("field {at}, '{}', is no number", shown.escape_debug()))?;
    }
    let [id, submit, _, run, allocated, _, _, asked, requested, _, status, ..] = fields;
    // Exactly representable, since it is compared with the text.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 2^53")]
    let id = match (0.0..=9_007_199_254_740_992.0).contains(&id) && id.fract() == 0.0 {
        true => id as u64,
        false => return Err(format!("job {id} is no number of a job")),
    };
    if !(0.0..=MOST_TIME_S).contains(&submit) {
        return Err(format!("submit time {submit} is none"));
    }
    if run > MOST_TIME_S || requested > MOST_TIME_S {
        return Err(format!("a time is longer than {MOST_TIME_S} s"));
    }
    let processors = if allocated > 0.0 { allocated } else { asked };
    if processors > MOST_PROCESSORS {
        return Err(format!("{processors} processors are too many"));
    }
    // 2, 3, 4: a part that was continued, the last one, one after which the job was cancelled.
    if (2.0..=4.0).contains(&status) {
        return Ok(Line::Part);
    }
    if run <= 0.0 {
        return Ok(Line::NeverRan);
    }
    if processors <= 0.0 {
        return Ok(Line::NoProcessors);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 1e8")]
    let processors = processors.max(1.0) as usize;
    let requested_s = Some(requested).filter(|requested| *requested > 0.0);
    Ok(Line::Job(LoggedJob { id, submitted_s: submit, run_s: run, processors, requested_s }))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;

    use super::*;

    const HANDWRITTEN: &str = "\
; Version: 2.2
; Computer: a cluster
;
;   job submit wait run procs cpu mem asked requested mem status user group exe queue part prev think
    1      0   10  100     1  -1  -1     1       200  -1      1    3     1  -1     1   -1   -1    -1
    2     30   -1   50    16 49.5 -1    16        -1  -1      0    4     1  -1     1   -1   -1    -1

    3     31   -1   -1    -1  -1  -1     4       100  -1      5    4     1  -1     1   -1   -1    -1
    4     40    0   70    -1  -1  -1     8        80  -1      1    4     1  -1     1   -1   -1    -1
    5     50    0   30    -1  -1  -1    -1        80  -1      1    4     1  -1     1   -1   -1    -1
    6     60    0   30     2  -1  -1     2        80  -1      2    4     1  -1     1   -1   -1    -1
";

    fn logged(id: u64, submitted_s: f64, run_s: f64, processors: usize) -> LoggedJob {
        LoggedJob { id, submitted_s, run_s, processors, requested_s: None }
    }

    /// The lines of a log's jobs.
    fn written(log: &Log) -> String {
        log.jobs.iter().fold("; written\n".to_owned(), |mut text, job| {
            let LoggedJob { id, submitted_s, run_s, processors, requested_s } = job;
            let requested = requested_s.unwrap_or(-1.0);
            let rest = "-1 1 -1 -1 -1 -1 -1 -1 -1";
            writeln!(
                text,
                "{id} {submitted_s} -1 {run_s} {processors} -1 -1 -1 {requested} {rest}"
            )
            .unwrap();
            text
        })
    }

    #[test]
    fn a_handwritten_log_is_read() {
        let log = read(HANDWRITTEN).unwrap();
        let first = LoggedJob { requested_s: Some(200.0), ..logged(1, 0.0, 100.0, 1) };
        let fourth = LoggedJob { requested_s: Some(80.0), ..logged(4, 40.0, 70.0, 8) };
        assert_eq!(log.jobs, [first, logged(2, 30.0, 50.0, 16), fourth]);
        assert_eq!(log.left_out, OmittedLines { never_ran: 1, no_processors: 1, parts: 1 });
        assert_eq!(read(""), Ok(Log::default()));
    }

    #[test]
    fn what_is_written_is_read() {
        let log = Log { left_out: OmittedLines::default(), ..read(HANDWRITTEN).unwrap() };
        assert_eq!(read(&written(&log)), Ok(log));
    }

    #[test]
    fn each_line_that_is_no_job_is_named() {
        let field = |at: usize, value: &str| {
            let mut words: Vec<&str> =
                "1 0 10 100 1 -1 -1 1 200 -1 1 3 1 -1 1 -1 -1 -1".split(' ').collect();
            words[at - 1] = value;
            words.join(" ")
        };
        for (line, part) in [
            ("1 2 3".to_owned(), "line 2: 3 fields, 18 expected"),
            (format!("{} 7", field(1, "1")), "line 2: more fields, 18 expected"),
            (field(4, "soon"), "line 2: field 4, 'soon', is no number"),
            (field(4, "inf"), "line 2: field 4, 'inf', is no number"),
            (field(1, "-1"), "line 2: job -1 is no number"),
            (field(2, "-1"), "line 2: submit time -1 is none"),
            (field(4, "1e12"), "line 2: a time is longer"),
            (field(5, "1e12"), "line 2: 1000000000000 processors are too many"),
        ] {
            let error = read(&format!("; x\n{line}\n")).unwrap_err().to_string();
            assert!(error.starts_with(part), "{line}: {error}");
        }
        let many = read(&"x\n".repeat(30)).unwrap_err();
        assert_eq!((many.lines.len(), many.more), (8, 22));
        assert!(many.to_string().ends_with("line 8: 1 fields, 18 expected; and 22 more"), "{many}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "([-0-9;e. x\n]{0,6} ){0,80}") {
            if let Ok(log) = read(&text) {
                prop_assert!(log.jobs.iter().all(|job| job.run_s > 0.0 && job.processors > 0));
            }
        }
    }
}
