//! A strict reader of the Prometheus text format (version 0.0.4), written from its description.

use std::collections::{BTreeMap, BTreeSet};

/// A metric with its samples, by labels as written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metric {
    pub kind: String,
    pub help: String,
    pub samples: BTreeMap<Series, f64>,
}

/// Name and labels.
pub type Series = (String, BTreeMap<String, String>);

/// The metrics by name; a message for the first line that breaks a rule.
pub fn parse(text: &str) -> Result<BTreeMap<String, Metric>, String> {
    if !text.ends_with('\n') {
        return Err("the last line has no end".to_owned());
    }
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        let wrong = |why: &str| format!("{why}: {line}");
        if let Some(comment) = line.strip_prefix("# ") {
            let (keyword, rest) = comment.split_once(' ').ok_or_else(|| wrong("a comment"))?;
            let (name, value) = rest.split_once(' ').ok_or_else(|| wrong("no value"))?;
            if current != name {
                if metrics.contains_key(name) {
                    return Err(wrong("a metric in two places"));
                }
                current = name.to_owned();
            }
            let metric = metrics.entry(current.clone()).or_default();
            let field = match keyword {
                "HELP" => &mut metric.help,
                "TYPE" if ["counter", "gauge", "histogram"].contains(&value) => &mut metric.kind,
                _ => return Err(wrong("an unknown comment")),
            };
            if !field.is_empty() || !metric.samples.is_empty() {
                return Err(wrong("said twice or too late"));
            }
            value.clone_into(field);
        } else {
            let (series, value) = sample(line).ok_or_else(|| wrong("not a sample"))?;
            let metric = metrics.get_mut(&current).ok_or_else(|| wrong("no type"))?;
            let suffixes: &[&str] = match metric.kind.as_str() {
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            if !suffixes.iter().any(|suffix| series.0 == format!("{current}{suffix}")) {
                return Err(wrong("a sample of another metric"));
            }
            if metric.samples.insert(series, value).is_some() {
                return Err(wrong("a series twice"));
            }
        }
    }
    metrics.iter().try_for_each(|(name, metric)| check(name, metric))?;
    Ok(metrics)
}

/// `name{label="value",…} number`.
fn sample(line: &str) -> Option<(Series, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    let mut rest = rest;
    if let Some(mut inside) = rest.strip_prefix('{') {
        while !inside.starts_with('}') {
            let (label, after) = inside.split_once("=\"")?;
            let end = after.find('"')?;
            let (value, after) = after.split_at(end);
            if !is_name(label) || value.contains('\\') {
                return None;
            }
            labels.insert(label.to_owned(), value.to_owned());
            inside = after.strip_prefix('"')?;
            inside = inside.strip_prefix(',').unwrap_or(inside);
        }
        rest = inside.strip_prefix('}')?;
    }
    let value: f64 = rest.strip_prefix(' ')?.parse().ok()?;
    is_name(name).then(|| ((name.to_owned(), labels), value))
}

fn is_name(name: &str) -> bool {
    let letters = |c: char| c.is_ascii_lowercase() || c == '_';
    name.starts_with(letters) && name.chars().all(|c| letters(c) || c.is_ascii_digit())
}

/// The conventions for names, and what makes a histogram.
fn check(name: &str, metric: &Metric) -> Result<(), String> {
    if metric.kind.is_empty() || metric.help.is_empty() {
        return Err(format!("{name} has no type or no help"));
    }
    if (metric.kind == "counter") != name.ends_with("_total") {
        return Err(format!("{name} is named like another type than {}", metric.kind));
    }
    let counted = metric.kind != "gauge";
    if counted && !metric.samples.values().all(|value| *value >= 0.0) {
        return Err(format!("{name} counts below zero"));
    }
    if metric.kind == "histogram" { check_histogram(name, metric) } else { Ok(()) }
}

fn check_histogram(name: &str, metric: &Metric) -> Result<(), String> {
    let mut buckets: BTreeMap<BTreeMap<String, String>, Vec<(f64, f64)>> = BTreeMap::new();
    for ((series, labels), value) in &metric.samples {
        let mut labels = labels.clone();
        if series.ends_with("_bucket") {
            let bound = labels.remove("le").and_then(|bound| bound.parse().ok());
            let bound: f64 = bound.ok_or_else(|| format!("{name} has a bucket without bound"))?;
            buckets.entry(labels).or_default().push((bound, *value));
        }
    }
    let labels: BTreeSet<_> = buckets.keys().cloned().collect();
    for (labels, mut buckets) in buckets {
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let rises = buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1);
        let count = metric.samples.get(&(format!("{name}_count"), labels.clone()));
        let last = buckets.last().filter(|(bound, _)| bound.is_infinite()).map(|(_, all)| all);
        if !rises || count.is_none() || count != last {
            return Err(format!("{name}{labels:?}: {buckets:?} do not add up to {count:?}"));
        }
    }
    match labels.is_empty() && !metric.samples.is_empty() {
        true => Err(format!("{name} has no buckets")),
        false => Ok(()),
    }
}

/// Series of counters and histograms that became less, or went away.
pub fn fallen(before: &BTreeMap<String, Metric>, after: &BTreeMap<String, Metric>) -> Vec<Series> {
    let counted = before.iter().filter(|(_, metric)| metric.kind != "gauge");
    let now = |name: &str, series: &Series| after.get(name)?.samples.get(series).copied();
    counted
        .flat_map(|(name, metric)| metric.samples.iter().map(move |sample| (name, sample)))
        .filter(|(name, (series, value))| now(name, series).is_none_or(|now| now < **value))
        .map(|(_, (series, _))| series.clone())
        .collect()
}

/// What breaks a rule is refused; without this the other tests would prove nothing.
pub fn refuses_what_breaks_a_rule() {
    let good = "# HELP a_total A.\n# TYPE a_total counter\na_total{x=\"1\"} 2\n";
    assert_eq!(parse(good).unwrap()["a_total"].samples.len(), 1);
    for bad in [
        "# HELP a_total A.\n# TYPE a_total counter\na_total 2",
        "a_total 2\n",
        "# HELP a A.\n# TYPE a counter\na 2\n",
        "# HELP a_total A.\n# TYPE a_total gauge\na_total 2\n",
        "# HELP a_total A.\n# TYPE a_total counter\na_total -1\n",
        "# HELP a_total A.\n# TYPE a_total counter\na_total two\n",
        "# HELP a_total A.\n# TYPE a_total counter\na_total 1\na_total 1\n",
        "# HELP a A.\n# TYPE a gauge\nb 1\n",
        "# HELP a A.\n# TYPE a gauge\na{x=1} 1\n",
        "# TYPE a gauge\na 1\n",
        "# UNIT a seconds\n",
        "# EOF\n",
        "# HELP a A.\n# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 2\n",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
    let more = good.replace("} 2", "} 3");
    let (low, high) = (parse(good).unwrap(), parse(&more).unwrap());
    assert_eq!((fallen(&low, &high).len(), fallen(&high, &low).len()), (0, 1));
}
