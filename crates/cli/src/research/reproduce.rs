//! `symbiont reproduce`: published figures next to ours.

use std::io::Read;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use serde::Serialize;
use symbiont_campaign::{Error, Progress as _};
use symbiont_experiments_host::hardware::MeasuredPairs;
use symbiont_experiments_sim::Library;
use symbiont_experiments_sim::measured_pairs::Matrix;
use symbiont_jobs::swf;
use symbiont_reproduce::own::{OwnPrograms, ProgramUse, replaceable};
use symbiont_reproduce::{
    ABSENT, Context, Effort, Figure, GivenWorkload, Outcome, Paper, UnknownFigure, figures, page,
    reproduce, summary, takes_workload, uses,
};
use symbiont_sim_fast::ready::any_cores;

use crate::bench::progress::{Figures, Terminal};
use crate::bench::{text, time_taken};
use crate::research::args::Reproduce;
use crate::research::prepare::{Bar, cache, prepare};

/// A longer workload is refused.
const MOST_WORKLOAD_BYTES: u64 = 1 << 30;

/// The figure that measured pairs are for.
const MEASURED_PAIRS: &str = "symbiont-measured-pairs";

/// Runs what was asked for.
pub fn run(args: &Reproduce) -> anyhow::Result<()> {
    if args.list {
        return list(args.paper, args.json);
    }
    let wanted = wanted(args)?;
    let workload = args.workload.as_deref().map(|path| workload(path, &wanted)).transpose()?;
    let own = args.programs.as_deref().map(OwnPrograms::read).transpose()?.unwrap_or_default();
    let pairs = all_pairs(args, &wanted)?;
    let library = Library::open(&args.profiles)?;
    let mut progress = Terminal::new(Figures::default())?;
    let usual = || cache().unwrap_or_default().join("traces/continuous");
    let context = Context {
        traces: args.traces.clone().unwrap_or_else(usual),
        records: args.output.join("records"),
        effort: if args.quick { Effort::Quick } else { Effort::Full },
        seed: args.seed,
        workers: std::thread::available_parallelism().map_or(1, Into::into),
        library: &library,
        own,
        workload,
        pairs,
        prepare: &|builder, profiles, modes| {
            let bar = Bar::new().map_err(Error::evaluation)?;
            let uses: Vec<_> = any_cores(modes).collect();
            let prepared = prepare(builder, profiles.iter().copied(), &uses, &args.kept, &bar);
            bar.end();
            prepared.map_err(Error::evaluation)
        },
    };
    let idle = idle(&context.own, &uses(&wanted, &context))?;
    if !idle.is_empty() {
        progress.note(&format!("given, and run by none of these figures: {}", idle.join(", ")));
    }
    let begin = Instant::now();
    let outcome = reproduce(&wanted, &context, &args.output, &mut progress)?;
    progress.end();
    if args.json {
        say!("{}", crate::out::json(&page(&outcome, &context))?);
        return Ok(());
    }
    print(&outcome);
    if !context.own.is_empty() {
        say!("\n{}", programs(&outcome.uses));
    }
    say!("\n{}", time_taken(begin.elapsed()));
    let index = args.output.join("index.html");
    say!("Report: {}", index.canonicalize().unwrap_or(index).display());
    Ok(())
}

/// Measured pairs of all files, for the figure that is made from them.
fn all_pairs(args: &Reproduce, wanted: &[&Figure]) -> anyhow::Result<Vec<(String, Matrix)>> {
    let takes_pairs = wanted.iter().any(|figure| figure.id == MEASURED_PAIRS);
    ensure!(args.pairs.is_empty() || takes_pairs, "--pairs is for {MEASURED_PAIRS}");
    let mut all: Vec<(String, Matrix)> = Vec::new();
    for path in &args.pairs {
        let (name, matrix) = pairs(path)?;
        let is_there = all.iter().any(|(other, _)| *other == name);
        ensure!(!is_there, "two files of pairs are called '{name}'; rename {}", path.display());
        all.push((name, matrix));
    }
    Ok(all)
}

/// Measured pairs of a file; they are called by its folder where it is but `pairs.csv`.
fn pairs(path: &Path) -> anyhow::Result<(String, Matrix)> {
    let pairs = measured_pairs(path)?;
    let file = path.file_stem().filter(|stem| *stem != "pairs");
    let name = file.or_else(|| path.parent()?.file_name()).or(path.file_stem()).unwrap_or_default();
    let slowdowns = pairs.slowdowns();
    Ok((name.to_string_lossy().into_owned(), Matrix { programs: pairs.programs, slowdowns }))
}

