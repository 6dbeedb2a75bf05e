//! Whether it matters which of four programs share a half of a core: ABCD against ACBD (Feliu et al., section 4.2),
//! on the simulated POWER8.

use super::POWER8;
use super::figures::figure;
use crate::figure::{Drawing, Figure, Point};
use crate::own::{CPU2006, ProgramUse};
use crate::{Context, Reproduction, Source};
use symbiont_campaign::{Error, Progress};
use symbiont_experiments_sim::code::described;
use symbiont_experiments_sim::multithreading::splits;
use symbiont_report::published::feliu::HALVES;
use symbiont_report::stats::mean_estimate;

/// Halves of cores, simulated.
#[derive(Debug)]
pub struct Halves;

const FIGURES: &[Figure] = &[Figure {
    quantity: "Difference in STP between two ways to split four programs among the halves of a core",
    neutral: None,
    drawn: Drawing::Table,
    deviations: &[
        "Other programs than the paper's SPEC CPU2006; random phases of them, as they would go on for ever, \
                   instead of whole programs.",
    ],
    ..figure("feliu-sec42", "section 4.2", "ABCD against ACBD in SMT4, simulated")
}];

impl Source for Halves {
    fn name(&self) -> &'static str {
        "halves of cores, simulated"
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
        _: &mut dyn Progress,
    ) -> Result<Reproduction, Error> {
        let programs = context.programs(CPU2006);
        let description = crate::described(POWER8)?;
        let differences = splits(&description, &context.profiles(&programs)?);
        let differences = differences.map_err(Error::evaluation)?;
        let percent: Vec<f64> = differences.iter().map(|part| 100.0 * part).collect();
        let mean = mean_estimate(&percent)?;
        let point = Point::new("ABCD against ACBD", "mean of 50", mean).published(Some(HALVES));
        let mut reproduced = Reproduction::default();
        reproduced.points.insert(FIGURES[0].id, vec![point]);
        reproduced.facts.push(described(&description));
        reproduced.facts.push(("Programs".to_owned(), programs.join(", ")));
        Ok(reproduced)
    }
}
