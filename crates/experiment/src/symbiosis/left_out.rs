//! Is there a model for each workload that knows none of its programs?
//!
//! # Problem
//! A model that is fitted without a workload's programs needs groups of others: of pairs, and for four
//! threads a core groups of four. Of 34 programs a workload of four for each of six cores leaves ten,
//! which are one in 220 of all groups of four; one of nine cores leaves none, whatever was trained.
//!
//! # Approach
//! Before anything runs, all workloads are looked at that a policy is to run which cannot do without a
//! model. Where a single one of them leaves too little, nothing runs: with some workloads skipped, policies
//! would be compared on different ones. What lacks is told, what would mend it, and what can be
//! evaluated as it is.
//!
//! With 34 programs no training does for four threads on more than eight cores, for eight none that
//! could be carried out, and for seven it takes thousands of groups of four.
//!
//! # Properties
//! - Policies that need no model never ask for one
//!   (`policies_that_need_no_model_are_never_refused`).
//! - What is refused is named, with what would do (`what_lacks_and_what_would_do_is_told`).
//! - The training that README shows does for its short evaluation
//!   (`the_training_that_readme_shows_does_for_its_short_evaluation`).

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use symbiont_policy::{Settings, find};

use super::campaign::Options;
use super::plan::{Case, Run, plan};
use crate::training::{MOST_FOURS, Models, groups_for};

/// Can this policy not do without an interference model?
pub(super) fn needs_model(policy: &str, settings: &Settings) -> bool {
    let lacks = |settings: &Settings| {
        find(policy).map(|found| (found.make)(settings).requirements().missing_input)
    };
    let without = Settings { symbiosis: None, ..settings.clone() };
    settings.symbiosis.is_some()
        && matches!((lacks(&without), lacks(settings)), (Ok(Some(_)), Ok(None)))
}

/// Workloads without whose programs no model can be fitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct NoModel {
    /// What lacks, by width and cores.
    pub lacking: Vec<Lacking>,
    /// Widths with the counts of cores of whose workloads none lacks anything.
    pub fit: Vec<(usize, Vec<usize>)>,
    /// Programs of the training.
    pub programs: usize,
    /// Groups of four that it was to draw.
    pub fours: usize,
    /// The policies that ask for a model, and those that do not.
    pub policies: (Vec<String>, Vec<String>),
}

/// What workloads of a width on so many cores lack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacking {
    /// Programs for each core.
    pub width: usize,
    /// Cores.
    pub cores: usize,
    /// Which workloads.
    pub numbers: Vec<usize>,
    /// Of so many.
    pub of: usize,
    /// Programs of the training that remain, at least.
    pub remain: usize,
    /// Threads of the groups of which none remains, the narrowest.
    pub threads: usize,
    /// Groups of four of which a training of the same programs and seed leaves one to each of them;
    /// none where not even [`MOST_FOURS`] do.
    pub enough: Option<usize>,
}

/// Looks at all workloads that policies run which need a model; `programs` are those that workloads are
/// drawn from.
///
/// # Errors
/// When there are some without whose programs no model can be fitted.
pub fn check(models: &Models<'_>, programs: &[String], options: &Options) -> Result<(), NoModel> {
    let asks = |run: &Run| needs_model(&run.policy, &options.settings);
    let (asking, others): (Vec<Run>, Vec<Run>) = plan(&options.size).into_iter().partition(asks);
    let mut cases: Vec<&Case> = asking.iter().map(|run| &run.case).collect();
    cases.sort_unstable();
    cases.dedup();
    let mut counted: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut lacking: BTreeMap<(usize, usize), Lacking> = BTreeMap::new();
    let mut refused: BTreeMap<(usize, usize), Vec<Vec<String>>> = BTreeMap::new();
    for case @ &Case { width, cores, number } in cases {
        let of = (width, cores);
        *counted.entry(of).or_default() += 1;
        let drawn = case.programs(programs, options.seed);
        let lacks = |threads: &usize| models.groups_without(&drawn, *threads) == 0;
        let Some(threads) = groups_for(width).find(lacks) else { continue };
        let remain = models.programs().iter().filter(|one| !drawn.contains(one)).count();
        let (numbers, of_all, enough) = (Vec::new(), 0, None);
        let found = Lacking { width, cores, numbers, of: of_all, remain, threads, enough };
        let found = lacking.entry(of).or_insert(found);
        found.numbers.push(number);
        found.remain = found.remain.min(remain);
        found.threads = found.threads.min(threads);
        refused.entry(of).or_default().push(drawn);
    }
    if lacking.is_empty() {
        return Ok(());
    }
    let mut fit: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (width, cores) in counted.keys().filter(|of| !lacking.contains_key(of)) {
        fit.entry(*width).or_default().push(*cores);
    }
    for (of, found) in &mut lacking {
        found.of = counted.get(of).copied().unwrap_or_default();
        // All pairs are trained, so only groups of four may become more.
        if found.threads > 2 {
            found.enough = models.fours_for(refused.get(of).map_or(&[], Vec::as_slice));
        }
    }
    let asking = policies(&asking);
    let others = policies(&others).into_iter().filter(|policy| !asking.contains(policy)).collect();
    Err(NoModel {
        lacking: lacking.into_values().collect(),
        fit: fit.into_iter().collect(),
        programs: models.programs().len(),
        fours: models.fours(),
        policies: (asking, others),
    })
}

/// The policies of some runs, each once, as they come.
fn policies(runs: &[Run]) -> Vec<String> {
    let mut policies: Vec<String> = Vec::new();
    for Run { policy, .. } in runs {
        if !policies.contains(policy) {
            policies.push(policy.clone());
        }
    }
    policies
}

fn list<T: ToString>(all: &[T]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { width, cores, numbers, of, remain, threads, .. } = self;
        write!(f, "smt{width}, {cores} cores, ")?;
        match numbers.len() == *of {
            true if *of == 1 => f.write_str("the only workload: ")?,
            true => write!(f, "all {of} workloads: ")?,
            false => write!(f, "workloads {} of 0 to {}: ", list(numbers), of.saturating_sub(1))?,
        }
        write!(f, "{remain} programs remain, and no group of {threads} of only these; ")?;
        match (self.enough, threads) {
            (Some(fours), _) => write!(f, "--fours {fours} leaves one to each"),
            (None, 2) => f.write_str("no training of the same programs would do"),
            (None, _) => write!(f, "not even --fours {MOST_FOURS} leaves one to each"),
        }
    }
}

impl fmt::Display for NoModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asking, others) = &self.policies;
        write!(
            f,
            "nothing was run: --left-out asks for models that know none of a workload's programs, and \
             too little remains of this training ({} programs, {} groups of four) for {}:",
            self.programs,
            self.fours,
            asking.join(", ")
        )?;
        for lacking in &self.lacking {
            write!(f, "\n  {lacking}")?;
        }
        if self.lacking.iter().any(|lacking| lacking.enough.is_some()) {
            f.write_str(
                "\n--fours is an option of symbiont train, with another --output; models of few groups \
                 predict badly, so draw more",
            )?;
        }
        for (width, cores) in &self.fit {
            write!(f, "\nthis training does for --widths {width} --cores {}", list(cores))?;
        }
        if !others.is_empty() {
            write!(f, "\nno model is needed for --policies {}", list(others))?;
        }
        Ok(())
    }
}
