//! Job files again: the text of a job that is there, and the text that is to take its place.

use super::clerk::Order;
use super::intake::{Intake, Refusal, refusal};
use super::turns::Daemon;
use crate::jobfile;
use crate::model::{Generation, Job, JobId, JobSpec, JobText, Now, Origin, Owner};
use crate::protocol::{Change, Diagnostic, JobFile, Overrides, PoolFacts, Reply, SubmitFile};
use crate::sched::{self, Edit, view};

/// Retries of retries that are followed back to a text.
const RETRIES: usize = 100;

impl Daemon {
    /// To `Query::JobFile`.
    pub(super) fn job_file(&self, job: JobId) -> Reply {
        let Some(row) = self.find(job) else {
            return Reply::NotFound { message: format!("no job {job}") };
        };
        let Some(text) = self.text_now(&row) else {
            return Reply::Refused { message: format!("the text of #{job} is not in the state any more") };
        };
        let (generation, name) = (row.generation, row.spec.name.clone());
        Reply::JobFile(Box::new(JobFile { job, generation, name, text: text.text, base: text.base }))
    }

    /// To `Query::WhatIf`.
    pub(super) fn what_if(&self, job: JobId, change: Change) -> Reply {
        match self.world.queue.get(job) {
            None => Reply::NotFound { message: format!("no job {job}") },
            Some(row) => Reply::WhatIf(view::what_if(&self.world, row, change, &crate::clock::now())),
        }
    }

    /// A job's text with the priority that it has now.
    fn text_now(&self, row: &Job) -> Option<JobText> {
        let mut text = self.text_of(row)?;
        if row.priority != row.spec.request.priority {
            let priority = Overrides { priority: Some(row.priority), ..Overrides::default() };
            text.text = jobfile::with_overrides(&text.text, &priority).unwrap_or(text.text);
        }
        Some(text)
    }

    /// A job's text: that of its last edit, else its document of what was submitted; a retry has its first job's.
    pub(super) fn text_of(&self, row: &Job) -> Option<JobText> {
        let mut row = row.clone();
        for _ in 0..RETRIES {
            if let Some(file) = &row.file {
                return Some((**file).clone());
            }
            let Origin::Retry { of } = row.origin else { break };
            row = self.find(of)?;
        }
        let base = match &row.origin {
            Origin::Submit { file } => file.as_ref().and_then(|file| file.parent()).map(ToOwned::to_owned),
            Origin::Inbox { folder, .. } => folder.clone(),
            Origin::Retry { .. } => return None,
        };
        let source = self.source_of(row.submission)?;
        let mut documents = jobfile::documents(&source);
        let text = if documents.len() > 1 {
            let ix = self.index_in_submission(&row);
            if ix < documents.len() { documents.swap_remove(ix) } else { return None }
        } else {
            source
        };
        Some(JobText { text, base, at_ms: row.submitted.wall_ms })
    }

    /// Which of its submission's documents a job is: their numbers follow on each other.
    fn index_in_submission(&self, row: &Job) -> usize {
        let before = (1..row.id.0).rev().map(JobId);
        let same = |id: &JobId| self.find(*id).is_some_and(|other| other.submission == row.submission);
        before.take_while(same).count()
    }

    /// To `Command::Edit`: what it comes to for a dry run, or what is wrong with it; else an input of the core.
    pub(super) fn edit(
        &self,
        by: Owner,
        (job, generation): (JobId, Generation),
        (file, dry_run): (SubmitFile, bool),
        now: &Now,
    ) -> Result<(Edit, Vec<Diagnostic>), Reply> {
        let Some(row) = self.world.queue.get(job) else {
            return Err(Reply::NotFound { message: format!("no job {job}") });
        };
        let known = self.text_now(row);
        let pool = self.facts(&file.text);
        let (edit, warnings) = self
            .intake
            .edit((row, known.as_ref()), generation, (file, by), &pool, now)
            .map_err(|refusal| Reply::Invalid { diagnostics: refusal.diagnostics })?;
        if !dry_run {
            return Ok((edit, warnings));
        }
        Err(self.complete(sched::would_edit(&self.world, &edit), warnings))
    }

