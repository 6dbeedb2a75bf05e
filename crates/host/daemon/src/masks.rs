//! What a user should know of masks that threads set and that were ours, for the log and the report.
//!
//! Properties: the first thread is named, and what was done (`masks_that_were_set_back_are_named_by_the_first_thread`).

use symbiont_linux::actuate::Suspect;

/// The line about masks that were taken for ours.
pub fn suspected(suspects: &[Suspect]) -> Option<String> {
    let set = masks_set(suspects)?;
    Some(format!(
        "{set}, where a thread of the process was held: taken for a mistake and set back; set again, it stays"
    ))
}

/// The line about masks that may have been read in a nudge.
pub fn doubted(doubts: &[Suspect]) -> Option<String> {
    let set = masks_set(doubts)?;
    Some(format!(
        "{set}, which a thread of the process had for a moment as it was moved: if it was read then, and not chosen, \
         `taskset` gives the thread all CPUs again; where symbiont has real-time priority (CAP_SYS_NICE), threads \
         do not run in such moments"
    ))
}

/// Which threads set their masks to what.
fn masks_set(suspects: &[Suspect]) -> Option<String> {
    let first = suspects.first()?;
    let (thread, mask) = (&first.thread, &first.mask);
    Some(match suspects.len() {
        1 => format!("{thread} set its mask to CPU {mask}"),
        more => format!("{more} threads, {thread} first, set their masks to CPU {mask}"),
    })
}

#[cfg(test)]
mod tests {
    use symbiont_linux::actuate::ThreadKey;
    use symbiont_topology::PuId;

    use super::*;

    #[test]
    fn masks_that_were_set_back_are_named_by_the_first_thread() {
        let suspect = |thread| Suspect {
            thread: ThreadKey { process: 7, thread, born: 1 },
            mask: PuId(3).into(),
        };
        assert_eq!(suspected(&[]), None);
        let one = suspected(&[suspect(8)]).unwrap();
        assert!(one.contains("set its mask to CPU 3"), "{one}");
        let two = suspected(&[suspect(8), suspect(9)]).unwrap();
        assert!(two.starts_with("2 threads, ") && two.contains("set back"), "{two}");
        let doubt = doubted(&[suspect(8)]).unwrap();
        assert!(
            doubt.contains("set its mask to CPU 3") && doubt.contains("as it was moved"),
            "{doubt}"
        );
    }
}
