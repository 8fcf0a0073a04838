//! Where verbs print: plain lines and aligned tables, cleaned, cut to the terminal only where there is one.

use super::CliError;
use super::escapes::{Shown, cleaned};
use crate::protocol::json;
use serde::Serialize;
use std::borrow::Cow;
use std::io::Write;
use unicode_width::UnicodeWidthStr;

/// Two streams and what is known of the terminal behind the first. Only this file writes to them, and only what was
/// cleaned.
pub struct Io<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    /// Columns, if `out` is a terminal.
    pub width: Option<usize>,
    /// `out` is a terminal that may show colours, and `NO_COLOR` is not set.
    pub colour: bool,
}

impl<'a> Io<'a> {
    /// Results go to `out`; what went wrong, and hints, to `err`.
    pub fn new(out: &'a mut dyn Write, err: &'a mut dyn Write, width: Option<usize>, colour: bool) -> Self {
        Self { out, err, width, colour }
    }
}

impl Io<'_> {
    /// One line of results, cleaned.
    pub fn line(&mut self, text: &str) -> Result<(), CliError> {
        writeln!(self.out, "{}", cleaned(text)).map_err(broken)
    }

    /// One line for the person, cleaned. Nobody hears it where there is no error stream.
    pub fn note(&mut self, text: &str) {
        // The results are what counts; a note that cannot be written is not worth failing for.
        let _ = writeln!(self.err, "{}", cleaned(text));
    }

    /// A question to the person, on a line that the answer ends.
    pub fn ask(&mut self, text: &str) -> Result<(), CliError> {
        self.out.flush().map_err(broken)?;
        write!(self.err, "{}", cleaned(text)).and_then(|()| self.err.flush()).map_err(broken)
    }

    /// Text that is ready to print.
    pub fn show(&mut self, text: &Shown) -> Result<(), CliError> {
        self.out.write_all(text.as_str().as_bytes()).map_err(broken)
    }

    /// An empty line.
    pub fn gap(&mut self) -> Result<(), CliError> {
        self.out.write_all(b"\n").map_err(broken)
    }

    /// A document, on one line for programs.
    pub fn json(&mut self, document: &impl Serialize) -> Result<(), CliError> {
        let text = json::text(document).map_err(|source| CliError::Json { source })?;
        writeln!(self.out, "{text}").map_err(broken)
    }

    /// A job's own bytes, as they are: for files and programs. A terminal gets them through `Escapes`.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        debug_assert!(self.width.is_none(), "a terminal is not written to as it comes");
        self.out.write_all(bytes).map_err(broken)
    }

    /// Everything so far is seen now.
    pub fn flush(&mut self) -> Result<(), CliError> {
        self.out.flush().map_err(broken)
    }
}

/// The output is gone, or full.
const fn broken(source: std::io::Error) -> CliError {
    CliError::Output { source }
}

/// A colour by what it means. The word is always there too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Busy,
    Bad,
    Dim,
}

/// How a column stands and gives way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// To the left, never cut.
    Left,
    /// To the right, never cut.
    Right,
    /// To the left; its middle goes where it has to, so that both ends stay distinct. Not below so many columns.
    Middle(usize),
    /// To the left; its end goes where it has to. Not below so many columns.
    End(usize),
}

/// Rows under titles.
pub(super) struct Table<'a> {
    columns: &'a [(&'a str, Fit)],
    widths: Vec<usize>,
    /// A column that is not printed after all.
    hidden: Option<usize>,
    /// Cells one after another, a row's worth for each row.
    cells: Vec<(Cow<'a, str>, Tone)>,
}

