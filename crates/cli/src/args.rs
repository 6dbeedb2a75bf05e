//! The command line, as data. Help texts teach: what it does, what it leaves
//! alone, one example each.

mod bench;
mod simulated;
mod training;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
pub use bench::{
    Bench, BenchCounters, BenchDecision, BenchDetection, BenchHysched, BenchOpenmp, BenchOverhead,
    BenchPhases, BenchSeniority, BenchSimulatedPhases,
};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub use simulated::{CheckSim, Kept, Level, Machines, Private, Simulate, Workloads};
use symbiont_linux::actuate::default_state_dir;
use symbiont_linux::slow::SlowCpu;
use symbiont_policy::{Together, Variant};
pub use training::{BenchSymbiosis, Knowledge, Train};

/// Puts the right threads together: places the threads of programs on the
/// hardware threads where they disturb each other least.
///
/// Programs run unmodified and unprivileged; what was changed is put back at
/// the end. Start with `symbiont doctor`.
#[derive(Debug, Parser)]
#[command(name = "symbiont", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Run(Run),
    Stat(Stat),
    Doctor(Doctor),
    Policies(Policies),
    Restore(Restore),
    Profile(Profile),
    Simulate(Simulate),
    CheckSim(CheckSim),
    Train(Train),
    Machines(Machines),
    Workloads(Workloads),
    /// Compare policies on this machine with real runs; writes a report
    ///
    /// Each experiment writes a folder: one page with tables and plots (index.html), the same data
    /// as CSV and JSON, and the raw runs. Keep the machine quiet meanwhile. Start with --short;
    /// the whole campaigns say at the start how long they take.
    #[command(subcommand)]
    Bench(Bench),
    /// Evaluate what a published model predicts; runs nothing
    #[command(subcommand)]
    Analyze(Analyze),
    #[command(hide = true)]
    SlowCpu(SlowCpuArgs),
    /// Execute no-operations: what training lets run beside a program
    #[command(hide = true)]
    Nop,
    /// Write man pages or shell completions into a folder
    #[command(subcommand)]
    Generate(Generate),
}

/// Run programs managed
///
/// Executes COMMAND in this very process, so that it keeps its pid, terminal,
/// signals and exit status; a manager in a session of its own watches its whole
/// tree of processes and threads and places them once a quantum.
///
/// With --job, --report, --record or --dry-run symbiont stays as the parent
/// instead (something has to be complete when it returns) and passes on signals,
/// stops and the exit status.
///
/// Exit status: that of COMMAND; 127 if it was not found, 126 if it could not be
/// executed, 125 if symbiont itself was used wrongly. With several jobs: the
/// first one, in the order of the file, that failed.
#[derive(Debug, Args)]
#[command(
    override_usage = "symbiont run [OPTIONS] [--] <COMMAND>...\n       \
                      symbiont run [OPTIONS] --job <FILE>",
    after_help = "\
Examples:
  symbiont run -- make -j4
  symbiont run --policy random --seed 7 --report text -- ./simulation input.dat
  symbiont run --job jobs.toml

