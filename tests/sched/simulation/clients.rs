//! What people do: drops, submissions, and three clients with pictures of their own, which may be old. Of several that act
//! on one picture of a job one wins; who acts on an old one is refused.

use super::faults::Fault;
use super::life::Life;
use crate::build::{Ask, BEGIN, job, owner, submission};
use overnight::model::{
    Amount, DropIdent, Event, Generation, JobId, JobSpec, JobText, LeaseId, Origin, Owner, Priority, RetryOn,
    Span,
};
use overnight::protocol::{Command, Place, Reply};
use overnight::sched::{Decision, Edit, EngineReport, Input, StopKind, Submission, World};
use std::collections::{BTreeMap, BTreeSet};

/// Names that jobs have and wait for.
pub(super) const NAMES: u64 = 5;
/// After so many jobs nobody submits any more.
const JOBS: u64 = 10;

/// Everybody outside.
#[derive(Default)]
pub(super) struct People {
    jobs: u64,
    submitted: u64,
    replies: u64,
    /// What each client last saw.
    pictures: [Vec<(JobId, Generation)>; 3],
    /// Files in the inbox, and whether they are still there.
    inbox: BTreeMap<u64, (Submission, bool)>,
    /// Whose command changed a job as it was seen then.
    winners: BTreeSet<(JobId, Generation)>,
    /// Answers that wait for their turn to be durable.
    unsent: Vec<(Asked, Reply)>,
}

/// A command that was put to the core.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    id: u64,
    /// The job, as the client saw it.
    about: Option<(JobId, Generation)>,
    /// It was decided on what the job was no more when the turn began.
    pub(super) old: bool,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Changes the job that it is about, if it is carried out.
    Changes,
    Retries,
    Other,
}

fn changes(reply: &Reply) -> bool {
    match reply {
        Reply::Edited(edited) => edited.applied,
        reply => matches!(reply, Reply::Ok { .. } | Reply::Editing { .. }),
    }
}

impl People {
    /// The commands among a turn's inputs.
    pub(super) fn asked(inputs: &[Input], world: &World) -> Vec<Asked> {
        let commands = inputs.iter().filter_map(|input| match input {
            Input::Command { command, reply_to, .. } => Some((Some(command), None, *reply_to)),
            Input::Edit(edit) => Some((None, Some(edit), edit.reply_to)),
            _ => None,
        });
        commands
            .map(|(command, edit, id)| {
                let Some(command) = command else {
                    // Who has marked a job may edit it, whatever else has happened to it.
                    let about = edit.map(|edit| (edit.job, edit.generation));
                    let is_marked = |job| world.queue.get(job).is_some_and(|row| row.edit.is_some());
                    let about = about.filter(|(job, _)| !is_marked(*job));
                    return (about, Kind::Changes, id);
                };
                let (about, kind) = match command {
                    Command::BeginEdit { job, generation }
                    | Command::Cancel { job, generation, .. }
                    | Command::SetPriority { job, generation, .. }
                    | Command::Pause { job, generation }
                    | Command::Resume { job, generation } => (Some((*job, *generation)), Kind::Changes),
                    Command::Move { job, generation, .. } => (Some((*job, *generation)), Kind::Other),
                    Command::Retry { job, generation } => (Some((*job, *generation)), Kind::Retries),
                    _ => (None, Kind::Other),
                };
                (about, kind, id)
            })
            .map(|(about, kind, id)| {
                let old = about.is_some_and(|(job, generation)| {
                    world.queue.get(job).is_some_and(|row| row.generation != generation)
                });
                Asked { id, about, old, kind }
            })
            .collect()
    }

    /// Every command has one answer, and who was late is refused.
    pub(super) fn answered(&mut self, asked: Vec<Asked>, decision: &Decision) {
        self.unsent.clear();
        for asked in asked {
            let mut replies = decision.replies.iter().filter(|(to, _)| *to == asked.id);
            let (_, reply) = replies.next().expect("a command is answered");
            assert_eq!(replies.next(), None, "a command is answered once");
            let carried_out = changes(reply) || matches!(reply, Reply::Submitted { .. });
            assert!(!(asked.old && carried_out), "{asked:?} was decided on an old picture: {reply:?}");
            self.unsent.push((asked, reply.clone()));
        }
        let named: BTreeSet<u64> = decision.replies.iter().map(|(to, _)| *to).collect();
        assert_eq!(named.len(), decision.replies.len(), "nobody is answered twice");
    }

