//! Records of finished runs, found again by what they follow from.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Experiment;
use crate::Error;
use crate::journal::{Journal, make_folder};

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    run: String,
    record: serde_json::Value,
}

/// The file of an experiment's records.
pub(super) struct Store {
    journal: Journal,
    records: BTreeMap<String, serde_json::Value>,
}

impl Store {
    /// Opens or makes `NAME.jsonl` in a folder.
    pub fn open(folder: &Path, name: &str) -> Result<Self, Error> {
        make_folder(folder)?;
        let (journal, lines) = Journal::open::<Line>(&folder.join(format!("{name}.jsonl")))?;
        let records = lines.into_iter().map(|line| (line.key, line.record)).collect();
        Ok(Self { journal, records })
    }

    /// The record of a run; none if it is not kept, or was written by code that kept something else.
    pub fn get<E: Experiment>(&self, key: &str) -> Option<E::Record> {
        serde_json::from_value(self.records.get(key)?.clone()).ok()
    }

    /// Keeps a record, and gives it as it will be read.
    pub fn put<E: Experiment>(
        &mut self,
        key: String,
        run: &E::Run,
        record: &E::Record,
    ) -> Result<E::Record, Error> {
        let unwritable = |source| Error::evaluation(format!("a record cannot be kept: {source}"));
        let text = serde_json::to_string(record).map_err(unwritable)?;
        let record: serde_json::Value = serde_json::from_str(&text).map_err(unwritable)?;
        let line = Line { key, run: run.to_string(), record };
        self.journal.append(&line)?;
        let read = serde_json::from_value(line.record.clone()).map_err(unwritable)?;
        self.records.insert(line.key, line.record);
        Ok(read)
    }
}

/// Under what a run's record is kept.
pub(super) fn key<E: Experiment>(experiment: &E, run: &E::Run) -> Result<String, Error> {
    let unwritable = |source| Error::evaluation(format!("a run cannot be written: {source}"));
    let run_text = serde_json::to_string(run).map_err(unwritable)?;
    Ok(digest(&[&experiment.name(), &experiment.basis(run), &run_text]))
}

/// SHA-256 of parts, each with its length before it, as hexadecimal digits.
#[must_use]
pub fn digest(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
