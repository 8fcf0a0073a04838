//! Drawing on a buffer that nothing can be drawn outside of. Every panel draws through this.
//!
//! It knows roles and glyphs, nothing of jobs. Text is cleaned here, once, whatever its source.

use crate::model::{clean_line, is_unsafe};
use crate::tui::keys::Action;
use crate::tui::look::colour::Depth;
use crate::tui::look::text::{cut, width};
use crate::tui::look::theme::{Role, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

/// Which characters lines and bars are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Glyphs {
    /// Light boxes and eighth blocks.
    #[default]
    Unicode,
    /// Light boxes, whole and half blocks: what the fonts of old terminals have.
    Blocks,
    /// No byte above 127.
    Ascii,
}

impl Glyphs {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Unicode, Self::Blocks, Self::Ascii];

    /// Its name in a theme file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unicode => "unicode",
            Self::Blocks => "blocks",
            Self::Ascii => "ascii",
        }
    }
}

/// A piece of text and its role.
pub(in crate::tui) type Piece<'a> = (&'a str, Role);

/// The screen, or the part of it that is in use.
pub(in crate::tui) struct Canvas<'a> {
    buf: &'a mut Buffer,
    pub(in crate::tui) theme: &'a Theme,
    pub(in crate::tui) glyphs: Glyphs,
    /// Where the terminal's cursor goes, and whether it shows.
    pub(in crate::tui) cursor: Option<(u16, u16, bool)>,
    /// What a click does where.
    spots: Vec<(Rect, Action)>,
}

impl<'a> Canvas<'a> {
    pub(in crate::tui) const fn new(buf: &'a mut Buffer, theme: &'a Theme, glyphs: Glyphs) -> Self {
        Self { buf, theme, glyphs, cursor: None, spots: Vec::new() }
    }

    pub(in crate::tui) const fn area(&self) -> Rect {
        *self.buf.area()
    }

    /// A click there does this, unless something is drawn over it later.
    pub(in crate::tui) fn spot(&mut self, area: Rect, action: Action) {
        self.spots.push((area, action));
    }