    /// The turn is durable: the answers are sent. Of those who saw a job in one state one has changed it.
    pub(super) fn told(&mut self, decision: &Decision) {
        for (asked, reply) in std::mem::take(&mut self.unsent) {
            if let (Kind::Changes, Some(about), true) = (asked.kind, asked.about, changes(&reply)) {
                assert!(
                    self.winners.insert(about),
                    "two commands on one picture of {about:?} were carried out"
                );
            }
            if let (Kind::Retries, Some((job, _)), Reply::Submitted { jobs, .. }) =
                (asked.kind, asked.about, &reply)
            {
                let of_it = decision.events.iter().filter(|record| {
                    matches!(record.event, Event::JobAccepted { retry_of: Some(of), .. } if of == job)
                });
                assert_eq!((of_it.count(), jobs.len()), (1, 1), "#{job} is tried again once");
            }
        }
    }

    /// An accepted drop is moved out of the inbox.
    pub(super) fn take_drop(&mut self, ident: &DropIdent) {
        if let Some((_, there)) = self.inbox.get_mut(&ident.ino) {
            *there = false;
        }
    }

    /// A scheduler that starts looks at what is in the inbox.
    pub(super) fn rescan(&self, inputs: &mut Vec<Input>) {
        let there = self.inbox.values().filter(|(_, there)| *there);
        inputs.extend(there.map(|(dropped, _)| Input::Submission(Box::new(dropped.clone()))));
    }

    /// The drops that were made, and whether any is still in the inbox.
    pub(super) fn drops(&self) -> (Vec<u64>, bool) {
        (self.inbox.keys().copied().collect(), self.inbox.values().any(|(_, there)| *there))
    }

    fn reply_to(&mut self) -> u64 {
        self.replies += 1;
        self.replies
    }
}

impl Life {
    pub(super) fn ask(&mut self, by: &str, command: Command) {
        let reply_to = self.people.reply_to();
        self.tell(0, Input::Command { by: owner(by), command, reply_to });
    }

    /// What people do before a turn.
    pub(super) fn people_act(&mut self) {
        if self.dice.percent(10) && self.people.jobs < JOBS {
            self.submit();
        }
        let client = self.dice.below(3) as usize;
        if self.people.pictures[client].is_empty()
            || !self.faults.threatens(&mut self.dice, Fault::OldPicture, 1)
        {
            let live = self.world.queue.live().chain(self.world.queue.history().take(2));
            self.people.pictures[client] = live.map(|job| (job.id, job.generation)).collect();
        }
        if self.dice.percent(30)
            && let Some((job, generation)) = self.dice.pick(&self.people.pictures[client]).copied()
        {
            let by = ["ana", "bob", "cli"][client];
            if self.dice.percent(15) {
                self.edit(by, job, generation);
            }
            let command = self.command(job, generation);
            self.ask(by, command.clone());
            if self.dice.percent(15) {
                // Another one has the same picture.
                let picture = self.people.pictures[client].clone();
                self.people.pictures[(client + 1) % 3] = picture;
                let command = if self.dice.percent(50) { command } else { self.command(job, generation) };
                self.ask("bob", command);
            }
        }
    }

    /// An edit: by who has marked the job, if anybody has.
    fn edit(&mut self, by: &str, job: JobId, generation: Generation) {
        let mark = self.world.queue.get(job).and_then(|row| row.edit.as_ref()).map(|mark| mark.generation);
        let generation = mark.filter(|_| self.dice.percent(80)).unwrap_or(generation);
        let mut spec = self.spec();
        if let Some(row) = self.world.queue.get(job).filter(|_| self.dice.percent(50)) {
            spec.name.clone_from(&row.spec.name);
        }
        let text = JobText { text: format!("{}", self.dice.below(9)), base: None, at_ms: 0 };
        let reply_to = self.people.reply_to();
        let edit = Edit {
            by: owner(by),
            job,
            generation,
            spec,
            warnings: Vec::new(),
            file: text,
            unchanged: self.dice.percent(10),
            fields: Vec::new(),
            reply_to,
        };
        let ms = self.dice.below(2) * 1_000;
        self.tell(ms, Input::Edit(Box::new(edit)));
    }