A job file:
  [[job]]
  name = \"render\"
  command = [\"povray\", \"+Iscene.ini\"]
  stdout = \"render.log\"        # optional: stdin, stdout, stderr, directory, env
  session = \"own\"              # optional: a session of its own; default \"shared\""
)]
pub struct Run {
    /// Policy that decides (see `symbiont policies`)
    #[arg(long, default_value = "phases", value_name = "NAME")]
    pub policy: String,
    /// Period of the loop, e.g. 20ms or 1s [default: the policy's own]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub quantum: Option<Duration>,
    /// Seed of policies that draw at random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Ready threads above which a program counts as parallel, for `phases`
    /// [default: 2 where the programs may use more than two hardware threads, else 1.1]
    #[arg(long, value_name = "THREADS", allow_negative_numbers = true)]
    pub threshold: Option<f64>,
    /// Top-Down categories that `hysched` looks at: TopL, TopB2L, TopB2M3L or All3L
    /// [default: TopB2M3L]
    #[arg(long, value_name = "VARIANT")]
    pub variant: Option<Variant>,
    /// Share of the issue slots by which another category must exceed a thread's own before
    /// `hysched` changes it, e.g. 0.05
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = parse_share)]
    pub hysteresis: f64,
    /// Programs that `static` keeps on a core, one group for each core, e.g. mcf+gcc,xz+povray
    #[arg(long, value_name = "GROUPS")]
    pub together: Option<Together>,
    /// How long one of several parallel programs stays boosted before the next
    /// one's turn comes, for `phases` [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub seniority: Option<Duration>,
    /// How changes between serial and parallel phases are seen
    #[arg(long, value_enum, value_name = "HOW", default_value_t = SeeBy::Accounts)]
    pub see_by: SeeBy,
    /// Take a CPU's core for so many times as slow as the machine says, e.g. 1:2; repeatable
    #[arg(long, value_name = "CPU:FACTOR")]
    pub slower: Vec<SlowCpu>,
    /// Quanta that a thread stays where it was moved before it may be moved again
    #[arg(long, value_name = "QUANTA", default_value_t = 0)]
    pub hold: u32,
    /// Most moves in one quantum; releases to the OS are never held back
    /// [default: no bound]
    #[arg(long, value_name = "MOVES")]
    pub budget: Option<usize>,
    /// How new processes and threads are found
    #[arg(long, value_enum, value_name = "HOW", default_value_t = EnrolBy::Auto)]
    pub enrol_by: EnrolBy,
    /// Event catalogue by which hardware events are counted, where the policy
    /// needs them: a name (see `symbiont doctor --machine`) or a file
    /// [default: the one for this processor]
    #[arg(long, value_name = "NAME|FILE")]
    pub catalogue: Option<String>,
    /// Count one group of events each quantum, in turn, instead of all at once
    /// with the kernel sharing the counters among them
    #[arg(long)]
    pub rotate: bool,
    /// Keep what was measured and decided in FILE (JSON lines)
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Decide, but change nothing of these programs; tells what would have been done
    #[arg(long)]
    pub dry_run: bool,
    /// Tell at the end what was done, on standard error
    #[arg(long, value_enum, value_name = "FORM")]
    pub report: Option<ReportForm>,
    /// Write the report to FILE instead of standard error
    #[arg(long, value_name = "FILE", requires = "report")]
    pub report_file: Option<PathBuf>,
    /// Run the jobs of FILE (TOML) together instead of one command
    #[arg(long = "job", value_name = "FILE", conflicts_with = "command")]
    pub jobs: Option<PathBuf>,
    #[command(flatten)]
    pub knowledge: Knowledge,
    #[command(flatten)]
    pub state: State,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present = "jobs")]
    pub command: Vec<std::ffi::OsString>,
}

/// Where managers keep what must survive them.
#[derive(Debug, Args)]
pub struct State {
    /// Where journals and the lock are; symbionts with different ones do not know of each other
    /// [default: one per user, see `symbiont doctor`]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

impl State {
    /// The directory, as an absolute path: a manager works from `/`.
    pub fn dir(&self) -> anyhow::Result<PathBuf> {
        match &self.state_dir {
            None => Ok(default_state_dir()),
            Some(dir) => std::path::absolute(dir)
                .with_context(|| format!("where is the state directory {}?", dir.display())),
        }
    }
}

/// How new processes and threads are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EnrolBy {
    /// The proc connector where it is permitted and works, else scanning
    Auto,
    /// Scanning /proc once a quantum
    Scan,
}

/// How changes between serial and parallel phases are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SeeBy {
    /// By the scheduler's accounts, once a quantum
    Accounts,
    /// Also by the scheduler's tracepoints, as they happen (takes root; the whole machine's
    /// context switches are looked at)
    Tracepoints,
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportForm {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Count events of programs: what their threads do to their cores
///
/// Watches COMMAND, or processes that run already, with all their threads and
/// children, and tells IPC, CPI stack, Top-Down categories, FPU usage, L1D
/// bandwidth and misses of each thread: as far as this machine can count them,
/// and else why not. Steers nothing and changes nothing.
///
/// A thread is counted once it has been seen twice (some 50 looks a second, fewer
/// where threads are many); the column "counted" tells for what share of its CPU
/// time its values stand.
#[derive(Debug, Args)]
#[command(
    override_usage = "symbiont stat [OPTIONS] [--] <COMMAND>...\n       \
                      symbiont stat [OPTIONS] --pid <PID>",
    after_help = "\
Examples:
  symbiont stat -- make -j4
  symbiont stat --pid 4711 --interval 1s --for 10s
  symbiont stat --catalogue software --event page-faults -- ./simulation"
)]
pub struct Stat {
    /// Watch these processes until they end, or ^C
    #[arg(
        short,
        long = "pid",
        value_name = "PID",
        value_delimiter = ',',
        conflicts_with = "command"
    )]
    pub pids: Vec<u32>,
    /// Event catalogue, by name (see `symbiont doctor --machine`) or file [default: this machine's]
    #[arg(long, value_name = "NAME|FILE")]
    pub catalogue: Option<String>,
    /// Count this event as well: of the catalogue, of the kernel (`cache-misses`,
    /// `cpu/event=0x3c/`), raw (`r1a3`), or by libpfm4's name where that is installed
    #[arg(short, long = "event", value_name = "NAME")]
    pub events: Vec<String>,
    /// Show these formulas of the catalogue instead of the usual ones
    #[arg(long = "formula", value_name = "NAME", value_delimiter = ',')]
    pub formulas: Vec<String>,
    /// Count one group of events after the other, by turns of a look, instead of leaving it to the
    /// kernel to share the counters out
    #[arg(long)]
    pub rotate: bool,
    /// Tell also meanwhile, each time over the time since
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub interval: Option<Duration>,
    /// Stop watching after this time
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, requires = "pids")]
    pub limit: Option<Duration>,
    /// Write JSON, a line each time
    #[arg(long)]
    pub json: bool,
    /// Write to FILE instead of standard error (with COMMAND) or standard output (with --pid)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present = "pids")]
    pub command: Vec<std::ffi::OsString>,
}

