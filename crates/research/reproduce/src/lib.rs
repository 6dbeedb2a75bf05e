//! `symbiont reproduce`: published tables and figures next to ours.
//!
//! # Problem
//! Researchers judge a scheduler by figures. They want to see what was published next to what comes out
//! here, whether both point the same way, and why not where they don't.
//!
//! # Approach
//! A [`Figure`] is data: where it was published, what it shows, how it is drawn, how ours departs from the
//! way in which it was made. A [`Source`] is an experiment that several figures are made from: it carries
//! out its runs ([`symbiont_campaign`]) and gives the [`Point`]s of each figure. All sources are listed in
//! [`SOURCES`], and what cannot be reproduced in [`ABSENT`], with the reason; so each table and figure with
//! results of the papers is in one of the two. What no paper has is listed as ours ([`Paper::Symbiont`]).
//!
//! A point *agrees* when its published value and the whole interval of ours lie on the same side of the
//! figure's neutral value (a gain of 0, a ratio of 1) and its negative controls gain nothing, *contradicts*
//! when they lie on different sides, has *no effect* when the whole interval is next to the neutral value,
//! and is *undecided* otherwise. Where the paper prints how its runs spread, a published change of less than two of
//! its own standard errors has no certain direction: whatever ours is, it is *uncertain in the paper*. Without an
//! interval there is no verdict, and a quick report, which is a smaller experiment, gives none. How far ours goes is
//! another question: the *magnitude* is its effect in parts of the published one. A figure is *mixed* where points of
//! it agree and others contradict.
//!
//! # Terms and units
//! Points carry the unit of their figure. Intervals are 95 %.
//!
//! # Properties
//! - Ids are unique, and name paper, kind and number (`ids_are_unique_and_name_their_paper`).
//! - A verdict follows from the side of the neutral value (`points_agree_by_side`), and a gain that a control
//!   has too agrees with nothing (`a_gain_that_its_control_has_too_does_not_agree`).
//! - What is uncertain in the paper neither agrees nor contradicts
//!   (`a_published_change_within_its_own_error_has_no_direction`).
//! - The magnitude is 1 where ours is the published value (`the_magnitude_is_in_parts_of_what_was_published`).
//! - A page shows every figure, with the published values next to them (`the_page_shows_every_figure`).

mod absent;
pub mod activity;
mod auto;
mod batch;
mod cluster;
mod compared;
mod feliu;
mod figure;
mod forms;
mod learned;
mod measured_pairs;
mod morad;
mod navarro;
mod noise;
pub mod own;
mod page;
mod peternier;
mod settle;
#[cfg(test)]
mod tests;
mod trained;
mod verdict;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use symbiont_jobs::swf::Log;
use symbiont_profile::Profile;
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::fast::TableBuilder;

pub use absent::{ABSENT, Absent};
pub use figure::{Control, Drawing, Figure, Paper, Point};
pub use page::{page, summary};
pub use verdict::{Overall, Score, Tally, Verdict, magnitude, scores};

use own::{OwnPrograms, ProgramUse, Suite};
use symbiont_campaign::{Error, Progress};
use symbiont_experiments_sim::measured_pairs::Matrix;
use symbiont_experiments_sim::{Kind, Library};

/// How much is run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Effort {
    /// A smaller experiment, all of it in some minutes; it decides nothing.
    Quick,
    /// As in the paper where that is affordable.
    #[default]
    Full,
}

/// Prepares a machine for programs on cores with this many threads, as an interface does it that shows how
/// far that is and keeps what was made.
pub type Prepare<'a> =
    &'a dyn for<'p> Fn(&TableBuilder<'p>, &[&'p Profile], &[u32]) -> Result<(), Error>;

/// A log of jobs that a user gives.
#[derive(Debug, Clone)]
pub struct GivenWorkload {
    /// Its name.
    pub name: String,
    /// Its jobs.
    pub log: Log,
}

/// What a source works with.
#[allow(missing_debug_implementations, reason = "it holds a function")]
pub struct Context<'a> {
    /// Where finished runs are kept.
    pub records: PathBuf,
    /// How much is run.
    pub effort: Effort,
    /// Seed of everything that is random.
    pub seed: u64,
    /// Simulated runs at a time.
    pub workers: usize,
    /// The programs' profiles.
    pub library: &'a Library,
    /// Programs of the papers that the user gave, which run in place of their stand-ins.
    pub own: OwnPrograms,
    /// Folder of continuous traces of programs, which need not be there.
    pub traces: PathBuf,
    /// The workload of jobs on a cluster; none: drawn ones.
    pub workload: Option<GivenWorkload>,
    /// Matrices of measured pairs, with their names; none: one that is drawn.
    pub pairs: Vec<(String, Matrix)>,
    /// Makes machines ready.
    pub prepare: Prepare<'a>,
}

