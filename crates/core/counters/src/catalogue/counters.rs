//! Do events fit the counters together?

use serde::Serialize;

/// The counters that can count an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Counters {
    /// Any of the PMU's programmable counters.
    Any,
    /// These of them only.
    Only(Vec<u32>),
    /// A counter that can do nothing else, so that it takes none of the
    /// programmable ones.
    Fixed(u32),
    /// No counter of the hardware at all: the kernel counts.
    Kernel,
}

/// Can all events be counted at the same time, each on a counter of its own?
///
/// A bipartite matching, by augmenting paths: groups hold a handful of events.
pub(super) fn fit(events: &[&Counters], programmable: &[u32]) -> bool {
    let mut fixed: Vec<u32> = Vec::new();
    for counters in events {
        if let Counters::Fixed(index) = counters {
            if fixed.contains(index) {
                return false;
            }
            fixed.push(*index);
        }
    }
    let wants: Vec<&[u32]> = events
        .iter()
        .filter_map(|counters| match counters {
            Counters::Any => Some(programmable),
            Counters::Only(list) => Some(list),
            Counters::Fixed(_) | Counters::Kernel => None,
        })
        .collect();
    let mut owner: Vec<(u32, usize)> = Vec::new();
    (0..wants.len()).all(|event| assign(event, &wants, &mut owner, &mut Vec::new()))
}

/// Can all events be counted while another process counts one all the time, as
/// the kernel's watchdog does? An event of the fixed counter that is taken
/// moves to a programmable one.
pub(super) fn fit_with(taken: &Counters, events: &[&Counters], programmable: &[u32]) -> bool {
    let mut left: Vec<&Counters> = events.to_vec();
    match taken {
        Counters::Fixed(_) => {
            for counters in left.iter_mut().filter(|counters| **counters == taken) {
                *counters = &Counters::Any;
            }
        }
        Counters::Any | Counters::Only(_) => left.push(taken),
        Counters::Kernel => {}
    }
    fit(&left, programmable)
}

/// Finds a counter for one event, moving others where that helps.
fn assign(
    event: usize,
    wants: &[&[u32]],
    owner: &mut Vec<(u32, usize)>,
    tried: &mut Vec<u32>,
) -> bool {
    for &counter in wants.get(event).copied().unwrap_or_default() {
        if tried.contains(&counter) {
            continue;
        }
        tried.push(counter);
        match owner.iter().position(|&(taken, _)| taken == counter) {
            None => {
                owner.push((counter, event));
                return true;
            }
            Some(place) => {
                let other = owner.get(place).map_or(event, |&(_, other)| other);
                if assign(other, wants, owner, tried) {
                    owner.retain(|&(taken, by)| (taken, by) != (counter, other));
                    owner.push((counter, event));
                    return true;
                }
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(list: &[u32]) -> Counters {
        Counters::Only(list.to_vec())
    }

    #[test]
    fn an_event_makes_room_for_one_that_is_choosier() {
        assert!(fit(&[&Counters::Any, &only(&[0])], &[0, 1]));
        assert!(fit(&[&only(&[0, 1]), &only(&[0, 2]), &only(&[0])], &[0, 1, 2]));
    }

    #[test]
    fn two_events_cannot_share_a_counter() {
        assert!(!fit(&[&only(&[1]), &only(&[1])], &[1, 2, 3]));
        assert!(!fit(&[&Counters::Any, &Counters::Any, &Counters::Any], &[0, 1]));
        assert!(!fit(&[&Counters::Fixed(1), &Counters::Fixed(1)], &[0, 1]));
    }

    #[test]
    fn fixed_counters_and_the_kernel_take_no_programmable_one() {
        let events = [&Counters::Fixed(0), &Counters::Fixed(1), &Counters::Any, &Counters::Kernel];
        assert!(fit(&events, &[0]));
    }

    #[test]
    fn an_event_that_is_always_counted_takes_a_counter() {
        let (any, cycles) = (Counters::Any, Counters::Fixed(1));
        assert!(fit_with(&any, &[&any], &[0, 1]) && !fit_with(&any, &[&any, &any], &[0, 1]));
        assert!(!fit_with(&only(&[0]), &[&only(&[0])], &[0, 1]));
        assert!(fit_with(&cycles, &[&cycles, &any], &[0, 1]), "cycles move");
        assert!(!fit_with(&cycles, &[&cycles, &any, &any], &[0, 1]));
        assert!(fit_with(&cycles, &[&Counters::Fixed(0), &any, &any], &[0, 1]));
    }
}
