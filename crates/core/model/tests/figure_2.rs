//! Figure 2 of Feliu et al., worked through by an independent script: from
//! co-running stacks to the weights of all pairs. The numbers are our own.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::fmt::Write;

use symbiont_model::{
    Coefficients, CpiStack, Interference, Inversion, Objective, Shares, Terms, invert,
};

const NAMES: [&str; 4] = ["A", "B", "C", "D"];

fn row(text: &mut String, name: &str, parts: &[f64]) {
    let parts: Vec<String> = parts.iter().map(|part| format!("{part:.4}")).collect();
    writeln!(text, "{name}  {}", parts.join("  ")).unwrap();
}

#[test]
fn figure_2_is_reproduced() {
    let terms = [(0.02, 1.00, 0.15), (0.01, 1.10, 0.20), (0.00, 1.05, 0.10)];
    let terms = terms.map(|(alpha, beta, gamma)| Terms { alpha, beta, gamma, delta: 0.0 });
    let coefficients = Coefficients::new(terms.to_vec()).unwrap();
    // A shares a core with B, C with D.
    let co_running =
        [[0.60, 1.20, 0.20], [0.75, 0.45, 0.30], [0.80, 2.40, 0.80], [0.90, 0.18, 0.12]];
    let co_running = co_running.map(|parts| CpiStack::new(parts.to_vec()).unwrap());

    let mut text = String::from("base  stall  empty\n\n(a) co-running, cycles per instruction\n");
    for (name, stack) in NAMES.iter().zip(&co_running) {
        row(&mut text, name, stack.parts());
    }
    let shares: Vec<Shares> = co_running.iter().map(CpiStack::shares).collect();
    let inverted: Vec<_> = (shares.chunks(2))
        .map(|pair| {
            let pair: Vec<&Shares> = pair.iter().collect();
            invert(Inversion::Published, &coefficients, &pair).unwrap()
        })
        .collect();
    let slowdowns: Vec<f64> = inverted.iter().flat_map(|i| i.slowdowns.clone()).collect();
    let alone: Vec<Shares> = inverted.into_iter().flat_map(|i| i.stacks).collect();
    text.push_str("\n(b) over their own CPI\n");
    for (name, shares) in NAMES.iter().zip(&shares) {
        row(&mut text, name, shares.parts());
    }
    text.push_str("\n(c) slowdown by the forward model\n");
    for (name, slowdown) in NAMES.iter().zip(&slowdowns) {
        row(&mut text, name, &[*slowdown]);
    }
    text.push_str("\n(d) over throttled CPI\n");
    for ((name, shares), slowdown) in NAMES.iter().zip(&shares).zip(&slowdowns) {
        let adjusted: Vec<f64> = shares.parts().iter().map(|part| part * slowdown).collect();
        row(&mut text, name, &adjusted);
    }
    text.push_str("\n(e) throttled, over their own CPI\n");
    for (name, shares) in NAMES.iter().zip(&alone) {
        row(&mut text, name, shares.parts());
    }
    text.push_str("\nweights of pairs: sum of slowdowns, STP\n");
    let table = Interference::predict(&coefficients, &alone).unwrap();
    for (a, b) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
        let weights = [Objective::Slowdown, Objective::Stp].map(|o| table.pair_cost(o, a, b));
        row(&mut text, &format!("{}{}", NAMES[a], NAMES[b]), &[weights[0], -weights[1]]);
    }
    assert_eq!(text, include_str!("golden/figure-2.txt"));
}
