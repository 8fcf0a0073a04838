//! Job files to submissions: reads nothing itself, and says what is wrong with them.

use super::message::Mailbox;
use crate::beneath;
use crate::config::{Config, Environment, Paths};
use crate::inbox::Drop;
use crate::jobfile::{self, Base, Context, Limits, RenderStyle, UntilDone};
use crate::model::{Amount, Bytes, JobId, JobSpec, Now, Origin, Owner, Stop, clean_line};
use crate::protocol::{Diagnostic, InboxRow, InboxState, PoolFacts, Severity, SubmitFile};
use crate::sched::Submission;
use jiff::tz::TimeZone;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Names of the inbox that screens show.
const ROWS: usize = 200;

/// What every file is read with.
#[derive(Debug, Clone)]
pub(super) struct Intake {
    pub(super) paths: Paths,
    pub(super) config: Config,
    pub(super) environment: Environment,
    pub(super) zone: TimeZone,
    pub(super) owner: Owner,
    pub(super) mailbox: Mailbox,
}

/// A file that was refused.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl Intake {
    /// Reads a drop.
    pub(super) fn drop(&self, dropped: Drop, pool: &PoolFacts, now: &Now) -> Result<Submission, Refusal> {
        let base = dropped
            .folder
            .as_ref()
            .map(|folder| Base { at: folder.clone(), will_be: self.folder_of(&dropped) });
        let shown = match &dropped.folder {
            Some(folder) => folder.join("job.yaml"),
            None => self.paths.inbox().join(&dropped.name),
        };
        let shown = self.shown(&shown);
        let overrides = crate::protocol::Overrides::default();
        let context = self.context(&shown, &dropped.stem, base, pool, now, &overrides);
        let parsed = jobfile::parse(&dropped.bytes, &context);
        if parsed.jobs.is_empty() {
            return Err(Refusal { diagnostics: parsed.diagnostics });
        }
        let folder = dropped.folder.as_ref().map(|_| self.folder_of(&dropped));
        Ok(Submission {
            owner: Owner { uid: dropped.uid, name: self.owner.name.clone() },
            origin: Origin::Inbox { name: dropped.name, folder },
            ident: Some(dropped.ident),
            source: text(dropped.bytes),
            jobs: parsed
                .jobs
                .into_iter()
                .map(|(spec, warnings)| (self.with_defaults(spec), said(&warnings)))
                .collect(),
            paused: false,
            retry_of: None,
            reply_to: None,
        })
    }

    /// Reads what a client sent.
    pub(super) fn submit(
        &self,
        file: SubmitFile,
        by: Owner,
        pool: &PoolFacts,
        now: &Now,
    ) -> Result<(Submission, Vec<Diagnostic>), Refusal> {
        let base = file.base.clone().map(|base| Base { at: base.clone(), will_be: base });
        let context = self.context(&file.shown, &file.stem, base, pool, now, &file.overrides);
        let parsed = jobfile::parse(&file.text, &context);
        if parsed.jobs.is_empty() {
            return Err(Refusal { diagnostics: parsed.diagnostics });
        }
        let warnings = parsed.diagnostics;
        let jobs = parsed
            .jobs
            .into_iter()
            .map(|(mut spec, warnings)| {
                for (name, value) in &file.environment {
                    if name == "PATH" || name == "LANG" || name.starts_with("LC_") {
                        spec.work.env.entry(name.clone()).or_insert_with(|| value.clone());
                    }
                }
                (self.with_defaults(spec), said(&warnings))
            })
            .collect();
        let submission = Submission {
            owner: by,
            origin: Origin::Submit { file: file.file },
            ident: None,
            source: with_overrides(text(file.text), &file.overrides),
            jobs,
            paused: file.paused,
            retry_of: None,
            reply_to: None,
        };
        Ok((submission, warnings))
    }

    fn context<'a>(
        &'a self,
        shown: &'a str,
        stem: &'a str,
        base: Option<Base>,
        pool: &'a PoolFacts,
        now: &Now,
        overrides: &'a crate::protocol::Overrides,
    ) -> Context<'a> {
        Context {
            shown,
            stem,
            base,
            home: self.environment.home.as_deref().unwrap_or(Path::new("/")),
            now_wall_ms: now.wall_ms,
            zone: self.zone.clone(),
            pool: Some(pool),
            limits: Limits {
                file_bytes: self.config.limits.max_file.0,
                tasks: self.config.limits.tasks,
                until_done: match self.config.limits.until_done {
                    crate::config::UntilDone::Allow => UntilDone::Allowed,
                    crate::config::UntilDone::Forbid | crate::config::UntilDone::Cap(_) => {
                        UntilDone::Forbidden
                    }
                },
                max_for: match self.config.limits.until_done {
                    crate::config::UntilDone::Cap(cap) => Some(cap),
                    crate::config::UntilDone::Allow | crate::config::UntilDone::Forbid => None,
                },
            },
            overrides,
            check_host: true,
        }
    }

    /// What the operator's defaults add to a job that does not say.
    fn with_defaults(&self, mut spec: JobSpec) -> JobSpec {
        let defaults = &self.config.defaults;
        if let Amount::Some(gpus @ 1..) = spec.request.gpus {
            let cores = defaults.cpus_per_gpu.map(|cores| Amount::Some(cores.saturating_mul(gpus)));
            let memory = defaults.memory_per_gpu.map(|each| Amount::Some(Bytes(each.0 * u64::from(gpus))));
            spec.request.cpus = spec.request.cpus.or(cores);
            spec.request.memory = spec.request.memory.or(memory);
        }
        if spec.work.stop == Stop::default() {
            spec.work.stop.grace = defaults.grace;
        }
        spec
    }

    /// Where an accepted folder is kept: known before it is accepted, so that its paths are right from the start.
    fn folder_of(&self, dropped: &Drop) -> PathBuf {
        let name = format!(
            "{}-{:x}-{:x}",
            crate::model::slug(&dropped.stem),
            dropped.ident.ino,
            dropped.ident.ctime_ns
        );
        self.paths.jobs().join(".folders").join(name)
    }

    /// A path as its owner writes it.
    fn shown(&self, path: &Path) -> String {
        let home = self.environment.home.as_deref().and_then(|home| path.strip_prefix(home).ok());
        clean_line(&home.map_or_else(|| path.display().to_string(), |rest| format!("~/{}", rest.display())))
    }

    /// What is said beside a refused file.
    pub(super) fn why_text(refusal: &Refusal) -> String {
        format!(
            "{}\nfile left where it is; it is read again when you save it\n",
            jobfile::render(&refusal.diagnostics, RenderStyle::Plain)
        )
    }

    /// Where that is said.
    pub(super) fn why(&self, name: &str) -> PathBuf {
        self.paths.inbox().join(why_name(name))
    }
}

