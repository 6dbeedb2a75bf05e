use std::path::PathBuf;
use std::sync::Arc;

use symbiont_policy::{PairSlowdowns, Symbiosis};
use symbiont_sim::fast::Switches;
use symbiont_sim::machine::Errors;

use super::*;
use crate::symbiosis::Size;
use crate::training::LeftOut;
use crate::training::made_up::{names, training};

/// As many as there are profiles.
const PROGRAMS: usize = 34;

/// Groups of four of the training that README shows.
const README: usize = 600;

fn checked(left_out: &LeftOut, size: Size) -> Result<(), NoModel> {
    let programs = names(PROGRAMS);
    let table = vec![vec![1.5; PROGRAMS]; PROGRAMS];
    let slowdowns = PairSlowdowns::new("made up".to_owned(), programs.clone(), table).unwrap();
    let settings = Settings {
        symbiosis: Some(Arc::new(Symbiosis::new(left_out.model().clone()))),
        slowdowns: Some(slowdowns.into()),
        ..Settings::default()
    };
    let options = Options {
        output: PathBuf::new(),
        size,
        seed: 1,
        settings,
        switches: Switches::default(),
        errors: Errors::default(),
        workers: 1,
    };
    check(&left_out.models().unwrap(), &programs, &options)
}

fn under(policies: &[&str], size: Size) -> Size {
    Size { policies: policies.iter().map(|&policy| policy.to_owned()).collect(), ..size }
}

#[test]
fn policies_that_need_no_model_are_never_refused() {
    let without_fours = training(PROGRAMS, 0, 1);
    let free =
        ["random", "stay", "never-twice", "static", "phases", "l1-bandwidth", "hysched", "oracle"];
    assert_eq!(checked(&without_fours, under(&free, Size::full())), Ok(()));
    for needs in ["symbiotic", "symbiotic-numa"] {
        let refused = checked(&without_fours, under(&["random", needs], Size::full())).unwrap_err();
        assert_eq!(refused.policies.0, [needs]);
    }
    // Workloads of eight programs a core are run by the OS alone, whoever runs the others.
    let wide = Size { widths: vec![2], ..Size::full() };
    assert!(wide.runs_wide());
    assert_eq!(checked(&without_fours, wide), Ok(()));
}

#[test]
fn what_lacks_and_what_would_do_is_told() {
    let refused = checked(&training(PROGRAMS, 300, 1), Size::full()).unwrap_err();
    let lacking: Vec<(usize, usize, usize, usize)> =
        refused.lacking.iter().map(|l| (l.width, l.cores, l.of, l.remain)).collect();
    let want = [(4, 6, 12, 10), (4, 7, 11, 6), (4, 8, 11, 2), (4, 9, 11, 0), (4, 10, 11, 0)];
    assert_eq!(lacking, want);
    assert_eq!(refused.fit, [(2, (4..=10).collect()), (4, vec![4, 5])]);
    let text = refused.to_string();
    for told in [
        "(34 programs, 300 groups of four) for symbiotic, symbiotic-numa:",
        "smt4, 6 cores, workloads 1,2,5,6,11 of 0 to 11: 10 programs remain, and no group of 4",
        "smt4, 9 cores, all 11 workloads: 0 programs remain, and no group of 2 of only these; no \
         training of the same programs would do",
        "smt4, 8 cores, all 11 workloads: 2 programs remain, and no group of 4 of only these; not even \
         --fours 20000 leaves one to each",
        "this training does for --widths 4 --cores 4,5",
        "no model is needed for --policies random,stay,l1-bandwidth,oracle",
    ] {
        assert!(text.contains(told), "{text}");
    }
    // What is said to do does, and less does not.
    let six = || Size { widths: vec![4], cores: vec![6], workloads: 12, ..Size::full() };
    let enough = refused.lacking[0].enough.unwrap();
    assert!(text.contains(&format!("--fours {enough} leaves one to each")), "{text}");
    assert_eq!(checked(&training(PROGRAMS, enough, 1), six()), Ok(()));
    let less = checked(&training(PROGRAMS, enough - 1, 1), six()).unwrap_err();
    assert_eq!(less.lacking[0].enough, Some(enough));
    assert_eq!(
        refused.lacking.iter().map(|l| l.enough.is_some()).collect::<Vec<_>>(),
        [true, true, false, false, false]
    );
}

#[test]
fn the_training_that_readme_shows_does_for_its_short_evaluation() {
    let readme = include_str!("../../../../../README.md");
    let train = format!("symbiont train --machine power8-s812l --stack fine --fours {README} ");
    assert!(readme.contains(&train));
    assert_eq!(checked(&training(PROGRAMS, README, 1), Size::short()), Ok(()));
    // The standard one does for pairs.
    let standard = training(PROGRAMS, crate::training::Size::default().fours, 1);
    let refused = checked(&standard, Size::short()).unwrap_err();
    assert_eq!(refused.fit, [(2, vec![4, 6]), (4, vec![4])]);
    assert!(refused.lacking[0].enough.is_some_and(|enough| enough < README), "{refused}");
}