    /// Words of a row, the last of their kind in it: a click on one does what is beside it.
    pub(in crate::tui) fn words<'w>(&mut self, row: Rect, words: impl Iterator<Item = (&'w str, Action)>) {
        let row = Rect { height: 1, ..row }.intersection(self.area());
        let cells: Vec<&str> = (row.x..row.right()).map(|x| self.buf[(x, row.y)].symbol()).collect();
        let mut spots = Vec::new();
        for (word, action) in words {
            let letters: Vec<&str> = word.split_inclusive(|_: char| true).collect();
            if let Some(at) = cells.windows(letters.len().max(1)).rposition(|place| place == letters) {
                spots.push((Rect { x: row.x + at as u16, width: letters.len() as u16, ..row }, action));
            }
        }
        self.spots.extend(spots);
    }

    /// Clicks do nothing any more in what was drawn so far.
    pub(in crate::tui) fn cover(&mut self) {
        self.spots.clear();
    }

    /// What a click does there: what was drawn last.
    pub(in crate::tui) fn hit(&self, at: (u16, u16)) -> Option<Action> {
        self.spots.iter().rev().find(|(area, _)| area.contains(at.into())).map(|(_, action)| action.clone())
    }

    /// Writes at most `columns` columns; returns the column after the last one written.
    pub(in crate::tui) fn put(&mut self, x: u16, y: u16, columns: u16, text: &str, style: Style) -> u16 {
        let area = self.area();
        if columns == 0 || !area.contains((x, y).into()) {
            return x;
        }
        let columns = usize::from(columns.min(area.right() - x));
        // What was there before is gone whole: a title in a rule is bold, and not dim too.
        let style = style.remove_modifier(!style.add_modifier);
        let plain = text.bytes().all(|b| (0x20..0x7f).contains(&b));
        let end = if plain {
            self.buf.set_stringn(x, y, text, columns, style).0
        } else {
            self.buf.set_stringn(x, y, clean_line(text), columns, style).0
        };
        if style.add_modifier.contains(Modifier::UNDERLINED) {
            self.underline_words_only((x, end), y);
        }
        end
    }

    /// A line under a word is none under the blanks around it.
    fn underline_words_only(&mut self, (from, to): (u16, u16), y: u16) {
        let is_blank = |buf: &Buffer, x: &u16| buf[(*x, y)].symbol() == " ";
        let before: Vec<u16> = (from..to).take_while(|x| is_blank(self.buf, x)).collect();
        let after: Vec<u16> = (from..to).rev().take_while(|x| is_blank(self.buf, x)).collect();
        for x in before.into_iter().chain(after) {
            self.buf[(x, y)].modifier.remove(Modifier::UNDERLINED);
        }
    }

    /// Writes one line of a role into a row of `area`.
    pub(in crate::tui) fn text(&mut self, area: Rect, row: u16, text: &str, role: Role) {
        self.pieces(area, row, &[(text, role)]);
    }

    /// Writes pieces one after another into a row of `area`; returns the column after the last one.
    pub(in crate::tui) fn pieces(&mut self, area: Rect, row: u16, pieces: &[Piece<'_>]) -> u16 {
        let mut x = area.x;
        if row >= area.height {
            return x;
        }
        for (text, role) in pieces {
            x = self.put(x, area.y + row, area.right().saturating_sub(x), text, self.theme.style(*role));
        }
        x
    }

    /// Writes pieces so that they end at the right edge of `area`, and returns where they begin.
    pub(in crate::tui) fn pieces_right(&mut self, area: Rect, row: u16, pieces: &[Piece<'_>]) -> u16 {
        let columns: usize = pieces.iter().map(|(text, _)| width(text)).sum();
        let columns = u16::try_from(columns).unwrap_or(u16::MAX).min(area.width);
        let x = area.right() - columns;
        self.pieces(Rect { x, width: columns, ..area }, row, pieces);
        x
    }

    /// Writes a styled line.
    pub(in crate::tui) fn line(&mut self, area: Rect, row: u16, line: &Line<'_>) {
        let mut x = area.x;
        if row >= area.height {
            return;
        }
        for span in &line.spans {
            let style = self.theme.style(Role::Text).patch(line.style).patch(span.style);
            x = self.put(x, area.y + row, area.right().saturating_sub(x), &span.content, style);
        }
    }

    /// Puts a style over what is there.
    pub(in crate::tui) fn over(&mut self, area: Rect, role: Role) {
        let style = self.theme.style(role);
        self.buf.set_style(area.intersection(self.area()), style);
    }

    /// A row that is marked.
    pub(in crate::tui) fn marked_row(&mut self, area: Rect, row: u16) {
        let area = Rect { y: area.y.saturating_add(row), height: 1, ..area };
        self.over(area, Role::MarkedRow);
    }

    /// Which of `count` rows are shown, on the right edge of their box; nothing where all are.
    pub(in crate::tui) fn scrollbar(&mut self, area: Rect, top: usize, count: usize) {
        let height = usize::from(area.height);
        if height == 0 || count <= height || area.width == 0 {
            return;
        }
        let thumb = (height * height / count).max(1);
        let from = top.min(count - height) * (height - thumb) / (count - height);
        let sign = if self.glyphs == Glyphs::Ascii { "#" } else { "█" };
        let style = self.theme.style(Role::Scrollbar);
        for row in from..from + thumb {
            self.put(area.right() - 1, area.y + row as u16, 1, sign, style);
        }
    }

    /// Draws a row as the one under the cursor, and parks the terminal's cursor there for screen readers.
    pub(in crate::tui) fn cursor_row(&mut self, area: Rect, row: u16) {
        let area = Rect { y: area.y.saturating_add(row), height: 1, ..area }.intersection(self.area());
        if area.is_empty() {
            return;
        }
        // One colour from end to end: a state's colour, reversed, would be a patch. Its word and place still tell.
        let plain = self.theme.style(Role::Text).remove_modifier(Modifier::DIM);
        let plain = plain.fg(plain.fg.unwrap_or(Color::Reset));
        self.buf.set_style(area, plain);
        self.over(area, Role::CursorRow);
        self.cursor.get_or_insert((area.x, area.y, false));
    }

    /// Blanks an area.
    pub(in crate::tui) fn clear(&mut self, area: Rect) {
        let area = area.intersection(self.area());
        for y in area.top()..area.bottom() {
            for x in area.left()..area.right() {
                if let Some(cell) = self.buf.cell_mut((x, y)) {
                    cell.reset();
                }
            }
        }
        self.over(area, Role::Base);
    }

    /// A horizontal rule with pieces on it, and others at its right end.
    pub(in crate::tui) fn rule(&mut self, area: Rect, row: u16, pieces: &[Piece<'_>], tail: &[Piece<'_>]) {
        if row >= area.height {
            return;
        }
        let dash = self.horizontal();
        let border = self.theme.style(Role::Border);
        self.put(area.x, area.y + row, area.width, &dash.repeat(usize::from(area.width)), border);
        let inner = Rect { x: area.x.saturating_add(2).min(area.right()), ..area };
        let inner = Rect { width: area.right() - inner.x, ..inner };
        let end = if pieces.is_empty() {
            inner.x
        } else {
            let x = self.put(inner.x, area.y + row, inner.width, " ", border);
            let rest = Rect { x, width: area.right().saturating_sub(x), ..area };
            let x = self.pieces(rest, row, pieces);
            self.put(x, area.y + row, area.right().saturating_sub(x), " ", border)
        };
        let tail_width: usize = tail.iter().map(|(text, _)| width(text)).sum();
        if !tail.is_empty() && usize::from(area.right().saturating_sub(end)) > tail_width + 4 {
            let edge = Rect { width: area.width - 3, ..area };
            let x = self.pieces_right(edge, row, tail);
            self.put(x - 1, area.y + row, 1, " ", border);
            self.put(edge.right(), area.y + row, 1, " ", border);
        }
    }

    /// A box with a title; returns what is inside.
    pub(in crate::tui) fn frame(
        &mut self,
        area: Rect,
        title: &[Piece<'_>],
        foot: &[Piece<'_>],
        focus: bool,
    ) -> Rect {
        if area.width < 2 || area.height < 2 {
            return area;
        }
        let style = self.theme.style(if focus { Role::BorderFocus } else { Role::Border });
        let (dash, bar, corners) = match self.glyphs {
            Glyphs::Unicode | Glyphs::Blocks => ("─", "│", ["┌", "┐", "└", "┘"]),
            Glyphs::Ascii => ("-", "|", ["+", "+", "+", "+"]),
        };
        let middle = dash.repeat(usize::from(area.width) - 2);
        for (y, [l, r]) in [(area.y, [corners[0], corners[1]]), (area.bottom() - 1, [corners[2], corners[3]])]
        {
            self.put(area.x, y, 1, l, style);
            self.put(area.x + 1, y, area.width - 2, &middle, style);
            self.put(area.right() - 1, y, 1, r, style);
        }
        for y in area.y + 1..area.bottom() - 1 {
            self.put(area.x, y, 1, bar, style);
            self.put(area.right() - 1, y, 1, bar, style);
        }
        let top = Rect { x: area.x + 1, width: area.width - 2, height: 1, ..area };
        if !title.is_empty() && top.width > 6 {
            let mut x = self.put(top.x + 1, top.y, 2, if focus { "> " } else { " " }, style);
            let limit = top.right() - 1;
            for (text, role) in title {
                let mut look = self.theme.style(*role);
                if focus && *role == Role::Title {
                    look = look.add_modifier(Modifier::BOLD);
                }
                x = self.put(x, top.y, limit.saturating_sub(x), text, look);
            }
            self.put(x, top.y, limit.saturating_sub(x).min(1), " ", style);
        }
        let bottom = Rect { y: area.bottom() - 1, ..top };
        let columns: usize = foot.iter().map(|(text, _)| width(text)).sum();
        if !foot.is_empty() && usize::from(bottom.width) > columns + 4 {
            let edge = Rect { width: bottom.width - 2, ..bottom };
            let x = self.pieces_right(edge, 0, foot);
            self.put(x - 1, bottom.y, 1, " ", style);
            self.put(edge.right(), bottom.y, 1, " ", style);
        }
        Rect { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height - 2 }
    }

    /// A bar of `columns` columns, brackets included; a number belongs beside it.
    pub(in crate::tui) fn bar(&mut self, x: u16, y: u16, columns: u16, percent: u8) -> u16 {
        let inner = usize::from(columns.saturating_sub(2));
        let [mid, high] = self.theme.gauge_at;
        let (role, level) = match percent {
            p if p >= high => (Role::GaugeHigh, "#"),
            p if p >= mid => (Role::GaugeMid, "="),
            _ => (Role::GaugeLow, "-"),
        };
        // Where colours are few the level shows in the fill.
        let fill = match self.glyphs {
            _ if self.theme.depth <= Depth::C16 => Some(level),
            Glyphs::Ascii => Some("#"),
            Glyphs::Unicode | Glyphs::Blocks => None,
        };
        let percent = usize::from(percent.min(100));
        let eighths = (percent * inner * 8 + 50) / 100;
        let mut filled = String::new();
        if let Some(fill) = fill {
            filled.push_str(&fill.repeat((percent * inner + 50) / 100));
        } else if self.glyphs == Glyphs::Blocks {
            let halves = (eighths + 2) / 4;
            filled.push_str(&"█".repeat(halves / 2));
            filled.push_str(&"▌".repeat(halves % 2));
        } else {
            filled.push_str(&"█".repeat(eighths / 8));
            if let Some(part) = ["▏", "▎", "▍", "▌", "▋", "▊", "▉"].get((eighths % 8).wrapping_sub(1))
            {
                filled.push_str(part);
            }
        }
        // A middle dot would be two columns wide in a CJK terminal.
        let rest = ".".repeat(inner.saturating_sub(width(&filled)));
        let x = self.put(x, y, 1, "[", self.theme.style(Role::Border));
        let x = self.put(x, y, columns.saturating_sub(2), cut(&filled, inner), self.theme.style(role));
        let x = self.put(x, y, columns.saturating_sub(2), &rest, self.theme.style(Role::GaugeEmpty));
        self.put(x, y, 1, "]", self.theme.style(Role::Border))
    }

    /// The keys of a card, in one row of it.
    pub(in crate::tui) fn keys(&mut self, area: Rect, row: u16, keys: &[(&str, &str)]) {
        let mut x = area.x.saturating_add(1);
        for (key, words) in keys {
            let rest = Rect { x, width: area.right().saturating_sub(x), ..area };
            let pieces = [
                (*key, Role::KeyHint),
                (" ", Role::KeyText),
                (*words, Role::KeyText),
                ("   ", Role::KeyText),
            ];
            x = self.pieces(rest, row, &pieces);
        }
        self.cursor.get_or_insert((area.x, area.y.saturating_add(row), false));
    }

    pub(in crate::tui) const fn vertical(&self) -> &'static str {
        match self.glyphs {
            Glyphs::Unicode | Glyphs::Blocks => "│",
            Glyphs::Ascii => "|",
        }
    }

    pub(in crate::tui) const fn horizontal(&self) -> &'static str {
        match self.glyphs {
            Glyphs::Unicode | Glyphs::Blocks => "─",
            Glyphs::Ascii => "-",
        }
    }

    /// The last step: no cell acts on the terminal, and under ASCII nothing above 127 is left, wherever it came from.
    pub(in crate::tui) fn finish(self) -> Option<(u16, u16, bool)> {
        for cell in &mut self.buf.content {
            if matches!(cell.symbol().as_bytes(), [b' '..=b'~']) {
                continue;
            }
            if cell.symbol().chars().any(is_unsafe) {
                cell.set_symbol("\u{FFFD}");
            }
            if self.glyphs == Glyphs::Ascii && !cell.symbol().is_ascii() {
                let columns = width(cell.symbol());
                cell.set_symbol(if columns == 0 { " " } else { "?" });
            }
        }
        self.cursor
    }
}
