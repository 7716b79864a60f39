use super::style::Style;
use comfy_table::{Cell, CellAlignment, Color, Table as Grid, TableStyle};

/// A table of text: the first column to the left, the others, which are numbers, to the right.
pub(crate) struct Table {
    grid: Grid,
    columns: usize,
}

/// How a cell is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tone {
    Plain,
    Good,
    Doubtful,
    Bad,
}

impl Table {
    /// An empty table under `head`, to be shown in `style`.
    pub(crate) fn new(head: &[&str], style: Style) -> Self {
        let mut grid = Grid::new();
        grid.load_style(TableStyle::new());
        if style.colours() {
            grid.enforce_styling();
        } else {
            grid.force_no_tty();
        }
        grid.set_header(head.iter().enumerate().map(|(i, text)| align(Cell::new(text), i)));
        for column in grid.column_iter_mut() {
            column.set_padding((0, 2));
        }
        Self { grid, columns: head.len() }
    }

    /// Adds a row; cells that are missing stay empty.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (String, Tone)>) {
        let row = cells.into_iter().take(self.columns).enumerate().map(|(i, (text, tone))| {
            let cell = align(Cell::new(text), i);
            match tone {
                Tone::Plain => cell,
                Tone::Good => cell.fg(Color::Green),
                Tone::Doubtful => cell.fg(Color::Yellow),
                Tone::Bad => cell.fg(Color::Red),
            }
        });
        self.grid.add_row(row);
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, line) in self.grid.lines().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn align(cell: Cell, column: usize) -> Cell {
    cell.set_alignment(if column == 0 { CellAlignment::Left } else { CellAlignment::Right })
}
