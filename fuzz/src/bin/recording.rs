//! Recordings of runs.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_trace::{Header, Quantum, Reader, Recorder};

fuzz_target!(|bytes: &[u8]| {
    let Some((header, quanta)) = read(bytes) else { return };
    let mut recorder = Recorder::new(Vec::new(), "written", &header).expect("it can be written");
    for quantum in &quanta {
        let moves = quantum.moves.iter().map(|(done, outcome)| (done, outcome));
        recorder.record(&quantum.sample, &quantum.placement, moves).expect("it can be written");
    }
    let again = read(&recorder.into_inner()).expect("what was written can be read");
    assert_eq!(again, (header, quanta));
});

/// The header, and the quanta before the first that is damaged; none without a header.
fn read(bytes: &[u8]) -> Option<(Header, Vec<Quantum>)> {
    let mut reader = Reader::new(bytes, "input").ok()?;
    let mut quanta = Vec::new();
    while let Ok(Some(quantum)) = reader.next_quantum() {
        quanta.push(quantum);
    }
    Some((reader.header().clone(), quanta))
}