    fn command(&mut self, job: JobId, generation: Generation) -> Command {
        let undo = Span(self.dice.below(3) * 4_000);
        match self.dice.below(13) {
            0 | 1 => Command::Cancel { job, generation, undo, now: self.dice.percent(30) },
            2 => Command::Pause { job, generation },
            3 => Command::Resume { job, generation },
            4 => Command::Move { job, generation, to: Place::Top },
            5 => Command::Move { job, generation, to: Place::Down },
            6 => Command::Undo { job: Some(job).filter(|_| self.dice.percent(50)) },
            7 => Command::Retry { job, generation },
            8 => Command::Move { job, generation, to: Place::Bottom },
            9 | 10 => Command::BeginEdit { job, generation },
            11 => Command::EndEdit { job, generation },
            _ => {
                let priority = Priority::clamped(self.dice.below(200) as i64 - 100);
                Command::SetPriority { job, generation, priority }
            }
        }
    }

    /// A drop in the inbox, or a submission by a client.
    fn submit(&mut self) {
        let count = 1 + self.dice.below(3);
        let specs: Vec<JobSpec> = (0..count).map(|_| self.spec()).collect();
        self.people.jobs += count;
        let owner: Owner = owner(["ana", "bob"][self.dice.below(2) as usize]);
        let mut new = Submission { owner, paused: self.dice.percent(5), ..submission(specs) };
        if self.dice.percent(50) {
            let ino = self.people.submitted;
            self.people.submitted += 1;
            new.origin = Origin::Inbox { name: format!("{ino}.yaml"), folder: None };
            new.ident = Some(DropIdent { dev: 1, ino, ctime_ns: 0, hash: String::new() });
            self.people.inbox.insert(ino, (new.clone(), true));
            if self.faults.strikes(&mut self.dice, Fault::DropSeenTwice) {
                let ms = self.dice.below(3_000);
                self.tell(ms, Input::Submission(Box::new(new.clone())));
            }
        }
        self.tell(0, Input::Submission(Box::new(new)));
    }

    fn spec(&mut self) -> JobSpec {
        let dice = &mut self.dice;
        let fits = self.machine.gpus.len() as u64;
        let name = format!("job{}", dice.below(NAMES));
        let gpus = dice.below(fits + 1) as u32;
        let mut spec = job(&name).gpus(gpus).secs(1 + dice.below(80)).cores(1 + dice.below(5) as u32);
        if dice.percent(15) {
            spec = spec.until_done();
        }
        if dice.percent(5) {
            spec.request.gpus = Amount::All;
        }
        if dice.percent(10) && gpus < 2 {
            spec.request.gpu_model = vec!["a100".to_owned()];
        }
        if dice.percent(25) {
            spec = spec.code();
        }
        if dice.percent(10) {
            spec = spec.data_of(&format!("job{}", dice.below(NAMES)));
        }
        if dice.percent(20) {
            spec = spec.after_any(&format!("job{}", dice.below(NAMES)));
        }
        if dice.percent(20) {
            spec = spec.after(&format!("job{}", dice.below(NAMES)));
        }
        if dice.percent(10) {
            spec.request.start_after_ms = Some(BEGIN.wall_ms + (self.machine.t + dice.below(60_000)) as i64);
        }
        if dice.percent(30) {
            spec.request.retry.times = dice.below(4) as u32;
            spec.request.retry.when.push(RetryOn::Code(1));
            spec.request.retry.when.push(RetryOn::Limit);
        }
        if dice.percent(40) {
            spec.project = Some(format!("p{}", dice.below(2)));
        }
        spec.priority(dice.below(3) as i64 * 50 - 50)
    }

