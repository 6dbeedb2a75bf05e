//! From totals to values: what is shown. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use symbiont_counters::catalogue::{Absent, Catalogue, Counts, Unit};
use symbiont_linux::perf::Reading;
use symbiont_machine::ThreadId;

use super::tally::{Tally, Total, Watched};
use super::wanted::Section;

/// The report of one moment: since the moment before, or in all.
#[derive(Debug, Serialize)]
pub struct Account {
    /// Is it the last one, over the whole time?
    pub total: bool,
    /// Seconds since watching began.
    pub at_s: f64,
    /// Seconds that it is about.
    pub over_s: f64,
    /// Name of the catalogue.
    pub catalogue: String,
    /// Threads that ran meanwhile, most CPU time first.
    pub threads: Vec<Row>,
    /// All of them together.
    pub all: Row,
    /// Values that no thread has, and why.
    pub absent: BTreeMap<String, String>,
    /// Threads that ran and were not counted at all, and their CPU time: they
    /// ended between two readings, or descriptors ran out.
    pub uncounted: Uncounted,
}

/// Threads without counts.
#[derive(Debug, Default, Serialize)]
pub struct Uncounted {
    pub threads: usize,
    pub cpu_s: f64,
}

/// One thread, or all.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub process: Option<u32>,
    pub thread: Option<u32>,
    pub name: String,
    /// Does it live?
    pub alive: bool,
    /// CPU time in seconds.
    pub cpu_s: f64,
    /// Share of it in which groups of events counted: the least of those that
    /// did.
    pub coverage: Option<f64>,
    /// By formula; absent ones are left out.
    pub values: BTreeMap<String, Valued>,
    /// Events that the user named.
    pub events: BTreeMap<String, Event>,
}

/// A value and its unit.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Valued {
    pub value: f64,
    pub unit: Unit,
}

/// A count.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Event {
    /// As read.
    pub count: u64,
    /// Scaled to the time in which it was to be counted.
    pub estimate: f64,
    /// The latter for each second of CPU time.
    pub per_cpu_s: f64,
}

/// The content of the report.
#[derive(Debug)]
pub struct Subject<'a> {
    pub catalogue: &'a Catalogue,
    pub sections: &'a [Section],
}

/// Totals of threads at an earlier moment.
pub type Earlier = BTreeMap<ThreadId, Total>;

/// Totals as they are now.
pub fn totals(tally: &Tally) -> Earlier {
    tally.threads().map(|(id, _, total)| (id, total)).collect()
}

impl Subject<'_> {
    /// All that there is to report since `earlier`, or in all.
    pub fn account(
        &self,
        tally: &Tally,
        earlier: Option<&Earlier>,
        (at, over): (Duration, Duration),
    ) -> Account {
        let mut all = Total::default();
        let mut uncounted = Uncounted::default();
        let mut threads = Vec::new();
        for (id, thread, total) in tally.threads() {
            let total = match earlier {
                None => total,
                Some(earlier) => earlier.get(&id).map_or(total.clone(), |then| total.since(then)),
            };
            if total.cpu.is_zero() {
                continue;
            }
            if total.groups.iter().all(|group| group.running.is_zero()) {
                uncounted.threads += 1;
                uncounted.cpu_s += total.cpu.as_secs_f64();
            }
            all.add(&total);
            let row = self.row(tally.groups(), &total);
            let (process, thread_number) = (Some(id.process), Some(id.thread));
            let (name, alive) = (thread.name.clone(), thread.alive);
            threads.push(Row { process, thread: thread_number, name, alive, ..row });
        }
        threads.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s));
        let absent = self.absent(tally, &all);
        let all = self.row(tally.groups(), &all);
        Account {
            total: earlier.is_none(),
            at_s: at.as_secs_f64(),
            over_s: over.as_secs_f64(),
            catalogue: self.catalogue.name().to_owned(),
            absent,
            threads,
            all,
            uncounted,
        }
    }

    fn formulas(&self) -> impl Iterator<Item = &String> {
        self.sections.iter().flat_map(|section| &section.formulas)
    }

    fn row(&self, groups: &[Watched], total: &Total) -> Row {
        let counts = Counted { groups, readings: &total.groups };
        let value = |name: &String| {
            let found = self.catalogue.evaluate(name, &counts).ok()?;
            Some((name.clone(), Valued { value: found.value, unit: found.unit }))
        };
        let cpu_s = total.cpu.as_secs_f64();
        let mut events = BTreeMap::new();
        for (group, reading) in groups.iter().zip(&total.groups).filter(|(g, _)| g.name.is_none()) {
            for event in &group.events {
                let Some(count) = reading.count(event) else { continue };
                let Some(estimate) = reading.estimate(event) else { continue };
                let per_cpu_s = estimate / cpu_s;
                events.insert(event.to_string(), Event { count, estimate, per_cpu_s });
            }
        }
        Row {
            process: None,
            thread: None,
            name: "all".to_owned(),
            alive: true,
            cpu_s,
            coverage: total.coverage(),
            values: self.formulas().filter_map(value).collect(),
            events,
        }
    }

    /// Why values are absent even for all threads together.
    fn absent(&self, tally: &Tally, all: &Total) -> BTreeMap<String, String> {
        let nothing = "no thread ran long enough to be counted";
        let counts = Counted { groups: tally.groups(), readings: &all.groups };
        let mut absent = BTreeMap::new();
        for name in self.formulas() {
            let why = match self.catalogue.evaluate(name, &counts) {
                Ok(_) => continue,
                Err(Absent::NotCounted(event)) => match tally.reason(&event) {
                    Some(reason) => format!("{event}: {reason}"),
                    None => nothing.to_owned(),
                },
                Err(other) => other.to_string(),
            };
            absent.insert(name.clone(), why);
        }
        for (at, group) in tally.groups().iter().enumerate().filter(|(_, g)| g.name.is_none()) {
            // What was never read is in no total.
            let reading = all.groups.get(at);
            let counted =
                |event: &str| reading.and_then(|reading| reading.estimate(event)).is_some();
            for event in group.events.iter().filter(|event| !counted(event)) {
                absent.insert(event.to_string(), tally.reason(event).unwrap_or(nothing).to_owned());
            }
        }
        absent
    }
}

