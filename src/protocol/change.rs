//! Changing a job that waits: its file, what an edit comes to, what a change would do to others, what can be undone.
//!
//! To edit: [`Command::BeginEdit`], [`Query::JobFile`], an editor, [`Command::Edit`] with `dry_run` for what is asked
//! before it is applied, [`Command::Edit`]. On every other way out [`Command::EndEdit`]; a client that is gone costs no
//! more than the wait for the mark's end. A quick edit is [`Query::JobFile`] and [`Command::Edit`] with overrides.
//!
//! [`Command::BeginEdit`]: super::Command::BeginEdit
//! [`Command::Edit`]: super::Command::Edit
//! [`Command::EndEdit`]: super::Command::EndEdit
//! [`Query::JobFile`]: super::Query::JobFile

use super::{Diagnostic, Overrides, SubmitFile};
use crate::model::{Generation, JobId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Who edits a job, and how long it is kept from starting for that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditMark {
    /// Who.
    pub by: String,
    /// When the mark expires, wall milliseconds.
    pub until: i64,
}

/// The text of a job's file as it is in force: edits and overrides are in it, and the priority that it has now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFile {
    /// The job.
    pub job: JobId,
    /// As it is now.
    pub generation: Generation,
    /// Its name: the default name of what is made of the text.
    pub name: String,
    /// The one document of this job. Not cleaned: for files and editors, not for screens.
    pub text: String,
    /// Where its relative paths start.
    pub base: Option<PathBuf>,
}

impl JobFile {
    /// The text, or another one in its place, as [`Command::Edit`](super::Command::Edit) wants it.
    pub fn edited(&self, text: Vec<u8>, shown: String, overrides: Overrides) -> SubmitFile {
        SubmitFile {
            text,
            shown,
            stem: self.name.clone(),
            file: None,
            base: self.base.clone(),
            overrides,
            environment: BTreeMap::new(),
            paused: false,
        }
    }
}

/// What an edit came to, or would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edited {
    /// The job.
    pub job: JobId,
    /// One line for people.
    pub message: String,
    /// Whether it was applied; `false`: it was a dry run.
    pub applied: bool,
    /// What changed; empty: nothing did.
    pub changes: Vec<FieldChange>,
    /// Its GPUs grew: it goes where a new job of its size would.
    pub loses_place: bool,
    /// Warnings.
    pub diagnostics: Vec<Diagnostic>,
}

/// One field of a job file, in its words, secrets masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldChange {
    /// `request.gpus`
    pub field: String,
    /// As it was; `None`: not there.
    pub old: Option<String>,
    /// As it is; `None`: not there.
    pub new: Option<String>,
}

/// What a change would do to the line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WhatIf {
    /// Why the change would be refused, or would change nothing; then there are no rows.
    pub refused: Option<String>,
    /// Jobs whose place or forecast changes: the changed job first, then those that are next in line.
    pub rows: Vec<WhatIfRow>,
    /// How many further ones there are.
    pub more: u32,
}

/// One job before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhatIfRow {
    /// The job.
    pub job: JobId,
    /// Its name.
    pub name: String,
    /// Owner's account.
    pub user: String,
    /// As things are.
    pub old: Expectation,
    /// As they would be.
    pub new: Expectation,
}

/// What a waiting job can expect. Wall milliseconds; `None`: nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Expectation {
    /// Place in line, from 1; `None`: paused.
    pub place: Option<u32>,
    /// Expected start.
    pub starts_at: Option<i64>,
    /// Start at the latest.
    pub starts_by: Option<i64>,
    /// Expected end.
    pub finishes_at: Option<i64>,
    /// It will miss its deadline.
    pub late: bool,
}

/// Something that can still be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoRow {
    /// The job.
    pub job: JobId,
    /// Its name.
    pub name: String,
    /// What was done, in words: `priority 0 -> 10`.
    pub what: String,
    /// Who did it.
    pub by: String,
    /// When, wall milliseconds.
    pub at: i64,
    /// Until when it can be undone, wall milliseconds; a job that starts before ends it too.
    pub until: i64,
}
