//! From counts to dominant categories, by a catalogue's formulas.

use serde::Serialize;
use symbiont_counters::catalogue::Catalogue;
use symbiont_policy::{Variant, dominant};

use super::read::{Counts, Program, Shares};
use super::{Level1, TopdownError};

/// What dominates a program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Classified {
    /// The program.
    pub program: String,
    /// At level 1, over the whole run.
    pub top: Dominant,
    /// With the back end split, over the whole run.
    pub split: Dominant,
    /// What dominates by the file's own percentages of level 1, and its share.
    pub own: (Level1, f64),
    /// Share of all slots that the other thread had, and that was excluded.
    pub contention: f64,
    /// Second by second, at level 1; none without a series.
    pub seconds: Option<Second>,
}

/// The dominant category of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dominant {
    /// Its name in the catalogue.
    pub category: String,
    /// Its share of the slots, contention excluded.
    pub share: f64,
    /// All categories of the list with their shares.
    pub shares: Vec<(String, f64)>,
}

/// What dominates in single seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Second {
    /// Seconds that were measured.
    pub measured: usize,
    /// Share of them that each category of level 1 dominates.
    pub dominated: Shares,
    /// Share of them whose category differs from the second before.
    pub changes: f64,
}

/// Classifies a program by a catalogue.
///
/// # Errors
/// When the catalogue lacks a formula or the list of categories.
pub fn classify(program: &Program, catalogue: &Catalogue) -> Result<Classified, TopdownError> {
    let width = catalogue.slots().ok_or_else(|| TopdownError::NoSlots(catalogue.name().into()))?;
    let events = |event: &str| count(&program.counts, f64::from(width), event);
    let value = |formula: &str| {
        let value = catalogue.evaluate(formula, &events);
        let failed = |source| TopdownError::Formula { program: program.name.clone(), source };
        value.map(|value| value.value).map_err(failed)
    };
    let contention = value("smt_contention")?;
    let list = |variant: Variant| -> Result<Dominant, TopdownError> {
        let wanted = variant.to_string();
        let list = catalogue.categories().iter().find(|list| list.name == wanted);
        let list = list.ok_or_else(|| TopdownError::NoCategories {
            catalogue: catalogue.name().to_owned(),
            variant: wanted.clone(),
        })?;
        let mut shares = Vec::new();
        for name in &list.members {
            shares.push((name.clone(), value(name)? / (1.0 - contention)));
        }
        let dominant = dominant(shares.iter().map(|(_, share)| *share));
        let (category, share) = shares.get(dominant).cloned().unwrap_or_default();
        Ok(Dominant { category, share, shares })
    };
    let own = dominant(program.own);
    Ok(Classified {
        program: program.name.clone(),
        top: list(Variant::TopL)?,
        split: list(Variant::TopB2L)?,
        own: (Level1::ALL[own], program.own[own]),
        contention,
        seconds: seconds(&program.seconds),
    })
}

/// The counts as events of the Zen catalogues. The files have shares of slots
/// where these have cycles or parts, so each event stands for its formula's
/// numerator.
fn count(counts: &Counts, slots: f64, event: &str) -> Option<f64> {
    Some(match event {
        "ls_not_halted_cyc" => counts.slots / slots,
        "de_no_dispatch_per_slot.no_ops_from_frontend" => counts.frontend,
        "de_no_dispatch_per_slot.backend_stalls" => counts.backend,
        "de_no_dispatch_per_slot.smt_contention" => counts.contention,
        "de_src_op_disp.all" => counts.retiring + counts.speculation,
        "ex_ret_ops" => counts.retiring,
        // Only their ratio matters: it splits the back end.
        "ex_no_retire.not_complete" => counts.backend,
        "ex_no_retire.load_not_complete" => counts.memory,
        _ => return None,
    })
}

fn seconds(seconds: &[Shares]) -> Option<Second> {
    let categories: Vec<usize> = seconds.iter().map(|shares| dominant(*shares)).collect();
    let changes = categories.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let mut dominated = [0.0; 4];
    for category in &categories {
        dominated[*category] += 1.0 / categories.len() as f64;
    }
    let steps = categories.len().saturating_sub(1).max(1);
    (!categories.is_empty()).then(|| Second {
        measured: categories.len(),
        dominated,
        changes: changes as f64 / steps as f64,
    })
}
