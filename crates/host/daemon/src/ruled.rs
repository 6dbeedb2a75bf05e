//! Programs that are managed because a rule says so.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use symbiont_machine::{Class, ProgramId};
use symbiont_topology::counted;

use crate::log::Kind;
use crate::programs::Programs;
use crate::rules::{Finder, Found, Rules};
use crate::service::{MachineController, ProgramRequest, Service, own_uid};
use crate::{ContainersConfig, OwnedProcess, Peer};

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(1);

/// The programs that are managed because rules say so, and the rules.
#[derive(Debug)]
pub struct RuledPrograms {
    rules: Rules,
    finder: Finder,
    programs: BTreeMap<ProgramId, Origin>,
    /// Processes that are left alone, as they were refused.
    refused: BTreeSet<u32>,
    detached: Detached,
    looked: Option<Instant>,
    /// Was it said that a rule matches the daemon?
    warned: bool,
}

/// Processes that a user detached, with the group that rules put each in, once that is known: as long as one of them
/// lives, what comes new to the group is detached, too.
#[derive(Debug, Default)]
struct Detached(BTreeMap<u32, Option<String>>);

impl Detached {
    fn note_groups(&mut self, found: &[Found]) {
        for Found { process, group, .. } in found {
            if let Some(known) = self.0.get_mut(process) {
                known.clone_from(group);
            }
        }
    }

    fn has_group(&self, group: &str) -> bool {
        self.0.values().flatten().any(|known| known == group)
    }
}

/// What went wrong as rules were read.
#[derive(Debug, Default)]
pub struct Trouble {
    /// Files that cannot be used, with the reasons.
    pub bad_files: Vec<String>,
    /// Threads of released programs that were not restored.
    pub not_restored: Vec<String>,
}

/// Where a program came from.
#[derive(Debug)]
struct Origin {
    group: Option<String>,
    class: Class,
    process: u32,
}

