//! `symbiont policies`: the list.

use serde::Serialize;
use symbiont_machine::Signal;
use symbiont_policy::{CannotRun, Settings, policies};

#[derive(Debug, Serialize)]
struct Listed {
    name: &'static str,
    summary: &'static str,
    paper: Option<&'static str>,
    quantum_ms: f64,
    needs: Vec<Signal>,
    /// The option that names a file which it cannot do without.
    needs_file: Option<&'static str>,
}

/// Prints the policies, a line each or as JSON.
pub fn list(json: bool) -> anyhow::Result<()> {
    let listed: Vec<Listed> = policies()
        .iter()
        .map(|entry| Listed {
            name: entry.name,
            summary: entry.summary,
            paper: entry.paper,
            quantum_ms: entry.quantum.as_secs_f64() * 1e3,
            needs: entry.needs().into_iter().collect(),
            needs_file: match entry.check(&Settings::default(), None) {
                Err(CannotRun::Input(missing)) => Some(missing.option),
                _ => None,
            },
        })
        .collect();
    if json {
        say!("{}", serde_json::to_string_pretty(&listed)?);
        return Ok(());
    }
    for policy in &listed {
        let paper = policy.paper.map(|paper| format!(" ({paper})")).unwrap_or_default();
        let file = policy.needs_file.map(|option| format!("; needs {option}")).unwrap_or_default();
        say!("{:<14} {}{paper}{file}", policy.name, policy.summary);
    }
    Ok(())
}
