//! Which windows of a program are traced, and the file in which they are stored.

use std::io;
use std::path::Path;

use super::CaptureError;
use super::gather::{About, gaps};
use crate::raw::RawFile;
use crate::trace::{self, MOST_WINDOWS, RawWindow};
use crate::{Profile, Thread};

/// What is traced of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// The most windows: one for each of this many phases, the most frequent first.
    pub most: usize,
    /// Instructions of each window that are there to warm up.
    pub warm_up: u64,
    /// Instructions of each window after these.
    pub instructions: u64,
    /// One window alone, from the middle of the program, whatever phases it goes through.
    pub continuous: bool,
}

impl Default for Windows {
    /// Four windows of twice two million instructions: a second or two each for a
    /// simulator of two million instructions a second.
    fn default() -> Self {
        Self { most: 4, warm_up: 2_000_000, instructions: 2_000_000, continuous: false }
    }
}

/// Where a window is to be recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WindowPlace {
    phase: u16,
    /// The phase's share of the thread's instructions.
    share: f64,
    /// Instructions of the thread before it.
    start: u64,
}

impl Windows {
    /// One window of this many instructions, from the middle of the program.
    #[must_use]
    pub fn continuous(instructions: u64) -> Self {
        Self { most: 1, warm_up: 0, instructions, continuous: true }
    }

    fn length(&self) -> u64 {
        self.warm_up.saturating_add(self.instructions.max(1))
    }

    /// The places in the thread that executed most, in their order: the middle of
    /// the longest span of each phase, or of the whole program.
    pub(super) fn places(&self, profile: &Profile) -> Vec<WindowPlace> {
        let total: u64 = profile.threads.first().map_or(0, Thread::instructions);
        if self.continuous {
            let start = total.saturating_sub(self.length()) / 2;
            let share = (self.length() as f64 / total.max(1) as f64).min(1.0);
            return vec![WindowPlace { phase: profile.phase_at(start), share, start }];
        }
        let mut of: Vec<(u64, u64, WindowPlace)> = Vec::new();
        let mut before = 0_u64;
        for span in profile.sequence() {
            let start = before.saturating_add(span.instructions.saturating_sub(self.length()) / 2);
            before = before.saturating_add(span.instructions);
            let place = WindowPlace { phase: span.phase, share: 0.0, start };
            match of.iter_mut().find(|(_, _, known)| known.phase == span.phase) {
                None => of.push((span.instructions, span.instructions, place)),
                Some((sum, longest, known)) => {
                    *sum += span.instructions;
                    if span.instructions > *longest {
                        (*longest, *known) = (span.instructions, place);
                    }
                }
            }
        }
        of.sort_by_key(|(sum, _, place)| (std::cmp::Reverse(*sum), place.phase));
        of.truncate(self.most.clamp(1, MOST_WINDOWS));
        let mut places: Vec<WindowPlace> = of
            .into_iter()
            .map(|(sum, _, place)| WindowPlace { share: sum as f64 / total.max(1) as f64, ..place })
            .collect();
        places.sort_by_key(|place| place.start);
        places
    }

    /// The plugin's argument.
    pub(super) fn argument(&self, profile: &Profile, places: &[WindowPlace]) -> String {
        let process = profile.threads.first().map_or(0, |thread| thread.process);
        let starts: Vec<String> = places.iter().map(|place| place.start.to_string()).collect();
        format!("windows={process}:{}:{}", self.length(), starts.join("+"))
    }

