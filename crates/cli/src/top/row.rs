//! A line of the list of threads.

/// A thread as it is shown, or several that are folded into one row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// Its number.
    pub thread: u32,
    /// Its process.
    pub process: u32,
    /// Number of its program.
    pub program_id: u32,
    /// The pod of its program.
    pub pod: Option<String>,
    /// How many threads this row stands for.
    pub threads: usize,
    /// Its program.
    pub program: String,
    /// Its program, and its own name where that is another one.
    pub name: String,
    /// `R`, `S` or `T`.
    pub state: char,
    /// Hardware thread where it runs or ran last.
    pub cpu: Option<u32>,
    /// Where it is kept.
    pub placed: Option<String>,
    /// Does a mask of ours stay?
    pub is_held: bool,
    /// Number of its core.
    pub core: Option<u32>,
    /// Share of the time for which it ran, 0 to 1.
    pub run_time: f64,
    /// Share for which it waited.
    pub wait_time: f64,
    /// The dominant category or part of the CPI stack, and its share, 0 to 1.
    pub category: Option<(String, f64)>,
    /// Instructions per cycle.
    pub ipc: Option<f64>,
    /// Predicted slowdown.
    pub predicted: Option<f64>,
    /// Achieved slowdown.
    pub achieved: Option<f64>,
    /// Programs of the other threads that ran on its core.
    pub co_runners: String,
    /// Why it is where it is.
    pub reason: String,
}
