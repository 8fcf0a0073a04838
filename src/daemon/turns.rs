//! The loop. It owns the world; everything else sends it messages.

use super::clerk::{Clerk, Order};
use super::devices::Devices;
use super::durable::{Committed, Disk};
use super::held::Earlier;
use super::intake::{InboxBoard, Intake, Refusal, refusal};
use super::message::{Message, News};
use super::showing::Showing;
use crate::engine::local::LocalEngine;
use crate::inbox::{Inbox, InboxEvent};
use crate::model::{Event, EventRecord, JobId, Now, Revision, Span};
use crate::protocol::{Command, InboxState, Notice, NoticeLevel, Query, Reply, Request};
use crate::sched::picture::Mark;
use crate::sched::{Decision, Input, Moment, World, in_time, step};
use crate::store::Store;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// Messages taken into one turn at most.
pub(super) const TURN_LEN: usize = 512;

/// The scheduler.
pub(super) struct Daemon {
    pub(super) world: World,
    pub(super) seed: u128,
    pub(super) store: Store,
    pub(super) engine: LocalEngine,
    pub(super) inbox: Arc<Inbox>,
    pub(super) devices: Devices,
    pub(super) intake: Intake,
    pub(super) clerk: Clerk,
    pub(super) board: InboxBoard,
    pub(super) showing: Showing,
    pub(super) started_ms: i64,
    pub(super) disk: Disk,
    /// Its starter is gone and nobody wants it any more.
    pub(super) throwing_away: bool,
    /// Drops that were accepted before this start.
    pub(super) earlier: Vec<Earlier>,
    /// A bug was found in the core: nothing is started any more.
    pub(super) stopped: Option<String>,
    /// Inputs that an effect left for the next turn.
    pub(super) pending: Vec<Input>,
    /// What the jobs accepted in that turn are told.
    pub(super) told: HashMap<JobId, crate::protocol::SubmittedJob>,
    /// The events of the turn whose effects are being carried out.
    pub(super) last_events: Vec<EventRecord>,
    pub(super) subscribers: usize,
    pub(super) revision: watch::Sender<Revision>,
    pub(super) messages: mpsc::Receiver<Message>,
}

/// What a turn leaves to be answered once it is durable.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) queries: Vec<(Query, mpsc::UnboundedSender<Reply>)>,
    pub(super) updates: Vec<(Option<Mark>, oneshot::Sender<News>)>,
    replies: HashMap<u64, (mpsc::UnboundedSender<Reply>, Vec<crate::protocol::Diagnostic>)>,
    next: u64,
    pub(super) ended: bool,
}

impl Daemon {
    /// Runs until it is told to stop. Jobs go on.
    pub(super) async fn run(&mut self, first: Vec<Input>) {
        let mut inputs = first;
        let mut waiting = Waiting::default();
        loop {
            self.showing.heard(&inputs);
            let decision = self.decide(&mut inputs);
            self.showing.decided(&self.world, &decision);
            let mut committed = Committed::AtOnce;
            if !decision.events.is_empty() {
                committed = self.append(&decision.events, &mut waiting).await;
            }
            if committed == Committed::Never {
                return;
            }
            let wake = decision.wake.map(|wake| wake.at);
            self.settle(decision, committed, &mut waiting);
            self.look(&mut waiting).await;
            self.publish();
            if waiting.ended {
                return;
            }
            let telemetry_at = self.devices.due(&self.world, self.subscribers);
            inputs.append(&mut self.pending);
            for message in self.take_later() {
                self.take(message, &mut inputs, &mut waiting);
            }
            if self.throwing_away && self.throw_away(&mut inputs) {
                return;
            }
            if inputs.is_empty() {
                let waits = self.world.queue.waiting() > 0;
                let due = [wake, telemetry_at].into_iter().flatten().min();
                self.wait(due, &mut inputs, &mut waiting).await;
                // Time alone may let a job start, or say so.
                if waits && wake.is_some_and(|at| at <= crate::clock::now().boottime_ms) {
                    self.showing.stir();
                }
            } else {
                self.drain(&mut inputs, &mut waiting);
            }
            if telemetry_at.is_some_and(|at| at <= crate::clock::now().boottime_ms) {
                self.devices.telemetry(&self.world);
            }
        }
    }

    /// Waits for the first message, or until `due`; takes what else is there.
    async fn wait(&mut self, due: Option<u64>, inputs: &mut Vec<Input>, waiting: &mut Waiting) {
        let sleep = async {
            match due {
                Some(at) => {
                    let left = at.saturating_sub(crate::clock::now().boottime_ms);
                    tokio::time::sleep(Duration::from_millis(left)).await;
                }
                None => std::future::pending().await,
            }
        };
        let first = tokio::select! {
            message = self.messages.recv() => message,
            () = sleep => None,
        };
        if let Some(message) = first {
            self.take(message, inputs, waiting);
        }
        self.drain(inputs, waiting);
    }

    fn drain(&mut self, inputs: &mut Vec<Input>, waiting: &mut Waiting) {
        for _ in 0..TURN_LEN {
            let Ok(message) = self.messages.try_recv() else { return };
            self.take(message, inputs, waiting);
        }
    }

