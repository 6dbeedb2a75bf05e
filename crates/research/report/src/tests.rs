use super::*;
use crate::stats::{Estimate, mean_estimate};
use std::path::{Path, PathBuf};

fn estimate(values: &[f64]) -> Option<Estimate> {
    Some(mean_estimate(values).unwrap())
}

fn dots() -> Plot {
    Plot::new(
        "dots",
        "Speedup by policy",
        "Two programs side by side.",
        Chart::Dots(Dots {
            mark: Mark::Dot,
            axis: Axis::new("speedup"),
            category: "program".into(),
            categories: vec!["serial".into(), "parallel, with a label long enough to wrap".into()],
            series: vec![Series {
                name: "stay".into(),
                values: vec![estimate(&[0.6, 0.7, 0.65]), None],
                references: vec![Some(0.667), None],
            }],
            reference: Some("model".into()),
        }),
    )
}

fn lines() -> Plot {
    let measured = vec![(2.0, estimate(&[0.6, 0.7]).unwrap()), (8.0, estimate(&[0.9]).unwrap())];
    let model = vec![(2.0, Estimate::exact(0.667)), (8.0, Estimate::exact(0.889))];
    Plot::new(
        "lines",
        "Speedup over cores",
        "",
        Chart::Lines(Lines {
            x: Axis::new("cores").log(),
            y: Axis::new("time").unit("ms"),
            series: vec![
                Line { name: "measured".into(), points: measured, band: Vec::new() },
                Line {
                    name: "model".into(),
                    points: model,
                    band: vec![(2.0, 0.5, 1.0), (8.0, 0.5, 1.0)],
                },
            ],
        }),
    )
}

fn matrix() -> Plot {
    let names = vec!["(∞:1)".to_owned(), "(1:1)".to_owned()];
    let one = estimate(&[0.98, 1.0, 1.02]);
    Plot::new(
        "matrix",
        "Throughput of pairs",
        "",
        Chart::Matrix(Matrix {
            row: "one".into(),
            column: "other".into(),
            rows: names.clone(),
            columns: names,
            cells: vec![vec![one, None], vec![estimate(&[1.1]), one]],
            label: "throughput over stay".into(),
            unit: None,
            neutral: 1.0,
        }),
    )
}

fn sample() -> Report {
    let mut report = Report::new("A report", "What it answers");
    report.fact("Machine", "2 CPUs");
    report.push(Block::Heading("Results".into()));
    report.push(Block::Prose("First.\n\nSecond.".into()));
    report.push(Block::Note("Noted.".into()));
    report.push(Block::Warning("Warned.".into()));
    let columns = vec![Column::text("program"), Column::number("time").unit("ms")];
    let mut table = Table::new("table", "Times.", columns);
    let time: Cell = estimate(&[1.0, 1.1, 1.2]).into();
    table.row(vec!["a".into(), time.highlight(Highlight::Better)]);
    table.row(vec!["b".into(), Value::Missing.into()]);
    table.note("Better: shorter.");
    report.push(table);
    for plot in [dots(), lines(), matrix()] {
        report.push(plot);
    }
    report
}

/// Compares with a kept file, or replaces it if `UPDATE_GOLDEN` is set.
fn golden(name: &str, got: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/report").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, got).unwrap();
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        got == want,
        "{} has changed; look at it, and accept it by UPDATE_GOLDEN=1 cargo test",
        path.display()
    );
}

fn read(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().into(), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn golden_report_is_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let written = sample().write(directory.path()).unwrap();
    assert_eq!(written.index, directory.path().join("index.html"));
    let texts = ["html", "svg", "csv", "json"];
    let mut kept = 0;
    for path in &written.files {
        let name = path.file_name().unwrap().to_str().unwrap();
        if texts.iter().any(|end| name.ends_with(end)) {
            golden(name, &std::fs::read_to_string(path).unwrap());
            kept += 1;
        }
    }
    assert_eq!((kept, written.files.len()), (9, 12));
}