impl RuledPrograms {
    /// By these rules.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        let (programs, refused, detached) = Default::default();
        let finder = Finder::new();
        Self { rules, finder, programs, refused, detached, looked: None, warned: false }
    }

    /// What the configuration says about containers.
    pub fn configure(&mut self, service: &mut Service, containers: &ContainersConfig) {
        self.rules.allow_annotations(containers.annotations);
        service.around.set_folders(containers.folders.clone());
        service.metrics.show_pods(containers.metrics);
    }

    /// A user does not want these managed, whatever a rule says.
    pub fn leave(&mut self, processes: impl IntoIterator<Item = u32>) {
        for process in processes {
            // Its group is to be known before anything new in it is found.
            self.finder.judge_again(process);
            self.detached.0.insert(process, None);
        }
    }

    /// Reads the rules again. Programs that they no longer have managed, or in another class, are released; the next
    /// scan finds what is to be managed now.
    pub fn read(&mut self, service: &mut Service, managed: &mut MachineController) -> Trouble {
        let errors = self.rules.read();
        self.finder.start_over();
        self.looked = None;
        self.warned = false;
        let wanted = self.finder.scan(&self.rules, &mut service.around, |_| false).found;
        self.finder.start_over();
        let stays = |origin: &Origin| {
            let same = wanted.iter().find(|found| found.process == origin.process);
            same.is_some_and(|found| found.verdict.class == origin.class)
        };
        let gone: Vec<ProgramId> =
            self.programs.iter().filter(|(_, origin)| !stays(origin)).map(|(id, _)| *id).collect();
        let mut trouble = Trouble {
            bad_files: errors.iter().map(ToString::to_string).collect(),
            not_restored: Vec::new(),
        };
        for id in gone {
            self.programs.remove(&id);
            let report = managed.machine_mut().release_program(id);
            if let Some(program) = service.programs.get(id) {
                let line = format!("{} is released: no rule wants it so any more", program.name);
                service.log.add(Kind::Released, line);
            }
            service.programs.remove(id);
            let failed = report.failed.iter().map(|failed| format!("not restored: {failed}"));
            trouble.not_restored.extend(failed);
        }
        trouble
    }

    /// What the rules are, in a line.
    #[must_use]
    pub fn summary(&self) -> String {
        counted(self.rules.len(), "rule")
    }

    /// Has managed what the rules want, once a second; gives lines for the log.
    pub fn apply(&mut self, service: &mut Service, managed: &mut MachineController) -> Vec<String> {
        let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= PERIOD);
        if self.rules.is_empty() || !is_due {
            return Vec::new();
        }
        self.looked = Some(Instant::now());
        let mut log = Vec::new();
        let programs = &service.programs;
        let scan = self.finder.scan(&self.rules, &mut service.around, |process| {
            let known = managed.machine().program_of(process);
            known.is_some_and(|id| !is_open(programs, id, process))
        });
        self.refused.retain(|process| scan.alive.contains(process));
        self.detached.0.retain(|process, _| scan.alive.contains(process));
        self.detached.note_groups(&scan.found);
        self.programs.retain(|id, _| service.programs.get(*id).is_some());
        if let (Some(by), false) = (scan.own.first(), self.warned) {
            self.warned = true;
            log.push(format!(
                "{by} matches symbiontd itself or what it descends from: that is not managed"
            ));
        }
        for found in scan.found {
            if let Some(id) = managed.machine().program_of(found.process) {
                // Others are children of one that was just enrolled.
                if is_open(&service.programs, id, found.process) {
                    let Found { name, process, verdict, .. } = &found;
                    let class = verdict.class;
                    service.programs.state_class(id, class);
                    managed.machine_mut().set_class(id, class);
                    let by = &verdict.by;
                    log.push(format!("{name} (process {process}): class {class}, by {by}"));
                }
                continue;
            }
            if self.is_left_alone(&found) {
                continue;
            }
            if let Err(why) = self.take_in(service, managed, &found) {
                self.refused.insert(found.process);
                let Found { name, process, verdict, .. } = found;
                log.push(format!(
                    "{name} (process {process}) stays unmanaged: {why}; wanted by {}",
                    verdict.by
                ));
            }
        }
        log
    }

    /// The program of a group.
    fn program_of(&self, group: Option<&String>) -> Option<ProgramId> {
        let is_it = |origin: &Origin| group.is_some() && origin.group.as_ref() == group;
        self.programs.iter().find(|(_, origin)| is_it(origin)).map(|(id, _)| *id)
    }

    fn is_left_alone(&self, found: &Found) -> bool {
        let group = found.group.as_ref();
        let is_detached = || group.is_some_and(|group| self.detached.has_group(group));
        self.refused.contains(&found.process)
            || self.detached.0.contains_key(&found.process)
            || self.program_of(group).is_none() && is_detached()
    }

    fn take_in(
        &mut self,
        service: &mut Service,
        managed: &mut MachineController,
        found: &Found,
    ) -> Result<(), String> {
        if let Some(id) = self.program_of(found.group.as_ref()) {
            let enrolled = managed.machine_mut().enrol_in(id, found.process);
            let (name, process) = (&found.name, found.process);
            if enrolled.is_ok() {
                let by = &found.verdict.by;
                let line = format!("{name} (process {process}) is managed with its group, by {by}");
                service.log.add(Kind::Managed, line);
            }
            return enrolled.map_err(|error| error.to_string());
        }
        let pid = i32::try_from(found.process).ok().and_then(Pid::from_raw);
        let held = pid.ok_or("there is no such process")?;
        let held = pidfd_open(held, PidfdFlags::empty()).map_err(|error| error.to_string())?;
        let root = OwnedProcess::of(held).map_err(|error| error.to_string())?;
        let peer = Peer { uid: own_uid(), pid: std::process::id() };
        let class = found.verdict.class;
        let (name, linger) = (found.name.as_str(), true);
        let (is_class_stated, by) = (true, Some(found.verdict.by.as_str()));
        let wanted = ProgramRequest {
            name,
            class,
            is_class_stated,
            linger,
            by,
            ..ProgramRequest::default()
        };
        let (id, _) =
            service.take_in(managed, peer, wanted, vec![root]).map_err(|why| why.to_string())?;
        let origin = Origin { group: found.group.clone(), class, process: found.process };
        self.programs.insert(id, origin);
        Ok(())
    }
}

/// Was a program enrolled by this process, and its class not stated?
fn is_open(programs: &Programs, id: ProgramId, process: u32) -> bool {
    programs.get(id).is_some_and(|program| {
        !program.is_class_stated && program.roots.iter().any(|root| root.pid() == process)
    })
}
