use std::collections::BTreeSet;

use symbiont_sim_fast::description::Description;
use symbiont_topology::PuId;

use super::*;
use crate::Library;
use crate::training::synthetic;
use symbiont_campaign::carry_out;

#[test]
fn each_program_is_dealt_as_often_as_any_other() {
    let programs: Vec<String> = (0..23).map(|at| format!("p{at}")).collect();
    let dealt = deal(&programs, 28, 1);
    let of = |name: &String| dealt.iter().filter(|one| *one == name).count();
    assert!(programs.iter().all(|name| (1..=2).contains(&of(name))), "{dealt:?}");
    assert_eq!((dealt.len(), &dealt), (28, &deal(&programs, 28, 1)));
    assert_ne!(dealt, deal(&programs, 28, 2));
    assert!(deal(&[], 3, 1).is_empty());
}

#[test]
fn programs_are_drawn_independently_of_each_other() {
    let programs: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
    let drawn: Vec<Vec<String>> = (0..400).map(|seed| draw(&programs, 4, seed)).collect();
    let all_differ =
        drawn.iter().filter(|mix| mix.iter().collect::<BTreeSet<_>>().len() == 4).count();
    // 4! of 4^4 draws, 9.4 %; a deal gives all of them.
    assert!((20..60).contains(&all_differ), "{all_differ}");
    assert!(programs.iter().all(|name| drawn.iter().filter(|mix| mix[0] == *name).count() > 70));
    assert!(draw(&[], 3, 1).is_empty());
}

#[test]
fn equal_contenders_give_equal_records() {
    let names = ["synthetic-integer", "synthetic-chasing", "synthetic-float", "synthetic-branchy"];
    let profiles = Library::default().load_all(names).unwrap();
    let builder = TableBuilder::new(Description::named("xeon-e5-2620v4").unwrap());
    let allowed: CpuSet = {
        let cores = builder.description().topology.cores().iter().take(2);
        cores.flat_map(|core| core.cpus.iter()).collect()
    };
    let programs: Vec<String> = names.map(str::to_owned).to_vec();
    let mixes = Mixes {
        name: "test".to_owned(),
        builder: &builder,
        profiles: &profiles,
        mixes: vec![Mix {
            name: "m".to_owned(),
            programs,
            phased: Vec::new(),
            groups: Vec::new(),
            allowed,
        }],
        contenders: vec![
            Contender::new("one", "random"),
            Contender::new("same", "random"),
            Contender { mixes: Some(0), ..Contender::new("none", "stay") },
            Contender { repeats: Some(1), ..Contender::new("first", "stay") },
            Contender { repeats: Some(1), width: Some(1), ..Contender::new("narrow", "stay") },
        ],
        repeats: Repeats { least: 2, most: 4, narrow: 0.01 },
        alone: Duration::from_millis(300),
        seed: 1,
        basis: Default::default(),
        targets: Mutex::default(),
        models: &[],
    };
    let folder = tempfile::tempdir().unwrap();
    let finished = carry_out(&mixes, folder.path(), 2, &mut ()).unwrap();
    assert_eq!(finished.len(), 6, "equal after the fewest repeats");
    let of = |name: &str| -> Vec<&MixRecord> {
        finished.iter().filter(|it| it.run.contender == name).map(|it| &it.record).collect()
    };
    assert_eq!(of("one"), of("same"));
    assert_ne!(of("one")[0], of("one")[1], "repeats start differently");
    assert_eq!((of("none").len(), of("first").len()), (0, 1));
    let stp = |name: &str| Metric::Stp.of(of(name)[0].speedups.as_ref().unwrap()).unwrap();
    assert!(stp("narrow") < 0.9 * stp("first"), "half of the hardware threads do less");
    let rows = rows(&mixes.mixes, &finished);
    let gains = rows.gains("m", "same", "one", Metric::Stp);
    assert!(gains.iter().all(|gain| *gain == 0.0), "{gains:?}");
}

#[test]
fn a_model_with_programs_left_out_knows_none_of_the_mix() {
    let observed = synthetic::training(8, 0, 1);
    let models = observed.models().unwrap();
    let known = Model::clone(&models.without(&[], 2).unwrap());
    let settings = Settings { models: Some(Arc::new(known.into())), ..Settings::default() };
    let contender = Contender { settings, left_out: true, ..Contender::new("own", "symbiotic") };
    let programs = synthetic::names(8)[..4].to_vec();
    let mix = Mix {
        name: "m".to_owned(),
        programs: programs.clone(),
        phased: Vec::new(),
        groups: Vec::new(),
        allowed: (0..2).map(PuId).collect(),
    };
    let builder = TableBuilder::new(Description::named("power8-s812l").unwrap());
    let profiles = BTreeMap::new();
    let left_out = [&models];
    let mixes = |models: usize| Mixes {
        name: "test".to_owned(),
        builder: &builder,
        profiles: &profiles,
        mixes: Vec::new(),
        contenders: Vec::new(),
        repeats: Repeats::exactly(1),
        alone: Duration::from_secs(1),
        seed: 1,
        basis: Default::default(),
        targets: Mutex::default(),
        models: &left_out[..models],
    };
    let reported = |contender: &Contender| {
        let settings = mixes(1).settings(&mix, contender).unwrap();
        settings.models.unwrap().first.training.programs.clone()
    };
    assert_eq!(reported(&contender), synthetic::names(8)[4..]);
    assert_eq!(reported(&Contender { left_out: false, ..contender.clone() }), synthetic::names(8));
    assert!(mixes(0).settings(&mix, &contender).is_err(), "never a model that knows them");
}
