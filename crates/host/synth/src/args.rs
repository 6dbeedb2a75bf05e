//! The command line, as data.

use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use clap::{Args, Parser, Subcommand};
use symbiont_linux::kernels::LoopKernel;
use symbiont_synth::Ratio;

/// A program that alternates between serial and parallel phases
///
/// The synthetic benchmark of Morad et al. (2008), Fig. 3: in a parallel phase N
/// threads take chunks of a calculation from a shared counter, in a serial phase
/// one thread calculates and the others sleep. It reports iterations per second.
///
/// The ratio PARALLEL:SERIAL is work with the parallel part divided by N, so an
/// idle machine of N CPUs spends its time in that ratio: 1:1 is half parallel,
/// half serial; inf:1 completely parallel; 1:inf completely serial.
#[derive(Debug, Parser)]
#[command(
    name = "symbiont-synth",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  symbiont-synth --ratio 1:1                     five seconds, then the report
  symbiont-synth --ratio 4:1 --until-work 5000000 --json
  symbiont-synth calibrate                       once, on the idle machine; then
  symbiont-synth --ratio 1:4 --rate 950000       runs that can be compared
  symbiont-synth threads --count 512             512 threads that mostly sleep
  symbiont-synth churn --rate 5000               5,000 threads born and ended a second
  symbiont-synth kernel 'dependent adds'         how long each of many adds takes
  symbiont-synth requests --rate 500             how long requests take: median, 99 %, 99.9 %

SIGTERM and SIGINT end a run early, with its report; exit status 0."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub phases: Phases,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Calibrate(Calibrate),
    Threads(Threads),
    Churn(Churn),
    Requests(Requests),
    Kernel(KernelOf),
}

#[derive(Debug, Args)]
pub struct Phases {
    /// Parallel to serial work, e.g. 4:1, 1:1, inf:1, 1:inf
    #[arg(long, default_value = "1:1", value_name = "PARALLEL:SERIAL")]
    pub ratio: Ratio,
    /// Threads, the main one included [default: the CPUs it may use]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroU32>,
    /// Mean length of a phase on an idle machine; a cycle of one parallel and
    /// one serial phase takes twice that
    #[arg(long, default_value = "200ms", value_name = "TIME", value_parser = positive_time)]
    pub phase: Duration,
    /// Iterations per second of one thread on the idle machine, as reported by
    /// `calibrate` [default: measured as the run begins, under whatever load]
    #[arg(long, value_name = "RATE", value_parser = positive)]
    pub rate: Option<f64>,
    /// Mean length of a phase as work of one thread, instead of --phase and --rate
    #[arg(long, value_name = "COUNT", value_parser = positive, conflicts_with_all = ["phase", "rate"])]
    pub iterations_per_phase: Option<f64>,
    /// How long to run
    #[arg(long, default_value = "5s", value_name = "TIME", value_parser = positive_time)]
    pub duration: Duration,
    /// Run until this many iterations are done, however long it takes
    #[arg(long, value_name = "COUNT", conflicts_with = "duration")]
    pub until_work: Option<u64>,
    /// When to start, in seconds since 1970 with decimals (date +%s.%N), so that
    /// several programs start together
    #[arg(long, value_name = "SECONDS", value_parser = time_of_day)]
    pub start_at: Option<SystemTime>,
    /// Seed of the lengths of the phases
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Add to the JSON report when each phase began and ended (CLOCK_MONOTONIC)
    #[arg(long, requires = "json")]
    pub log: bool,
    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}

/// Measure the speed of one thread, for --rate; a quarter of a second
#[derive(Debug, Args)]
pub struct Calibrate {
    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}

/// Run many threads, most of which sleep most of the time
///
/// Each thread wakes WAKES times a second and does WORK iterations (about one
/// microsecond each); the first BUSY of them never sleep. For measuring what it
/// costs to manage many threads.
#[derive(Debug, Args)]
pub struct Threads {
    /// Threads in addition to the main one
    #[arg(long, value_name = "COUNT")]
    pub count: u32,
    /// How many of them never sleep
    #[arg(long, default_value_t = 0, value_name = "BUSY")]
    pub busy: u32,
    /// Times per second that each of the others wakes
    #[arg(long, default_value_t = 10.0, value_name = "WAKES", value_parser = positive)]
    pub wakes: f64,
    /// Iterations at each wake
    #[arg(long, default_value_t = 20, value_name = "WORK")]
    pub work: u64,
    /// How long to run
    #[arg(long, default_value = "5s", value_name = "TIME", value_parser = positive_time)]
    pub duration: Duration,
    /// Seed of the moments of the first wakes
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}

