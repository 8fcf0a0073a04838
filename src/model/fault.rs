//! Faults: what a driver says is wrong with a device, and what is remembered of it.

use super::{BootId, Now, Uuid};
use serde::{Deserialize, Serialize};

/// Something the driver told of a device as it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultNews {
    /// Which device.
    pub uuid: Uuid,
    /// What.
    pub kind: FaultKind,
}

/// What a driver tells as it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// An Xid: the driver's number for an error.
    Xid(u64),
    /// A memory error that ECC could not correct.
    DoubleBit,
}

/// What a device tells of the health of its memory. `None`: it does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Health {
    /// Errors since its last reset that ECC could not correct.
    pub uncorrected: Option<u64>,
    /// A bad row is replaced at the next reset.
    pub remap_pending: Option<bool>,
    /// A bad row could not be replaced.
    pub remap_failed: Option<bool>,
}

/// Why a device is not handed out until an operator clears it or a reset is proven. Durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// In words.
    pub why: String,
    /// Since when.
    pub at: Now,
    /// It was not there: that it is back proves a reset.
    pub lost: bool,
    /// The worst that it told of its health since then.
    pub health: Health,
}

/// What an operator has seen of a device's health and lives with. Durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// In which boot: the next one resets what a device counts.
    pub boot: BootId,
    /// What it told then.
    pub health: Health,
}

impl Health {
    /// Each figure as bad as the worse of the two.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        Self {
            uncorrected: self.uncorrected.max(other.uncorrected),
            remap_pending: self.remap_pending.max(other.remap_pending),
            remap_failed: self.remap_failed.max(other.remap_failed),
        }
    }

    /// What is wrong with it, in words without figures; `None` if nothing is, or nothing that was not accepted.
    pub fn ailment(&self, boot: BootId, accepted: Option<&Accepted>) -> Option<&'static str> {
        let known = accepted.map(|accepted| accepted.health).unwrap_or_default();
        let this_boot = accepted.is_some_and(|accepted| accepted.boot == boot);
        let is_new = |now: Option<bool>, known: Option<bool>| now == Some(true) && known != Some(true);
        if is_new(self.remap_failed, known.remap_failed) {
            return Some("a bad row of its memory could not be replaced");
        }
        let known = if this_boot { known } else { Self::default() };
        if is_new(self.remap_pending, known.remap_pending) {
            return Some("a bad row of its memory is replaced at its next reset");
        }
        // Fewer errors than were accepted are new ones too: it was reset between.
        let is_new = |errors: u64| errors > 0 && known.uncorrected != Some(errors);
        self.uncorrected.is_some_and(is_new).then_some("memory errors that ECC could not correct")
    }
}

impl Accepted {
    /// What is still accepted of a device that tells this now: what it does not have any more would be new again.
    #[must_use]
    pub fn after(self, boot: BootId, now: &Health) -> Self {
        if boot != self.boot {
            // Of another boot only what stays in the card counts.
            return self;
        }
        let least = |old: Option<u64>, now: Option<u64>| old.zip(now).map(|(old, now)| old.min(now)).or(old);
        let both = |old: Option<bool>, now: Option<bool>| old.zip(now).map(|(old, now)| old && now).or(old);
        let health = Health {
            uncorrected: least(self.health.uncorrected, now.uncorrected),
            remap_pending: both(self.health.remap_pending, now.remap_pending),
            remap_failed: self.health.remap_failed,
        };
        Self { health, ..self }
    }
}

impl Fault {
    /// Whether what a device tells now proves that it was reset since: it was away, the machine was started anew, or it
    /// counts from the beginning again.
    pub fn is_reset(&self, boot: BootId, health: &Health) -> bool {
        let fewer = health.uncorrected.zip(self.health.uncorrected).is_some_and(|(now, then)| now < then);
        let replaced = self.health.remap_pending == Some(true) && health.remap_pending == Some(false);
        self.lost || boot != self.at.boot || fewer || replaced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: BootId = BootId(1);

    fn health(uncorrected: u64, remap_pending: bool, remap_failed: bool) -> Health {
        Health {
            uncorrected: Some(uncorrected),
            remap_pending: Some(remap_pending),
            remap_failed: Some(remap_failed),
        }
    }

    fn ails(health: Health, accepted: Option<Accepted>) -> bool {
        health.ailment(BOOT, accepted.as_ref()).is_some()
    }

    #[test]
    fn each_figure_ails_until_it_is_accepted_and_again_when_it_changes() {
        assert!(!ails(health(0, false, false), None) && !ails(Health::default(), None));
        for sick in [health(1, false, false), health(0, true, false), health(0, false, true)] {
            assert!(ails(sick, None), "{sick:?}");
            assert!(!ails(sick, Some(Accepted { boot: BOOT, health: sick })), "{sick:?}");
        }
        let three = Some(Accepted { boot: BOOT, health: health(3, false, false) });
        assert!(ails(health(4, false, false), three), "one more");
        assert!(ails(health(1, false, false), three), "one after a reset");
        assert!(!ails(health(0, false, false), three));
    }

    #[test]
    fn a_new_boot_forgets_what_was_accepted_of_counters_and_not_what_stays_in_the_card() {
        let then = |health| Some(Accepted { boot: BootId(7), health });
        assert!(ails(health(2, false, false), then(health(2, false, false))));
        assert!(ails(health(0, true, false), then(health(0, true, false))));
        assert!(!ails(health(0, false, true), then(health(0, false, true))));
    }

    #[test]
    fn a_reset_is_proven_by_an_absence_a_boot_or_a_counter_and_by_nothing_else() {
        let at = Now { boot: BOOT, ..Now::default() };
        let fault = |lost, health| Fault { why: String::new(), at, lost, health };
        let told = |uncorrected| Health { uncorrected, ..Health::default() };
        assert!(!fault(false, Health::default()).is_reset(BOOT, &health(0, false, false)));
        assert!(!fault(false, told(Some(2))).is_reset(BOOT, &told(None)), "silence proves nothing");
        assert!(!fault(false, told(Some(2))).is_reset(BOOT, &told(Some(2))));
        assert!(fault(false, told(Some(2))).is_reset(BOOT, &told(Some(0))));
        assert!(fault(false, health(0, true, false)).is_reset(BOOT, &health(0, false, false)));
        assert!(fault(true, Health::default()).is_reset(BOOT, &Health::default()));
        assert!(fault(false, Health::default()).is_reset(BootId(2), &Health::default()));
    }
}
