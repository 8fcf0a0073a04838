//! Queries: what people look at, worked out from durable state when they ask.

use super::turns::Daemon;
use crate::jobfile;
use crate::model::{Job, JobId, JobSpec, Now, Owner};
use crate::protocol::{
    Diagnostic, JobDetail, MeterBy, MeterTable, PoolFacts, Query, Reply, SchedulerInfo, Severity, Snapshot,
    SubmitFile, SubmittedJob,
};
use crate::sched::picture::Margin;
use crate::sched::{self, meter, view};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use std::path::PathBuf;
use tokio::sync::mpsc;

/// A wall time in words, and the day that a wall time belongs to.
pub(super) struct Calendar {
    zone: jiff::tz::TimeZone,
}

impl Calendar {
    pub(super) const fn new(zone: jiff::tz::TimeZone) -> Self {
        Self { zone }
    }

    fn at(&self, wall_ms: i64) -> Option<DateTime> {
        Timestamp::from_millisecond(wall_ms).ok().map(|at| self.zone.to_datetime(at))
    }

    fn midnight(&self, day: Date) -> Option<i64> {
        self.zone.to_timestamp(day.into()).ok().map(Timestamp::as_millisecond)
    }

    /// `14:20`, with the date when it is another day than `now`.
    pub(super) fn clock(&self, wall_ms: i64, now: &Now) -> String {
        let (Some(at), Some(today)) = (self.at(wall_ms), self.at(now.wall_ms)) else { return "?".to_owned() };
        let format = if at.date() == today.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
        at.strftime(format).to_string()
    }

    /// The local day of a wall time, and when the next one begins.
    pub(super) fn day(&self, wall_ms: i64) -> (String, i64) {
        let Some(day) = self.at(wall_ms).map(DateTime::date) else { return ("?".to_owned(), i64::MAX) };
        let next = day.tomorrow().ok().and_then(|next| self.midnight(next));
        (day.to_string(), next.unwrap_or(i64::MAX))
    }

    /// When the local day of a wall time began.
    pub(super) fn day_began(&self, wall_ms: i64) -> i64 {
        self.at(wall_ms).and_then(|at| self.midnight(at.date())).unwrap_or(wall_ms)
    }
}

impl Daemon {
    /// Answers a query from durable state.
    pub(super) async fn answer(&mut self, query: Query, to: &mpsc::UnboundedSender<Reply>) {
        let reply = match query {
            Query::Jobs { done } => return self.list(done, to).await,
            Query::Ping => Reply::Pong,
            Query::Snapshot { .. } => Reply::Snapshot(Box::new(self.snapshot())),
            Query::Resolve { name } => match view::resolve(&self.world, &name) {
                Ok(job) => Reply::Resolved { job: job.id, generation: job.generation },
                Err(message) => Reply::NotFound { message },
            },
            Query::Job { job } => match self.find(job) {
                Some(job) => Reply::Job(Box::new(self.detail(&job))),
                None => Reply::NotFound { message: format!("no job {job}") },
            },
            Query::JobFile { job } => self.job_file(job),
            Query::WhatIf { job, change } => self.what_if(job, change),
            Query::Undoable => Reply::Undoable(sched::undoable(&self.world, &crate::clock::now())),
            Query::Gpus => Reply::Gpus(self.with_frame(|daemon, frame| view::gpus(&daemon.world, frame))),
            Query::GpuHistory { gpu, span_ms } => {
                let now = crate::clock::now();
                let shown = self.showing.history.show(&self.world, &now, gpu.as_ref(), span_ms);
                Reply::GpuHistory(Box::new(shown))
            }
            Query::Timeline { from_ms, until_ms } => {
                let now = crate::clock::now();
                Reply::Timeline(Box::new(view::timeline(&self.world, &now, from_ms, until_ms)))
            }
            Query::Notices => Reply::Notices(self.notices()),
            Query::Meter { by, since_ms, until_ms } => self.meter(by, since_ms, until_ms),
            Query::MeterCheck => self.meter_check(),
        };
        drop(to.send(reply));
    }

    /// Brings the picture up to date, from durable state.
    pub(super) fn show(&mut self) {
        let margin = self.margin();
        let mut picture = std::mem::take(&mut self.showing.picture);
        self.with_frame(|daemon, frame| picture.look(&daemon.world, frame, margin));
        self.showing.picture = picture;
    }

    /// The whole picture.
    fn snapshot(&mut self) -> Snapshot {
        self.show();
        let snapshot = self.showing.picture.snapshot();
        if self.subscribers == 0 {
            self.showing.picture.forget();
        }
        snapshot
    }

    /// A job in memory, or in the store.
    pub(super) fn find(&self, job: JobId) -> Option<Job> {
        self.world.queue.get(job).cloned().or_else(|| self.store.reader().job(job).ok().flatten())
    }

