//! What runs leases. Layer 2. One engine today: [`local`], a supervisor process per lease.

pub mod local;

use crate::model::LeaseId;
use crate::sched::{Launch, StopKind};
use thiserror::Error;

/// Runs leases. `launch` returns when the launch is handed over, not when the work is done; news comes as
/// [`EngineReport`](crate::sched::EngineReport)s through the callback the engine was made with.
pub trait Engine {
    /// Starts a supervisor for a lease. Idempotent by token: launching a lease that already has one adopts it.
    fn launch(&mut self, launch: &Launch) -> Result<(), EngineError>;

    /// Ends the run of a lease.
    fn stop(&mut self, lease: LeaseId, kind: &StopKind) -> Result<(), EngineError>;

    /// Lets a lease's supervisor go: its devices are back.
    fn dismiss(&mut self, lease: LeaseId) -> Result<(), EngineError>;

    /// After a start: finds the supervisors of these leases, reports all that their journals say (also for those that
    /// are gone), and listens to those that live. One pass over all leases.
    fn survey(&mut self, leases: &[(LeaseId, crate::model::Token)]) -> Result<(), EngineError>;
}

/// Why the engine could not do it.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The supervisor's directory or pipes could not be made.
    #[error("cannot {doing} {path}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: std::path::PathBuf,
        /// The system's words.
        #[source]
        source: std::io::Error,
    },
    /// The journal of a lease was written by a later version.
    #[error(
        "{path} was written by a newer Overnight (journal format {version}); nothing was touched: use the newer version"
    )]
    Newer {
        /// The journal.
        path: std::path::PathBuf,
        /// Its format.
        version: u32,
    },
    /// No supervisor of this lease is known.
    #[error("lease {0} has no supervisor")]
    Unknown(LeaseId),
}
