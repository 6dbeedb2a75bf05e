//! Makes a profile of the plugin's files.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::CaptureError;
use super::cluster::{Cluster, cluster};
use crate::raw::{IntervalAt, RawFile};
use crate::vectors::{Hierarchy, Interval, VERSION, Vectors};
use crate::{
    Footprint, LONGEST_FILE, MicroTrace, Phase, Profile, ReuseHistogram, SUPER_SET_CACHES, Span,
    SuperSetMap, Thread, to_bytes,
};

/// Numbers of micro-traces per phase that are tried until the file is short enough.
const TRACES: [usize; 11] = [20, 16, 12, 10, 8, 7, 6, 5, 3, 2, 1];
/// Counts of a super-set's reuse times are scaled down to about this sum.
const REGION_SAMPLE: u64 = 8192;

/// What is known of the run in addition to the plugin's output.
#[derive(Debug, Clone)]
pub(super) struct About {
    pub(super) program: String,
    pub(super) command: Vec<String>,
    pub(super) digest: String,
    /// Why children's programs were not followed, if they were not.
    pub(super) not_followed: Option<String>,
}

/// An interval and where it belongs.
struct Piece<'a> {
    file: &'a RawFile,
    process: usize,
    at: &'a IntervalAt,
}

/// The files of the folder, in the order in which their programs started.
pub(super) fn files(dir: &Path) -> Result<Vec<RawFile>, CaptureError> {
    let failed = |path: &Path, source| CaptureError::Scratch { path: path.to_owned(), source };
    let entries = std::fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut paths: Vec<PathBuf> =
        entries.map_err(|error| failed(dir, error))?.iter().map(std::fs::DirEntry::path).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "raw"));
    paths.sort();
    paths.iter().map(|path| RawFile::open(path).map_err(|error| failed(path, error))).collect()
}

/// What the thread that executed most did to simulated caches, interval by interval.
pub(super) fn vectors(
    files: &[RawFile],
    hierarchy: &Hierarchy,
    about: About,
) -> Result<Vectors, CaptureError> {
    let mut executed: BTreeMap<(usize, u32), u64> = BTreeMap::new();
    for (process, file) in files.iter().enumerate() {
        for at in &file.intervals {
            *executed.entry((process, at.signature.thread)).or_default() +=
                at.signature.instructions;
        }
    }
    // Of equals the first.
    let most = executed.iter().rev().max_by_key(|(_, instructions)| **instructions);
    let (process, thread) = *most.ok_or(CaptureError::NothingRan)?.0;
    let file = files.get(process).ok_or(CaptureError::NothingRan)?;
    let failed = |source| CaptureError::Scratch { path: file.path().to_owned(), source };
    let mut intervals = Vec::new();
    for at in file.intervals.iter().filter(|at| at.signature.thread == thread) {
        if let Some(caches) = file.caches(at).map_err(failed)? {
            intervals.push(Interval { instructions: at.signature.instructions, caches });
        }
    }
    let gaps = gaps(files, about.not_followed.as_deref());
    let About { program, command, digest, .. } = about;
    let hierarchy = *hierarchy;
    Ok(Vectors { version: VERSION, program, command, digest, hierarchy, intervals, gaps })
}

/// Instructions that the files contain so far.
pub(super) fn instructions(dir: &Path) -> u64 {
    let files = files(dir).unwrap_or_default();
    let intervals = files.iter().flat_map(|file| &file.intervals);
    intervals.map(|interval| interval.signature.instructions).sum()
}

