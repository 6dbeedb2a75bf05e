//! Whether there is a core for a program that wants one for itself.
//!
//! # Problem
//! The command of a measurement has ended, and the next one starts at once. The daemon looks at its programs once a
//! quantum: until then the program that has ended would keep its core, and the next would not run. What a command
//! leaves behind (`setsid sleep 9 & exit`) may need a moment to leave its session, which makes it a daemon.
//!
//! # Approach
//! Before a program is refused, those that have cores are looked at anew, after a step that finds what they have
//! made: one whose first processes have ended, and of which daemons live at most, ends now, and its daemons are
//! released. Where other processes of it live, the request is answered a little later, [`GRACE`] at most: they are
//! about to end or to leave, or they belong to the program as long as they live, as a command that a shell left in
//! the background does.
//!
//! # Properties
//! - A core is free as soon as the command that had it has ended (`what_a_measured_command_leaves_behind_keeps_no_core`
//!   among the tests of the command line).

use std::os::fd::AsFd;
use std::time::Duration;

use symbiont_machine::{Ability, Class, Machine, ProgramId};
use symbiont_policy::room_for_one;
use symbiont_wire::{Failure, Request};

use super::{Effect, MachineController, Service};
use crate::OwnedProcess;
use crate::hub::Pending;
use crate::process::pid_of;
use crate::programs::ManagedProgram;

/// How long a request waits for what a command has left behind.
const GRACE: Duration = Duration::from_millis(500);

impl Service {
    /// Would this request be refused a core only because of what a command that has ended left behind a moment ago?
    pub(super) fn waits_for_an_end(
        &mut self,
        managed: &mut MachineController,
        call: &Pending,
    ) -> Option<Effect> {
        let (Request::Enrol { class, .. } | Request::Attach { class, .. }) = &call.request else {
            return None;
        };
        let class = class.as_deref().and_then(|class| class.parse::<Class>().ok());
        let class = class.filter(|class| class.keeps_cores())?;
        if call.since.elapsed() >= GRACE {
            return None;
        }
        self.end_what_is_over(managed);
        let programs = self.programs.iter();
        let ending: Vec<ProgramId> =
            programs.filter(|(_, program)| is_ending(program)).map(|(id, _)| id).collect();
        let roots: Vec<u32> =
            call.descriptors.iter().filter_map(|one| pid_of(one.as_fd()).ok()).collect();
        if ending.is_empty() || matches!(self.room(managed, class, &roots), Ok(None)) {
            return None;
        }
        let seen = |id| *self.ending.entry(id).or_insert(false);
        let unseen = ending.into_iter().map(seen).filter(|is_seen| !is_seen).count();
        Some(if unseen == 0 { Effect::Later } else { Effect::StepFirst })
    }

    /// Ends programs that have cores and whose commands have ended, though no step has noticed it yet.
    pub(super) fn end_what_is_over(&mut self, managed: &mut MachineController) {
        let machine = managed.machine();
        let is_over = |(id, program): &(ProgramId, &ManagedProgram)| {
            let is_seen = self.ending.get(id) == Some(&true);
            is_seen && is_ending(program) && machine.living(*id).iter().all(|one| one.has_left)
        };
        let over: Vec<ProgramId> = self.programs.iter().filter(is_over).map(|(id, _)| id).collect();
        for id in over {
            self.end(managed, id);
        }
    }

    /// Is there a core for a program of this class, which may run where these processes may? A note
    /// where a program that answers requests has to do without.
    ///
    /// # Errors
    /// When a program that is to be measured would not be alone.
    pub(super) fn room(
        &self,
        managed: &MachineController,
        class: Class,
        roots: &[u32],
    ) -> Result<Option<String>, Failure> {
        if !class.keeps_cores() {
            return Ok(None);
        }
        let machine = managed.machine();
        let granted = self.programs.iter().filter(|(_, program)| program.class.keeps_cores());
        let room = room_for_one(machine.topology(), &machine.reach(roots), granted.count());
        let trouble = match (&machine.support().affinity, room) {
            (Ability::Absent(why), _) => format!("threads cannot be placed: {why}"),
            (_, Err(why)) => why.to_string(),
            (_, Ok(())) => return Ok(None),
        };
        match class {
            Class::Alone => Err(Failure::Refused { reason: format!("not alone: {trouble}") }),
            _ => Ok(Some(format!("no core of its own: {trouble}"))),
        }
    }
}

/// Has a program that has cores, and is not managed for what it leaves behind, lost its first processes?
fn is_ending(program: &ManagedProgram) -> bool {
    let has_cores = program.class.keeps_cores() && !program.linger;
    has_cores && program.roots.iter().all(OwnedProcess::has_ended)
}
