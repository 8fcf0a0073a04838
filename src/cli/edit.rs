//! `edit`: another request for a job that waits, by an editor, a file or a few options.

use super::args::EditArgs;
use super::editor::Copy;
use super::jobfiles::{Source, print_findings};
use super::session::Session;
use super::{CliError, Exit, Io, Setup, said};
use crate::model::{Generation, JobId};
use crate::protocol::{
    Command, Edited, FieldChange, JobFile, Overrides, Query, Reply, Request, SubmitFile, json,
};
use std::io::{BufRead, IsTerminal};

/// The editor where none is set.
const EDITOR: &str = "vi";

/// Edits one job.
pub(super) fn edit(args: &EditArgs, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let mut session = Session::open(setup)?;
    let (job, generation) = session.resolve(&args.job)?;
    let asks = !args.yes && !args.dry_run;
    if asks && !std::io::stdin().is_terminal() {
        let why = "nobody can be asked here: --yes applies what is good, --dry-run only says it".to_owned();
        return Err(CliError::Usage { what: "edit".to_owned(), why });
    }
    let file = job_file(&mut session, job)?;
    let overrides = Overrides { priority: args.priority, ..args.overrides.overrides() };
    let mut editing = Editing { session: &mut session, args, job, generation, file };
    if args.file.is_none() && overrides == Overrides::default() {
        return editing.in_editor(setup, io);
    }
    let text = match &args.file {
        Some(path) => Source::read(path, &setup.config)?,
        None => editing.own_text(),
    };
    let mut file = editing.file.edited(text.text, text.shown, overrides);
    file.base = file.base.or(text.base);
    match editing.offer(&file, io)? {
        Offer::Done(exit) => Ok(exit),
        Offer::Bad => Ok(Exit::Failed),
    }
}

fn job_file(session: &mut Session, job: JobId) -> Result<JobFile, CliError> {
    match session.query(Query::JobFile { job })? {
        Reply::JobFile(file) => Ok(*file),
        _ => Err(CliError::Answer),
    }
}

/// An edit under way.
struct Editing<'a> {
    session: &'a mut Session,
    args: &'a EditArgs,
    job: JobId,
    /// The mark's, once there is one.
    generation: Generation,
    file: JobFile,
}

/// What became of a text.
enum Offer {
    /// Applied, not wanted, or nothing new.
    Done(Exit),
    /// It has errors, which were said.
    Bad,
}