/// Tell what this machine offers
///
/// Topology; how programs are watched; what can be counted; what can be enforced
/// and put back; which policies can run here, and why the others cannot. With
/// --machine: all that is known about counting on a machine of that name, also
/// on any other machine. Changes nothing.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Tell the event catalogue NAME (zen4, power8, ...): events, groups, formulas, signals
    #[arg(long, value_name = "NAME")]
    pub machine: Option<String>,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: State,
}

/// List the policies, a line each
#[derive(Debug, Args)]
pub struct Policies {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// Put back what a crashed symbiont left changed
///
/// Reads the journals of managers that are no longer alive and restores the
/// affinity, nice value and class of every thread that still has what symbiont
/// set. What somebody else changed meanwhile is left alone.
#[derive(Debug, Args)]
pub struct Restore {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: State,
}

/// Capture what a program does, for the simulator
///
/// Runs COMMAND in QEMU's user-mode emulator (package qemu-user) and observes each
/// instruction: the kinds of instructions, branches, reuse of data and code,
/// activity of cache regions, and short traces, per kind of phase. The profile fits
/// any machine description of the simulator. Threads and forked children are observed,
/// and the programs that children execute where the kernel allows it; what was not
/// observed is told.
///
/// The program runs 10 to 50 times slower than natively, with a fixed environment
/// (add to it with --env). Profiling a program of one thread again gives the same file.
///
/// An interrupted or failing program gives no profile.
#[derive(Debug, Args)]
#[command(
    override_usage = "symbiont profile [OPTIONS] [--] <COMMAND>...\n       \
                      symbiont profile --show <FILE>",
    after_help = "\
Examples:
  symbiont profile -- gzip -9 -k -f big.tar
  symbiont profile -o bc.profile --stdout /dev/null -- sh -c 'echo \"scale=2000; 4*a(1)\" | bc -l'
  symbiont profile --show gzip.profile
  symbiont profile --trace gzip.profile -- gzip -9 -k -f big.tar"
)]
pub struct Profile {
    /// Where the profile goes [default: NAME.profile], or the trace [NAME.trace]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What workloads call the program [default: its file name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Add a variable to the program's environment; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub variables: Vec<(String, String)>,
    /// Write the program's standard output to FILE
    #[arg(long, value_name = "FILE")]
    pub stdout: Option<PathBuf>,
    /// Instructions of an interval [default: 50 million]
    #[arg(long, value_name = "INSTRUCTIONS", value_parser = clap::value_parser!(u64).range(10_000..))]
    pub interval: Option<u64>,
    /// The plugin of the emulator [default: beside symbiont]
    #[arg(long, value_name = "FILE")]
    pub plugin: Option<PathBuf>,
    /// Write the summary to standard output as JSON
    #[arg(long)]
    pub json: bool,
    /// Write windows of instruction traces instead, in the phases that PROFILE, of the
    /// same program, tells of
    #[arg(long, value_name = "PROFILE")]
    pub trace: Option<PathBuf>,
    /// Windows at most, one for each phase, the most frequent first [default: 4]
    #[arg(long, value_name = "COUNT", requires = "trace", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub windows: Option<u16>,
    /// Instructions of a window to warm up with [default: 2 million]
    #[arg(long, value_name = "INSTRUCTIONS", requires = "trace", value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    pub warm_up: Option<u64>,
    /// Instructions of a window behind these [default: 2 million]
    #[arg(long, value_name = "INSTRUCTIONS", requires = "trace", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub length: Option<u64>,
    /// Tell what a profile or a trace holds, instead of making one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "output", "name", "variables", "stdout", "interval", "plugin", "trace"])]
    pub show: Option<PathBuf>,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present = "show")]
    pub command: Vec<std::ffi::OsString>,
}

#[derive(Debug, Subcommand)]
pub enum Analyze {
    Phases(AnalyzePhases),
    Topdown(AnalyzeTopdown),
}

