//! All pairs of programs on the two hardware threads: conflicts, and whether overlap predicts speed.

use super::play::{Sampled, Schedule, ScheduleRun, Turn};
use super::scoring::{Scoring, VECTORS, vectors};
use super::{COUNTERPARTS, Players, Size};
use crate::figure::Point;
use symbiont_campaign::{Error, FinishedRunOf};
use symbiont_report::published::settle::{CONFLICTS, CORRELATIONS, SLOPES, VECTORS as NAMES};
use symbiont_report::stats::{Estimate, mean_estimate};

/// Above this r² a correlation is strong (section 2.3).
const STRONG: f64 = 0.5;

/// A run of each of the 45 pairs.
pub fn runs(size: &Size) -> Vec<ScheduleRun> {
    let ours = || COUNTERPARTS.iter().map(|(_, ours)| *ours).enumerate();
    let run = |one: &str, other: &str| ScheduleRun {
        jobs: vec![one.to_owned(), other.to_owned()],
        schedule: Schedule::Together,
        called: "together".to_owned(),
        samples: (size.pairs.0, size.sample),
        targets: Vec::new(),
        private: false,
    };
    let with = |(at, one)| ours().skip(at).map(move |(_, other)| run(one, other));
    ours().flat_map(with).collect()
}

/// A line through points by least squares: its slope, and r². None where all lie above each other; r² is 0 where
/// none differs in height.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for point in points {
        let (dx, dy) = (point.0 - x, point.1 - y);
        (xx, xy, yy) = (xx + dx * dx, xy + dx * dy, yy + dy * dy);
    }
    let r2 = if yy > 0.0 { xy * xy / (xx * yy) } else { 0.0 };
    (xx > 0.0).then_some((xy / xx, r2))
}

/// Overlap and IPC of both, sample by sample.
fn samples(record: &[Sampled], scoring: &Scoring, vector: usize) -> Vec<(f64, f64)> {
    let point = |sample: &Sampled| {
        let [one, other] = sample.turns.as_slice() else { return None };
        let of = |turn: &Turn| vectors(&turn.caches, scoring.super_sets, &scoring.thresholds);
        let (one, other) = (of(one), of(other));
        Some((f64::from(one.get(vector)?.overlap(other.get(vector)?)), sample.ipc()))
    };
    record.iter().filter_map(point).collect()
}

/// Fig. 1, Fig. 3 and Table 1.
pub fn points(
    done: &[FinishedRunOf<Players<'_>>],
    size: &Size,
    scoring: &Scoring,
) -> Result<Vec<(&'static str, Vec<Point>)>, Error> {
    let counted = |done: &FinishedRunOf<Players<'_>>| {
        done.record.samples.iter().skip(size.pairs.1 as usize).cloned().collect::<Vec<_>>()
    };
    let all: Vec<(&ScheduleRun, Vec<Sampled>)> =
        done.iter().map(|it| (&it.run, counted(it))).collect();
    let mut table = Vec::new();
    for (vector, name) in NAMES.iter().enumerate().take(VECTORS) {
        let lines: Vec<(f64, f64)> =
            all.iter().filter_map(|(_, it)| line(&samples(it, scoring, vector))).collect();
        let (slope, r2) = SLOPES[vector];
        let (slopes, fits): (Vec<f64>, Vec<f64>) = lines.into_iter().unzip();
        for (what, values, published) in [("slope", slopes, slope), ("r²", fits, r2)] {
            if let Ok(ours) = mean_estimate(&values) {
                table.push(Point::new(*name, what, ours).published(Some(published)));
            }
        }
    }
    // "Positive" is the paper's word for higher IPC with fewer intersections: a negative slope.
    let l2: Vec<(f64, f64)> =
        (all.iter()).filter_map(|(_, it)| line(&samples(it, scoring, VECTORS - 1))).collect();
    let classes = [
        l2.iter().filter(|line| line.0 < 0.0 && line.1 > STRONG).count(),
        l2.iter().filter(|line| line.0 < 0.0 && line.1 <= STRONG).count(),
        all.len() - l2.iter().filter(|line| line.0 < 0.0).count(),
    ];
    let class = |((name, published), ours): (&(&str, f64), usize)| {
        Point::new(*name, "of 45 pairs", Estimate::exact(ours as f64)).published(Some(*published))
    };
    let classes = CORRELATIONS.iter().zip(classes).map(class).collect();
    Ok(vec![("settle-fig1", conflicts(&all)?), ("settle-fig3", classes), ("settle-tab1", table)])
}

/// Uses, misses, and misses due to the other, of the L2.
fn of_l2(samples: &[Sampled]) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for cache in samples.iter().flat_map(|it| &it.turns).filter_map(|turn| turn.caches.last()) {
        let sum = |counts: &[u32]| counts.iter().map(|count| f64::from(*count)).sum::<f64>();
        let own = [sum(&cache.uses), sum(&cache.misses), f64::from(cache.kicked_out)];
        sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
    }
    sums
}

fn conflicts(
    all: &[(&ScheduleRun, Vec<Sampled>)],
) -> Result<Vec<Point>, symbiont_report::stats::StatsError> {
    let (average, rate, share) = CONFLICTS;
    let shares = |(_, samples): &(&ScheduleRun, Vec<Sampled>)| {
        let [_, misses, conflicts] = of_l2(samples);
        (misses > 0.0).then(|| 100.0 * conflicts / misses)
    };
    let shares: Vec<f64> = all.iter().filter_map(shares).collect();
    let mut points = vec![
        Point::new("all pairs", "conflicts of misses", mean_estimate(&shares)?)
            .published(Some(average)),
    ];
    for (run, samples) in all {
        let [uses, misses, conflicts] = of_l2(samples);
        let both = run.jobs.iter().all(|job| job == "gzip");
        let printed = |value: f64| both.then_some(value);
        let name = run.jobs.join(" + ");
        let percent = |part: f64, of: f64| Estimate::exact(100.0 * part / of.max(1.0));
        points.push(
            Point::new(name.as_str(), "miss rate", percent(misses, uses)).published(printed(rate)),
        );
        points.push(
            Point::new(name.as_str(), "conflicts of misses", percent(conflicts, misses))
                .published(printed(share)),
        );
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_slope_and_fit() {
        let (slope, r2) = line(&[(0.0, 5.0), (1.0, 3.0), (2.0, 1.0)]).unwrap();
        assert!((slope + 2.0).abs() < 1e-12 && (r2 - 1.0).abs() < 1e-12);
        let (slope, r2) = line(&[(0.0, 1.0), (0.0, 3.0), (2.0, 1.0), (2.0, 3.0)]).unwrap();
        assert!(slope.abs() < 1e-12 && r2.abs() < 1e-12);
        assert_eq!(line(&[(1.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(line(&[(1.0, 1.0), (2.0, 1.0)]), Some((0.0, 0.0)));
        assert_eq!(line(&[]), None);
    }

    #[test]
    fn all_pairs_run_once() {
        let runs = runs(&super::super::QUICK);
        assert_eq!(runs.len(), 45);
        assert_eq!(runs.iter().filter(|run| run.jobs[0] == run.jobs[1]).count(), 9);
    }
}
