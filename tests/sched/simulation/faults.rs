//! What breaks, how often, and how often it did.
//!
//! Each seed has faults of its own: most kinds are off or rare in it, some are frequent. A fair coin over all of them would
//! find little, for what matters is several of one kind in a row. Near a grant, an end and a return a scheduler dies more
//! often than elsewhere.

use super::dice::Dice;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    KilledBeforeAppend,
    KilledAfterAppend,
    KilledBetweenEffects,
    KilledInRecovery,
    DownForHours,
    ReportLate,
    ReportLost,
    ReportTwice,
    Reordered,
    ReadingSlow,
    ReadingLost,
    GpuGone,
    GpuUnlisted,
    GpuHangs,
    GpuDirty,
    GpuOutsider,
    LockTaken,
    GpusRenumbered,
    DiskError,
    DiskErrorDurable,
    KilledWhileFrozen,
    DiskFullForHours,
    OutputDiskFull,
    WallStep,
    Suspend,
    Reboot,
    PowerLoss,
    SupervisorKilled,
    Unkillable,
    JournalUnreadable,
    SpawnFails,
    CannotStart,
    PrepareFails,
    CollectFails,
    OldPicture,
    CancelRace,
    UndoRace,
    DropSeenTwice,
    GpuClosed,
    CoresLost,
}

/// All of them: the chance at each occasion in a thousand where the kind is usual, and the words of the report.
const KINDS: &[(Fault, u64, &str)] = &[
    (Fault::KilledBeforeAppend, 8, "scheduler killed between step and append"),
    (Fault::KilledAfterAppend, 8, "scheduler killed between append and effects"),
    (Fault::KilledBetweenEffects, 8, "scheduler killed between two effects"),
    (Fault::KilledInRecovery, 12, "scheduler killed while it recovers"),
    (Fault::DownForHours, 100, "scheduler down for long"),
    (Fault::ReportLate, 100, "report late"),
    (Fault::ReportLost, 40, "report lost"),
    (Fault::ReportTwice, 80, "report twice"),
    (Fault::Reordered, 200, "inputs of a turn in another order"),
    (Fault::ReadingSlow, 150, "reading slow"),
    (Fault::ReadingLost, 60, "reading lost"),
    (Fault::GpuGone, 10, "GPU gone"),
    (Fault::GpuUnlisted, 8, "GPU not listed"),
    (Fault::GpuHangs, 12, "GPU does not answer"),
    (Fault::GpuDirty, 100, "GPU dirty after a run"),
    (Fault::GpuOutsider, 12, "GPU used from outside"),
    (Fault::LockTaken, 80, "another scheduler was faster"),
    (Fault::GpusRenumbered, 300, "GPUs in another order after a reboot"),
    (Fault::DiskError, 12, "append fails, nothing durable"),
    (Fault::DiskErrorDurable, 10, "append fails, durable nevertheless"),
    (Fault::KilledWhileFrozen, 200, "scheduler killed in a frozen turn"),
    (Fault::DiskFullForHours, 250, "turn frozen for long"),
    (Fault::OutputDiskFull, 80, "no room for the output"),
    (Fault::WallStep, 12, "wall clock set"),
    (Fault::Suspend, 8, "machine suspended"),
    (Fault::Reboot, 5, "machine rebooted"),
    (Fault::PowerLoss, 300, "power lost with the journal's tail"),
    (Fault::SupervisorKilled, 12, "supervisor killed"),
    (Fault::Unkillable, 100, "process survives its kill"),
    (Fault::JournalUnreadable, 200, "journal unreadable"),
    (Fault::SpawnFails, 40, "supervisor cannot be started"),
    (Fault::CannotStart, 40, "work cannot be started"),
    (Fault::PrepareFails, 60, "directory cannot be made ready"),
    (Fault::CollectFails, 60, "output cannot be collected"),
    (Fault::OldPicture, 400, "command on an old picture"),
    (Fault::CancelRace, 80, "cancel in the turn of another fact"),
    (Fault::UndoRace, 200, "undo as the window closes"),
    (Fault::DropSeenTwice, 200, "drop seen twice"),
    (Fault::GpuClosed, 10, "GPU closed by the operator"),
    (Fault::CoresLost, 3, "cores and memory shrink"),
];

/// How many kinds there are.
pub(super) const COUNT: usize = KINDS.len();

/// How often each kind was injected.
pub(super) type Counts = [u64; COUNT];

/// The faults of one seed.
pub(super) struct Faults {
    /// Whether there are any.
    pub(super) on: bool,
    rates: [u64; COUNT],
    pub(super) counts: Counts,
}

impl Faults {
    /// Those of a seed.
    pub(super) fn of(dice: &mut Dice) -> Self {
        let rates = std::array::from_fn(|ix| KINDS[ix].1 * [0, 0, 1, 1, 1, 5][dice.below(6) as usize]);
        Self { on: true, rates, counts: [0; COUNT] }
    }

    /// Whether a fault strikes at this occasion.
    pub(super) fn strikes(&mut self, dice: &mut Dice, fault: Fault) -> bool {
        self.strikes_near(dice, fault, 1)
    }

    /// Likewise, `factor` times as likely as elsewhere.
    pub(super) fn strikes_near(&mut self, dice: &mut Dice, fault: Fault, factor: u64) -> bool {
        let strikes = self.threatens(dice, fault, factor);
        self.struck(fault, u64::from(strikes));
        strikes
    }

    /// Likewise, of one that may yet come to nothing: [`struck`](Self::struck) counts it.
    pub(super) fn threatens(&self, dice: &mut Dice, fault: Fault, factor: u64) -> bool {
        let rate = self.rates[fault as usize];
        self.on && rate > 0 && dice.per_mille(rate * factor)
    }

    /// Counts a fault that came about.
    pub(super) const fn struck(&mut self, fault: Fault, times: u64) {
        self.counts[fault as usize] += times;
    }
}

/// The table that a run ends with; and the kinds that never struck.
pub(super) fn report(counts: &Counts, seeds: usize) -> (String, Vec<&'static str>) {
    let width = KINDS.iter().map(|(_, _, words)| words.len()).max().unwrap_or_default();
    let mut lines = vec![format!("injected over {seeds} seeds:")];
    lines.extend(
        KINDS.iter().zip(counts).map(|((_, _, words), count)| format!("  {words:width$} {count:>9}")),
    );
    let never = KINDS.iter().zip(counts).filter(|(_, count)| **count == 0).map(|((_, _, words), _)| *words);
    (lines.join("\n"), never.collect())
}

#[test]
fn every_kind_has_its_place_in_the_table() {
    for (ix, (fault, rate, words)) in KINDS.iter().enumerate() {
        assert_eq!(*fault as usize, ix, "{words}");
        assert!(*rate > 0, "{words}");
    }
}
