//! Run queues as in Linux 2.6.0, and the choice among a queue's jobs (Settle et al., section 4.3.1).
//!
//! # Approach
//! Each CPU has a queue of two arrays. A job that has used its time slice goes from the active array to the
//! expired one; when the active one is empty, both change places. So every job of a queue runs once before
//! any runs again, whatever is chosen. A CPU whose queue is empty pulls half of the longest other queue.
//!
//! The default job is the first of the active array. Algorithm 3 compares all jobs of that array with the job on the
//! other CPU: the one with the lowest cost runs if that is lower than the default's.
//!
//! # Properties
//! `every_job_runs_once_per_round`, `a_cpu_without_jobs_pulls_some`,
//! `the_default_runs_unless_another_is_better`.

/// The queues of some CPUs.
#[derive(Debug, Clone)]
pub struct Queues {
    cpus: Vec<Queue>,
}

#[derive(Debug, Clone, Default)]
struct Queue {
    active: Vec<usize>,
    expired: Vec<usize>,
}

impl Queue {
    fn len(&self) -> usize {
        self.active.len() + self.expired.len()
    }
}

impl Queues {
    /// This many jobs, dealt to the CPUs in turn.
    pub fn new(jobs: usize, cpus: usize) -> Self {
        let mut queues = Self { cpus: vec![Queue::default(); cpus.max(1)] };
        for job in 0..jobs {
            queues.cpus[job % cpus.max(1)].active.push(job);
        }
        queues
    }

    /// The jobs that may run next on a CPU, the default first; none if no CPU has any.
    pub fn pool(&mut self, cpu: usize) -> Vec<usize> {
        if self.cpus[cpu].len() == 0 {
            self.pull(cpu);
        }
        let queue = &mut self.cpus[cpu];
        if queue.active.is_empty() {
            std::mem::swap(&mut queue.active, &mut queue.expired);
        }
        queue.active.clone()
    }

    fn pull(&mut self, cpu: usize) {
        let longest = (0..self.cpus.len()).max_by_key(|other| self.cpus[*other].len());
        let Some(from) = longest.filter(|other| *other != cpu) else { return };
        for _ in 0..self.cpus[from].len().div_ceil(2) {
            let queue = &mut self.cpus[from];
            // Those that run last anyway.
            let job = queue.expired.pop().or_else(|| queue.active.pop());
            self.cpus[cpu].active.extend(job);
        }
    }

    /// A job begins to run.
    pub fn take(&mut self, cpu: usize, job: usize) {
        self.cpus[cpu].active.retain(|other| *other != job);
    }

    /// A job has used its time slice.
    pub fn expire(&mut self, cpu: usize, job: usize) {
        self.cpus[cpu].expired.push(job);
    }
}

/// The place in a pool of the job to run, given the cost of each with the job on the other CPU, the default's first.
pub fn pick(costs: &[f64]) -> usize {
    let best = costs.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1).then(a.0.cmp(&b.0)));
    best.map_or(0, |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_runs_once_per_round() {
        let mut queues = Queues::new(7, 2);
        let mut ran = Vec::new();
        for round in 0..3 {
            for slice in 0..4 {
                let pool = queues.pool(0);
                assert_eq!(pool.len(), 4 - slice, "{round}");
                // Whichever is chosen.
                let job = pool[(round * 5 + slice * 3) % pool.len()];
                queues.take(0, job);
                queues.expire(0, job);
                ran.push(job);
            }
            let mut last = ran[ran.len() - 4..].to_vec();
            last.sort_unstable();
            assert_eq!(last, [0, 2, 4, 6]);
        }
    }

    #[test]
    fn a_cpu_without_jobs_pulls_some() {
        let mut queues = Queues::new(4, 2);
        for job in [0, 2] {
            queues.take(0, job);
        }
        assert_eq!(queues.pool(0), [3]);
        assert_eq!(queues.pool(1), [1]);
        queues.take(0, 3);
        queues.take(1, 1);
        assert!(queues.pool(0).is_empty() && queues.pool(1).is_empty());
    }

    #[test]
    fn the_default_runs_unless_another_is_better() {
        assert_eq!(pick(&[3.0, 3.0, 4.0]), 0);
        assert_eq!(pick(&[3.0, 2.0, 1.0, 1.0]), 2);
        assert_eq!(pick(&[]), 0);
    }
}
