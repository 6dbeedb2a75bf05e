//! The command line, as data. Help texts teach: what it does, what it leaves
//! alone, one example each.

mod advise;
mod batch;
mod daemon;
mod groups;
mod knowledge;
mod policy;
mod replay;
mod slurm;

use std::path::PathBuf;
use std::time::Duration;

pub use advise::Advise;
use anyhow::Context;
pub use batch::{Batch, KeepJob, Order};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub use daemon::{Attach, Daemon, Detach, Processes, Reload, Status, Top, WhyArgs};
pub use knowledge::Knowledge;
pub use policy::{Parameters, PolicyOptions};
pub use replay::Replay;
pub use slurm::{AskNodes, Slurm, SlurmCommand, SlurmFiles, SlurmWhy};
use symbiont_control::Holding;
use symbiont_linux::actuate::default_state_dir;
use symbiont_linux::machine::Keeping;
use symbiont_linux::slow::SlowCpu;
use symbiont_machine::Class;

/// Puts the right threads together: places the threads of programs on the
/// hardware threads where they disturb each other least.
///
/// Programs run unmodified and unprivileged; what was changed is restored at
/// the end. Start with `symbiont doctor`.
#[derive(Debug, Parser)]
#[command(
    name = "symbiont",
    version,
    max_term_width = 100,
    help_template = "{about-with-newline}\n{usage-heading} {usage}{after-help}\n\nOptions:\n{options}",
    after_help = groups::text()
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one, and it is soon taken apart")]
pub enum Command {
    Run(Run),
    Batch(Batch),
    Slurm(Slurm),
    Attach(Attach),
    Detach(Detach),
    Status(Status),
    Why(WhyArgs),
    Top(Top),
    Advise(Advise),
    Stat(Stat),
    Replay(Replay),
    Doctor(Doctor),
    Policies(Policies),
    Restore(Restore),
    Daemon(Daemon),
    Reload(Reload),
    #[cfg(feature = "bench")]
    Bench(crate::bench::args::BenchArgs),
    #[cfg(feature = "research")]
    #[command(flatten)]
    Research(crate::research::args::Research),
    #[command(hide = true)]
    SlowCpu(SlowCpuArgs),
    #[command(hide = true)]
    KeepJob(KeepJob),
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
/// Management ends when COMMAND and its descendants have ended. Daemons, descendants
/// that left its session, are restored and released once COMMAND has ended, unless
/// --linger is given.
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
  symbiont run --policy phases --set threshold=2 --set seniority=500ms -- ./solver
  symbiont run --job jobs.toml

A job file:
  [[job]]
  name = \"render\"
  command = [\"povray\", \"+Iscene.ini\"]
  stdout = \"render.log\"        # optional: stdin, stdout, stderr, directory, env
  session = \"own\"              # optional: a session of its own; default \"shared\""
)]
pub struct Run {
    /// Policy that decides (see `symbiont policies`) [default: the daemon's where one runs, else
    /// auto]
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    /// Period of the loop, e.g. 20ms or 1s [default: the policy's own]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub quantum: Option<Duration>,
    #[command(flatten)]
    pub options: PolicyOptions,
    /// What the programs are run for: latency (a core of their own, siblings included), batch (run
    /// when no other thread wants the CPU), alone (to be measured, as --alone) or normal [default: normal]
    #[arg(long, value_name = "CLASS")]
    pub class: Option<Class>,
    /// For measuring: keep other managed programs off the cores of COMMAND, whose siblings stay
    /// empty, and report what ran there all the same; not run where that is impossible
    #[arg(long, conflicts_with_all = ["class", "jobs", "dry_run"])]
    pub alone: bool,
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
    /// Which threads keep a narrow mask. Others are nudged: their mask is set back within microseconds, so
    /// that programs count the CPUs that they count without Symbiont
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Narrow::AsDecided)]
    pub narrow: Narrow,
    /// How threads that keep their masks are kept where they are placed. With --dry-run nothing is loaded
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Actuator::Nudges)]
    pub actuator: Actuator,
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
    /// Bring a manager of its own also where a daemon runs, which then knows nothing of these programs
    #[arg(long)]
    pub own_manager: bool,
    /// How long to wait for a word of the manager before the programs go on without it
    /// [default: 10s at the start, 30s at the end]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub patience: Option<Duration>,
    /// What a daemon calls the program; `batch` gives it, since its commands are run by a shell
    #[arg(long, value_name = "NAME", hide = true)]
    pub called: Option<String>,
    /// What a daemon knows the program by from one run to the next
    #[arg(long, value_name = "DIGEST", hide = true)]
    pub identity: Option<String>,
    /// Print nothing except why COMMAND could not be run
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say which manager manages COMMAND, by which policy
    #[arg(short, long)]
    pub verbose: bool,
    /// Keep what was measured and decided in FILE (JSON lines, for `symbiont replay`)
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Decide, but change nothing of these programs; reports what would have been done
    #[arg(long)]
    pub dry_run: bool,
    /// Go on to manage daemons, which left the session of COMMAND, when COMMAND has ended
    /// [default: they are restored and released]
    #[arg(long, conflicts_with_all = ["report", "jobs", "record", "dry_run"])]
    pub linger: bool,
    /// Report at the end, on standard error: what was done; where each program ran, with which
    /// co-runners, why, and what slowdown was predicted
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
    pub activity: crate::research::VectorFiles,
    #[command(flatten)]
    pub state: State,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present = "jobs")]
    pub command: Vec<std::ffi::OsString>,
}

