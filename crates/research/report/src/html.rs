//! The page: all of a report in one file, without script or network.

use super::number;
use super::plot::{DARK, LIGHT, Plot, inline};
use super::table::{Align, Cell, Highlight, Table, Value};
use super::{Block, Report, ReportError};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const STYLE: &str = include_str!("html/style.css");

/// The whole page.
pub(super) fn page(report: &Report) -> Result<String, ReportError> {
    let mut body = String::new();
    let sections: BTreeSet<&str> = report.blocks.iter().filter_map(section).collect();
    for block in &report.blocks {
        body.push_str(&match block {
            Block::Facts => folded_facts(&report.facts),
            block => block_html(block, &sections)?,
        });
    }
    let open = if report.blocks.contains(&Block::Facts) { &[][..] } else { &report.facts };
    let (title, subtitle) = (escape(&report.title), escape(&report.subtitle));
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{}{STYLE}</style>\n</head>\n<body>\n<header>\n\
         <h1>{title}</h1>\n<p class=\"subtitle\">{subtitle}</p>\n{}</header>\n<main>\n{body}\
         </main>\n<p class=\"files\">All data: <a href=\"report.json\">report.json</a></p>\n\
         </body>\n</html>\n",
        palettes(),
        facts(open),
    ))
}

/// `text` such that it is nothing but text, in content and in quoted
/// attributes.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Control characters have no place in a page.
            c if c.is_control() && !c.is_whitespace() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Colours as variables: light, dark if the reader's system is, light on paper.
fn palettes() -> String {
    let list = |palette: &[(&str, &str)]| {
        palette.iter().fold(String::new(), |mut css, (name, color)| {
            let _ = write!(css, "{name}: {color}; ");
            css
        })
    };
    format!(
        ":root {{ {}}}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {}}} }}\n",
        list(&LIGHT),
        list(&DARK)
    )
}

fn facts(facts: &[(String, String)]) -> String {
    if facts.is_empty() {
        return String::new();
    }
    let items: String = facts
        .iter()
        .map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(value)))
        .collect();
    format!("<dl>\n{items}</dl>\n")
}

fn folded_facts(all: &[(String, String)]) -> String {
    let list = facts(all);
    if list.is_empty() {
        return list;
    }
    let summary = "What the figures rest on: machines, programs, runs";
    format!("<details class=\"facts\"><summary>{summary}</summary>\n{list}</details>\n")
}

/// What a heading of the form "ID: text" can be found by.
fn section(block: &Block) -> Option<&str> {
    let Block::Heading(text) = block else { return None };
    let (id, _) = text.split_once(": ")?;
    let is_id = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (!id.is_empty() && id.chars().all(is_id)).then_some(id)
}

fn heading(text: &str, section: Option<&str>) -> String {
    let id = section.map_or_else(String::new, |id| format!(" id=\"section-{id}\""));
    format!("<h2{id}>{}</h2>\n", escape(text))
}

fn block_html(block: &Block, sections: &BTreeSet<&str>) -> Result<String, ReportError> {
    Ok(match block {
        Block::Heading(text) => heading(text, section(block)),
        Block::Prose(text) => paragraphs(text),
        Block::Note(text) => aside("note", "Note", text),
        Block::Warning(text) => aside("warning", "Warning", text),
        Block::Table(table) => table_html(table, sections),
        Block::Plot(plot) => plot_html(plot)?,
        Block::Facts => String::new(),
    })
}

fn paragraphs(text: &str) -> String {
    text.split("\n\n")
        .map(str::trim)
        .filter(|p| !p.is_empty())
        .map(|p| format!("<p>{}</p>\n", escape(p)))
        .collect()
}

fn aside(class: &str, label: &str, text: &str) -> String {
    let text = paragraphs(text).replacen("<p>", &format!("<p><strong>{label}:</strong> "), 1);
    format!("<aside class=\"{class}\">\n{text}</aside>\n")
}