    /// One turn of the core. Readings that cost nothing are taken anew for it.
    fn decide(&mut self, inputs: &mut Vec<Input>) -> Decision {
        self.devices.read(&self.world, inputs);
        let moment = Moment { now: crate::clock::now(), seed: self.seed };
        let decision = step(&mut self.world, std::mem::take(inputs), moment);
        if let Some(bug) = &decision.bug {
            tracing::error!(%bug, "a bug in the scheduler's core: nothing is started any more");
            self.stopped =
                Some(format!("a bug in the scheduler ({bug}): nothing is started; running jobs go on"));
        }
        decision
    }

    /// After the commit: effects, then what commands are answered.
    fn settle(&mut self, decision: Decision, committed: Committed, waiting: &mut Waiting) {
        self.note_accepted(&decision.events);
        self.last_events = decision.events;
        let (effects, late) =
            in_time(decision.effects, &crate::clock::now(), committed == Committed::AfterFailure);
        self.pending.extend(late);
        self.carry_out(effects);
        for (to, reply) in decision.replies {
            if let Some((answer, diagnostics)) = waiting.replies.remove(&to) {
                drop(answer.send(self.complete(reply, diagnostics)));
            }
        }
        self.last_events.clear();
    }

    /// Answers those who look.
    async fn look(&mut self, waiting: &mut Waiting) {
        for (query, answer) in std::mem::take(&mut waiting.queries) {
            self.answer(query, &answer).await;
        }
        let updates = std::mem::take(&mut waiting.updates);
        if !updates.is_empty() {
            self.show();
        }
        for (since, answer) in updates {
            drop(answer.send(self.showing.since(since)));
        }
    }

    fn note_accepted(&mut self, events: &[EventRecord]) {
        let mut jobs: HashMap<crate::model::SubmissionId, Vec<JobId>> = HashMap::new();
        for record in events {
            if let Event::JobAccepted { job, submission, .. } = &record.event {
                jobs.entry(*submission).or_default().push(*job);
            }
        }
        for record in events {
            if let Event::SubmissionAccepted {
                submission,
                origin: crate::model::Origin::Inbox { name, .. },
                ..
            } = &record.event
            {
                self.board.accepted(name, jobs.remove(submission).unwrap_or_default(), &record.at);
            }
        }
    }

    /// Has every subscriber look again, although no row has changed.
    pub(super) fn refresh(&self) {
        self.revision.send_modify(|_| {});
    }

    /// Tells subscribers that something may have changed. A turn that was only asked something says nothing.
    fn publish(&mut self) {
        self.disk.settled = self.world.counters.revision;
        if self.showing.take_stirred() {
            self.revision.send_replace(self.world.counters.revision);
        }
    }

    /// One message into inputs, or into what waits for the turn's end.
    fn take(&mut self, message: Message, inputs: &mut Vec<Input>, waiting: &mut Waiting) {
        let now = crate::clock::now();
        match message {
            Message::Inbox(event) => {
                self.showing.stir();
                self.inbox_event(event, inputs, &now);
            }
            Message::Input(input) => {
                if let Input::Devices(gpus) = &input {
                    self.devices.listed(gpus);
                }
                inputs.extend(self.admit(input));
            }
            Message::Room { why, asked_by } => {
                self.showing.stir();
                inputs.append(&mut self.room(why, asked_by));
            }
            Message::Behind(why) => {
                self.disk.behind = why;
                self.refresh();
            }
            Message::NoDevices(why) => {
                self.showing.stir();
                self.devices.trouble = Some(why);
            }
            Message::Client { by, request, answer } => {
                self.request(by, request, answer, (inputs, waiting), &now);
            }
            Message::Update { since, answer } => waiting.updates.push((since, answer)),
            Message::Subscribers(change) => {
                self.subscribed(change);
            }
            Message::ClockStep => self.showing.stir(),
            Message::Terminate => waiting.ended = true,
            Message::ThrowAway => self.throwing_away = true,
        }
    }

    /// A throw-away scheduler whose starter is gone: ends its jobs, then itself. Whether it has.
    fn throw_away(&self, inputs: &mut Vec<Input>) -> bool {
        let live: Vec<_> = self.world.queue.live().collect();
        inputs.extend(live.iter().filter(|job| job.cancel.is_none()).map(|job| Input::Command {
            by: self.intake.owner.clone(),
            command: Command::Cancel { job: job.id, generation: job.generation, undo: Span(0), now: true },
            reply_to: 0,
        }));
        live.is_empty()
    }

