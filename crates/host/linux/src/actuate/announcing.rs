//! What is written to the journal before an act, and how the journal is kept short and in its place.

use super::inheritance::Change;
use super::journal::Line;
use super::settings::{AppliedSettings, Saved};
use super::state::State;
use super::state_dir::StateDirError;
use super::thread::ThreadKey;

impl State {
    /// Writes to the journal what a thread had, unless that is there, and what
    /// is about to be applied on it.
    pub fn announce(
        &mut self,
        key: ThreadKey,
        applied: Option<&AppliedSettings>,
    ) -> Result<(), StateDirError> {
        let Some(entry) = self.applied.get_mut(&key) else { return Ok(()) };
        let mut lines = Vec::with_capacity(2);
        if !entry.journaled {
            lines.push(Line::Saved(key, entry.saved.clone()));
        }
        let set = applied.map(|applied| {
            let since = entry.since(applied).unwrap_or_else(|| self.kernel.now_ticks());
            Line::Set(key, applied.clone(), since)
        });
        lines.extend(set.clone());
        self.journal.note(&lines)?;
        entry.journaled = true;
        if self.journal.is_bloated() {
            // The applied state learns of what is announced only after the act.
            let mut lines = self.journal_lines();
            lines.extend(set);
            // The long journal stays valid if this fails.
            let _ = self.journal.rewrite(&lines);
        }
        Ok(())
    }

    /// The same for several threads, in one write.
    pub fn announce_all(
        &mut self,
        all: &[(ThreadKey, AppliedSettings)],
    ) -> Result<(), StateDirError> {
        let tick = self.kernel.now_ticks();
        let mut lines = Vec::with_capacity(2 * all.len());
        for (key, applied) in all {
            let Some(entry) = self.applied.get(key) else { continue };
            if !entry.journaled {
                lines.push(Line::Saved(*key, entry.saved.clone()));
            }
            lines.push(Line::Set(*key, applied.clone(), tick));
        }
        if self.journal.is_bloated() {
            // The long journal stays valid if this fails.
            let _ = self.journal.rewrite(&self.journal_lines());
        }
        self.journal.note(&lines)?;
        for (key, _) in all {
            if let Some(entry) = self.applied.get_mut(key) {
                entry.journaled = true;
            }
        }
        Ok(())
    }

    pub(super) fn keep_journal(&mut self) -> Result<(), StateDirError> {
        if self.journal.is_in_place() {
            return Ok(());
        }
        let lines = self.journal_lines();
        self.journal.begin_again(&lines)
    }

    /// The shortest journal that says the same.
    pub(super) fn journal_lines(&self) -> Vec<Line> {
        let journaled = self.applied.iter().filter(|(_, entry)| entry.journaled);
        journaled
            .flat_map(|(key, entry)| {
                let line = |saved: &Saved| Line::Saved(*key, saved.clone());
                // A thread on which nothing is applied yet begins so.
                let nothing_yet = |change: &&Change| change.applied.is_nothing();
                let latest = entry.latest().skip_while(nothing_yet);
                let before = latest.flat_map(move |change| {
                    let applied = change.applied.clone();
                    [line(&change.saved), Line::Set(*key, applied, change.since)]
                });
                before.chain([line(&entry.saved)])
            })
            .collect()
    }
}
