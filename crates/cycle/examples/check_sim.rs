//! The fast level against the cycle level, on the most frequent phases of profiles.
//!
//! `check_sim MACHINE THREADS GROUPS COUNTED PROFILE... [TRACE...]`: groups of THREADS programs that
//! share a core, at most GROUPS of them; COUNTED instructions of each thread are counted at the
//! cycle level, which runs the programs that have a captured trace (`NAME.trace`) from it. Tells
//! errors as fast / cycle − 1, all simulated.

use std::path::Path;
use std::time::Instant;

use symbiont_cycle::check::{Agreement, Compared, Plan, compare, measure, most_frequent};
use symbiont_cycle::{Captured, Options, Referee, Sample};
use symbiont_profile::trace::TraceFile;
use symbiont_profile::{Phase, Profile};
use symbiont_sim::description::Description;
use symbiont_sim::fast::{Switches, Workshop};

const USAGE: &str = "check_sim MACHINE THREADS GROUPS COUNTED PROFILE... [TRACE...]";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [machine, threads, groups, counted, files @ ..] = words.as_slice() else {
        return Err(USAGE.into());
    };
    let machine = Description::named(machine)?;
    let (threads, groups): (usize, usize) = (threads.parse()?, groups.parse()?);
    if !(2..=machine.topology.smt_width()).contains(&threads) {
        return Err("its cores have not so many threads, or it is one".into());
    }
    let stem = |file: &String| {
        Path::new(file).file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned())
    };
    let (traces, files): (Vec<&String>, Vec<&String>) =
        files.iter().partition(|file| file.ends_with(".trace"));
    let profiles: Vec<Profile> = files
        .iter()
        .map(|file| Profile::read(Path::new(file.as_str())))
        .collect::<Result<_, _>>()?;
    let phases: Vec<&Phase> =
        profiles.iter().map(most_frequent).collect::<Option<_>>().ok_or("an empty profile")?;
    let plan = Plan::new(files.iter().copied().map(stem).collect(), threads, groups, 1);
    let home = *machine.memory.nodes.first().ok_or("a machine without memory")?;
    let mut told = |_, _| true;
    let workshop = Workshop::new(machine.clone());
    let mut level = workshop.fast(Switches::default());
    let begun = Instant::now();
    let fast = measure(&mut level, &plan, &phases, home, &mut told)?.ok_or("stopped")?;
    let between = Instant::now();
    let sample = Sample { counted: counted.parse()?, ..Sample::default() };
    let mut referee = Referee::new(machine.clone(), Options::default(), sample);
    for trace in &traces {
        let file = TraceFile::open(Path::new(trace.as_str()))?;
        let of = |profile: &&Profile| profile.program == file.about().program;
        let profile = profiles.iter().find(of).ok_or("a trace without a profile")?;
        for (index, info) in file.windows().iter().enumerate() {
            let phase = profile.phases.get(usize::from(info.phase)).ok_or("an unknown phase")?;
            referee.trace(phase, Captured::new(&file, index)?);
        }
    }
    let cycle = measure(&mut referee, &plan, &phases, home, &mut told)?.ok_or("stopped")?;
    println!(
        "simulated on {}, {} programs, {} from traces; fast level {:.1?}, cycle level {:.1?}",
        machine.name,
        profiles.len(),
        traces.len(),
        between - begun,
        between.elapsed()
    );
    tell(&compare(&plan, &fast, &cycle));
    Ok(())
}

fn tell(compared: &Compared) {
    println!("SMT{}, {} groups", compared.threads, compared.groups);
    line("CPI alone", &compared.alone, Clone::clone);
    line("CPI throttled", &compared.throttled, Clone::clone);
    let case = |case: &symbiont_cycle::check::Case| {
        format!("{} in {}", case.program, case.group.join("+"))
    };
    line("slowdown", &compared.slowdown, case);
    line("STP", &compared.stp, |group| group.0.join("+"));
    println!("shares of cycles together: fast, cycle, mean difference");
    for part in &compared.stack {
        let [fast, cycle, error] = [part.fast, part.cycle, part.error].map(|share| share * 100.0);
        let worst = part.worst.as_ref().map_or_else(String::new, |worst| case(&worst.of));
        println!("  {:17} {fast:5.1} % {cycle:5.1} % {error:5.1} %  most: {worst}", part.name);
    }
}

fn line<T>(what: &str, agreement: &Agreement<T>, name: impl Fn(&T) -> String) {
    let [error, bias] = [agreement.error, agreement.bias].map(|share| share * 100.0);
    let rank = agreement.rank.map_or_else(|| "none".to_owned(), |rank| format!("{rank:.3}"));
    println!("{what:14} error {error:.1} %, bias {bias:.1} %, rank correlation {rank}");
    for worst in &agreement.worst {
        println!("    {}: fast {:.3}, cycle {:.3}", name(&worst.of), worst.fast, worst.cycle);
    }
}
