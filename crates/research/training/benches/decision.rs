//! Time of the model's part of a decision: invert all stacks, predict all
//! pairs, cost all pairs. `cargo bench -p symbiont-training`.
#![allow(clippy::unwrap_used, reason = "a bench that cannot run stops")]

use std::hint::black_box;
use std::time::Instant;

use symbiont_model::{Coefficients, Form, Interference, Inversion, Objective, Shares, SmtMode};
use symbiont_training::fit;
use symbiont_training::synthetic::World;

const REPEATS: usize = 31;

/// Median time in microseconds, and what was computed last.
fn time<T>(mut run: impl FnMut() -> T) -> (f64, T) {
    let mut times = Vec::with_capacity(REPEATS);
    let mut last = black_box(run());
    for _ in 0..REPEATS {
        let start = Instant::now();
        last = black_box(run());
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    (times[REPEATS / 2], last)
}

fn main() {
    let law = Coefficients::new(World::law(6, 0.4)).unwrap();
    let training = World { noise: 0.02, ..World::new(20, 4, law.clone(), 1) };
    println!("median of {REPEATS} runs, microseconds; 6 components");
    println!(
        "{:>8}{:>6}{:>12}{:>13}{:>10}{:>10}{:>10}{:>10}",
        "threads", "smt", "inversion", "", "form", "invert", "table", "costs"
    );
    for mode in [SmtMode::Smt2, SmtMode::Smt4] {
        let groups = training.some_groups(mode.threads(), 200, 2);
        let model = fit(mode, &training.observe(&groups, 5, 3)).unwrap().model;
        for threads in [40, 160, 1024] {
            let world = World::new(threads, 1, law.clone(), 4);
            let co_running: Vec<Shares> =
                world.programs.iter().map(|(_, phases)| phases[0].clone()).collect();
            for inversion in Inversion::ALL {
                let (invert, stacks) = time(|| {
                    let mut stacks = Vec::with_capacity(threads);
                    for group in co_running.chunks(mode.threads()) {
                        let group: Vec<&Shares> = group.iter().collect();
                        stacks.extend(model.invert(inversion, &group).unwrap().stacks);
                    }
                    stacks
                });
                for form in Form::ALL {
                    let predict = || Interference::predict(model.form(form), &stacks).unwrap();
                    let (table, found) = time(predict);
                    let (costs, _) = time(|| {
                        let cost = |a, b| found.pair_cost(Objective::Stp, a, b);
                        let all = (0..threads).flat_map(|a| (0..a).map(move |b| (a, b)));
                        all.map(|(a, b)| cost(a, b)).collect::<Vec<f64>>()
                    });
                    println!(
                        "{threads:>8}{:>6}{:>25}{:>10}{invert:>10.1}{table:>10.1}{costs:>10.1}",
                        mode.threads(),
                        inversion.name(),
                        form.name(),
                    );
                }
            }
        }
    }
}