/// Makes the profile of all that the files contain.
pub(super) fn profile(files: &[RawFile], about: About) -> Result<Profile, CaptureError> {
    let pieces: Vec<Piece<'_>> = files
        .iter()
        .enumerate()
        .flat_map(|(process, file)| {
            file.intervals.iter().map(move |at| Piece { file, process, at })
        })
        .filter(|piece| piece.at.signature.instructions > 0)
        .collect();
    let signatures: Vec<_> = pieces.iter().map(|piece| &piece.at.signature).collect();
    let clusters = cluster(&signatures);
    let mut phase_of = vec![0_u16; pieces.len()];
    for (cluster, index) in clusters.iter().zip(0_u16..) {
        for member in &cluster.members {
            phase_of[*member] = index;
        }
    }
    let mut threads = threads(&pieces, &phase_of);
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.instructions()));
    let sums: Result<Vec<Phase>, CaptureError> =
        clusters.iter().map(|cluster| sum(cluster, &pieces)).collect();
    let mut profile = Profile {
        program: about.program,
        command: about.command,
        digest: about.digest,
        instructions: threads.iter().map(Thread::instructions).sum(),
        phases: sums?,
        threads,
        gaps: gaps(files, about.not_followed.as_deref()),
    };
    if profile.phases.is_empty() {
        return Err(CaptureError::NothingRan);
    }
    let traces: Result<Vec<_>, _> =
        clusters.iter().map(|cluster| traces(cluster, &pieces)).collect();
    let mut traces = traces?;
    borrow(&mut traces);
    for phase in &mut profile.phases {
        phase.code_sketch = std::mem::take(&mut phase.code_sketch).in_program(&profile.digest);
    }
    for most in TRACES {
        for (phase, traces) in profile.phases.iter_mut().zip(&traces) {
            phase.traces = choose(traces, most);
        }
        if to_bytes(&profile)?.len() <= LONGEST_FILE {
            return Ok(profile);
        }
    }
    Err(CaptureError::TooLong { threads: profile.threads.len() })
}

fn reading(piece: &Piece<'_>, source: io::Error) -> CaptureError {
    CaptureError::Scratch { path: piece.file.path().to_owned(), source }
}

