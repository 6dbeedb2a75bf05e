//! Parses the messages of the kernel's process connector.
//!
//! # Problem
//! The kernel reports each fork, exec and exit of the whole machine on a netlink multicast group
//! (linux/cn_proc.h). Reports are numbered by CPU, so that losses can be noticed.
//!
//! # Approach
//!
//! ```text
//! datagram = netlink message*            each with a header of 16 bytes
//! netlink message = connector message    with a header of 20 bytes
//! connector message = one event          from byte 36 on, so not aligned to 8: read as bytes, in native order
//! ```
//!
//! Two things are not what they seem:
//! - A fork names the child's *real parent*. For a new thread that is the parent of its process, not the thread
//!   that made it. New threads are reported with `child_thread != child_process`.
//! - An exec names the process only. If a thread other than the leader called it, that thread has taken over the
//!   leader's number before the report.
//!
//! # Properties
//! - No datagram makes the parser panic or loop (`parser_never_panics`).
//! - Losses are counted exactly, over the wrap of the counter too
//!   (`losses_are_counted_per_cpu`).

use std::collections::HashMap;

use symbiont_topology::PuId;

use super::hook::Moment;

/// Something that happened to a process or thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A process or thread was made.
    Fork {
        /// Its real parent; of a new process, the one that forked.
        parent_process: u32,
        /// Of a new process, the thread that forked.
        parent_thread: u32,
        /// The process that it is, or is a part of.
        child_process: u32,
        /// Itself; equal to `child_process` for a new process.
        child_thread: u32,
        /// When and where.
        at: Moment,
    },
    /// A process replaced its program; its only thread is the leader now.
    Exec {
        /// The process.
        process: u32,
    },
    /// A thread ended.
    Exit {
        /// Its process.
        process: u32,
        /// The thread.
        thread: u32,
    },
    /// Some reports before this were lost; never reported itself.
    Loss,
    /// Anything else.
    Other,
}

/// One report, with its place in the row of reports of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Report {
    /// The CPU that reported.
    pub cpu: u32,
    /// How many reports that CPU made before.
    pub sequence: u32,
    /// The event.
    pub event: Event,
}

const NETLINK_HEAD: usize = 16;
const EVENT_START: usize = NETLINK_HEAD + 20;
const DETAILS: usize = EVENT_START + 16;

/// `CN_IDX_PROC` and `CN_VAL_PROC`.
const CONNECTOR_ID: (u32, u32) = (1, 1);

const PROC_EVENT_NONE: u32 = 0;
const PROC_EVENT_FORK: u32 = 0x1;
const PROC_EVENT_EXEC: u32 = 0x2;
const PROC_EVENT_EXIT: u32 = 0x8000_0000;

/// The reports in one datagram. Malformed messages are left out, and so are
/// answers to requests, which do not count in the row.
pub(crate) fn reports(datagram: &[u8]) -> impl Iterator<Item = Report> + '_ {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let length = usize::try_from(word(rest, 0)?).ok()?;
        let message = rest.get(..length).filter(|message| message.len() >= NETLINK_HEAD)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(report(message))
    })
    .flatten()
}

fn report(message: &[u8]) -> Option<Report> {
    if (word(message, 16)?, word(message, 20)?) != CONNECTOR_ID {
        return None;
    }
    let detail = |index: usize| word(message, DETAILS + 4 * index);
    let event = match word(message, EVENT_START)? {
        PROC_EVENT_NONE => return None,
        PROC_EVENT_FORK => Event::Fork {
            parent_thread: detail(0)?,
            parent_process: detail(1)?,
            child_thread: detail(2)?,
            child_process: detail(3)?,
            at: Moment {
                cpu: PuId(word(message, EVENT_START + 4)?),
                ns: u64::from_ne_bytes(*message.get(EVENT_START + 8..)?.first_chunk::<8>()?),
            },
        },
        PROC_EVENT_EXEC => Event::Exec { process: detail(1)? },
        PROC_EVENT_EXIT => Event::Exit { thread: detail(0)?, process: detail(1)? },
        _ => Event::Other,
    };
    Some(Report { cpu: word(message, EVENT_START + 4)?, sequence: word(message, 24)?, event })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*word))
}

/// `PROC_CN_MCAST_LISTEN`: turns the reports on.
pub(crate) const LISTEN: u32 = 1;
/// `PROC_CN_MCAST_IGNORE`: turns them off.
pub(crate) const IGNORE: u32 = 2;

