//! A group of events on one thread, counted at the same time.

use std::sync::Arc;
use std::time::Duration;

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

use super::error::{OpenError, ReadError, Reason};
use super::reading::Reading;
use super::spec::{Modes, Spec};
use super::sys::{self, Attr, Flag};

/// Time in which a group must have counted, as the kernel changes groups every
/// few milliseconds.
const STARVED: Duration = Duration::from_secs(1);

/// How to open groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupOptions {
    /// May the kernel's side be counted ([`Support::kernel_side`])? If not,
    /// events are counted on the user's side alone, and those that happen in
    /// the kernel are absent.
    ///
    /// [`Support::kernel_side`]: super::Support::kernel_side
    pub kernel_side: bool,
    /// Does the group count at once?
    pub enabled: bool,
}

impl Default for GroupOptions {
    fn default() -> Self {
        Self { kernel_side: true, enabled: true }
    }
}

/// Events of one thread that count together and are read by one call. Children
/// of the thread are not counted. Closed when dropped.
#[derive(Debug)]
pub struct Group {
    thread: u32,
    leader: OwnedFd,
    /// Kept open: a closed event counts no more.
    others: Vec<OwnedFd>,
    /// Ids and names in the group's order.
    events: Vec<(u64, Arc<str>)>,
    missing: Vec<OpenError>,
    /// Does it count on some hardware threads only?
    some_cpus: bool,
}

impl Group {
    /// Opens a group on a thread.
    ///
    /// An event that is refused is missing, with its reason, and the others
    /// live on ([`missing`](Self::missing)).
    ///
    /// # Errors
    /// When the thread is gone, when descriptors run out, when every event is
    /// refused (the first one's reason), or when there is no event at all.
    pub fn open(thread: u32, specs: &[Spec], options: GroupOptions) -> Result<Self, OpenError> {
        let error = |event: &Arc<str>, reason| OpenError { thread, event: event.clone(), reason };
        let mut opened: Vec<(OwnedFd, Arc<str>)> = Vec::with_capacity(specs.len());
        let mut missing = Vec::new();
        for spec in specs {
            let leader = opened.first().map(|(leader, _)| leader.as_fd());
            let attr = attr_of(spec, options, leader.is_none());
            match attr.and_then(|attr| sys::open(&attr, thread, leader).map_err(Reason::refused)) {
                Ok(fd) => opened.push((fd, spec.name.clone())),
                Err(reason) if reason.is_gone() || reason.is_shortage() => {
                    return Err(error(&spec.name, reason));
                }
                Err(reason) => missing.push(error(&spec.name, reason)),
            }
        }
        let mut events = Vec::with_capacity(opened.len());
        for (fd, name) in &opened {
            let id = sys::id(fd.as_fd()).map_err(|errno| error(name, Reason::refused(errno)))?;
            events.push((id, name.clone()));
        }
        let mut fds = opened.into_iter().map(|(fd, _)| fd);
        let Some(leader) = fds.next() else {
            let nothing = || error(&"a group without events".into(), Reason::refused(Errno::INVAL));
            return Err(missing.into_iter().next().unwrap_or_else(nothing));
        };
        let some_cpus = specs.iter().any(|spec| spec.some_cpus);
        let others = fds.collect();
        let group = Self { thread, leader, others, events, missing, some_cpus };
        if options.enabled {
            let leader = || group.events.first().map(|(_, name)| name.clone()).unwrap_or_default();
            group.enable().map_err(|e| error(&leader(), Reason::refused(e.errno)))?;
        }
        Ok(group)
    }

    /// Thread number.
    #[must_use]
    pub fn thread(&self) -> u32 {
        self.thread
    }

    /// Events that are not counted, and why.
    #[must_use]
    pub fn missing(&self) -> &[OpenError] {
        &self.missing
    }

