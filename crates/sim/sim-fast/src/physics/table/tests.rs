use super::build::Tolerance;
use super::{Places, Range, Table, build};

/// Inputs from 0 (best) over 0.4 (anchor) to 1 (worst).
fn ranges(count: usize) -> Vec<Range> {
    vec![Range::new(0.0, 0.4, 1.0); count]
}

fn table(count: usize, f: impl Fn(&[f64]) -> f64) -> (Table<1, 1>, usize) {
    let mut asked = 0;
    let table = build(&ranges(count), Tolerance::default(), &mut |x, _| {
        asked += 1;
        ([f(x) as f32], [-f(x) as f32])
    });
    (table, asked)
}

/// Points spread evenly over the unit cube.
fn points(count: usize) -> impl Iterator<Item = Vec<f64>> {
    (1..200_u32).map(move |index| {
        let step = |axis: usize| (f64::from(index) * (axis as f64 + 2.0).sqrt()).fract();
        (0..count).map(step).collect()
    })
}

fn places(table: &Table<1, 1>, input: impl Fn(usize) -> f64) -> Places {
    let mut places = Places::default();
    table.locate(input, &mut places);
    places
}

fn first(table: &Table<1, 1>, places: &Places) -> f32 {
    table.rising(places).0
}

fn worst(table: &Table<1, 1>, count: usize, f: impl Fn(&[f64]) -> f64) -> f64 {
    let miss =
        |x: &Vec<f64>| (f64::from(first(table, &places(table, |i| x[i]))) / f(x) - 1.0).abs();
    points(count).map(|x| miss(&x)).fold(0.0, f64::max)
}

#[test]
fn sums_of_functions_of_few_inputs_are_met() {
    let f =
        |x: &[f64]| 1.0 + x[0] + (2.0 * x[1]).exp() / 5.0 + x[0] * x[2] + 0.5 * x[1] * x[2] * x[3];
    let (table, _) = table(5, f);
    assert!(worst(&table, 5, f) < 0.01, "{}", worst(&table, 5, f));
}

#[test]
fn a_cliff_is_found_and_kept_steep() {
    let f = |x: &[f64]| 1.0 + if x[0] > 0.7 { 2.0 } else { 0.0 } * (1.0 + x[1]);
    let (table, _) = table(2, f);
    for x in points(2).filter(|x| (x[0] - 0.7).abs() > 0.02) {
        let miss = f64::from(first(&table, &places(&table, |i| x[i]))) / f(&x) - 1.0;
        assert!(miss.abs() < 0.06, "{x:?} by {miss}");
    }
}

#[test]
fn anchor_and_axes_are_exact() {
    let f = |x: &[f64]| 1.0 + x[0] * x[1] * x[2] * 3.0 + x[1];
    let (table, _) = table(3, f);
    assert!((f64::from(first(&table, &places(&table, |_| 0.4))) - f(&[0.4; 3])).abs() < 1e-6);
    for axis in 0..3 {
        for end in [0.0, 1.0] {
            let mut x = [0.4; 3];
            x[axis] = end;
            assert!((f64::from(first(&table, &places(&table, |i| x[i]))) - f(&x)).abs() < 1e-5);
            assert!((f64::from(table.seldom(&places(&table, |i| x[i]))[0]) + f(&x)).abs() < 1e-5);
        }
    }
}

#[test]
fn slopes_lead_to_what_is_near() {
    let f =
        |x: &[f64]| 1.0 + x[0] + (2.0 * x[1]).exp() / 5.0 + x[0] * x[2] + 0.5 * x[1] * x[2] * x[3];
    let (table, _) = table(4, f);
    let (mut straight, mut crossed) = (0, 0);
    for x in points(4) {
        // Off the ends, where slopes end.
        let x: Vec<f64> = x.iter().map(|x| 0.05 + 0.9 * x).collect();
        let (value, slopes, _) = table.rising(&places(&table, |i| x[i]));
        assert!(value >= 1.0);
        for (slope, input) in slopes.iter().zip(table.inputs()) {
            let near = |input_at: f64| {
                let moved = |i: usize| if i == input { input_at } else { x[i] };
                first(&table, &places(&table, moved))
            };
            let step = 1e-3;
            let rise = (near(x[input] + step) - near(x[input] - step)) / (2.0 * step as f32);
            // Nodes between the two bend the line.
            if (rise - slope).abs() < 0.02 * (1.0 + rise.abs()) {
                straight += 1;
            } else {
                crossed += 1;
            }
        }
        let beyond = table.rising(&places(&table, |i| x[i] + 2.0)).1;
        assert!(beyond.iter().all(|slope| *slope == 0.0));
    }
    assert!(straight > 8 * crossed, "{straight} {crossed}");
}

#[test]
fn cells_say_what_their_nodes_say() {
    let f = |x: &[f64]| {
        let together = x[0] * x[2] + 0.5 * x[1] * x[2] * x[3] + (3.0 * x[0] * x[1]).sin();
        1.0 + x[0] + (2.0 * x[1]).exp() / 5.0 + together
    };
    let (table, _) = table(4, f);
    assert!([1, 2, 3].iter().all(|order| table.terms.iter().any(|term| term.order == *order)));
    for x in points(4) {
        // Beyond the ends, too.
        let places = places(&table, |i| 1.2 * x[i] - 0.1);
        let [plain] = table.sum(&table.first, 3, &places);
        let of_cells = first(&table, &places);
        assert!((of_cells - plain).abs() < 1e-5 * plain.abs(), "{x:?}: {of_cells}, not {plain}");
    }
}

#[test]
fn an_input_without_effect_is_left_out() {
    let (one, few) = table(1, |x| 1.0 + x[0]);
    let (many, more) = table(20, |x| 1.0 + x[7]);
    assert_eq!(one.size(), many.size());
    assert!(more <= few + 5 * 19);
}

#[test]
fn beyond_the_ends_the_ends_count() {
    let (table, _) = table(1, |x| 1.0 + x[0]);
    assert!((table.rising(&places(&table, |_| 9.0)).2[0] - 2.0).abs() < 1e-6);
    assert!((table.rising(&places(&table, |_| -9.0)).2[0] - 1.0).abs() < 1e-6);
}

#[test]
fn a_damaged_table_is_not_sound() {
    let (table, _) = table(3, |x| 1.0 + x[0] + x[1] * x[2]);
    assert!(table.is_sound());
    let damage: [fn(&mut Table<1, 1>); 8] = [
        |table| table.often.truncate(1),
        |table| table.seldom.truncate(table.seldom.len() - 1),
        |table| table.first.truncate(table.first.len() - 1),
        |table| table.seldom[0][0] = f32::NAN,
        |table| table.axes.truncate(1),
        |table| table.terms[0].order = 4,
        |table| table.terms[0].nodes += 1,
        |table| table.terms[0].start = u32::MAX,
    ];
    for damage in damage {
        let mut damaged = table.clone();
        damage(&mut damaged);
        assert!(!damaged.is_sound());
    }
}

#[test]
fn an_anchor_at_an_end_works() {
    let ranges = [Range::new(0.0, 0.0, 1.0), Range::new(0.0, 1.0, 1.0)];
    let f = |x: &[f64]| 1.0 + x[0] + x[1] + 2.0 * x[0] * x[1];
    let table: Table<1, 1> =
        build(&ranges, Tolerance::default(), &mut |x, _| ([f(x) as f32], [0.0]));
    for x in points(2) {
        assert!(
            (f64::from(first(&table, &places(&table, |i| x[i]))) / f(&x) - 1.0).abs() < 0.01,
            "{x:?}"
        );
    }
}
