//! The question before several jobs, many jobs, or somebody else's job are cancelled or submitted again.
//!
//! Few of one's own: as for one. More, or somebody else's: their number is typed, so that no habit answers.

use super::{Button, Overlay, confirm, middle};
use crate::model::{Generation, JobId};
use crate::protocol::{JobRow, Snapshot};
use crate::tui::field::Field;
use crate::tui::keys::{Action, Mode};
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{cut_middle, hours, left, state, width};
use crate::tui::look::theme::Role;
use crate::tui::ui::{Level, Ui};
use crate::tui::update::bulk::{self, ASKS_ABOVE};
use crate::tui::{UiCommand, View};
use ratatui::layout::Rect;

/// The question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bulk {
    /// What would be done: a cancel or a retry.
    pub action: Action,
    /// To which jobs, as they were when the question was asked.
    pub jobs: Vec<(JobId, Generation)>,
    /// What cannot be done to the other marked ones.
    pub refused: Vec<String>,
    /// The button that Enter presses.
    pub button: Button,
    /// Their number has to be typed.
    pub field: Option<Field>,
}

impl Bulk {
    /// The question about these jobs.
    pub(in crate::tui) fn new(ui: &Ui, snap: &Snapshot, action: Action, jobs: &[&JobRow]) -> Self {
        // To submit somebody else's job again takes nothing from them.
        let others = action == Action::Cancel && jobs.iter().any(|row| row.user != ui.me(snap));
        let typed = jobs.len() > ASKS_ABOVE || others;
        Self {
            action,
            jobs: jobs.iter().map(|row| (row.id, row.generation)).collect(),
            refused: Vec::new(),
            button: Button::Keep,
            field: typed.then(Field::default),
        }
    }

    /// What keys mean while it is there.
    pub(super) const fn mode(&self) -> Mode {
        if self.field.is_some() { Mode::Input } else { Mode::Dialog }
    }

    /// The button that was pressed by name, by focus or by the right number.
    fn pressed(&mut self, action: &Action) -> Option<Button> {
        let count = self.jobs.len().to_string();
        let drawn = if self.retries() { 2 } else { 3 };
        let Some(field) = &mut self.field else {
            let order = &[Button::Keep, Button::Cancel, Button::Now][..drawn];
            return confirm::pressed(&mut self.button, action, order);
        };
        if *action != Action::Accept {
            field.edit(action);
            return None;
        }
        match field.text().trim() {
            text if text == count => Some(Button::Cancel),
            text if text.strip_suffix('!') == Some(&count) => Some(Button::Now),
            _ => None,
        }
    }

    fn retries(&self) -> bool {
        self.action == Action::Retry
    }
}

pub(super) fn update(ui: &mut Ui, snap: &Snapshot, mut it: Bulk, action: &Action) -> Vec<UiCommand> {
    match it.pressed(action) {
        Some(Button::Keep) => Vec::new(),
        Some(_) if it.retries() => bulk::retry(ui, snap, &it.jobs, it.refused),
        Some(button) => bulk::cancel(ui, snap, &it.jobs, it.refused, button == Button::Now),
        None => {
            if *action == Action::Accept {
                ui.say(Level::Warning, format!("type {}, or Esc", it.jobs.len()), None);
            }
            ui.overlay = Some(Overlay::Bulk(it));
            Vec::new()
        }
    }
}

/// Rows of jobs that are named.
const NAMED: usize = 5;

/// Over the screen.
pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, it: &Bulk) {
    let found: Vec<&JobRow> = it.jobs.iter().filter_map(|(job, _)| v.find(*job)).collect();
    let named = found.len().min(NAMED);
    let more = found.len() - named;
    let height = named + usize::from(more > 0) + usize::from(!it.refused.is_empty()) + 5;
    let popup = middle(area, 62, height as u16);
    c.clear(popup);
    let verb = if it.retries() { "Submit again" } else { "Cancel" };
    let title = match found.as_slice() {
        [one] => format!("{verb} #{} of {} ?", one.id, one.user),
        _ => format!("{verb} {} jobs ?", it.jobs.len()),
    };
    let inner = c.frame(popup, &[(&title, Role::DialogDanger)], &[], true);
    let mut at = 0;
    let digits = found[..named].iter().map(|row| row.id.to_string().len()).max().unwrap_or(0);
    for row in &found[..named] {
        let (word, role) = state(row);
        let lead = format!(" {} ", left(&format!("#{}", row.id), digits + 1));
        let room = usize::from(inner.width).saturating_sub(lead.len() + 6 + 9);
        let rest = format!(" {} {}", left(&row.user, 7), cut_middle(&row.name, room));
        c.pieces(inner, at, &[(&lead, Role::Dialog), (&left(word, 5), role), (&rest, Role::Dialog)]);
        at += 1;
    }
    if more > 0 {
        c.text(inner, at, &format!(" and {more} more"), Role::Dialog);
        at += 1;
    }
    if let Some(first) = it.refused.first() {
        c.text(inner, at, &format!(" not {}: {first}", it.refused.len()), Role::ToastWarn);
        at += 1;
    }
    let held: u64 = found.iter().map(|row| row.gpu_ms(&v.now)).sum();
    let about = if it.retries() {
        " Each gets its own number and folder. You can undo for 10 s.".to_owned()
    } else {
        let they = if it.jobs.len() == 1 { "It has" } else { "They have" };
        format!(" {they} held {} GPU-h. You can undo for at least 5 s.", hours(held))
    };
    c.text(inner, at, &about, Role::Dialog);
    if let Some(field) = &it.field {
        ask(c, inner, (it.jobs.len(), it.retries()), field);
        return;
    }
    let yes = format!("[y] {verb}");
    let answers =
        [(Button::Keep, "[ Keep ]", Role::Dialog), (Button::Cancel, yes.as_str(), Role::DialogDanger)];
    let now = (Button::Now, "[!] now", Role::DialogDanger);
    let answers: Vec<_> = answers.into_iter().chain((!it.retries()).then_some(now)).collect();
    confirm::buttons(c, inner, &answers, it.button);
}

fn ask(c: &mut Canvas<'_>, inner: Rect, (count, retries): (usize, bool), field: &Field) {
    let row = inner.height.saturating_sub(1);
    let at_once = if retries { String::new() } else { format!(" ({count}! at once)") };
    let prompt = format!(" Type {count} and Enter{at_once}, or Esc: ");
    let shown = left(field.text(), 6.max(width(field.text())));
    c.pieces(inner, row, &[(&prompt, Role::DialogDanger), (&shown, Role::Input)]);
    let x = inner.x + (width(&prompt) + width(field.before())) as u16;
    c.cursor = Some((x.min(inner.right().saturating_sub(1)), inner.y + row, true));
}
