//! Answers while events cannot be made durable: looks show what is durable, with a banner; a cancel goes straight to the
//! supervisor, which journals it.

use super::message::News;
use super::turns::Daemon;
use crate::engine::Engine;
use crate::model::{Cursor, Job, JobId, LeaseId};
use crate::protocol::{JobRow, Notice, NoticeLevel, Query, Reply, Snapshot};
use crate::sched::picture::{HISTORY, whole};
use crate::sched::{StopKind, view};
use std::sync::Arc;

impl Daemon {
    /// The durable picture with a banner.
    pub(super) fn frozen_picture(&mut self, reason: &str) -> Snapshot {
        let known = self.disk.durable.take().filter(|picture| picture.revision == self.disk.settled);
        let mut picture = known.unwrap_or_else(|| self.durable_picture());
        picture.notices = self.notices();
        if picture.notices.iter().all(|notice| notice.text != reason) {
            let banner = Notice { level: NoticeLevel::Error, text: reason.to_owned(), job: None };
            picture.notices.insert(0, banner);
        }
        self.disk.durable = Some(picture.clone());
        picture
    }

    /// The same for a subscriber. What it is told next does not build on it.
    pub(super) fn frozen_news(&mut self, reason: &str) -> News {
        News { update: Some(Box::new(whole(self.frozen_picture(reason)))), mark: None }
    }

    /// Answers a query.
    pub(super) fn answer_frozen(&mut self, query: &Query, reason: &str) -> Reply {
        let unavailable = || Reply::Unavailable { message: reason.to_owned() };
        match query {
            Query::Ping => Reply::Pong,
            Query::Snapshot { .. } => Reply::Snapshot(Box::new(self.frozen_picture(reason))),
            Query::Jobs { done } => {
                let picture = self.frozen_picture(reason);
                let done = picture.history.iter().take(*done as usize);
                let rows = picture.jobs.iter().chain(done).map(|row| (**row).clone()).collect();
                Reply::Jobs { rows, left: 0 }
            }
            Query::Gpus => Reply::Gpus(self.frozen_picture(reason).gpus),
            Query::Notices => Reply::Notices(self.frozen_picture(reason).notices),
            Query::Resolve { name } => match view::resolve(&self.world, name) {
                Ok(job) => Reply::Resolved { job: job.id, generation: job.generation },
                Err(message) => Reply::NotFound { message },
            },
            Query::Job { job } => match self.durable_job(*job) {
                Some(job) => Reply::Job(Box::new(self.detail(&job))),
                None => unavailable(),
            },
            Query::Meter { .. }
            | Query::MeterCheck
            | Query::GpuHistory { .. }
            | Query::Timeline { .. }
            | Query::JobFile { .. }
            | Query::WhatIf { .. }
            | Query::Undoable => unavailable(),
        }
    }

    /// The lease of a run.
    pub(super) fn running(&self, job: JobId) -> Option<LeaseId> {
        let job = self.world.queue.get(job)?;
        let mut states = job.tasks.iter().map(|task| &task.current().state);
        states.find(|state| matches!(state.cursor(), Cursor::Renting | Cursor::Running))?.lease()
    }

    /// Ends a run.
    pub(super) fn cancel_frozen(&mut self, job: JobId, now: bool, by: &str) -> Reply {
        let Some(lease) = self.running(job) else {
            return Reply::Refused { message: format!("#{job} does not run") };
        };
        let by = by.to_owned();
        let kind = if now { StopKind::CancelNow { by } } else { StopKind::Cancel { by } };
        match self.engine.stop(lease, &kind) {
            Ok(()) => Reply::Ok {
                message: format!("#{job} is being stopped; recorded when the state can be written"),
            },
            Err(error) => Reply::Unavailable { message: format!("#{job} cannot be stopped: {error}") },
        }
    }

    /// A job as it is on disk; `None` if it is not, or nobody can tell now.
    fn durable_job(&self, job: JobId) -> Option<Job> {
        match self.world.touched.before.get(&job) {
            Some(before) => before.as_deref().cloned(),
            None => self.find(job),
        }
    }

    /// The picture of what is durable: jobs that this turn has changed are shown as they were.
    fn durable_picture(&self) -> Snapshot {
        let before = &self.world.touched.before;
        let mut margin = self.margin();
        margin.notices.clear();
        self.with_frame(|daemon, frame| {
            let world = &daemon.world;
            let outlook = view::outlook(world, &frame.now);
            let history = world.queue.history().take(HISTORY).map(|job| job.id);
            let all = view::order(world, &outlook).into_iter().chain(history);
            let known: Vec<JobId> = all.collect();
            let gone = before.keys().filter(|id| !known.contains(id));
            let jobs = gone.chain(&known).filter_map(|id| match before.get(id) {
                Some(before) => before.as_deref(),
                None => world.queue.get(*id),
            });
            let row = |job: &Job| {
                let mut row: JobRow = view::row(world, job, &outlook, frame);
                row.revision = daemon.disk.settled;
                Arc::new(row)
            };
            let rows: Vec<Arc<JobRow>> = jobs.map(row).collect();
            let (history, jobs) = rows.into_iter().partition(|row| row.state == Cursor::Done);
            Snapshot {
                revision: daemon.disk.settled,
                at: frame.now,
                scheduler: margin.scheduler,
                jobs,
                history,
                gpus: view::gpus(world, frame),
                meter: view::meter(world, frame),
                inbox: margin.inbox,
                notices: Vec::new(),
            }
        })
    }
}
