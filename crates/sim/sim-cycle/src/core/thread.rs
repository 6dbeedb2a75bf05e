//! A hardware thread of a core.

use std::collections::VecDeque;

use symbiont_profile::{FromStore, OpClass};
use symbiont_sim_fast::activity::Cycle;

use crate::counts::Counts;
use crate::op::{Op, Stream};

/// Not yet.
pub(super) const NEVER: u64 = u64::MAX;
/// No link.
pub(super) const NONE: u32 = u32::MAX;

/// Sources that an operation may wait for: two registers and a store.
pub(super) const SOURCES: usize = 3;

/// Links of a slot.
pub(super) const LINKS: u32 = 4;

/// Where a load gets its bytes. A store is named by how many operations back it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bytes {
    /// From the cache.
    Cache,
    /// From a store in the queue that wrote all of them.
    Store(u16),
    /// From the cache, once this store has drained, which wrote some of them.
    Drained(u16),
    /// The same, and it was tried before.
    Blocked(u16),
}

/// What makes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Makes {
    /// The operation itself.
    Itself,
    /// One so many operations back: the register was stored and is renamed.
    Other(u32),
    /// It was there before.
    Nothing,
}

/// An operation between fetch and retirement, in one line of the host's cache. Fetch sets what comes first, up to
/// `closes`, dispatch the rest.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct InFlight {
    pub(super) sources: [u16; 2],
    pub(super) class: OpClass,
    pub(super) starts_instruction: bool,
    /// A mispredicted branch.
    pub(super) wrong: bool,
    /// The first of those that share an entry of the re-order buffer, and the last.
    pub(super) opens: bool,
    pub(super) closes: bool,
    /// When it is done; [`NEVER`] before it is issued.
    pub(super) done: u64,
    /// When the sources known so far are ready.
    pub(super) ready: u64,
    pub(super) age: u64,
    /// The first that waits for it: slot · [`LINKS`] + which of its sources.
    pub(super) waiting: u32,
    /// The next that waits for the same source, for each source.
    pub(super) next: [u32; SOURCES],
    /// Sources that were not issued yet.
    pub(super) missing: u8,
    /// What its cycles are charged to while it is the oldest.
    pub(super) cause: Cycle,
    /// The store that a load gets its bytes from.
    pub(super) from: Bytes,
    /// The operation that makes what a load hands on, or a store stores.
    pub(super) makes: Makes,
}

/// What a load or store accesses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub(super) address: u64,
    pub(super) page: u64,
    /// The store that wrote what a load reads.
    pub(super) stored: Option<FromStore>,
}

/// Why the front end last had to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// It flows.
    Flow,
    /// For an instruction line.
    Icache,
    /// For a mispredicted branch to resolve, or for the refill behind it.
    Redirect,
}

/// A store between dispatch and the cache.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoreEntry {
    pub(super) number: u64,
    /// When its line is there; [`NEVER`] before it was asked for.
    pub(super) arrives: u64,
}

/// The wrong path that a thread is on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WrongPath {
    /// Operations between fetch and dispatch.
    pub(super) fetched: u32,
    /// Entries of the re-order buffer.
    pub(super) entries: u32,
    /// Operations for which the last entry has room.
    pub(super) open: u32,
    /// Operations dispatched in this cycle.
    pub(super) dispatched: u32,
}

/// An instruction stream and the user that it counts for.
pub(crate) struct Work<'s> {
    /// Number in the levels.
    pub(crate) user: usize,
    stream: Stream<'s>,
    upcoming: Option<Op>,
}

impl<'s> Work<'s> {
    pub(crate) fn new(user: usize, mut stream: Stream<'s>) -> Self {
        Self { user, upcoming: stream.next(), stream }
    }

    /// No instruction stream.
    pub(crate) fn none(user: usize) -> Self {
        Self::new(user, Box::new(std::iter::empty()))
    }
}

