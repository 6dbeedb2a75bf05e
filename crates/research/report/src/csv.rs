//! The data of a table as CSV (RFC 4180): full precision, plain ASCII numbers.
//! A column with intervals becomes four: value, low, high and n.

use super::table::{Cell, Table, Value};
use crate::stats::{Estimate, Method};

/// The table's rows under one line of heads.
pub(super) fn csv(table: &Table) -> String {
    let spread: Vec<bool> = (0..table.columns.len())
        .map(|i| table.rows.iter().filter_map(|r| r.get(i)).any(is_measured))
        .collect();
    let mut heads = Vec::new();
    for (column, &spread) in table.columns.iter().zip(&spread) {
        heads.push(column.head());
        if spread {
            heads.extend(["low", "high", "n"].map(|part| format!("{} {part}", column.name)));
        }
    }
    let mut text = line(&heads);
    for row in &table.rows {
        let fields: Vec<String> =
            row.iter().zip(&spread).flat_map(|(cell, &spread)| fields(cell, spread)).collect();
        text.push_str(&line(&fields));
    }
    text
}

fn is_measured(cell: &Cell) -> bool {
    matches!(cell.value, Value::Estimate(Estimate { method, .. }) if method != Method::Exact)
}

fn fields(cell: &Cell, spread: bool) -> Vec<String> {
    let mut fields = match &cell.value {
        Value::Text(text) => vec![text.clone()],
        Value::Count(count) => vec![count.to_string()],
        Value::Missing => vec![String::new()],
        Value::Estimate(e) => {
            let end = |end: Option<f64>| end.map(number).unwrap_or_default();
            let n = if e.method == Method::Exact { String::new() } else { e.n.to_string() };
            vec![number(e.value), end(e.low()), end(e.high()), n]
        }
    };
    fields.resize(if spread { 4 } else { 1 }, String::new());
    fields
}

fn number(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

fn line(fields: &[String]) -> String {
    let quoted: Vec<String> = fields.iter().map(|f| quote(f)).collect();
    quoted.join(",") + "\r\n"
}

fn quote(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Column;
    use crate::stats::mean_estimate;

    #[test]
    fn intervals_become_columns_and_fields_are_quoted() {
        let columns = vec![
            Column::text("program"),
            Column::number("time").unit("s"),
            Column::number("model"),
        ];
        let mut table = Table::new("t", "", columns);
        let one = mean_estimate(&[2.5]).unwrap();
        table.row(vec!["a,\"b\"".into(), one.into(), 0.5.into()]);
        table.row(vec!["c".into(), Value::Missing.into(), 2_u64.into()]);
        assert_eq!(
            csv(&table),
            "program,time (s),time low,time high,time n,model\r\n\
             \"a,\"\"b\"\"\",2.5,,,1,0.5\r\n\
             c,,,,,2\r\n"
        );
    }
}
