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
//! Which fields there are, and what each of them is, the rows say: [`rows`].

mod page;
mod read;
mod rows;

use crate::tui::field::Field;
use crate::tui::keys::Action;
use crate::tui::layout::Pane;
use regex::Regex;
use std::sync::Arc;

pub(in crate::tui) use page::page;
pub use rows::{Device, Filtered, Subject};

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
    /// What it is a filter of.
    subject: Subject,
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

    fn is_all_of(&self, text: &str) -> bool {
        !text.is_empty() && self.part.find(text).is_some_and(|found| found.len() == text.len())
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
        Self::read_as(Subject::Jobs, text)
    }
}

impl Filter {
    /// A filter of rows of a kind.
    pub fn read_as(subject: Subject, text: &str) -> Self {
        let mut filter = Self { subject, field: Field::from(text), ..Self::default() };
        filter.read();
        filter
    }

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
        *self = Self { subject: self.subject, ..Self::default() };
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
        match read::terms(self.subject, self.field.text()) {
            Ok(terms) => (self.terms, self.error) = (terms.into(), None),
            Err(error) => self.error = Some(error),
        }
    }

    /// Whether a row passes.
    pub fn matches(&self, row: &impl Filtered) -> bool {
        self.terms.iter().all(|term| term.test.holds(row) != term.inverted)
    }

    /// What can be typed, in a few words.
    pub const fn hint(&self) -> &'static str {
        self.subject.spec().hint
    }
}

impl Test {
    fn holds(&self, row: &impl Filtered) -> bool {
        match self {
            Self::Any { id, text } => {
                let begins =
                    |number: u64| id.as_ref().is_some_and(|id| number.to_string().starts_with(id.as_str()));
                row.id(&begins)
                    || row.name(&|name| text.is_in(name))
                    || row.user(&|user| text.is_in(user))
                    || row.words().into_iter().any(|word| text.is_all_of(word))
            }
            Self::User(text) => row.user(&|user| text.is_in(user)),
            Self::Name(text) => row.name(&|name| text.is_in(name)),
            Self::Project(text) => row.project(&|project| text.is_in(project)),
            Self::State(part) => row.words().into_iter().any(|word| {
                word.get(..part.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(part))
            }),
            Self::Gpus(range) => row.gpus(&|count| range.has(count)),
            Self::Device(range) => row.device(&|index| range.has(index)),
            Self::Id(range) => row.id(&|id| range.has(id)),
        }
    }
}

/// One filter for the tables of jobs, one for the devices' screen, one for the inbox.
#[derive(Debug, Clone)]
pub struct Filters {
    /// Of the queue and the history.
    pub jobs: Filter,
    /// Of the devices, on their own screen.
    pub gpus: Filter,
    /// Of the files, on the inbox's own screen.
    pub files: Filter,
}

impl Default for Filters {
    fn default() -> Self {
        Self {
            jobs: Filter::default(),
            gpus: Filter::read_as(Subject::Devices, ""),
            files: Filter::read_as(Subject::Files, ""),
        }
    }
}

impl Filters {
    /// The filter of a pane; one that lists nothing has the jobs'.
    pub const fn of(&self, pane: Pane) -> &Filter {
        match pane {
            Pane::Queue | Pane::History | Pane::Meter | Pane::Job | Pane::Log => &self.jobs,
            Pane::Gpus => &self.gpus,
            Pane::Inbox => &self.files,
        }
    }

    /// The same, to be changed.
    pub const fn of_mut(&mut self, pane: Pane) -> &mut Filter {
        match pane {
            Pane::Queue | Pane::History | Pane::Meter | Pane::Job | Pane::Log => &mut self.jobs,
            Pane::Gpus => &mut self.gpus,
            Pane::Inbox => &mut self.files,
        }
    }
}
