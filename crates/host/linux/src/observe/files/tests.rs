use super::*;
use crate::observe::observed::Round;
use crate::observe::stat::parse_stat;

const MS: Duration = Duration::from_millis(1);

fn entry_of(last: (Stat, SchedStat), at: Instant) -> Entry {
    Entry { born: 99, round: 1, kept: None, last, at, times: last.1, idle: false, awake: at }
}

fn live_of(process: u32, thread: u32, serial: u64) -> Live {
    Live {
        program: symbiont_machine::ProgramId(1),
        process,
        thread,
        process_born: None,
        generation: 0,
        serial,
        ages: crate::observe::tree::Ages::default(),
    }
}

#[test]
fn what_has_slept_for_long_is_looked_at_seldom() {
    let stat = |state: &str| {
        let line = format!("7 (x) {state} 1 7 7 0 -1 0 0 0 0 0 2 3 0 0 20 0 1 0 99 0 0");
        parse_stat(line.as_bytes()).unwrap()
    };
    let (start, brief) = (Instant::now(), MS / 2);
    let times = SchedStat { run_time: 70 * MS, ..SchedStat::default() };
    let mut entry = entry_of((stat("R"), times), start);
    let looks = |entry: &mut Entry, quanta: std::ops::Range<u32>| {
        let mut looks = 0;
        for now in quanta.map(|quantum| start + 100 * quantum * MS) {
            if entry.is_due(now) {
                let times = SchedStat { run_time: entry.times.run_time + brief, ..times };
                entry.note(stat("S"), times, now);
                looks += 1;
            }
        }
        looks
    };
    assert_eq!(looks(&mut entry, 1..10), 9, "within the first second each time");
    assert_eq!(looks(&mut entry, 10..80), 14, "after an eighth of the time that it rests");
    assert_eq!(looks(&mut entry, 80..180), 10, "then each second");
    let ran = SchedStat { run_time: entry.times.run_time + 2 * MS, ..times };
    entry.note(stat("S"), ran, start + 18_000 * MS);
    assert_eq!(looks(&mut entry, 181..190), 9, "it ran");
}

#[test]
fn of_threads_that_did_not_run_no_file_is_read() {
    let proc = Proc::open("/proc".as_ref()).unwrap();
    let mut files = Files::new(&proc, Times::find(&proc), None);
    if files.clocks.is_none() {
        return println!("skipped: the kernel does not account threads");
    }
    let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let live = live_of(sleeper.id(), sleeper.id(), 1);
    let round = |files: &mut Files| {
        files.begin();
        let mut round = Round::default();
        round.take_process(files, &proc, &[live]);
        files.end();
        std::thread::sleep(20 * MS);
        round
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    // A leader rests only where its process's clock says so.
    while round(&mut files).resting.is_empty() && Instant::now() < deadline {}
    for entry in files.entries.values_mut() {
        entry.kept = None;
    }
    assert_eq!(round(&mut files).resting.len(), 1, "no file is there to be read");
    assert_eq!(files.opened, 0);
    files.read(&proc, &live_of(sleeper.id(), sleeper.id(), 2));
    assert!(files.ran_unseen(&[live], Duration::ZERO), "what another one ran before is not known");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(round(&mut files).gone, [live]);
}

#[test]
fn a_leader_is_looked_at_when_its_process_ran() {
    let proc = Proc::open("/proc".as_ref()).unwrap();
    let mut files = Files::new(&proc, Times::find(&proc), None);
    if files.clocks.is_none() {
        return println!("skipped: the kernel does not account threads");
    }
    let own = std::process::id();
    let (leader, other) = (live_of(own, own, 1), live_of(own, own + 1, 2));
    files.begin();
    let start = files.time_of(own);
    while files.time_of(own) == start {}
    files.begin();
    assert!(files.time_of(own) > start);
    let Reading::There(stat, times) = files.read(&proc, &leader) else { panic!("it lives") };
    for live in [leader, other] {
        let mut entry = entry_of((stat, times), files.now);
        (entry.idle, entry.round) = (true, files.round - 1);
        files.entries.insert(live.serial, entry);
    }
    assert!(files.is_idle(&other), "it had not run at the last look");
    assert!(!files.is_idle(&leader), "its file says what its process did");
}

#[test]
fn files_are_kept_open_within_their_bound() {
    let threads = [0, 64, 1024, 16_384, 20_000, u64::MAX].map(kept_within);
    assert_eq!(threads, [0, 8, 128, 2048, 2048, 2048]);
}

#[test]
fn a_ready_thread_that_has_not_run_since_is_still_ready() {
    let entry = |state: &str, last| {
        let line = format!("7 (x) {state} 1 7 7 0 -1 0 0 0 0 0 2 3 0 0 20 0 1 0 99 0 0");
        let last = (parse_stat(line.as_bytes()).unwrap(), last);
        entry_of(last, Instant::now())
    };
    let last = SchedStat { run_time: 70 * MS, wait_time: 5 * MS, switches: 9 };
    assert!(entry("R", last).is_ready_still(&last));
    let changes = [
        SchedStat { run_time: last.run_time + Duration::from_nanos(1), ..last },
        SchedStat { wait_time: last.wait_time + MS, ..last },
        SchedStat { switches: 10, ..last },
    ];
    for now in changes {
        assert!(!entry("R", last).is_ready_still(&now), "{now:?}");
    }
    for other in ["S", "T", "Z"] {
        assert!(!entry(other, last).is_ready_still(&last), "{other}");
    }
}

#[test]
fn a_thread_that_hardly_ran_since_its_last_read_rests_for_a_second() {
    let line = |state: &str| format!("7 (x) {state} 1 7 7 0 -1 0 0 0 0 0 2 3 0 0 20 0 1 0 99 0 0");
    let at = Instant::now();
    let last = SchedStat { run_time: 70 * MS, wait_time: 5 * MS, switches: 9 };
    let rests = |state: &str, run_time: Duration, wait_time: Duration, later: Duration| {
        let stat = parse_stat(line(state).as_bytes()).unwrap();
        let entry = entry_of((stat, last), at);
        let switches = last.switches + u64::from(!(run_time + wait_time).is_zero());
        let now = SchedStat {
            run_time: last.run_time + run_time,
            wait_time: last.wait_time + wait_time,
            switches,
        };
        entry.rests(&now, at + later)
    };
    let (no, long) = (Duration::ZERO, 3600 * LATE);
    assert!(rests("S", no, no, long), "not at all");
    assert!(rests("S", MS / 2, MS / 3, LATE - MS), "hardly");
    assert!(!rests("S", MS / 2, MS / 3, LATE), "hardly, but for long");
    assert!(!rests("S", MS, no, 2 * MS), "it ran");
    assert!(!rests("S", no, MS, 2 * MS), "it waited");
    for awake in ["R", "T"] {
        assert!(!rests(awake, no, no, MS), "{awake}");
    }
}
