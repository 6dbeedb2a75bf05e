//! `symbiont doctor`: what this machine offers. Changes nothing.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde::{Serialize, Serializer};
use symbiont_linux::actuate::{Abilities, Cgroups, Privilege, loaded_scheduler};
use symbiont_linux::confines::Confines;
use symbiont_linux::observe::{Method, WatchOptions, Watcher};
use symbiont_machine::{Ability, Signal, Support};
use symbiont_policy::{CannotRun, Settings, policies};
use symbiont_topology::{HostTopology, Topology};

use crate::args::{Doctor, Drawing};
use crate::described::described;
use crate::prospects::prospects;
use catalogue::CatalogueFinding;
use counting::CountingFinding;
use described::DescribedFindings;

pub mod catalogue;
mod counting;
mod described;
mod plugin;
mod plugstack;
mod slurm;
pub mod text;

/// All findings.
#[derive(Debug, Serialize)]
struct Findings {
    /// What there is to gain, in a line.
    in_short: String,
    topology: HostTopology,
    /// Files of `/sys` that were not understood.
    left_out: Vec<String>,
    kernel: String,
    /// Where this process may run.
    confines: Confines,
    support: Support,
    /// Can cookies of core scheduling be read? Threads with different ones are not placed on one core.
    core_scheduling: Ability,
    /// What this user's own manager leaves to the OS, if anything.
    not_placed: Option<&'static str>,
    /// How new threads are found.
    enrolment: String,
    /// Where journals and the lock are kept.
    state_dir: String,
    counting: CountingFinding,
    policies: Vec<PolicyFinding>,
    /// What Slurm leaves to be chosen, where it is set up.
    slurm: Option<slurm::SlurmFinding>,
}

#[derive(Debug, Serialize)]
struct PolicyFinding {
    name: &'static str,
    summary: &'static str,
    /// What it chooses here, and why.
    choice: Option<String>,
    /// Why it cannot run here without further options, if it cannot.
    #[serde(serialize_with = "as_text")]
    cannot_run: Option<CannotRun>,
    /// What of it does not act here.
    limits: Vec<String>,
}

/// Examines the host and prints the findings.
pub fn doctor(args: &Doctor) -> anyhow::Result<()> {
    if let Some(name) = &args.machine {
        let finding = CatalogueFinding::of(&catalogue::find(name)?);
        let text =
            if args.json { format!("{}\n", crate::out::json(&finding)?) } else { finding.text() };
        say_all!("{text}");
        return Ok(());
    }
    if let Some(form) = args.draw {
        let topology = match &args.topology {
            Some(given) => described(given)?.topology,
            None => (*host()?).clone(),
        };
        match form {
            Drawing::Text => say_all!("{}", topology.draw(columns())),
            Drawing::Svg => say_all!("{}", topology.draw_svg()),
        }
        return Ok(());
    }
    if let Some(given) = &args.topology {
        let findings = DescribedFindings::of(described(given)?);
        match args.json {
            true => say!("{}", crate::out::json(&findings)?),
            false => say_all!("{}", findings.text()),
        }
        return Ok(());
    }
    let findings = look(&args.state.dir()?)?;
    if args.json {
        say!("{}", crate::out::json(&findings)?);
    } else {
        say_all!("{}", findings.text());
    }
    Ok(())
}

/// See `symbiont_linux::actuate`, "Threads that could become another user's".
const PARENTS: &str = "processes that have made others (unless under no_new_privs): a child could \
     become another user's (su, sudo), which you may not restore. Root's `symbiont daemon` places them";

/// See `symbiont_policy`, module `cookies`.
const COOKIES: &str =
    "threads with different cookies (PR_SCHED_CORE, coresched(1)) are never placed on one core";

/// Of the terminal, or as many as fit on any.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(80)
}

