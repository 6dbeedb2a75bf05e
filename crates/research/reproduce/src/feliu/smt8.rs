//! Why Feliu et al. leave SMT8 out: the OS in SMT8 over the OS in SMT4, on the simulated POWER8.

use std::time::Duration;

use super::figures::figure;
use super::{POWER8, mixes, of_cores};
use crate::compared::{Comparison, PreparedMachine};
use crate::figure::{Drawing, Figure, Point};
use crate::own::{CPU2006, ProgramUse};
use crate::{Context, Effort, Reproduction, Source};
use symbiont_campaign::{Error, Metric, Progress, Repeats};
use symbiont_experiments_sim::code::described;
use symbiont_experiments_sim::mixes::Contender;
use symbiont_report::published::feliu::SMT8_OVER_SMT4;

/// SMT8, simulated.
#[derive(Debug)]
pub struct Smt8;

const SMT8: &str = "OS in SMT8";
const SMT4: &str = "OS in SMT4";
/// Programs for each core.
const WIDTH: usize = 8;

const OTHER_PROGRAMS: &str = "Other programs than the paper's SPEC CPU2006, with shorter targets.";
const TURNS: &str = "Eight programs for each core, which take turns on four of its hardware threads in SMT4. Quick \
                     experiments run four cores. The text calls 0.9 % no benefit, so sides of zero are not compared.";

const FIGURES: &[Figure] = &[Figure {
    quantity: "STP over SMT4",
    neutral: None,
    drawn: Drawing::Dots,
    deviations: &[OTHER_PROGRAMS, TURNS],
    ..figure("feliu-sec5", "section 5", "STP of the OS in SMT8 over SMT4, simulated")
}];

impl Source for Smt8 {
    fn name(&self) -> &'static str {
        "SMT8, simulated"
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }

    fn uses(&self, context: &Context<'_>) -> Vec<ProgramUse> {
        ProgramUse::of_pool(&context.programs(CPU2006), CPU2006, FIGURES)
    }

    fn reproduce(
        &self,
        context: &Context<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reproduction, Error> {
        let (cores, workloads, alone): (&[usize], _, _) = match context.effort {
            Effort::Quick => (&[4], 3, 1),
            Effort::Full => (&[4, 10], 3, 1),
        };
        let programs = context.programs(CPU2006);
        let profiles = context.profiles(&programs)?;
        let ready =
            PreparedMachine::new(crate::described(POWER8)?, &profiles, &[1, 2, 4, 8], context)?;
        let counts = (cores, workloads);
        let narrow = Contender { width: Some(WIDTH / 2), ..Contender::new(SMT4, "stay") };
        let comparison = Comparison {
            name: "feliu-smt8".to_owned(),
            mixes: mixes(counts, WIDTH, &programs, &ready.builder, context.seed),
            contenders: vec![narrow, Contender::new(SMT8, "stay")],
            repeats: Repeats::exactly(1),
            alone: Duration::from_secs(alone),
            models: &[],
        };
        let rows = ready.carry_out(comparison, context, progress)?.rows;
        let point = |(cores, stated): (usize, f64)| {
            let rows = of_cores(&rows, WIDTH, &[cores]);
            let gain = rows.gain(SMT8, SMT4, Metric::Stp, context.seed).ok()?;
            let point = Point::new(SMT8, format!("{cores} cores"), gain.percent());
            Some(point.published(Some(stated)))
        };
        let mut reproduced = Reproduction::default();
        reproduced
            .points
            .insert("feliu-sec5", SMT8_OVER_SMT4.into_iter().filter_map(point).collect());
        reproduced.facts.push(described(ready.builder.description()));
        reproduced.facts.push(("Programs".to_owned(), programs.join(", ")));
        Ok(reproduced)
    }
}
