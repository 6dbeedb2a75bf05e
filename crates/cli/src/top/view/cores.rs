//! Cores: how much of each is used, and by whose threads.

use ratatui::text::{Line, Span};

use super::super::clean::{left, right, width};
use super::super::screen::{CoreRow, Screen};
use super::Colours;

/// Columns of a bar with its brackets.
const BAR: usize = 12;
/// Columns of a cell that names many programs.
const ROOMY: usize = 60;
/// Columns of the least cell that still names programs.
const NAMING: usize = 38;

/// Use of a core by others that is worth a word.
const WORTH: f64 = 0.05;

/// The title: what is in use, and what a cell shows.
fn title(screen: &Screen) -> String {
    match screen.cpus_used() {
        Some((used, others)) => {
            format!("in use: {used:.1} CPUs by these threads (|), {others:.1} by others (:)")
        }
        None => "CPUs, share in use, programs whose threads run there".to_owned(),
    }
}

/// How cores are laid out.
#[derive(Debug, Clone, Copy)]
struct Grid {
    /// Columns of a cell with the gap after it.
    cell: usize,
    across: usize,
    lines: usize,
    /// Do cells name the programs?
    names: bool,
}

impl Grid {
    /// The widest cells with which all cores fit into so many lines; else the narrowest.
    fn of(screen: &Screen, columns: usize, most: usize) -> Self {
        let all = screen.cores.len().max(1);
        let label = label_width(screen);
        let narrow = label + BAR + 3;
        let grid = |across: usize, names: bool| Self {
            cell: columns / across,
            across,
            lines: all.div_ceil(across),
            names,
        };
        let least = (columns / ROOMY).max(1);
        let naming = (least..=(columns / NAMING).max(least)).map(|across| grid(across, true));
        let mut grids = naming.chain([grid((columns / narrow).max(1), false)]);
        let fits = |grid: &Self| grid.lines <= most;
        grids.find(fits).unwrap_or(Self { lines: most, ..grid((columns / narrow).max(1), false) })
    }
}

/// Rows with the title, of `most` that there are.
pub fn height(screen: &Screen, columns: usize, most: usize) -> usize {
    if screen.cores.is_empty() || most < 2 {
        return 0;
    }
    Grid::of(screen, columns, most - 1).lines + 1
}

/// The title and the cores.
pub fn lines(
    screen: &Screen,
    columns: usize,
    height: usize,
    colours: Colours,
) -> Vec<Line<'static>> {
    if height < 2 {
        return Vec::new();
    }
    let grid = Grid::of(screen, columns, height - 1);
    let hidden = screen.cores.len().saturating_sub(grid.across * grid.lines);
    let more = if hidden > 0 { format!(" ({hidden} more are not shown)") } else { String::new() };
    let title = format!("CORES{more}  {}", title(screen));
    let mut lines = vec![Line::styled(left(&title, columns), colours.title())];
    lines.extend(cells(screen, grid, colours));
    lines
}

/// All cores as text, a line each.
pub fn text(screen: &Screen, columns: usize) -> Vec<String> {
    let grid = Grid { cell: columns, across: 1, lines: screen.cores.len(), names: true };
    let mut lines = vec![format!("CORES  {}", title(screen))];
    lines.extend(cells(screen, grid, Colours(false)).map(|line| line.to_string()));
    lines
}

/// Lines of cells, the next core beneath the one before, as people count.
fn cells(screen: &Screen, grid: Grid, colours: Colours) -> impl Iterator<Item = Line<'static>> {
    let label = label_width(screen);
    (0..grid.lines).map(move |at| {
        let cores =
            (0..grid.across).filter_map(|column| screen.cores.get(column * grid.lines + at));
        Line::from(cores.flat_map(|core| cell(core, label, grid, colours)).collect::<Vec<_>>())
    })
}

fn label_width(screen: &Screen) -> usize {
    screen.cores.iter().map(|row| width(&row.core.cpus)).max().unwrap_or(0).clamp(3, 12)
}

fn cell(row: &CoreRow, label: usize, grid: Grid, colours: Colours) -> Vec<Span<'static>> {
    let others = row.others.unwrap_or(0.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1")]
    let columns = |share: f64| (share.clamp(0.0, 1.0) * (BAR - 2) as f64).round() as usize;
    let (used, all) = (columns(row.used), columns(row.used + others));
    let inside = right(&format!("{:.0}%", ((row.used + others) * 100.0).min(100.0)), BAR - 2);
    let mark = |(at, c): (usize, char)| match c {
        ' ' if at < used => '|',
        ' ' if at < all => ':',
        c => c,
    };
    let bar: String = inside.chars().enumerate().map(mark).collect();
    let style = if row.contended { colours.warning() } else { colours.used() };
    let mut spans = vec![
        Span::raw(format!("{} [", right(&row.core.cpus, label))),
        Span::styled(bar, style),
        Span::raw("]"),
    ];
    let rest = grid.cell.saturating_sub(label + 1 + BAR);
    let mut words: Vec<String> =
        [row.programs.clone()].into_iter().filter(|it| !it.is_empty()).collect();
    if others >= WORTH {
        words.push(format!("others {:.0}%", others * 100.0));
    }
    let text = if grid.names { format!(" {}", words.join(", ")) } else { String::new() };
    spans.push(Span::raw(left(&text, rest.saturating_sub(1)) + " "));
    spans
}
