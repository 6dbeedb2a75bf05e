//! The daemon and what its clients ask for, as arguments.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use symbiont_machine::Class;

use super::{Actuator, Narrow, Parameters, State, parse_delay};
use crate::top::Fold;
use crate::top::clean::is_shown;

/// Run the daemon that manages the programs of this machine
///
/// Waits for `symbiont run`, `attach` and other clients, places all programs together by one policy,
/// and restores everything when it ends (SIGTERM, SIGINT). SIGHUP has it read its configuration
/// again. As root it serves all users; a user sees and changes own programs only. After a
/// crash the next start restores what was changed, and manages again what still runs.
///
/// A link called `symbiontd` to this program is the same command. It stays in the foreground and
/// logs to standard error, for a service manager.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  systemctl enable --now symbiontd
  symbiont daemon --policy phases

Files:
  /etc/symbiont/symbiontd.toml    configuration
  /usr/lib/symbiont/rules.d       rules of the distribution: what is managed, and in which class
  /etc/symbiont/rules.d           rules of the administrator; they override those by name and order
  /run/symbiont/symbiontd.sock    where clients connect; they speak varlink (io.symbiont.Manager)
  /run/symbiont                   journal and lock, and what is managed again after a crash
Another user's daemon has socket and journal in a directory of its own; see `symbiont doctor`.

Signals:
  SIGTERM, SIGINT    restore everything and end
  SIGHUP             read the configuration again, as `symbiont reload` has it done")]
pub struct Daemon {
    /// Configuration (TOML) [default: /etc/symbiont/symbiontd.toml where it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Policy, instead of the configuration's and of its table `[set]`
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    #[command(flatten)]
    pub parameters: Parameters,
    /// Which threads keep a narrow mask, instead of the configuration's `narrow`; others are nudged: their
    /// mask is set back within microseconds
    #[arg(long, value_enum, value_name = "WHICH")]
    pub narrow: Option<Narrow>,
    /// How other threads are kept where they are placed, instead of the configuration's `actuator`
    #[arg(long, value_enum, value_name = "HOW")]
    pub actuator: Option<Actuator>,
    /// Directory of rules (*.toml) that say what is managed without being asked for; repeatable, a
    /// file replaces the one of the same name in an earlier directory [default: see Files]
    #[arg(long, value_name = "DIR")]
    pub rules: Vec<PathBuf>,
    #[command(flatten)]
    pub state: State,
}

/// Manage programs that already run
///
/// Hands processes, with all their threads and descendants, to the daemon (`symbiont daemon`).
/// They must be yours, unless you are root. `symbiont detach` undoes it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  symbiont attach --pid 4711
  symbiont attach --unit nginx.service
  symbiont attach --pod 'shop/web-*' --class latency
  symbiont attach --cgroup 'user.slice/*/build-*'")]
pub struct Attach {
    #[command(flatten)]
    pub processes: Processes,
    /// Name that `status` shows [default: the names of its processes]
    #[arg(long, value_name = "NAME", value_parser = program_name)]
    pub name: Option<String>,
    /// What they are run for: latency, batch, normal, or alone for measuring [default: normal]
    #[arg(long, value_name = "CLASS")]
    pub class: Option<Class>,
    /// Configuration that says where runtimes keep their state [default: the daemon's]
    #[arg(long, value_name = "FILE", hide = true)]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub state: State,
}

/// Restore programs, and manage them no more
///
/// Releases the whole programs that these processes belong to. What was changed is restored before
/// the command returns.
#[derive(Debug, Args)]
pub struct Detach {
    #[command(flatten)]
    pub processes: Processes,
    /// Configuration that says where runtimes keep their state [default: the daemon's]
    #[arg(long, value_name = "FILE", hide = true)]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub state: State,
}

/// The number of a process or a thread.
pub fn number(text: &str) -> Result<u32, &'static str> {
    text.parse().map_err(|_| "not the number of a process or a thread")
}

/// A name that a line of a table and of a log can hold.
fn program_name(text: &str) -> Result<String, String> {
    /// Characters, as the daemon keeps them.
    const MOST: usize = 256;
    match text.chars().count() {
        0 => Err("a name has at least one character".to_owned()),
        count if count > MOST => Err(format!("a name has no more than {MOST} characters")),
        _ if !text.chars().all(is_shown) => {
            Err("a name has no control characters, nor such as are not seen".to_owned())
        }
        _ => Ok(text.to_owned()),
    }
}

