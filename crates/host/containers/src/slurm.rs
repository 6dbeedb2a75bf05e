//! Steps of Slurm jobs, as slurmd's cgroups name them.
//!
//! Under cgroup v1 `/slurm/uid_U/job_J/step_S/task_T`, where `slurm` may carry the node's name; under v2
//! `…/slurmstepd.scope/job_J/step_S/user/task_T`. A step is a number or `batch`, `extern`, `interactive`.

use crate::path::is_id;

/// A step of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlurmStep {
    /// Number of the job.
    pub job: u64,
    /// The step.
    pub step: String,
    /// The task within it, where the path names one.
    pub task: Option<u64>,
    /// The user, where the path names one.
    pub uid: Option<u32>,
}

impl SlurmStep {
    /// As Slurm writes it: `JOB.STEP`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}.{}", self.job, self.step)
    }

    /// The step whose own part of the path is this one.
    pub(crate) fn at(parts: &[&str], at: usize) -> Option<Self> {
        let part = |at: Option<usize>| at.and_then(|at| parts.get(at)).copied();
        let step = part(Some(at))?.strip_prefix("step_").filter(|step| is_id(step))?;
        let job = part(at.checked_sub(1))?.strip_prefix("job_")?.parse().ok()?;
        let above = part(at.checked_sub(2))?;
        let uid = above.strip_prefix("uid_").and_then(|uid| uid.parse().ok());
        let is_slurm = match uid {
            Some(_) => part(at.checked_sub(3))?.starts_with("slurm"),
            None => above.ends_with("slurmstepd.scope"),
        };
        let task = [at + 1, at + 2]
            .into_iter()
            .find_map(|at| part(Some(at))?.strip_prefix("task_")?.parse().ok());
        is_slurm.then(|| Self { job, step: step.to_owned(), task, uid })
    }
}
