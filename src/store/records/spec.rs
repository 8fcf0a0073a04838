//! Records of what a job file says.

use super::scalars::PathRecord;
use super::{Record, RecordError, record};
use crate::model::{
    Amount, Bytes, Code, DataFrom, DataItem, ForEach, GpuIds, JobSpec, Limit, NotifyOn, OutputItem,
    OutputKind, Request, Retry, RetryOn, Run, Setup, Stage, Stop, StopSignal, Work, WorkKind,
};
use std::collections::BTreeMap;
use std::sync::Arc;

record! {
    /// One job as its file declares it.
    struct SpecRecord for JobSpec {
        name: String,
        project: Option<String>,
        work: WorkRecord,
        data: Vec<DataItemRecord>,
        request: RequestRecord,
        output: Vec<OutputItemRecord>,
        output_to: Option<PathRecord>,
        notify: Vec<NotifyOnRecord>,
    }
}

impl Record<Arc<JobSpec>> for SpecRecord {
    fn of(model: &Arc<JobSpec>) -> Self {
        Record::of(model.as_ref())
    }
    fn restore(self) -> Result<Arc<JobSpec>, RecordError> {
        Record::<JobSpec>::restore(self).map(Arc::new)
    }
}

record! {
    /// What runs.
    struct WorkRecord for Work {
        kind: WorkKindRecord,
        dir: Option<PathRecord>,
        code: CodeRecord,
        setup: SetupRecord,
        run: RunRecord,
        env: BTreeMap<String, String>,
        env_file: Option<PathRecord>,
        for_each: Option<ForEachRecord>,
        checkpoint: Option<String>,
        stop: StopRecord,
    }
}

record! {
    /// What kind of work.
    enum WorkKindRecord for WorkKind { Training, Inference, Processing, Simulation, Other }
}

record! {
    /// How the directory reaches the work.
    enum CodeRecord for Code {
        Snapshot { skip: Vec<String>, keep: Vec<String> },
        Live,
    }
}

record! {
    /// Set-up of the environment.
    struct SetupRecord for Setup {
        modules: Vec<String>,
        conda: Option<String>,
        venv: Option<PathRecord>,
        shell: Option<String>,
    }
}

record! {
    /// The command.
    enum RunRecord for Run { Shell(text: String), Argv(words: Vec<String>) }
}

record! {
    /// One task per combination.
    struct ForEachRecord for ForEach { tasks: Vec<BTreeMap<String, String>> }
}

record! {
    /// The warning before the kill.
    struct StopRecord for Stop { signal: StopSignalRecord, grace: u64 }
}

record! {
    /// The signals that may warn a job.
    enum StopSignalRecord for StopSignal { Term, Int, Hup, Usr1, Usr2 }
}

record! {
    /// One entry of `data`.
    struct DataItemRecord for DataItem {
        from: DataFromRecord,
        name: String,
        stage: StageRecord,
        sha256: Option<String>,
    }
}

record! {
    /// Where a data item comes from.
    enum DataFromRecord for DataFrom { Path(path: PathRecord), Job { job: String, path: String } }
}

record! {
    /// How a data item reaches the work.
    enum StageRecord for Stage { Link, Copy, Unpack }
}

record! {
    /// How much, how long, by when.
    struct RequestRecord for Request {
        gpus: CountRecord,
        gpu_model: Vec<String>,
        gpu_memory: Option<u64>,
        gpu_ids: GpuIdsRecord,
        share: bool,
        cpus: Option<CountRecord>,
        memory: Option<MemoryRecord>,
        disk: Option<u64>,
        limit: LimitRecord,
        finish_by_ms: Option<i64>,
        start_after_ms: Option<i64>,
        after: Vec<String>,
        after_any: Vec<String>,
        priority: i16,
        at_once: Option<u32>,
        retry: RetryRecord,
    }
}

/// A number of devices or cores.
type Count = Amount<u32>;
/// An amount of memory.
type Memory = Amount<Bytes>;

record! {
    /// A number of devices or cores, or all.
    enum CountRecord for Count { Some(n: u32), All }
}

record! {
    /// An amount of memory, or all.
    enum MemoryRecord for Memory { Some(bytes: u64), All }
}

record! {
    /// How long the run may take.
    enum LimitRecord for Limit { For(ms: u64), UntilDone }
}

record! {
    /// What `CUDA_VISIBLE_DEVICES` holds.
    enum GpuIdsRecord for GpuIds { Index, Uuid }
}

record! {
    /// When a task is tried again.
    struct RetryRecord for Retry { times: u32, when: Vec<RetryOnRecord> }
}

record! {
    /// An end after which a task is tried again.
    enum RetryOnRecord for RetryOn { Lost, Limit, Code(code: i32) }
}

record! {
    /// One entry of `output`.
    struct OutputItemRecord for OutputItem { path: String, kind: OutputKindRecord, optional: bool }
}

record! {
    /// What kind of output.
    enum OutputKindRecord for OutputKind { Model, Results, Files, Report }
}

record! {
    /// When to notify.
    enum NotifyOnRecord for NotifyOn { End, Fail, Late }
}
