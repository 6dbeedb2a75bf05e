//! What programs do to their caches, known beforehand, and the vectors that follow from it.
//!
//! # Approach
//! Settle et al. schedule on a real machine by vectors that a simulation of its caches made beforehand (section
//! 4.3.1). [`KnownActivity`] holds counts of each program, interval by interval. A bit of a vector is set where the
//! count per instruction is above the threshold: a multiple of the mean over all super-sets and programs, as neither
//! programs nor caches are used equally much.
//!
//! # Properties
//! - Behind its end a program begins anew (`a_program_that_runs_on_begins_anew`).
//! - Counts that do not fit together are refused (`counts_that_do_not_fit_together_are_refused`).

use std::collections::BTreeMap;

use super::Vector;

/// What a program does in an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityInterval {
    /// Its instructions.
    pub instructions: u64,
    /// Events by super-set: uses and misses of each cache, each a list of its own.
    pub counts: Vec<Vec<u32>>,
}

/// What programs do to the caches of one machine, by the program's name, interval by interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownActivity {
    programs: BTreeMap<String, Vec<ActivityInterval>>,
}

/// Counts that make no vectors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KnownActivityError {
    /// A program without instructions, or with more than can be counted.
    #[error("the activity of program '{0}' has no instructions, or more than can be counted")]
    Instructions(String),
    /// Not all intervals are of the same caches and super-sets.
    #[error("interval {interval} of program '{program}' is of other super-sets than the first one")]
    Differs {
        /// The program.
        program: String,
        /// The interval, from 0.
        interval: usize,
    },
}

impl KnownActivity {
    /// From the intervals of each program.
    ///
    /// # Errors
    /// When a program has no instructions, or intervals are not all of the same super-sets.
    pub fn new(
        programs: BTreeMap<String, Vec<ActivityInterval>>,
    ) -> Result<Self, KnownActivityError> {
        let shape =
            |interval: &ActivityInterval| interval.counts.iter().map(Vec::len).collect::<Vec<_>>();
        let first = programs.values().flatten().next().map(shape);
        for (program, intervals) in &programs {
            let add =
                |sum: u64, interval: &ActivityInterval| sum.checked_add(interval.instructions);
            if intervals.iter().try_fold(0, add).is_none_or(|sum| sum == 0) {
                return Err(KnownActivityError::Instructions(program.clone()));
            }
            let other = intervals.iter().position(|interval| Some(shape(interval)) != first);
            if let Some(interval) = other {
                return Err(KnownActivityError::Differs { program: program.clone(), interval });
            }
        }
        Ok(Self { programs })
    }

    /// The names of the programs.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.programs.keys().map(String::as_str)
    }

    /// The vectors of each program, of so many super-sets at most. A bit is set where the count per instruction is
    /// above so many times the mean.
    #[must_use]
    pub fn vectors(&self, super_sets: usize, times: f64) -> BTreeMap<String, Course> {
        let means = self.means();
        let vectors = |interval: &ActivityInterval| -> Vec<Vector> {
            let above = |(counts, mean): (&Vec<u32>, &f64)| {
                let groups = counts.len().min(super_sets.max(1));
                let each = counts.len().div_ceil(groups.max(1)).max(1);
                let grouped = counts.chunks(each);
                let sums = grouped.map(|group| group.iter().map(|n| u64::from(*n)).sum());
                let threshold =
                    times * mean * interval.instructions as f64 * each as f64 / counts.len() as f64;
                Vector::above(sums, threshold as u64)
            };
            interval.counts.iter().zip(&means).map(above).collect()
        };
        let course = |intervals: &Vec<ActivityInterval>| {
            let mut end = 0;
            let of = |interval: &ActivityInterval| {
                end += interval.instructions;
                (end, vectors(interval))
            };
            Course { intervals: intervals.iter().map(of).collect() }
        };
        self.programs.iter().map(|(name, intervals)| (name.clone(), course(intervals))).collect()
    }

    /// Events per instruction of all programs together, by vector.
    fn means(&self) -> Vec<f64> {
        let all = || self.programs.values().flatten();
        let instructions: f64 = all().map(|interval| interval.instructions as f64).sum();
        let vectors = all().next().map_or(0, |interval| interval.counts.len());
        let events = |vector: usize| -> f64 {
            let counts = all().filter_map(|interval| interval.counts.get(vector)).flatten();
            counts.map(|count| f64::from(*count)).sum()
        };
        (0..vectors).map(|vector| events(vector) / instructions.max(1.0)).collect()
    }
}

