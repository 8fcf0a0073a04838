//! What an edit comes to: the fields that change, old beside new; or what is wrong with the text, with carets.

use super::confirm::focused;
use super::{Overlay, middle, verdict};
use crate::model::JobId;
use crate::protocol::{Diagnostic, Edited, FieldChange, Snapshot};
use crate::tui::UiCommand;
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{cut_end, cut_middle, left, width};
use crate::tui::look::theme::Role;
use crate::tui::ui::{Level, Ui};
use crate::tui::update::editing;
use ratatui::layout::Rect;

/// The fields that change, and the button that has the focus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// What the scheduler says of it.
    pub edited: Edited,
    /// Enter applies it, not the safe one.
    pub on_apply: bool,
    /// The first row shown.
    pub top: usize,
}

impl Diff {
    /// With the focus on what changes nothing.
    pub const fn new(edited: Edited) -> Self {
        Self { edited, on_apply: false, top: 0 }
    }
}

/// What is wrong with an edited text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Whose text.
    pub job: JobId,
    /// Where and why.
    pub diagnostics: Vec<Diagnostic>,
    /// It cannot be applied for another reason.
    pub why: Option<String>,
    /// The first line shown.
    pub top: usize,
}

pub(super) fn update(ui: &mut Ui, snap: &Snapshot, mut diff: Box<Diff>, action: &Action) -> Vec<UiCommand> {
    match action {
        Action::Yes => return editing::apply(ui),
        Action::Press if diff.on_apply => return editing::apply(ui),
        Action::No | Action::Press => {
            let job = diff.edited.job;
            ui.say(Level::Info, format!("#{job} is as it was"), Some(job));
            return editing::drop_mark(ui);
        }
        Action::Edit => return editing::again(ui, snap),
        Action::NextButton | Action::PreviousButton => diff.on_apply = !diff.on_apply,
        Action::Down => diff.top = (diff.top + 1).min(diff.edited.changes.len().saturating_sub(1)),
        Action::Up => diff.top = diff.top.saturating_sub(1),
        _ => {}
    }
    ui.overlay = Some(Overlay::Diff(diff));
    Vec::new()
}

pub(super) fn update_wrong(
    ui: &mut Ui,
    snap: &Snapshot,
    mut wrong: Box<Wrong>,
    action: &Action,
) -> Vec<UiCommand> {
    match action {
        Action::Edit => return editing::again(ui, snap),
        Action::No | Action::Press => return editing::drop_mark(ui),
        Action::Down => {
            let rows = verdict::fitted(&lines(&wrong), columns_of(ui.size.0)).len();
            wrong.top = (wrong.top + 1).min(rows.saturating_sub(1));
        }
        Action::Up => wrong.top = wrong.top.saturating_sub(1),
        _ => {}
    }
    ui.overlay = Some(Overlay::Wrong(wrong));
    Vec::new()
}

/// The two columns: a field, then its old and its new value.
fn columns(inner: Rect, changes: &[FieldChange]) -> (usize, usize) {
    let room = usize::from(inner.width).saturating_sub(5);
    let field = changes.iter().map(|change| width(&change.field)).max().unwrap_or(0).min(room / 3);
    (field, room.saturating_sub(field + 3) / 2)
}

/// Two texts in so many columns so that they can be told apart: where they are cut, what is alike in them goes first.
fn apart([old, new]: [&str; 2], columns: usize) -> [String; 2] {
    let cut = [cut_middle(old, columns), cut_middle(new, columns)];
    if old == new || cut[0] != cut[1] {
        return cut;
    }
    let alike = old.char_indices().zip(new.chars()).take_while(|((_, a), b)| a == b).count();
    // A few characters before it show where it is.
    let skipped = alike.saturating_sub(columns / 3);
    [old, new].map(|text| {
        let rest: String = text.chars().skip(skipped).collect();
        cut_end(&format!("..{rest}"), columns)
    })
}

