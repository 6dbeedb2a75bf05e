//! What can happen, read from bytes.

use symbiont_topology::{CpuSet, PuId};

use super::super::thread::Class;

/// Chooses one of what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick(pub u8);

/// A step of the kernel, of a program or of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Time(u16),
    Fork {
        by: Pick,
        reuse: bool,
        session: bool,
    },
    Clone {
        by: Pick,
        reuse: bool,
    },
    /// All threads but the caller end, and it becomes the leader. The end of the old leader can be
    /// reported late, under the caller's number.
    Exec {
        by: Pick,
        late_end: bool,
    },
    /// The new program is loaded.
    ExecReport(Pick),
    ExitThread(Pick),
    ExitProcess(Pick),
    SetMask(Pick, Option<CpuSet>),
    SetNice(Pick, i8),
    SetClass(Pick, Class, bool),
    Cpuset(bool, CpuSet),
    /// The process runs a setuid program: changes are refused from now on.
    ChangeUser(Pick),
}

/// What a move asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    Cpus(CpuSet),
    Nudge(CpuSet),
    Os,
    Boost(u8),
    Wait,
    Normal,
    /// A `sched_ext` scheduler decides, or no longer.
    Ext(bool),
}

/// Anything that can happen next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    World(Step),
    /// A report reaches the manager.
    Report,
    Sample,
    Move(Pick, Ask),
    Refresh,
    /// The manager dies after so many calls.
    Kill(u32),
}

/// CPUs of the simulated machine.
pub const CPUS: u32 = 4;
/// Masks that users choose; moves use others, so that few can be taken for each other.
const USERS: [&[u32]; 6] = [&[0, 2], &[1, 3], &[0, 3], &[1, 2], &[0, 1, 2], &[1, 2, 3]];
const MOVES: [&[u32]; 6] = [&[0], &[1], &[2], &[3], &[0, 1], &[2, 3]];
const CPUSETS: [&[u32]; 5] = [&[0, 1, 2, 3], &[0, 1, 2], &[1, 2, 3], &[0, 1], &[0, 1, 2, 3]];
const NICE: [i8; 4] = [1, 3, 10, 16];
const CLASSES: [Class; 4] = [Class::Other, Class::Batch, Class::Idle, Class::Special];

fn set(numbers: &[u32]) -> CpuSet {
    numbers.iter().map(|number| PuId(*number)).collect()
}

/// Do cpusets change in the course of the events?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cpusets {
    Fixed,
    #[cfg_attr(fuzzing, expect(dead_code, reason = "the tests alone let them change"))]
    Changing,
}

/// Reads actions from bytes; ends with them.
#[derive(Debug)]
pub struct Actions<'a> {
    bytes: std::slice::Iter<'a, u8>,
    cpusets: Cpusets,
}

impl<'a> Actions<'a> {
    pub fn new(bytes: &'a [u8], cpusets: Cpusets) -> Self {
        Self { bytes: bytes.iter(), cpusets }
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes.next().copied()
    }

    fn bit(&mut self) -> Option<bool> {
        Some(self.byte()? & 1 == 1)
    }

    fn pick(&mut self) -> Option<Pick> {
        self.byte().map(Pick)
    }

    fn one_of<T: Clone>(&mut self, choices: &[T]) -> Option<T> {
        let byte = usize::from(self.byte()?);
        choices.get(byte % choices.len()).cloned()
    }

    fn step(&mut self) -> Option<Step> {
        let kind = self.byte()?;
        Some(match kind % 20 {
            0..=2 => Step::Fork { by: self.pick()?, reuse: self.bit()?, session: self.bit()? },
            3..=6 => Step::Clone { by: self.pick()?, reuse: self.bit()? },
            7..=9 => Step::Exec { by: self.pick()?, late_end: self.bit()? },
            10 | 11 => Step::ExecReport(self.pick()?),
            12 | 13 => Step::ExitThread(self.pick()?),
            14 => Step::ExitProcess(self.pick()?),
            15 => Step::SetMask(self.pick()?, Some(set(self.one_of(&USERS)?))),
            16 => match self.byte()? % 4 {
                0 => Step::SetMask(self.pick()?, None),
                1 => Step::ChangeUser(self.pick()?),
                2 => Step::Time(2000),
                _ => Step::Time(1),
            },
            17 => Step::SetNice(self.pick()?, self.one_of(&NICE)?),
            18 => Step::SetClass(self.pick()?, self.one_of(&CLASSES)?, self.bit()?),
            _ if self.cpusets == Cpusets::Fixed => Step::Time(1),
            _ => Step::Cpuset(self.bit()?, set(self.one_of(&CPUSETS)?)),
        })
    }

    fn ask(&mut self) -> Option<Ask> {
        Some(match self.byte()? % 12 {
            0..=2 => Ask::Cpus(set(self.one_of(&MOVES)?)),
            3..=5 => Ask::Nudge(set(self.one_of(&MOVES)?)),
            6 => Ask::Os,
            7 => Ask::Boost(self.one_of(&[5, 20])?),
            8 => Ask::Wait,
            9 => Ask::Ext(true),
            10 => Ask::Ext(false),
            _ => Ask::Normal,
        })
    }
}

impl Iterator for Actions<'_> {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        Some(match self.byte()? % 16 {
            0..=6 => Action::World(self.step()?),
            7 | 8 => Action::Report,
            9 | 10 => Action::Sample,
            11..=13 => Action::Move(self.pick()?, self.ask()?),
            14 => Action::Refresh,
            _ => match self.byte()? {
                fuse @ 0..=39 => Action::Kill(u32::from(fuse)),
                _ => Action::Sample,
            },
        })
    }
}
