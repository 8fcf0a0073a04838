//! A spec in the job file's own words: for `show --json`, receipts and `job.yaml`.

use super::is_secret_name;
use crate::model::{
    Amount, Bytes, Code, DataFrom, DataItem, GpuIds, JobSpec, Limit, NotifyOn, OutputItem, OutputKind,
    Request, Retry, RetryOn, Run, Span, Stage, Stop, StopSignal, Work, WorkKind,
};
use serde_json::{Map, Value, json};

/// The spec in the job file's own words, defaults left out, secrets in `env` masked.
pub fn to_json(spec: &JobSpec) -> Value {
    let mut out = Map::new();
    out.insert("name".into(), json!(spec.name));
    put(&mut out, "project", spec.project.as_ref().map(|text| json!(text)));
    out.insert("work".into(), work(&spec.work));
    out.insert("data".into(), Value::Array(spec.data.iter().map(data).collect()));
    out.insert("request".into(), request(&spec.request));
    out.insert("output".into(), Value::Array(spec.output.iter().map(output).collect()));
    put(&mut out, "output_to", spec.output_to.as_ref().map(|path| json!(path.to_string_lossy())));
    let notify: Vec<&str> = spec
        .notify
        .iter()
        .map(|on| match on {
            NotifyOn::End => "end",
            NotifyOn::Fail => "fail",
            NotifyOn::Late => "late",
        })
        .collect();
    put(&mut out, "notify", (!notify.is_empty()).then(|| json!(notify)));
    Value::Object(out)
}

fn put(out: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        out.insert(name.to_owned(), value);
    }
}

fn work(work: &Work) -> Value {
    let mut out = Map::new();
    let kind = match work.kind {
        WorkKind::Training => "training",
        WorkKind::Inference => "inference",
        WorkKind::Processing => "processing",
        WorkKind::Simulation => "simulation",
        WorkKind::Other => "other",
    };
    out.insert("kind".into(), json!(kind));
    put(&mut out, "in", work.dir.as_ref().map(|path| json!(path.to_string_lossy())));
    let code = match &work.code {
        Code::Live => Some(json!("live")),
        Code::Snapshot { skip, keep } => {
            (!skip.is_empty() || !keep.is_empty()).then(|| json!({"skip": skip, "keep": keep}))
        }
    };
    put(&mut out, "code", code);
    let mut setup = Map::new();
    put(&mut setup, "modules", (!work.setup.modules.is_empty()).then(|| json!(work.setup.modules)));
    put(&mut setup, "conda", work.setup.conda.as_ref().map(|text| json!(text)));
    put(&mut setup, "venv", work.setup.venv.as_ref().map(|path| json!(path.to_string_lossy())));
    put(&mut setup, "shell", work.setup.shell.as_ref().map(|text| json!(text)));
    put(&mut out, "setup", (!setup.is_empty()).then_some(Value::Object(setup)));
    out.insert(
        "run".into(),
        match &work.run {
            Run::Shell(text) => json!(text),
            Run::Argv(words) => json!(words),
        },
    );
    let env: Map<String, Value> = work
        .env
        .iter()
        .map(|(name, value)| {
            let hidden = is_secret_name(name) && !value.is_empty();
            (name.clone(), json!(if hidden { "•••" } else { value }))
        })
        .collect();
    put(&mut out, "env", (!env.is_empty()).then_some(Value::Object(env)));
    put(&mut out, "env_file", work.env_file.as_ref().map(|path| json!(path.to_string_lossy())));
    put(&mut out, "for_each", work.for_each.as_ref().map(|each| json!({"rows": each.tasks})));
    put(&mut out, "checkpoint", work.checkpoint.as_ref().map(|text| json!(text)));
    put(&mut out, "stop", (work.stop != Stop::default()).then(|| stop(work.stop)));
    Value::Object(out)
}

fn stop(stop: Stop) -> Value {
    let signal = match stop.signal {
        StopSignal::Term => "TERM",
        StopSignal::Int => "INT",
        StopSignal::Hup => "HUP",
        StopSignal::Usr1 => "USR1",
        StopSignal::Usr2 => "USR2",
    };
    json!({"signal": signal, "grace": span(stop.grace)})
}

