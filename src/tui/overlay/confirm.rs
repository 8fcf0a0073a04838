//! The questions before a cancel and before a quarantine is lifted. The focus is on the button that does nothing.

use super::{Overlay, middle, retry};
use crate::model::{Bytes, Cursor, DeviceState, Generation, JobId, Now, Stop, Uuid, parse_span};
use crate::protocol::{JobRow, Snapshot};
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{cut_middle, hours, state, width as text_width};
use crate::tui::look::theme::Role;
use crate::tui::panels::queue;
use crate::tui::ui::Ui;
use crate::tui::update::{acts, copying, quarantine};
use crate::tui::{UiCommand, View, rows};
use ratatui::layout::Rect;

/// The buttons of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Button {
    /// Nothing happens: the default.
    #[default]
    Keep,
    /// What was asked; a cancel has its undo window.
    Cancel,
    /// A cancel without it.
    Now,
}

/// The question before a cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirm {
    /// Which job.
    pub job: JobId,
    /// As it was when the question was asked.
    pub generation: Generation,
    /// The button that Enter presses.
    pub button: Button,
}

/// The question before a quarantine is lifted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clear {
    /// Of which device.
    pub gpu: Uuid,
    /// Since when it was in quarantine when the question was asked.
    pub since: Now,
    /// The button that Enter presses.
    pub button: Button,
}

/// The button that an action presses, if it presses one; else the one that has the focus moves.
pub(super) fn pressed(button: &mut Button, action: &Action, order: &[Button]) -> Option<Button> {
    match action {
        Action::Yes => Some(Button::Cancel),
        Action::No => Some(Button::Keep),
        Action::Now => order.contains(&Button::Now).then_some(Button::Now),
        Action::Press => order.contains(button).then_some(*button),
        Action::NextButton | Action::PreviousButton => {
            let by = if *action == Action::NextButton { 1 } else { order.len() - 1 };
            let at = order.iter().position(|one| one == button).unwrap_or(0);
            *button = order[(at + by) % order.len()];
            None
        }
        _ => None,
    }
}

pub(super) fn update(ui: &mut Ui, snap: &Snapshot, mut it: Confirm, action: &Action) -> Vec<UiCommand> {
    let row = rows::find(ui, snap, it.job).filter(|row| row.state != Cursor::Done);
    // As many as are drawn: one that is being cancelled can only be killed.
    let drawn = row.map_or(1, |row| if row.cancel_at.is_some() { 2 } else { 3 });
    let order = &[Button::Keep, Button::Cancel, Button::Now][..drawn];
    match pressed(&mut it.button, action, order) {
        Some(Button::Keep) => Vec::new(),
        Some(button) => acts::cancel(ui, snap, (it.job, it.generation), button == Button::Now),
        None => {
            ui.overlay = Some(Overlay::Confirm(it));
            Vec::new()
        }
    }
}

pub(super) fn update_clear(ui: &mut Ui, snap: &Snapshot, mut it: Clear, action: &Action) -> Vec<UiCommand> {
    match pressed(&mut it.button, action, &[Button::Keep, Button::Cancel]) {
        Some(Button::Keep) => Vec::new(),
        Some(_) => quarantine::clear(ui, snap, &it.gpu, &it.since),
        None => {
            ui.overlay = Some(Overlay::Clear(it));
            Vec::new()
        }
    }
}

/// Over the screen.
pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, it: &Confirm) {
    let button = it.button;
    let Some(row) = v.find(it.job).filter(|row| row.state != Cursor::Done) else {
        return ended(c, v, area, it.job);
    };
    let popup = middle(area, 58, 8);
    let width = popup.width;
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
        _ if stopping => {
            (" It is being cancelled. This kills it without a warning signal.".to_owned(), String::new())
        }
        Cursor::Queued => (" It leaves the line; it has held nothing.".to_owned(), undo_words(row)),
        _ => (stops(v, row), undo_words(row)),
    };
    c.text(inner, 1, &first, Role::Dialog);
    c.text(inner, 2, &second, Role::Dialog);
    if row.rented_at.is_some() && inner.height > 4 {
        let folder = copying::output(row);
        let size =
            v.ui.flows
                .lies_in(&folder)
                .map_or_else(String::new, |found| format!(" ({})", Bytes(found.bytes)));
        let lead = format!(" Output so far{size} is kept in ");
        let room = usize::from(inner.width).saturating_sub(lead.len() + 1);
        let folder = cut_middle(&v.ui.flows.desk.short(&folder), room);
        c.text(inner, 3, &format!("{lead}{folder}"), Role::Dialog);
    }
    let (keep, yes, now) = if inner.width < 44 {
        ("[Keep]", "[y]es".to_owned(), "[!]now")
    } else {
        ("[ Keep it ]", format!("[y] {question} job"), "[!] now")
    };
    let mut answers = vec![
        (Button::Keep, keep, Role::Dialog),
        (Button::Cancel, yes.as_str(), Role::DialogDanger),
        (Button::Now, now, Role::DialogDanger),
    ];
    if stopping {
        answers.pop();
    }
    buttons(c, inner, &answers, button);
}

