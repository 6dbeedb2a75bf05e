//! The text of a model file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use symbiont_topology::CoreKind;

use super::{Model, Problem, Score, TrainedMode, Training, VERSION};
use crate::{Coefficients, Components, Fit, SmtMode, SmtModel, Terms, Throttling};

const TITLE: &str = "# Interference model of Symbiont, made by training; edits are refused.\n";

/// The first lines; everything else may differ between versions.
#[derive(Deserialize)]
struct Head {
    version: u32,
    #[serde(default)]
    checksum: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    machine: String,
    core: CoreKind,
    catalogue: String,
    stack: String,
    training: Training,
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<Formula>,
    component: Vec<Formula>,
    #[serde(default)]
    mode: Vec<Mode>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Formula {
    name: String,
    formula: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mode {
    smt: SmtMode,
    observed: u64,
    mean_slowdown: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    throttling: Option<Throttling>,
    linear: Vec<Row>,
    delta: Vec<Row>,
    #[serde(default)]
    score: Vec<Score>,
}

/// Coefficients of one component, with their standard errors.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    component: String,
    value: Terms,
    error: Terms,
}

pub(super) fn write(model: &Model) -> Result<String, Problem> {
    let formula = |(name, formula): (&str, &str)| Formula {
        name: name.to_owned(),
        formula: formula.to_owned(),
    };
    let document = Document {
        machine: model.machine.clone(),
        core: model.core,
        catalogue: model.catalogue.clone(),
        stack: model.components.sum().to_owned(),
        training: model.training.clone(),
        scale: model.components.scale().map(formula),
        component: model.components.parts().map(formula).collect(),
        mode: model.modes.iter().map(|(smt, trained)| mode(*smt, trained, model)).collect(),
    };
    let body = toml::to_string(&document).map_err(|e| Problem::Content(e.to_string()))?;
    let text = sealed(&body);
    read(&text).map(|_| text)
}

/// The content under the first lines that belong to it.
pub(crate) fn sealed(body: &str) -> String {
    let sum = checksum(body);
    format!("{TITLE}version = {VERSION}\nchecksum = \"{sum:016x}\"\n{body}")
}

fn mode(smt: SmtMode, trained: &TrainedMode, model: &Model) -> Mode {
    let fit = &trained.fit;
    let rows = |values: &Coefficients, errors: &[Terms]| {
        let pairs = values.terms().iter().zip(errors).zip(model.components.names());
        let row = |((value, error), name): ((&Terms, &Terms), &str)| Row {
            component: name.to_owned(),
            value: *value,
            error: *error,
        };
        pairs.map(row).collect()
    };
    Mode {
        smt,
        observed: fit.observed,
        mean_slowdown: fit.model.mean_slowdown(),
        throttling: trained.throttling.clone(),
        linear: rows(fit.model.linear(), &fit.linear_errors),
        delta: rows(fit.model.delta(), &fit.delta_errors),
        score: trained.scores.clone(),
    }
}

pub(super) fn read(text: &str) -> Result<Model, Problem> {
    let damaged = |error: toml::de::Error| Problem::Damaged(error.to_string().trim().to_owned());
    let head: Head = toml::from_str(text).map_err(damaged)?;
    if head.version != VERSION {
        return Err(Problem::Version(head.version));
    }
    let body = text
        .strip_prefix(TITLE)
        .and_then(|rest| rest.splitn(3, '\n').nth(2))
        .ok_or_else(|| Problem::Damaged("its first lines are not those of a model file".into()))?;
    if head.checksum != format!("{:016x}", checksum(body)) {
        return Err(Problem::Damaged("its checksum does not fit its text".into()));
    }
    model(toml::from_str(body).map_err(damaged)?)
}

fn model(document: Document) -> Result<Model, Problem> {
    let pair = |f: Formula| (f.name, f.formula);
    let components = Components::checked(
        document.stack,
        document.scale.map(pair),
        document.component.into_iter().map(pair).collect(),
    )
    .map_err(|e| Problem::Content(e.to_string()))?;
    let mut modes = BTreeMap::new();
    for mode in document.mode {
        let smt = mode.smt;
        let wrong = |what: String| Problem::Content(format!("mode {smt}: {what}"));
        let trained = trained(mode, &components).map_err(wrong)?;
        if modes.insert(smt, trained).is_some() {
            return Err(wrong("is there twice".to_owned()));
        }
    }
    Ok(Model {
        machine: document.machine,
        core: document.core,
        catalogue: document.catalogue,
        components,
        training: document.training,
        modes,
    })
}

fn trained(mode: Mode, components: &Components) -> Result<TrainedMode, String> {
    let want = components.len();
    let split = |rows: Vec<Row>, what: &str| {
        if !rows.iter().map(|row| row.component.as_str()).eq(components.names()) {
            return Err(format!("the components of '{what}' are not those of the stack"));
        }
        let (values, errors) = rows.into_iter().map(|row| (row.value, row.error)).unzip();
        let values = Coefficients::new(values).map_err(|e| format!("'{what}': {e}"))?;
        Ok::<(_, Vec<Terms>), String>((values, errors))
    };
    let (linear, linear_errors) = split(mode.linear, "linear")?;
    if !linear.linear() {
        return Err("the coefficients of 'linear' have a delta".to_owned());
    }
    let (delta, delta_errors) = split(mode.delta, "delta")?;
    let fits = |t: &Throttling| {
        t.weights.len() == want && t.weights.iter().all(|weight| weight.is_finite())
    };
    if !mode.throttling.as_ref().is_none_or(fits) {
        return Err("'throttling' needs one finite weight for each component".to_owned());
    }
    let model = SmtModel::new(mode.mean_slowdown, linear, delta)
        .map_err(|e| format!("'mean_slowdown' or 'delta': {e}"))?;
    let fit = Fit { model, linear_errors, delta_errors, observed: mode.observed };
    Ok(TrainedMode { fit, throttling: mode.throttling, scores: mode.score })
}

/// FNV-1a, 64 bits.
fn checksum(text: &str) -> u64 {
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}
