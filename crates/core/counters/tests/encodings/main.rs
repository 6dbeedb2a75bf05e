//! Holds every event's encoding against two independent tables: perf's own
//! (`tools/perf/pmu-events` of the kernel source) and libpfm4's.
//!
//! `scripts/fetch-oracles.sh` puts both below `target/oracles`; without them
//! the test says so and skips. `scripts/check-catalogues.sh` fetches and shows
//! the table. What must hold: nine events of ten are confirmed by a table, those
//! of machines aside that are newer than the tables; an event that a table
//! knows differently says why, with its source; and the tables of other
//! processors that a catalogue is for (`also`) list none of its events
//! differently.

mod libpfm;
mod perf;

use std::path::{Path, PathBuf};

use symbiont_counters::catalogue::{Catalogue, Encoding, Event};

/// What one table says of one event.
enum Verdict {
    Equal,
    /// Another encoding, which the catalogue explains.
    Explained,
    /// The encoding that the catalogue has, though it explains a difference:
    /// this version of the table has been corrected.
    Corrected,
    /// Another encoding, unexplained.
    Wrong(String),
    /// Nothing, and why.
    Silent(String),
}

/// The sums of one catalogue.
#[derive(Default)]
struct Tally {
    events: usize,
    one: usize,
    both: usize,
    equal: usize,
    unequal: usize,
    confirmed: usize,
    also: usize,
    silent: Vec<(String, String)>,
    corrected: Vec<String>,
    wrong: Vec<String>,
}

fn judge(event: &Event, said: Result<Encoding, String>, excuse: Option<&String>) -> Verdict {
    match (said, excuse) {
        (Err(why), _) => Verdict::Silent(why),
        (Ok(said), None) if said == event.encoding => Verdict::Equal,
        (Ok(said), Some(_)) if said == event.encoding => Verdict::Corrected,
        (Ok(_), Some(_)) => Verdict::Explained,
        (Ok(said), None) => Verdict::Wrong(format!(
            "is {:#x}/{:#x} there and {:#x}/{:#x} here, unexplained",
            said.config, said.config1, event.encoding.config, event.encoding.config1
        )),
    }
}

fn check(catalogue: &Catalogue, perf: &perf::Tables, libpfm: &libpfm::Tools) -> Tally {
    let mut tally = Tally::default();
    for event in catalogue.events() {
        let oracle = &event.oracle;
        let verdicts = [
            ("perf", judge(event, perf.encoding(catalogue, event), oracle.perf_differs.as_ref())),
            (
                "libpfm4",
                judge(event, libpfm.encoding(catalogue, event), oracle.libpfm_differs.as_ref()),
            ),
        ];
        let (mut compared, mut equal, mut unequal) = (0, 0, 0);
        let mut reasons = Vec::new();
        for (table, verdict) in verdicts {
            match verdict {
                Verdict::Equal => equal += 1,
                Verdict::Corrected => {
                    equal += 1;
                    tally.corrected.push(format!("{}: {table} agrees by now", event.name));
                }
                Verdict::Explained => unequal += 1,
                Verdict::Wrong(what) => {
                    unequal += 1;
                    tally.wrong.push(format!("{}: {table}: {what}", event.name));
                }
                Verdict::Silent(why) => {
                    reasons.push(format!("{table}: {why}"));
                    continue;
                }
            }
            compared += 1;
        }
        for (table, said) in perf.also(catalogue, event) {
            match judge(event, said, None) {
                Verdict::Equal => tally.also += 1,
                Verdict::Wrong(what) => {
                    tally.wrong.push(format!("{}: {table}: {what}", event.name));
                }
                Verdict::Silent(why) => {
                    tally.silent.push((event.name.clone(), format!("{table}: {why}")));
                }
                Verdict::Corrected | Verdict::Explained => {}
            }
        }
        tally.events += 1;
        tally.one += usize::from(compared == 1);
        tally.both += usize::from(compared == 2);
        tally.equal += equal;
        tally.unequal += unequal;
        tally.confirmed += usize::from(equal > 0);
        if compared == 0 {
            tally.silent.push((event.name.clone(), reasons.join("; ")));
        }
    }
    tally
}

fn oracles() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/oracles")
}

#[test]
fn independent_tables_confirm_the_encodings() {
    let folder = oracles();
    let perf = perf::Tables::new(&folder.join("pmu-events"));
    let libpfm = libpfm::Tools::new(&folder.join("libpfm4"));
    if !perf.are_there() && !libpfm.are_there() {
        println!("skipped: no oracles in {}; scripts/fetch-oracles.sh gets them", folder.display());
        return;
    }
    println!(
        "{:<18} {:>6} {:>4} {:>5} {:>6} {:>8} {:>9} {:>5}",
        "catalogue", "events", "one", "both", "equal", "unequal", "confirmed", "also"
    );
    let (mut events, mut confirmed) = (0, 0);
    let mut wrong = Vec::new();
    let mut notes = Vec::new();
    for (name, _) in Catalogue::builtin() {
        let catalogue = Catalogue::named(name).expect("a name of the list").expect("well formed");
        let tally = check(&catalogue, &perf, &libpfm);
        println!(
            "{name:<18} {:>6} {:>4} {:>5} {:>6} {:>8} {:>7} % {:>5}",
            tally.events,
            tally.one,
            tally.both,
            tally.equal,
            tally.unequal,
            tally.confirmed * 100 / tally.events,
            tally.also
        );
        let unknown = perf.are_older_than(&catalogue) && tally.one + tally.both == 0;
        if !catalogue.rules().is_empty() && !unknown {
            events += tally.events;
            confirmed += tally.confirmed;
        }
        wrong.extend(tally.wrong.iter().map(|what| format!("{name}: {what}")));
        notes.extend(tally.silent.iter().map(|(event, why)| format!("{name}: {event}: {why}")));
        notes.extend(tally.corrected.iter().map(|what| format!("{name}: {what}")));
        notes.extend(explanations(&catalogue));
    }
    println!("hardware events confirmed: {confirmed} of {events}");
    notes.iter().for_each(|note| println!("  {note}"));
    assert!(wrong.is_empty(), "the catalogues need correcting:\n{}", wrong.join("\n"));
    if perf.are_there() && libpfm.are_there() {
        assert!(confirmed * 10 >= events * 9, "only {confirmed} of {events} events confirmed");
    }
}

fn explanations(catalogue: &Catalogue) -> Vec<String> {
    let name = catalogue.name();
    let mut lines = Vec::new();
    for event in catalogue.events() {
        let tables =
            [("perf", &event.oracle.perf_differs), ("libpfm4", &event.oracle.libpfm_differs)];
        for (table, why) in tables {
            let note = |why: &String| format!("{name}: {}: {table} differs: {why}", event.name);
            lines.extend(why.iter().map(note));
        }
    }
    lines
}
