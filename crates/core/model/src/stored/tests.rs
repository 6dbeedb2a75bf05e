use proptest::prelude::*;

use super::*;
use crate::testing::model;
use crate::{Form, Shares};

#[test]
fn what_is_written_is_read_back() {
    let model = model();
    let text = model.to_text().unwrap();
    assert_eq!(Model::parse(&text).unwrap(), model);
    assert_eq!(Model::parse(&text).unwrap().to_text().unwrap(), text);
}

#[test]
fn a_saved_model_is_loaded_where_it_fits() {
    let directory = std::env::temp_dir().join(format!("symbiont-model-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("model.toml");
    let (model, catalogue) = (model(), Catalogue::named("power8").unwrap().unwrap());
    model.save(&path).unwrap();
    let here = Here { machine: &model.machine, sorts: &[model.core], catalogue: &catalogue };
    let loaded = Model::load(&path, &here);
    let absent = Model::load(&directory.join("none.toml"), &here);
    let elsewhere = Model::load(&path, &Here { machine: "a laptop", ..here });
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(loaded.unwrap(), model);
    assert!(matches!(absent.unwrap_err().problem, Problem::Io(_)));
    let message = elsewhere.unwrap_err().to_string();
    let reason = "trained on 'IBM Power System S812L', this is 'a laptop'; train one here";
    assert_eq!(message, format!("model {}: {reason}", path.display()));
}

#[test]
fn models_that_do_not_fit_are_refused_with_the_reason() {
    let model = model();
    let catalogue = Catalogue::named("power8").unwrap().unwrap();
    let here = Here { machine: &model.machine, sorts: &[model.core], catalogue: &catalogue };
    assert!(model.fits(&here).is_ok());
    let reason = |here: Here<'_>| model.fits(&here).unwrap_err().to_string();
    assert!(reason(Here { machine: "x", ..here }).contains("train one here"));
    assert!(
        reason(Here { sorts: &[CoreKind::Efficiency], ..here }).contains("here are [Efficiency]")
    );
    let both = [CoreKind::Efficiency, CoreKind::Performance];
    assert!(model.fits(&Here { sorts: &both, ..here }).is_ok());
    let other = Catalogue::named("power9").unwrap().unwrap();
    assert!(reason(Here { catalogue: &other, ..here }).contains("catalogue 'power8'"));
    let (_, text) = Catalogue::builtin().iter().find(|(name, _)| *name == "power8").unwrap();
    let changed =
        text.replacen("PM_GRP_CMPL / PM_RUN_INST_CMPL", "2 * PM_GRP_CMPL / PM_RUN_INST_CMPL", 1);
    assert_ne!(&changed, text);
    let changed = Catalogue::parse("power8.toml", &changed).unwrap();
    assert!(reason(Here { catalogue: &changed, ..here }).contains("other formulas"));
}

#[test]
fn another_version_is_refused_before_anything_else() {
    let text = model().to_text().unwrap().replacen("version = 5", "version = 4", 1);
    let error = Model::parse(&text).unwrap_err();
    assert!(matches!(error, Problem::Version(4)), "{error}");
    let future = Model::parse("version = 9\nanything = [1, 2]\n").unwrap_err();
    assert!(matches!(future, Problem::Version(9)), "{future}");
}

#[test]
fn a_model_with_a_number_that_is_not_finite_is_not_written() {
    let mut model = model();
    let trained = model.modes.get_mut(&SmtMode::Smt2).unwrap();
    trained.throttling = Some(Throttling { weights: vec![f64::NAN; 6], error: 0.0 });
    assert!(matches!(model.to_text(), Err(Problem::Content(_))));
}

#[test]
fn a_loaded_model_predicts_what_the_fitted_one_did() {
    let model = model();
    let read = Model::parse(&model.to_text().unwrap()).unwrap();
    let group = [Shares::uniform(&model.components), Shares::uniform(&model.components)];
    for form in Form::ALL {
        let predict =
            |model: &Model| model.modes[&SmtMode::Smt2].fit.model.slowdowns(form, &group).unwrap();
        assert_eq!(predict(&read), predict(&model));
    }
}

#[test]
fn any_damage_is_refused() {
    let text = model().to_text().unwrap();
    // Every place cut off, and a digit or letter changed all over the text.
    for at in (0..text.len()).step_by(37).filter(|at| text.is_char_boundary(*at)) {
        assert!(Model::parse(&text[..at]).is_err(), "cut at {at}");
        let mut bytes = text.clone().into_bytes();
        bytes[at] = if bytes[at] == b'7' { b'8' } else { b'7' };
        let Ok(changed) = String::from_utf8(bytes) else { continue };
        assert!(changed == text || Model::parse(&changed).is_err(), "changed at {at}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_panic(text in "\\PC{0,200}") {
        prop_assert!(Model::parse(&text).is_err());
        let named = format!("# x\nversion = 1\nchecksum = \"0\"\n{text}");
        prop_assert!(Model::parse(&named).is_err());
    }
}
