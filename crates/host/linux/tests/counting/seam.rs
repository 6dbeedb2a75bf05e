//! What a sample says of counted threads.

use std::time::Duration;

use symbiont_counters::History;
use symbiont_linux::perf::Sharing;
use symbiont_machine::{Ability, Machine, Sample, Signal, Signals};

use crate::bench::{CountingBench, can_count, count, reading, skip, stand_in};

/// Faults that the worker has in addition to the requested ones.
const OTHER_FAULTS: u64 = 32;

pub fn touched_pages() {
    if !can_count() {
        return;
    }
    if rustix::thread::disable_transparent_huge_pages(true).is_err() {
        return skip("huge pages cannot be switched off");
    }
    let mut bench =
        CountingBench::new(&[Signal::L1dBandwidth, Signal::MemoryRequests], Sharing::Kernel);
    let mut before = bench.until_counted();
    for pages in [100, 1000, 5000] {
        bench.worker.order(&format!("touch {pages}"));
        let after = bench.next();
        let (old, new) = (&bench.main_thread(&before).counts, &bench.main_thread(&after).counts);
        for event in ["page_faults", "minor_faults"] {
            let faults = count(&after, new, event) - count(&before, old, event);
            let most = pages + OTHER_FAULTS;
            assert!((pages..=most).contains(&faults), "{event}: {faults} for {pages} pages");
        }
        assert_eq!(reading(&old[0]).opened, reading(&new[0]).opened);
        before = after;
    }
}

pub fn only_what_is_needed() {
    if !can_count() {
        return;
    }
    let mut bench = CountingBench::set(stand_in());
    bench.machine.measure(&Signals::from([Signal::RunStates]));
    let sample = bench.next();
    assert_eq!((sample.counting, &*sample.threads[0].counts), (None, &[][..]));
    assert!(!bench.machine.support().signals.contains_key(&Signal::Ipc), "nothing was requested");

    bench.machine.measure(&Signals::from([Signal::Ipc]));
    let sample = bench.until_counted();
    let counting = sample.counting.clone().unwrap();
    let names: Vec<_> = counting.groups.iter().map(|group| &*group.name).collect();
    assert_eq!(names, ["faults"]);
    assert_eq!(bench.machine.support().signals[&Signal::Ipc], Ability::Full);
    assert_eq!(sample.threads[0].counts.len(), 1);

    bench.machine.measure(&Signals::new());
    assert_eq!(bench.next().counting, None);
}

pub fn lacking_signals() {
    // By the stand-in: it has no formula for some, and the kernel may refuse
    // what happens in the kernel.
    let mut bench = CountingBench::new(&Signal::ALL, Sharing::Kernel);
    let signals = bench.machine.support().signals.clone();
    assert_eq!(signals.len(), Signal::ALL.len());
    let Ability::Absent(why) = &signals[&Signal::CpiStack] else { panic!("{signals:?}") };
    assert!(why.contains("cpi_stack"), "{why}");
    let support = symbiont_linux::perf::support();
    match (&support.software, &support.kernel_side) {
        (Ok(()), Ok(())) => assert_eq!(signals[&Signal::FpuUsage], Ability::Full),
        (Ok(()), Err(_)) => {
            let Ability::Absent(why) = &signals[&Signal::FpuUsage] else { panic!("{signals:?}") };
            assert!(why.starts_with("context_switches: "), "{why}");
            let refused = bench.next().counting.unwrap().refused.clone();
            assert!(refused.contains_key("context_switches"), "{refused:?}");
        }
        (Err(_), _) => assert!(signals[&Signal::Ipc].why().is_some()),
    }
    // By this host's own catalogue, whichever that is.
    let mut bench = CountingBench::set(symbiont_linux::machine::CountOptions::default());
    bench.machine.measure(&Signal::ALL.into());
    for (signal, ability) in &bench.machine.support().signals {
        assert!(ability.why().is_none_or(|why| why.len() > 10), "{signal}: {ability:?}");
    }
    let _ = bench.next();
}

