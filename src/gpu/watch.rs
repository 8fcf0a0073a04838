//! Faults as they happen: a thread of its own waits in the driver for Xids and memory errors.
//!
//! It has its own session with the driver, so that a driver that hangs here holds up nobody. Where no device is to be
//! watched it sleeps. What it cannot find out, the next reading tells.

use super::nvml::{load, physical};
use crate::clock;
use crate::model::{FaultKind, FaultNews, Span, Uuid};
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::event::EventData;
use nvml_wrapper::{EventSet, Nvml as Library};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest wait in the driver: after that it is seen whether other devices are to be watched.
const WAIT_MS: u32 = 5_000;
/// A wait that ends sooner than this without news is no wait: the driver is given a rest.
const SHORT: Span = Span(100);
/// The first rest after an error; doubled up to [`REST_MAX_S`].
const REST_S: u64 = 1;
/// The longest rest.
const REST_MAX_S: u64 = 60;

/// What the driver says where it does not know the number itself.
const UNKNOWN_XID: u64 = 999;

/// Where faults go. An empty list says that something is wrong and not what: a reading will tell.
pub type TellFaults = Arc<dyn Fn(Vec<FaultNews>) + Send + Sync>;

/// The thread that watches. Dropping it ends it, at the latest when the driver answers.
#[derive(Debug)]
pub struct FaultWatch {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The devices to watch.
    wanted: Vec<Uuid>,
    /// Counts what was wanted; a session that was begun for another number is over.
    number: u64,
    /// The last session ended without one after it: the next wish begins one.
    idle: bool,
    stop: bool,
}

/// Starts the thread; `library` where it is not the installed one.
pub fn watch_faults(library: Option<PathBuf>, tell: TellFaults) -> std::io::Result<FaultWatch> {
    let shared = Arc::new(Shared::default());
    let watch = FaultWatch { shared: Arc::clone(&shared) };
    std::thread::Builder::new()
        .name("gpu-faults".to_owned())
        .spawn(move || run(&shared, library.as_deref(), &tell))?;
    Ok(watch)
}

impl FaultWatch {
    /// From now on these devices are watched: the driver has just listed them.
    pub fn devices(&self, uuids: Vec<Uuid>) {
        let mut state = self.shared.lock();
        if state.wanted != uuids || state.idle {
            state.wanted = uuids;
            state.number += 1;
            state.idle = false;
            self.shared.changed.notify_all();
        }
    }
}

impl Drop for FaultWatch {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the next wish that is not empty; `None` at the end.
    fn next(&self, done: u64) -> Option<u64> {
        let state = self
            .changed
            .wait_while(self.lock(), |state| !state.stop && (state.number == done || state.wanted.is_empty()))
            .unwrap_or_else(PoisonError::into_inner);
        (!state.stop).then_some(state.number)
    }

    /// Whether a session begun for this wish may go on.
    fn is_current(&self, number: u64) -> bool {
        let state = self.lock();
        !state.stop && state.number == number
    }

    /// Waits so many seconds, or until something else is wanted.
    fn rest(&self, number: u64, seconds: u64) {
        let over = |state: &mut State| !state.stop && state.number == number;
        let rested = self.changed.wait_timeout_while(self.lock(), Duration::from_secs(seconds), over);
        drop(rested.unwrap_or_else(PoisonError::into_inner));
    }
}

/// How a session with the driver ended.
enum End {
    /// Something else is wanted, or nothing any more.
    Asked,
    /// No device tells anything: it is tried again when the driver lists its devices again.
    Nothing,
    /// An error: it is tried again after a rest. Whether anything was waited for before it.
    Error { waited: bool },
}

fn run(shared: &Shared, library: Option<&std::path::Path>, tell: &TellFaults) {
    let mut done = 0;
    while let Some(number) = shared.next(done) {
        let mut rest = REST_S;
        done = loop {
            match session(shared, number, library, tell) {
                End::Asked => break number,
                End::Nothing => {
                    shared.lock().idle = true;
                    break number;
                }
                End::Error { waited } => {
                    rest = if waited { REST_S } else { (rest * 2).min(REST_MAX_S) };
                    shared.rest(number, rest);
                    if !shared.is_current(number) {
                        break number;
                    }
                }
            }
        };
        // A wish that came meanwhile has another number.
    }
}

/// One session: opens the driver, names the devices, and waits for news until something else is wanted.
fn session(shared: &Shared, number: u64, library: Option<&std::path::Path>, tell: &TellFaults) -> End {
    let Ok(library) = load(library) else { return End::Error { waited: false } };
    let Ok((set, names)) = register(&library) else { return End::Error { waited: false } };
    if names.is_empty() {
        return End::Nothing;
    }
    let mut waited = false;
    loop {
        if !shared.is_current(number) {
            return End::Asked;
        }
        let began = clock::monotonic();
        match set.wait(WAIT_MS) {
            Ok(event) => tell(news(&event, &names)),
            Err(NvmlError::Timeout) => {
                if clock::monotonic().0.saturating_sub(began.0) < SHORT.0 {
                    shared.rest(number, REST_S);
                }
            }
            Err(_) => {
                // A lost device, or a driver that was taken away: readings tell which.
                tell(Vec::new());
                return End::Error { waited };
            }
        }
        waited = true;
    }
}

/// What a device of the driver is to the pool: itself, or its MIG instances.
type Names = BTreeMap<String, Vec<Uuid>>;

/// A set of events for all devices that tell any. One that refuses is left out.
fn register(library: &Library) -> Result<(EventSet<'_>, Names), NvmlError> {
    let wanted = EventTypes::CRITICAL_XID_ERROR | EventTypes::DOUBLE_BIT_ECC_ERROR;
    let mut refused: Vec<String> = Vec::new();
    'again: loop {
        let mut set = library.create_event_set()?;
        let mut names = Names::new();
        for (device, uuids) in physical(library)? {
            let Ok(uuid) = device.uuid() else { continue };
            let types = device.supported_event_types().unwrap_or(EventTypes::empty()) & wanted;
            if types.is_empty() || refused.contains(&uuid) {
                continue;
            }
            let Ok(registered) = device.register_events(types, set) else {
                // The set went with the refusal.
                refused.push(uuid);
                continue 'again;
            };
            set = registered;
            names.insert(uuid, uuids);
        }
        return Ok((set, names));
    }
}

fn news(event: &EventData<'_>, names: &Names) -> Vec<FaultNews> {
    // A device that is lost may not even tell its name.
    let Some(uuids) = event.device.uuid().ok().and_then(|uuid| names.get(&uuid)) else { return Vec::new() };
    let xid = event.event_data.as_ref().map(|xid| match xid {
        XidError::Value(code) => *code,
        XidError::Unknown => UNKNOWN_XID,
    });
    let double_bit = event.event_type.contains(EventTypes::DOUBLE_BIT_ECC_ERROR);
    let kinds = xid.map(FaultKind::Xid).into_iter().chain(double_bit.then_some(FaultKind::DoubleBit));
    kinds.flat_map(|kind| uuids.iter().map(move |uuid| FaultNews { uuid: uuid.clone(), kind })).collect()
}
