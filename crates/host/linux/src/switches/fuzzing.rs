//! What fuzzing calls.

use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, memfd_create};
use symbiont_machine::Timestamp;

use super::format::{Layout, SwitchRecord, Tracepoint};
use super::ring::Ring;
use super::sys::{HEAD, TAIL};
use super::{Event, ReadyThreads};

/// A description of `sched_switch`, a zero byte, one of a wake-up, a zero byte, where in the buffer
/// the records begin (two bytes), and the records. The buffer is a file instead of an event's.
pub fn tracepoints(bytes: &[u8]) {
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    let mut point = || Tracepoint::parse(std::str::from_utf8(parts.next()?).ok()?);
    let (Some(switch), Some(wakeup)) = (point(), point()) else { return };
    let Some(layout) = Layout::new(&switch, &[wakeup]) else { return };
    let Some((start, records)) = parts.next().and_then(|rest| rest.split_first_chunk::<2>()) else {
        return;
    };
    let events = drain(&layout, u16::from_le_bytes(*start).into(), records);
    let mut ready = ReadyThreads::default();
    events.iter().for_each(|event| ready.apply(event));
    for event in &events {
        let super::Kind::Wakeup { thread } = event.kind else { continue };
        assert!(thread == 0 || ready.ready_time(thread, Timestamp(u64::MAX)).is_some());
    }
}

/// The events among records that begin at a position of the buffer: the same on each reading.
fn drain(layout: &Layout, before_end: u64, records: &[u8]) -> Vec<Event> {
    let page = rustix::param::page_size() as u64;
    let size = page * Ring::PAGES as u64;
    let file = memfd_create("ring", MemfdFlags::CLOEXEC).expect("a file in memory");
    let file = std::fs::File::from(file);
    file.set_len(page + size).expect("room");
    let start = size - before_end.clamp(1, size);
    let head = start + records.len() as u64;
    file.write_all_at(&head.to_ne_bytes(), HEAD as u64).expect("the head");
    let (first, rest) = records.split_at(records.len().min((size - start) as usize));
    file.write_all_at(first, page + start).expect("the records");
    file.write_all_at(rest, page).expect("those that wrap round");
    let kept = file.try_clone().expect("a descriptor");
    let mut ring = Ring::new(OwnedFd::from(file), Vec::new()).expect("a mapping");
    ring.skip_to(start);
    let (mut events, mut taken) = (Vec::new(), 0);
    ring.drain(|record| {
        taken += record.len();
        if let SwitchRecord::Event(event) = layout.decode(record) {
            events.push(event);
        }
    });
    assert!(taken <= records.len());
    let mut tail = [0; 8];
    kept.read_exact_at(&mut tail, TAIL as u64).expect("the tail");
    assert_eq!(u64::from_ne_bytes(tail), head);
    events
}