    /// A cancel, or an undo, in the very turn in which something else happens to its job.
    pub(super) fn race(&mut self, inputs: &mut Vec<Input>) {
        let concerned = inputs.iter().enumerate().find_map(|(ix, input)| {
            let lease = match input {
                Input::Engine(
                    EngineReport::Started { lease, .. }
                    | EngineReport::Ended { lease, .. }
                    | EngineReport::Collected { lease, .. }
                    | EngineReport::NotLaunched { lease, .. }
                    | EngineReport::Missing { lease, .. },
                ) => self.world.lease(*lease)?.job,
                Input::Prepared { job, .. } | Input::Released { job, .. } => *job,
                Input::Readings(_) => self.world.queue.line().next()?.id,
                _ => return None,
            };
            Some((ix, lease))
        });
        if let Some((ix, job)) = concerned
            && let Some(row) = self.world.queue.get(job)
            && self.faults.strikes(&mut self.dice, Fault::CancelRace)
        {
            let undo = Span(self.dice.below(2) * 3_000);
            let (generation, now) = (row.generation, self.dice.percent(30));
            let command = Command::Cancel { job, generation, undo, now };
            let reply_to = self.people.reply_to();
            let at = ix + self.dice.below(2) as usize;
            inputs.insert(at, Input::Command { by: owner("bob"), command, reply_to });
        }
        let now = self.machine.now();
        let closing = self.world.queue.cancelling().find(|job| {
            job.cancel.as_ref().is_some_and(|cancel| now.since(&cancel.due).is_some_and(|late| late.0 < 2))
                && job.cancel.as_ref().is_some_and(|cancel| cancel.due.boottime_ms <= now.boottime_ms + 1)
        });
        if let Some(job) = closing.map(|job| job.id)
            && self.faults.strikes(&mut self.dice, Fault::UndoRace)
        {
            let reply_to = self.people.reply_to();
            inputs.push(Input::Command {
                by: owner("ana"),
                command: Command::Undo { job: Some(job) },
                reply_to,
            });
        }
    }

    /// A cancel while the state cannot be written: past the core.
    pub(super) fn cancel_at_supervisor(&mut self) {
        let held: Vec<_> = self.world.leases.held().map(|lease| lease.id).collect();
        if self.dice.percent(20)
            && let Some(lease) = self.dice.pick(&held).copied()
        {
            self.stop(lease, StopKind::Cancel { by: "ana".to_owned() });
        }
    }

    /// What an operator and the owners do so that nothing waits for them.
    pub(super) fn people_help(&mut self) {
        use overnight::model::DeviceState;
        let resumed: Vec<(JobId, Generation)> = self
            .world
            .queue
            .live()
            .filter(|job| job.paused.is_some() && job.state() == overnight::model::Cursor::Queued)
            .map(|job| (job.id, job.generation))
            .collect();
        for (job, generation) in resumed {
            self.ask("ana", Command::Resume { job, generation });
        }
        let commands: Vec<Command> = self
            .world
            .pool
            .devices()
            .filter_map(|(uuid, device)| {
                let gpu = overnight::protocol::GpuSelect::Uuid(uuid.clone());
                match device.state {
                    DeviceState::Closed { .. } => Some(Command::Open { gpus: gpu }),
                    _ if device.close.is_some() => Some(Command::Open { gpus: gpu }),
                    DeviceState::Quarantined(_) => Some(Command::Clear { gpu }),
                    _ => None,
                }
            })
            .collect();
        for command in commands {
            self.ask("root", command);
        }
    }

    /// What had outlived its kill is seen to be gone, and an operator lifts what only a reset or a person ends.
    pub(super) fn clear_faults(&mut self) {
        let now = self.machine.now();
        let gone: Vec<LeaseId> = self
            .world
            .unproven(&now)
            .filter(|lease| !lease.held.devices.is_empty())
            .filter(|lease| {
                lease.held.devices.iter().all(|held| self.machine.on(&held.uuid).next().is_none())
            })
            .map(|lease| lease.id)
            .collect();
        self.pending.extend(gone.into_iter().map(|lease| Input::Engine(EngineReport::Gone { lease })));
        let faulty: Vec<_> = self
            .world
            .pool
            .devices()
            .filter(|(_, device)| {
                device.fault.is_some()
                    && device.reading.as_ref().is_some_and(|read| read.unreadable.is_none())
            })
            .map(|(uuid, _)| uuid.clone())
            .collect();
        for uuid in faulty {
            self.ask("root", Command::Clear { gpu: overnight::protocol::GpuSelect::Uuid(uuid) });
        }
    }
}
