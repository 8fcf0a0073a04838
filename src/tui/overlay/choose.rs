//! A list to choose from, narrowed by what is typed.

use super::middle;
use crate::tui::field::Field;
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{cut_end, left, width, wrap};
use crate::tui::look::theme::Role;
use crate::tui::rows;
use ratatui::layout::Rect;

/// What was typed, and the row under the cursor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chooser {
    /// What was typed.
    pub field: Field,
    /// The row under the cursor, of those that are left.
    pub at: usize,
}

/// A line of the list.
pub(in crate::tui) struct Line {
    /// What it is, at the left.
    pub(in crate::tui) name: String,
    /// More about it.
    pub(in crate::tui) about: String,
    /// At the right.
    pub(in crate::tui) keys: String,
    /// It cannot be chosen now.
    pub(in crate::tui) is_dim: bool,
}

impl Line {
    /// Columns for what is said about it.
    fn room(&self, names: usize, columns: usize) -> usize {
        columns.saturating_sub(names + 4 + width(&self.keys) + 2)
    }

    /// All of it in lines, if its row cuts something.
    fn whole(&self, names: usize, columns: usize) -> Vec<String> {
        if width(&self.name) <= names && width(&self.about) <= self.room(names, columns) {
            return Vec::new();
        }
        wrap(&format!("  {}: {}", self.name, self.about), columns, 2)
    }
}

/// What a key came to.
pub(in crate::tui) enum Chosen {
    /// The list stays.
    Stays,
    /// The row under the cursor was chosen.
    Row(usize),
}

impl Chooser {
    /// Does what an action means to a list of so many rows.
    pub(in crate::tui) fn update(&mut self, action: &Action, count: usize) -> Chosen {
        let last = count.saturating_sub(1);
        match action {
            Action::Accept if count > 0 => return Chosen::Row(self.at.min(last)),
            Action::Down => self.at = if self.at >= last { 0 } else { self.at + 1 },
            Action::Up => self.at = if self.at == 0 { last } else { self.at.min(last + 1) - 1 },
            Action::PageDown => self.at = (self.at + PAGE).min(last),
            Action::PageUp => self.at = self.at.saturating_sub(PAGE),
            action => {
                if self.field.edit(action) && !matches!(action, Action::Left | Action::Right) {
                    self.at = 0;
                }
            }
        }
        Chosen::Stays
    }

    /// Over the middle of an area: what is typed, then the lines.
    pub(in crate::tui) fn paint(
        &self,
        c: &mut Canvas<'_>,
        area: Rect,
        title: &str,
        prompt: &str,
        lines: &[Line],
    ) {
        let popup = middle(area, 76, area.height.saturating_sub(2).clamp(3, 24));
        c.clear(popup);
        let foot = format!("{} of them   Enter: do it   Esc: close", lines.len());
        let inner = c.frame(popup, &[(title, Role::Title)], &[(&foot, Role::Dim)], true);
        c.pieces(inner, 0, &[(prompt, Role::KeyHint), (self.field.text(), Role::Input)]);
        let list = Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner };
        let at = self.at.min(lines.len().saturating_sub(1));
        let names = lines.iter().map(|line| width(&line.name)).max().unwrap_or(0).min(16);
        // What there is no room for in its row is below the list, for the row under the cursor.
        let columns = usize::from(list.width);
        let below = lines.get(at).map_or_else(Vec::new, |line| line.whole(names, columns));
        let list = Rect { height: list.height.saturating_sub(below.len() as u16), ..list };
        let top = rows::scrolled(0, at, usize::from(list.height), lines.len());
        for (row, line) in lines.iter().enumerate().skip(top).take(usize::from(list.height)) {
            let y = (row - top) as u16;
            let mark = if row == at { "> " } else { "  " };
            let text = if line.is_dim { Role::Dim } else { Role::Text };
            let name = left(&cut_end(&line.name, names), names);
            let about = cut_end(&line.about, line.room(names, columns));
            let mut pieces = vec![(mark, Role::Title)];
            pieces.extend(found(self.field.text(), &name, text));
            pieces.push(("  ", text));
            pieces.extend(found(self.field.text(), &about, Role::Dim));
            c.pieces(list, y, &pieces);
            let keys = format!("  {}", line.keys);
            c.pieces_right(list, y, &[(&keys, Role::KeyHint)]);
            if row == at {
                c.cursor_row(list, y);
            }
        }
        for (row, text) in below.iter().enumerate() {
            c.text(inner, 1 + list.height + row as u16, text, Role::Dim);
        }
        if lines.is_empty() {
            c.text(list, 0, "  Nothing has these letters.", Role::Dim);
        }
        let x = inner.x + (width(prompt) + width(self.field.before())) as u16;
        c.cursor = Some((x.min(inner.right().saturating_sub(1)), inner.y, true));
    }
}

/// A text with what was typed told apart, where it is in it as it was typed.
fn found<'a>(typed: &str, text: &'a str, role: Role) -> [(&'a str, Role); 3] {
    // Bytes keep their places: only ASCII letters change.
    let at = text.to_ascii_lowercase().find(&typed.to_ascii_lowercase()).filter(|_| !typed.is_empty());
    let (before, rest) = text.split_at(at.unwrap_or(text.len()));
    let (hit, after) = rest.split_at(at.map_or(0, |_| typed.len()));
    [(before, role), (hit, Role::Match), (after, role)]
}

/// Rows that a page moves by.
const PAGE: usize = 10;

/// More than any place within.
const BEGINS: u32 = 50;

/// How well a text fits what was typed: the letters in their order, better together and at the beginnings of words,
/// best where the text begins so.
/// `None` if they are not in it.
pub(in crate::tui) fn fits(typed: &str, text: &str) -> Option<u32> {
    let text: Vec<char> = text.to_lowercase().chars().collect();
    let (mut score, mut from, mut last) = (0_u32, 0, None);
    for letter in typed.to_lowercase().chars().filter(|c| !c.is_whitespace()) {
        let at = from + text[from..].iter().position(|c| *c == letter)?;
        let begins = at == 0 || !text[at - 1].is_alphanumeric();
        score += match last {
            Some(before) if before + 1 == at => 4,
            _ if begins => 3,
            _ => 1,
        };
        (last, from) = (Some(at), at + 1);
    }
    let begins = text.starts_with(&typed.to_lowercase().trim().chars().collect::<Vec<_>>());
    Some(score + if begins && last.is_some() { BEGINS } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_in_their_order_fit_and_together_they_fit_better() {
        assert_eq!(fits("zz", "cancel"), None);
        assert!(fits("cnl", "cancel").is_some());
        assert!(fits("can", "cancel") > fits("cnl", "cancel"));
        assert!(fits("pu", "place up") > fits("pu", "pxu"));
        assert!(fits("the", "theme") > fits("the", "log of the job"));
        assert_eq!(fits("", "anything"), Some(0));
    }

    #[test]
    fn the_cursor_goes_round_and_typing_puts_it_first() {
        let mut chooser = Chooser::default();
        chooser.update(&Action::Up, 3);
        assert_eq!(chooser.at, 2);
        chooser.update(&Action::Down, 3);
        assert_eq!(chooser.at, 0);
        chooser.update(&Action::Down, 3);
        chooser.update(&Action::Insert('x'), 3);
        assert_eq!((chooser.at, chooser.field.text()), (0, "x"));
        assert!(matches!(chooser.update(&Action::Accept, 0), Chosen::Stays));
        assert!(matches!(chooser.update(&Action::Accept, 1), Chosen::Row(0)));
    }
}