fn data(item: &DataItem) -> Value {
    let (from, own) = match &item.from {
        DataFrom::Path(path) => (
            path.to_string_lossy().into_owned(),
            path.file_name().map(|name| name.to_string_lossy().into_owned()),
        ),
        DataFrom::Job { job, path } if path.is_empty() => (format!("job:{job}"), Some(job.clone())),
        DataFrom::Job { job, path } => {
            (format!("job:{job}/{path}"), path.rsplit('/').next().map(ToOwned::to_owned))
        }
    };
    if own.as_ref() == Some(&item.name) && item.stage == Stage::Link && item.sha256.is_none() {
        return json!(from);
    }
    let mut out = Map::new();
    out.insert("from".into(), json!(from));
    out.insert("as".into(), json!(item.name));
    let stage = match item.stage {
        Stage::Link => None,
        Stage::Copy => Some(json!("copy")),
        Stage::Unpack => Some(json!("unpack")),
    };
    put(&mut out, "stage", stage);
    put(&mut out, "sha256", item.sha256.as_ref().map(|text| json!(text)));
    Value::Object(out)
}

fn output(item: &OutputItem) -> Value {
    if item.kind == OutputKind::default() && !item.optional {
        return json!(item.path);
    }
    let kind = match item.kind {
        OutputKind::Model => "model",
        OutputKind::Results => "results",
        OutputKind::Files => "files",
        OutputKind::Report => "report",
    };
    json!({"path": item.path, "kind": kind, "optional": item.optional})
}

fn request(request: &Request) -> Value {
    let mut out = Map::new();
    out.insert("gpus".into(), amount(request.gpus, |n| json!(n)));
    put(&mut out, "gpu_model", (!request.gpu_model.is_empty()).then(|| json!(request.gpu_model)));
    put(&mut out, "gpu_memory", request.gpu_memory.map(|size| json!(bytes(size))));
    put(&mut out, "gpu_ids", (request.gpu_ids == GpuIds::Uuid).then(|| json!("uuid")));
    put(&mut out, "share", request.share.then_some(json!(true)));
    put(&mut out, "cpus", request.cpus.map(|cpus| amount(cpus, |n| json!(n))));
    put(&mut out, "memory", request.memory.map(|memory| amount(memory, |size| json!(bytes(size)))));
    put(&mut out, "disk", request.disk.map(|size| json!(bytes(size))));
    let limit = match request.limit {
        Limit::For(limit) => span(limit),
        Limit::UntilDone => "until_done".to_owned(),
    };
    out.insert("for".into(), json!(limit));
    put(&mut out, "finish_by", request.finish_by_ms.and_then(moment));
    put(&mut out, "start_after", request.start_after_ms.and_then(moment));
    put(&mut out, "after", (!request.after.is_empty()).then(|| json!(request.after)));
    put(&mut out, "after_any", (!request.after_any.is_empty()).then(|| json!(request.after_any)));
    let priority = request.priority.get();
    put(&mut out, "priority", (priority != 0).then(|| json!(priority)));
    put(&mut out, "at_once", request.at_once.map(|n| json!(n)));
    let retry = &request.retry;
    put(
        &mut out,
        "retry",
        (*retry != Retry::default()).then(|| json!({"times": retry.times, "when": when(&retry.when)})),
    );
    Value::Object(out)
}

fn amount<T>(amount: Amount<T>, show: impl Fn(T) -> Value) -> Value {
    match amount {
        Amount::Some(value) => show(value),
        Amount::All => json!("all"),
    }
}

fn when(list: &[RetryOn]) -> Vec<Value> {
    list.iter()
        .map(|on| match on {
            RetryOn::Lost => json!("lost"),
            RetryOn::Limit => json!("limit"),
            RetryOn::Code(code) => json!(code),
        })
        .collect()
}

fn moment(wall_ms: i64) -> Option<Value> {
    jiff::Timestamp::from_millisecond(wall_ms).ok().map(|at| json!(at.to_string()))
}

/// A length as a job file has it: `1h30m`.
pub(super) fn span(span: Span) -> String {
    let s = span.as_secs();
    let parts = [(s / 86400, 'd'), (s % 86400 / 3600, 'h'), (s % 3600 / 60, 'm'), (s % 60, 's')];
    let parts: Vec<String> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect();
    let text = parts.concat();
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// A size as a job file has it, exact: `32GiB`.
fn bytes(size: Bytes) -> String {
    let units = [(1_u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];
    let (factor, unit) =
        units.into_iter().find(|(factor, _)| size.0.is_multiple_of(*factor)).unwrap_or((1, "B"));
    format!("{}{unit}", size.0 / factor)
}
