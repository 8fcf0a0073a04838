//! What can be filtered: jobs, devices, files. A new field is a method of [`Filtered`] and a name in [`Subject::spec`].

use crate::model::{Cursor, DeviceState};
use crate::protocol::{GpuRow, InboxRow, InboxState, JobRow};
use crate::tui::look::text::state;

/// What a filter is a filter of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Subject {
    /// Jobs.
    #[default]
    Jobs,
    /// GPUs, and who has them.
    Devices,
    /// Job files.
    Files,
}

/// A field that can be asked for.
pub(super) struct Known {
    /// Its short name, then the long one, if it has one.
    pub(super) names: [&'static str; 2],
    /// How it is written, for instance.
    pub(super) written: &'static [&'static str],
    /// What it lets through.
    pub(super) about: &'static str,
}

const fn known(names: [&'static str; 2], written: &'static [&'static str], about: &'static str) -> Known {
    Known { names, written, about }
}

/// What can be asked of a kind of rows.
pub(super) struct Spec {
    /// What the rows are.
    pub(super) what: &'static str,
    /// Its fields.
    pub(super) fields: &'static [Known],
    /// The words for states whose beginnings `s:` takes.
    pub(super) states: &'static [&'static str],
    /// The states as they are told to somebody who wrote another one.
    pub(super) told: &'static str,
    /// What can be typed, in a few words.
    pub(super) hint: &'static str,
}

const STATE: &str = "state, by its beginning";

static JOBS: Spec = Spec {
    what: "Jobs, in the queue and the history",
    fields: &[
        known(["u", "user"], &["u:ana"], "user"),
        known(["s", "state"], &["s:run"], STATE),
        known(["n", "name"], &["n:sweep"], "name"),
        known(["p", "project"], &["p:vision"], "project"),
        known(["g", "gpus"], &["g:2", "g:>2", "g:<=4", "g:2..4"], "GPUs asked for"),
        known(["gpu", ""], &["gpu:4", "gpu:0..3"], "index of a device that it holds"),
        known(["id", ""], &["id:151", "id:>150"], "number"),
    ],
    states: &[
        "waiting",
        "queued",
        "paused",
        "edit",
        "renting",
        "running",
        "stop",
        "output",
        "returning",
        "free",
        "releasing",
        "done",
        "ok",
        "failed",
        "limit",
        "cancelled",
        "lost",
        "rel",
    ],
    told: "wait paus edit rent run stop out free done fail limit canc lost",
    hint: "words u:ana s:run g:>2 gpu:4 n:/re/ !not",
};

static DEVICES: Spec = Spec {
    what: "GPUs",
    fields: &[
        known(["u", "user"], &["u:ana"], "user of a job that holds it"),
        known(["s", "state"], &["s:quar"], STATE),
        known(
            ["n", "name"],
            &["n:h100"],
            "model, node, UUID, what is wrong with it, or the name of a job that holds it",
        ),
        known(["gpu", ""], &["gpu:4", "gpu:0..3"], "its index"),
        known(["id", ""], &["id:151"], "number of a job that holds it"),
    ],
    states: &["free", "held", "draining", "quarantined", "outside", "closed", "gone", "unknown", "idle"],
    told: "free held idle drain quar out close gone unknown",
    hint: "words gpu:0..3 s:quar u:ana id:17 !not",
};

static FILES: Spec = Spec {
    what: "Job files, in the inbox",
    fields: &[
        known(["n", "name"], &["n:sweep"], "name of the file, or what is said of it"),
        known(["s", "state"], &["s:refused"], STATE),
        known(["id", ""], &["id:151"], "number of a job that was made of it"),
    ],
    states: &["refused", "bad", "accepted", "waiting"],
    told: "refused accepted waiting",
    hint: "words s:refused n:/re/ id:17 !not",
};

impl Subject {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Jobs, Self::Devices, Self::Files];

    pub(super) const fn spec(self) -> &'static Spec {
        match self {
            Self::Jobs => &JOBS,
            Self::Devices => &DEVICES,
            Self::Files => &FILES,
        }
    }
}

