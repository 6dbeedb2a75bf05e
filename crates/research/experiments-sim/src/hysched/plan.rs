//! Which runs the experiment holds, and in what order.

use std::fmt;
use std::time::Duration;

use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use symbiont_policy::Variant;

use symbiont_report::published::navarro::{Mix, TABLE_1};

/// Mixes of the paper's Fig. 2.
const MIXES: usize = 13;
/// Programs of a mix (section 6).
const OF_MIX: usize = 8;
/// Margin of the hysteresis that is tried, as a share of the issue slots.
const MARGIN: f64 = 0.05;

/// How large an experiment is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HyschedSize {
    /// Time alone that sets the targets.
    pub alone: Duration,
    /// Period of all decisions.
    pub quantum: Duration,
    /// Repeats of each mix under each policy.
    pub repeats: u32,
    /// Repeats of each pair.
    pub pair_repeats: u32,
    /// Repeats of each mix of Table 1.
    pub pinned_repeats: u32,
    /// The same of its mix1. Its two pairings differ by 14 % in STP, and which of them the OS makes is decided by lot.
    /// Where it makes the worse one in a part p of n runs, mean STP is lower by p · 14 %, with a standard error of
    /// 14 % · √(p (1 − p) / n). With p = 0.15, as in 3 of 20 runs, that is 1.9 standard errors after 20 runs and 4.2
    /// after 100; if p is 0.05, it is still 2.3 after 100.
    pub mix1_repeats: u32,
    /// Mixes of eight programs.
    pub mixes: usize,
    /// The programs.
    pub programs: Vec<String>,
    /// Programs that stand for those of Table 1: for mcf, calculix, cam4, hmmer,
    /// imagick.
    pub counterparts: [String; 5],
}

impl HyschedSize {
    /// As in the paper but for shorter targets (10 s instead of 60 s).
    #[must_use]
    pub fn full(programs: Vec<String>) -> Self {
        Self {
            alone: Duration::from_secs(10),
            quantum: Duration::from_millis(500),
            repeats: 5,
            pair_repeats: 2,
            pinned_repeats: 20,
            mix1_repeats: 100,
            mixes: MIXES,
            programs,
            counterparts: ["network", "calculix", "fft", "hmmer", "imagemagick"].map(String::from),
        }
    }

    /// Few programs and mixes, and short targets.
    #[must_use]
    pub fn quick(programs: Vec<String>) -> Self {
        let counterparts = ["network", "calculix", "fft", "hmmer", "imagemagick"];
        Self {
            alone: Duration::from_secs(2),
            repeats: 3,
            pair_repeats: 1,
            pinned_repeats: 3,
            mix1_repeats: 3,
            mixes: 4,
            counterparts: counterparts.map(String::from),
            ..Self::full(programs)
        }
    }

    /// Few mixes of synthetic programs, each with one trait.
    #[cfg(test)]
    pub fn synthetic() -> Self {
        let names = ["chasing", "float", "branchy", "integer", "streaming"];
        let names = names.map(|name| format!("synthetic-{name}"));
        Self {
            alone: Duration::from_secs(2),
            quantum: Duration::from_millis(100),
            repeats: 3,
            pair_repeats: 1,
            pinned_repeats: 3,
            mix1_repeats: 3,
            mixes: 2,
            programs: names.to_vec(),
            counterparts: names,
        }
    }

    /// All programs that are needed.
    #[must_use]
    pub fn needed(&self) -> Vec<String> {
        let mut all = [&self.programs[..], &self.counterparts[..]].concat();
        all.sort();
        all.dedup();
        all
    }

    /// The program that stands for one of Table 1; none if the paper's table
    /// does not have it.
    fn counterpart(&self, name: &str) -> Option<&String> {
        let at =
            ["mcf", "calculix", "cam4_r", "hmmer", "imagick_r"].iter().position(|n| *n == name);
        self.counterparts.get(at?)
    }
}

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A program by itself.
    Alone,
    /// Two programs on one core.
    Pair,
    /// Table 1.
    Pinned,
    /// Fig. 2.
    Mix,
}

/// Programs that run together, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Scene {
    /// What it is for.
    pub part: Part,
    /// Its name, unique within its part.
    pub name: String,
    /// The programs.
    pub programs: Vec<String>,
}

impl Scene {
    /// Cores of its cpuset: one for each two programs.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.programs.len().div_ceil(2)
    }
}

/// What decides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contender {
    /// The simulated OS alone.
    Os,
    /// Hy-Sched with its variant's number in [`Variant::ALL`].
    Hysched(usize),
    /// The same, with hysteresis.
    Steady(usize),
    /// The same as the first, with the measurements shuffled between programs.
    Shuffled(usize),
    /// The L1-bandwidth aware baseline.
    L1Bandwidth,
    /// A new partition each quantum.
    Random,
    /// Never the same program twice on a core.
    NeverTwice,
    /// The programs pinned two by two, in the order of the scene.
    Pinned,
    /// Pairs fixed by exact matching over the measured STP of all pairs.
    Matched,
}

/// Number of the variant that the paper ends with, TopB2M3L.
pub const BEST: usize = 2;
/// Number of the finest, All-3L.
pub const FINEST: usize = 3;

impl Contender {
    /// Those of Fig. 2, the OS first.
    pub const FIGURE_2: [Self; 11] = [
        Self::Os,
        Self::Hysched(0),
        Self::Hysched(1),
        Self::Hysched(BEST),
        Self::Hysched(FINEST),
        Self::Steady(BEST),
        Self::Steady(FINEST),
        Self::L1Bandwidth,
        Self::Random,
        Self::NeverTwice,
        Self::Matched,
    ];

