//! The layout of tracepoint records.

use symbiont_machine::Timestamp;

use super::{Event, Kind};

/// States in which a thread that is switched off will not run: the low bits of
/// `prev_state`. Bits above say that it was preempted.
const NOT_RUNNABLE: u64 = 0xff;

/// `PERF_RECORD_LOST` and `PERF_RECORD_SAMPLE`.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;

/// Where a number lies in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    offset: usize,
    size: usize,
}

/// A tracepoint: its number, and where its fields are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tracepoint {
    /// The number that perf_event_open(2) wants.
    pub id: u16,
    fields: Vec<(String, Field)>,
}

impl Tracepoint {
    /// Reads a `format` file of tracefs; none if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let fields = text.lines().filter_map(field).collect();
        Some(Self { id, fields })
    }

    fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, field)| *field)
    }
}

/// `field:pid_t prev_pid; offset:24; size:4; signed:1;`, with tabs between.
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().split(';').map(str::trim);
    let name = parts.next()?.strip_prefix("field:")?.split_whitespace().last()?;
    let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();
    let (offset, size) = (number("offset:")?, number("size:")?);
    Some((name.to_owned(), Field { offset, size }))
}

impl Field {
    /// The number here, cut to 64 bits and not extended by a sign.
    fn read(self, data: &[u8]) -> Option<u64> {
        let bytes = data.get(self.offset..self.offset.checked_add(self.size)?)?;
        Some(match *bytes {
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            _ => u64::from_ne_bytes(bytes.try_into().ok()?),
        })
    }

    fn thread(self, data: &[u8]) -> Option<u32> {
        self.read(data)?.try_into().ok()
    }
}

/// How to read the records of the tracepoints.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    switch: u16,
    from: Field,
    state: Field,
    to: Field,
    /// Tracepoints of wake-ups, each with the field of the woken thread.
    woken: Vec<(u16, Field)>,
}

/// The content of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SwitchRecord {
    Event(Event),
    /// So many records were lost for want of room.
    Lost(u64),
    /// Nothing that is asked for, or nothing that can be read.
    Other,
}

impl Layout {
    /// None if a field is missing.
    pub fn new(switch: &Tracepoint, wakeups: &[Tracepoint]) -> Option<Self> {
        Some(Self {
            switch: switch.id,
            from: switch.field("prev_pid")?,
            state: switch.field("prev_state")?,
            to: switch.field("next_pid")?,
            woken: wakeups
                .iter()
                .map(|one| Some((one.id, one.field("pid")?)))
                .collect::<Option<_>>()?,
        })
    }

    /// Reads a record: header (type, misc, size), then for a sample the time
    /// and the tracepoint's data with their length.
    pub fn decode(&self, record: &[u8]) -> SwitchRecord {
        let kind = Field { offset: 0, size: 4 }.read(record);
        match kind.and_then(|kind| u32::try_from(kind).ok()) {
            // Header, id, count.
            Some(LOST) => Field { offset: 16, size: 8 }
                .read(record)
                .map_or(SwitchRecord::Other, SwitchRecord::Lost),
            Some(SAMPLE) => self.sample(record).map_or(SwitchRecord::Other, SwitchRecord::Event),
            _ => SwitchRecord::Other,
        }
    }

