//! A list of all jobs: long, so it goes out in parts while the next part is being worked out.

use super::turns::Daemon;
use crate::model::{Job, JobId};
use crate::protocol::{JobRow, Reply};
use crate::sched::view;
use tokio::sync::mpsc;

/// Rows in a part: some hundred kilobytes, a millisecond of work on each side.
const PART: usize = 256;

impl Daemon {
    /// Sends the rows of all jobs, and of the last `done` ones that are done. The world does not change meanwhile: there
    /// is no turn between two parts.
    pub(super) async fn list(&self, done: u32, answer: &mpsc::UnboundedSender<Reply>) {
        let outlook = view::outlook(&self.world, &crate::clock::now());
        let mut ids = view::order(&self.world, &outlook);
        ids.extend(self.world.queue.history().take(done as usize).map(|job| job.id));
        let older = self.older_than_memory(done);
        let in_memory = ids.iter().filter_map(|id: &JobId| self.world.queue.get(*id));
        let jobs: Vec<&Job> = in_memory.chain(&older).collect();
        let mut left = jobs.len();
        loop {
            let part = &jobs[jobs.len() - left..];
            let part = &part[..part.len().min(PART)];
            left -= part.len();
            let rows = self.rows(part, &outlook);
            if answer.send(Reply::Jobs { rows, left: left as u32 }).is_err() || left == 0 {
                return;
            }
            // The connection writes this part before the next one is worked out.
            tokio::task::yield_now().await;
        }
    }

    fn rows(&self, jobs: &[&Job], outlook: &view::Outlook) -> Vec<JobRow> {
        self.with_frame(|daemon, frame| {
            let frame = &view::Frame { brief: true, ..*frame };
            jobs.iter().map(|job| view::row(&daemon.world, job, outlook, frame)).collect()
        })
    }

    /// Done jobs that only the store still has, where more are wanted than memory keeps.
    fn older_than_memory(&self, done: u32) -> Vec<Job> {
        let queue = &self.world.queue;
        let missing = (done as usize).saturating_sub(queue.history().count());
        let oldest = queue.history().last();
        let before = oldest.and_then(|job| job.done.as_ref().map(|(at, _)| (at.wall_ms, job.id)));
        let Some(before) = before.filter(|_| missing > 0) else { return Vec::new() };
        let older = self.store.reader().jobs_done(Some(before), missing).unwrap_or_default();
        // Jobs of one turn are done at the same moment: those that memory has are not taken twice.
        older.into_iter().filter(|job| queue.get(job.id).is_none()).collect()
    }
}
