//! The filter of the tables: words and `field:value`, all of which must match. Pure.
//!
//! ```text
//!  filter = term*                      all of them must match
//!  term   = [!-] (word | field:value)  ! and - turn one round
//!  field  = u s n p | g gpu id         text fields, number fields
//!  value  = text | "text" | /regex/    a part of it, whatever the case; a regular expression
//!         | 4 | >2 | >=2 | <2 | <=2 | 2..4
//! ```
//!
//! A text is read once, when it changes. What cannot be read says where and why, and what was read last goes on.

mod read;

use crate::model::Cursor;
use crate::protocol::JobRow;
use crate::tui::field::Field;
use crate::tui::keys::Action;
use crate::tui::look::text::state;
use regex::Regex;
use std::sync::Arc;

/// What is wrong with a filter's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    /// The byte at which the word that cannot be read begins.
    pub at: usize,
    /// What is wrong, and how it is written.
    pub why: String,
}

/// A filter as typed, and as it was last understood.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// What is typed.
    field: Field,
    /// What it means; of a text that cannot be read, what it meant before.
    terms: Arc<[Term]>,
    error: Option<FilterError>,
}

/// One of the things that must match.
#[derive(Debug)]
struct Term {
    inverted: bool,
    test: Test,
}

/// What is asked of a row.
#[derive(Debug)]
enum Test {
    /// Id, name, user or state.
    Any {
        id: Option<String>,
        text: Text,
    },
    User(Text),
    Name(Text),
    Project(Text),
    /// The beginning of a state's word, in small letters.
    State(String),
    Gpus(Range),
    /// Holds a device with such an index.
    Device(Range),
    Id(Range),
}

/// What is asked of a text. One compiled expression either way: no row costs an allocation.
#[derive(Debug)]
struct Text {
    /// Somewhere in it.
    part: Regex,
}

impl Text {
    fn is_in(&self, text: &str) -> bool {
        self.part.is_match(text)
    }
}

/// From and to, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    from: u64,
    to: u64,
}

impl Range {
    const fn has(self, number: u64) -> bool {
        self.from <= number && number <= self.to
    }
}

impl From<&str> for Filter {
    fn from(text: &str) -> Self {
        let mut filter = Self { field: Field::from(text), ..Self::default() };
        filter.read();
        filter
    }
}

impl Filter {
    /// Nothing is filtered and nothing is typed.
    pub fn is_empty(&self) -> bool {
        self.field.is_empty()
    }

    /// What was typed.
    pub fn text(&self) -> &str {
        self.field.text()
    }

    /// What was typed before the cursor.
    pub fn before(&self) -> &str {
        self.field.before()
    }

    /// Why the text cannot be read; the rows stay as they were then.
    pub const fn error(&self) -> Option<&FilterError> {
        self.error.as_ref()
    }

    /// Filters nothing any more.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Does what an action means to the text.
    pub fn edit(&mut self, action: &Action) {
        let before = self.field.text().to_owned();
        if self.field.edit(action) && self.field.text() != before {
            self.read();
        }
    }

    /// Reads the text anew.
    fn read(&mut self) {
        match read::terms(self.field.text()) {
            Ok(terms) => (self.terms, self.error) = (terms.into(), None),
            Err(error) => self.error = Some(error),
        }
    }

    /// Whether a job passes.
    pub fn matches(&self, row: &JobRow) -> bool {
        self.terms.iter().all(|term| term.test.holds(row) != term.inverted)
    }
}

/// State words in full.
const LONG: &[(&str, &str)] = &[
    ("WAIT", "waiting"),
    ("PAUS", "paused"),
    ("RENT", "renting"),
    ("OUT", "output"),
    ("FREE", "releasing"),
    ("FAIL", "failed"),
    ("CANC", "cancelled"),
];

impl Test {
    fn holds(&self, row: &JobRow) -> bool {
        match self {
            Self::Any { id, text } => {
                id.as_ref().is_some_and(|id| row.id.0.to_string().starts_with(id.as_str()))
                    || text.is_in(&row.name)
                    || text.is_in(&row.user)
                    || text.part.find(state(row).0).is_some_and(|found| found.len() == state(row).0.len())
                    || text
                        .part
                        .find(row.state.word())
                        .is_some_and(|found| found.len() == row.state.word().len())
            }
            Self::User(text) => text.is_in(&row.user),
            Self::Name(text) => text.is_in(&row.name),
            Self::Project(text) => row.project.as_deref().is_some_and(|project| text.is_in(project)),
            Self::State(part) => {
                let begins =
                    |word: &str| word.get(..part.len()).is_some_and(|w| w.eq_ignore_ascii_case(part));
                let short = state(row).0;
                let long = LONG.iter().find(|(word, _)| *word == short).map_or("", |(_, long)| *long);
                // All of the history is done; what it is asked for is how it ended.
                begins(short) || row.state != Cursor::Done && begins(row.state.word()) || begins(long)
            }
            Self::Gpus(range) => range.has(row.gpus.into()),
            Self::Device(range) => row.gpu_indices.iter().any(|index| range.has((*index).into())),
            Self::Id(range) => range.has(row.id.0),
        }
    }
}