/// Dominant Top-Down categories of recorded programs (Navarro et al., section 4.1)
///
/// FOLDER holds a folder for each program with the files that `wspy` writes on AMD Zen 4:
/// ipc.topdown.txt (counts of the whole run) and, if there is one, amdtopdown.csv (level 1 second
/// by second). The catalogue's formulas, by which `hysched` classifies running threads, are applied
/// to the counts, and the files' own percentages printed beside. Slots that the other thread of the
/// core had are excluded. Levels 1 and 2 are all that these files have.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  symbiont analyze topdown spec2017-topdown-zen4")]
pub struct AnalyzeTopdown {
    /// The folder of series
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// Speedups and fairness of programs in serial and parallel phases (Morad et al.)
///
/// Least, average and largest speedup in each joint state under a scheduler that
/// treats all threads as equal (the paper's Table 1) and under one that gives
/// serial threads the fastest cores (Table 3), and the worst fairness (Table 2).
/// A speedup is against the same phase alone on the machine.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  symbiont analyze phases --cores 8 --fast 2
  symbiont analyze phases --machine 'core:4 | core:4 capacity:512' --ready 1,3,8")]
pub struct AnalyzePhases {
    /// Cores of the machine
    #[arg(long, value_name = "N", required_unless_present = "machine")]
    pub cores: Option<u32>,
    /// How many times as fast as the others one core is
    #[arg(long, value_name = "A", default_value_t = 1.0)]
    pub fast: f64,
    /// Any machine instead, described in a line: the speed of its cores is their capacity
    #[arg(long, value_name = "LINE", conflicts_with_all = ["cores", "fast"])]
    pub machine: Option<String>,
    /// Ready threads of each program, in one joint state [default: two programs
    /// with one thread or as many as cores, in all four joint states]
    #[arg(long, value_name = "THREADS", value_delimiter = ',')]
    pub ready: Vec<u32>,
    /// Ready threads above which a program counts as parallel
    /// [default: 2 with more than two cores, else 1.1]
    #[arg(long, value_name = "THREADS", requires = "ready")]
    pub threshold: Option<f64>,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// Make a CPU slower until this command ends, for experiments
///
/// Takes the CPU away from all other programs for a part of each 4 ms. Ends by
/// itself at the deadline and with its parent; leaves nothing behind, also when it
/// is killed.
#[derive(Debug, Args)]
pub struct SlowCpuArgs {
    /// The CPU, and how many times as slow it shall be, e.g. 1:2
    #[arg(value_name = "CPU:FACTOR")]
    pub slow: SlowCpu,
    /// For how long at most
    #[arg(long = "for", default_value = "10min", value_name = "TIME", value_parser = parse_limit)]
    pub limit: Duration,
    /// The process that it shall end with [default: the parent]
    #[arg(long, value_name = "PID")]
    pub parent: Option<u32>,
}

#[derive(Debug, Subcommand)]
pub enum Generate {
    /// Man pages of symbiont and its commands
    Man {
        /// Where to write them
        folder: PathBuf,
    },
    /// Completions for bash, zsh, fish and elvish
    Completions {
        /// Where to write them
        folder: PathBuf,
    },
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("a variable is written NAME=VALUE".to_owned()),
    }
}

fn parse_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=1000).contains(count));
    count.ok_or_else(|| "a count here is a number from 1 to 1000".to_owned())
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1".to_owned())
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let time: Duration = text.parse::<humantime::Duration>().map_err(|e| e.to_string())?.into();
    if (Duration::from_millis(1)..=Duration::from_secs(3600)).contains(&time) {
        Ok(time)
    } else {
        Err("a time here lies between 1ms and 1h".to_owned())
    }
}

fn parse_limit(text: &str) -> Result<Duration, String> {
    let time: Duration = text.parse::<humantime::Duration>().map_err(|e| e.to_string())?.into();
    if (Duration::from_millis(1)..=Duration::from_secs(86_400)).contains(&time) {
        Ok(time)
    } else {
        Err("a time here lies between 1ms and 1day".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn everything_after_the_command_is_the_commands() {
        let cli = Cli::parse_from(["symbiont", "run", "make", "--report", "-j4"]);
        let Command::Run(run) = cli.command else { panic!("not run") };
        assert_eq!(run.command, ["make", "--report", "-j4"]);
        assert!(run.report.is_none());
    }

    #[test]
    fn variables_have_a_name() {
        assert_eq!(parse_variable("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert!(parse_variable("A").is_err() && parse_variable("=b").is_err());
    }

    #[test]
    fn quanta_have_units_and_bounds() {
        assert_eq!(parse_duration("20ms"), Ok(Duration::from_millis(20)));
        assert!(parse_duration("20").is_err());
        assert!(parse_duration("0ms").is_err());
        assert!(parse_duration("2h").is_err());
    }
}
