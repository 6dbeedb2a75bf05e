//! What a thread was like beside others: its mean stack in company, over partners, with forgetting.
//!
//! Forms that predict from stacks in company ([`symbiont_model::Form::in_company`]) are trained on
//! the mean over partners, each of the same weight. A thread that stays beside one partner must not
//! come to be known by that one alone at once, and one that changes its phase must not be known by the
//! old one for long. So a mean is kept for each company that it was in, old quanta count half after
//! [`HALF_LIFE`], and the mean over companies counts each of the recent ones alike: fully while its
//! quanta still count as one or more, less and less after that. Whoever stays beside the same partner
//! for much longer is known by that one alone.
//!
//! What was measured without company counts only for who has no other stack.

use std::collections::BTreeMap;

use symbiont_machine::ThreadId;
use symbiont_model::Shares;
use symbiont_topology::CoreKind;

/// Quanta after which a quantum counts half: one second of quanta of 100 ms. Not fitted to anything:
/// long beside the quanta that a thread needs to meet some partners, short beside phases of seconds.
pub(super) const HALF_LIFE: f64 = 10.0;

/// Companies whose quanta count for less are forgotten.
const FORGOTTEN: f64 = 1.0 / 64.0;

/// Quanta in one company, old ones counting less.
#[derive(Debug, Clone, PartialEq)]
struct Met {
    weight: f64,
    sums: Vec<f64>,
    /// Weights of quanta whose speed tells what the others cost, and instructions per cycle in them.
    timed: f64,
    ipc: f64,
}

/// One thread's stacks, by those who shared its core.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Company {
    /// The sort of core that all of it was on.
    sort: CoreKind,
    met: BTreeMap<Vec<ThreadId>, Met>,
}

impl Company {
    /// A quantum in which it was measured passes; what was seen counts less, and that on another
    /// sort of core no longer.
    pub fn age(&mut self, sort: CoreKind) {
        if self.sort != sort {
            *self = Self { sort, ..Self::default() };
        }
        let left = 0.5_f64.powf(HALF_LIFE.recip());
        for met in self.met.values_mut() {
            met.weight *= left;
            met.timed *= left;
            met.ipc *= left;
            met.sums.iter_mut().for_each(|sum| *sum *= left);
        }
        self.met.retain(|_, met| met.weight > FORGOTTEN);
    }

    /// Adds the stack of a quantum beside others, in order, and its instructions per cycle where all
    /// of them ran at once.
    pub fn add(&mut self, others: Vec<ThreadId>, stack: &Shares, ipc: Option<f64>) {
        let sums = vec![0.0; stack.parts().len()];
        let none = Met { weight: 0.0, sums, timed: 0.0, ipc: 0.0 };
        let met = self.met.entry(others).or_insert(none);
        met.weight += 1.0;
        if let Some(ipc) = ipc {
            met.timed += 1.0;
            met.ipc += ipc;
        }
        met.sums.iter_mut().zip(stack.parts()).for_each(|(sum, part)| *sum += part);
    }

    /// In which company it ran at once for how many quanta, and its mean instructions per cycle there.
    pub fn met(&self) -> impl Iterator<Item = (&[ThreadId], f64, f64)> {
        let timed = self.met.iter().filter(|(_, met)| met.timed > 0.0);
        timed.map(|(others, met)| (others.as_slice(), met.timed, met.ipc / met.timed))
    }

    /// The mean stack; none of who was never measured, or is forgotten.
    pub fn mean(&self) -> Option<Shares> {
        let in_company = self.met.iter().filter(|(others, _)| !others.is_empty());
        let mut met: Vec<&Met> = in_company.map(|(_, met)| met).collect();
        if met.is_empty() {
            met.extend(self.met.values());
        }
        let mut sums = vec![0.0; met.first()?.sums.len()];
        for met in met {
            let counts = met.weight.min(1.0) / met.weight;
            sums.iter_mut().zip(&met.sums).for_each(|(sum, part)| *sum += counts * part);
        }
        Shares::new(sums).ok()
    }
}

#[cfg(test)]
mod tests {
    use symbiont_machine::test_support::thread;
    use symbiont_topology::CpuSet;

    use super::*;

    fn id(at: u32) -> ThreadId {
        thread(at, at, &CpuSet::default()).id
    }

    fn stack(part: f64) -> Shares {
        Shares::new(vec![part, 1.0 - part]).unwrap()
    }

    fn first(company: &Company) -> f64 {
        company.mean().unwrap().parts()[0]
    }

    fn quantum(company: &mut Company, partner: u32, part: f64) {
        company.age(CoreKind::default());
        company.add(vec![id(partner)], &stack(part), Some(2.0 * part));
    }

    #[test]
    fn recent_partners_count_alike_however_long_it_was_beside_each() {
        let mut company = Company::default();
        assert_eq!(company.mean(), None);
        (0..5).for_each(|_| quantum(&mut company, 1, 0.2));
        assert!((first(&company) - 0.2).abs() < 1e-12);
        quantum(&mut company, 2, 0.6);
        assert!((first(&company) - 0.4).abs() < 1e-12);
    }

    #[test]
    fn who_stays_beside_one_partner_is_known_by_that_one_in_the_end() {
        let mut company = Company::default();
        quantum(&mut company, 1, 0.2);
        quantum(&mut company, 2, 0.6);
        (0..HALF_LIFE as u32).for_each(|_| quantum(&mut company, 2, 0.6));
        // One partner counts a bit less than half by now, the other one fully.
        let left = 0.5_f64.powf(1.0 + HALF_LIFE.recip());
        assert!((first(&company) - (0.2 * left + 0.6) / (left + 1.0)).abs() < 1e-9);
        (0..100).for_each(|_| quantum(&mut company, 2, 0.6));
        assert!((first(&company) - 0.6).abs() < 1e-12);
    }

    #[test]
    fn each_company_is_told_with_its_quanta_and_speed() {
        let mut company = Company::default();
        quantum(&mut company, 1, 0.2);
        quantum(&mut company, 2, 0.6);
        quantum(&mut company, 2, 0.7);
        let left = 0.5_f64.powf(HALF_LIFE.recip());
        let met: Vec<(Vec<ThreadId>, f64, f64)> =
            company.met().map(|(others, quanta, ipc)| (others.to_vec(), quanta, ipc)).collect();
        let [(first, one, slow), (second, two, fast)] = &met[..] else { panic!("{met:?}") };
        assert_eq!((&first[..], &second[..]), (&[id(1)][..], &[id(2)][..]));
        assert!((one - left * left).abs() < 1e-12 && (two - 1.0 - left).abs() < 1e-12);
        assert!((slow - 0.4).abs() < 1e-12);
        assert!((fast - (1.4 + 1.2 * left) / (1.0 + left)).abs() < 1e-12);
    }

    #[test]
    fn a_new_phase_is_half_of_what_is_known_after_the_half_life() {
        let mut company = Company::default();
        (0..300).for_each(|_| quantum(&mut company, 1, 0.2));
        (0..HALF_LIFE as u32).for_each(|_| quantum(&mut company, 1, 0.6));
        assert!((first(&company) - 0.4).abs() < 1e-6);
    }

    #[test]
    fn stacks_without_company_count_only_where_there_are_no_others() {
        let mut company = Company::default();
        company.add(Vec::new(), &stack(0.9), None);
        assert!((first(&company) - 0.9).abs() < 1e-12);
        company.add(vec![id(1)], &stack(0.2), None);
        assert_eq!(company.met().count(), 0, "nobody was timed");
        assert!((first(&company) - 0.2).abs() < 1e-12);
    }
}
