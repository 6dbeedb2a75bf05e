use proptest::prelude::*;

use super::*;
use crate::policies;

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);
const TIME: Kind = Kind::Duration { least: MS, most: HOUR };

#[test]
fn declarations_are_sound() {
    for entry in policies() {
        let mut names: Vec<&str> = entry.parameters.iter().map(|it| it.name()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{}: each name once", entry.name);
        for parameter in entry.parameters {
            let Declaration { name, default, help, example, .. } = parameter.declaration();
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(!name.is_empty() && name.chars().all(is_plain), "{}: {name}", entry.name);
            assert!(!help.is_empty() && !help.contains('\n'), "{}: {name}", entry.name);
            assert!(!default.is_empty(), "{}: {name}", entry.name);
            let read = parameter.read(&example).expect("its example is accepted");
            assert_eq!(parameter.read(&read.to_string()), Some(read), "{}: {name}", entry.name);
        }
    }
}

#[test]
fn values_out_of_bounds_are_refused() {
    let few = Kind::Count { least: 1, most: 8 };
    for (kind, texts) in [
        (Kind::Positive, &["0", "-1", "NaN", "inf", "two", ""][..]),
        (Kind::Share, &["-0.1", "1.1", "NaN", "half"]),
        (few, &["0", "9", "1.5", "-1", "many"]),
        (TIME, &["0ms", "999us", "61min", "20", "soon"]),
        (Kind::Choice(&["TopL", "All3L"]), &["Top", ""]),
    ] {
        for text in texts {
            assert_eq!(kind.read(text), None, "{kind:?}: {text}");
        }
    }
    // A value of another type than the parameter's is none.
    let odd = Parameter::<usize>::new("odd", Kind::Share, 1, "Never");
    assert_eq!(odd.read("0.5"), None);
}

#[test]
fn words_are_read_in_any_case() {
    let words = Kind::Choice(&["TopL", "All3L"]);
    assert_eq!(words.read("topl"), Some(Value::Text("TopL".to_owned())));
}

#[test]
fn what_holds_where_nothing_is_set_is_shown() {
    let timeout = Parameter::new("timeout", TIME, Duration::from_millis(1500), "How long");
    assert_eq!(timeout.declaration().default, "1s 500ms");
    assert_eq!(timeout.written(&Duration::from_millis(500)), "timeout=500ms");
    let top: Parameter<Option<usize>> =
        Parameter::optional("top", Kind::Count { least: 1, most: 9 }, "half of them", "How many");
    assert_eq!(top.declaration().default, "half of them");
    assert_eq!(top.declaration().example, "4");
}

proptest! {
    #[test]
    fn values_are_read_as_written(
        number in f64::MIN_POSITIVE..1e300, share in 0.0..=1.0, count: usize, ns in 1_000_000..3_600_000_000_000_u64,
    ) {
        let counts = Kind::Count { least: 0, most: usize::MAX };
        for (kind, value) in [
            (Kind::Positive, Value::Number(number)),
            (Kind::Share, Value::Number(share)),
            (counts, Value::Count(count)),
            (TIME, Value::Duration(Duration::from_nanos(ns))),
        ] {
            prop_assert_eq!(kind.read(&value.to_string()), Some(value));
        }
    }
}
