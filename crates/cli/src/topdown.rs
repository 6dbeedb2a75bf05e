//! `symbiont analyze topdown`: recorded programs by their dominant categories.

use anyhow::Context;
use symbiont_counters::catalogue::Catalogue;
use symbiont_experiment::topdown::{Classified, Dominant, Level1, classify, read};

use crate::args::AnalyzeTopdown;

/// The catalogue of the machine whose files are read.
const CATALOGUE: &str = "zen4";

/// Classifies the programs of a folder and prints them.
pub fn topdown(args: &AnalyzeTopdown) -> anyhow::Result<()> {
    let catalogue = Catalogue::named(CATALOGUE).context("no catalogue of Zen 4")??;
    let programs = read(&args.folder)?;
    let all: Vec<Classified> =
        programs.iter().map(|p| classify(p, &catalogue)).collect::<Result<_, _>>()?;
    if args.json {
        say!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(());
    }
    say!(
        "Shares of issue slots by the formulas of the catalogue {} ({}); slots that the other \
         thread had are excluded. Recorded elsewhere, not by this program.\n{}\n\n{}",
        catalogue.name(),
        catalogue.title(),
        table(&all),
        counted(&all)
    );
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

fn table(all: &[Classified]) -> comfy_table::Table {
    let mut drawn = comfy_table::Table::new();
    drawn.load_preset(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    drawn.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    drawn.set_header([
        "program",
        "level 1 (TopL)",
        "%",
        "the file's own",
        "%",
        "back end split (TopB2L)",
        "%",
        "excluded %",
        "seconds it dominates %",
        "changes %",
    ]);
    for one in all {
        let seconds = one.seconds.as_ref();
        let top = Level1::ALL.iter().position(|level| level.name() == one.top.category);
        let dominated = seconds.zip(top).and_then(|(s, top)| s.dominated.get(top).copied());
        let told = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), percent);
        drawn.add_row([
            one.program.clone(),
            one.top.category.clone(),
            percent(one.top.share),
            one.own.0.name().to_owned(),
            percent(one.own.1),
            one.split.category.clone(),
            percent(one.split.share),
            percent(one.contention),
            told(dominated),
            told(seconds.map(|s| s.changes)),
        ]);
    }
    drawn
}

/// How many programs each category dominates, and whether the files agree.
fn counted(all: &[Classified]) -> String {
    let count = |of: fn(&Classified) -> &Dominant| {
        let mut names: Vec<&str> = all.iter().map(|one| of(one).category.as_str()).collect();
        names.sort_unstable();
        let runs = names.chunk_by(|a, b| a == b);
        let told: Vec<String> =
            runs.filter_map(|run| Some(format!("{} {}", run.first()?, run.len()))).collect();
        told.join(", ")
    };
    let agree = all.iter().filter(|one| one.own.0.name() == one.top.category).count();
    format!(
        "{} programs. Level 1: {}. Back end split: {}.\nThe files' own totals name the same \
         category of level 1 for {agree}. Changes: seconds whose category differs from the one before.",
        all.len(),
        count(|one| &one.top),
        count(|one| &one.split),
    )
}
