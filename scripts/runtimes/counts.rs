//! Rust: `available_parallelism`, and rayon's pool, which is sized at its first use.
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

fn say(phase: &str, of: &str, count: usize) {
    println!("{{\"phase\": \"{phase}\", \"of\": \"{of}\", \"count\": {count}}}");
}

fn available(phase: &str) {
    say(phase, "available_parallelism", available_parallelism().unwrap().get());
}

fn spin(until: Instant) {
    let mut sum = 0_u64;
    while Instant::now() < until {
        (0..10_000).for_each(|i| sum = std::hint::black_box(sum.wrapping_add(i)));
    }
}

fn main() {
    let seconds = |at: usize| {
        Duration::from_secs_f64(std::env::args().nth(at).unwrap().parse().unwrap())
    };
    available("start");
    let end = Instant::now() + seconds(1);
    while Instant::now() < end {
        spin(end.min(Instant::now() + Duration::from_secs(1)));
        available("serial");
    }
    let end = Instant::now() + seconds(2);
    available("parallel");
    say("parallel", "rayon", rayon::current_num_threads());
    rayon::broadcast(|_| {
        available("parallel");
        spin(end);
    });
    say("end", "rayon", rayon::current_num_threads());
    available("end");
}