impl Run {
    /// What the programs are run for.
    pub fn class(&self) -> Class {
        if self.alone { Class::Alone } else { self.class.unwrap_or_default() }
    }
}

/// Where managers keep what must survive them.
#[derive(Debug, Args)]
pub struct State {
    /// Where journals and the lock are; one symbiont at a time manages with one [default: one
    /// per user, see `symbiont doctor`]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

impl State {
    /// The given directory.
    #[cfg(test)]
    pub fn of(dir: &std::path::Path) -> Self {
        Self { state_dir: Some(dir.to_owned()) }
    }

    /// The directory, as an absolute path: a manager works from `/`.
    pub fn dir(&self) -> anyhow::Result<PathBuf> {
        Ok(self.given()?.unwrap_or_else(default_state_dir))
    }

    /// The same if one was given.
    pub fn given(&self) -> anyhow::Result<Option<PathBuf>> {
        let absolute = |dir: &PathBuf| {
            std::path::absolute(dir)
                .with_context(|| format!("where is the state directory {}?", dir.display()))
        };
        self.state_dir.as_ref().map(absolute).transpose()
    }
}

/// Which threads keep a narrow mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Narrow {
    /// Those of the policy `static` and of the classes `latency` and `alone`
    AsDecided,
    /// These, and those that the kernel moves away again and again from where they are nudged
    WhereNeeded,
    /// All that are placed: none is nudged
    Always,
}

impl From<Narrow> for Holding {
    fn from(narrow: Narrow) -> Self {
        match narrow {
            Narrow::AsDecided => Self::AsDecided,
            Narrow::WhereNeeded => Self::WhereNeeded,
            Narrow::Always => Self::Always,
        }
    }
}

/// How threads that keep their masks are kept where they are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Actuator {
    /// They are nudged there, and again when the kernel has moved them away
    Nudges,
    /// By a scheduler of Symbiont's in the kernel (sched_ext), to which only placed threads are given; it takes root
    /// and the program symbiont-scx
    SchedExt,
    /// The same, with all usual threads of the machine
    SchedExtFull,
}

impl From<Actuator> for Keeping {
    fn from(actuator: Actuator) -> Self {
        match actuator {
            Actuator::Nudges => Self::Nudges,
            Actuator::SchedExt => Self::SchedExt,
            Actuator::SchedExtFull => Self::SchedExtFull,
        }
    }
}

