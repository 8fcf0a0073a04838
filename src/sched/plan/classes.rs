//! Which devices fit which requests. Thousands of jobs ask for a handful of different things: each is worked out once.

use crate::model::{Bytes, DeviceState, Gpu, Job, memory_fits, model_matches};
use std::collections::HashMap;
use std::rc::Rc;

/// What a request's model words and memory make of the listed devices.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Class {
    /// Whether each device fits, by place.
    pub(super) fits: Vec<bool>,
    /// How many do, whatever their state.
    pub(super) fitting: u32,
    /// Those that fit and are not in service, in words.
    pub(super) out: Option<String>,
}

/// The listed devices in index order, and the classes met so far.
#[derive(Debug, Clone)]
pub(super) struct Classes<'a> {
    listed: Vec<(&'a Gpu, &'a DeviceState)>,
    known: HashMap<(&'a [String], Option<Bytes>), Rc<Class>>,
}

impl<'a> Classes<'a> {
    pub(super) fn new(listed: Vec<(&'a Gpu, &'a DeviceState)>) -> Self {
        Self { listed, known: HashMap::new() }
    }

    /// The device at a place.
    pub(super) fn gpu(&self, ix: usize) -> &'a Gpu {
        self.listed[ix].0
    }

    /// What the devices are to a job.
    pub(super) fn of(&mut self, job: &'a Job) -> Rc<Class> {
        let request = &job.spec.request;
        let key = (request.gpu_model.as_slice(), request.gpu_memory);
        let listed = &self.listed;
        Rc::clone(self.known.entry(key).or_insert_with(|| {
            let fits: Vec<bool> = listed.iter().map(|(gpu, _)| fits(job, gpu)).collect();
            let fitting = || listed.iter().zip(&fits).filter(|(_, fits)| **fits).map(|(device, _)| device);
            let out: Vec<String> = fitting()
                .filter(|(_, state)| {
                    !matches!(
                        state,
                        DeviceState::Free | DeviceState::Held { .. } | DeviceState::Draining { .. }
                    )
                })
                .map(|(gpu, state)| format!("GPU {} is {}", gpu.index, state.word()))
                .collect();
            let count = fitting().count() as u32;
            Rc::new(Class { fits, fitting: count, out: (!out.is_empty()).then(|| out.join(", ")) })
        }))
    }
}

/// Whether a device is one that a job asks for.
pub(super) fn fits(job: &Job, gpu: &Gpu) -> bool {
    let request = &job.spec.request;
    (request.gpu_model.is_empty() || request.gpu_model.iter().any(|word| model_matches(&gpu.name, word)))
        && request.gpu_memory.is_none_or(|asked| memory_fits(gpu.memory, asked))
}
