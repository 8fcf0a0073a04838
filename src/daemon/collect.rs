//! Gathers the output of a run whose supervisor is gone. A disk that is full or broken is no end: it is tried again.

use super::message::Message;
use super::turns::Daemon;
use crate::files::{self, CollectError};
use crate::model::{Code, Collect, Collected, LeaseId, RunEnd, chain};
use crate::sched::{EngineReport, Input};
use std::time::Duration;

/// Between two tries.
const AGAIN: Duration = Duration::from_secs(5);

impl Daemon {
    /// Starts it; what it comes to is an input of the core.
    pub(super) fn collect(&self, lease: LeaseId) {
        let Some(record) = self.world.lease(lease) else { return };
        let Some((task, attempt)) = record.attempts.last().copied() else { return };
        let Some(order) = self.order_of(lease) else { return };
        let mailbox = self.intake.mailbox.clone();
        tokio::spawn(async move {
            let result = loop {
                let progress = mailbox.clone();
                let tell = move |percent| {
                    progress.post(Message::Input(Input::Engine(EngineReport::Collecting { lease, percent })));
                };
                match gather(order.clone(), tell).await {
                    Gathered::Done(result) => break result,
                    Gathered::Later(why) => {
                        let report = EngineReport::CollectionWaits { lease, why };
                        mailbox.send(Message::Input(Input::Engine(report))).await;
                        tokio::time::sleep(AGAIN).await;
                    }
                }
            };
            let report = EngineReport::Collected { lease, task, attempt, result };
            mailbox.send(Message::Input(Input::Engine(report))).await;
        });
    }

    /// What a supervisor would have collected.
    fn order_of(&self, lease: LeaseId) -> Option<Collect> {
        let record = self.world.lease(lease)?;
        let job = self.world.queue.get(record.job)?;
        let (task, attempt) = record.attempts.last().copied()?;
        let live = job.spec.work.code == Code::Live && job.spec.work.dir.is_some();
        let paths = &self.intake.paths;
        let work_dir = match (&job.spec.work.dir, live) {
            (Some(dir), true) => dir.clone(),
            (Some(_), false) => paths.prepared(job.id, task.0, attempt.0),
            (None, _) => paths.run(lease).join(format!("work-{task}-{attempt}")),
        };
        let end = self.world.queue.run_end(job.id, task, attempt);
        Some(Collect {
            items: job.spec.output.clone(),
            work_dir,
            output_dir: paths.attempt(&job.folder(), attempt.0).join("output"),
            live,
            newer_than_ns: i128::from(record.granted.wall_ms) * 1_000_000,
            output_to: job.spec.output_to.clone(),
            job: job.id.to_string(),
            partial: end != Some(RunEnd::Exited { code: 0 }),
            own: paths.own_trees(),
        })
    }
}

enum Gathered {
    Done(Result<Collected, String>),
    Later(String),
}

async fn gather(order: Collect, mut tell: impl FnMut(u8) + Send + 'static) -> Gathered {
    match tokio::task::spawn_blocking(move || files::collect(&order, &mut tell)).await {
        Ok(Err(CollectError::Files(error))) if error.is_worth_another_try() => Gathered::Later(chain(&error)),
        Ok(result) => Gathered::Done(result.map_err(|error| chain(&error))),
        Err(error) => Gathered::Done(Err(error.to_string())),
    }
}
