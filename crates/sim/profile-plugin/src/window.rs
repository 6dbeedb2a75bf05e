//! Records windows of a thread's execution.

use symbiont_profile::trace::{DataAccess, Line, RawWindow, WindowEncoder};

use crate::block::Block;

/// Which windows of a thread are recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Instructions of a window.
    pub length: u64,
    /// After how many instructions of the thread each begins, ascending. A window that would begin before the previous
    /// one has ended begins at that end.
    pub starts: Vec<u64>,
}

/// The windows of a thread.
#[derive(Debug, Default)]
pub struct Windows {
    plan: Plan,
    /// The next of the plan.
    next: usize,
    recording: Option<Box<Recording>>,
    done: Vec<RawWindow>,
}

/// One that is being recorded.
#[derive(Debug)]
struct Recording {
    encoder: WindowEncoder,
    /// Of the block that is being executed.
    accesses: Vec<DataAccess>,
}

impl Windows {
    /// None begun yet.
    pub fn new(plan: Plan) -> Self {
        Self { plan, ..Self::default() }
    }

    /// Is one being recorded?
    #[inline]
    pub fn is_recording(&self) -> bool {
        self.recording.is_some()
    }

    /// After how many instructions of the thread the next one is to begin.
    pub fn due(&self) -> Option<u64> {
        if self.is_recording() { None } else { self.plan.starts.get(self.next).copied() }
    }

    /// Begins the one that is due. `before`: instructions that the thread has
    /// executed; `lines`: the data and code that it used last.
    pub fn begin(&mut self, thread: u32, before: u64, lines: [Vec<Line>; 2]) {
        self.next += 1;
        let [data, code] = lines;
        let encoder = WindowEncoder::new(thread, before, &data, &code).ok();
        let recording = |encoder| Box::new(Recording { encoder, accesses: Vec::new() });
        self.recording = encoder.map(recording);
    }

    /// The block that is executing accessed data.
    pub fn accessed(&mut self, access: DataAccess) {
        if let Some(recording) = &mut self.recording {
            recording.accesses.push(access);
        }
    }

    /// A block was executed, and execution goes on at `next`. `again`: it was one
    /// more round of a repeated string instruction. Is a window complete?
    pub fn executed(&mut self, block: &Block, again: bool, next: u64) -> bool {
        let Some(recording) = &mut self.recording else { return false };
        let Recording { encoder, accesses } = recording.as_mut();
        let kept = encoder.executed(block.id, || block.code(), again, accesses);
        accesses.clear();
        if kept.is_err() {
            // Nothing that a program does leads here; a missing window is reported.
            self.recording = None;
            return false;
        }
        let complete = encoder.instructions() >= self.plan.length;
        if complete {
            self.end(Some(next));
        }
        complete
    }

    /// Ends the one that is being recorded before it is complete, as the thread ends.
    pub fn flush(&mut self) {
        self.end(None);
    }

    fn end(&mut self, next: Option<u64>) {
        let Some(recording) = self.recording.take() else { return };
        let window = recording.encoder.finish(next).ok();
        self.done.extend(window.filter(|window| window.instructions > 0));
    }

    /// Has one ended since the last [`Windows::take`]?
    pub fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// The windows that ended since the last call.
    pub fn take(&mut self) -> Vec<RawWindow> {
        std::mem::take(&mut self.done)
    }
}
