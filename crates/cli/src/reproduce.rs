//! `symbiont reproduce`: published figures next to ours.

use std::time::Instant;

use anyhow::{bail, ensure};
use serde::Serialize;
use symbiont_campaign::harness::Error;
use symbiont_reproduce::{
    ABSENT, Context, Effort, Figure, Outcome, Paper, UnknownFigure, figures, page, reproduce,
    summary,
};
use symbiont_simulated::Library;

use crate::args::Reproduce;
use crate::bench::{text, time_taken};
use crate::prepare::{Bar, cache, prepare};
use crate::progress::{Figures, Terminal};

/// Runs what was asked for.
pub fn run(args: &Reproduce) -> anyhow::Result<()> {
    if args.list {
        return list(args.json);
    }
    let wanted = wanted(args)?;
    let library = Library::open(&args.profiles)?;
    let mut progress = Terminal::new(Figures::Simulated)?;
    let own = || cache().unwrap_or_default().join("traces/continuous");
    let context = Context {
        traces: args.traces.clone().unwrap_or_else(own),
        records: args.output.join("records"),
        effort: if args.quick { Effort::Quick } else { Effort::Full },
        seed: args.seed,
        workers: std::thread::available_parallelism().map_or(1, Into::into),
        library: &library,
        prepare: &|builder, profiles, modes| {
            let bar = Bar::new().map_err(|error| Error::Evaluation(error.to_string()))?;
            let prepared = prepare(builder, profiles.iter().copied(), modes, &args.kept, &bar);
            bar.end();
            prepared.map_err(|error| Error::Evaluation(error.to_string()))
        },
    };
    let begin = Instant::now();
    let outcome = reproduce(&wanted, &context, &args.output, &mut progress)?;
    progress.end();
    if args.json {
        say!("{}", serde_json::to_string_pretty(&page(&outcome, &context))?);
        return Ok(());
    }
    print(&outcome);
    say!("\n{}", time_taken(begin.elapsed()));
    let index = args.output.join("index.html");
    say!("Report: {}", index.canonicalize().unwrap_or(index).display());
    Ok(())
}

/// The figures that were asked for; all of them can be made.
fn wanted(args: &Reproduce) -> anyhow::Result<Vec<&'static Figure>> {
    let all = figures().map(|(_, figure)| figure);
    if args.all {
        return Ok(all.collect());
    }
    if let Some(paper) = args.paper.and_then(Paper::numbered) {
        let wanted: Vec<_> = all.filter(|figure| figure.paper == paper).collect();
        ensure!(
            !wanted.is_empty(),
            "nothing of {} is reproduced yet; see --list",
            paper.citation()
        );
        return Ok(wanted);
    }
    let all: Vec<&Figure> = all.collect();
    let mut wanted = Vec::new();
    for id in &args.figures {
        match all.iter().find(|figure| figure.id == id) {
            Some(figure) => wanted.push(*figure),
            None => match ABSENT.iter().find(|absent| absent.id == id) {
                Some(absent) => bail!("'{id}' is not reproduced: {}", absent.why),
                None => return Err(UnknownFigure(id.clone()).into()),
            },
        }
    }
    Ok(wanted)
}

/// A line of the list.
#[derive(Serialize)]
struct Listed {
    id: &'static str,
    paper: u8,
    place: &'static str,
    /// What it shows; none where it is not reproduced.
    title: Option<&'static str>,
    simulated: Option<bool>,
    /// Why it is not reproduced.
    absent: Option<&'static str>,
}

fn list(json: bool) -> anyhow::Result<()> {
    let present = figures().map(|(source, figure)| Listed {
        id: figure.id,
        paper: figure.paper as u8,
        place: figure.place,
        title: Some(figure.title),
        simulated: Some(source.simulated()),
        absent: None,
    });
    let absent = ABSENT.iter().map(|absent| Listed {
        id: absent.id,
        paper: absent.paper as u8,
        place: absent.place,
        title: None,
        simulated: None,
        absent: Some(absent.why),
    });
    let mut all: Vec<Listed> = present.chain(absent).collect();
    all.sort_by_key(|listed| (listed.paper, listed.absent.is_some()));
    if json {
        say!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(());
    }
    for paper in Paper::ALL {
        say!("Paper {}: {}", paper as u8, paper.citation());
        for listed in all.iter().filter(|listed| listed.paper == paper as u8) {
            let said = match (listed.title, listed.absent) {
                (Some(title), _) => title.to_owned(),
                (None, why) => format!("not reproduced: {}", why.unwrap_or_default()),
            };
            say!("  {:22} {:22} {said}", listed.id, listed.place);
        }
    }
    Ok(())
}

/// The index, and each figure's values in short.
fn print(outcome: &Outcome) {
    say!("{}", text(&summary(outcome)));
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Reproduce,
    }

    fn asked(words: &[&str]) -> anyhow::Result<Vec<&'static str>> {
        let line = Line::try_parse_from([&["reproduce"], words].concat())?;
        Ok(wanted(&line.args)?.into_iter().map(|figure| figure.id).collect())
    }

    #[test]
    fn figures_are_asked_for_by_id_paper_or_all() {
        assert_eq!(asked(&["morad-tab4", "morad-fig6"]).unwrap(), ["morad-tab4", "morad-fig6"]);
        assert!(asked(&["--paper", "2"]).unwrap().iter().all(|id| id.starts_with("morad-")));
        let ours = asked(&["--paper", "5"]).unwrap();
        assert!(!ours.is_empty() && ours.iter().all(|id| id.starts_with("symbiont-")), "{ours:?}");
        assert_eq!(asked(&["--all"]).unwrap().len(), figures().count());
    }

    #[test]
    fn what_is_not_there_is_refused_with_the_reason() {
        let refused = |words: &[&str]| asked(words).unwrap_err().to_string();
        assert!(refused(&["morad-tab9"]).contains("'morad-tab9'; `symbiont reproduce --list`"));
        assert!(refused(&["feliu-fig4"]).contains("an input"));
        assert!(refused(&["settle-tab3"]).contains("symbiont machines xsim"));
        assert!(refused(&["--paper", "7"]).contains("0..=5"));
        assert!(refused(&[]).contains("required"));
        assert!(refused(&["morad-tab4", "--all"]).contains("cannot be used with"));
    }
}