/// It has ended while the question was open: there is nothing to cancel.
fn ended(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, job: JobId) {
    let popup = middle(area, 58, 5);
    c.clear(popup);
    let inner = c.frame(popup, &[(&format!("#{job} has ended"), Role::Title)], &[], true);
    let outcome = v.find(job).and_then(|row| row.outcome.as_ref());
    let how = outcome.map_or_else(String::new, |outcome| format!(" {}.", retry::ended(v.ui, job, outcome)));
    c.text(inner, 0, &how, Role::Dialog);
    c.text(inner, 1, " There is nothing left to cancel.", Role::Dialog);
    buttons(c, inner, &[(Button::Keep, "[ Close ]", Role::Dialog)], Button::Keep);
}

/// How a running job would be stopped, as its file says; what is as usual it leaves out.
fn stops(v: &View<'_>, row: &JobRow) -> String {
    let detail = v.ui.detail.as_ref().filter(|detail| detail.row.id == row.id);
    let Some(detail) = detail else {
        return " Stops with its stop signal, SIGKILL after its grace.".to_owned();
    };
    let stop = &detail.spec["work"]["stop"];
    let signal = stop["signal"].as_str().unwrap_or("TERM");
    let grace = stop["grace"].as_str().and_then(|text| parse_span(text).ok());
    let grace = grace.unwrap_or(Stop::default().grace).as_secs();
    format!(" Stops with SIG{signal}, SIGKILL after {grace} s.")
}

/// The buttons, in the last row.
pub(super) fn buttons(c: &mut Canvas<'_>, inner: Rect, answers: &[(Button, &str, Role)], focus: Button) {
    let row = inner.height.saturating_sub(1);
    let gap = if inner.width < 44 { 2 } else { 4 };
    let mut x = inner.x + gap - 1;
    for (which, text, role) in answers {
        let start = x;
        x = c.pieces(Rect { x, width: inner.right().saturating_sub(x), ..inner }, row, &[(text, *role)]);
        if *which == focus {
            focused(c, inner, row, (start, x));
        }
        x += gap;
    }
}

/// The button that has the focus, from a column to another: reversed, with `>` in the gap before it.
pub(super) fn focused(c: &mut Canvas<'_>, inner: Rect, row: u16, (from, to): (u16, u16)) {
    let before = Rect { x: from.saturating_sub(1), width: 1, ..inner }.intersection(inner);
    c.text(before, row, ">", Role::Dialog);
    c.over(Rect { x: from, y: inner.y + row, width: to.saturating_sub(from), height: 1 }, Role::CursorRow);
    c.cursor = Some((from, inner.y + row, false));
}

/// Over the screen: whether a quarantine is to be lifted.
pub(super) fn paint_clear(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, it: &Clear) {
    let (gpu, button) = (&it.gpu, it.button);
    let Some(row) = v.snap.gpus.iter().find(|row| row.uuid == *gpu) else { return };
    let popup = middle(area, 58, 8);
    c.clear(popup);
    let title = format!("Clear GPU {} ?", row.index);
    let inner = c.frame(popup, &[(&title, Role::DialogDanger)], &[], true);
    let why = match &row.state {
        DeviceState::Quarantined(_) => row.detail.clone().unwrap_or_default(),
        state => format!("It is {} now.", state.word()),
    };
    let columns = usize::from(inner.width).saturating_sub(2);
    for (at, line) in wrapped(&why, columns).into_iter().take(2).enumerate() {
        c.text(inner, at as u16, &format!(" {line}"), Role::Dialog);
    }
    c.text(inner, 3, " It is handed out again once a reading shows it clean.", Role::Dialog);
    let yes = if inner.width < 44 { "[y]es" } else { "[y] Clear it" };
    let keep = if inner.width < 44 { "[Keep]" } else { "[ Keep it ]" };
    buttons(
        c,
        inner,
        &[(Button::Keep, keep, Role::Dialog), (Button::Cancel, yes, Role::DialogDanger)],
        button,
    );
}

/// Words in lines of so many columns; what does not fit a line is cut.
pub(in crate::tui) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        if lines[last].is_empty() {
            lines[last] = cut_middle(word, columns);
        } else if text_width(&lines[last]) + 1 + text_width(word) <= columns {
            lines[last] = format!("{} {word}", lines[last]);
        } else {
            lines.push(cut_middle(word, columns));
        }
    }
    lines
}

fn undo_words(row: &JobRow) -> String {
    format!(" You can undo for {} s after confirming.", acts::undo_window(row).as_secs())
}