/// `NAME.why.txt`; of a name that leaves no room for that its beginning, and what tells it from others like it.
fn why_name(name: &str) -> String {
    const ENDING: &str = ".why.txt";
    if name.len() + ENDING.len() <= beneath::NAME_BYTES {
        return format!("{name}{ENDING}");
    }
    let hash = blake3::hash(name.as_bytes()).to_hex();
    let mut end = beneath::NAME_BYTES - ENDING.len() - 9;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{}{ENDING}", &name[..end], &hash[..8])
}

/// A refusal without a place in the file.
pub(super) fn refusal(file: &str, message: &str, hint: &str) -> Refusal {
    Refusal {
        diagnostics: vec![Diagnostic {
            severity: Severity::Error,
            code: 0,
            message: clean_line(message),
            file: clean_line(file),
            line: 0,
            column: 0,
            width: 0,
            source: None,
            label: None,
            hint: (!hint.is_empty()).then(|| clean_line(hint)),
            known: Vec::new(),
            fix: None,
        }],
    }
}

/// What the command line changed is in what is kept, where it can be written into it.
fn with_overrides(text: String, overrides: &crate::protocol::Overrides) -> String {
    if *overrides == crate::protocol::Overrides::default() {
        return text;
    }
    let documents = jobfile::documents(&text);
    let written = documents.iter().map(|one| jobfile::with_overrides(one, overrides));
    written.collect::<Option<Vec<String>>>().map_or(text, |written| written.join("\n---\n"))
}

fn said(warnings: &[Diagnostic]) -> Vec<String> {
    warnings
        .iter()
        .map(|warning| {
            let hint = warning.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("line {}: {}{hint}", warning.line, warning.message)
        })
        .collect()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// What screens show of the inbox: refused files first, then newest first.
#[derive(Debug, Default)]
pub(super) struct InboxBoard {
    rows: VecDeque<InboxRow>,
    /// The folder itself is in trouble.
    pub(super) alarm: Option<String>,
}

impl InboxBoard {
    /// Notes what became of a name.
    pub(super) fn note(&mut self, name: &str, state: InboxState, now: &Now) {
        let name = clean_line(name);
        // The same once more is no news: it keeps its time and its place.
        if self.rows.iter().any(|row| row.name == name && row.state == state) {
            return;
        }
        self.rows.retain(|row| row.name != name || matches!(row.state, InboxState::Accepted { .. }));
        self.rows.push_front(InboxRow { name, at: now.wall_ms, state });
        self.rows.truncate(ROWS);
    }

    /// A name that was not accepted is gone.
    pub(super) fn gone(&mut self, name: &str) {
        let name = clean_line(name);
        self.rows.retain(|row| row.name != name || matches!(row.state, InboxState::Accepted { .. }));
    }

    /// A drop was accepted.
    pub(super) fn accepted(&mut self, name: &str, jobs: Vec<JobId>, now: &Now) {
        self.note(name, InboxState::Accepted { jobs, warnings: Vec::new() }, now);
    }

    /// Refused ones first, then newest first.
    pub(super) fn rows(&self) -> Vec<InboxRow> {
        let (refused, others): (Vec<_>, Vec<_>) =
            self.rows.iter().cloned().partition(|row| matches!(row.state, InboxState::Refused { .. }));
        refused.into_iter().chain(others).collect()
    }
}