    /// Writes the trace.
    pub(super) fn write(
        &self,
        path: &Path,
        files: &[RawFile],
        places: &[WindowPlace],
        profile: &Profile,
        about: About,
    ) -> Result<trace::About, CaptureError> {
        let process = profile.threads.first().map_or(0, |thread| thread.process as usize);
        let file = files.get(process).filter(|file| file.windows() > 0);
        let file = file.ok_or(CaptureError::NoWindow)?;
        let reading = |source| CaptureError::Scratch { path: file.path().to_owned(), source };
        // Of several threads that were long enough, the one that executed most.
        let executed = |thread: u32| -> u64 {
            let own = file.intervals.iter().filter(|at| at.signature.thread == thread);
            own.map(|at| at.signature.instructions).sum()
        };
        let mut of: Vec<(usize, u32)> = Vec::new();
        for index in 0..file.windows() {
            of.push((index, file.window(index).map_err(reading)?.thread));
        }
        let thread = of.iter().map(|(_, thread)| *thread).max_by_key(|thread| executed(*thread));
        let thread = thread.ok_or(CaptureError::NoWindow)?;
        of.retain(|(_, other)| *other == thread);
        // They ended in the order of their places.
        let mut found: Vec<(usize, WindowPlace)> =
            of.iter().map(|(index, _)| *index).zip(places.iter().copied()).collect();
        found.sort_by(|(_, a), (_, b)| b.share.total_cmp(&a.share));
        let mut gaps = gaps(files, about.not_followed.as_deref());
        if found.len() < places.len() {
            let missing = places.len() - found.len();
            gaps.push(format!("the program ended before {missing} windows began"));
        }
        let instructions = executed(thread);
        let profiled = profile.threads.first().map_or(0, Thread::instructions);
        if instructions.abs_diff(profiled) > profiled / 100 {
            gaps.push(format!(
                "it executed {instructions} instructions, and {profiled} when it was profiled: \
                 the windows may lie in other phases"
            ));
        }
        let About { program, command, digest, .. } = about;
        let about = trace::About { program, command, digest, instructions, gaps };
        let windows = found.iter().map(|(index, place)| -> io::Result<_> {
            let raw = file.window(*index)?;
            Ok((place.phase, place.share, self.warm_up_of(&raw), raw))
        });
        trace::write(path, &about, windows)?;
        Ok(about)
    }

    /// The warm-up of a window, which may have come out shorter.
    fn warm_up_of(&self, raw: &RawWindow) -> u64 {
        if raw.instructions > self.warm_up { self.warm_up } else { raw.instructions / 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;
    use crate::test_support::cache_resident;

    /// A thread with spans of these phases and lengths in million instructions.
    fn profile(spans: &[(u16, u64)]) -> Profile {
        let mut profile = cache_resident();
        let span = |(phase, millions): &(u16, u64)| Span {
            phase: *phase,
            instructions: millions * 1_000_000,
        };
        profile.threads[0].sequence = spans.iter().map(span).collect();
        profile
    }

    fn starts(windows: Windows, spans: &[(u16, u64)]) -> Vec<(u16, u64)> {
        let places = windows.places(&profile(spans));
        places.iter().map(|place| (place.phase, place.start)).collect()
    }

    #[test]
    fn a_window_lies_in_the_middle_of_the_longest_span_of_its_phase() {
        let spans = [(0, 50), (1, 100), (0, 150), (1, 50)];
        assert_eq!(starts(Windows::default(), &spans), [(1, 98_000_000), (0, 223_000_000)]);
    }

    #[test]
    fn the_most_frequent_phases_come_first() {
        let spans = [(0, 10), (1, 100), (2, 300), (3, 50), (4, 60), (5, 70)];
        let phases: Vec<u16> =
            starts(Windows::default(), &spans).iter().map(|(phase, _)| *phase).collect();
        assert_eq!(phases, [1, 2, 4, 5]);
        let one = Windows { most: 1, ..Windows::default() };
        assert_eq!(starts(one, &spans), [(2, 258_000_000)]);
        let places = one.places(&profile(&spans));
        assert!((places[0].share - 300.0 / 590.0).abs() < 1e-12);
    }

    #[test]
    fn a_continuous_window_lies_in_the_middle_of_the_program() {
        let spans = [(0, 50), (1, 100), (0, 150)];
        assert_eq!(starts(Windows::continuous(60_000_000), &spans), [(1, 120_000_000)]);
        assert_eq!(starts(Windows::continuous(900_000_000), &spans), [(0, 0)]);
        let places = Windows::continuous(60_000_000).places(&profile(&spans));
        assert!((places[0].share - 0.2).abs() < 1e-12);
    }

    #[test]
    fn a_short_span_is_traced_from_its_start() {
        assert_eq!(starts(Windows::default(), &[(0, 2), (1, 3)]), [(0, 0), (1, 2_000_000)]);
        let argument = Windows::default().argument(&profile(&[(0, 2)]), &[]);
        assert_eq!(argument, "windows=0:4000000:");
    }
}