    fn request(
        &mut self,
        by: crate::model::Owner,
        request: Request,
        answer: mpsc::UnboundedSender<Reply>,
        (inputs, waiting): (&mut Vec<Input>, &mut Waiting),
        now: &Now,
    ) {
        match request {
            Request::Query(query) => waiting.queries.push((query, answer)),
            Request::Subscribe { .. } => drop(answer.send(Reply::Pong)),
            Request::Command(Command::Submit(file)) => {
                let pool = self.facts(&file.text);
                match self.intake.submit(file, by, &pool, now) {
                    Ok((mut submission, diagnostics)) => {
                        let id = waiting.expect(answer, diagnostics);
                        submission.reply_to = Some(id);
                        inputs.push(Input::Submission(Box::new(submission)));
                    }
                    Err(refusal) => drop(answer.send(Reply::Invalid { diagnostics: refusal.diagnostics })),
                }
            }
            Request::Command(Command::Check(file)) => {
                let pool = self.facts(&file.text);
                drop(answer.send(self.check(file, by, &pool, now)));
            }
            Request::Command(Command::Edit { job, generation, file, dry_run }) => {
                match self.edit(by, (job, generation), (file, dry_run), now) {
                    Ok((mut edit, diagnostics)) => {
                        edit.reply_to = waiting.expect(answer, diagnostics);
                        inputs.push(Input::Edit(Box::new(edit)));
                    }
                    Err(reply) => drop(answer.send(reply)),
                }
            }
            Request::Command(Command::Rescan) => {
                // What was wrong with a file may have been mended elsewhere: a folder that it names is there by now.
                for row in self.board.rows() {
                    if matches!(row.state, InboxState::Refused { .. }) {
                        self.inbox.forget(&row.name);
                    }
                }
                self.inbox.rescan();
                drop(answer.send(Reply::Ok { message: "looking at the inbox again".to_owned() }));
            }
            Request::Command(Command::Stop) => {
                waiting.ended = true;
                drop(answer.send(Reply::Ok { message: "the scheduler ends; jobs go on".to_owned() }));
            }
            Request::Command(command) => {
                let reply_to = waiting.expect(answer, Vec::new());
                inputs.push(Input::Command { by, command, reply_to });
            }
        }
    }

    pub(super) fn inbox_event(&mut self, event: InboxEvent, inputs: &mut Vec<Input>, now: &Now) {
        match event {
            InboxEvent::Dropped(dropped) => {
                if self.is_rest(&dropped) {
                    return;
                }
                let name = dropped.name.clone();
                let pool = self.facts(&dropped.bytes);
                match self.intake.drop(dropped, &pool, now) {
                    Ok(submission) => inputs.push(Input::Submission(Box::new(submission))),
                    Err(refusal) => {
                        self.say_why(&name, Some(&refusal));
                        self.board.note(&name, InboxState::Refused { diagnostics: refusal.diagnostics }, now);
                    }
                }
            }
            InboxEvent::Refused { name, reason, hint, .. } => {
                let refused = refusal(&name, &reason, &hint);
                self.say_why(&name, Some(&refused));
                self.board.note(&name, InboxState::Refused { diagnostics: refused.diagnostics }, now);
            }
            InboxEvent::Waiting { name, why } => self.board.note(&name, InboxState::Waiting { why }, now),
            InboxEvent::Gone { name } => {
                self.say_why(&name, None);
                self.board.gone(&name);
            }
            InboxEvent::Alarm { text } => self.board.alarm = Some(text),
            InboxEvent::Healed => self.board.alarm = None,
        }
    }

    fn say_why(&self, name: &str, refusal: Option<&Refusal>) {
        let text = refusal.map(Intake::why_text);
        self.clerk.order(Order::Why { path: self.intake.why(name), text });
    }

    /// What a file is checked against.
    pub(super) fn facts(&self, text: &[u8]) -> crate::protocol::PoolFacts {
        let mentions = |word: &[u8]| text.windows(word.len()).any(|window| window == word);
        crate::sched::view::pool_facts(&self.world, mentions(b"after") || mentions(b"job:"))
    }

    /// What an operator must know; the worst first.
    pub(super) fn notices(&self) -> Vec<Notice> {
        let notice = |level, text: &String| Notice { level, text: text.clone(), job: None };
        let mut notices = Vec::new();
        notices.extend(self.stopped.iter().map(|text| notice(NoticeLevel::Error, text)));
        notices.extend(self.disk.trouble.iter().map(|text| notice(NoticeLevel::Error, text)));
        notices.extend(self.disk.held_up.iter().map(|why| {
            let text = format!("{why}: nothing is started until it can be; running jobs go on");
            notice(NoticeLevel::Error, &text)
        }));
        notices.extend(self.board.alarm.iter().map(|text| notice(NoticeLevel::Error, text)));
        notices.extend(self.disk.behind.iter().map(|text| notice(NoticeLevel::Warning, text)));
        notices.extend(self.devices.notices(&self.world));
        notices
    }
}

impl Waiting {
    /// Answers what this turn would have answered. It is tried again and not promised: nothing of it is durable yet.
    pub(super) fn put_off(&mut self, reason: &str) {
        for (_, (answer, _)) in self.replies.drain() {
            let message = format!(
                "{reason}; what was asked is done then, if this scheduler still runs: look with `ls` before you ask again"
            );
            drop(answer.send(Reply::Unavailable { message }));
        }
    }

    /// A number under which an answer is expected.
    fn expect(
        &mut self,
        answer: mpsc::UnboundedSender<Reply>,
        diagnostics: Vec<crate::protocol::Diagnostic>,
    ) -> u64 {
        self.next += 1;
        self.replies.insert(self.next, (answer, diagnostics));
        self.next
    }
}
