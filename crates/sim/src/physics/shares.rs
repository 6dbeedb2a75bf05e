//! What is left of something shared: max-min fair shares.
//!
//! # Approach
//! Each user gets what it asks for, as far as that is no more than an equal
//! part of what is left; so one who asks little leaves the rest to the others. The share *offered*
//! to a user is what it would get if it asked for all: the level λ with
//! λ + Σ_{j≠i} min(demand_j, λ) = capacity. For two users that is
//! max(capacity/2, capacity − the other's demand).
//!
//! # Properties
//! - Offers are what they are defined as (`offers_are_what_they_are_defined_as`).
//! - What users take within their offers never exceeds the capacity
//!   (`takings_within_the_offers_fit_the_capacity`).
//! - Equal demands get equal offers (`equal_users_get_equal_offers`); for two
//!   users it is the formula above (`two_users_share_by_the_formula`).
//! - Nobody is offered less than an equal part (`nobody_is_offered_less_than_an_equal_part`).

/// The share of `capacity` that is offered to each user, given what all demand.
///
/// `demands` are not below zero; `offers` must be as long as they.
pub fn offers(capacity: f64, demands: &[f64], offers: &mut [f64]) {
    let (total, largest) = demands
        .iter()
        .fold((0.0, 0.0), |(sum, most): (f64, f64), &demand| (sum + demand, most.max(demand)));
    let rest = capacity - total;
    if rest >= largest {
        // Nobody is held back: the rest is offered to each on top of its own.
        offers.iter_mut().zip(demands).for_each(|(offer, demand)| *offer = rest + demand);
        return;
    }
    let mut sorted = [0.0; FEW];
    let mut many = Vec::new();
    let sorted = match sorted.get_mut(..demands.len()) {
        Some(few) => few,
        None => {
            many.resize(demands.len(), 0.0);
            &mut many[..]
        }
    };
    sorted.copy_from_slice(demands);
    sort(sorted);
    // Where all demands together, cut at a level, fill the capacity.
    let full = if rest < 0.0 { level(capacity, sorted, total, 0.0) } else { f64::INFINITY };
    for (offer, &demand) in offers.iter_mut().zip(demands) {
        *offer = if demand >= full { full } else { level(capacity + demand, sorted, total, 1.0) };
    }
}

/// Up to so many users need no allocation.
const FEW: usize = 48;

/// Sorts numbers; few by inserting one after the other.
fn sort(numbers: &mut [f64]) {
    if numbers.len() > FEW {
        numbers.sort_unstable_by(f64::total_cmp);
        return;
    }
    for end in 1..numbers.len() {
        let number = numbers[end];
        let mut at = end;
        while at > 0 && numbers[at - 1] > number {
            numbers[at] = numbers[at - 1];
            at -= 1;
        }
        numbers[at] = number;
    }
}

/// The level at which `sorted` demands (of that `total`), cut there, and `more` times the level
/// itself sum to `capacity`.
fn level(capacity: f64, sorted: &[f64], total: f64, more: f64) -> f64 {
    let mut below = total;
    let mut above = more;
    let mut level = f64::INFINITY;
    for &demand in sorted.iter().rev() {
        if above > 0.0 {
            level = (capacity - below) / above;
            if level >= demand {
                return level;
            }
        }
        below -= demand;
        above += 1.0;
    }
    if above > 0.0 { (capacity - below) / above } else { level }
}

#[cfg(test)]
mod tests {
    use super::offers;
    use proptest::prelude::*;

    fn of(capacity: f64, demands: &[f64]) -> Vec<f64> {
        let mut result = vec![0.0; demands.len()];
        offers(capacity, demands, &mut result);
        result
    }

    proptest! {
        #[test]
        fn takings_within_the_offers_fit_the_capacity(
            capacity in 0.1_f64..100.0,
            demands in prop::collection::vec(0.0_f64..50.0, 1..9),
        ) {
            // Whoever finds its demand above its offer takes the offer, until nobody does.
            let mut taken = demands.clone();
            for _ in 0..200 {
                let offers = of(capacity, &taken);
                for ((taken, offer), demand) in taken.iter_mut().zip(&offers).zip(&demands) {
                    *taken = 0.5 * *taken + 0.5 * demand.min(*offer);
                }
            }
            prop_assert!(taken.iter().sum::<f64>() <= capacity * 1.001);
        }

        #[test]
        fn nobody_is_offered_less_than_an_equal_part(
            capacity in 0.1_f64..100.0,
            demands in prop::collection::vec(0.0_f64..50.0, 1..9),
        ) {
            let part = capacity / demands.len() as f64;
            for offer in of(capacity, &demands) {
                prop_assert!(offer >= part * (1.0 - 1e-9) && offer <= capacity * (1.0 + 1e-9));
            }
        }

        #[test]
        fn two_users_share_by_the_formula(
            capacity in 0.1_f64..100.0, a in 0.0_f64..100.0, b in 0.0_f64..100.0,
        ) {
            let offers = of(capacity, &[a, b]);
            prop_assert!((offers[0] - (capacity / 2.0).max(capacity - b)).abs() < 1e-9);
            prop_assert!((offers[1] - (capacity / 2.0).max(capacity - a)).abs() < 1e-9);
        }
    }

    /// The definition, by bisection.
    fn plainly(capacity: f64, demands: &[f64], user: usize) -> f64 {
        let (mut low, mut high) = (0.0, capacity);
        for _ in 0..100 {
            let level = f64::midpoint(low, high);
            let others = demands.iter().enumerate().filter(|(index, _)| *index != user);
            let sum = level + others.map(|(_, demand)| demand.min(level)).sum::<f64>();
            if sum < capacity { low = level } else { high = level }
        }
        low
    }

    proptest! {
        #[test]
        fn offers_are_what_they_are_defined_as(
            capacity in 0.1_f64..100.0,
            demands in prop::collection::vec(0.0_f64..30.0, 1..30),
        ) {
            for (user, offer) in of(capacity, &demands).into_iter().enumerate() {
                let expected = plainly(capacity, &demands, user);
                prop_assert!((offer - expected).abs() < 1e-6, "{offer} instead of {expected}");
            }
        }
    }

    #[test]
    fn equal_users_get_equal_offers() {
        assert_eq!(of(8.0, &[1.0; 4]), [5.0; 4]);
        assert_eq!(of(8.0, &[3.0; 4]), [2.0; 4]);
        assert_eq!(of(8.0, &[0.5, 3.0, 9.0]), [8.0 / 3.0, 3.75, 4.5]);
        assert_eq!(of(8.0, &[7.0]), [8.0]);
    }
}
