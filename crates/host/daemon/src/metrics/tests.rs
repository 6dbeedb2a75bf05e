use std::collections::BTreeSet;

use super::*;

fn figures(done: u64, quanta: u64) -> Figures {
    let moves = [("done".to_owned(), done), ("refused".to_owned(), 0)].into();
    let reasons = [("withheld".to_owned(), [("too soon".to_owned(), 2 * done)].into())].into();
    Figures { moves, reasons, quanta, quantum: Duration::from_millis(100), ..Figures::default() }
}

fn lines(metrics: &Metrics) -> Vec<String> {
    metrics.text().lines().map(str::to_owned).collect()
}

#[test]
fn moves_are_counted_by_policy_and_outcome() {
    let mut metrics = Metrics::new();
    metrics.count("phases", &figures(3, 1), &Slowdowns::default());
    metrics.count("phases", &figures(5, 2), &Slowdowns::default());
    metrics.count("random", &figures(12, 3), &Slowdowns::default());
    let lines = lines(&metrics);
    for line in [
        "# TYPE symbiont_moves_total counter",
        "symbiont_moves_total{policy=\"phases\",outcome=\"done\"} 5",
        "symbiont_moves_total{policy=\"random\",outcome=\"done\"} 7",
        "symbiont_moves_total{policy=\"random\",outcome=\"refused\"} 0",
        "symbiont_moves_not_made_total{policy=\"random\",outcome=\"withheld\",reason=\"too soon\"} 14",
        "symbiont_quanta_total 3",
        "symbiont_quantum_seconds 0.1",
    ] {
        assert!(lines.contains(&line.to_owned()), "{line} in {lines:#?}");
    }
}

#[test]
fn a_count_that_starts_over_lowers_nothing() {
    let mut metrics = Metrics::new();
    metrics.count("stay", &figures(5, 9), &Slowdowns::default());
    metrics.count("stay", &figures(1, 2), &Slowdowns::default());
    assert!(lines(&metrics).contains(&"symbiont_quanta_total 9".to_owned()));
    metrics.measure_own(Own { cpu: Duration::from_secs(2), ..Own::default() });
    metrics.measure_own(Own { cpu: Duration::from_secs(1), ..Own::default() });
    assert!(lines(&metrics).iter().any(|line| line.starts_with("symbiont_cpu_seconds_total 2")));
}

#[test]
fn slowdowns_that_are_not_known_are_absent() {
    let mut metrics = Metrics::new();
    metrics.count("phases", &figures(0, 1), &Slowdowns::default());
    assert!(!metrics.text().contains("slowdown_ratio_count"), "{}", metrics.text());
    let slowdowns = Slowdowns { predicted: vec![1.1, 1.5], achieved: vec![1.25] };
    metrics.count("symbiotic", &figures(0, 2), &slowdowns);
    let lines = lines(&metrics);
    for line in [
        "symbiont_predicted_slowdown_ratio_sum{policy=\"symbiotic\"} 2.6",
        "symbiont_predicted_slowdown_ratio_count{policy=\"symbiotic\"} 2",
        "symbiont_achieved_slowdown_ratio_sum{policy=\"symbiotic\"} 1.25",
        "symbiont_achieved_slowdown_ratio_bucket{policy=\"symbiotic\",le=\"1.3\"} 1",
    ] {
        assert!(lines.iter().any(|l| l == line), "{line} in {lines:#?}");
    }
}

#[test]
fn own_figures_are_read() {
    let own = Own::read(Duration::from_secs(1));
    assert!(own.resident_bytes.is_some_and(|bytes| bytes > 4096), "{own:?}");
    assert!(own.descriptors.is_some_and(|count| count >= 3), "{own:?}");
}

/// Names of all samples, and of their labels.
fn published() -> (BTreeSet<String>, BTreeSet<String>) {
    let mut metrics = Metrics::new();
    let slowdowns = Slowdowns { predicted: vec![1.0], achieved: vec![1.0] };
    metrics.count("symbiotic", &figures(1, 1), &slowdowns);
    metrics.pods.set(&[(OfPod::new("shop", "web-0"), PodFigures::default())].into());
    let text = metrics.text();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let (mut names, mut labels) = (BTreeSet::new(), BTreeSet::new());
    for sample in samples {
        let end = sample.find(['{', ' ']).unwrap();
        names.insert(sample[..end].to_owned());
        labels.extend(words(sample).filter(|(_, after)| after.starts_with("=\"")).map(|w| w.0));
    }
    (names, labels)
}

/// The words of an expression with what follows each.
fn words(text: &str) -> impl Iterator<Item = (String, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let starts =
        text.char_indices().filter(move |(at, c)| is_part(*c) && !text[..*at].ends_with(is_part));
    starts.map(move |(at, _)| {
        let rest = &text[at..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        (rest[..end].to_owned(), &rest[end..])
    })
}

/// All values of a key, anywhere in a document.
fn values<'d>(document: &'d serde_json::Value, key: &str, found: &mut Vec<&'d str>) {
    match document {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                found.extend(value.as_str().filter(|_| name == key));
                values(value, key, found);
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| values(item, key, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_names_metrics_and_labels_that_exist() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../packaging/grafana-dashboard.json");
    let dashboard: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (names, mut labels) = published();
    // Prometheus adds it to each series.
    labels.insert("instance".to_owned());
    let mut expressions = Vec::new();
    values(&dashboard, "expr", &mut expressions);
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(expressions.len() >= panels.len() && !panels.is_empty());
    let mut shown = BTreeSet::new();
    for expression in expressions {
        let used: Vec<String> =
            words(expression).map(|w| w.0).filter(|w| w.starts_with("symbiont_")).collect();
        assert!(!used.is_empty(), "{expression}");
        for name in &used {
            assert!(names.contains(name), "there is no {name}: {expression}");
        }
        shown.extend(used);
        let matched = words(expression).filter(|(_, after)| after.starts_with(['=', '!']));
        for (label, _) in matched {
            assert!(labels.contains(&label), "there is no label {label}: {expression}");
        }
        for by in expression.split("by (").skip(1) {
            let grouped = by.split_once(')').unwrap().0;
            assert!(grouped.split(", ").all(|label| labels.contains(label)), "{expression}");
        }
    }
    let mut legends = Vec::new();
    values(&dashboard, "legendFormat", &mut legends);
    for label in legends.iter().flat_map(|text| text.split("{{").skip(1)) {
        assert!(labels.contains(label.split_once("}}").unwrap().0), "{label}");
    }
    let hidden: Vec<&String> = names.difference(&shown).collect();
    assert_eq!(hidden, ["symbiont_build_info"], "what is published is also shown");
}