/// Refuses what contradicts itself: a scheduler in the kernel keeps threads that no mask holds.
///
/// # Errors
/// When all threads are to be held by masks and kept by such a scheduler.
pub fn refuse_held_and_kept(holding: Holding, keeping: Keeping) -> anyhow::Result<()> {
    if holding == Holding::Always && keeping != Keeping::Nudges {
        anyhow::bail!(
            "'narrow' is \"always\": each placed thread is held by its mask, which leaves none to \
             a scheduler in the kernel ('actuator'); leave one of the two out"
        );
    }
    Ok(())
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
/// children, and reports IPC, CPI stack, Top-Down categories, FPU usage, L1D
/// bandwidth and misses of each thread: as far as this machine can count them,
/// and else why not. Steers nothing and changes nothing.
///
/// A thread is counted once it has been seen twice (some 50 looks a second, fewer
/// where threads are many); the column "counted" gives for what share of its CPU
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
        value_parser = daemon::number,
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
    /// Count one group of events after the other, one per reading, instead of leaving it to the
    /// kernel to share the counters out
    #[arg(long)]
    pub rotate: bool,
    /// Report also meanwhile, each time over the time since
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

/// Show what this machine offers
///
/// Topology; how programs are watched; what can be counted; what can be enforced
/// and restored; which policies can run here, and why the others cannot. With
/// --machine: what an event catalogue says about counting on processors of that kind, whatever
/// this machine is. With --topology: what the structure of another machine is, and what policies would choose
/// there; the rest of that machine is not known. Changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  symbiont doctor
  symbiont doctor --machine zen4
  symbiont doctor --topology 'package:2 core:16 smt:2'
  symbiont doctor --topology machine.xml
  symbiont doctor --topology gathered.tar.bz2")]
pub struct Doctor {
    /// Show the event catalogue NAME (zen4, power8, ...): events, groups, formulas, signals
    #[arg(long, value_name = "NAME")]
    pub machine: Option<String>,
    /// Describe another machine: a copy of /sys (a folder, or a tar archive, also by gzip or bzip2), an XML export of
    /// hwloc, a line like 'core:4 smt:2', or a synthetic string of hwloc like 'core:4 pu:2'
    #[arg(long, value_name = "DIR|FILE|STRING", conflicts_with = "machine")]
    pub topology: Option<String>,
    /// Draw packages, nodes, caches, cores and hardware threads instead
    #[arg(
        long,
        value_name = "FORM",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "text",
        conflicts_with_all = ["machine", "json"]
    )]
    pub draw: Option<Drawing>,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: State,
}

/// What a machine is drawn as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Drawing {
    /// For a terminal
    Text,
    /// For a document
    Svg,
}

/// List the policies and their parameters
///
/// A line for each policy; with NAME all about one: its source, what it needs, and each parameter with
/// default and bounds. Parameters are set by `--set KEY=VALUE` of the commands that choose a policy, and
/// in the table `[set]` of the daemon's configuration.
#[derive(Debug, Args)]
#[command(after_long_help = crate::policies::all_parameters())]
pub struct Policies {
    /// Show all about this one
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// Restore what a crashed symbiont left changed
///
/// Reads the journals of managers that are no longer alive and restores the
/// affinity, nice value and class of every thread that still has what symbiont
/// set. What another process changed meanwhile is left alone. A manager that was
/// killed and has not ended yet is waited for, up to 10 s. Root restores for all
/// users, unless a directory is given, and so also setuid programs, which their
/// users cannot change.
#[derive(Debug, Args)]
pub struct Restore {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: State,
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

pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let time: Duration = text.parse::<humantime::Duration>().map_err(|e| e.to_string())?.into();
    if (Duration::from_millis(1)..=Duration::from_secs(3600)).contains(&time) {
        Ok(time)
    } else {
        Err("a time here lies between 1ms and 1h".to_owned())
    }
}

/// Of commands whose neighbours take seconds: a number without a unit is that.
fn parse_delay(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => {
            parse_duration(&format!("{:.0}ms", seconds * 1e3))
        }
        _ => parse_duration(text),
    }
}

pub fn parse_limit(text: &str) -> Result<Duration, String> {
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
    fn quanta_have_units_and_bounds() {
        assert_eq!(parse_duration("20ms"), Ok(Duration::from_millis(20)));
        assert!(parse_duration("20").is_err());
        assert!(parse_duration("0ms").is_err());
        assert!(parse_duration("2h").is_err());
    }
}
