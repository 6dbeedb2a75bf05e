//! How fast the synthetic benchmark works on this machine.

use std::time::Duration;

use symbiont_synth::calibrate::Rate;

use super::{Measure, Programs, RunFolder, Site};
use symbiont_campaign::{Error, InRound, Progress, Repeats, Rounds, read_json};

/// Time that a calibration may take.
const LIMIT: Duration = Duration::from_secs(30);

impl Site {
    /// Measured once, and kept next to the runs that rest on it.
    pub fn rate(&self, programs: &Programs, progress: &mut dyn Progress) -> Result<Rate, Error> {
        let rounds = Rounds { repeats: Repeats::exactly(1), seed: 0 };
        let once = Self { folder: self.folder.clone(), machine: self.machine.clone(), rounds };
        let done = once.carry_out(&Calibration(programs), progress)?;
        let rate = done.into_iter().next().map(|done| done.record);
        rate.ok_or_else(|| Error::evaluation("the benchmark was not calibrated"))
    }
}

struct Calibration<'a>(&'a Programs);

impl Measure for Calibration<'_> {
    type Cell = String;
    type Record = Rate;

    const NAME: &'static str = "rate";

    fn cells(&self) -> Vec<String> {
        vec!["how fast the benchmark works here".to_owned()]
    }

    fn options(&self) -> String {
        String::new()
    }

    fn measure(&self, _: &InRound<String>, place: &RunFolder<'_>) -> Result<Rate, Error> {
        let out = place.file("rate.json");
        let words = [self.0.synth.display().to_string(), "calibrate".into(), "--json".into()];
        place.run(&words, &out, LIMIT)?;
        read_json(&out)
    }

    fn cost(&self, _: &String) -> Duration {
        Duration::from_secs(3)
    }
}
