//! The filter of the tables: words and `field:value`, all of which must match. Pure.

use crate::protocol::JobRow;
use crate::tui::field::Field;
use crate::tui::keys::Action;
use crate::tui::look::text::state;

/// A filter as typed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// What was typed.
    pub field: Field,
}

impl Filter {
    /// Nothing is filtered.
    pub fn is_empty(&self) -> bool {
        self.field.is_empty()
    }

    /// What was typed.
    pub fn text(&self) -> &str {
        self.field.text()
    }

    /// Filters nothing any more.
    pub fn clear(&mut self) {
        self.field.clear();
    }

    /// Does what an action means to the text.
    pub fn edit(&mut self, action: &Action) {
        self.field.edit(action);
    }

    /// Whether a job passes.
    ///
    /// Bare words match id, name, user and state; `u:` `s:` `n:` `id:` `p:` match one field; a leading `!` or `-` turns a
    /// word round.
    pub fn matches(&self, row: &JobRow) -> bool {
        self.text().split_whitespace().all(|word| {
            let (inverted, word) = match word.strip_prefix(['!', '-']) {
                Some(rest) if !rest.is_empty() => (true, rest),
                _ => (false, word),
            };
            matches(word, row) != inverted
        })
    }
}

fn matches(word: &str, row: &JobRow) -> bool {
    let has = |text: &str, part: &str| text.to_lowercase().contains(&part.to_lowercase());
    let is_state = |part: &str| {
        let part = part.to_lowercase();
        let short = state(row).0.to_lowercase();
        short.starts_with(&part)
            || row.state.word().starts_with(&part)
            || "paused".starts_with(&part) && short == "paus"
    };
    match word.split_once(':') {
        Some(("u" | "user", part)) => has(&row.user, part),
        Some(("s" | "state", part)) => is_state(part),
        Some(("n" | "name", part)) => has(&row.name, part),
        Some(("p" | "project", part)) => row.project.as_ref().is_some_and(|project| has(project, part)),
        Some(("id", part)) => row.id.to_string() == part.trim_start_matches('#'),
        Some(("gpu", part)) => row.gpu_indices.iter().any(|index| index.to_string() == part),
        _ => {
            let id = word.trim_start_matches('#');
            row.id.to_string().starts_with(id) && !id.is_empty()
                || has(&row.name, word)
                || has(&row.user, word)
                || state(row).0.eq_ignore_ascii_case(word)
                || row.state.word().eq_ignore_ascii_case(word)
        }
    }
}