/// Could threads be kept on their targets by a scheduler in the kernel?
fn scheduler_ability() -> Ability {
    match (symbiont_ext::obstacle(), symbiont_ext::loader()) {
        (Some(why), _) => Ability::Absent(why),
        (None, None) => Ability::Absent(
            "the program symbiont-scx, which loads a scheduler, is not installed".to_owned(),
        ),
        (None, Some(_)) => Ability::Full,
    }
}

fn host() -> anyhow::Result<HostTopology> {
    HostTopology::read().context("cannot read this machine's topology")
}

fn look(state_dir: &Path) -> anyhow::Result<Findings> {
    let topology = host()?;
    let watcher = Watcher::start(WatchOptions::default(), Box::new(()))
        .context("threads cannot be watched")?;
    let grouping = Cgroups::discover(&topology).grouping();
    let scheduler = loaded_scheduler();
    let (online, privilege) = (topology.cpus().len(), Privilege::current());
    let abilities = Abilities::new(online, privilege, grouping, scheduler.as_deref());
    let counting = counting::look()?;
    let mut signals = BTreeMap::from([(Signal::RunStates, watcher.run_states())]);
    signals.extend(counting.signals.clone());
    let support = Support {
        signals,
        affinity: abilities.affinity,
        boost: abilities.boost,
        idle_class: abilities.idle_class,
        scheduler: scheduler_ability(),
        enrolment: watcher.enrolment(),
    };
    let policies = policies()
        .iter()
        .map(|entry| PolicyFinding {
            name: entry.name,
            summary: entry.summary,
            choice: {
                let mut made = (entry.make)(&Settings::default());
                made.offer(&support, &topology);
                made.choice()
            },
            cannot_run: entry.check(&Settings::default(), Some((&support, &topology))).err(),
            limits: limits(entry.boosts, &support),
        })
        .collect();
    let enrolment = match watcher.method() {
        Method::Connector { buffer, realtime } => {
            let reader = match realtime {
                Ok(()) => "reader at real-time priority".to_owned(),
                Err(why) => format!("reader at normal priority: {why}"),
            };
            format!("process connector, buffer of {} MiB, {reader}", buffer >> 20)
        }
        Method::Scan { why } => format!("scanning /proc each quantum ({why})"),
    };
    Ok(Findings {
        in_short: prospects(&topology, &support),
        confines: Confines::read(&topology),
        kernel: kernel(),
        left_out: topology.left_out().iter().map(ToString::to_string).collect(),
        topology,
        support,
        core_scheduling: symbiont_linux::cookies::ability(),
        not_placed: (!privilege.may_place_all()).then_some(PARENTS),
        enrolment,
        state_dir: state_dir.display().to_string(),
        counting,
        policies,
        slurm: slurm::look(),
    })
}

fn kernel() -> String {
    let name = rustix::system::uname();
    format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy())
}

/// What of a policy that can run does not act here.
fn limits(boosts: bool, support: &Support) -> Vec<String> {
    let mut limits = Vec::new();
    if let Some(why) = support.affinity.why() {
        limits.push(format!("placing: {why}"));
    }
    if let (true, Some(why)) = (boosts, support.boost.why()) {
        limits.push(format!("boosting: {why}"));
    }
    limits
}