/// Start many threads, each of which ends at once
///
/// For testing what watching short lives costs, and what it leaves behind.
#[derive(Debug, Args)]
pub struct Churn {
    /// Threads to start per second
    #[arg(long, default_value_t = 5000.0, value_name = "COUNT", value_parser = positive)]
    pub rate: f64,
    /// Iterations of each (about one microsecond each)
    #[arg(long, default_value_t = 5, value_name = "WORK")]
    pub work: u64,
    /// How long to run
    #[arg(long, default_value = "5s", value_name = "TIME", value_parser = positive_time)]
    pub duration: Duration,
    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}

/// Answer requests that arrive at random, and report their latencies
///
/// One thread sleeps until the next request, works, and notes the time from arrival to end. The
/// report has median, 99th and 99.9th percentile, and a histogram.
#[derive(Debug, Args)]
pub struct Requests {
    /// Requests per second, on average
    #[arg(long, default_value_t = 500.0, value_name = "COUNT", value_parser = positive)]
    pub rate: f64,
    /// Iterations for each (about one microsecond each)
    #[arg(long, default_value_t = 100, value_name = "WORK")]
    pub work: u64,
    /// Time before the first request that counts
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = positive_time)]
    pub warm_up: Duration,
    /// How long requests count
    #[arg(long, default_value = "5s", value_name = "TIME", value_parser = positive_time)]
    pub duration: Duration,
    /// Seed of the moments of arrival
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}

/// Execute a loop whose speed follows from a few figures of the core, and report cycles per operation
///
/// Chains of one operation, independent ones, branches, pointers through each level of the caches. x86-64 only.
#[derive(Debug, Args)]
pub struct KernelOf {
    /// Its name [default: list them]
    #[arg(value_parser = kernel)]
    pub kernel: Option<LoopKernel>,
    /// Rounds
    #[arg(long, default_value_t = 100_000, value_name = "COUNT")]
    pub rounds: u64,
    /// Execute it for this time instead, and count what was done
    #[arg(long, value_name = "TIME", value_parser = positive_time, conflicts_with = "rounds")]
    pub duration: Option<Duration>,
    /// With --duration: when to start, in seconds since 1970 with decimals, so that several start together
    #[arg(long, value_name = "SECONDS", value_parser = time_of_day, requires = "duration")]
    pub start_at: Option<SystemTime>,
    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}

fn kernel(name: &str) -> Result<LoopKernel, String> {
    LoopKernel::named(name)
        .ok_or_else(|| "there is none of that name; without one, all are listed".to_owned())
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("a number above zero is expected".to_owned()),
    }
}

fn positive_time(text: &str) -> Result<Duration, String> {
    let time: Duration = text.parse::<humantime::Duration>().map_err(|e| e.to_string())?.into();
    if (Duration::from_micros(1)..=Duration::from_secs(86_400)).contains(&time) {
        Ok(time)
    } else {
        Err("a time between 1us and 1day is expected".to_owned())
    }
}

fn time_of_day(text: &str) -> Result<SystemTime, String> {
    let seconds = positive(text)?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since))
        .ok_or_else(|| "seconds since 1970 are expected".to_owned())
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
    fn numbers_and_times_out_of_bounds_are_refused() {
        assert!(positive("0").is_err() && positive("nan").is_err() && positive("inf").is_err());
        assert!(positive_time("0s").is_err() && positive_time("2days").is_err());
        assert!(time_of_day("1e300").is_err());
        assert_eq!(positive_time("200ms"), Ok(Duration::from_millis(200)));
    }

    #[test]
    fn two_ways_to_say_the_same_are_refused() {
        for line in [
            "x --phase 1s --iterations-per-phase 5",
            "x --until-work 5 --duration 1s",
            "x --ratio 0:1",
            "x kernel k --start-at 5",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