/// A thread.
pub(crate) struct Thread<'s> {
    /// Its number in the levels.
    pub(super) user: usize,
    stream: Stream<'s>,
    /// The operation that is fetched next.
    pub(super) upcoming: Option<Op>,
    /// Operations that may lie between fetch and dispatch.
    buffer: u64,
    /// The first cycle in which it may fetch.
    pub(super) fetch_from: u64,
    /// Fetch waits for a branch that was not issued yet.
    pub(super) blind: bool,
    /// When the last mispredicted branch was resolved.
    pub(super) resolved: u64,
    pub(super) front: Waits,
    /// The wrong path that it follows.
    pub(super) wrong_path: WrongPath,
    /// Operations that it fetched, and in how many turns.
    pub(super) groups: (u64, u64),
    /// Until when loads of it wait for data from beyond the L2.
    pub(super) far_until: u64,
    /// The instruction line that is being fetched.
    pub(super) line: u64,
    slots: Vec<InFlight>,
    /// What the loads and stores among them access.
    accesses: Vec<Access>,
    mask: u64,
    /// Numbers of the oldest operation in flight, of the next to be dispatched, and of the next to be fetched.
    pub(super) head: u64,
    pub(super) tail: u64,
    pub(super) fetched: u64,
    pub(super) stores: VecDeque<StoreEntry>,
    /// Vector operations between dispatch and issue.
    pub(super) vectors: u32,
    pub(super) counts: Counts,
    /// In this cycle: operations dispatched, retired; was it kept from retiring by others, from
    /// dispatching by a full structure, by a full store queue?
    pub(super) dispatched: u32,
    pub(super) retired: u32,
    pub(super) outrun: bool,
    pub(super) full: Option<Full>,
}

/// What keeps an operation from being dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// The store queue.
    Stores,
    /// Anything else.
    Other,
}

const EMPTY: InFlight = InFlight {
    sources: [0; 2],
    class: OpClass::Other,
    starts_instruction: false,
    wrong: false,
    opens: false,
    closes: false,
    done: NEVER,
    ready: 0,
    age: 0,
    waiting: NONE,
    next: [NONE; SOURCES],
    missing: 0,
    cause: Cycle::Integer,
    from: Bytes::Cache,
    makes: Makes::Itself,
};

const NO_ACCESS: Access = Access { address: 0, page: 0, stored: None };

impl<'s> Thread<'s> {
    pub(super) fn new(work: Work<'s>, most: u32, buffer: u32) -> Self {
        let buffer = u64::from(buffer);
        let slots = (u64::from(most) + buffer).next_power_of_two() as usize;
        let Work { user, stream, upcoming } = work;
        Self {
            user,
            upcoming,
            stream,
            buffer,
            fetch_from: 0,
            blind: false,
            resolved: 0,
            front: Waits::Flow,
            wrong_path: WrongPath::default(),
            groups: (0, 0),
            far_until: 0,
            line: NEVER,
            slots: vec![EMPTY; slots],
            accesses: vec![NO_ACCESS; slots],
            mask: slots as u64 - 1,
            head: 0,
            tail: 0,
            fetched: 0,
            stores: VecDeque::new(),
            vectors: 0,
            counts: Counts::default(),
            dispatched: 0,
            retired: 0,
            outrun: false,
            full: None,
        }
    }

    #[inline]
    pub(super) fn slot(&self, number: u64) -> &InFlight {
        &self.slots[(number & self.mask) as usize]
    }

    #[inline]
    pub(super) fn slot_mut(&mut self, number: u64) -> &mut InFlight {
        &mut self.slots[(number & self.mask) as usize]
    }

    /// What the load or store with this number accesses.
    #[inline]
    pub(super) fn access(&self, number: u64) -> &Access {
        &self.accesses[(number & self.mask) as usize]
    }

    /// The slot at an index, for links.
    #[inline]
    pub(super) fn at(&mut self, index: u32) -> &mut InFlight {
        &mut self.slots[index as usize]
    }

    #[inline]
    pub(super) fn index(&self, number: u64) -> u32 {
        (number & self.mask) as u32
    }

    /// Is a store still in the queue?
    #[inline]
    pub(super) fn holds(&self, store: u64) -> bool {
        self.stores.binary_search_by_key(&store, |stored| stored.number).is_ok()
    }

    /// What makes the value of a source so many operations before the next; nothing if that has retired.
    #[inline]
    pub(super) fn maker(&self, back: u16) -> Option<u64> {
        let (number, back) = (self.tail, u64::from(back));
        if back == 0 || back > number - self.head {
            return None;
        }
        let source = self.slot(number - back);
        match source.makes {
            Makes::Other(further) if source.class == OpClass::Load => {
                Some(number - back - u64::from(further)).filter(|maker| *maker >= self.head)
            }
            Makes::Nothing if source.class == OpClass::Load => None,
            _ => Some(number - back),
        }
    }

    /// Where the next operation gets its bytes if it is a load, and what makes what it hands on. `data`: what makes
    /// the younger of its sources; `renames`: does the core rename memory?
    #[inline]
    pub(super) fn bytes(&self, class: OpClass, data: Option<u64>, renames: bool) -> (Bytes, Makes) {
        match class {
            OpClass::Load => self.loaded(renames),
            OpClass::Store => {
                let other = |maker: u64| Makes::Other((self.tail - maker) as u32);
                (Bytes::Cache, data.map_or(Makes::Nothing, other))
            }
            _ => (Bytes::Cache, Makes::Itself),
        }
    }

