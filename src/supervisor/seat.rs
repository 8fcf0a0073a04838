//! Where the work will be: the groups of its attempt, and the child that waits in them to become it.

use super::child::{Places, Waiting};
use super::spec::LaunchSpec;
use crate::cgroup::{self, Door, Groups, Layout, Made};
use crate::model::Enforcement;
use std::io;
use std::os::fd::AsFd;

/// A supervisor's groups: its own, and those of its attempts.
#[derive(Debug)]
pub(super) struct Seat {
    layout: Layout,
    /// This process is where the end of the scheduler's group does not reach it.
    is_out: bool,
    /// What is there before there is a lease.
    ahead: Option<(Groups, Waiting)>,
    /// Whatever was made, to be taken away at the end.
    made: Vec<Groups>,
}

/// An attempt's place.
#[derive(Debug)]
pub(super) struct Seated {
    /// Its first process, or why there is none.
    pub(super) child: io::Result<Waiting>,
    /// Its groups.
    pub(super) groups: Groups,
    /// What they hold it to, once the child is in them.
    pub(super) enforcement: Enforcement,
}

impl Seat {
    pub(super) fn new(layout: Layout) -> Self {
        let is_out = layout.supervisors.is_empty();
        Self { layout, is_out, ahead: None, made: Vec::new() }
    }

    /// What can be done while nobody waits for it.
    pub(super) fn prepare(&mut self) {
        self.move_out();
        if self.layout.can_wait() {
            let groups = self.layout.waiting();
            self.made.push(groups.clone());
            let enters = groups.version1.iter().map(|group| Door::open(group)).collect();
            let places = Places { born_in: None, enters };
            self.ahead = Waiting::fork(&places).ok().map(|child| (groups, child));
        }
    }

    /// Leaves the scheduler's group. Where that may not be, the group's end is the supervisor's.
    pub(super) fn move_out(&mut self) {
        if !self.is_out {
            self.is_out = true;
            for group in &self.layout.supervisors {
                let _ = cgroup::enter(group);
            }
        }
    }

    /// The names of an attempt's groups.
    pub(super) fn groups(&self, spec: &LaunchSpec) -> Groups {
        self.layout.groups(&spec.token.0, spec.task.0, spec.attempt.0)
    }

    /// Makes an attempt's place.
    pub(super) fn take(&mut self, spec: &LaunchSpec) -> Seated {
        let groups = self.groups(spec);
        let limits = spec.limits.clone();
        let (waiting, child) = self.ahead.take().unzip();
        let made = self.layout.make(&groups, waiting.as_ref(), &limits);
        // One that was ended while it waited is no work's fault.
        let child = child.filter(|child| !child.is_gone()).map_or_else(|| self.fork(&made), Ok);
        self.made.push(made.groups.clone());
        Seated { child, groups: made.groups, enforcement: made.enforcement }
    }

    /// Starts a child that enters what it was not born in.
    fn fork(&self, made: &Made) -> io::Result<Waiting> {
        let own = made.groups.version2.as_ref();
        let top = own.and_then(|group| group.parent());
        // Not the supervisors' group where it has one of its own.
        let others = self
            .layout
            .supervisors
            .iter()
            .filter(|group| !self.is_out && top.is_none_or(|top| !group.starts_with(top)));
        let enters = others.chain(&made.groups.version1).map(|group| Door::open(group)).collect();
        let born_in = made.dir.as_ref().map(AsFd::as_fd);
        let mut places = Places { born_in, enters };
        let child = Waiting::fork(&places);
        if child.is_ok() || places.born_in.is_none() {
            return child;
        }
        // An older kernel, or one that is told to refuse the call.
        places.born_in = None;
        places.enters.extend(own.map(|group| Door::open(group)));
        Waiting::fork(&places)
    }

    /// Takes away what nobody is in any more.
    pub(super) fn clear(&mut self) {
        self.ahead = None;
        self.made.retain(|groups| !groups.remove());
    }
}