impl<'a> Table<'a> {
    pub(super) fn new(columns: &'a [(&'a str, Fit)]) -> Self {
        let widths = columns.iter().map(|(title, _)| title.width()).collect();
        Self { columns, widths, hidden: None, cells: Vec::new() }
    }

    /// Leaves a column out: whether it is worth its room is known once all rows are there.
    pub(super) fn hide(&mut self, title: &str) {
        self.hidden = self.columns.iter().position(|(column, _)| *column == title);
    }

    /// The next cell of the current row; rows are as long as there are columns.
    pub(super) fn cell(&mut self, text: impl Into<Cow<'a, str>>, tone: Tone) {
        let text = match text.into() {
            Cow::Borrowed(text) => cleaned(text),
            Cow::Owned(text) => match cleaned(&text) {
                Cow::Borrowed(_) => Cow::Owned(text),
                Cow::Owned(clean) => Cow::Owned(clean),
            },
        };
        let column = self.cells.len() % self.columns.len();
        self.widths[column] = self.widths[column].max(columns_of(&text));
        self.cells.push((text, tone));
    }

    /// Prints it, no wider than the terminal if there is one.
    pub(super) fn print(mut self, io: &mut Io<'_>) -> Result<(), CliError> {
        if let Some(width) = io.width {
            self.shrink(width);
        }
        let mut line = Shown::default();
        for (column, (title, fit)) in self.columns.iter().enumerate().filter(|(ix, _)| self.shows(*ix)) {
            self.put(&mut line, column, title, *fit);
        }
        finish(io, &mut line)?;
        for row in self.cells.chunks(self.columns.len()) {
            let cells = row.iter().zip(self.columns).enumerate().filter(|(ix, _)| self.shows(*ix));
            for (column, ((text, tone), (_, fit))) in cells {
                let coloured = io.colour && *tone != Tone::Plain && !text.is_empty();
                if coloured {
                    line.tone(*tone);
                }
                self.put(&mut line, column, text, *fit);
                if coloured {
                    line.tone(Tone::Plain);
                }
            }
            finish(io, &mut line)?;
        }
        Ok(())
    }

    fn shows(&self, column: usize) -> bool {
        self.hidden != Some(column)
    }

    /// First from columns that are very wide, so that one long name does not take the room of all; then from the last
    /// one that gives way; until it fits or nothing gives way any more.
    fn shrink(&mut self, width: usize) {
        let shown = self.widths.iter().enumerate().filter(|(ix, _)| self.shows(*ix));
        let all = shown.map(|(_, width)| width + 2).sum::<usize>().saturating_sub(2);
        let mut over = all.saturating_sub(width);
        for wide in [20, 14, 0] {
            for (column, (_, fit)) in self.columns.iter().enumerate().rev() {
                let least = match fit {
                    Fit::Left | Fit::Right => continue,
                    Fit::Middle(least) | Fit::End(least) => wide.max(*least),
                };
                let give = self.widths[column].saturating_sub(least).min(over);
                self.widths[column] -= give;
                over -= give;
            }
        }
    }

    fn put(&self, line: &mut Shown, column: usize, text: &str, fit: Fit) {
        let width = self.widths[column];
        let cut = match fit {
            Fit::Middle(_) => cut_middle(text, width),
            Fit::End(_) => cut_end(text, width),
            Fit::Left | Fit::Right => Cow::Borrowed(text),
        };
        let pad = width.saturating_sub(columns_of(&cut));
        if fit == Fit::Right {
            line.blanks(pad);
        }
        line.push(&cut);
        if column + 1 < self.columns.len() {
            line.blanks(if fit == Fit::Right { 2 } else { pad + 2 });
        }
    }
}

fn finish(io: &mut Io<'_>, line: &mut Shown) -> Result<(), CliError> {
    line.end_line();
    io.show(line)?;
    line.clear();
    Ok(())
}

fn columns_of(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

/// `llama-ft-70b-lr1e-4` in 14 columns: `llama-..-lr1e-4`.
fn cut_middle(text: &str, width: usize) -> Cow<'_, str> {
    if columns_of(text) <= width || width < 4 {
        return cut_end(text, width);
    }
    let head = (width - 2) / 2;
    let tail = width - 2 - head;
    let mut back = String::new();
    for c in text.chars().rev() {
        if columns_of(&back) + columns_of(c.encode_utf8(&mut [0; 4])) > tail {
            break;
        }
        back.insert(0, c);
    }
    Cow::Owned(format!("{}..{back}", start_of(text, head)))
}

fn cut_end(text: &str, width: usize) -> Cow<'_, str> {
    if columns_of(text) <= width {
        return Cow::Borrowed(text);
    }
    if width < 3 {
        return Cow::Borrowed(start_of(text, width));
    }
    Cow::Owned(format!("{}..", start_of(text, width - 2)))
}

/// As much of the beginning as fits.
fn start_of(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += columns_of(c.encode_utf8(&mut [0; 4]));
        if used > width {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(width: Option<usize>, colour: bool) -> String {
        let columns = [("ID", Fit::Right), ("NAME", Fit::Middle(8)), ("WHY", Fit::End(6))];
        let mut table = Table::new(&columns);
        table.cell("17", Tone::Plain);
        table.cell("llama-ft-70b-lr1e-4", Tone::Good);
        table.cell("needs 8 free", Tone::Plain);
        table.cell("9", Tone::Plain);
        table.cell("日本\x1b[31m", Tone::Plain);
        table.cell("", Tone::Plain);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        table.print(&mut Io::new(&mut out, &mut err, width, colour)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_line_up_whatever_is_in_them() {
        assert_eq!(
            print(None, false),
            "ID  NAME                 WHY\n17  llama-ft-70b-lr1e-4  needs 8 free\n 9  日本\u{FFFD}[31m\n"
        );
    }

    #[test]
    fn a_narrow_terminal_cuts_the_why_first_and_names_in_the_middle() {
        assert_eq!(
            print(Some(26), false),
            "ID  NAME            WHY\n17  llama-..lr1e-4  need..\n 9  日本\u{FFFD}[31m\n"
        );
        for width in 0..60 {
            print(Some(width), true);
        }
    }

    #[test]
    fn colours_only_where_they_are_wanted() {
        assert!(print(None, true).contains("\x1b[32mllama"));
        assert!(!print(None, false).contains('\x1b'));
    }
}