/// The threads with their phases; neighbouring intervals of one phase are one span.
fn threads(pieces: &[Piece<'_>], phase_of: &[u16]) -> Vec<Thread> {
    let mut threads: Vec<(u32, Thread)> = Vec::new();
    for (piece, &phase) in pieces.iter().zip(phase_of) {
        let process = u32::try_from(piece.process).unwrap_or(u32::MAX);
        let number = piece.at.signature.thread;
        let known = threads
            .iter()
            .rposition(|(other, thread)| *other == number && thread.process == process);
        let index = known.unwrap_or_else(|| {
            let path = Path::new(&piece.file.start.program);
            let name = path.file_name().unwrap_or(path.as_os_str());
            let program = name.to_string_lossy().into_owned();
            threads.push((number, Thread { program, process, sequence: Vec::new() }));
            threads.len() - 1
        });
        let instructions = piece.at.signature.instructions;
        let Some((_, thread)) = threads.get_mut(index) else { continue };
        match thread.sequence.last_mut() {
            Some(last) if last.phase == phase => last.instructions += instructions,
            _ => thread.sequence.push(Span { phase, instructions }),
        }
    }
    threads.into_iter().map(|(_, thread)| thread).collect()
}

/// All intervals of a cluster, added up.
fn sum(cluster: &Cluster, pieces: &[Piece<'_>]) -> Result<Phase, CaptureError> {
    let empty = SUPER_SET_CACHES.map(|(stream, sets)| SuperSetMap::empty(stream, sets));
    let mut sum = Phase { super_sets: empty.to_vec(), ..Phase::default() };
    let mut weighted = [0_u128; 4];
    let mut members = cluster.members.clone();
    members.sort_unstable();
    for member in members {
        let piece = &pieces[member];
        let phase = piece.file.phase(piece.at).map_err(|error| reading(piece, error))?;
        sum.instructions += phase.instructions;
        sum.mix.merge(&phase.mix);
        sum.branches.merge(&phase.branches);
        sum.data.merge(&phase.data);
        sum.code.merge(&phase.code);
        sum.code_sketch.merge(&phase.code_sketch);
        for (mine, more) in sum.super_sets.iter_mut().zip(&phase.super_sets) {
            mine.merge(more);
        }
        let Footprint { data_lines, written_lines, data_pages, code_lines } = phase.footprint;
        let sizes = [data_lines, written_lines, data_pages, code_lines];
        for (weighted, size) in weighted.iter_mut().zip(sizes) {
            *weighted += u128::from(size) * u128::from(phase.instructions);
        }
    }
    let total = u128::from(sum.instructions.max(1));
    let [data_lines, written_lines, data_pages, code_lines] =
        weighted.map(|weighted| u64::try_from(weighted / total).unwrap_or(u64::MAX));
    sum.footprint = Footprint { data_lines, written_lines, data_pages, code_lines };
    for region in sum.super_sets.iter_mut().flat_map(|map| &mut map.regions) {
        thin(region);
    }
    Ok(sum)
}

/// Scales counts down; their ratios stay, to one in [`REGION_SAMPLE`].
fn thin(histogram: &mut ReuseHistogram) {
    let total = histogram.sampled();
    if total <= REGION_SAMPLE {
        return;
    }
    let scale = |count: u64| {
        let scaled = u128::from(count) * u128::from(REGION_SAMPLE) + u128::from(total / 2);
        u64::try_from(scaled / u128::from(total)).unwrap_or(u64::MAX)
    };
    for count in histogram.counts.iter_mut().chain([&mut histogram.cold]) {
        *count = scale(*count);
    }
    while histogram.counts.last() == Some(&0) {
        histogram.counts.pop();
    }
}

/// Micro-traces of the intervals nearest to the centre, as many as may be used.
fn traces(cluster: &Cluster, pieces: &[Piece<'_>]) -> Result<Vec<MicroTrace>, CaptureError> {
    let most = TRACES[0];
    let mut found = Vec::new();
    for member in &cluster.members {
        let piece = &pieces[*member];
        let traces = piece.file.traces(piece.at).map_err(|error| reading(piece, error))?;
        found.extend(traces.into_iter().filter(|trace| !trace.ops.is_empty()));
        if found.len() >= most {
            break;
        }
    }
    Ok(found)
}

/// A phase too short for a micro-trace takes those of the most frequent phase
/// that has some.
fn borrow(traces: &mut [Vec<MicroTrace>]) {
    let Some(lender) = traces.iter().find(|traces| !traces.is_empty()).cloned() else { return };
    for traces in traces.iter_mut().filter(|traces| traces.is_empty()) {
        traces.clone_from(&lender);
    }
}

/// At most `most` of the micro-traces, evenly spread over the first interval
/// that they are of, then from the next.
fn choose(traces: &[MicroTrace], most: usize) -> Vec<MicroTrace> {
    let pool = traces.len().min(most.max(8));
    let count = pool.min(most);
    (0..count).filter_map(|index| traces.get(index * pool / count.max(1))).cloned().collect()
}

/// What could not be followed, in words.
pub(super) fn gaps(files: &[RawFile], not_followed: Option<&str>) -> Vec<String> {
    let mut gaps = Vec::new();
    for (process, file) in files.iter().enumerate() {
        let name = format!("process {process} ({})", file.start.program);
        if file.executed_another() {
            let pid = file.start.pid;
            let later = &files[process + 1..];
            if !later.iter().any(|next| next.start.pid == pid && !next.start.forked) {
                let why = not_followed.unwrap_or("it is not an x86-64 program, or could not start");
                gaps.push(format!("{name} executed another program that was not followed: {why}"));
            }
        } else if file.end.is_none() {
            gaps.push(format!(
                "{name} was killed, or its intervals could not be written: up to 50 million \
                 instructions of each of its threads are missing"
            ));
        }
        let unmetered = file.end.as_ref().map_or(0, |end| end.unmetered_threads);
        if unmetered > 0 {
            gaps.push(format!(
                "{name} had {unmetered} more threads than could be observed at once"
            ));
        }
    }
    gaps
}

#[cfg(test)]
mod tests;
