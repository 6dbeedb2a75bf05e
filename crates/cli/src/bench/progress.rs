//! Progress of a campaign on the terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use symbiont_campaign::Progress;
use symbiont_topology::counted;

use crate::signals::asking_to_end;

/// Where a campaign's figures come from, as what the user should heed.
pub(crate) struct Figures(&'static str);

impl Figures {
    /// From this machine, which therefore should do nothing else.
    pub(crate) const MEASURED: Self = Self(" The machine should do nothing else meanwhile.");
}

/// From a simulated machine, whatever this one does.
impl Default for Figures {
    fn default() -> Self {
        Self("")
    }
}

/// A progress bar; plain lines where standard error is no terminal.
pub(crate) struct Terminal {
    bar: ProgressBar,
    cancelled: Arc<AtomicBool>,
    figures: Figures,
    /// Was it said how long it takes?
    begun: bool,
}

/// What takes less is not announced.
const MOMENT: Duration = Duration::from_secs(10);

impl Terminal {
    pub(crate) fn new(figures: Figures) -> anyhow::Result<Self> {
        let cancelled = Arc::new(AtomicBool::new(false));
        for signal in asking_to_end() {
            // The first asks to stop in good order, the next ends at once.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&cancelled))?;
            signal_hook::flag::register(signal, Arc::clone(&cancelled))?;
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = "{elapsed_precise}{prefix} {bar:30} {pos}/{len} {msg}";
        bar.set_style(ProgressStyle::with_template(style)?);
        Ok(Self { bar, cancelled, figures, begun: false })
    }

    /// Removes it from the screen.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }

    fn line(&self, text: &str) {
        if self.bar.is_hidden() {
            note!("{text}");
        } else {
            self.bar.println(text);
        }
    }
}

/// A time, for people.
fn length(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{} s", seconds.next_multiple_of(10).max(10)),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

impl Progress for Terminal {
    fn begin(&mut self, runs: usize, kept: Option<usize>, estimate: Duration) {
        if kept == Some(runs) {
            self.line(
                "All runs were done before: only the report is written anew. Remove the folder to \
                 measure again.",
            );
            return;
        }
        // What the user's own programs take is not known before they ran.
        let known = !estimate.is_zero();
        let about = if known { format!(", about {}", length(estimate)) } else { String::new() };
        let Figures(advice) = self.figures;
        let stops = match kept {
            Some(_) => " ^C stops; the same command then goes on from there.",
            None => "",
        };
        let done = kept.unwrap_or(0);
        let left = runs.saturating_sub(done);
        if self.begun {
            self.line(&format!("{}{about}.", counted(left, "more run")));
        } else if !known || estimate > MOMENT {
            self.begun = true;
            self.line(&format!("{}{about}.{advice}{stops}", counted(left, "run")));
            if done > 0 {
                self.line(&format!("{done} of {} done before.", counted(runs, "run")));
            }
        }
        self.bar.set_length(runs as u64);
        self.bar.set_position(done as u64);
        let of = if known { format!(" of about {}", length(estimate)) } else { String::new() };
        self.bar.set_prefix(of);
        self.bar.enable_steady_tick(Duration::from_secs(1));
    }

    fn running(&mut self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    fn done(&mut self) {
        self.bar.inc(1);
        let (at, of) = (self.bar.position(), self.bar.length().unwrap_or_default());
        if self.bar.is_hidden() && of > 1 && (at % 25.min(of.div_ceil(4)) == 0 || at == of) {
            note!("{at} of {of} runs done");
        }
    }

    fn note(&mut self, text: &str) {
        self.line(text);
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
