//! Passes reports of births and execs on to the actuator at once.

use crate::actuate::Actuator;
use crate::observe::{Birth, BirthHook, Exec};

/// Reports to the actuator at once what the reader sees.
#[derive(Debug)]
pub(crate) struct Hook(pub(crate) Actuator);

impl BirthHook for Hook {
    fn born(&mut self, birth: &Birth) {
        // No thread has number 0: any thread of the parent may have made it.
        let parent = birth.parent_thread.unwrap_or(0);
        if let Some(at) = birth.at {
            self.0.born_at(birth.parent_process, birth.process, birth.thread, at);
        }
        self.0.newborn(birth.parent_process, parent, birth.process, birth.thread);
    }

    fn execed(&mut self, exec: &Exec) {
        self.0.execed(exec.process, &exec.candidates);
    }

    // The next sample shows it: until then what its children may have inherited has to be
    // remembered.
    fn exited(&mut self, _: u32, _: u32) {}
}