    fn sample(&self, record: &[u8]) -> Option<Event> {
        let at = Timestamp(Field { offset: 8, size: 8 }.read(record)?);
        let length: usize = Field { offset: 16, size: 4 }.read(record)?.try_into().ok()?;
        let data = record.get(20..20usize.checked_add(length)?)?;
        let id = u16::try_from(Field { offset: 0, size: 2 }.read(data)?).ok()?;
        if id == self.switch {
            let from_is_ready = self.state.read(data)? & NOT_RUNNABLE == 0;
            let (from, to) = (self.from.thread(data)?, self.to.thread(data)?);
            return Some(Event { at, kind: Kind::Switch { from, from_is_ready, to } });
        }
        let (_, woken) = self.woken.iter().find(|(wakeup, _)| *wakeup == id)?;
        let thread = woken.thread(data)?;
        Some(Event { at, kind: Kind::Wakeup { thread } })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SWITCH: &str = "name: sched_switch
ID: 372
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;
\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;
\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;

print fmt: \"prev_comm=%s\", REC->prev_comm
";
    const WAKEUP: &str = "ID: 374\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\n\
         \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n";

    fn layout() -> Layout {
        let wakeup = Tracepoint::parse(WAKEUP).unwrap();
        let new = Tracepoint { id: 373, ..wakeup.clone() };
        Layout::new(&Tracepoint::parse(SWITCH).unwrap(), &[wakeup, new]).unwrap()
    }

    fn sample(at: u64, data: &[u8]) -> Vec<u8> {
        let mut record = Vec::new();
        record.extend(SAMPLE.to_ne_bytes());
        record.extend([0; 4]);
        record.extend(at.to_ne_bytes());
        record.extend(u32::try_from(data.len()).unwrap().to_ne_bytes());
        record.extend(data);
        record
    }

    fn switch(from: u32, state: u64, to: u32) -> Vec<u8> {
        let mut data = vec![0; 64];
        data[..2].copy_from_slice(&372u16.to_ne_bytes());
        data[24..28].copy_from_slice(&from.to_ne_bytes());
        data[32..40].copy_from_slice(&state.to_ne_bytes());
        data[56..60].copy_from_slice(&to.to_ne_bytes());
        data
    }

    #[test]
    fn switches_and_wakeups_are_read() {
        let layout = layout();
        for (state, from_is_ready) in [(0, true), (1, false), (2, false), (0x100, true)] {
            let kind = Kind::Switch { from: 10, from_is_ready, to: 11 };
            let want = SwitchRecord::Event(Event { at: Timestamp(99), kind });
            assert_eq!(layout.decode(&sample(99, &switch(10, state, 11))), want);
        }
        let mut data = vec![0; 36];
        data[24..28].copy_from_slice(&12u32.to_ne_bytes());
        for id in [373u16, 374] {
            data[..2].copy_from_slice(&id.to_ne_bytes());
            let want = Event { at: Timestamp(5), kind: Kind::Wakeup { thread: 12 } };
            assert_eq!(layout.decode(&sample(5, &data)), SwitchRecord::Event(want));
        }
        data[..2].copy_from_slice(&999u16.to_ne_bytes());
        assert_eq!(layout.decode(&sample(5, &data)), SwitchRecord::Other);
    }

    #[test]
    fn lost_records_are_reported() {
        let mut record = vec![0; 24];
        record[..4].copy_from_slice(&LOST.to_ne_bytes());
        record[16..24].copy_from_slice(&17u64.to_ne_bytes());
        assert_eq!(layout().decode(&record), SwitchRecord::Lost(17));
    }

    #[test]
    fn what_is_no_format_is_refused() {
        assert_eq!(Tracepoint::parse("name: x\n"), None);
        let other = Tracepoint::parse("ID: 1\n\tfield:int a;\toffset:0;\tsize:4;\n").unwrap();
        assert!(Layout::new(&other, &[]).is_none());
        let switch = Tracepoint::parse(SWITCH).unwrap();
        assert!(Layout::new(&switch, &[]).is_some());
        assert!(Layout::new(&switch, &[other]).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(
            record in prop::collection::vec(any::<u8>(), 0..100), kind in 0u32..12, text in ".{0,80}",
        ) {
            let layout = layout();
            let mut record = record;
            layout.decode(&record);
            if record.len() >= 4 {
                record[..4].copy_from_slice(&kind.to_ne_bytes());
            }
            layout.decode(&record);
            Tracepoint::parse(&format!("ID: 1\nfield:{text}"));
        }
    }
}