    /// The same of a load.
    fn loaded(&self, renames: bool) -> (Bytes, Makes) {
        let Some(from) = self.access(self.tail).stored else {
            return (Bytes::Cache, Makes::Itself);
        };
        let store = self.tail.wrapping_sub(u64::from(from.back));
        if !self.holds(store) {
            return (Bytes::Cache, Makes::Itself);
        }
        if !from.whole {
            return (Bytes::Drained(from.back), Makes::Itself);
        }
        let retired = store < self.head;
        let makes = match renames && from.same_form {
            false => Makes::Itself,
            true if retired => Makes::Nothing,
            true => match self.slot(store).makes {
                Makes::Other(further) => Makes::Other(u32::from(from.back) + further),
                makes => makes,
            },
        };
        (Bytes::Store(from.back), makes)
    }

    /// Number of the operation in flight at an index.
    #[inline]
    pub(super) fn number(&self, index: u32) -> u64 {
        self.head + ((u64::from(index).wrapping_sub(self.head)) & self.mask)
    }

    /// Has the oldest operation been issued, and until when does it take?
    #[inline]
    pub(super) fn oldest(&self) -> Option<&InFlight> {
        (self.head < self.tail).then(|| self.slot(self.head))
    }

    /// Fetches the operation that comes next. `opens`, `closes`: is it the first, and the last, of those that share an
    /// entry of the re-order buffer?
    #[inline]
    pub(super) fn take_upcoming(&mut self, wrong: bool, opens: bool, closes: bool) {
        let Some(op) = &self.upcoming else { return };
        let at = (self.fetched & self.mask) as usize;
        let slot = &mut self.slots[at];
        slot.sources = op.sources;
        slot.class = op.class;
        slot.starts_instruction = op.starts_instruction;
        slot.wrong = wrong;
        slot.opens = opens;
        slot.closes = closes;
        if op.class.is_memory() {
            self.accesses[at] = Access { address: op.address, page: op.page, stored: op.stored };
        }
        self.fetched += 1;
        self.advance_stream();
    }

    #[inline]
    pub(super) fn advance_stream(&mut self) {
        self.upcoming = self.stream.next();
    }

    /// Could it fetch so many operations now? With less room in its buffer it leaves the turn to
    /// others: a fetch group is delivered whole.
    #[inline]
    pub(super) fn can_fetch(&self, now: u64, group: u32) -> bool {
        let goes_on = self.fetch_from <= now && self.upcoming.is_some();
        (self.is_on_wrong_path(now) || goes_on) && self.buffer_room() >= group
    }

    /// Does it follow a wrong path?
    #[inline]
    pub(super) fn is_on_wrong_path(&self, now: u64) -> bool {
        self.blind || self.resolved > now
    }

    /// Operations that it may still take into its buffer.
    #[inline]
    pub(super) fn buffer_room(&self) -> u32 {
        let held = self.fetched - self.tail + u64::from(self.wrong_path.fetched);
        self.buffer.saturating_sub(held) as u32
    }

    /// Is there nothing left to do?
    pub(crate) fn is_done(&self) -> bool {
        self.upcoming.is_none() && self.head == self.fetched
    }

    /// Takes what it executes away; what was fetched of that goes on.
    pub(crate) fn leave(&mut self) -> Work<'s> {
        let none = Work::none(self.user);
        let stream = std::mem::replace(&mut self.stream, none.stream);
        Work { user: self.user, stream, upcoming: self.upcoming.take() }
    }

    /// Has all that was fetched left, stores too?
    pub(crate) fn is_drained(&self) -> bool {
        self.is_done() && self.stores.is_empty()
    }

    /// Executes something else from now on; must be drained.
    pub(crate) fn enter(&mut self, work: Work<'s>) {
        debug_assert!(self.is_drained(), "something is in flight");
        (self.user, self.stream, self.upcoming) = (work.user, work.stream, work.upcoming);
        (self.line, self.groups, self.front) = (NEVER, (0, 0), Waits::Flow);
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) fn user(&self) -> usize {
        self.user
    }

    /// Returns when it can go on.
    pub(super) fn next(&self, at: &mut impl FnMut(u64)) {
        if let Some(oldest) = self.oldest() {
            if oldest.done != NEVER {
                at(oldest.done);
            }
        }
        if let Some(store) = self.stores.front() {
            if store.number < self.head && store.arrives != NEVER {
                at(store.arrives);
            }
        }
        if !self.blind && self.upcoming.is_some() {
            at(self.fetch_from);
        }
        // From then on other slots are charged, and it need not hold back.
        at(self.resolved);
        at(self.far_until);
    }
}
