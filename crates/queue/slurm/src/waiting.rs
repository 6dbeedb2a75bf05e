//! Why a job that was never released does not run.

use symbiont_jobs::slurm::QueuedJob;

/// A job on which there is nothing to say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("job {0} is not in the queue, and no decision on it is noted")]
pub struct NoSuchJob(u64);

/// Explains why a job of the queue waits.
///
/// # Errors
/// [`NoSuchJob`] when it is not in the queue.
pub fn explain_wait(id: u64, queue: &[QueuedJob], now_s: f64) -> Result<String, NoSuchJob> {
    let job = queue.iter().find(|job| job.id == id).ok_or(NoSuchJob(id))?;
    if !job.waits_for_us() {
        return Ok(format!(
            "job {id} does not wait for Symbiont; Slurm's reason is {}",
            job.reason
        ));
    }
    let before = |other: &&QueuedJob| {
        other.waits_for_us() && other.partition == job.partition && other.priority > job.priority
    };
    let ahead = queue.iter().filter(before).count();
    let latest = job.start_s.map_or_else(String::new, |start| {
        format!("; Slurm starts it by itself {:.0} s from now", (start - now_s).max(0.0))
    });
    Ok(format!(
        "job {id} waits for a node with room where it suits, for {:.0} s so far; jobs of its partition \
         with a higher priority: {ahead}{latest}",
        now_s - job.submitted_s
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::waits;

    #[test]
    fn a_job_that_waits_is_explained() {
        let jobs = [waits(1, 0.0), waits(2, 10.0)];
        let text = explain_wait(2, &jobs, 110.0).unwrap();
        assert_eq!(
            text,
            "job 2 waits for a node with room where it suits, for 100 s so far; jobs of its partition \
             with a higher priority: 1; Slurm starts it by itself 3500 s from now"
        );
        let why = explain_wait(9, &jobs, 0.0).unwrap_err().to_string();
        assert!(why.contains("not in the queue"), "{why}");
    }
}