fn table_html(table: &Table, sections: &BTreeSet<&str>) -> String {
    let id = escape(&table.id);
    let about = number::uncertainty(table.estimates()).unwrap_or_default();
    let notes: String = table.notes.iter().map(|n| format!("<li>{}</li>\n", escape(n))).collect();
    let notes =
        if notes.is_empty() { notes } else { format!("<ul class=\"notes\">\n{notes}</ul>\n") };
    format!(
        "<figure id=\"{id}\">\n{}{notes}<p class=\"files\"><a href=\"{id}.csv\">CSV</a></p>\n</figure>\n",
        scrolling(
            &table.caption,
            &format!(
                "<table>\n<caption><b>{}</b> {}</caption>\n{}</table>\n",
                escape(&table.caption),
                escape(&about),
                rows(table, sections)
            )
        )
    )
}

/// What may be wider than the page: it scrolls by itself, by the keyboard too, and shadows at its sides say so.
fn scrolling(name: &str, content: &str) -> String {
    let name = escape(name);
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{name}\">\n{content}</div>\n"
    )
}

/// Rows; one whose head is that of a section links to it.
fn rows(table: &Table, sections: &BTreeSet<&str>) -> String {
    let mut html = "<thead>\n<tr>".to_owned();
    for column in &table.columns {
        let class = class(&[align(column.align)]);
        let _ = write!(html, "<th scope=\"col\"{class}>{}</th>", escape(&column.head()));
    }
    html.push_str("</tr>\n</thead>\n<tbody>\n");
    for row in &table.rows {
        html.push_str("<tr>");
        for (i, (cell, column)) in row.iter().zip(&table.columns).enumerate() {
            let (style, spoken) = highlight(cell.highlight);
            let class = class(&[align(column.align), style]);
            let (open, close) = if i == 0 { ("th scope=\"row\"", "th") } else { ("td", "td") };
            let content = match &cell.value {
                Value::Text(text) if i == 0 && sections.contains(text.as_str()) => {
                    format!("<a href=\"#section-{text}\">{text}</a>")
                }
                _ => content(cell),
            };
            let _ = write!(html, "<{open}{class}>{content}{spoken}</{close}>");
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n");
    html
}

fn content(cell: &Cell) -> String {
    match &cell.value {
        Value::Text(text) => escape(text),
        Value::Count(count) => count.to_string(),
        Value::Missing => "–".to_owned(),
        Value::Estimate(e) => number::interval(e).map_or_else(
            || number::value(e),
            |interval| format!("{} <span class=\"interval\">{interval}</span>", number::value(e)),
        ),
    }
}

fn plot_html(plot: &Plot) -> Result<String, ReportError> {
    let id = escape(&plot.id);
    let drawn = plot.draw().map_err(|source| ReportError::Plot { id: plot.id.clone(), source })?;
    let picture = inline(&drawn, &escape(&plot.description()));
    let data = plot.data();
    let png = match cfg!(feature = "png") {
        true => format!("<a href=\"{id}.png\">PNG</a> · "),
        false => String::new(),
    };
    Ok(format!(
        "<figure id=\"{id}\">\n{}<figcaption>{}</figcaption>\n\
         <details><summary>Data and files</summary>\n<p class=\"files\">\
         <a href=\"{id}.svg\">SVG</a> · {png}<a href=\"{id}.csv\">CSV</a></p>\n{}</details>\n</figure>\n",
        scrolling(&plot.title, &picture),
        escape(&plot.full_caption()),
        scrolling(&data.caption, &format!("<table>\n{}</table>\n", rows(&data, &BTreeSet::new())))
    ))
}

fn align(align: Align) -> &'static str {
    match align {
        Align::Text => "",
        Align::Number => "number",
    }
}

/// Class of a highlight, and what is said where it can't be seen.
fn highlight(highlight: Highlight) -> (&'static str, &'static str) {
    match highlight {
        Highlight::Plain => ("", ""),
        Highlight::Strong => ("strong", ""),
        Highlight::Better => ("better", "<span class=\"unseen\"> (better)</span>"),
        Highlight::Worse => ("worse", "<span class=\"unseen\"> (worse)</span>"),
        Highlight::Muted => ("muted", ""),
    }
}

fn class(names: &[&str]) -> String {
    let names: Vec<&str> = names.iter().copied().filter(|n| !n.is_empty()).collect();
    if names.is_empty() { String::new() } else { format!(" class=\"{}\"", names.join(" ")) }
}
