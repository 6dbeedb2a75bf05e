use std::collections::BTreeMap;

use proptest::prelude::*;
use symbiont_counters::Characterizations;
use symbiont_machine::test_support::thread;
use symbiont_machine::{Sample, ThreadId, ThreadSample};

use super::*;

fn place(
    machine: &Topology,
    threads: &[ThreadSample],
    groups: &[Vec<usize>],
    applied: &Placement,
) -> Placement {
    place_filling(Filling::Keep, machine, threads, groups, applied)
}

fn place_filling(
    filling: Filling,
    machine: &Topology,
    threads: &[ThreadSample],
    groups: &[Vec<usize>],
    applied: &Placement,
) -> Placement {
    let sample = Sample { threads: threads.to_vec(), ..Sample::default() };
    let known = Characterizations::new();
    let view = View::new(machine, &sample, &known, applied);
    let (pools, mut placement) = pools(&view, |_, _| None);
    let [pool] = &pools[..] else { panic!("{pools:?}") };
    let groups: Vec<Group> = groups
        .iter()
        .map(|members| Group { members: members.clone(), reason: "test".into() })
        .collect();
    CoreSlots::new(machine).filling(filling).assign(&view, pool, &groups, &mut placement);
    placement
}

fn seat_of(placement: &Placement, id: ThreadId) -> PuId {
    match &placement[&id].target {
        Target::Cpus(cpus) if cpus.len() == 1 => cpus.first().unwrap(),
        other => panic!("{other:?}"),
    }
}

fn threads_of(machine: &Topology, count: u32) -> Vec<ThreadSample> {
    (0..count).map(|number| thread(0, number, &machine.cpus())).collect()
}

proptest! {
    #[test]
    fn groups_are_spread_evenly(cores in 1usize..6, smt in 1usize..5, count in 1usize..20) {
        let machine = Topology::synthetic(&format!("core:{cores} smt:{smt}")).unwrap();
        let threads = threads_of(&machine, u32::try_from(count).unwrap());
        let groups: Vec<Vec<usize>> =
            (0..count).collect::<Vec<_>>().chunks(smt).map(<[_]>::to_vec).collect();
        let placement = place(&machine, &threads, &groups, &Placement::new());
        let mut loads: BTreeMap<u32, usize> = BTreeMap::new();
        for group in &groups {
            let core = |&n: &usize| machine.core_of(seat_of(&placement, threads[n].id)).unwrap().id;
            let first = core(&group[0]);
            prop_assert!(group.iter().all(|n| core(n) == first));
            *loads.entry(first.0).or_default() += 1;
        }
        let most = loads.values().max().copied().unwrap_or(0);
        prop_assert_eq!(most, groups.len().div_ceil(cores));
    }

    #[test]
    fn cores_are_filled_in_increasing_order(
        cores in 1usize..6, smt in 1usize..5, groups in 1usize..6, shift in 0usize..6,
    ) {
        let machine = Topology::synthetic(&format!("core:{cores} smt:{smt}")).unwrap();
        let count = groups.min(cores) * smt;
        let threads = threads_of(&machine, u32::try_from(count).unwrap());
        let mut groups: Vec<Vec<usize>> =
            (0..count).collect::<Vec<_>>().chunks(smt).map(<[_]>::to_vec).collect();
        let mut before = Placement::new();
        // Wherever threads were.
        for _ in 0..2 {
            before = place_filling(Filling::Increasing, &machine, &threads, &groups, &before);
            for (number, group) in groups.iter().enumerate() {
                let core = |n: &usize| {
                    machine.core_of(seat_of(&before, threads[*n].id)).map(|core| core.id.0 as usize)
                };
                prop_assert!(group.iter().all(|n| core(n) == Some(number)), "{before:?}");
            }
            let by = shift % groups.len();
            groups.rotate_left(by);
        }
    }

    #[test]
    fn what_need_not_move_stays(cores in 1usize..6, smt in 1usize..5, shift in 0usize..20) {
        let machine = Topology::synthetic(&format!("core:{cores} smt:{smt}")).unwrap();
        let count = cores * smt;
        let threads = threads_of(&machine, u32::try_from(count).unwrap());
        let mut groups: Vec<Vec<usize>> =
            (0..count).collect::<Vec<_>>().chunks(smt).map(<[_]>::to_vec).collect();
        let before = place(&machine, &threads, &groups, &Placement::new());
        groups.rotate_left(shift % cores);
        groups.iter_mut().for_each(|group| group.reverse());
        prop_assert_eq!(&before, &place(&machine, &threads, &groups, &before));
    }

    #[test]
    fn members_do_not_stack_up(cores in 1usize..5, smt in 1usize..5, seed in 0usize..100) {
        let machine = Topology::synthetic(&format!("core:{cores} smt:{smt}")).unwrap();
        let threads = threads_of(&machine, u32::try_from(cores * smt).unwrap());
        let mut order: Vec<usize> = (0..cores * smt).collect();
        let before = place(&machine, &threads, &[], &Placement::new());
        prop_assert!(before.is_empty());
        order.rotate_left(seed % (cores * smt));
        let groups: Vec<Vec<usize>> = order.chunks(smt).map(<[_]>::to_vec).collect();
        let placement = place(&machine, &threads, &groups, &Placement::new());
        let mut taken: Vec<PuId> =
            threads.iter().map(|thread| seat_of(&placement, thread.id)).collect();
        taken.sort_unstable();
        prop_assert_eq!(taken, machine.cpus().iter().collect::<Vec<_>>());
    }
}

#[test]
fn fast_cores_fill_first() {
    let machine = Topology::synthetic("core:2 capacity:512 | core:1").unwrap();
    let threads = threads_of(&machine, 1);
    let placement = place(&machine, &threads, &[vec![0]], &Placement::new());
    let core = machine.core_of(seat_of(&placement, threads[0].id)).unwrap();
    assert_eq!(core.capacity, 1024);
}

#[test]
fn a_pool_sees_what_a_narrower_one_took() {
    let machine = Topology::synthetic("core:2").unwrap();
    let (free, bound) = (thread(0, 0, &machine.cpus()), thread(0, 1, &"0".parse().unwrap()));
    let sample = Sample { threads: vec![free.clone(), bound.clone()], ..Sample::default() };
    let (known, applied) = (Characterizations::new(), Placement::new());
    let view = View::new(&machine, &sample, &known, &applied);
    let (pools, mut placement) = pools(&view, |_, _| None);
    assert_eq!(pools.iter().map(|pool| pool.allowed.len()).collect::<Vec<_>>(), [1, 2]);
    let mut slots = CoreSlots::new(&machine);
    for pool in &pools {
        let group = Group { members: pool.threads.clone(), reason: "test".into() };
        slots.assign(&view, pool, &[group], &mut placement);
    }
    assert_eq!(seat_of(&placement, bound.id), PuId(0));
    assert_eq!(seat_of(&placement, free.id), PuId(1));
}