#[test]
fn what_is_wider_than_the_page_scrolls_by_the_keyboard_and_shows_that_it_does() {
    let page = sample().html().unwrap();
    let scrolling: Vec<&str> = page.split("class=\"scroll\"").skip(1).collect();
    // A table, three plots, and the data of each.
    assert_eq!((scrolling.len(), page.matches("<table>").count()), (7, 4));
    for rest in scrolling {
        let tag = rest.split('>').next().unwrap();
        assert!(tag.contains("tabindex=\"0\"") && tag.contains("aria-label=\""), "{tag}");
    }
    let rule = page.split("\n.scroll {").nth(1).unwrap().split('}').next().unwrap();
    assert!(rule.contains("overflow-x: auto") && rule.contains("repeat local"), "{rule}");
    assert_eq!(rule.matches("var(--shadow), transparent").count(), 2, "{rule}");
}

#[test]
fn facts_stand_at_the_top_or_folded_where_their_block_is() {
    let mut report = sample();
    let at = |page: &str, text: &str| page.find(text).unwrap_or(usize::MAX);
    let page = report.html().unwrap();
    assert!(at(&page, "<dl>") < at(&page, "Results") && !page.contains("class=\"facts\""));
    report.blocks.insert(1, Block::Facts);
    let page = report.html().unwrap();
    let order = ["Results", "<details class=\"facts\">", "<dl>", "First."].map(|it| at(&page, it));
    assert!(order.is_sorted() && order[3] < usize::MAX, "{order:?}");
    assert_eq!(page.matches("<dl>").count(), 1);
    assert_eq!(Report::from_json(&report.to_json().unwrap()).unwrap(), report);
}

#[test]
fn the_scale_of_slowdowns_says_which_end_is_which() {
    let names = vec!["a".to_owned(), "b".to_owned()];
    let one = estimate(&[1.0]);
    let chart = Chart::Slowdowns(Matrix {
        row: "program".into(),
        column: "co-runner".into(),
        rows: names.clone(),
        columns: names,
        cells: vec![vec![one, estimate(&[2.0])], vec![one, one]],
        label: "slowdown".into(),
        unit: None,
        neutral: 1.0,
    });
    let plot = Plot::new("slowdowns", "Slowdowns", "", chart);
    let mut report = Report::new("A report", "");
    report.push(plot);
    let page = report.html().unwrap();
    for needle in ["0.500 (faster)", "2.00 (slower)"] {
        assert!(page.contains(needle), "{needle} in {page}");
    }
}

#[test]
fn same_report_gives_the_same_bytes() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    sample().write(a.path()).unwrap();
    sample().write(b.path()).unwrap();
    assert_eq!(read(a.path()), read(b.path()));
}

#[test]
fn json_reads_back_to_the_same_report() {
    let report = sample();
    let text = report.to_json().unwrap();
    assert_eq!(Report::from_json(&text).unwrap(), report);
    let later = text.replacen("\"format\": 1", "\"format\": 2", 1);
    assert!(matches!(Report::from_json(&later), Err(ReportError::Format(2))));
    assert!(matches!(Report::from_json("{}"), Err(ReportError::Json(_))));
}

/// A report where every text is `text`.
fn filled_with(text: &str) -> Report {
    let mut report = Report::new(text, text);
    report.fact(text, text);
    for block in [Block::Heading, Block::Prose, Block::Note, Block::Warning] {
        report.push(block(text.to_owned()));
    }
    let mut table =
        Table::new("table", text, vec![Column::text(text), Column::text(text).unit(text)]);
    table.row(vec![text.into(), text.into()]);
    table.note(text);
    report.push(table);
    for mut plot in [dots(), lines(), matrix()] {
        plot.title = text.to_owned();
        plot.caption = text.to_owned();
        match &mut plot.chart {
            Chart::Dots(c) => {
                c.categories.fill(text.to_owned());
                c.series[0].name = text.to_owned();
                c.axis.label = text.to_owned();
                c.reference = Some(text.to_owned());
            }
            Chart::Lines(c) => {
                c.series[0].name = text.to_owned();
                c.x.label = text.to_owned();
                c.y.unit = Some(text.to_owned());
            }
            Chart::Matrix(c) | Chart::Slowdowns(c) => {
                c.rows.fill(text.to_owned());
                c.columns.fill(text.to_owned());
                c.label = text.to_owned();
            }
        }
        report.push(plot);
    }
    report
}

/// Names of all tags of a page.
fn tags(html: &str) -> Vec<&str> {
    html.split('<').skip(1).map(|rest| rest.split([' ', '>', '\n']).next().unwrap()).collect()
}