    /// The variant and hysteresis, of Hy-Sched.
    #[must_use]
    pub fn variant(self) -> Option<(Variant, f64)> {
        let (at, margin) = match self {
            Self::Hysched(at) | Self::Shuffled(at) => (at, 0.0),
            Self::Steady(at) => (at, MARGIN),
            _ => return None,
        };
        Some((*Variant::ALL.get(at)?, margin))
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variant = self.variant().map(|(variant, _)| variant.to_string()).unwrap_or_default();
        match self {
            Self::Os => f.write_str("OS"),
            Self::Hysched(_) => f.write_str(&variant),
            Self::Steady(_) => write!(f, "{variant}, hysteresis {MARGIN}"),
            Self::Shuffled(_) => write!(f, "{variant}, shuffled"),
            Self::L1Bandwidth => f.write_str("L1 bandwidth"),
            Self::Random => f.write_str("random"),
            Self::NeverTwice => f.write_str("never twice"),
            Self::Pinned => f.write_str("pinned"),
            Self::Matched => f.write_str("exact matching"),
        }
    }
}

/// How programs start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// Each with a stretch of random length that does not count.
    Apart,
    /// All at once; only the order in which the OS reads them differs between repeats.
    AtOnce,
    /// The same, read in the order of the scene.
    InOrder,
}

impl Start {
    /// What it adds to the name of a workload.
    fn suffix(self) -> &'static str {
        match self {
            Self::Apart => "",
            Self::AtOnce => ", at once",
            Self::InOrder => ", in order",
        }
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HyschedRun {
    /// What runs.
    pub scene: Scene,
    /// Under which contender.
    pub contender: Contender,
    /// How it starts.
    pub start: Start,
    /// Are execution units and caches private to each thread?
    pub private: bool,
    /// Which repeat, from 0. Runs of one scene and repeat start alike.
    pub repeat: u32,
    /// The programs that share a core, core by core, where pairs are fixed.
    pub pairs: Vec<Vec<String>>,
}

impl HyschedRun {
    /// The name of its workload: runs of the same scene and start, with or without private resources, are compared
    /// with each other.
    #[must_use]
    pub fn workload(&self) -> String {
        let Self { scene, start, private, .. } = self;
        let private = if *private { ", private" } else { "" };
        format!("{}{}{private}", scene.name, start.suffix())
    }
}

impl fmt::Display for HyschedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, repeat {}", self.workload(), self.contender, self.repeat)
    }
}

/// All runs. Those under exact matching get their pairs once all pairs have run ([`super::Trial`]).
#[must_use]
pub fn plan(size: &HyschedSize, seed: u64) -> Vec<HyschedRun> {
    let mut all = Vec::new();
    let mut add = |scene: &Scene, contender, start, private, repeats: std::ops::Range<u32>| {
        let pairs = match contender {
            Contender::Pinned => scene.programs.chunks(2).map(<[String]>::to_vec).collect(),
            _ => Vec::new(),
        };
        let run = |repeat| {
            let (scene, pairs) = (scene.clone(), pairs.clone());
            HyschedRun { scene, contender, start, private, repeat, pairs }
        };
        all.extend(repeats.map(run));
    };
    for program in size.needed() {
        let scene = Scene { part: Part::Alone, name: program.clone(), programs: vec![program] };
        add(&scene, Contender::Os, Start::AtOnce, false, 0..1);
    }
    for (at, one) in size.programs.iter().enumerate() {
        for other in &size.programs[at..] {
            let (name, programs) = (format!("{one} + {other}"), vec![one.clone(), other.clone()]);
            let scene = Scene { part: Part::Pair, name, programs };
            add(&scene, Contender::Os, Start::Apart, false, 0..size.pair_repeats);
        }
    }
    for mix in TABLE_1 {
        let Some(scene) = pinned(size, mix) else { continue };
        let repeats =
            if mix.name.starts_with("mix1-") { size.mix1_repeats } else { size.pinned_repeats };
        for contender in [Contender::Pinned, Contender::Os] {
            add(&scene, contender, Start::Apart, false, 0..repeats);
        }
        add(&scene, Contender::Os, Start::InOrder, false, 0..repeats);
        // Where threads share nothing, runs are so much alike that the first repeats say enough.
        for contender in [Contender::Pinned, Contender::Os] {
            add(&scene, contender, Start::Apart, true, 0..size.pinned_repeats);
        }
    }
    let mixes = mixes(size, seed);
    for repeat in 0..size.repeats {
        for scene in &mixes {
            let mut add = |contender, start, private| {
                add(scene, contender, start, private, repeat..repeat + 1);
            };
            for contender in Contender::FIGURE_2 {
                add(contender, Start::Apart, false);
            }
            add(Contender::Shuffled(BEST), Start::Apart, false);
            for contender in [Contender::Os, Contender::Hysched(BEST)] {
                add(contender, Start::Apart, true);
                add(contender, Start::AtOnce, false);
            }
        }
    }
    all
}

fn pinned(size: &HyschedSize, mix: &Mix) -> Option<Scene> {
    let programs: Option<Vec<String>> =
        mix.cores.iter().flatten().map(|name| size.counterpart(name).cloned()).collect();
    Some(Scene { part: Part::Pinned, name: mix.name.to_owned(), programs: programs? })
}

/// Mixes, each drawn with replacement.
fn mixes(size: &HyschedSize, seed: u64) -> Vec<Scene> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut mix = |number: usize| {
        let drawn = (0..OF_MIX).filter_map(|_| size.programs.choose(&mut random).cloned());
        Scene { part: Part::Mix, name: format!("wk{number}"), programs: drawn.collect() }
    };
    (1..=size.mixes).map(&mut mix).collect()
}
