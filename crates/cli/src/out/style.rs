use console::Term;
use std::fmt::Display;
use std::io::IsTerminal;

/// Colour for a stream, or none: not a terminal, `NO_COLOR` set to anything (no-color.org), or `TERM=dumb`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    colour: bool,
    /// Columns of the terminal, if it is one.
    width: Option<usize>,
}

impl Style {
    /// The style for stderr.
    pub(crate) fn stderr() -> Self {
        Self::of(std::io::stderr().is_terminal()).within(&Term::stderr())
    }

    /// The style for stdout.
    pub(crate) fn stdout() -> Self {
        Self::of(std::io::stdout().is_terminal()).within(&Term::stdout())
    }

    /// The style for something that is a terminal or not.
    pub(crate) fn of(terminal: bool) -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        Self { colour: terminal && !no_color && !dumb, width: None }
    }

    fn within(self, terminal: &Term) -> Self {
        self.columns(terminal.size_checked().map(|(_, columns)| usize::from(columns)))
    }

    /// Returns the same for a terminal of `width` columns.
    pub(crate) fn columns(self, width: Option<usize>) -> Self {
        Self { width, ..self }
    }

    /// Columns of the terminal; `None` if lines may have any length.
    pub(crate) fn width(self) -> Option<usize> {
        self.width
    }

    /// Returns `true` if there is any colour.
    pub(crate) fn colours(self) -> bool {
        self.colour
    }

    fn paint(self, code: &str, text: impl Display) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// For what matters.
    pub(crate) fn bold(self, text: impl Display) -> String {
        self.paint("1", text)
    }

    /// For what went wrong.
    pub(crate) fn red(self, text: impl Display) -> String {
        self.paint("1;31", text)
    }

    /// For what needs a look.
    pub(crate) fn yellow(self, text: impl Display) -> String {
        self.paint("33", text)
    }
}
