//! Which programs the jobs of the queue run, by their scripts.
//!
//! Slurm is asked for each script once. One look at the queue reads a bounded number of scripts in a bounded time, at
//! least one, so that a slow controller holds up no release; jobs whose scripts come later count as average meanwhile.

use std::time::{Duration, Instant};

use symbiont_jobs::slurm::{QueuedJob, State};
use symbiont_jobs::{Identities, Identity, ProgramKey, digest_of_text, work};

use crate::cluster::Cluster;
use crate::tracked::{JobProgram, TrackedJobs};

/// Scripts that one look reads.
const MOST_SCRIPTS: usize = 500;
/// How long one look reads scripts.
const SCRIPTS: Duration = Duration::from_secs(2);

/// Finds the programs of jobs that wait for Symbiont or run, as far as they are not known.
pub fn find_programs(
    queue: &[QueuedJob],
    tracked: &mut TrackedJobs,
    identities: &mut Identities,
    cluster: &mut impl Cluster,
) {
    let matters = |job: &&QueuedJob| job.waits_for_us() || job.state == State::Running;
    let new = queue.iter().filter(matters).filter(|job| tracked.program(job.id).is_none());
    let new: Vec<&QueuedJob> = new.take(MOST_SCRIPTS).collect();
    let begin = Instant::now();
    for job in new {
        if begin.elapsed() > SCRIPTS {
            return;
        }
        if let Some(found) = program(job, identities, cluster) {
            tracked.track(job.id).program = Some(found);
        }
    }
}

/// The program of a job; none: its script cannot be read now.
fn program(
    job: &QueuedJob,
    identities: &mut Identities,
    cluster: &mut impl Cluster,
) -> Option<JobProgram> {
    // Interactive jobs have no script.
    let script = if job.is_batch { cluster.script(job.id).ok()? } else { String::new() };
    let work = work(&script);
    if !script.trim().is_empty() {
        return Some(JobProgram { identity: identities.of_script(job.user, &script), work });
    }
    let digest = digest_of_text(&format!("name {}", job.name));
    let key = ProgramKey { user: job.user, digest };
    let shown = |c: char| if c.is_control() { '?' } else { c };
    let identity = Identity { key, name: job.name.chars().map(shown).collect() };
    Some(JobProgram { identity, work })
}