impl Editing<'_> {
    fn own_text(&self) -> Source {
        Source {
            text: self.file.text.clone().into_bytes(),
            shown: format!("#{} {}", self.job, self.file.name),
            stem: self.file.name.clone(),
            file: None,
            base: None,
            folder: false,
        }
    }

    /// With the mark that keeps the job from starting meanwhile; whatever happens it is dropped.
    fn in_editor(&mut self, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
        let (job, generation) = (self.job, self.generation);
        match self.session.ask(Request::Command(Command::BeginEdit { job, generation }))? {
            Reply::Editing { generation, .. } => self.generation = generation,
            _ => return Err(CliError::Answer),
        }
        let done = self.with_mark(setup, io);
        let end = Command::EndEdit { job, generation: self.generation };
        // The mark ends by itself where nobody can be told.
        drop(self.session.ask(Request::Command(end)));
        done
    }

    fn with_mark(&mut self, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
        // Only now it cannot change any more.
        self.file = job_file(self.session, self.job)?;
        let mut copy = Copy::of(&self.file, &setup.paths)?;
        let editor = setup.environment.editor.as_deref().unwrap_or(EDITOR);
        loop {
            io.flush()?;
            copy.edit(editor)?;
            let text = copy.read()?;
            if text == self.file.text.as_bytes() {
                io.line(&format!("#{} is as it was", self.job))?;
                return Ok(Exit::Ok);
            }
            let shown = format!("#{} {}", self.job, self.file.name);
            let file = self.file.edited(text, shown, Overrides::default());
            match self.offer(&file, io) {
                Ok(Offer::Done(exit)) => return Ok(exit),
                Ok(Offer::Bad) => {}
                Err(error) => {
                    let kept = copy.keep().display().to_string();
                    said(&error, io)?;
                    io.note(&format!("the text is kept: overnight edit {} --file {kept}", self.job));
                    return Ok(Exit::Failed);
                }
            }
            let again = !self.args.yes && answer("e edits it again, anything else drops it: ", io)? == "e";
            if !again {
                io.line(&format!("#{} is as it was", self.job))?;
                return Ok(Exit::Failed);
            }
        }
    }

    /// Says what a text comes to, asks, and applies it.
    fn offer(&mut self, file: &SubmitFile, io: &mut Io<'_>) -> Result<Offer, CliError> {
        let would = match self.send(file, true)? {
            Reply::Edited(would) => *would,
            Reply::Invalid { diagnostics } => {
                print_findings(&diagnostics, io)?;
                return Ok(Offer::Bad);
            }
            _ => return Err(CliError::Answer),
        };
        let nothing = would.changes.is_empty() && would.message.ends_with("is as it was");
        if !self.args.json {
            print_findings(&would.diagnostics, io)?;
            show(&would, io)?;
        }
        if self.args.dry_run || nothing {
            return self.tell(&would, io);
        }
        if !self.args.yes && !matches!(answer("apply? [y/N] ", io)?.as_str(), "y" | "yes") {
            io.line(&format!("#{} is as it was", self.job))?;
            return Ok(Offer::Done(Exit::Ok));
        }
        match self.send(file, false)? {
            Reply::Edited(edited) => self.tell(&edited, io),
            Reply::Invalid { diagnostics } => {
                print_findings(&diagnostics, io)?;
                Ok(Offer::Bad)
            }
            _ => Err(CliError::Answer),
        }
    }

    fn tell(&self, edited: &Edited, io: &mut Io<'_>) -> Result<Offer, CliError> {
        if self.args.json {
            io.json(&json::edited(edited))?;
        } else if edited.applied || edited.changes.is_empty() {
            io.line(&edited.message)?;
        }
        Ok(Offer::Done(Exit::Ok))
    }

    fn send(&mut self, file: &SubmitFile, dry_run: bool) -> Result<Reply, CliError> {
        let (job, generation, file) = (self.job, self.generation, file.clone());
        self.session.ask(Request::Command(Command::Edit { job, generation, file, dry_run }))
    }
}

/// One line that the person types. Nothing at the end of the input.
fn answer(question: &str, io: &mut Io<'_>) -> Result<String, CliError> {
    io.ask(question)?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(|source| CliError::File {
        doing: "read",
        path: "standard input".into(),
        source,
    })?;
    Ok(line.trim().to_lowercase())
}

/// Old and new of each field.
fn show(would: &Edited, io: &mut Io<'_>) -> Result<(), CliError> {
    for FieldChange { field, old, new } in &would.changes {
        let short =
            |value: &Option<String>| value.as_ref().is_none_or(|value| !value.trim_end().contains('\n'));
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
        if short(old) && short(new) {
            io.line(&format!("  {field}  {} -> {}", text(old).trim_end(), text(new).trim_end()))?;
            continue;
        }
        io.line(&format!("  {field}"))?;
        for (sign, value) in [('-', old), ('+', new)] {
            let other = if sign == '-' { new } else { old };
            let there: Vec<&str> = other.as_deref().unwrap_or("").lines().collect();
            for line in value.as_deref().unwrap_or("").lines().filter(|line| !there.contains(line)) {
                io.line(&format!("    {sign} {line}"))?;
            }
        }
    }
    if would.loses_place {
        io.line("  it asks for more GPUs: it loses its place and waits where a new job would")?;
    }
    Ok(())
}
