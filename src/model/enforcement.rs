//! What of an attempt's share of the machine the kernel holds it to.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What the kernel enforces; the rest is advisory: counted, and left to the work's good manners.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Enforcement {
    /// By what.
    pub by: EnforcedBy,
    /// It is killed when it takes more memory than it asked for.
    pub memory: bool,
    /// It gets no more processor time than the cores it asked for.
    pub cpus: bool,
    /// It cannot have processes without end.
    pub processes: bool,
    /// Why less is enforced than was asked for.
    pub why: Option<String>,
}

/// What enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnforcedBy {
    /// Control groups, version 2.
    CgroupV2,
    /// Control groups, version 1.
    CgroupV1,
    /// Nothing does.
    #[default]
    Nothing,
}

impl Enforcement {
    /// Nothing is enforced.
    pub const fn advisory(why: String) -> Self {
        Self { by: EnforcedBy::Nothing, memory: false, cpus: false, processes: false, why: Some(why) }
    }

    /// The word for one of the three.
    const fn word(enforced: bool) -> &'static str {
        if enforced { "enforced" } else { "advisory" }
    }
}

impl EnforcedBy {
    /// In words; `None`: nothing.
    const fn words(self) -> Option<&'static str> {
        match self {
            Self::CgroupV2 => Some("cgroup v2"),
            Self::CgroupV1 => Some("cgroup v1"),
            Self::Nothing => None,
        }
    }
}

impl fmt::Display for Enforcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.by.words() {
            Some(by) => {
                let [memory, cpus, processes] = [self.memory, self.cpus, self.processes].map(Self::word);
                write!(f, "memory {memory}, cpus {cpus}, processes {processes} ({by})")?;
            }
            None => f.write_str("advisory")?,
        }
        self.why.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screens_say_what_is_enforced_and_why_not_all() {
        let mut enforcement =
            Enforcement { by: EnforcedBy::CgroupV1, memory: true, cpus: false, processes: true, why: None };
        assert_eq!(enforcement.to_string(), "memory enforced, cpus advisory, processes enforced (cgroup v1)");
        enforcement.why = Some("cpu.max: Permission denied".to_owned());
        assert!(enforcement.to_string().ends_with("(cgroup v1): cpu.max: Permission denied"));
        assert_eq!(Enforcement::advisory("no cgroups".to_owned()).to_string(), "advisory: no cgroups");
    }
}