pub fn new_threads() {
    if !can_count() {
        return;
    }
    let mut bench = CountingBench::new(&[Signal::Ipc], Sharing::Kernel);
    let why = |bench: &mut CountingBench| {
        let sample = bench.next();
        bench.main_thread(&sample).counts[0].clone().unwrap_err()
    };
    assert!(why(&mut bench).contains("outlived a quantum"));
    assert!(why(&mut bench).contains("begins with this quantum"));
    bench.worker.order("burn 1");
    let sample = bench.until_counted();
    let first = reading(&bench.main_thread(&sample).counts[0]).clone();
    assert!(first.opened < sample.at && first.running >= Duration::from_micros(900), "{first:?}");

    // Its own thread is new when the main one is not.
    bench.worker.order("threads 1");
    let sample = bench.until("two threads", |sample| sample.threads.len() == 2);
    let other = sample.threads.iter().find(|t| t.id.thread != t.id.process).unwrap();
    assert!(other.counts[0].clone().unwrap_err().contains("outlived a quantum"));
    let known = History::default().take(&sample).unwrap();
    assert!(known[&other.id].get("ipc").unwrap_err().to_string().contains("outlived a quantum"));
    assert!(known[&bench.main_thread(&sample).id].get("ipc").is_ok());
}

pub fn ended_threads() {
    if !can_count() {
        return;
    }
    let mut bench = CountingBench::new(&[Signal::Ipc], Sharing::Kernel);
    bench.worker.order("threads 3");
    let sample = bench.until("all counted", |sample| {
        sample.threads.len() == 4 && sample.threads.iter().all(|t| t.counts[0].is_ok())
    });
    let pid = bench.worker.pid();
    let sleepers: Vec<_> =
        sample.threads.iter().map(|t| t.id).filter(|id| id.thread != pid).collect();
    bench.worker.order("end 3");
    let mut ended = Vec::new();
    bench.until("gone", |sample| {
        ended.extend(sample.ended.clone());
        sample.threads.len() == 1
    });
    assert!(bench.next().ended.is_empty(), "reported once");
    ended.sort_by_key(|ended| ended.id);
    assert_eq!(ended.iter().map(|ended| ended.id).collect::<Vec<_>>(), sleepers);
    for thread in &ended {
        assert_eq!(thread.program, sample.threads[0].program);
        // It ran at least to its end.
        let last = reading(&thread.counts[0]);
        let before = sample.threads.iter().find(|t| t.id == thread.id).unwrap();
        assert_eq!(last.opened, reading(&before.counts[0]).opened);
        assert!(last.running > reading(&before.counts[0]).running, "{last:?}");
    }
}

/// The shares of its running time in which each of two groups counted the main thread.
fn shares(bench: &CountingBench, first: &Sample, last: &Sample) -> [f64; 2] {
    let (before, after) = (bench.main_thread(first), bench.main_thread(last));
    let run_time = after.run_time.saturating_sub(before.run_time);
    [0, 1].map(|group| {
        let time = reading(&after.counts[group]).running - reading(&before.counts[group]).running;
        time.as_secs_f64() / run_time.as_secs_f64()
    })
}

pub fn rotation() {
    if !can_count() {
        return;
    }
    let mut bench = CountingBench::new(&[Signal::Ipc, Signal::MemoryRequests], Sharing::ByQuantum);
    let mut history = History::default();
    let first = bench.until_counted();
    history.take(&first).unwrap();
    let mut ages = Vec::new();
    let mut last = first.clone();
    for _ in 0..10 {
        bench.worker.order("burn 5");
        last = bench.next();
        let known = history.take(&last).unwrap();
        let known = &known[&bench.main_thread(&last).id];
        let age = |name| known.get(name).ok().map(|m| m.age);
        ages.push((age("ipc"), age("memory_requests")));
    }
    // After two turns both are known, and one of them is fresh at a time.
    for pair in &ages[2..] {
        assert!(matches!(pair, (Some(0), Some(1)) | (Some(1), Some(0))), "{ages:?}");
    }
    // Times of the kernel's scheduler and of its counters differ by what is spent between the
    // two, and by what a hypervisor takes: that may be much once, not again and again.
    let fair = |shares: [f64; 2]| {
        (0.8..1.1).contains(&(shares[0] + shares[1]))
            && shares.iter().all(|share| (0.3..0.7).contains(share))
    };
    let mut seen = vec![shares(&bench, &first, &last)];
    while !seen.last().copied().is_some_and(fair) {
        assert!(seen.len() < 5, "{seen:?}");
        let first = last;
        last = first.clone();
        for _ in 0..10 {
            bench.worker.order("burn 5");
            last = bench.next();
        }
        seen.push(shares(&bench, &first, &last));
    }
}