    /// One job, whole.
    pub(super) fn detail(&self, job: &Job) -> JobDetail {
        // With the priority that it has now.
        let mut spec = JobSpec::clone(&job.spec);
        spec.request.priority = job.priority;
        let spec = jobfile::to_json(&spec);
        self.with_frame(|daemon, frame| {
            let outlook = if job.done.is_some() {
                view::Outlook::default()
            } else {
                view::outlook(&daemon.world, &frame.now)
            };
            view::detail(&daemon.world, job, &outlook, frame, spec)
        })
    }

    fn meter(&self, by: MeterBy, since: Option<i64>, until: Option<i64>) -> Reply {
        let now = crate::clock::now();
        let calendar = Calendar::new(self.intake.zone.clone());
        let rates = &self.intake.config.rates;
        let rates = match (rates.gpu_hour, rates.core_hour) {
            (None, None) => None,
            (gpu, core) => Some((gpu.unwrap_or(0.0), core.unwrap_or(0.0))),
        };
        match self.all_leases(since, until) {
            Ok(leases) => {
                let day_of = |at| calendar.day(at);
                let cut = meter::Cut { by, since, until, day_of: &day_of, rates };
                let table: MeterTable = meter::table(leases.iter(), &now, &cut);
                Reply::Meter(table)
            }
            Err(message) => Reply::Unavailable { message },
        }
    }

    fn meter_check(&self) -> Reply {
        let now = crate::clock::now();
        let calendar = Calendar::new(self.intake.zone.clone());
        match self.all_leases(None, None) {
            Ok(leases) => {
                let mut differences = meter::check(leases.iter(), &now, &|at| calendar.day(at));
                for lease in &leases {
                    if let Some(held) = self.world.lease(lease.id)
                        && held.gpu_ms(&now) != lease.gpu_ms(&now)
                    {
                        differences.push(format!("lease {}: memory and store differ", lease.id));
                    }
                }
                Reply::MeterChecked { leases: leases.len() as u64, differences }
            }
            Err(message) => Reply::Unavailable { message },
        }
    }

    /// Leases of the store, with what this process knows of those that are open.
    fn all_leases(&self, since: Option<i64>, until: Option<i64>) -> Result<Vec<crate::model::Lease>, String> {
        let stored = self
            .store
            .reader()
            .leases_between(since.unwrap_or(i64::MIN), until.unwrap_or(i64::MAX))
            .map_err(|error| error.to_string())?;
        Ok(stored.into_iter().map(|lease| self.world.lease(lease.id).cloned().unwrap_or(lease)).collect())
    }

    /// A file checked against this pool; changes nothing.
    pub(super) fn check(&self, file: SubmitFile, by: Owner, pool: &PoolFacts, now: &Now) -> Reply {
        match self.intake.submit(file, by, pool, now) {
            Err(refusal) => Reply::Checked { jobs: Vec::new(), diagnostics: refusal.diagnostics },
            Ok((submission, diagnostics)) => {
                let jobs = view::would_be(&self.world, submission, now);
                Reply::Checked { jobs, diagnostics }
            }
        }
    }

    /// Adds to a reply what was left to after the launches.
    pub(super) fn complete(&self, reply: Reply, warnings: Vec<Diagnostic>) -> Reply {
        match reply {
            Reply::Submitted { jobs, .. } => {
                let ids: Vec<JobId> = jobs.iter().filter_map(|job| job.id).collect();
                let jobs: Vec<SubmittedJob> = view::submitted(&self.world, &ids, &crate::clock::now());
                let diagnostics = warnings
                    .into_iter()
                    .filter(|diagnostic| diagnostic.severity == Severity::Warning)
                    .collect();
                Reply::Submitted { jobs, diagnostics }
            }
            Reply::Edited(mut edited) => {
                edited.diagnostics = warnings;
                Reply::Edited(edited)
            }
            other => other,
        }
    }

    pub(super) fn margin(&self) -> Margin {
        let pool = &self.world.pool;
        let host = pool.host;
        Margin {
            scheduler: SchedulerInfo {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
                host: crate::config::hostname(),
                user: self.intake.owner.name.clone(),
                root: self.intake.paths.root.clone(),
                inbox: self.intake.paths.inbox(),
                since: self.started_ms,
                gpus_by: self.devices.told(),
                cores: host.map_or(0, |host| host.cores),
                cores_held: pool.cores_held,
                memory: host.map_or_else(Default::default, |host| host.memory),
                memory_held: crate::model::Bytes(pool.memory_held),
            },
            inbox: self.board.rows(),
            notices: self.notices(),
        }
    }

    /// Calls with what the shell adds to every view.
    pub(super) fn with_frame<R>(&self, view: impl FnOnce(&Self, &view::Frame<'_>) -> R) -> R {
        let now = crate::clock::now();
        let calendar = Calendar::new(self.intake.zone.clone());
        let jobs_dir: PathBuf = self.intake.paths.jobs();
        let clock = |at| calendar.clock(at, &now);
        let frame = view::Frame {
            now,
            jobs_dir: &jobs_dir,
            clock: &clock,
            today_began: calendar.day_began(now.wall_ms),
            brief: false,
        };
        view(self, &frame)
    }
}
