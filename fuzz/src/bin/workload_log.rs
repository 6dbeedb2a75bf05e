//! Workloads in the Standard Workload Format.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_jobs::swf::read;

fuzz_target!(|text: &str| {
    match read(text) {
        Ok(log) => {
            assert!(log.jobs.len() <= text.lines().count());
            for job in &log.jobs {
                assert!(job.run_s > 0.0 && job.run_s.is_finite() && job.submitted_s >= 0.0);
                assert!(job.processors > 0 && job.requested_s.is_none_or(|time| time > 0.0));
            }
        }
        Err(error) => assert!(!error.lines.is_empty() && error.to_string().len() < 2048),
    }
});
