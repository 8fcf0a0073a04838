//! Keeps a backend that may block off the loop: it lives on a thread of its own and answers by a callback.
//!
//! A driver that hangs cannot be interrupted, only not waited for. When it does not answer in time every device reads
//! [`Unreadable::Failed`]; the late answer, when it comes, heals that. Requests that arrive meanwhile become one.

use super::{GpuBackend, GpuError, Running};
use crate::clock;
use crate::model::{Gpu, GpuReading, Span, Unreadable, Uuid};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a driver may take: two seconds.
pub const DEFAULT_DEADLINE: Span = Span::secs(2);

/// What the sampler has to say.
#[derive(Debug)]
pub enum SamplerNews {
    /// The devices that are there, or why that could not be told.
    Devices(Result<Vec<Gpu>, GpuError>),
    /// One reading of every device.
    Readings(Vec<GpuReading>),
}

/// Where news goes.
pub type Deliver = Arc<dyn Fn(SamplerNews) + Send + Sync>;

/// Asks the sampler. Dropping it ends the sampler's threads, at the latest when the driver answers.
#[derive(Debug)]
pub struct SamplerHandle {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Held while news is handed over, so that "did not answer" never comes after the answer. Taken before `state`.
    order: Mutex<()>,
    /// The worker waits for something to do.
    work: Condvar,
    /// The watchdog waits for something to watch, and for its end.
    watch: Condvar,
}

#[derive(Debug, Default)]
struct State {
    list: bool,
    sample: Option<Vec<Running>>,
    /// What the driver is being asked, and the number of that question.
    asking: Option<(Question, u64)>,
    questions: u64,
    known: Vec<Uuid>,
    stop: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    List,
    Sample,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the threads that own `backend`. `known` are the devices that are read already.
pub fn spawn(
    backend: Box<dyn GpuBackend>,
    known: &[Uuid],
    deadline: Span,
    deliver: Deliver,
) -> std::io::Result<SamplerHandle> {
    let shared = Arc::new(Shared::default());
    shared.lock().known = known.to_vec();
    let handle = SamplerHandle { shared: Arc::clone(&shared) };
    let (worker, watchdog) = (Arc::clone(&shared), shared);
    let (for_worker, for_watchdog) = (Arc::clone(&deliver), deliver);
    std::thread::Builder::new()
        .name("gpu-sampler".to_owned())
        .spawn(move || work(&worker, backend, &for_worker))?;
    std::thread::Builder::new()
        .name("gpu-deadline".to_owned())
        .spawn(move || watch(&watchdog, deadline, &for_watchdog))?;
    Ok(handle)
}

impl SamplerHandle {
    /// Asks for one reading of every device. Requests that the driver has not begun to answer become one.
    pub fn request(&self, running: Vec<Running>) {
        self.shared.lock().sample = Some(running);
        self.shared.work.notify_one();
    }

    /// Asks which devices are there now.
    pub fn relist(&self) {
        self.shared.lock().list = true;
        self.shared.work.notify_one();
    }
}

impl Drop for SamplerHandle {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.work.notify_all();
        self.shared.watch.notify_all();
    }
}

fn work(shared: &Shared, mut backend: Box<dyn GpuBackend>, deliver: &Deliver) {
    while let Some((question, running)) = next_question(shared) {
        let news = match question {
            Question::List => SamplerNews::Devices(backend.list()),
            Question::Sample => SamplerNews::Readings(backend.sample(&running)),
        };
        let _order = shared.order.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut state = shared.lock();
            state.asking = None;
            match &news {
                SamplerNews::Devices(Ok(gpus)) => {
                    let new: Vec<Uuid> = gpus
                        .iter()
                        .map(|gpu| gpu.uuid.clone())
                        .filter(|uuid| !state.known.contains(uuid))
                        .collect();
                    state.known.extend(new);
                }
                SamplerNews::Devices(Err(_)) | SamplerNews::Readings(_) => {}
            }
            if state.stop {
                return;
            }
        }
        shared.watch.notify_one();
        deliver(news);
    }
}

/// Waits for something to ask; `None` at the end.
fn next_question(shared: &Shared) -> Option<(Question, Vec<Running>)> {
    let mut state = shared
        .work
        .wait_while(shared.lock(), |state| !state.stop && !state.list && state.sample.is_none())
        .unwrap_or_else(PoisonError::into_inner);
    if state.stop {
        return None;
    }
    let asked = if std::mem::take(&mut state.list) {
        (Question::List, Vec::new())
    } else {
        (Question::Sample, state.sample.take().unwrap_or_default())
    };
    state.questions += 1;
    state.asking = Some((asked.0, state.questions));
    shared.watch.notify_one();
    Some(asked)
}

fn watch(shared: &Shared, deadline: Span, deliver: &Deliver) {
    let mut late = 0;
    loop {
        let state = shared
            .watch
            .wait_while(shared.lock(), |state| {
                !state.stop && state.asking.is_none_or(|(_, number)| number == late)
            })
            .unwrap_or_else(PoisonError::into_inner);
        let Some((question, number)) = state.asking else { return };
        if state.stop {
            return;
        }
        let (state, waited) = shared
            .watch
            .wait_timeout_while(state, Duration::from_millis(deadline.0), |state| {
                !state.stop && state.asking.is_some_and(|(_, now)| now == number)
            })
            .unwrap_or_else(PoisonError::into_inner);
        if state.stop {
            return;
        }
        if !waited.timed_out() {
            continue;
        }
        late = number;
        drop(state);
        let _order = shared.order.lock().unwrap_or_else(PoisonError::into_inner);
        let known = {
            let state = shared.lock();
            state.asking.is_some_and(|(_, now)| now == number).then(|| state.known.clone())
        };
        if let Some(known) = known {
            deliver(unanswered(question, &known, deadline));
        }
    }
}

fn unanswered(question: Question, known: &[Uuid], deadline: Span) -> SamplerNews {
    let detail = format!("the driver did not answer within {} s", deadline.0 as f64 / 1000.0);
    match question {
        Question::List => SamplerNews::Devices(Err(GpuError::Driver {
            detail,
            hint: "it may come back by itself; `nvidia-smi` shows whether it answers others",
        })),
        Question::Sample => {
            let at = clock::now();
            let failed = |uuid: &Uuid| {
                super::unreadable(uuid.clone(), at, Unreadable::Failed { detail: detail.clone() })
            };
            SamplerNews::Readings(known.iter().map(failed).collect())
        }
    }
}
