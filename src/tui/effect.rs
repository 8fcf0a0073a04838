//! What the newest action does to the others in line, as the scheduler works it out before it is done. Pure.
//!
//! Each change asks by itself, and is answered before the next one is done: what an action of several changes does is
//! from how things were before the first to how they are after the last.

use crate::model::JobId;
use crate::protocol::{WhatIf, WhatIfRow};
use crate::tui::ui::{Level, Ui};
use crate::tui::update::pending::Change;
use std::collections::BTreeSet;

/// What the newest action does.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Effect {
    /// The jobs it changes.
    changed: BTreeSet<JobId>,
    /// How.
    how: Option<Change>,
    /// What it does, as far as it is known.
    it: WhatIf,
    /// It is shown until then, on the boot clock.
    until: Option<u64>,
}

/// How long an effect is shown.
const SHOWN_MS: u64 = 10_000;
/// More changes than this do not ask: at ten thousand jobs an answer takes the scheduler 20 ms.
pub(in crate::tui) const ASKS: usize = 10;

impl Effect {
    /// What it does to a job.
    pub(in crate::tui) fn on(&self, job: JobId) -> Option<&WhatIfRow> {
        self.it.rows.iter().find(|row| row.job == job && row.old != row.new)
    }

    /// When it is no longer shown, on the boot clock.
    pub(in crate::tui) const fn until(&self) -> Option<u64> {
        self.until
    }

    /// What it does to others in one line, if this job is one of those it changes.
    pub(in crate::tui) fn words_of(&self, job: JobId) -> Option<String> {
        self.changed.contains(&job).then(|| words(&self.it, &self.changed)).flatten()
    }
}

/// An action begins that changes these jobs so.
pub(in crate::tui) fn begin(ui: &mut Ui, jobs: impl IntoIterator<Item = JobId>, how: Change) {
    let jobs: BTreeSet<JobId> = jobs.into_iter().collect();
    let effect = &mut ui.fetched.effect;
    // A key that is held is one action.
    let is_alike = match (effect.how, how) {
        (Some(Change::Priority(_)), Change::Priority(_)) => true,
        (Some(before), how) => before == how,
        (None, _) => false,
    };
    if effect.changed != jobs || !is_alike {
        *effect = Effect { changed: jobs, how: Some(how), ..Effect::default() };
    }
}

/// What was done has no effect any more: it was refused, or taken back.
pub(in crate::tui) fn end(ui: &mut Ui, job: JobId) {
    if ui.fetched.effect.changed.contains(&job) {
        ui.fetched.effect = Effect::default();
    }
}

/// Takes in what a change does.
pub(in crate::tui) fn took(ui: &mut Ui, job: JobId, it: WhatIf) {
    let until = ui.now.boottime_ms + SHOWN_MS;
    let effect = &mut ui.fetched.effect;
    if !effect.changed.contains(&job) {
        return;
    }
    effect.it = merged(std::mem::take(&mut effect.it), it);
    effect.until = Some(until);
    if effect.changed.len() == 1
        && let Some(words) = words(&effect.it, &effect.changed)
    {
        ui.say(Level::Info, words, None);
    }
}

/// From how things were before the first to how they are after the second.
fn merged(first: WhatIf, second: WhatIf) -> WhatIf {
    let mut rows = first.rows;
    for row in second.rows {
        match rows.iter_mut().find(|known| known.job == row.job) {
            Some(known) => known.new = row.new,
            None => rows.push(row),
        }
    }
    rows.retain(|row| row.old != row.new);
    WhatIf { rows, more: first.more.max(second.more), ..second }
}

/// An effect that has been shown long enough goes.
pub(in crate::tui) fn tick(ui: &mut Ui) {
    let now = ui.now.boottime_ms;
    if ui.fetched.effect.until.is_some_and(|until| until <= now) {
        ui.fetched.effect = Effect::default();
    }
}

/// What a change does to others, in one line; `None`: nothing.
fn words(it: &WhatIf, changed: &BTreeSet<JobId>) -> Option<String> {
    let others = it.rows.iter().filter(|row| !changed.contains(&row.job));
    let (mut later, mut sooner, mut late) = (0_u32, 0_u32, 0_u32);
    for row in others {
        match (row.old.starts_at, row.new.starts_at) {
            // What is less than a minute is seen on no clock.
            (Some(old), Some(new)) if new >= old + 60_000 => later += 1,
            (Some(old), Some(new)) if new + 60_000 <= old => sooner += 1,
            (Some(_), None) => later += 1,
            _ => {}
        }
        late += u32::from(row.new.late && !row.old.late);
    }
    let jobs = |n: u32| if n == 1 { "1 job".to_owned() } else { format!("{n} jobs") };
    let mut words = Vec::new();
    if later > 0 {
        words.push(format!("moves {} later", jobs(later)));
    }
    if sooner > 0 {
        words.push(format!("{}{} sooner", if later > 0 { "" } else { "moves " }, jobs(sooner)));
    }
    if late > 0 {
        words.push(format!("{late} will miss {} deadline", if late == 1 { "its" } else { "their" }));
    }
    let own = it.rows.iter().filter(|row| changed.contains(&row.job) && row.new.late && !row.old.late);
    match (own.count(), changed.len()) {
        (0, _) => {}
        (_, 1) => words.push("it will miss its own deadline".to_owned()),
        (own, _) => words.push(format!("{own} of them will miss a deadline")),
    }
    if it.more > 0 && !words.is_empty() {
        words.push(format!("{} more further back", it.more));
    }
    (!words.is_empty()).then(|| words.join(", "))
}
