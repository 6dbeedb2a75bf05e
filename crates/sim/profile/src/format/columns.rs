//! Micro-traces by column.

use serde::{Deserialize, Serialize};

use crate::{Access, FromStore, MicroOp, MicroTrace, OpClass, Profile, ReuseBin};

/// A profile as it is stored: the micro-traces stand apart.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredProfile {
    profile: Profile,
    /// Per phase, its micro-traces.
    traces: Vec<Vec<Columns>>,
}

impl StoredProfile {
    pub(super) fn of(profile: &Profile) -> Self {
        let traces =
            profile.phases.iter().map(|phase| phase.traces.iter().map(Columns::of).collect());
        let traces = traces.collect();
        let mut profile = profile.clone();
        for phase in &mut profile.phases {
            phase.traces.clear();
        }
        Self { profile, traces }
    }

    pub(super) fn profile(self) -> Result<Profile, String> {
        let Self { mut profile, traces } = self;
        if traces.len() != profile.phases.len() {
            return Err("micro-traces of other phases than it has".to_owned());
        }
        for (phase, columns) in profile.phases.iter_mut().zip(traces) {
            if !phase.traces.is_empty() {
                return Err("micro-traces where none belong".to_owned());
            }
            let traces: Option<Vec<MicroTrace>> = columns.iter().map(Columns::trace).collect();
            phase.traces = traces.ok_or("the columns of a micro-trace do not fit")?;
        }
        Ok(profile)
    }
}

/// Bits of a shape without the class.
const STARTS: u8 = 1 << 4;
const ACCESSES: u8 = 1 << 5;
const FETCHES: u8 = 1 << 6;

/// Flags of a store that a load reads.
const WHOLE: u8 = 1;
const SAME_FORM: u8 = 2;

/// One micro-trace.
#[derive(Serialize, Deserialize)]
struct Columns {
    /// Per operation: class and what it has.
    shapes: Vec<u8>,
    near: Vec<u16>,
    far: Vec<u16>,
    /// Per load, how far back the store is that wrote what it reads, or 0; and of those that have one, its
    /// flags.
    stored: Vec<u16>,
    how: Vec<u8>,
    /// Index of each mispredicted operation and its flags.
    mispredicted: Vec<(u16, u8)>,
    data: Lines,
    code: Lines,
}

/// Accesses, in order.
#[derive(Default, Serialize, Deserialize)]
struct Lines {
    /// Line number less that of the access before.
    steps: Vec<i64>,
    reuse_64: Vec<ReuseBin>,
    reuse_128: Vec<ReuseBin>,
    reuse_page: Vec<ReuseBin>,
}

impl Lines {
    fn of(accesses: impl Iterator<Item = Access>) -> Self {
        let mut lines = Self::default();
        let mut before = 0_u64;
        for access in accesses {
            lines.steps.push(access.line.wrapping_sub(before) as i64);
            before = access.line;
            lines.reuse_64.push(access.reuse_64);
            lines.reuse_128.push(access.reuse_128);
            lines.reuse_page.push(access.reuse_page);
        }
        lines
    }

    fn accesses(&self) -> impl Iterator<Item = Access> + '_ {
        let mut line = 0_u64;
        let bins = self.reuse_64.iter().zip(&self.reuse_128).zip(&self.reuse_page);
        self.steps.iter().zip(bins).map(move |(step, ((reuse_64, reuse_128), reuse_page))| {
            line = line.wrapping_add(*step as u64);
            Access { line, reuse_64: *reuse_64, reuse_128: *reuse_128, reuse_page: *reuse_page }
        })
    }

    fn is_even(&self) -> bool {
        let length = self.steps.len();
        [&self.reuse_64, &self.reuse_128, &self.reuse_page].iter().all(|bins| bins.len() == length)
    }
}

impl Columns {
    fn of(trace: &MicroTrace) -> Self {
        let ops = &trace.ops;
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let shape = |op: &MicroOp| {
            op.class.index() as u8
                | bit(op.starts_instruction, STARTS)
                | bit(op.access.is_some(), ACCESSES)
                | bit(op.fetch.is_some(), FETCHES)
        };
        let loads = || ops.iter().filter(|op| op.class == OpClass::Load);
        let how = |from: FromStore| bit(from.whole, WHOLE) | bit(from.same_form, SAME_FORM);
        let missed = ops.iter().zip(0_u16..).filter(|(op, _)| op.mispredicted != 0);
        Self {
            shapes: ops.iter().map(shape).collect(),
            near: ops.iter().map(|op| op.sources[0]).collect(),
            far: ops.iter().map(|op| op.sources[1]).collect(),
            stored: loads().map(|op| op.stored.map_or(0, |from| from.back)).collect(),
            how: loads().filter_map(|op| op.stored.map(how)).collect(),
            mispredicted: missed.map(|(op, index)| (index, op.mispredicted)).collect(),
            data: Lines::of(ops.iter().filter_map(|op| op.access)),
            code: Lines::of(ops.iter().filter_map(|op| op.fetch)),
        }
    }

    /// The micro-trace; none if the columns do not fit each other.
    fn trace(&self) -> Option<MicroTrace> {
        let even = self.near.len() == self.shapes.len() && self.far.len() == self.shapes.len();
        if !even || !self.data.is_even() || !self.code.is_even() {
            return None;
        }
        let (mut data, mut code) = (self.data.accesses(), self.code.accesses());
        let (mut stored, mut how) = (self.stored.iter(), self.how.iter());
        let mut ops = Vec::with_capacity(self.shapes.len());
        for ((shape, near), far) in self.shapes.iter().zip(&self.near).zip(&self.far) {
            let access = if shape & ACCESSES != 0 { Some(data.next()?) } else { None };
            let fetch = if shape & FETCHES != 0 { Some(code.next()?) } else { None };
            let class = *OpClass::ALL.get(usize::from(shape & (STARTS - 1)))?;
            let back = if class == OpClass::Load { *stored.next()? } else { 0 };
            let from = if back > 0 { Some(how.next()?) } else { None };
            ops.push(MicroOp {
                class,
                starts_instruction: shape & STARTS != 0,
                sources: [*near, *far],
                stored: from.map(|how| FromStore {
                    back,
                    whole: how & WHOLE != 0,
                    same_form: how & SAME_FORM != 0,
                }),
                access,
                fetch,
                mispredicted: 0,
            });
        }
        for (index, flags) in &self.mispredicted {
            ops.get_mut(usize::from(*index))?.mispredicted = *flags;
        }
        let complete = data.next().is_none()
            && code.next().is_none()
            && stored.next().is_none()
            && how.next().is_none();
        complete.then_some(MicroTrace { ops })
    }
}
