//! Random lives of jobs.

use super::Dice;
use std::fmt::Write as _;
use std::path::Path;

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Quick,
    Sleeps,
    Fails,
    Forks,
    Deaf,
    Chatters,
    Makes,
    Retries,
    Wide,
    NoGpu,
    MakesNothing,
}

/// What was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) kind: Kind,
    pub(crate) after: Option<String>,
    /// Into the inbox.
    pub(crate) dropped: bool,
    /// It must become a job.
    pub(crate) accepted: bool,
    /// Somebody tried to cancel it.
    pub(crate) cancelled: bool,
}

impl Kind {
    pub(crate) fn roll(dice: &mut Dice) -> Self {
        match dice.below(20) {
            0..=3 => Self::Quick,
            4..=7 => Self::Sleeps,
            8..=9 => Self::Fails,
            10..=11 => Self::Forks,
            12 => Self::Deaf,
            13 => Self::Chatters,
            14..=15 => Self::Makes,
            16 => Self::Retries,
            17 => Self::Wide,
            18 => Self::NoGpu,
            _ => Self::MakesNothing,
        }
    }

    /// What it comes to if nobody meddles: the outcome's word, and what its record holds.
    pub(crate) const fn outcomes(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Quick
            | Self::Sleeps
            | Self::Forks
            | Self::Chatters
            | Self::Makes
            | Self::Wide
            | Self::NoGpu
            | Self::Retries => &[("succeeded", "")],
            Self::Fails => &[("failed", "7")],
            Self::Deaf => &[("limit_reached", "")],
            Self::MakesNothing => &[("failed", "output_missing")],
        }
    }

    /// Its job file.
    pub(crate) fn file(self, dice: &mut Dice, after: Option<&str>, dir: &Path) -> String {
        let tenths = 1 + dice.below(30);
        let nap = format!("sleep {}.{}", tenths / 10, tenths % 10);
        let once = dir.join("gates").join(format!("once-{}", dice.below(u64::MAX)));
        let run = match self {
            Self::Quick => "echo quick".to_owned(),
            Self::Sleeps | Self::NoGpu | Self::Wide => nap,
            Self::Fails => format!("{nap}\nexit 7"),
            Self::Forks => format!("setsid sleep 300 &\n(sleep 300 & sleep 300) &\n{nap}"),
            Self::Deaf => "trap '' TERM\nwhile true; do sleep 0.1; done".to_owned(),
            Self::Chatters => format!("seq 1 200000\n{nap}"),
            Self::Makes => format!("{nap}\nseq 1 5000 > made.txt\necho more > \"$OVERNIGHT_OUTPUT/more\""),
            Self::Retries => format!("[ -e '{0}' ] || {{ touch '{0}'; exit 75; }}\n{nap}", once.display()),
            Self::MakesNothing => "true".to_owned(),
        };
        let gpus = match self {
            Self::NoGpu => 0,
            Self::Wide => 2 + dice.below(3),
            _ => 1,
        };
        let limit = if self == Self::Deaf { "2s" } else { "2m" };
        let output = match self {
            Self::Makes => "[made.txt]",
            Self::MakesNothing => "[nowhere.txt]",
            _ => "[]",
        };
        let mut more = String::new();
        if let Some(after) = after {
            let _ = write!(more, ", after: [{after}]");
        }
        // The pool's faults are many here.
        more.push_str(", retry: {times: 6, when: [lost, 75]}");
        let run = run.replace('\n', "\n    ");
        format!(
            "work:\n  stop: {{signal: TERM, grace: 1s}}\n  run: |\n    {run}\ndata: []\n\
             request: {{gpus: {gpus}, cpus: 1, memory: 1GiB, for: {limit}{more}}}\noutput: {output}\n"
        )
    }
}
