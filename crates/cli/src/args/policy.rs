//! Parameters of policies, as arguments.

use std::time::Duration;

use clap::Args;
use symbiont_policy::{Settings, Together, Variant};

use super::parse_duration;

/// Parameters of policies. Each is for the policies that its help names.
#[derive(Debug, Args)]
pub struct PolicyOptions {
    /// Seed of policies that draw at random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Ready threads above which a program counts as parallel, for `phases`
    /// [default: 2 where the programs may use more than two hardware threads, else 1.1]
    #[arg(long, value_name = "THREADS", allow_negative_numbers = true)]
    pub threshold: Option<f64>,
    /// Top-Down categories that `hysched` looks at: TopL, TopB2L, TopB2M3L or All3L
    /// [default: TopB2M3L]
    #[arg(long, value_name = "VARIANT")]
    pub variant: Option<Variant>,
    /// Share of the issue slots by which another category must exceed a thread's own before
    /// `hysched` changes it, e.g. 0.05
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = parse_share)]
    pub hysteresis: f64,
    /// Threads that count as active for `fpu`, those that ran most [default: those that ran at
    /// least a tenth as much as the first one]
    #[arg(long, value_name = "THREADS")]
    pub fpu_active: Option<usize>,
    /// Threads that `fpu` binds, those that use the FPUs most [default: those that use them at least
    /// half as much as the first one]
    #[arg(long, value_name = "THREADS")]
    pub fpu_top: Option<usize>,
    /// Programs that `static` keeps on a core, one group for each core, e.g. mcf+gcc,xz+povray
    #[arg(long, value_name = "GROUPS")]
    pub together: Option<Together>,
    /// How long one of several parallel programs stays boosted before the next
    /// one's turn comes, for `phases` [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub seniority: Option<Duration>,
}

impl PolicyOptions {
    /// The settings that they stand for.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        anyhow::ensure!(
            self.threshold.is_none_or(|t| t.is_finite() && t > 0.0),
            "--threshold must be a positive number of threads"
        );
        Ok(Settings {
            seed: self.seed,
            parallel_threshold: self.threshold,
            variant: self.variant,
            hysteresis: self.hysteresis,
            fpu_active: self.fpu_active,
            fpu_top: self.fpu_top,
            together: self.together.clone().unwrap_or_default(),
            seniority_timeout: self.seniority,
            ..Settings::default()
        })
    }
}

pub(super) fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1".to_owned())
}