/// Counts of groups, for formulas.
struct Counted<'a> {
    groups: &'a [Watched],
    readings: &'a [Reading],
}

impl Counts for Counted<'_> {
    fn count(&self, group: Option<&str>, event: &str) -> Option<f64> {
        let counted = self.groups.iter().zip(self.readings);
        let counted = counted.filter(|(_, reading)| !reading.running.is_zero());
        let mut named = counted.filter(|(known, _)| known.name.is_some());
        match group {
            Some(_) => {
                let (_, reading) = named.find(|(known, _)| known.name.as_deref() == group)?;
                reading.count(event).map(|count| count as f64)
            }
            None => {
                let holds = named.filter(|(_, reading)| reading.count(event).is_some());
                holds.max_by_key(|(_, reading)| reading.running)?.1.estimate(event)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::wanted::sections;
    use super::*;

    fn reading(running_ms: u64, counts: &[(&str, u64)]) -> Reading {
        let running = Duration::from_millis(running_ms);
        let counts = counts.iter().map(|&(name, count)| (name.into(), count)).collect();
        Reading { enabled: 2 * running, running, counts }
    }

    fn group(name: Option<&str>, events: &[&str]) -> Watched {
        let events = events.iter().map(|&event| event.into()).collect();
        Watched { name: name.map(str::to_owned), events }
    }

    /// Ratios come from one group as they are; a bare event from the group that
    /// saw most, scaled.
    #[test]
    fn counts_go_to_formulas_by_group() {
        let groups = [group(Some("stack"), &["PM_RUN_CYC"]), group(Some("fpu"), &["PM_RUN_CYC"])];
        let readings = [reading(10, &[("PM_RUN_CYC", 100)]), reading(30, &[("PM_RUN_CYC", 330)])];
        let counted = Counted { groups: &groups, readings: &readings };
        assert_eq!(counted.count(Some("stack"), "PM_RUN_CYC"), Some(100.0));
        assert_eq!(counted.count(None, "PM_RUN_CYC"), Some(660.0));
        assert_eq!(counted.count(Some("l1d"), "PM_RUN_CYC"), None);
        assert_eq!(counted.count(None, "PM_FLOP"), None);
    }

    #[test]
    fn a_row_holds_what_was_counted_and_no_zero_for_what_was_not() {
        let catalogue = Catalogue::named("software").unwrap().unwrap();
        let sections = sections(&catalogue, &[]).unwrap();
        let subject = Subject { catalogue: &catalogue, sections: &sections };
        let groups = vec![
            group(Some("faults"), &["task_clock", "page_faults"]),
            group(Some("switches"), &["task_clock", "context_switches"]),
            group(None, &["bus"]),
        ];
        let total = Total {
            cpu: Duration::from_millis(50),
            groups: vec![
                reading(10, &[("task_clock", 10_000_000), ("page_faults", 500)]),
                reading(0, &[("task_clock", 0), ("context_switches", 0)]),
                reading(25, &[("bus", 40)]),
            ],
        };
        let row = subject.row(&groups, &total);
        assert!((row.values["fault_rate"].value - 5e-5).abs() < 1e-15);
        assert!(!row.values.contains_key("switch_rate"));
        assert_eq!((row.events["bus"].count, row.events["bus"].estimate), (40, 80.0));
        assert!(row.coverage.is_some_and(|share| (share - 0.2).abs() < 1e-12));
        let tally = Tally::new(groups, true);
        let absent = subject.absent(&tally, &total);
        assert!(absent["switch_rate"].contains("long enough"), "{absent:?}");
        assert!(!absent.contains_key("fault_rate") && !absent.contains_key("bus"));
    }
}