pub(super) fn paint(c: &mut Canvas<'_>, area: Rect, diff: &Diff) {
    let Edited { job, changes, loses_place, diagnostics, .. } = &diff.edited;
    let warnings = verdict::lines(diagnostics);
    let notes = usize::from(*loses_place) + warnings.len();
    let height = u16::try_from(changes.len() + notes + 5).unwrap_or(u16::MAX);
    let popup = middle(area, 76, height.min(area.height));
    c.clear(popup);
    let title = format!("Change #{job} ?");
    let inner = c.frame(popup, &[(&title, Role::Title)], &[], true);
    let (field, value) = columns(inner, changes);
    let bar = format!(" {} ", c.vertical());
    let head = [left(" field", field + 2), left("old", value), left("new", value)];
    c.pieces(
        inner,
        0,
        &[(&head[0], Role::Dim), (&head[1], Role::Dim), (&bar, Role::Border), (&head[2], Role::Dim)],
    );
    let room = usize::from(inner.height).saturating_sub(notes.min(6) + 2);
    let mut y = 1;
    for change in changes.iter().skip(diff.top).take(room) {
        let name = left(&format!(" {}", cut_middle(&change.field, field)), field + 2);
        let old_new = [&change.old, &change.new].map(|one| one.as_deref().unwrap_or("-"));
        let [old, new] = apart(old_new, value).map(|one| left(&one, value));
        c.pieces(
            inner,
            y,
            &[(&name, Role::Text), (&old, Role::Dim), (&bar, Role::Border), (&new, Role::Title)],
        );
        y += 1;
    }
    if *loses_place {
        c.text(inner, y, " It asks for more GPUs: it loses its place in line.", Role::ToastWarn);
        y += 1;
    }
    let rest = Rect { y: inner.y + y, height: inner.height.saturating_sub(y + 1), ..inner };
    verdict::paint(c, rest, &warnings, 0);
    buttons(c, inner, diff.on_apply);
}

fn buttons(c: &mut Canvas<'_>, inner: Rect, on_apply: bool) {
    let row = inner.height.saturating_sub(1);
    let (keep, apply) = ("[ Leave it ]", "[y] Apply");
    let x = c.pieces(inner, row, &[("  ", Role::Text)]);
    let kept =
        c.pieces(Rect { x, width: inner.right().saturating_sub(x), ..inner }, row, &[(keep, Role::Dialog)]);
    let from = kept.saturating_add(3).min(inner.right());
    let rest = Rect { x: from, width: inner.right() - from, ..inner };
    let end = c.pieces(rest, row, &[(apply, Role::DialogDanger)]);
    let after = end.saturating_add(3).min(inner.right());
    c.pieces(
        Rect { x: after, width: inner.right() - after, ..inner },
        row,
        &[("e", Role::KeyHint), (" edit again", Role::Dim)],
    );
    focused(c, inner, row, if on_apply { (from, end) } else { (x, kept) });
}

fn lines(wrong: &Wrong) -> Vec<(String, Role)> {
    let mut lines: Vec<(String, Role)> =
        wrong.why.iter().map(|why| (format!("error: {why}"), Role::ToastError)).collect();
    lines.extend(verdict::lines(&wrong.diagnostics));
    lines
}

/// The columns that its lines have in a terminal of so many.
fn columns_of(terminal: u16) -> usize {
    usize::from(terminal.min(100)).saturating_sub(3)
}

pub(super) fn paint_wrong(c: &mut Canvas<'_>, area: Rect, wrong: &Wrong) {
    let lines = lines(wrong);
    let rows = verdict::fitted(&lines, columns_of(area.width)).len();
    let height = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(4);
    let popup = middle(area, 100, height.min(area.height));
    c.clear(popup);
    let title = format!("#{} cannot be changed like this", wrong.job);
    let inner = c.frame(popup, &[(&title, Role::DialogDanger)], &[], true);
    let body = Rect {
        x: inner.x + 1,
        width: inner.width.saturating_sub(1),
        height: inner.height.saturating_sub(2),
        ..inner
    };
    verdict::paint(c, body, &lines, wrong.top);
    let row = inner.height.saturating_sub(1);
    c.pieces(
        inner,
        row,
        &[
            (" e", Role::KeyHint),
            (" edit again   ", Role::Text),
            ("Esc", Role::KeyHint),
            (" drop the edit", Role::Text),
        ],
    );
    c.cursor = Some((inner.x, inner.y + row, false));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_so_that_their_difference_is_seen() {
        assert_eq!(apart(["2", "4"], 20), ["2", "4"]);
        let [old, new] = apart(
            [
                "python train.py --lr 0.10 --epochs 30 --seed 1234",
                "python train.py --lr 0.20 --epochs 30 --seed 1234",
            ],
            24,
        );
        assert_eq!([old.as_str(), new.as_str()], [".. --lr 0.10 --epochs..", ".. --lr 0.20 --epochs.."]);
        // What is longer at its end only is seen there already.
        assert_ne!(apart(["a b", "a b c"], 10)[0], "..");
    }
}
