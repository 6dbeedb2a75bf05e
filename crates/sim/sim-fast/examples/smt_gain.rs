//! What SMT gains on each machine, by programs with one trait each.
//!
//! Throughput of all mixes of programs on one core over one of them alone on the machine (the sum
//! of their speeds, each over its speed alone: STP), next to what was published. A
//! sanity check, not a result: the programs are synthetic, their mean is no mean of
//! any workload.

#![allow(clippy::print_stdout, clippy::expect_used, reason = "an example")]

use symbiont_profile::{Profile, test_support};
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::physics::State;
use symbiont_sim_fast::physics::domains::Physics;
use symbiont_sim_fast::physics::prepared::Prepared;
use symbiont_sim_fast::physics::respond::Direct;
use symbiont_sim_fast::physics::tasks::{Load, Running, Switches};

/// Machine, SMT mode, published gain.
const CASES: [(&str, u32, &str); 9] = [
    ("pentium4-ht", 2, "0.90 to 1.58, mean 1.20, pairs of SPEC CPU2000 (Tuck and Tullsen, 2003)"),
    (
        "xeon-e5-2620v4",
        2,
        "1.1 to 1.3 (AnandTech, Assessing IBM's POWER8, 2016, of Intel's claims)",
    ),
    ("sapphire-rapids", 2, "1.1 to 1.3 (as above)"),
    ("zen4", 2, "no figure"),
    ("power7-755", 2, "no figure"),
    ("power7-755", 4, "no figure"),
    ("power8-s812l", 2, "at least 1.6 (AnandTech, as above, of IBM's claims)"),
    ("power8-s812l", 4, "SMT8 is 1.009 of it (Feliu et al., section 5.1)"),
    ("power8-s812l", 8, "1.009 of SMT4 (Feliu et al., section 5.1)"),
];

fn speeds(physics: &Physics, mode: u32, programs: &[&Prepared]) -> Vec<f64> {
    let threads: Vec<_> = (0..)
        .zip(programs)
        .map(|(thread, prepared)| Running { thread, prepared, pages: &[] })
        .collect();
    let loads = [Load { core: 0, mode, threads: &threads }];
    let mut direct = Direct::default();
    let mut state = State::default();
    let solution = physics.solve(&mut direct, Switches::default(), &loads, None, &mut state);
    solution.rates.iter().map(|(_, rates)| rates.instructions_per_second()).collect()
}

/// All ways to choose `count` of `of`, the same one twice too; every `step`-th.
fn mixes(of: usize, count: u32, step: usize) -> Vec<Vec<usize>> {
    let digits = |code: usize| (0..count).map(move |place| code / of.pow(place) % of);
    let sorted = |mix: &Vec<usize>| mix.windows(2).all(|pair| pair[0] <= pair[1]);
    (0..of.pow(count)).map(|code| digits(code).collect()).filter(sorted).step_by(step).collect()
}

fn main() {
    let profiles: [Profile; 6] = [
        test_support::branchy(),
        test_support::pointer_chasing(200_000),
        test_support::pointer_chasing(3_000),
        test_support::floating_point(),
        test_support::cache_resident(),
        test_support::streaming(),
    ];
    println!("{:16} {:>4} {:>5} {:>5} {:>5}  published", "machine", "SMT", "least", "mean", "most");
    for (name, mode, published) in CASES {
        let machine = Description::named(name).expect("a machine of this crate");
        let physics = Physics::new(&machine);
        let prepared: Vec<_> = profiles
            .iter()
            .map(|profile| {
                Prepared::new(&machine, &profile.phases[0]).expect("a phase with traces")
            })
            .collect();
        let alone: Vec<f64> = prepared.iter().map(|one| speeds(&physics, 1, &[one])[0]).collect();
        let step = if mode > 4 { 11 } else { 1 };
        let mut gains: Vec<f64> = Vec::new();
        for mix in mixes(prepared.len(), mode, step) {
            let programs: Vec<_> = mix.iter().map(|&program| &prepared[program]).collect();
            let together = speeds(&physics, mode, &programs);
            gains.push(
                mix.iter().zip(together).map(|(&program, speed)| speed / alone[program]).sum(),
            );
        }
        let mean = gains.iter().sum::<f64>() / gains.len() as f64;
        let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
        let most = gains.iter().copied().fold(0.0, f64::max);
        println!("{name:16} {mode:>4} {least:>5.2} {mean:>5.2} {most:>5.2}  {published}");
    }
}
