//! What holds in every profile.

use crate::{
    MicroTrace, OpClass, PREDICTORS, Phase, Profile, ReuseBin, ReuseHistogram, SUPER_SET_CACHES,
    SUPER_SETS, Thread,
};

/// No micro-trace has more operations: 1,500 instructions with all their parts.
const LONGEST_TRACE: usize = u16::MAX as usize;

/// Why a profile contradicts itself.
pub(super) fn check(profile: &Profile) -> Result<(), String> {
    ensure(!profile.phases.is_empty(), || "it has no phase".to_owned())?;
    ensure(!profile.threads.is_empty(), || "it has no thread".to_owned())?;
    for (index, phase) in profile.phases.iter().enumerate() {
        check_phase(phase).map_err(|why| format!("phase {index}: {why}"))?;
    }
    let mut total = 0_u64;
    for (index, thread) in profile.threads.iter().enumerate() {
        check_thread(thread, profile.phases.len())
            .map_err(|why| format!("thread {index}: {why}"))?;
        total = total.saturating_add(thread.instructions());
    }
    ensure(total == profile.instructions, || {
        format!("its threads executed {total} instructions, not {}", profile.instructions)
    })
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

fn check_thread(thread: &Thread, phases: usize) -> Result<(), String> {
    ensure(!thread.sequence.is_empty(), || "it has no span".to_owned())?;
    for span in &thread.sequence {
        ensure(usize::from(span.phase) < phases, || format!("there is no phase {}", span.phase))?;
        ensure(span.instructions > 0, || "a span has no instructions".to_owned())?;
    }
    Ok(())
}

fn check_phase(phase: &Phase) -> Result<(), String> {
    ensure(phase.instructions > 0, || "it has no instructions".to_owned())?;
    for reuse in [&phase.data, &phase.code] {
        for histogram in [&reuse.line_64, &reuse.line_128, &reuse.page] {
            check_histogram(histogram)?;
        }
    }
    let caches: Vec<_> = phase.super_sets.iter().map(|map| (map.stream, map.sets)).collect();
    ensure(caches == SUPER_SET_CACHES, || "its super-sets are of other caches".to_owned())?;
    for map in &phase.super_sets {
        let regions = map.regions.len();
        ensure(regions == SUPER_SETS, || format!("a map has {regions} super-sets"))?;
        map.regions.iter().try_for_each(check_histogram)?;
    }
    ensure(phase.code_sketch.is_sound(), || "its sketch of code is out of order".to_owned())?;
    for (index, trace) in phase.traces.iter().enumerate() {
        check_trace(trace).map_err(|why| format!("micro-trace {index}: {why}"))?;
    }
    Ok(())
}

fn check_histogram(histogram: &ReuseHistogram) -> Result<(), String> {
    let bins = histogram.counts.len();
    ensure(bins <= ReuseBin::COUNT, || format!("a histogram has {bins} bins"))?;
    let none = histogram.counts.first().copied().unwrap_or(0);
    ensure(none == 0, || "a histogram counts reuse times of 0".to_owned())?;
    let sum =
        histogram.counts.iter().try_fold(histogram.cold, |sum, count| sum.checked_add(*count));
    ensure(sum.is_some(), || "a histogram's counts are absurd".to_owned())
}

fn check_trace(trace: &MicroTrace) -> Result<(), String> {
    let ops = trace.ops.len();
    ensure((1..=LONGEST_TRACE).contains(&ops), || format!("it has {ops} operations"))?;
    ensure(trace.ops.first().is_some_and(|op| op.starts_instruction), || {
        "it does not start with an instruction".to_owned()
    })?;
    for (index, op) in trace.ops.iter().enumerate() {
        if let Some(from) = op.stored {
            let store = index.checked_sub(usize::from(from.back)).and_then(|at| trace.ops.get(at));
            let fits = op.class == OpClass::Load
                && store.is_none_or(|store| store.class == OpClass::Store);
            ensure(fits, || format!("operation {index} reads what no store wrote"))?;
        }
        ensure(op.mispredicted >> PREDICTORS == 0, || {
            format!("operation {index} has flags of unknown predictors")
        })?;
        ensure(op.access.is_none() || op.class.is_memory(), || {
            format!("operation {index} accesses data but is no load or store")
        })?;
    }
    Ok(())
}
