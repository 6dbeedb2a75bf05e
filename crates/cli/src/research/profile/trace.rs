//! What a trace holds, for people and scripts.

use std::collections::HashSet;
use std::path::Path;

use indicatif::HumanCount;
use serde::Serialize;
use symbiont_profile::OpClass;
use symbiont_profile::trace::{TraceError, TraceFile};

/// What people and scripts want to know of a trace.
#[derive(Debug, Serialize)]
struct Summary {
    file: String,
    bytes: u64,
    program: String,
    command: Vec<String>,
    digest: String,
    instructions: u64,
    windows: Vec<WindowSummary>,
    gaps: Vec<String>,
}

#[derive(Debug, Serialize)]
struct WindowSummary {
    phase: u16,
    share: f64,
    start: u64,
    warm_up: u64,
    instructions: u64,
    ops: u64,
    loads: u64,
    stores: u64,
    branches: u64,
    taken: u64,
    /// Distinct 64-byte lines of data that it accesses.
    lines: usize,
    /// Of these, those that the lines before the window do not have.
    cold: usize,
    /// Lines of data and code that were used before.
    before: [usize; 2],
}

/// Reads all of a trace, so that damage is found, and summarises it.
pub(super) fn summary(path: &Path, json: bool) -> anyhow::Result<String> {
    let file = TraceFile::open(path)?;
    let windows: Result<Vec<_>, TraceError> =
        (0..file.windows().len()).map(|index| window(&file, index)).collect();
    let about = file.about().clone();
    let summary = Summary {
        file: path.display().to_string(),
        bytes: std::fs::metadata(path).map(|file| file.len()).unwrap_or(0),
        program: about.program,
        command: about.command,
        digest: about.digest,
        instructions: about.instructions,
        windows: windows?,
        gaps: about.gaps,
    };
    Ok(if json { crate::out::json(&summary)? } else { summary.text() })
}

fn window(file: &TraceFile, index: usize) -> Result<WindowSummary, TraceError> {
    let window = file.window(index)?;
    let mut count = [0_u64; OpClass::COUNT];
    let mut lines = HashSet::new();
    let (mut ops, mut taken) = (0, 0);
    for op in window.ops {
        let op = op?;
        ops += 1;
        count[op.class.index()] += 1;
        taken += u64::from(op.branch.is_some_and(|branch| branch.taken));
        lines.extend(op.address.map(|address| address / 64));
    }
    let before: HashSet<u64> = window.data.iter().map(|line| line.line).collect();
    let info = &file.windows()[index];
    Ok(WindowSummary {
        phase: info.phase,
        share: info.share,
        start: info.start,
        warm_up: info.warm_up,
        instructions: info.instructions,
        ops,
        loads: count[OpClass::Load.index()],
        stores: count[OpClass::Store.index()],
        branches: count[OpClass::Branch.index()],
        taken,
        lines: lines.len(),
        cold: lines.difference(&before).count(),
        before: [window.data.len(), window.code.len()],
    })
}

impl Summary {
    fn text(&self) -> String {
        let mut text = format!(
            "{}: {} ({} instructions, {} windows, {} KiB)\n",
            self.file,
            self.command.join(" "),
            HumanCount(self.instructions),
            self.windows.len(),
            self.bytes.div_ceil(1024),
        );
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
        table.set_header([
            "phase",
            "share",
            "start",
            "warm-up",
            "length",
            "operations",
            "loads",
            "stores",
            "branches",
            "taken",
            "lines",
            "cold",
            "lines before",
        ]);
        for window in &self.windows {
            let per = |count: u64| format!("{:.3}", count as f64 / window.instructions as f64);
            table.add_row([
                window.phase.to_string(),
                format!("{:.1} %", 100.0 * window.share),
                HumanCount(window.start).to_string(),
                HumanCount(window.warm_up).to_string(),
                HumanCount(window.instructions - window.warm_up).to_string(),
                per(window.ops),
                per(window.loads),
                per(window.stores),
                per(window.branches),
                per(window.taken),
                HumanCount(window.lines as u64).to_string(),
                HumanCount(window.cold as u64).to_string(),
                HumanCount(window.before[0] as u64).to_string(),
            ]);
        }
        text.push_str(&format!("{table}\n"));
        text.push_str("Operations, loads, stores, branches and taken ones per instruction.");
        for gap in &self.gaps {
            text.push_str(&format!("\nNot observed: {gap}"));
        }
        text
    }
}
