//! What the core asks for. An effect may fail and be reported; it decides nothing.

use super::clerk::Order;
use super::prepare;
use super::turns::Daemon;
use crate::engine::Engine;
use crate::model::{
    AttemptNo, AttemptState, DropIdent, Event, JobId, LeaseId, Origin, Outcome, SubmissionId, TaskIx, chain,
};
use crate::protocol::json;
use crate::sched::{self, Effect, EngineReport, Input, Launch, view};
use std::path::PathBuf;

impl Daemon {
    /// Carries out the effects of one turn: launches first, everything for people after them.
    pub(super) fn carry_out(&mut self, effects: Vec<Effect>) {
        let (fast, slow): (Vec<Effect>, Vec<Effect>) = effects.into_iter().partition(|effect| {
            matches!(effect, Effect::Launch(_) | Effect::Stop { .. } | Effect::Dismiss { .. } | Effect::Probe)
        });
        // A supervisor that is dismissed lets go of its devices' locks: before the next one asks for them.
        let (dismissals, fast): (Vec<Effect>, Vec<Effect>) =
            fast.into_iter().partition(|effect| matches!(effect, Effect::Dismiss { .. }));
        for effect in dismissals.into_iter().chain(fast) {
            self.effect(effect);
        }
        // What new jobs are told is worked out once for all of them, after the launches.
        let ids: Vec<JobId> = slow
            .iter()
            .filter_map(|effect| match effect {
                Effect::WriteAnswer { job, .. } => Some(*job),
                _ => None,
            })
            .collect();
        let told = view::submitted(&self.world, &ids, &crate::clock::now());
        self.told = told.into_iter().filter_map(|told| Some((told.id?, told))).collect();
        for effect in slow {
            self.effect(effect);
        }
    }

    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Launch(launch) => self.launch(&launch),
            Effect::Stop { lease, kind } => {
                if let Err(error) = self.engine.stop(lease, &kind) {
                    tracing::warn!(%lease, %error, "cannot stop");
                }
            }
            Effect::Dismiss { lease } => self.dismiss(lease),
            Effect::Prepare(prepare) => prepare::start(*prepare, &self.intake),
            Effect::WriteAnswer { job, submission } => self.write_answer(job, submission),
            Effect::Rewrite { job, was } => self.rewrite(job, was.as_deref()),
            Effect::Collect { lease } => self.collect(lease),
            Effect::Release { job, task, attempt, lease } => self.release(job, task, attempt, lease),
            Effect::WriteReceipt { job } => self.write_receipt(job),
            Effect::TakeDrop { name, ident, folder_to } => self.take_drop(name, ident, folder_to),
            Effect::Probe => self.devices.probe(&self.world),
        }
    }

    /// A file goes off the path. A folder at once: its job starts where it is to be.
    pub(super) fn take_drop(&self, name: String, ident: DropIdent, folder_to: Option<PathBuf>) {
        let path = self.intake.why(&name);
        let moved = folder_to.is_some()
            && super::clerk::take(&self.inbox, &name, &ident, folder_to.as_deref()).is_ok();
        if !moved {
            self.clerk.order(Order::Take { name, ident, folder_to });
        }
        self.clerk.order(Order::Why { path, text: None });
    }

    fn launch(&mut self, launch: &Launch) {
        if let Err(error) = self.engine.launch(launch) {
            let why = format!("its supervisor could not be started: {}", chain(&error));
            tracing::error!(lease = %launch.lease, %error, "cannot launch");
            let at = crate::clock::now();
            let report = EngineReport::NotLaunched { lease: launch.lease, at, why };
            let admitted = self.admit(Input::Engine(report));
            self.pending.extend(admitted);
        } else if launch.attempt > AttemptNo(1) {
            let dir = self.intake.paths.jobs().join(&launch.folder);
            self.clerk.order(Order::Links { dir, attempt: launch.attempt.0 });
        }
    }

    /// The devices of a lease are back: its supervisor may go, and its run directory with it once its attempt is done.
    fn dismiss(&mut self, lease: LeaseId) {
        if self.may_live(lease) {
            // It stays to see the end of what outlived its kill.
            return;
        }
        if let Err(error) = self.engine.dismiss(lease) {
            tracing::debug!(%lease, %error, "no supervisor to dismiss");
        }
        if self.attempt_of(lease).is_none_or(|state| matches!(state, AttemptState::Done { .. })) {
            self.clerk.order(Order::Remove(vec![self.intake.paths.run(lease)]));
        }
    }

    /// Whether processes of a lease may still live: its journal and its supervisor are needed until they are gone.
    fn may_live(&self, lease: LeaseId) -> bool {
        self.world.lease(lease).is_some_and(|lease| sched::may_live(&self.world, lease, &crate::clock::now()))
    }

    fn attempt_of(&self, lease: LeaseId) -> Option<AttemptState> {
        let record = self.world.lease(lease)?;
        let job = self.world.queue.get(record.job)?;
        job.attempts().map(|(_, attempt)| &attempt.state).find(|state| state.lease() == Some(lease)).cloned()
    }

    /// `jobs/17-name/`: the job file and the answer.
    fn write_answer(&self, job: JobId, submission: SubmissionId) {
        let Some(row) = self.world.queue.get(job) else { return };
        let dir = self.intake.paths.jobs().join(row.folder());
        let attempt = row.tasks.first().map_or(1, |task| task.last_leased().0);
        if super::clerk::is_written(&dir.join("answer.txt"))
            && super::clerk::is_written(&dir.join("job.yaml"))
        {
            return;
        }
        let source = match (&row.file, &row.origin) {
            (None, Origin::Submit { .. } | Origin::Inbox { .. }) => self.source_of(submission),
            _ => self.text_of(row).map(|text| text.text),
        };
        let answer = self.answer_text(job);
        self.clerk.order(Order::Folder { dir, source, answer, attempt });
    }

    /// The text of a submission: of this turn, else from the store.
    pub(super) fn source_of(&self, submission: SubmissionId) -> Option<String> {
        let in_turn = self.last_events.iter().find_map(|record| match &record.event {
            Event::SubmissionAccepted { submission: found, source, .. } if *found == submission => {
                Some(source.clone())
            }
            _ => None,
        });
        in_turn
            .or_else(|| self.store.reader().submission(submission).ok().flatten().map(|stored| stored.source))
    }

    /// Scratch goes; the core is told when it has.
    fn release(&self, job: JobId, task: TaskIx, attempt: AttemptNo, lease: LeaseId) {
        let paths = &self.intake.paths;
        let run = paths.run(lease);
        let returned = self.world.leases.get(lease).is_none() && !self.may_live(lease);
        let remove = if returned {
            vec![run, paths.prepared(job, task.0, attempt.0)]
        } else {
            // Its supervisor still holds devices: the journal stays until they are back.
            let scratch = ["work", "tmp", "data"].map(|name| run.join(format!("{name}-{task}-{attempt}")));
            scratch.into_iter().chain([paths.prepared(job, task.0, attempt.0)]).collect()
        };
        self.clerk.order(Order::Release { remove, then: Box::new(Input::Released { job, task, attempt }) });
    }

    fn write_receipt(&self, job: JobId) {
        let Some(row) = self.world.queue.get(job) else { return };
        let detail = self.detail(row);
        let document = json::pretty(&json::show(&detail, &self.intake.zone));
        let Ok(document) = document else { return };
        let markdown = json::receipt_markdown(&detail, &self.intake.zone);
        let dir = self.intake.paths.jobs().join(row.folder());
        let attempt = row.tasks.first().map_or(1, |task| task.last_leased().0);
        if let Some((_, Outcome::NeverStarted { .. } | Outcome::Cancelled { .. })) = &row.done {
            // May be done before its folder was made.
            self.write_answer(job, row.submission);
        }
        self.clerk.order(Order::Receipt { dir, json: document + "\n", markdown, attempt });
        let tree = self.intake.paths.snapshot(job);
        self.clerk.order(Order::Remove(vec![prepare::marker(&tree), tree]));
    }

    /// What the owner is told when a job is accepted.
    pub(super) fn answer_text(&self, job: JobId) -> String {
        let Some(row) = self.world.queue.get(job) else { return String::new() };
        let mut lines = vec![format!("accepted as {job}, {}", self.clock_with_zone(row.submitted.wall_ms))];
        if let Some(told) = self.told.get(&job) {
            let start = match (told.place, told.starts_at) {
                (Some(place), Some(at)) => {
                    format!("place {place}, starts about {}", self.clock_with_zone(at))
                }
                (Some(place), None) => format!("place {place}, start unknown"),
                (None, _) => format!("it is {}", row.state().word()),
            };
            let why = told.why.as_ref().filter(|_| told.place.is_some());
            lines.push(why.map_or_else(|| start.clone(), |why| format!("{start}, because: {why}")));
            if told.late {
                lines.push("as things are it will miss its deadline".to_owned());
            }
        }
        lines.extend(row.warnings.iter().map(|warning| format!("warning: {warning}")));
        lines.join("\n") + "\n"
    }

    /// A wall time for people, with its zone.
    pub(super) fn clock_with_zone(&self, wall_ms: i64) -> String {
        let zone = &self.intake.zone;
        jiff::Timestamp::from_millisecond(wall_ms)
            .and_then(|at| zone.to_zoned_datetime(zone.to_datetime(at)))
            .map(|at| at.strftime("%Y-%m-%d %H:%M:%S %Z").to_string())
            .unwrap_or_default()
    }
}
