//! The question before a cancel. The focus is on the button that does nothing.

use super::canvas::Canvas;
use super::text::{cut_middle, hours, state};
use super::theme::Role;
use super::ui::Button;
use super::{View, acts, queue, rows};
use crate::model::{Cursor, JobId};
use ratatui::layout::Rect;

/// Over the screen.
pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, job: JobId, button: Button) {
    let Some(row) = rows::find(v.snap, job) else { return };
    let width = area.width.min(58);
    let height = area.height.min(8);
    let popup =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    c.clear(popup);
    let stopping = row.cancel_at.is_some();
    let question = if stopping { "Kill" } else { "Cancel" };
    let name = cut_middle(&row.name, usize::from(width).saturating_sub(24));
    let title = format!("{question} #{} {name} ?", row.id);
    let inner = c.frame(popup, &[(&title, Role::DialogDanger)], &[], true);
    let (word, role) = state(row);
    let held = if row.rented_at.is_some() {
        format!("   {} GPU-h held", hours(row.gpu_ms(&v.now)))
    } else {
        String::new()
    };
    let about = format!(" {}{}{held}", queue::time(v, row), queue::on(row));
    let user = format!(" {}   ", row.user);
    c.pieces(inner, 0, &[(&user, Role::Dialog), (word, role), (&about, Role::Dialog)]);
    let (first, second) = match row.state {
        _ if stopping => (" It is being cancelled. This kills it without a warning signal.", String::new()),
        Cursor::Queued => (" It leaves the line; it has held nothing.", undo_words(row)),
        _ => (" Warned with its stop signal, killed after the grace.", undo_words(row)),
    };
    c.text(inner, 1, first, Role::Dialog);
    c.text(inner, 2, &second, Role::Dialog);
    if row.rented_at.is_some() && inner.height > 4 {
        let room = usize::from(inner.width).saturating_sub(18);
        let folder = cut_middle(&row.directory.join("output").display().to_string(), room);
        c.text(inner, 3, &format!(" Output so far: {folder}"), Role::Dialog);
    }
    let row = inner.height.saturating_sub(1);
    let (keep, yes, now, gap) = if inner.width < 44 {
        ("[Keep]", "[y]es".to_owned(), "[!]now", 2)
    } else {
        ("[ Keep it ]", format!("[y] {question} job"), "[!] now", 4)
    };
    let buttons = [
        (Button::Keep, keep, Role::Dialog),
        (Button::Cancel, yes.as_str(), Role::DialogDanger),
        (Button::Now, now, Role::DialogDanger),
    ];
    let mut x = inner.x + gap - 1;
    for (which, text, role) in buttons {
        if stopping && which == Button::Now {
            continue;
        }
        let start = x;
        x = c.pieces(Rect { x, width: inner.right().saturating_sub(x), ..inner }, row, &[(text, role)]);
        if which == button {
            c.over(Rect { x: start, y: inner.y + row, width: x - start, height: 1 }, Role::CursorRow);
            c.cursor = Some((start, inner.y + row, false));
        }
        x += gap;
    }
}

fn undo_words(row: &crate::protocol::JobRow) -> String {
    format!(" You can undo for {} s after confirming.", acts::undo_window(row).as_secs())
}