/// Names processes.
#[derive(Debug, Default, Args)]
#[group(required = true, multiple = true)]
pub struct Processes {
    /// Number of a process; repeatable
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',', value_parser = number)]
    pub pids: Vec<u32>,
    /// All processes of the cgroups of this path, as /proc/PID/cgroup shows it, and of those within them; `*`
    /// stands for any characters but `/`, `**` for any folders
    #[arg(long, value_name = "GLOB")]
    pub cgroup: Option<String>,
    /// All processes of a systemd unit, e.g. nginx.service
    #[arg(long, value_name = "NAME")]
    pub unit: Option<String>,
    /// All processes of the pods of this namespace and name, e.g. 'shop/web-*'
    #[arg(long, value_name = "NAMESPACE/GLOB", value_parser = pod)]
    pub pod: Option<String>,
    /// All processes of the containers of this name; with --pod, of those in these pods
    #[arg(long, value_name = "GLOB")]
    pub container: Option<String>,
}

/// A pod, as rules name it.
fn pod(text: &str) -> Result<String, &'static str> {
    let can_be = symbiont_daemon::can_be_a_pod(text);
    can_be.then(|| text.to_owned()).ok_or("a pod is written as NAMESPACE/NAME")
}

/// Show what the daemon manages
///
/// Its policy, its programs with their hardware threads and the last reason, moves so far, and what
/// the daemon itself costs. A user sees own programs, root all.
#[derive(Debug, Args)]
pub struct Status {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    /// Print the JSON schema of what --json writes, and exit
    #[arg(long, conflicts_with = "json")]
    pub schema: bool,
    #[command(flatten)]
    pub state: State,
}

/// Explain why a thread runs where it does
///
/// Policy, reason, co-runners and what kept a move from being made, for one thread or for all threads
/// of a process. Where the policy predicts slowdowns: the predicted one, the one achieved in the last
/// quantum as estimated from what was measured, and the runner-up: the best placement that differs by
/// this thread changing places with another one or going to a free hardware thread, and its cost.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// Number of a thread or a process
    #[arg(value_name = "TID|PID", required_unless_present = "schema", value_parser = number)]
    pub id: Option<u32>,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    /// Print the JSON schema of what --json writes, and exit
    #[arg(long, conflicts_with_all = ["json", "id"])]
    pub schema: bool,
    #[command(flatten)]
    pub state: State,
}

/// Show live what the daemon does
///
/// Cores with the programs on them; threads with CPU, share of time, co-runners, category or CPI stack
/// and slowdown where these are known; recent moves with their reasons; what the daemon costs. `h`
/// shows the keys. A user sees own programs, root all. Where no daemon runs, it watches the threads of
/// your processes by itself, as root of all. Changes nothing.
#[derive(Debug, Args)]
#[command(after_help = crate::top::help_of_keys())]
pub struct Top {
    /// Print once as text, and exit; as wide as COLUMNS or else the terminal, elsewhere as wide as the text is
    #[arg(long)]
    pub once: bool,
    /// Print once as JSON, and exit
    #[arg(long)]
    pub json: bool,
    /// Print the JSON schema of what --json writes, and exit
    #[arg(long, conflicts_with_all = ["json", "once"])]
    pub schema: bool,
    /// Time between two snapshots, over which shares are taken
    #[arg(short = 'd', long, visible_alias = "delay", value_name = "TIME", default_value = "1s",
          value_parser = parse_delay)]
    pub interval: Duration,
    /// When there are colours; auto: where the terminal has them, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: clap::ColorChoice,
    /// What a row of the list stands for, until the key f
    #[arg(long, value_enum, value_name = "ROWS", default_value_t = Fold::Threads)]
    pub fold: Fold,
    /// Only threads of these processes, separated by commas
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',', value_parser = number)]
    pub pids: Vec<u32>,
    /// Only programs of this user, by name or number
    #[arg(short, long, value_name = "USER")]
    pub user: Option<String>,
    #[command(flatten)]
    pub state: State,
}

/// Have the daemon read its configuration again
///
/// A configuration that cannot be used is refused with the reason; the old one stays. Of a file of rules that
/// cannot be used the rules read before stay; it is named, and the status is 1.
#[derive(Debug, Args)]
pub struct Reload {
    #[command(flatten)]
    pub state: State,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_bounded_and_a_line() {
        assert_eq!(program_name("größe 1"), Ok("größe 1".to_owned()));
        assert!(program_name(&"x".repeat(256)).is_ok());
        for wrong in ["", "a\nb", "\u{1b}[31m", "\u{202e}x", &"x".repeat(257)] {
            assert!(program_name(wrong).is_err(), "{wrong:?}");
        }
    }
}