/// Measured pairs of a file, of two programs at least.
pub fn measured_pairs(path: &Path) -> anyhow::Result<MeasuredPairs> {
    let shown = path.display();
    let text = symbiont_safe_open::read_to_string(path)
        .with_context(|| format!("measured pairs {shown}"))?;
    let pairs = MeasuredPairs::read(&text).with_context(|| format!("measured pairs {shown}"))?;
    ensure!(pairs.programs.len() > 1, "measured pairs {shown}: there is one program only");
    Ok(pairs)
}

/// A given workload, for figures that are all made from one.
fn workload(path: &Path, wanted: &[&Figure]) -> anyhow::Result<GivenWorkload> {
    if let Some(other) = wanted.iter().find(|figure| !takes_workload(figure)) {
        bail!(
            "'{}' is not made from a workload of jobs; --workload is for symbiont-cluster-*",
            other.id
        );
    }
    let shown = path.display();
    let mut bytes = Vec::new();
    let read = symbiont_safe_open::open(path)
        .and_then(|file| file.take(MOST_WORKLOAD_BYTES + 1).read_to_end(&mut bytes));
    read.with_context(|| format!("cannot read the workload {shown}"))?;
    ensure!(bytes.len() as u64 <= MOST_WORKLOAD_BYTES, "the workload {shown} is longer than 1 GiB");
    // Comments need not be UTF-8; a job of other bytes is refused as one.
    let log = swf::read(&String::from_utf8_lossy(&bytes))
        .with_context(|| format!("the workload {shown} is not in the Standard Workload Format"))?;
    ensure!(!log.jobs.is_empty(), "no job of the workload {shown} ran");
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(GivenWorkload { name, log })
}

/// Programs that were given and that no figure runs; it is an error if all of them are.
fn idle(own: &OwnPrograms, uses: &[ProgramUse]) -> anyhow::Result<Vec<&'static str>> {
    let runs = |name: &&'static str| uses.iter().any(|one| one.by == **name);
    let idle: Vec<&str> = own.names().filter(|name| !runs(name)).collect();
    ensure!(
        own.is_empty() || idle.len() < own.names().count(),
        "none of these figures runs a program that --programs gives ({}); \
         docs/own-programs.md says which figures run which programs",
        idle.join(", ")
    );
    Ok(idle)
}

/// Which of the papers' programs ran, and how many others stood for.
fn programs(uses: &[ProgramUse]) -> String {
    let own: Vec<&str> =
        uses.iter().filter(|one| one.is_own()).map(|one| one.by.as_str()).collect();
    let stand_ins: Vec<String> = uses
        .iter()
        .filter(|one| !one.is_own())
        .filter_map(|one| Some(format!("{} for {}", one.by, one.program?)))
        .collect();
    let stand_ins = if stand_ins.is_empty() { "none".to_owned() } else { stand_ins.join(", ") };
    format!("The papers' own programs: {}\nStand-ins: {stand_ins}", own.join(", "))
}

