//! The picture that screens get: rows with the revision in which they last changed, so that only those travel.

use crate::model::{JobId, Now, Revision};
use crate::protocol::{JobRow, Move, Snapshot, Update};
use crate::sched::World;
use crate::sched::view::{self, Frame, Outlook};
use std::collections::HashMap;
use std::sync::Arc;

/// Done jobs in a picture.
pub(super) const HISTORY: usize = 200;

/// Rows as they were last shown.
#[derive(Debug, Default)]
pub(super) struct Picture {
    rows: HashMap<JobId, Arc<JobRow>>,
    /// What it was made from, for questions about the same revision.
    outlook: Option<(Revision, Now, Outlook)>,
}

/// What a picture has besides rows.
#[derive(Debug, Clone)]
pub(super) struct Margin {
    pub(super) scheduler: crate::protocol::SchedulerInfo,
    pub(super) inbox: Vec<crate::protocol::InboxRow>,
    pub(super) notices: Vec<crate::protocol::Notice>,
}

impl Picture {
    /// The whole picture. A row that has not changed keeps its revision.
    pub(super) fn take(&mut self, world: &World, frame: &Frame<'_>, margin: Margin) -> Snapshot {
        let revision = world.counters.revision;
        let outlook = view::outlook(world, &frame.now);
        let mut kept = HashMap::with_capacity(self.rows.len());
        let mut rows = |ids: &mut dyn Iterator<Item = JobId>| -> Vec<Arc<JobRow>> {
            ids.filter_map(|id| {
                let row = self.row(world, id, &outlook, frame, revision)?;
                kept.insert(id, Arc::clone(&row));
                Some(row)
            })
            .collect()
        };
        let jobs = rows(&mut view::order(world, &outlook).into_iter());
        let history = rows(&mut world.queue.history().take(HISTORY).map(|job| job.id));
        self.rows = kept;
        let meter = view::meter(world, frame);
        self.outlook = Some((revision, frame.now, outlook));
        Snapshot {
            revision,
            at: frame.now,
            scheduler: margin.scheduler,
            jobs,
            history,
            gpus: view::gpus(world, frame),
            meter,
            inbox: margin.inbox,
            notices: margin.notices,
        }
    }

    /// The outlook of the last picture, if nothing has happened since.
    pub(super) fn outlook(&self, revision: Revision) -> Option<(&Outlook, Now)> {
        let (of, at, outlook) = self.outlook.as_ref()?;
        (*of == revision).then_some((outlook, *at))
    }

    fn row(
        &self,
        world: &World,
        id: JobId,
        outlook: &Outlook,
        frame: &Frame<'_>,
        revision: Revision,
    ) -> Option<Arc<JobRow>> {
        let mut row = view::row(world, world.queue.get(id)?, outlook, frame);
        if let Some(old) = self.rows.get(&id) {
            row.revision = old.revision;
            if **old == row {
                return Some(Arc::clone(old));
            }
        }
        row.revision = revision;
        Some(Arc::new(row))
    }
}

/// Everything, as an update.
pub(super) fn whole(snapshot: Snapshot) -> Update {
    let order = |rows: &[Arc<JobRow>]| vec![Move::All { jobs: rows.iter().map(|row| row.id).collect() }];
    Update {
        revision: snapshot.revision,
        since: None,
        at: snapshot.at,
        scheduler: Some(snapshot.scheduler),
        jobs: order(&snapshot.jobs),
        history: order(&snapshot.history),
        rows: snapshot.jobs.into_iter().chain(snapshot.history).collect(),
        times: Vec::new(),
        gpu_order: Some(snapshot.gpus.iter().map(|row| row.uuid.clone()).collect()),
        gpus: snapshot.gpus,
        meter: Some(snapshot.meter),
        inbox: Some(snapshot.inbox),
        notices: Some(snapshot.notices),
    }
}
