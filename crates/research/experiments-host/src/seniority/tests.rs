use std::collections::BTreeSet;
use std::time::Duration;

use super::page::page;
use super::plan::{Cell, Part};
use super::record::SeniorityRecord;
use super::*;
use crate::phases::Grouping;
use symbiont_campaign::{Finished, InRound};

/// Moments every 100 ms; for each quantum which program holds the boost and what each of two
/// programs runs.
fn story(quanta: &[(Option<u32>, [f64; 2])]) -> Vec<Moment> {
    let mut moment = Moment { run_time: [(0, 0.0), (1, 0.0)].into(), ..Moment::default() };
    let mut moments = Vec::new();
    for (holder, ran) in quanta {
        moment.holder = *holder;
        moments.push(moment.clone());
        moment.at += 0.1;
        moment.switches += 10;
        for (program, ran) in (0..).zip(ran) {
            *moment.run_time.get_mut(&program).unwrap() += ran;
        }
    }
    moment.holder = None;
    moments.push(moment);
    moments
}

#[test]
fn turns_waits_and_shares_follow_from_who_held_the_boost() {
    let quanta = [
        (None, [0.1, 0.1]),
        (Some(0), [0.15, 0.05]),
        (Some(0), [0.15, 0.05]),
        (Some(0), [0.15, 0.05]),
        // Its turn, but nothing comes of it at first.
        (Some(1), [0.15, 0.05]),
        (Some(1), [0.05, 0.15]),
        (Some(0), [0.15, 0.05]),
    ];
    let judged = judge(&story(&quanta), &[0, 1]).unwrap();
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
    assert!(near(judged.held_share.unwrap(), 0.8 / 1.2), "{judged:?}");
    assert!(near(judged.held_part, 6.0 / 7.0));
    assert_eq!(judged.turns.len(), 2);
    assert!(near(judged.turns[0], 0.3) && near(judged.turns[1], 0.2), "{judged:?}");
    assert!(near(judged.longest_wait, 0.3), "{judged:?}");
    assert!(near(judged.reaction.unwrap(), 0.15), "{judged:?}");
    assert!(near(judged.shares[0], 0.9 / 1.4) && near(judged.cpus, 2.0), "{judged:?}");
    assert!(near(judged.switches_per_s, 70.0 / 1.4), "{judged:?}");
    assert_eq!(judged.least, None);
    assert!(judge(&[], &[0, 1]).is_none());
}

#[test]
fn a_program_that_stands_still_is_found() {
    let mut quanta = vec![(None, [0.1, 0.1]); 30];
    assert!(judge(&story(&quanta), &[0, 1]).unwrap().least.is_none());
    quanta.extend(vec![(None, [0.1, 0.1]); 30]);
    assert!(judge(&story(&quanta), &[0, 1]).unwrap().least.unwrap() > 4.0);
    quanta.extend(vec![(None, [0.2, 0.0]); 55]);
    assert_eq!(judge(&story(&quanta), &[0, 1]).unwrap().least, Some(0.0));
}

#[test]
fn a_round_holds_each_cell_once_and_takes_what_it_says() {
    for (size, most) in [(Size::full(), 10.0), (Size::short(), 3.5)] {
        let (turns, starvation) = (size.turns(), size.starvation());
        let names: BTreeSet<String> = turns.iter().map(Cell::to_string).collect();
        assert_eq!((names.len(), turns.len()), (2 * (1 + size.timeouts.len()), names.len()));
        assert_eq!(starvation.len(), 2 * size.many.len());
        let seconds = |cells: &[Cell]| -> f64 {
            cells.iter().map(|cell| (cell.time + plan::AROUND).as_secs_f64()).sum()
        };
        let minutes = (f64::from(size.rounds) * seconds(&turns) + seconds(&starvation)) / 60.0;
        assert!(minutes < most, "{minutes}");
    }
}

#[test]
fn a_report_says_whether_the_boost_acts() {
    let judged = |held_share: Option<f64>, turns: Vec<f64>| Judged {
        shares: vec![0.5, 0.5],
        held_share,
        holders: 2,
        held_part: 0.9,
        turns,
        longest_wait: 1.01,
        reaction: Some(0.02),
        switches_per_s: 100.0,
        cpus: 2.0,
        least: None,
    };
    let record = |timeout: Option<Duration>, judged| {
        let cell = Cell {
            part: Part::Turns,
            parallel: 2,
            with_serial: false,
            timeout,
            grouping: Grouping::OneSession,
            time: Duration::from_secs(6),
        };
        let record = SeniorityRecord { quantum_ms: Some(20.0), judged };
        Finished { run: InRound { round: 0, cell }, record }
    };
    let second = Some(Duration::from_secs(1));
    let verdicts = |held_share, turn| {
        let records = [
            record(None, judged(None, Vec::new())),
            record(second, judged(Some(held_share), vec![turn])),
        ];
        page(&records, 2).unwrap().html().unwrap().matches(">pass<").count()
    };
    let record_of = |timeout: Option<Duration>| record(timeout, judged(None, Vec::new()));
    // Where each shall get its turn, a program has to have one.
    let starved = |holders, with_serial| {
        let long = Judged { holders, least: Some(0.5), ..judged(None, Vec::new()) };
        let mut record = record(second, long);
        (record.run.cell.part, record.run.cell.with_serial) = (Part::Starvation, with_serial);
        let turns = [None, second].map(record_of);
        let records = [&turns[..], &[record]].concat();
        page(&records, 2).unwrap().html().unwrap().matches(">pass<").count()
    };
    let without = page(&[None, second].map(record_of), 2).unwrap().html().unwrap();
    let without = without.matches(">pass<").count();
    let more = |holders, with_serial| starved(holders, with_serial) - without;
    assert_eq!([more(2, false), more(1, false), more(0, false)], [1, 0, 0]);
    assert_eq!(more(0, true), 1, "co-running with a serial program none is senior");
    // The long runs bear a busy machine, those of two do not.
    let disturbed = |two: f64, long: f64| {
        let mut records = [None, second, second].map(record_of);
        records.iter_mut().for_each(|record| record.record.judged.cpus = two);
        records[2].run.cell.part = Part::Starvation;
        records[2].record.judged.cpus = long;
        page(&records, 2).unwrap().html().unwrap().contains("something else used the rest")
    };
    assert_eq!([disturbed(1.95, 1.0), disturbed(1.8, 2.0)], [false, true]);
    // Switches are the same, so that check never passes.
    assert_eq!(verdicts(0.9, 1.02), 2);
    assert_eq!(verdicts(0.5, 1.02), 1);
    assert_eq!(verdicts(0.5, 1.2), 0);
    assert!(page(&[], 2).is_err());
}
