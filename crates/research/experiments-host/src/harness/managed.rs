//! What `symbiont run --report json` reports of a run.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use symbiont_campaign::{Error, read_json};

/// The part of its report that experiments look at. Other parts may come and
/// go with versions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ManagerFigures {
    /// Length of a quantum, in ms.
    #[serde(default)]
    pub quantum_ms: Option<f64>,
    /// What the manager used.
    pub manager: Costs,
    /// How late its loop woke; absent if it never waited.
    pub lateness_ms: Option<Lateness>,
    /// Moves, by what became of them.
    #[serde(default)]
    pub moves: Moves,
    /// What went wrong, in words.
    #[serde(default)]
    pub trouble: Vec<String>,
}

/// What the manager used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costs {
    /// CPU time of all its threads, in nanoseconds.
    pub cpu_ns: u64,
    /// Of it, until the loop began, in nanoseconds.
    #[serde(default)]
    pub start_ns: u64,
    /// Quanta that it managed.
    pub quanta: u64,
    /// Managed threads, summed over the quanta.
    pub thread_quanta: u64,
    /// Most memory that it ever had, in KiB; absent where the kernel does not report it.
    pub rss_kb: Option<u64>,
}

/// Actual less planned wake-ups of the loop, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Half of the wake-ups were later.
    pub median: f64,
    /// One in twenty was later.
    pub p95: f64,
    /// The latest.
    pub max: f64,
    /// Quanta that were over before the loop came to wait for their end.
    #[serde(default)]
    pub missed: u64,
}

/// Moves, by what became of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Moves {
    /// Applied.
    pub done: u64,
    /// The machine said no.
    pub refused: u64,
    /// Why, and how often.
    pub reasons: BTreeMap<String, u64>,
}

/// Reads a report.
///
/// # Errors
/// When it cannot be read, or says that the programs ran unmanaged: such a run must
/// never be taken for one of a policy.
pub fn read_report(path: &Path) -> Result<ManagerFigures, Error> {
    let report: Value = read_json(path)?;
    if let Some(why) = report.get("unmanaged").filter(|why| !why.is_null()) {
        let text = why.as_str().map_or_else(|| why.to_string(), str::to_owned);
        return Err(Error::Unmanaged(text));
    }
    serde_json::from_value(report).map_err(Error::json(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ManagerFigures, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        std::fs::write(&path, text).unwrap();
        read_report(&path)
    }

    #[test]
    fn a_report_is_read_whatever_else_it_holds() {
        let managed = read(
            r#"{"policy": "phases", "manager": {"cpu_ns": 7, "quanta": 2, "thread_quanta": 6,
                "rss_kb": null}, "lateness_ms": {"median": 0.1, "p95": 0.2, "max": 3.0, "missed": 0},
                "moves": {"done": 4, "gone": 1, "refused": 0, "reasons": {}}, "trouble": []}"#,
        )
        .unwrap();
        assert_eq!((managed.manager.cpu_ns, managed.manager.rss_kb), (7, None));
        assert_eq!(managed.moves.done, 4);
        assert_eq!(managed.lateness_ms.unwrap().max, 3.0);
    }

    #[test]
    fn a_run_that_was_not_managed_is_refused_with_the_reason() {
        let error = read(r#"{"unmanaged": "another manager holds the lock"}"#).unwrap_err();
        assert!(error.to_string().contains("holds the lock"), "{error}");
    }
}