impl Findings {
    fn text(&self) -> String {
        let mut lines = vec![text::hanging("In short:", &self.in_short, 10).trim_end().to_owned()];
        let auto = self.policies.iter().find(|policy| policy.name == symbiont_policy::DEFAULT);
        if let Some(choice) = auto.and_then(|policy| policy.choice.as_ref()) {
            lines.push(text::wrapped(&format!("{}: {choice}", symbiont_policy::DEFAULT), 10));
        }
        lines.push(String::new());
        lines.push(format!("Machine ({})", self.kernel));
        lines.extend(self.topology.to_string().lines().map(|line| format!("  {line}")));
        let left_out = self.left_out.iter().map(|what| text::hanging("  left out", what, 18));
        lines.extend(left_out.map(|text| text.trim_end().to_owned()));
        let limits = crate::confines::lines(&self.confines);
        let limits =
            limits.iter().map(|(label, what)| text::hanging(&format!("  {label}"), what, 18));
        lines.extend(limits.map(|text| text.trim_end().to_owned()));
        lines.push(String::new());
        lines.push("Watching".to_owned());
        lines.push(format!("  new threads     {}", self.enrolment));
        if let Some(ability) = self.support.signals.get(&Signal::RunStates) {
            lines.push(format!("  run states      {}", words(ability)));
        }
        lines.push(String::new());
        lines.push(self.counting.text());
        lines.push("Steering, always with the way back".to_owned());
        lines.push(format!("  affinity        {}", words(&self.support.affinity)));
        if let Some(which) = self.not_placed {
            lines.push(text::hanging("  not placed", which, 18).trim_end().to_owned());
        }
        lines.push(format!("  boost (nice)    {}", words(&self.support.boost)));
        lines.push(format!("  SCHED_IDLE      {}", words(&self.support.idle_class)));
        lines.push(
            text::hanging("  sched_ext       ", &words(&self.support.scheduler), 18)
                .trim_end()
                .to_owned(),
        );
        lines.extend(core_scheduling(&self.topology, &self.core_scheduling));
        lines.push(format!("  journal         in {}", self.state_dir));
        lines.push(String::new());
        lines.push("Policies".to_owned());
        let width = self.policies.iter().map(|policy| policy.name.len()).max().unwrap_or(0);
        for policy in &self.policies {
            let label = format!("  {:<width$}  ", policy.name);
            let indent = label.len();
            lines.push(text::hanging(&label, &policy.verdict(), indent).trim_end().to_owned());
            lines.extend(policy.limits.iter().map(|limit| text::wrapped(limit, indent)));
        }
        lines.push(String::new());
        lines.extend(self.slurm.iter().flat_map(slurm::SlurmFinding::lines));
        lines.join("\n")
    }
}

impl PolicyFinding {
    fn verdict(&self) -> String {
        match &self.cannot_run {
            None => match &self.choice {
                Some(choice) => format!("can run: {}; here: {choice}", self.summary),
                None => format!("can run: {}", self.summary),
            },
            Some(CannotRun::Input(missing)) => format!("can run with a file: {missing}"),
            Some(why) => format!("cannot run: {why}"),
        }
    }
}

/// What it says of core scheduling, where cores have several hardware threads.
fn core_scheduling(topology: &Topology, cookies: &Ability) -> Option<String> {
    let said = match cookies {
        _ if topology.smt_width() < 2 => return None,
        Ability::Full => COOKIES.to_owned(),
        Ability::Partial(why) | Ability::Absent(why) => format!("no cookies: {why}"),
    };
    Some(text::hanging("  core scheduling", &said, 18).trim_end().to_owned())
}

fn as_text<S: Serializer>(why: &Option<CannotRun>, to: S) -> Result<S::Ok, S::Error> {
    why.as_ref().map(ToString::to_string).serialize(to)
}

fn words(ability: &Ability) -> String {
    match ability {
        Ability::Full => "yes".to_owned(),
        Ability::Partial(why) => format!("in part: {why}"),
        Ability::Absent(why) => format!("no: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_scheduling_is_named_where_cores_have_siblings() {
        let machine = |line: &str| Topology::synthetic(line).unwrap();
        let absent = Ability::Absent("the kernel is too old".into());
        assert_eq!(core_scheduling(&machine("core:2"), &absent), None);
        let smt = machine("core:2 smt:2");
        let without = "  core scheduling no cookies: the kernel is too old";
        assert_eq!(core_scheduling(&smt, &absent).unwrap(), without);
        let with = core_scheduling(&smt, &Ability::Full).unwrap();
        assert!(with.contains("different cookies"), "{with}");
    }
}
