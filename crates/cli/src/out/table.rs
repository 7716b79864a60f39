use super::style::Style;
use comfy_table::{Cell, CellAlignment, Color, Table as Grid, TableStyle};
use console::measure_text_width;
use std::fmt;

/// A table of text: the first column to the left, the others, which are numbers, to the right. On a
/// terminal that is too narrow for it, a block of lines for each row.
pub(crate) struct Table {
    grid: Grid,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    width: Option<usize>,
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
        Self { grid, head: head.iter().map(|&text| text.to_owned()).collect(), rows: Vec::new(), width: style.width() }
    }

    /// Adds a row; cells that are missing stay empty.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (String, Tone)>) {
        let mut texts = Vec::new();
        let row = cells.into_iter().take(self.head.len()).enumerate().map(|(i, (text, tone))| {
            let cell = align(Cell::new(&text), i);
            texts.push(text);
            match tone {
                Tone::Plain => cell,
                Tone::Good => cell.fg(Color::Green),
                Tone::Doubtful => cell.fg(Color::Yellow),
                Tone::Bad => cell.fg(Color::Red),
            }
        });
        self.grid.add_row(row.collect::<Vec<_>>());
        self.rows.push(texts);
    }

    /// For each row its first cell, then a line for each of the others with what stands above it.
    fn blocks(&self) -> Vec<String> {
        let widest = self.head.iter().skip(1).map(|text| measure_text_width(text)).max().unwrap_or(0);
        let line = |(head, text): (&String, &String)| {
            let gap = widest - measure_text_width(head);
            format!("  {head}{:gap$}  {text}", "")
        };
        self.rows
            .iter()
            .flat_map(|row| row.iter().take(1).cloned().chain(self.head.iter().zip(row).skip(1).map(line)))
            .collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines: Vec<String> = self.grid.lines().map(|line| line.trim_end().to_owned()).collect();
        if self.width.is_some_and(|width| lines.iter().any(|line| measure_text_width(line) > width)) {
            lines = self.blocks();
        }
        f.write_str(&lines.join("\n"))
    }
}

fn align(cell: Cell, column: usize) -> Cell {
    cell.set_alignment(if column == 0 { CellAlignment::Left } else { CellAlignment::Right })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: Option<usize>) -> String {
        let mut table = Table::new(&["path", "state", "rate"], Style::of(false).columns(width));
        let row = |cells: [&str; 3]| cells.map(|text| (text.to_owned(), Tone::Plain));
        table.row(row(["wlan0", "active", "2.13 Mbit/s"]));
        table.row(row(["wwan0", "potentially failed", "0 bit/s"]));
        table.to_string()
    }

    #[test]
    fn a_narrow_terminal_gets_a_block_for_each_row_and_no_line_too_long() {
        let wide = "path                state         rate\nwlan0              active  2.13 Mbit/s\nwwan0  potentially failed      0 bit/s";
        assert_eq!(shown(None), wide);
        assert_eq!(shown(Some(38)), wide);
        let narrow =
            "wlan0\n  state  active\n  rate   2.13 Mbit/s\nwwan0\n  state  potentially failed\n  rate   0 bit/s";
        assert_eq!(shown(Some(37)), narrow);
    }
}