#[test]
fn text_never_becomes_markup() {
    let hostile = "<script>alert(1)</script>\" onload='x' &amp; <b>\"#010200\" \u{1}";
    let page = filled_with(hostile).html().unwrap();
    // Stand-alone pictures must stay well-formed: the PNG is made from them.
    let directory = tempfile::tempdir().unwrap();
    filled_with(hostile).write(directory.path()).unwrap();
    let harmless = filled_with("harmless").html().unwrap();
    // Longer text wraps into more text elements, nothing else may be added.
    let kinds = |page: &str| {
        let mut kinds: Vec<String> = tags(page).into_iter().map(str::to_owned).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    };
    assert_eq!(kinds(&page), kinds(&harmless));
    assert!(!page.contains("<script") && !page.contains("onload='"));
    assert!(
        page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload=&#39;x&#39; &amp;amp;")
    );
    assert!(!page.contains('\u{1}'));
}

#[test]
fn a_row_with_the_name_of_a_section_links_to_it() {
    let mut report = Report::new("t", "s");
    let mut table = Table::new("all", "All", vec![Column::text("Figure"), Column::text("Other")]);
    table.row(vec!["fig-1".into(), "fig-1".into()]);
    table.row(vec!["fig-2".into(), "".into()]);
    report.push(table);
    for heading in ["fig-1: <first>", "Some words: more", "fig-3"] {
        report.push(Block::Heading(heading.to_owned()));
    }
    let page = report.html().unwrap();
    assert_eq!(page.matches("<a href=\"#section-fig-1\">fig-1</a>").count(), 1);
    assert!(page.contains("<h2 id=\"section-fig-1\">fig-1: &lt;first&gt;</h2>"));
    assert_eq!(page.matches("section-").count(), 2);
}

#[test]
fn a_page_needs_no_network_and_no_script() {
    let page = sample().html().unwrap();
    for forbidden in ["<script", "<link", "<img", "<iframe", "@import", "url(", "src="] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let outside: Vec<_> = page.match_indices("://").collect();
    let name_spaces = page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count();
    assert_eq!(outside.len(), name_spaces);
    // Every stand-in colour has become a variable.
    assert!(!page.contains("#0102"));
}

#[test]
fn ids_must_name_files_and_differ() {
    for id in ["", "A", "a/b", "../x", "a b", "index"] {
        let mut report = Report::new("", "");
        report.push(Table::new(id, "", Vec::new()));
        let got = report.write(&std::env::temp_dir().join("never-made"));
        assert!(matches!(got, Err(ReportError::Id(_) | ReportError::Duplicate(_))), "{id:?}");
    }
    let mut report = Report::new("", "");
    report.push(dots());
    report.push(Table::new("dots", "", Vec::new()));
    assert!(matches!(report.html(), Err(ReportError::Duplicate(_))));
}

#[test]
fn blocks_that_do_not_fit_are_named() {
    let mut report = Report::new("", "");
    let mut table = Table::new("t", "", vec![Column::text("a")]);
    table.row(vec!["1".into(), "2".into()]);
    report.push(table);
    let message = report.html().unwrap_err().to_string();
    assert_eq!(message, "table \"t\": row 0 (from 0) has 2 cells for 1 columns");

    let mut report = Report::new("", "");
    let mut plot = dots();
    if let Chart::Dots(chart) = &mut plot.chart {
        chart.series[0].values.pop();
    }
    report.push(plot);
    let message = report.html().unwrap_err().to_string();
    assert_eq!(message, "plot \"dots\": the values of \"stay\" has 1 items, not 2");
}

#[test]
fn png_has_text_without_fonts_of_the_machine() {
    // The embedded font draws the title: without it the rows would be blank.
    let svg = plot::standalone(&dots().draw().unwrap());
    let blank = svg.replace("Speedup by policy", "");
    let (with, without) = (plot::png(&svg).unwrap(), plot::png(&blank).unwrap());
    assert_eq!(with.get(1..4), Some(&b"PNG"[..]));
    assert_ne!(with, without);
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = sample().write(&file.path().join("sub")).unwrap_err();
    assert!(error.to_string().contains(file.path().to_str().unwrap()), "{error}");
}