/// A request to turn the reports on or off.
///
/// Kernels from 6.6 on take a filter of event kinds here. It is not used: the
/// kernel counts the reports that it filters out, so each of them would look
/// like a loss.
pub(crate) fn request(operation: u32) -> [u8; 40] {
    const NLMSG_DONE: u16 = 3;
    let mut request = [0; 40];
    let mut put = |at: usize, bytes: &[u8]| {
        for (to, from) in request.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
    };
    put(0, &40_u32.to_ne_bytes());
    put(4, &NLMSG_DONE.to_ne_bytes());
    put(16, &CONNECTOR_ID.0.to_ne_bytes());
    put(20, &CONNECTOR_ID.1.to_ne_bytes());
    put(32, &4_u16.to_ne_bytes());
    put(36, &operation.to_ne_bytes());
    request
}

/// Finds gaps in the rows of reports.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    next: HashMap<u32, u32>,
}

impl Rows {
    /// Notes a report; gives how many before it were lost.
    pub fn note(&mut self, cpu: u32, sequence: u32) -> u32 {
        let expected = self.next.insert(cpu, sequence.wrapping_add(1)).unwrap_or(sequence);
        let gap = sequence.wrapping_sub(expected);
        // A step backwards is no loss.
        if gap > u32::MAX / 2 { 0 } else { gap }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message as the kernel sends it.
    fn message(cpu: u32, sequence: u32, what: u32, details: &[u32]) -> Vec<u8> {
        let words = [1, 1, sequence, 0, 40, what, cpu, 0, 0];
        let body: Vec<u8> =
            words.iter().chain(details).flat_map(|word: &u32| word.to_ne_bytes()).collect();
        let length = u32::try_from(NETLINK_HEAD + body.len()).unwrap();
        let mut bytes = vec![0; NETLINK_HEAD];
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn events_are_understood() {
        let mut datagram = message(3, 70, PROC_EVENT_FORK, &[11, 10, 21, 20, 0, 0]);
        datagram.extend(message(3, 71, PROC_EVENT_EXEC, &[20, 20, 0, 0, 0, 0]));
        datagram.extend(message(0, 9, PROC_EVENT_EXIT, &[21, 20, 0, 17, 0, 0]));
        datagram.extend(message(0, 10, 0x80, &[21, 20, 0, 17, 0, 0]));
        let report = |cpu, sequence, event| Report { cpu, sequence, event };
        assert_eq!(
            reports(&datagram).collect::<Vec<_>>(),
            [
                report(
                    3,
                    70,
                    Event::Fork {
                        parent_thread: 11,
                        parent_process: 10,
                        child_thread: 21,
                        child_process: 20,
                        at: Moment { ns: 0, cpu: PuId(3) },
                    }
                ),
                report(3, 71, Event::Exec { process: 20 }),
                report(0, 9, Event::Exit { thread: 21, process: 20 }),
                report(0, 10, Event::Other),
            ]
        );
    }

    #[test]
    fn answers_and_strangers_are_left_out() {
        let mut datagram = message(u32::MAX, 0, PROC_EVENT_NONE, &[0; 6]);
        let mut stranger = message(0, 0, PROC_EVENT_FORK, &[1; 6]);
        stranger[16] = 7;
        datagram.extend(stranger);
        assert_eq!(reports(&datagram).count(), 0);
    }

    #[test]
    fn losses_are_counted_per_cpu() {
        let mut rows = Rows::default();
        assert_eq!(rows.note(0, 1000), 0, "the first report says nothing");
        assert_eq!(rows.note(0, 1001), 0);
        assert_eq!(rows.note(1, u32::MAX), 0);
        assert_eq!(rows.note(0, 1005), 3);
        assert_eq!(rows.note(1, 1), 1, "over the wrap");
        assert_eq!(rows.note(0, 1003), 0, "backwards");
    }

    proptest! {
        #[test]
        fn parser_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = reports(&bytes).count();
        }

        #[test]
        fn cut_or_damaged_datagrams_never_panic(
            length in 0_usize..200, at in 0_usize..80, value: u8,
        ) {
            let mut datagram = message(0, 1, PROC_EVENT_FORK, &[1, 1, 2, 2, 0, 0]);
            datagram.extend(message(0, 2, PROC_EVENT_EXIT, &[2, 2, 0, 0, 0, 0]));
            datagram[at] = value;
            prop_assert!(reports(&datagram[..length.min(datagram.len())]).count() <= 4);
        }
    }
}
