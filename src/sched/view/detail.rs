//! One job, whole.

use super::row::row;
use super::{Frame, Outlook};
use crate::model::{Attempt, Job, TaskIx};
use crate::protocol::{AttemptRow, JobDetail, StepRow};
use crate::sched::world::World;

/// One job, whole. `spec` is the spec in the job file's words, secrets masked.
pub fn detail(
    world: &World,
    job: &Job,
    outlook: &Outlook,
    frame: &Frame<'_>,
    spec: serde_json::Value,
) -> JobDetail {
    let row = row(world, job, outlook, frame);
    let step = |step: &str, at: Option<i64>| StepRow { step: step.to_owned(), at };
    let steps = vec![
        step("submit", Some(row.submitted_at)),
        step("rent", row.rented_at),
        step("run", row.started_at),
        step("output", row.ended_at),
        step("release", row.done_at.filter(|_| row.ended_at.is_some())),
    ];
    let attempts = job.attempts().map(|(task, attempt)| attempt_row(world, task, attempt, frame)).collect();
    let outputs = job
        .attempts()
        .flat_map(|(task, attempt)| attempt.outputs.iter().map(move |output| (task, output.clone())))
        .collect();
    let notes = job.attempts().flat_map(|(_, attempt)| attempt.notes.iter().cloned()).collect();
    JobDetail { row, at: frame.now, steps, attempts, outputs, warnings: job.warnings.clone(), notes, spec }
}

fn attempt_row(world: &World, task: TaskIx, attempt: &Attempt, frame: &Frame<'_>) -> AttemptRow {
    let lease = attempt.state.lease().and_then(|lease| world.lease(lease));
    AttemptRow {
        task,
        attempt: attempt.number,
        state: attempt.state.cursor(),
        lease: attempt.state.lease(),
        devices: lease
            .map_or_else(Vec::new, |lease| lease.held.devices.iter().map(|held| held.uuid.clone()).collect()),
        granted: lease.map(|lease| lease.granted),
        started: attempt.state.started(),
        enforcement: attempt.enforcement.clone(),
        ended: attempt.state.ended(),
        returned: lease.and_then(|lease| lease.returned.as_ref()).map(|returned| returned.at),
        held: lease.and_then(|lease| lease.held_for(&frame.now)),
        gpu_ms: lease.map_or(0, |lease| lease.gpu_ms(&frame.now)),
        waived: lease.is_some_and(|lease| lease.waived),
        ended_by: lease.and_then(|lease| lease.ended).map(|(_, by)| by),
        outcome: attempt.state.outcome().cloned(),
        verdict: lease.and_then(|lease| lease.returned.as_ref()).map(|returned| returned.verdict.clone()),
    }
}
