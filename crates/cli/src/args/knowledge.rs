//! What policies are given beforehand, as arguments.

use std::path::PathBuf;

use clap::Args;
use symbiont_model::{Form, Inversion, Objective};

/// What policies are given beforehand.
#[derive(Debug, Default, Args)]
pub struct Knowledge {
    /// Interference model that `symbiotic` and `symbiotic-numa` predict by, made by `symbiont
    /// train` of a full build; repeatable where a machine has several core types that run
    /// several threads, one for each
    #[arg(long, value_name = "FILE")]
    pub model: Vec<PathBuf>,
    /// Terms of the model that predict slowdowns: linear, delta, rank-1, rank-2, rank-3, roots,
    /// pressure, kernel [default: for fine stacks kernel, which predicts from mean stacks with
    /// co-runners; else delta, the published equations]
    #[arg(long, value_name = "NAME", value_parser = parse_form, requires = "model")]
    pub form: Option<Form>,
    /// What schedules are judged by: stp, antt or slowdown [default: stp]
    #[arg(long, value_name = "NAME", value_parser = parse_objective, requires = "model")]
    pub objective: Option<Objective>,
    /// How stacks with co-runners become stacks alone, for all forms but kernel: normalised, published,
    /// quadratic, constrained or iterated [default: constrained]
    #[arg(long, value_name = "NAME", value_parser = parse_inversion, requires = "model")]
    pub inversion: Option<Inversion>,
    /// Correct predictions for groups that ran by what was measured of them (online correction): on or off
    /// [default: on for fine stacks; off for coarse ones, as published]
    #[arg(long, value_name = "ON|OFF", value_parser = parse_switch, requires = "model")]
    pub recall: Option<bool>,
    /// Slowdowns of pairs that `oracle` knows, measured by `symbiont train` of a full build
    #[arg(long, value_name = "FILE")]
    pub slowdowns: Option<PathBuf>,
}

/// Activity vectors of the programs that run.
#[cfg(feature = "research")]
#[derive(Debug, Default, Args)]
pub struct VectorFiles {
    /// Activity vectors that `activity` schedules by, made by `symbiont profile --vectors`; repeatable, one
    /// file for each executable. Of other caches or another version of a program they are refused
    #[arg(long, value_name = "FILE")]
    pub vectors: Vec<PathBuf>,
}

fn one_of<T: Copy>(text: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T, String> {
    let known = all.iter().copied().find(|one| name(*one) == text);
    known.ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|one| name(*one)).collect();
        format!("there are: {}", names.join(", "))
    })
}

fn parse_switch(text: &str) -> Result<bool, String> {
    let name = |on: bool| if on { "on" } else { "off" };
    one_of(text, &[true, false], name)
}

fn parse_form(text: &str) -> Result<Form, String> {
    one_of(text, &Form::ALL, Form::name)
}

fn parse_objective(text: &str) -> Result<Objective, String> {
    one_of(text, &Objective::ALL, Objective::name)
}

fn parse_inversion(text: &str) -> Result<Inversion, String> {
    one_of(text, &Inversion::ALL, Inversion::name)
}
