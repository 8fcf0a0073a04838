//! What is left of the tree of a supervisor that is gone: found by token, group, session and descent, ended, proven gone.
//!
//! No bare numbers: a process is only signalled if its start time is the one that was seen together with the reason
//! why it belongs to the lease. Across boots nobody is looked for.

use super::settle::pause_ms;
use crate::cgroup::{Groups, Layout};
use crate::clock;
use crate::model::{Now, Span, Token};
use crate::supervisor::collection::COLLECTOR_TOKEN;
use crate::supervisor::process::{self, ProcessId, Seen};
use crate::supervisor::record::JournalState;
use rustix::process::Signal;

const PATIENCE: Span = Span::secs(10);
const ROUND_FIRST_MS: u32 = 2;
const ROUND_LONGEST_MS: u32 = 100;

/// The tree of one lease.
#[derive(Debug, Clone)]
pub(super) struct Target {
    token: Token,
    /// The main process leads a session of its own.
    main: Option<ProcessId>,
    groups: Groups,
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
    /// From the journal, if it could be read; else by the token alone.
    pub(super) fn of(token: &Token, state: Option<&JournalState>, layout: &Layout) -> Self {
        let intent = state.and_then(JournalState::intent);
        Self {
            token: token.clone(),
            main: state.and_then(JournalState::main),
            groups: intent.map_or_else(
                || layout.groups_of(&token.0),
                |intent| intent.groups.clone().of_token(&token.0),
            ),
            same_boot: intent.is_none_or(|intent| intent.at.boot == clock::boot_id()),
        }
    }

    /// Looks for those that are left and ends them again; whether there is nobody, for certain.
    pub(super) fn is_gone(&self) -> bool {
        if !self.same_boot {
            return true;
        }
        let left = Scan::take().members(self);
        self.kill(&left);
        left.is_empty() && self.groups.is_empty()
    }

    /// Takes its groups away.
    pub(super) fn remove_groups(&self) {
        self.groups.remove();
    }

    fn kill(&self, members: &[ProcessId]) {
        if !members.is_empty() {
            self.groups.kill();
        }
        for id in members {
            process::signal(*id, Signal::KILL);
        }
    }
}

/// Ends all trees; `done` hears of each as soon as it is known.
pub(super) fn end_all(targets: &[Target], mut done: impl FnMut(usize, Left)) {
    let mut open = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        if target.same_boot { open.push((index, target, false)) } else { done(index, Left::Nobody) }
    }
    let since = clock::monotonic();
    let mut wait_ms = ROUND_FIRST_MS;
    while !open.is_empty() {
        let scan = Scan::take();
        let late = clock::monotonic().0 >= since.0 + PATIENCE.0;
        open.retain_mut(|(index, target, found)| {
            let members = scan.members(target);
            if members.is_empty() && (target.groups.is_empty() || late) {
                done(*index, if *found { Left::Gone(clock::now()) } else { Left::Nobody });
                return false;
            }
            *found = true;
            if late {
                done(*index, Left::Culprits(clock::now(), process::names(&members)));
                return false;
            }
            target.kill(&members);
            true
        });
        if !open.is_empty() {
            pause_ms(wait_ms);
            wait_ms = (wait_ms * 2).min(ROUND_LONGEST_MS);
        }
    }
}

/// Whether any process of the tree is there.
pub(super) fn lives(target: &Target) -> bool {
    !Scan::take().members(target).is_empty()
}

/// Ends a collector whose supervisor is gone.
pub(super) fn end_collector(token: &Token) {
    let collects = |seen: &Seen| {
        seen.state != b'Z'
            && process::environ(seen.id.pid, COLLECTOR_TOKEN).is_some_and(|found| found == token.0)
    };
    for _ in 0..PATIENCE.as_secs() * 10 {
        let left: Vec<Seen> = process::all().into_iter().filter(collects).collect();
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
        // While the leader is there nobody else's session has its number; later it may be a stranger's.
        let leads = target.main.filter(|main| self.all.iter().any(|seen| seen.id == *main));
        let of_session = |seen: &Seen| leads.is_some_and(|main| seen.session == main.pid);
        let grouped = target.groups.processes();
        let in_group = |pid: i32| grouped.binary_search(&pid).is_ok() && target.groups.holds(pid);
        let direct: Vec<Seen> = self
            .all
            .iter()
            .zip(&self.tokens)
            .filter(|(seen, token)| carries(token) || of_session(seen) || in_group(seen.id.pid))
            .map(|(seen, _)| *seen)
            .filter(|seen| seen.id.pid != own)
            .collect();
        let roots: Vec<i32> = direct.iter().map(|seen| seen.id.pid).collect();
        let mut members = direct;
        members.extend(process::below(&roots, &self.all));
        members.retain(|seen| seen.state != b'Z' && seen.id.pid != own);
        members.into_iter().map(|seen| seen.id).collect()
    }
}
