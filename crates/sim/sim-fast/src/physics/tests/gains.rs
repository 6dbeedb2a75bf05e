//! What threads gain by co-running, and the most that there is to gain.

use super::*;

/// The most that speedups sum up to if each is at most 1 and threads that alone take these parts of
/// something have no more than all of it together.
fn most_that_fits(mut parts: Vec<f64>) -> f64 {
    parts.sort_by(f64::total_cmp);
    let (mut left, mut sum) = (1.0_f64, 0.0);
    for part in parts {
        let speedup = (left / part).min(1.0);
        left -= speedup * part;
        sum += speedup;
    }
    sum
}

#[test]
fn what_fits_is_given_to_the_thread_that_takes_least() {
    assert_eq!(most_that_fits(vec![0.25, 0.5]), 2.0);
    assert_eq!(most_that_fits(vec![1.0, 1.0]), 1.0);
    assert_eq!(most_that_fits(vec![1.0, 0.25, 0.5]), 2.25);
}

/// Programs that take turns have a throughput of 1, those that do not reach one of as many as they are.
/// Together they gain what each leaves idle: one that waits for memory nearly all, one that fills the front end
/// hardly anything.
#[test]
fn co_running_gains_as_programs_do() {
    for (machine, mode) in MACHINES {
        let bench = Bench::new(machine);
        let alone = |name: &str| bench.together(Switches::default(), &[(0, 1, &[name])])[0].cpi;
        let pipeline = bench
            .physics
            .pipeline(bench.physics.cores[0].core_type, mode, CoreSharing::Others)
            .unwrap();
        let halves = if pipeline.halved { 2.0 } else { 1.0 };
        // What they gain, and the most for which slots and front end suffice.
        let gain = |switches: Switches, names: &[&str]| {
            let rates = bench.together(switches, &[(0, mode, names)]);
            let alone: Vec<f64> = names.iter().map(|name| alone(name)).collect();
            let most = |takes: &dyn Fn(&Rates) -> f64| {
                most_that_fits(rates.iter().zip(&alone).map(|(r, cpi)| takes(r) / cpi).collect())
            };
            let slots = most(&|r| r.ops / (halves * pipeline.width));
            let front = most(&|r| r.window.front / halves);
            let gain = alone.iter().zip(&rates).map(|(alone, r)| alone / r.cpi).sum::<f64>();
            (gain, slots.min(front))
        };
        let mut gains = Vec::new();
        for names in mixes(10, mode as usize) {
            let (gain, most) = gain(Switches::default(), &names);
            assert!(gain <= 1.02 * most, "{machine}: {gain} of {most}, {names:?}");
            gains.push(gain);
        }
        let mean = gains.iter().sum::<f64>() / gains.len() as f64;
        println!("{machine} SMT{mode}: {mean:.2} of {gains:.2?}");
        assert!(mean > 1.0 && mean < f64::from(mode), "{machine}: {mean}");
        // Where units alone are shared: copies have equal parts of them, so that they do no worse
        // than in turns.
        let units = Switches { private_units: false, ..Switches::ALL_PRIVATE };
        let copies = |name: &str| gain(units, &vec![name; mode as usize]);
        for name in NAMES {
            let (gain, most) = copies(name);
            assert!(gain > 0.9 && gain <= 1.02 * most, "{machine}: {gain} of {most}, {name}");
        }
        let [(waiting, _), (computing, _)] = ["chasing", "resident"].map(copies);
        // A load at a time, each for far longer than the three operations behind it take.
        assert!(waiting > 0.9 * f64::from(mode), "{machine}: {waiting}");
        // Alone it fills the front end but for what its branches cut off.
        assert!(computing < 1.7, "{machine}: {computing}");
    }
}