impl Context<'_> {
    /// The programs that were profiled, but for synthetic ones; some of them where little is run. Given ones of
    /// these suites have the places of their stand-ins.
    fn programs(&self, suites: &[Suite]) -> Vec<String> {
        match self.effort {
            Effort::Quick => self.few_programs(suites),
            Effort::Full => self.all_programs(suites),
        }
    }

    /// The same, however much is run: those that are soon made ready.
    fn few_programs(&self, suites: &[Suite]) -> Vec<String> {
        self.own.in_pool(PROGRAMS.map(str::to_owned).to_vec(), suites, false)
    }

    /// The same, however little is run: all, with the given ones that have no stand-in.
    fn all_programs(&self, suites: &[Suite]) -> Vec<String> {
        self.own.in_pool(self.library.of_kind(Kind::Program).collect(), suites, true)
    }

    /// The profiles of these programs.
    fn profiles(&self, names: &[String]) -> Result<BTreeMap<String, Profile>, Error> {
        let is_lacking = |name: &String| self.own.get(name).is_none();
        let has_none = self.library.of_kind(Kind::Program).next().is_none();
        if names.is_empty() || (has_none && names.iter().any(is_lacking)) {
            return Err(Error::evaluation(NO_PROFILES));
        }
        let ours = names.iter().map(String::as_str).filter(|name| self.own.get(name).is_none());
        let profiles = self.library.load_all(ours);
        let mut profiles = profiles.map_err(Error::evaluation)?;
        let given = names
            .iter()
            .filter_map(|name| Some((name.clone(), self.own.get(name)?.profile.clone())));
        profiles.extend(given);
        Ok(profiles)
    }
}

/// Where no program was profiled.
const NO_PROFILES: &str = "there are no profiles of programs here: start it in a checkout of Symbiont, whose folder \
    profiles has them, or install them (make install), or name their folder (--profiles); `symbiont profile -- CMD` \
    makes one of a program";

/// Is a program of this name found as a shell finds it?
fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A machine of the simulator.
fn described(name: &str) -> Result<Description, Error> {
    Description::named(name).map_err(Error::evaluation)
}

/// What a source gave.
#[derive(Debug, Clone, Default)]
pub struct Reproduction {
    /// The points of each figure, by its id.
    pub points: BTreeMap<&'static str, Vec<Point>>,
    /// What the figures rest on: machine, profiles, runs.
    pub facts: Vec<(String, String)>,
}

/// An experiment that figures are made from.
pub trait Source: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// The figures that it gives.
    fn figures(&self) -> &'static [Figure];

    /// Does it run on the simulated machine? Else it needs this one, quiet.
    fn simulated(&self) -> bool {
        true
    }

    /// What it cannot do without and is not there, and how to get it; none: it can be carried out.
    fn missing(&self, context: &Context<'_>) -> Option<String> {
        let _ = context;
        None
    }

    /// The programs that it runs, and which of the papers' they are or stand for, as far as that is a choice.
    fn uses(&self, context: &Context<'_>) -> Vec<ProgramUse> {
        let _ = context;
        Vec::new()
    }

    /// Carries out what is not kept yet, and evaluates all.
    ///
    /// # Errors
    /// When a run fails or the user stops it.
    fn reproduce(
        &self,
        context: &Context<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reproduction, Error>;
}

/// All sources. A new one is a new file and a line here.
pub const SOURCES: &[&dyn Source] = &[
    &morad::SerialPhases,
    &morad::Openmp,
    &morad::Seniority,
    &navarro::Hysched,
    &peternier::WorkOver,
    &peternier::Overhead,
    &settle::ActivityVectors,
    &settle::OnThisMachine,
    &feliu::Symbiotic,
    &feliu::Halves,
    &feliu::Smt8,
    &forms::Forms,
    &auto::Auto,
    &learned::Learned,
    &measured_pairs::MeasuredPairs,
    &cluster::Queue,
    &batch::Batches,
];

/// Programs of `profiles/` with few phases, bound by memory, caches and execution units: they are soon
/// made ready, so quick experiments draw from them.
pub const PROGRAMS: [&str; 8] = ["chase", "fft", "gzip", "join", "lbm", "openssl", "stream", "xz"];

