//! What simulations need before they can start, made by all processors and kept for the next
//! run; what is to be known of profiles before figures are trusted; and the progress bar of it all.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::bail;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use symbiont_experiments_sim::Cache;
use symbiont_profile::{FEWEST_TRACES, Profile};
use symbiont_report::number;
use symbiont_sim_fast::fast::TableBuilder;
use symbiont_sim_fast::ready::{CoreUse, TableCache, TableProgress};
use symbiont_topology::counted;

use crate::research::args::Kept;
use crate::signals::asking_to_end;

/// Makes the tables of some programs' phases, for cores used so. Reports which of the
/// programs have phases of few micro-traces.
///
/// # Errors
/// When a phase cannot be simulated, or the user stops it.
pub fn prepare<'p>(
    builder: &TableBuilder<'p>,
    profiles: impl IntoIterator<Item = &'p Profile>,
    uses: &[CoreUse],
    kept: &Kept,
    progress: &Bar,
) -> anyhow::Result<()> {
    let profiles: Vec<&Profile> = profiles.into_iter().collect();
    report_thin(profiles.iter().copied(), progress);
    let phases: Vec<_> = profiles.iter().flat_map(|profile| &profile.phases).collect();
    let cache = folder(kept).map(|folder| (Cache::new(&folder), folder));
    let workers = std::thread::available_parallelism().map_or(1, Into::into);
    let begin = |of: usize| {
        let machine = &builder.description().name;
        let (programs, of) = (counted(profiles.len(), "program"), counted(of, "table"));
        let keeps = match &cache {
            Some((_, folder)) => format!("; this once, they are kept in {}", folder.display()),
            None => String::new(),
        };
        progress.say(&format!("preparing {programs} for {machine}: {of}{keeps}"));
    };
    let report = |made: TableProgress| {
        if made.done == 0 {
            begin(made.of);
        }
        progress.step("tables made", made.done, made.of)
    };
    let tables = cache.as_ref().map(|(cache, _)| cache as &dyn TableCache);
    let flow = builder.make_ready(&phases, uses, workers, tables, &report)?;
    if let Some((cache, folder)) = &cache {
        let trouble = cache.trouble();
        if let Some(first) = trouble.damaged.first() {
            let tables = counted(trouble.damaged.len(), "kept table");
            let first = first.display();
            progress.say(&format!("{tables} found damaged and made anew, the first: {first}"));
        }
        if let Some(error) = trouble.unwritten {
            let folder = folder.display();
            progress.say(&format!("tables are not kept for the next run: {folder}: {error}"));
        }
    }
    if flow.is_break() {
        bail!(
            "stopped; the tables made so far are {}",
            if cache.is_some() { "kept" } else { "lost" }
        );
    }
    Ok(())
}

/// Reports which programs have phases of few micro-traces; nothing where none has any.
pub fn report_thin<'p>(profiles: impl IntoIterator<Item = &'p Profile>, progress: &Bar) {
    if let Some(warning) = thin(profiles) {
        progress.say(&warning);
    }
}

/// The programs with phases of few micro-traces, in one line.
fn thin<'p>(profiles: impl IntoIterator<Item = &'p Profile>) -> Option<String> {
    let thin_part = |profile: &Profile| {
        let percent = 100.0 * profile.thin_share();
        (percent > 0.0).then(|| format!("{} ({} %)", profile.program, number::plain(percent)))
    };
    let programs: Vec<String> = profiles.into_iter().filter_map(thin_part).collect();
    (!programs.is_empty()).then(|| {
        format!(
            "phases of fewer than {FEWEST_TRACES} micro-traces are simulated with less certainty; \
             their part of a program's instructions: {}",
            programs.join(", ")
        )
    })
}

/// The user's folder of what Symbiont can make anew; none without a home.
pub fn cache() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    // The base directory specification: a relative path is invalid.
    let base = variable("XDG_CACHE_HOME").filter(|folder| folder.is_absolute());
    let base = base.or_else(|| variable("HOME").map(|home| home.join(".cache")));
    base.map(|base| base.join("symbiont"))
}

/// Where tables are kept; nowhere if that is not wanted or there is no home.
fn folder(kept: &Kept) -> Option<PathBuf> {
    let own = cache().map(|own| own.join("tables"));
    kept.cache.as_deref().map(Path::to_owned).or(own).filter(|_| !kept.no_cache)
}

/// A progress bar that also reports whether the user wants to stop.
pub struct Bar {
    bar: ProgressBar,
    stopped: Arc<AtomicBool>,
}

impl Bar {
    /// Shows nothing yet. From now on the first signal to end asks to stop in good order, the
    /// next ends at once.
    ///
    /// # Errors
    /// When signals cannot be caught.
    pub fn new() -> anyhow::Result<Self> {
        let stopped = Arc::new(AtomicBool::new(false));
        for signal in asking_to_end() {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&stopped))?;
            signal_hook::flag::register(signal, Arc::clone(&stopped))?;
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let form = "{elapsed_precise} {bar:30} {pos}/{len} {msg}, {eta} left";
        bar.set_style(ProgressStyle::with_template(form)?);
        Ok(Self { bar, stopped })
    }

    /// So many of so many steps are done; go on?
    pub fn step(&self, what: &'static str, done: usize, of: usize) -> ControlFlow<()> {
        if done == 0 {
            self.bar.reset();
            self.bar.set_message(what);
            self.bar.set_length(of as u64);
            self.bar.enable_steady_tick(Duration::from_millis(200));
        }
        self.bar.set_position(done as u64);
        if self.stopped.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// A line above the bar; also where no bar is shown.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| note!("symbiont: {line}"));
    }

    /// Removes it from the screen.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use symbiont_experiments_sim::Library;

    use super::*;

    #[test]
    fn programs_of_few_micro_traces_are_named() {
        let load = |name| Library::default().load(name).unwrap();
        let (whole, mut few) = (load("synthetic-integer"), load("synthetic-float"));
        assert_eq!(thin([&whole, &few]), None);
        few.phases[0].traces.truncate(FEWEST_TRACES - 1);
        let warning = thin([&whole, &few]).unwrap();
        assert!(warning.ends_with("instructions: synthetic-float (100 %)"), "{warning}");
    }
}