/// A row that can be filtered. Each method: whether the thing it is named after is what is asked for; a row that has no
/// such thing passes nothing.
pub trait Filtered {
    /// A job's number.
    fn id(&self, is: &dyn Fn(u64) -> bool) -> bool;
    /// Its name.
    fn name(&self, is: &dyn Fn(&str) -> bool) -> bool;
    /// The words for its state.
    fn words(&self) -> [&str; 3];
    /// The user who has it.
    fn user(&self, _: &dyn Fn(&str) -> bool) -> bool {
        false
    }
    /// The project it is for.
    fn project(&self, _: &dyn Fn(&str) -> bool) -> bool {
        false
    }
    /// How many devices it asks for.
    fn gpus(&self, _: &dyn Fn(u64) -> bool) -> bool {
        false
    }
    /// A device it has, or is.
    fn device(&self, _: &dyn Fn(u64) -> bool) -> bool {
        false
    }
}

/// States of jobs in full.
const LONG: &[(&str, &str)] = &[
    ("WAIT", "waiting"),
    ("PAUS", "paused"),
    ("RENT", "renting"),
    ("OUT", "output"),
    ("FREE", "releasing"),
    ("FAIL", "failed"),
    ("CANC", "cancelled"),
    ("DONE", "ok"),
];

impl Filtered for JobRow {
    fn id(&self, is: &dyn Fn(u64) -> bool) -> bool {
        is(self.id.0)
    }

    fn name(&self, is: &dyn Fn(&str) -> bool) -> bool {
        is(&self.name)
    }

    fn words(&self) -> [&str; 3] {
        let short = state(self).0;
        let long = LONG.iter().find(|(word, _)| *word == short).map_or("", |(_, long)| *long);
        // All of the history is done; what it is asked for is how it ended.
        [short, if self.state == Cursor::Done { "" } else { self.state.word() }, long]
    }

    fn user(&self, is: &dyn Fn(&str) -> bool) -> bool {
        is(&self.user)
    }

    fn project(&self, is: &dyn Fn(&str) -> bool) -> bool {
        self.project.as_deref().is_some_and(is)
    }

    fn gpus(&self, is: &dyn Fn(u64) -> bool) -> bool {
        is(self.gpus.into())
    }

    fn device(&self, is: &dyn Fn(u64) -> bool) -> bool {
        self.gpu_indices.iter().any(|index| is((*index).into()))
    }
}

/// A device with the jobs that hold it.
#[derive(Debug, Clone, Copy)]
pub struct Device<'a> {
    /// Its row.
    pub gpu: &'a GpuRow,
    /// All jobs that are not done.
    pub jobs: &'a [std::sync::Arc<JobRow>],
}

impl Device<'_> {
    fn holds(&self, is: impl Fn(&JobRow) -> bool) -> bool {
        self.jobs.iter().any(|row| self.gpu.jobs.contains(&row.id) && is(row))
    }
}

impl Filtered for Device<'_> {
    fn id(&self, is: &dyn Fn(u64) -> bool) -> bool {
        self.gpu.jobs.iter().any(|job| is(job.0))
    }

    fn name(&self, is: &dyn Fn(&str) -> bool) -> bool {
        let GpuRow { name, node, uuid, detail, .. } = self.gpu;
        let own = [name.as_str(), node.as_str(), uuid.0.as_str(), detail.as_deref().unwrap_or_default()];
        own.into_iter().any(is) || self.holds(|row| is(&row.name))
    }

    fn words(&self) -> [&str; 3] {
        let is_idle = self.gpu.idle_since.is_some() && matches!(self.gpu.state, DeviceState::Held { .. });
        [self.gpu.state.word(), if is_idle { "idle" } else { "" }, ""]
    }

    fn user(&self, is: &dyn Fn(&str) -> bool) -> bool {
        self.holds(|row| is(&row.user))
    }

    fn device(&self, is: &dyn Fn(u64) -> bool) -> bool {
        is(self.gpu.index.into())
    }
}

impl Filtered for InboxRow {
    fn id(&self, is: &dyn Fn(u64) -> bool) -> bool {
        match &self.state {
            InboxState::Accepted { jobs, .. } => jobs.iter().any(|job| is(job.0)),
            InboxState::Refused { .. } | InboxState::Waiting { .. } => false,
        }
    }

    fn name(&self, is: &dyn Fn(&str) -> bool) -> bool {
        is(&self.name)
            || match &self.state {
                InboxState::Refused { diagnostics } => diagnostics.iter().any(|d| is(&d.message)),
                InboxState::Waiting { why } => is(why),
                InboxState::Accepted { warnings, .. } => warnings.iter().any(|d| is(&d.message)),
            }
    }

    fn words(&self) -> [&str; 3] {
        match &self.state {
            InboxState::Refused { .. } => ["refused", "bad", ""],
            InboxState::Accepted { .. } => ["accepted", "", ""],
            InboxState::Waiting { .. } => ["waiting", "", ""],
        }
    }
}