/// Is a figure made from a workload of jobs, which a user may give?
#[must_use]
pub fn takes_workload(figure: &Figure) -> bool {
    cluster::Queue.figures().iter().any(|one| one.id == figure.id)
}

/// All figures that can be reproduced, with their sources.
pub fn figures() -> impl Iterator<Item = (&'static dyn Source, &'static Figure)> {
    SOURCES.iter().flat_map(|source| source.figures().iter().map(move |figure| (*source, figure)))
}

/// No figure has such an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no figure is called '{0}'; `symbiont reproduce --list` names all")]
pub struct UnknownFigure(pub String);

/// The programs that these figures are made of.
#[must_use]
pub fn uses(wanted: &[&'static Figure], context: &Context<'_>) -> Vec<ProgramUse> {
    let ids: Vec<&'static str> = wanted.iter().map(|figure| figure.id).collect();
    let all = SOURCES.iter().flat_map(|source| source.uses(context));
    ProgramUse::merged(all.collect(), &ids)
}

/// Carries out the sources of these figures, and writes the report.
///
/// # Errors
/// When a run fails, a file cannot be written or the user stops it; finished runs are kept.
pub fn reproduce(
    wanted: &[&'static Figure],
    context: &Context<'_>,
    output: &Path,
    progress: &mut dyn Progress,
) -> Result<Outcome, Error> {
    let is_wanted = |figure: &Figure| wanted.iter().any(|wanted| wanted.id == figure.id);
    let (mut all, mut lacking) = (Vec::new(), Vec::new());
    // Those that need a quiet machine come last.
    let mut sources: Vec<&&dyn Source> = SOURCES.iter().collect();
    sources.sort_by_key(|source| !source.simulated());
    // What is left out is said before hours are spent on the rest.
    let mut complete = Vec::new();
    for source in sources {
        let figures: Vec<&Figure> = source.figures().iter().filter(|it| is_wanted(it)).collect();
        match source.missing(context).filter(|_| !figures.is_empty()) {
            Some(what) => {
                progress.note(&format!("{}: left out, as {what}", source.name()));
                lacking.extend(figures.into_iter().map(|figure| (figure, what.clone())));
            }
            None if figures.is_empty() => {}
            None => complete.push(*source),
        }
    }
    for source in complete {
        progress.note(source.name());
        all.push((source, source.reproduce(context, progress)?));
    }
    if let (true, Some((_, what))) = (all.is_empty(), lacking.first()) {
        return Err(Error::evaluation(what.clone()));
    }
    let figures = judged(&all, is_wanted);
    let made: Vec<&'static Figure> = figures.iter().map(|(figure, _)| *figure).collect();
    let uses = uses(&made, context);
    let outcome = Outcome { effort: context.effort, figures, uses, facts: facts(&all), lacking };
    page(&outcome, context).write(output)?;
    Ok(outcome)
}

/// The result.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// How much was run.
    pub effort: Effort,
    /// The figures with their points.
    pub figures: Vec<(&'static Figure, Vec<Point>)>,
    /// The programs that they are made of.
    pub uses: Vec<ProgramUse>,
    /// What they rest on.
    pub facts: Vec<(String, String)>,
    /// Figures that were asked for and not made, and what is missing for them.
    pub lacking: Vec<(&'static Figure, String)>,
}

fn judged(
    all: &[(&dyn Source, Reproduction)],
    is_wanted: impl Fn(&Figure) -> bool,
) -> Vec<(&'static Figure, Vec<Point>)> {
    let mut figures = Vec::new();
    for (source, reproduced) in all {
        for figure in source.figures().iter().filter(|figure| is_wanted(figure)) {
            let points = reproduced.points.get(figure.id).cloned().unwrap_or_default();
            figures.push((figure, noise::cleaned(figure, points)));
        }
    }
    figures.sort_by_key(|(figure, _)| (figure.paper as u8, figure.place));
    figures
}

fn facts(all: &[(&dyn Source, Reproduction)]) -> Vec<(String, String)> {
    let of = |(source, reproduced): &(&dyn Source, Reproduction)| {
        let named = |(name, value): &(String, String)| {
            (format!("{}: {name}", source.name()), value.clone())
        };
        reproduced.facts.iter().map(named).collect::<Vec<_>>()
    };
    all.iter().flat_map(of).collect()
}