/// The vectors of a program, with the instructions after which each interval ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    intervals: Vec<(u64, Vec<Vector>)>,
}

impl Course {
    /// Its instructions.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.intervals.last().map_or(0, |(end, _)| *end)
    }

    /// Those of the interval in which the program is after so many instructions; behind its end it begins
    /// anew.
    #[must_use]
    pub fn at(&self, instructions: u64) -> Option<&[Vector]> {
        let (all, _) = self.intervals.last()?;
        let place = instructions.checked_rem(*all)?;
        let at = self.intervals.partition_point(|(end, _)| *end <= place);
        self.intervals.get(at).map(|(_, vectors)| vectors.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(instructions: u64, counts: &[&[u32]]) -> ActivityInterval {
        ActivityInterval { instructions, counts: counts.iter().map(|it| it.to_vec()).collect() }
    }

    fn known(programs: &[(&str, Vec<ActivityInterval>)]) -> Result<KnownActivity, String> {
        let programs = programs.iter().map(|(name, it)| ((*name).to_owned(), it.clone())).collect();
        KnownActivity::new(programs).map_err(|error| error.to_string())
    }

    fn active(course: &Course, place: u64) -> Vec<u32> {
        course.at(place).unwrap().iter().map(Vector::active).collect()
    }

    #[test]
    fn counts_per_instruction_above_the_mean_set_bits() {
        // The mean is 3 per super-set and 100 instructions.
        let a = vec![interval(100, &[&[8, 2, 2, 4]]), interval(10, &[&[0, 1, 0, 1]])];
        let known = known(&[("a", a), ("b", vec![interval(90, &[&[0, 0, 6, 0]])])]).unwrap();
        let courses = known.vectors(128, 1.0);
        assert_eq!(active(&courses["a"], 0), [2]);
        // A tenth of the instructions: a tenth of the threshold.
        assert_eq!(active(&courses["a"], 100), [2]);
        assert_eq!(active(&courses["b"], 0), [1]);
        // Twice the mean; two super-sets instead of four.
        assert_eq!(active(&known.vectors(128, 2.0)["a"], 0), [1]);
        assert_eq!(courses["a"].at(0).unwrap()[0].len(), 4);
        assert_eq!(known.vectors(2, 1.0)["a"].at(0).unwrap()[0].len(), 2);
        assert_eq!(active(&known.vectors(2, 1.0)["a"], 0), [1]);
    }

    #[test]
    fn a_program_that_runs_on_begins_anew() {
        let short = vec![interval(10, &[&[9, 0]]), interval(5, &[&[9, 9]])];
        let courses = known(&[("short", short)]).unwrap().vectors(32, 0.5);
        let bits = [0, 9, 10, 14, 15, 25, u64::MAX].map(|place| active(&courses["short"], place));
        assert_eq!(bits.concat(), [1, 1, 2, 2, 1, 2, 1]);
    }

    #[test]
    fn counts_that_do_not_fit_together_are_refused() {
        let none = known(&[("a", Vec::new())]).unwrap_err();
        assert!(none.contains("'a' has no instructions"), "{none}");
        let many = vec![interval(u64::MAX, &[&[1]]), interval(1, &[&[1]])];
        assert!(known(&[("a", many)]).unwrap_err().contains("more than can be counted"));
        let one = vec![interval(5, &[&[1, 2]])];
        let other = known(&[("a", one.clone()), ("b", vec![interval(5, &[&[1]])])]).unwrap_err();
        assert_eq!(other, "interval 0 of program 'b' is of other super-sets than the first one");
        let levels = known(&[("a", one), ("b", vec![interval(5, &[&[1, 2], &[1, 2]])])]);
        assert!(levels.unwrap_err().contains("other super-sets"));
        assert!(known(&[]).unwrap().vectors(32, 1.0).is_empty());
    }
}