    /// A job's folder says what it asks now, under its name now.
    pub(super) fn rewrite(&self, job: JobId, was: Option<&str>) {
        let Some(row) = self.world.queue.get(job) else { return };
        let jobs = self.intake.paths.jobs();
        let dir = jobs.join(row.folder());
        let Some(text) = self.text_of(row) else { return };
        let answer = self.answer_text(job);
        let was = was.map(|was| jobs.join(was));
        self.clerk.order(Order::Rewrite { dir, was, source: text.text, answer });
    }
}

impl Intake {
    /// Reads what is to take the place of a job's text.
    fn edit(
        &self,
        (row, known): (&Job, Option<&JobText>),
        generation: Generation,
        (mut file, by): (SubmitFile, Owner),
        pool: &PoolFacts,
        now: &Now,
    ) -> Result<(Edit, Vec<Diagnostic>), Refusal> {
        let shown = file.shown.clone();
        let text = std::str::from_utf8(&file.text).ok();
        if let Some(written) = text.and_then(|text| jobfile::with_overrides(text, &file.overrides)) {
            (file.text, file.overrides) = (written.into_bytes(), Overrides::default());
        }
        let base = file.base.clone();
        let again = file.clone();
        let (mut submission, warnings) = self.submit(file, by.clone(), pool, now)?;
        if submission.jobs.len() > 1 {
            let message = format!("this has {} jobs, and an edit is of one", submission.jobs.len());
            return Err(refusal(&shown, &message, "submit the others"));
        }
        let Some((mut spec, said)) = submission.jobs.pop() else {
            return Err(refusal(&shown, "this has no job", ""));
        };
        keep_environment(&mut spec, &row.spec);
        self.keep_times(&mut spec, row, known, (again, &by), pool);
        // What is asked has its priority beside it.
        let mut old = (*row.spec).clone();
        old.request.priority = row.priority;
        let fields = jobfile::changes(&old, &spec);
        let unchanged = known.is_some_and(|known| known.text == submission.source);
        let file = JobText { text: submission.source, base, at_ms: now.wall_ms };
        let (job, warned) = (row.id, said);
        let edit = Edit { by, job, generation, spec, warnings: warned, file, unchanged, fields, reply_to: 0 };
        Ok((edit, warnings))
    }

    /// A moment that the text counts from its first reading, such as `in 10h`, is not put off by an edit of something
    /// else: what reads the same as then is kept as it was.
    fn keep_times(
        &self,
        spec: &mut JobSpec,
        row: &Job,
        known: Option<&JobText>,
        (file, by): (SubmitFile, &Owner),
        pool: &PoolFacts,
    ) {
        let (old, new) = (&row.spec.request, &mut spec.request);
        if new.finish_by_ms.is_none() && new.start_after_ms.is_none() {
            return;
        }
        let at_ms = known.map_or(row.submitted.wall_ms, |known| known.at_ms);
        let then = Now { wall_ms: at_ms, ..Now::default() };
        let Ok((then, _)) = self.submit(file, by.clone(), pool, &then) else { return };
        let Some((then, _)) = then.jobs.first() else { return };
        if then.request.finish_by_ms == old.finish_by_ms {
            new.finish_by_ms = old.finish_by_ms;
        }
        if then.request.start_after_ms == old.start_after_ms {
            new.start_after_ms = old.start_after_ms;
        }
    }
}

/// What its submitter's shell gave a job is not in its text: it is kept, whoever edits it.
fn keep_environment(spec: &mut JobSpec, old: &JobSpec) {
    let shell = |name: &str| matches!(name, "PATH" | "LANG") || name.starts_with("LC_");
    for (name, value) in old.work.env.iter().filter(|(name, _)| shell(name)) {
        spec.work.env.entry(name.clone()).or_insert_with(|| value.clone());
    }
}
