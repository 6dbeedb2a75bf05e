//! What fuzzing calls.

use super::event::{Event, Rows, reports as parsed};
use super::stat::{parse_schedstat, parse_stat};
use super::tree_world::{Step, World, enrolled, rescan, rooted};

/// Most steps of one world: the time that a step takes grows with the world.
const MOST_STEPS: usize = 256;

/// Files of /proc: nothing is read where something else stands.
pub fn proc_files(bytes: &[u8]) {
    if let Some(stat) = parse_stat(bytes) {
        let name_end = bytes.iter().rposition(|byte| *byte == b')').expect("a name");
        let renamed = [b"1 (other".as_slice(), bytes.get(name_end..).unwrap_or_default()].concat();
        assert_eq!(parse_stat(&renamed), Some(stat));
    }
    if let Some(read) = parse_schedstat(bytes) {
        let (ran, waited) = (read.run_time.as_nanos(), read.wait_time.as_nanos());
        let written = format!("{ran} {waited} {}\n", read.switches);
        assert_eq!(parse_schedstat(written.as_bytes()), Some(read));
    }
    let _ = super::running::parse(bytes);
}

/// Datagrams of any bytes, and their reports in any order: the hook hears of the threads that are
/// enrolled, and of each end after its birth.
pub fn reports(datagram: &[u8]) {
    let (mut tree, mut events) = rooted();
    let mut rows = Rows::default();
    let mut most = datagram.len() / 16;
    for report in parsed(datagram) {
        most = most.checked_sub(1).expect("a report has a head of 16 bytes");
        if rows.note(report.cpu, report.sequence) > 0 {
            tree.apply(Event::Loss, &mut events);
        }
        tree.apply(report.event, &mut events);
    }
    assert_eq!(events.wrong, Vec::<String>::new());
    assert_eq!(events.alive, enrolled(&tree));
    tree.caught_up();
    assert_eq!(events.alive, enrolled(&tree));
}

/// A world whose threads fork, clone, exec and exit; some reports are lost, some wait.
///
/// Each two bytes are a step: bits 0 to 2 of the first say which, bit 7 that its report is lost, bit
/// 6 that it waits in the socket. The second byte chooses the thread; of a read, how many steps are
/// made between its last report and its scan, which a loss makes necessary. Where no report is lost
/// or waits, exactly the living threads of the descendants are enrolled.
pub fn world(bytes: &[u8]) {
    let (mut tree, mut events) = rooted();
    let mut world = World::new(true);
    let (mut waiting, mut lost) = (Vec::new(), false);
    let mut steps = bytes.chunks_exact(2).take(MOST_STEPS);
    while let Some(&[what, which]) = steps.next() {
        if what & 7 != READ {
            lost |= take(&mut world, what, which, &mut waiting);
            if what & 0x40 != 0 {
                continue;
            }
        }
        waiting.drain(..).for_each(|event| tree.apply(event, &mut events));
        if what & 7 == READ && lost {
            let late = steps.by_ref().take(usize::from(which) % 4);
            lost = late.fold(false, |lost, step| {
                let (what, which) = (step.first().copied(), step.last().copied());
                lost | take(&mut world, what.unwrap_or(READ), which.unwrap_or(0), &mut waiting)
            });
            rescan(&mut tree, &world, &mut events);
            tree.catch_up();
            waiting.drain(..).for_each(|event| tree.apply(event, &mut events));
            tree.caught_up();
        }
        tree.next_epoch();
        assert_eq!(events.wrong, Vec::<String>::new());
        assert_eq!(events.alive, enrolled(&tree));
        if !lost {
            assert_eq!(enrolled(&tree), world.ours());
        }
    }
}

/// The step that is a read of all threads.
const READ: u8 = 7;

/// Takes a step; its report waits, unless it is lost. Is it?
fn take(world: &mut World, what: u8, which: u8, waiting: &mut Vec<Event>) -> bool {
    let which = which.into();
    let step = match what & 7 {
        0 => Step::Fork(which),
        1 | 2 => Step::Clone(which),
        3 | 4 => Step::Exit(which),
        5 => Step::Exec(which),
        6 => Step::Stranger(which),
        _ => return false,
    };
    let Some(event) = world.take(step) else { return false };
    let lost = what & 0x80 != 0;
    if lost {
        waiting.push(Event::Loss);
    } else {
        waiting.extend(parsed(&datagram(event)).map(|report| report.event));
    }
    lost
}

/// The event as the kernel reports it.
fn datagram(event: Event) -> Vec<u8> {
    let (what, details) = match event {
        Event::Fork { parent_process, parent_thread, child_process, child_thread, .. } => {
            (1, [parent_thread, parent_process, child_thread, child_process])
        }
        Event::Exec { process } => (2, [process, process, 0, 0]),
        Event::Exit { process, thread } => (0x8000_0000, [thread, process, 0, 0]),
        Event::Loss | Event::Other => (0, [0; 4]),
    };
    let head = [68, 0, 0, 0, 1, 1, 0, 0, 32, what, 0, 0, 0];
    head.iter().chain(&details).flat_map(|word: &u32| word.to_ne_bytes()).collect()
}