    /// File descriptors held.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        1 + self.others.len()
    }

    /// The reading of a group that never counted.
    pub(super) fn zero(&self) -> Reading {
        let counts = self.events.iter().map(|(_, name)| (name.clone(), 0)).collect();
        Reading { counts, ..Reading::default() }
    }

    /// Starts counting, or resumes it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn enable(&self) -> Result<(), ReadError> {
        sys::enable(self.leader.as_fd()).map_err(|errno| self.error(errno))
    }

    /// Stops counting; counts stay.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn disable(&self) -> Result<(), ReadError> {
        sys::disable(self.leader.as_fd()).map_err(|errno| self.error(errno))
    }

    /// Reads all counts by one call; also after the thread's end.
    ///
    /// Where only some hardware threads can count, the group is taken as
    /// enabled just while it counted: it is unknown for how long the thread was
    /// elsewhere, so such counts are never scaled.
    ///
    /// # Errors
    /// When the kernel refuses, or gives less than the group.
    pub fn read(&self) -> Result<Reading, ReadError> {
        self.read_and_judge().map(|(reading, _)| reading)
    }

    /// Reads, and reports why the group does not count although it has had its
    /// chance.
    pub(super) fn read_and_judge(&self) -> Result<(Reading, Option<OpenError>), ReadError> {
        let mut buffer = [0; 3 + 2 * 32];
        let length = 3 + 2 * self.events.len();
        let mut long = Vec::new();
        let words = match buffer.get_mut(..length) {
            Some(words) => words,
            None => {
                long.resize(length, 0);
                &mut long[..]
            }
        };
        let filled = sys::read(&self.leader, words).map_err(|errno| self.error(errno))?;
        let words = words.get(..filled).unwrap_or_default();
        let reading = decode(words, &self.events).ok_or_else(|| self.error(Errno::IO))?;
        let never = starved(&reading, self.some_cpus).map(|reason| {
            let event = self.events.first().map(|(_, name)| name.clone()).unwrap_or_default();
            OpenError { thread: self.thread, event, reason }
        });
        Ok((if self.some_cpus { reading.unscaled() } else { reading }, never))
    }

    fn error(&self, errno: Errno) -> ReadError {
        ReadError { thread: self.thread, errno }
    }
}

/// Why a group that was to count never did, if it has had its chance.
fn starved(reading: &Reading, some_cpus: bool) -> Option<Reason> {
    let hungry = reading.enabled >= STARVED && reading.running.is_zero();
    hungry.then_some(if some_cpus { Reason::OtherCores } else { Reason::Starved })
}

/// The words of an event, or why it would count nothing.
fn attr_of(spec: &Spec, options: GroupOptions, leads: bool) -> Result<Attr, Reason> {
    let modes = match spec.modes {
        Modes::UserAndKernel if !options.kernel_side => Modes::User,
        Modes::Kernel if !options.kernel_side => return Err(Reason::KernelSide),
        modes => modes,
    };
    if spec.is_kernel_side() && !modes.kernel() {
        return Err(Reason::KernelSide);
    }
    let mut attr = Attr::new(spec.kind, spec.config);
    (attr.config1, attr.config2) = (spec.config1, spec.config2);
    attr.set(Flag::Disabled, leads);
    attr.set(Flag::ExcludeUser, !modes.user());
    attr.set(Flag::ExcludeKernel, !modes.kernel());
    // On bare-metal POWER the kernel itself runs in hypervisor mode.
    attr.set(Flag::ExcludeHypervisor, !modes.kernel());
    Ok(attr)
}

/// A group's words: number of events, time enabled, time running, then value
/// and id of each.
fn decode(words: &[u64], events: &[(u64, Arc<str>)]) -> Option<Reading> {
    let [count, enabled, running, values @ ..] = words else { return None };
    if usize::try_from(*count).ok()? != events.len() || values.len() != 2 * events.len() {
        return None;
    }
    let count_of = |id: u64| {
        values.chunks_exact(2).find_map(|pair| match *pair {
            [value, known] if known == id => Some(value),
            _ => None,
        })
    };
    let counts = events.iter().map(|(id, name)| Some((name.clone(), count_of(*id)?)));
    let counts = counts.collect::<Option<_>>()?;
    let (enabled, running) = (Duration::from_nanos(*enabled), Duration::from_nanos(*running));
    Some(Reading { enabled, running, counts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_matched_by_id_and_not_by_place() {
        let events = [(7, "a".into()), (9, "b".into())];
        let reading = decode(&[2, 10, 5, 200, 9, 100, 7], &events).unwrap();
        assert_eq!((reading.count("a"), reading.count("b")), (Some(100), Some(200)));
        assert_eq!(reading.enabled, Duration::from_nanos(10));
    }

    #[test]
    fn a_group_that_never_counts_is_starved_and_one_that_had_no_chance_is_not() {
        let decode = |enabled, running| decode(&[1, enabled, running, 0, 7], &[(7, "a".into())]);
        let verdict = |enabled, running| starved(&decode(enabled, running).unwrap(), false);
        assert_eq!(verdict(1_000_000_000, 0), Some(Reason::Starved));
        assert_eq!(verdict(999_999_999, 0), None);
        assert_eq!(verdict(5_000_000_000, 1), None);
        let elsewhere = starved(&decode(2_000_000_000, 0).unwrap(), true);
        assert_eq!(elsewhere, Some(Reason::OtherCores));
    }

    #[test]
    fn short_or_foreign_words_are_no_reading() {
        let events = [(7, "a".into())];
        for words in [&[][..], &[1, 1, 1], &[1, 1, 1, 5], &[1, 1, 1, 5, 8], &[2, 1, 1, 5, 7]] {
            assert_eq!(decode(words, &events), None, "{words:?}");
        }
    }
}
