//! Fig. 5 and 6: how far the forward model and the inverse err, on programs that were left out.

use symbiont_model::{Form, Holdout, Inversion, Score, SmtMode};
use symbiont_training::{BIN, Errors, Predictor};

use super::Point;
use symbiont_experiments_sim::training::TrainingResult;
use symbiont_report::published::feliu::{Accuracy, FORWARD, INVERSE};
use symbiont_report::stats::Estimate;

/// The modes that values are published of, in the order of [`FORWARD`] and [`INVERSE`].
const MODES: [(SmtMode, &str); 2] = [(SmtMode::Smt2, "SMT2"), (SmtMode::Smt4, "SMT4")];

/// Fig. 5: mean absolute errors and shares within 5 %.
pub fn forward(trained: &TrainingResult) -> Vec<Point> {
    let mut points = Vec::new();
    for ((mode, at), Accuracy { mean_error, within, .. }) in MODES.into_iter().zip(FORWARD) {
        let scores = trained.model.modes.get(&mode).map(|trained| trained.scores.as_slice());
        let is_shown = |score: &&Score| {
            score.predicts == "slowdown"
                && score.holdout == Holdout::Programs
                && Form::ALL.iter().any(|form| form.name() == score.of)
        };
        for score in scores.unwrap_or_default().iter().filter(is_shown) {
            let of = |what: &str| format!("{what}, {}", score.of);
            let exact = |share: f64| Estimate::exact(100.0 * share);
            let error = Point::new(of("mean error"), at, exact(score.mean_absolute));
            points.push(error.published(Some(mean_error)));
            points.push(
                Point::new(of("within 5 %"), at, exact(score.within)).published(Some(within)),
            );
        }
    }
    points
}

/// Fig. 6: mean absolute errors of each component of the throttled stacks, and shares within 5 %. The
/// published ones are of the completion stalls, the largest component there; they stand next to our largest.
pub fn inverse(trained: &TrainingResult) -> Vec<Point> {
    let mut points = Vec::new();
    for ((mode, at), Accuracy { mean_error, within, .. }) in MODES.into_iter().zip(INVERSE) {
        let Some(evaluation) = trained.modes.get(&mode) else { continue };
        let largest = evaluation.programs.largest_component();
        for (component, name) in trained.model.components.names().enumerate() {
            let errors = evaluation.programs.component(Inversion::Published, component);
            let printed = |value: f64| (component == largest).then_some(value);
            let of = |what: &str, share: Option<f64>, published: f64| {
                let point = Point::new(format!("{what}, {name}"), at, percent(share?));
                Some(point.published(printed(published)))
            };
            points.extend(of("mean error", errors.mean_absolute(), mean_error));
            points.extend(of("within 5 %", errors.share_within(), within));
        }
    }
    points
}

fn percent(share: f64) -> Estimate {
    Estimate::exact(100.0 * share)
}

/// The histograms of Fig. 5 (the slowdown) and Fig. 6 (the largest component), without their open ends.
pub fn histograms(trained: &TrainingResult) -> [Vec<Point>; 2] {
    let mut histograms = [Vec::new(), Vec::new()];
    for (mode, evaluation) in &trained.modes {
        let validation = &evaluation.programs;
        let largest = validation.largest_component();
        let name = trained.model.components.names().nth(largest).unwrap_or("?");
        let forward = validation.slowdown(Predictor::Model(Form::Delta));
        let inverse = validation.component(Inversion::Published, largest);
        histograms[0].extend(histogram(&format!("{mode}, slowdown"), &forward));
        histograms[1].extend(histogram(&format!("{mode}, {name}"), &inverse));
    }
    histograms
}

fn histogram(series: &str, errors: &Errors) -> Vec<Point> {
    let all = errors.count().max(1) as f64;
    let closed = errors.histogram().filter(|(edge, _)| edge.is_finite());
    let point = |(edge, count): (f64, u64)| {
        let middle = 100.0 * (edge + BIN / 2.0);
        Point::new(series, format!("{middle:+.1}"), percent(count as f64 / all)).x(middle)
    };
    closed.map(point).collect()
}
