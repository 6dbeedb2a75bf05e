//! How far a program is that is observed: how many instructions, and for how long. On a terminal that is a line which
//! changes; elsewhere it is a line now and then, each after twice as long as the one before.

use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// When the first line is due where there is no terminal.
const FIRST: Duration = Duration::from_secs(2);

/// Progress on standard error.
pub(super) struct Observing {
    bar: ProgressBar,
    begun: Instant,
    due: Duration,
}

impl Observing {
    pub(super) fn new() -> anyhow::Result<Self> {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(ProgressStyle::with_template("{elapsed_precise} {msg}")?);
        Ok(Self { bar, begun: Instant::now(), due: FIRST })
    }

    /// So many instructions were observed until now.
    pub(super) fn at(&mut self, instructions: u64) {
        let said = format!("{} instructions observed", HumanCount(instructions));
        let elapsed = self.begun.elapsed();
        if !self.bar.is_hidden() {
            self.bar.set_message(said);
            // What is made of them takes its time, too.
            self.bar.enable_steady_tick(Duration::from_secs(1));
        } else if let Some(next) = next_line(self.due, elapsed) {
            self.due = next;
            note!("symbiont: {said} in {} s", elapsed.as_secs());
        }
    }

    /// Removes it from the screen.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// When the line after this one is due; none while this one is not due yet.
fn next_line(due: Duration, elapsed: Duration) -> Option<Duration> {
    (elapsed >= due).then(|| 2 * elapsed.max(due))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_ever_more_rarely_where_there_is_no_terminal() {
        let mut due = FIRST;
        let mut at = Vec::new();
        for second in 0..100 {
            if let Some(next) = next_line(due, Duration::from_secs(second)) {
                due = next;
                at.push(second);
            }
        }
        assert_eq!(at, [2, 4, 8, 16, 32, 64]);
    }
}
