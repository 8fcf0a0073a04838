//! What is left of the tree of a supervisor that is gone: found by token, session and descent, ended, proven gone.
//!
//! No bare numbers: a process is only signalled if its start time is the one that was seen together with the reason
//! why it belongs to the lease. Across boots nobody is looked for.

use super::settle::pause_ms;
use crate::clock;
use crate::model::{Now, Span, Token};
use crate::supervisor::process::{self, ProcessId, Seen};
use crate::supervisor::record::JournalState;
use rustix::process::Signal;

const PATIENCE: Span = Span::secs(10);
const ROUND_FIRST_MS: u32 = 2;
const ROUND_LONGEST_MS: u32 = 100;

/// The tree of one lease.
#[derive(Debug)]
pub(super) struct Target {
    token: Token,
    /// The main process leads a session of its own.
    main: Option<ProcessId>,
    same_boot: bool,
}

/// What was found of it.
#[derive(Debug)]
pub(super) enum Left {
    /// Nobody.
    Nobody,
    /// The last one was seen to be gone then.
    Gone(Now),
    /// Some are not gone ten seconds after a kill.
    Culprits(Now, String),
}

impl Target {
    /// From the journal, if it could be read.
    pub(super) fn of(token: &Token, state: Option<&JournalState>) -> Self {
        let boot = state.and_then(JournalState::intent).map(|intent| intent.at.boot);
        Self {
            token: token.clone(),
            main: state.and_then(JournalState::main),
            same_boot: boot.is_none_or(|boot| boot == clock::boot_id()),
        }
    }
}

/// Ends all trees; `done` hears of each as soon as it is known.
pub(super) fn end_all(targets: Vec<Target>, mut done: impl FnMut(usize, Left)) {
    let mut open = Vec::new();
    for (index, target) in targets.into_iter().enumerate() {
        if target.same_boot { open.push((index, target, false)) } else { done(index, Left::Nobody) }
    }
    let since = clock::monotonic();
    let mut wait_ms = ROUND_FIRST_MS;
    while !open.is_empty() {
        let scan = Scan::take();
        let late = clock::monotonic().0 >= since.0 + PATIENCE.0;
        open.retain_mut(|(index, target, found)| {
            let members = scan.members(target);
            if members.is_empty() {
                done(*index, if *found { Left::Gone(clock::now()) } else { Left::Nobody });
                return false;
            }
            *found = true;
            if late {
                let names: Vec<String> = members
                    .iter()
                    .take(5)
                    .map(|id| format!("{} ({})", id.pid, process::name(id.pid)))
                    .collect();
                done(*index, Left::Culprits(clock::now(), names.join(", ")));
                return false;
            }
            for id in members {
                process::signal(id, Signal::KILL);
            }
            true
        });
        if !open.is_empty() {
            pause_ms(wait_ms);
            wait_ms = (wait_ms * 2).min(ROUND_LONGEST_MS);
        }
    }
}

/// Whether any process carries the token.
pub(super) fn lives(token: &Token) -> bool {
    let target = Target { token: token.clone(), main: None, same_boot: true };
    !Scan::take().members(&target).is_empty()
}

/// Ends a collector whose supervisor is gone: it is in that supervisor's session.
pub(super) fn end_collector(state: &JournalState) {
    let Some(intent) = state.intent().filter(|intent| intent.at.boot == clock::boot_id()) else { return };
    let session = |seen: &Seen| {
        seen.session == intent.supervisor.pid
            && seen.id.starttime >= intent.supervisor.starttime
            && seen.state != b'Z'
    };
    for _ in 0..PATIENCE.as_secs() * 10 {
        let left: Vec<Seen> = process::all().into_iter().filter(session).collect();
        if left.is_empty() {
            return;
        }
        for seen in left {
            process::signal(seen.id, Signal::KILL);
        }
        pause_ms(ROUND_LONGEST_MS);
    }
}

/// All processes at one moment, with the tokens they carry.
struct Scan {
    all: Vec<Seen>,
    tokens: Vec<Option<String>>,
}

impl Scan {
    fn take() -> Self {
        let all = process::all();
        let tokens = all.iter().map(|seen| process::environ_token(seen.id.pid)).collect();
        Self { all, tokens }
    }

    fn members(&self, target: &Target) -> Vec<ProcessId> {
        let own = std::process::id() as i32;
        let carries = |token: &Option<String>| token.as_deref() == Some(target.token.0.as_str());
        let of_session = |seen: &Seen| {
            target.main.is_some_and(|main| seen.session == main.pid && seen.id.starttime >= main.starttime)
        };
        let direct: Vec<Seen> = self
            .all
            .iter()
            .zip(&self.tokens)
            .filter(|(seen, token)| seen.id.pid != own && (carries(token) || of_session(seen)))
            .map(|(seen, _)| *seen)
            .collect();
        let roots: Vec<i32> = direct.iter().map(|seen| seen.id.pid).collect();
        let mut members = direct;
        members.extend(process::below(&roots, &self.all));
        members.retain(|seen| seen.state != b'Z' && seen.id.pid != own);
        members.into_iter().map(|seen| seen.id).collect()
    }
}