/// The figures that were asked for; all of them can be made.
fn wanted(args: &Reproduce) -> anyhow::Result<Vec<&'static Figure>> {
    let all = figures().map(|(_, figure)| figure);
    if args.all {
        return Ok(all.collect());
    }
    if let Some(paper) = args.paper {
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

/// Figures of a paper, or of all.
fn listed(paper: Option<Paper>) -> Vec<Listed> {
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
    let is_wanted = |listed: &Listed| paper.is_none_or(|paper| listed.paper == paper as u8);
    let mut all: Vec<Listed> = present.chain(absent).filter(is_wanted).collect();
    all.sort_by_key(|listed| (listed.paper, listed.absent.is_some()));
    all
}

fn list(paper: Option<Paper>, json: bool) -> anyhow::Result<()> {
    let all = listed(paper);
    if json {
        say!("{}", crate::out::json(&all)?);
        return Ok(());
    }
    let papers = Paper::ALL.into_iter().filter(|one| paper.is_none_or(|paper| paper == *one));
    for paper in papers {
        say!("Paper {}: {}", paper.name(), paper.citation());
        for listed in all.iter().filter(|listed| listed.paper == paper as u8) {
            let said = match (listed.title, listed.absent) {
                (Some(title), _) => title.to_owned(),
                (None, why) => format!("not reproduced: {}", why.unwrap_or_default()),
            };
            say!("  {:22} {:22} {said}", listed.id, listed.place);
        }
    }
    if paper.is_some() {
        return Ok(());
    }
    say!(
        "Programs that --programs can replace by the papers' own, and what runs where it does not"
    );
    for (name, ours) in replaceable() {
        let ours = if ours.is_empty() { "nothing".to_owned() } else { ours.join(", ") };
        say!("  {name:22} {ours}");
    }
    Ok(())
}

/// The index, and what comes of each paper.
fn print(outcome: &Outcome) {
    let tables: Vec<String> = summary(outcome).iter().map(text).collect();
    say!("{}", tables.join("\n"));
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
        for paper in Paper::ALL {
            let ids = asked(&["--paper", paper.name()]).unwrap();
            let own = |id: &&str| id.starts_with(&format!("{}-", paper.name()));
            assert!(!ids.is_empty() && ids.iter().all(own), "{ids:?}");
            assert_eq!(asked(&["--paper", paper.number()]).unwrap(), ids);
        }
        assert_eq!(asked(&["--all"]).unwrap().len(), figures().count());
    }

    #[test]
    fn figures_of_a_paper_are_listed() {
        let line = Line::try_parse_from(["reproduce", "--paper", "feliu", "--list"]).unwrap();
        let listed = listed(line.args.paper);
        assert!(line.args.list && listed.iter().all(|figure| figure.id.starts_with("feliu-")));
        let absent = listed.iter().filter(|figure| figure.absent.is_some()).count();
        assert!(absent > 0 && absent < listed.len());
    }

    #[test]
    fn a_workload_is_for_figures_of_a_cluster_and_each_bad_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let of = |id: &str, text: &[u8]| {
            let path = folder.path().join("log.swf");
            std::fs::write(&path, text).unwrap();
            let (_, figure) = figures().find(|(_, figure)| figure.id == id).unwrap();
            workload(&path, &[figure]).map_err(|error| format!("{error:#}"))
        };
        let slowdown = "symbiont-cluster-slowdown";
        let job = b"; \xe9t\xe9\n1 0 10 100 1 -1 -1 1 200 -1 1 3 1 -1 1 -1 -1 -1\n";
        let read = of(slowdown, job).unwrap();
        assert_eq!((read.name.as_str(), read.log.jobs.len()), ("log.swf", 1));
        let bad = of(slowdown, b"; x\n1 2 3\n").unwrap_err();
        assert!(bad.ends_with("Standard Workload Format: line 2: 3 fields, 18 expected"), "{bad}");
        assert!(of(slowdown, b"; none\n").unwrap_err().starts_with("no job of the workload"));
        let other = of("morad-tab4", job).unwrap_err();
        assert!(other.starts_with("'morad-tab4' is not made from a workload"), "{other}");
    }

    #[test]
    fn given_programs_that_no_figure_runs_are_named_and_refused_where_all_are() {
        let folder = tempfile::tempdir().unwrap();
        let profile = Library::default().load("synthetic-integer").unwrap();
        profile.write(&folder.path().join("p.profile")).unwrap();
        let map = folder.path().join("map");
        std::fs::write(&map, "mcf = p.profile\ngamess = p.profile\n").unwrap();
        let own = OwnPrograms::read(&map).unwrap();
        let ran = |program, by: &str| ProgramUse {
            program,
            by: by.to_owned(),
            traced: false,
            figures: Vec::new(),
        };
        let uses = [ran(Some("429.mcf"), "429.mcf"), ran(Some("403.gcc"), "gcc"), ran(None, "bwa")];
        assert_eq!(idle(&own, &uses).unwrap(), ["416.gamess"]);
        assert_eq!(
            programs(&uses),
            "The papers' own programs: 429.mcf\nStand-ins: gcc for 403.gcc"
        );
        let refused = idle(&own, &uses[1..]).unwrap_err().to_string();
        assert!(refused.contains("--programs gives (416.gamess, 429.mcf)"), "{refused}");
        assert!(idle(&OwnPrograms::default(), &[]).unwrap().is_empty());
    }

    #[test]
    fn what_is_not_there_is_refused_with_the_reason() {
        let refused = |words: &[&str]| asked(words).unwrap_err().to_string();
        assert!(refused(&["morad-tab9"]).contains("'morad-tab9'; `symbiont reproduce --list`"));
        assert!(refused(&["feliu-fig4"]).contains("an input"));
        assert!(refused(&["settle-tab3"]).contains("symbiont machines xsim"));
        assert!(refused(&["--paper", "7"]).contains("feliu, peternier, morad"));
        assert!(refused(&[]).contains("required"));
        assert!(refused(&["morad-tab4", "--all"]).contains("cannot be used with"));
    }
}
