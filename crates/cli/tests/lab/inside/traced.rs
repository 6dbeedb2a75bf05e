//! Which thread each CPU runs, as the kernel traces it: alike for every scheduler.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::workers::confine;

const FOLDER: &str = "/sys/kernel/tracing";
/// Of each CPU's buffer.
const KIB: &str = "4096";

/// A CPU goes from one thread to another; 0 is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Switch {
    cpu: u32,
    seconds: f64,
    from: u32,
    to: u32,
}

/// The switches that happen meanwhile. This thread, which is urgent, visits each CPU first, so that it is known what
/// runs on those that never switch.
pub fn switches(cpus: &[u32], happens: impl FnOnce()) -> Vec<Switch> {
    let write = |name: &str, text: &str| fs::write(Path::new(FOLDER).join(name), text).unwrap();
    write("tracing_on", "0");
    write("trace_clock", "mono");
    write("buffer_size_kb", KIB);
    write("trace", "");
    write("events/sched/sched_switch/enable", "1");
    write("tracing_on", "1");
    cpus.iter().for_each(|cpu| confine(None, &[*cpu]));
    confine(None, cpus);
    happens();
    write("tracing_on", "0");
    write("events/sched/sched_switch/enable", "0");
    let text = fs::read_to_string(Path::new(FOLDER).join("trace")).unwrap();
    write("trace", "");
    text.lines().filter_map(switch).collect()
}

/// `NAME-ID [CPU] FLAGS SECONDS: sched_switch: prev_comm=NAME prev_pid=ID … next_comm=NAME next_pid=ID …`; names may have
/// spaces.
fn switch(line: &str) -> Option<Switch> {
    let (head, event) = line.split_once(": sched_switch: ")?;
    let (cpu, rest) = head.rsplit_once('[')?.1.split_once(']')?;
    let id = |after: &str| {
        let word = event.rsplit_once(after)?.1.split(' ').next()?;
        word.parse().ok()
    };
    Some(Switch {
        cpu: cpu.parse().ok()?,
        seconds: rest.split_whitespace().next_back()?.parse().ok()?,
        from: id(" prev_pid=")?,
        to: id(" next_pid=")?,
    })
}

/// While a thread runs, how much of the time of its core's other hardware threads is idle, in percent; none: it
/// has not run.
pub fn idle_siblings(switches: &[Switch], thread: u32, cores: &[Vec<u32>]) -> Option<f64> {
    let mut runs = BTreeMap::new();
    for switch in switches {
        runs.entry(switch.cpu).or_insert(switch.from);
    }
    let (mut all, mut idle) = (0.0, 0.0);
    let mut last = switches.first()?.seconds;
    for switch in switches {
        let on = runs.iter().find(|(_, running)| **running == thread).map(|(cpu, _)| *cpu);
        let core = cores.iter().find(|core| on.is_some_and(|on| core.contains(&on)));
        for sibling in core.into_iter().flatten().filter(|cpu| Some(**cpu) != on) {
            all += switch.seconds - last;
            idle += if runs.get(sibling) == Some(&0) { switch.seconds - last } else { 0.0 };
        }
        runs.insert(switch.cpu, switch.to);
        last = switch.seconds;
    }
    (all > 0.0).then(|| idle * 100.0 / all)
}
