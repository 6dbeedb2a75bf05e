//! Max-min fairness: what a shared resource offers to each of its users.
//!
//! # Approach
//! Max-min fair allocation (Bertsekas and Gallager, Data Networks, section 6.5): a user gets what it
//! demands as long as that is no more than an equal part of what is left, so one that demands little
//! leaves the rest to the others. The *offer* to user i is what it would get if it demanded everything:
//! the level λᵢ with
//!
//! ```text
//! λᵢ + Σ_{j≠i} min(demand_j, λᵢ) = capacity
//! sort the demands; a user that demands more has a higher level,
//! so one pass from the largest demand down finds all levels
//! ```
//!
//! For two users that is max(capacity/2, capacity − the other's demand).
//!
//! # Properties
//! - Offers are what they are defined as (`offers_are_what_they_are_defined_as`).
//! - What users take within their offers never exceeds the capacity
//!   (`takings_within_the_offers_fit_the_capacity`).
//! - Equal demands get equal offers (`equal_users_get_equal_offers`); for two users they follow the
//!   formula above (`two_users_share_by_the_formula`).
//! - No thread is offered less than an equal part (`no_thread_is_offered_less_than_an_equal_part`).

/// The max-min fair offer to each user of `capacity`, given all demands.
///
/// `demands` are not below zero; `offers` must be as long as they.
pub fn offers(capacity: f64, demands: &[f64], offers: &mut [f64]) {
    let (mut total, mut least, mut most) = (0.0, f64::INFINITY, 0.0_f64);
    for &demand in demands {
        total += demand;
        least = if demand < least { demand } else { least };
        most = if demand > most { demand } else { most };
    }
    let rest = capacity - total;
    if rest + least >= most {
        // No thread is held back: the rest is offered to each on top of its own.
        offers.iter_mut().zip(demands).for_each(|(offer, demand)| *offer = rest + demand);
        return;
    }
    let scarce = Scarce { capacity, total };
    match demands.len() {
        count @ ..=FEW => scarce.share(demands, &mut [(0.0, 0); FEW][..count], offers),
        count @ ..=MANY => scarce.share(demands, &mut [(0.0, 0); MANY][..count], offers),
        count => scarce.share(demands, &mut vec![(0.0, 0); count], offers),
    }
}

/// Up to so many users are sorted by inserting one after the other.
const FEW: usize = 8;
/// Up to so many users need no allocation.
const MANY: usize = 48;

/// A resource that is demanded beyond its capacity.
struct Scarce {
    capacity: f64,
    /// Of all demands.
    total: f64,
}

impl Scarce {
    /// Shares it out; `order` is room for each demand with its user.
    fn share(&self, demands: &[f64], order: &mut [(f64, usize)], offers: &mut [f64]) {
        let Self { capacity, total } = *self;
        for (user, (slot, &demand)) in order.iter_mut().zip(demands).enumerate() {
            *slot = (demand, user);
        }
        sort_by_demand(order);
        // Where all demands together, cut at a level, fill the capacity.
        let full = if capacity < total {
            Cut { below: total, above: 0.0, left: order.len() }.level(capacity, order)
        } else {
            f64::INFINITY
        };
        // A thread that demands less has a lower level: each search goes on where the last one ended.
        let mut cut = Cut { below: total, above: 1.0, left: order.len() };
        for &(demand, user) in order.iter().rev() {
            offers[user] = if demand >= full { full } else { cut.level(capacity + demand, order) };
        }
    }
}

/// Sorts demands.
fn sort_by_demand(order: &mut [(f64, usize)]) {
    if order.len() > FEW {
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        return;
    }
    for end in 1..order.len() {
        let next = order[end];
        let mut at = end;
        while at > 0 && order[at - 1].0 > next.0 {
            order[at] = order[at - 1];
            at -= 1;
        }
        order[at] = next;
    }
}

/// A level at which demands are cut, sought from above.
struct Cut {
    /// The sum of those demands that are not cut.
    below: f64,
    /// How often the level counts: once for each demand that is cut.
    above: f64,
    /// How many demands are not cut.
    left: usize,
}

impl Cut {
    /// The level at which all sums to `capacity`, which is no more than at the last call.
    fn level(&mut self, capacity: f64, sorted: &[(f64, usize)]) -> f64 {
        for &(demand, _) in sorted[..self.left].iter().rev() {
            if self.above > 0.0 {
                let level = (capacity - self.below) / self.above;
                if level >= demand {
                    return level;
                }
            }
            self.below -= demand;
            self.above += 1.0;
            self.left -= 1;
        }
        if self.above > 0.0 { (capacity - self.below) / self.above } else { f64::INFINITY }
    }
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
            // A thread whose demand is above its offer takes the offer, until none is.
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
        fn no_thread_is_offered_less_than_an_equal_part(
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
            demands in prop::collection::vec(0.0_f64..30.0, 1..70),
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
