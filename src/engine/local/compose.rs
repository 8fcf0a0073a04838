//! From the core's [`Launch`] to the supervisor's [`LaunchSpec`]: where everything is on this machine.

use super::LocalConfig;
use super::ports;
use crate::cgroup::Limits;
use crate::model::{Code, Collect, DataFrom, OutputItem, Run, TaskIx};
use crate::sched::Launch;
use crate::supervisor::spec::{DataLink, Device, Devices, Environment, LaunchSpec, WorkDir};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// All that a supervisor has to know. `account` is `HOME` and the like, `port` the first of the lease's block.
pub(super) fn compose(
    launch: &Launch,
    config: &LocalConfig,
    account: &BTreeMap<String, String>,
    port: u16,
) -> LaunchSpec {
    let spec = &launch.spec;
    let run_dir = config.paths.run(launch.lease);
    let attempt_dir = config.paths.attempt(&launch.folder, launch.attempt.0);
    let output_dir = attempt_dir.join("output");
    let work = work_dir(launch, config, &run_dir);
    let values = task_values(launch);
    let mut job = values.clone();
    job.extend(spec.work.env.clone());
    LaunchSpec {
        lease: launch.lease,
        token: launch.token.clone(),
        job: launch.job,
        task: launch.task,
        attempt: launch.attempt,
        run: run(&spec.work.run, &values),
        setup: spec.work.setup.clone(),
        environment: Environment {
            base: config.environment.iter().chain(account).map(|(k, v)| (k.clone(), v.clone())).collect(),
            file: spec.work.env_file.clone(),
            job,
            fixed: fixed(launch, config, work.path(), port),
        },
        data: data(launch, config),
        log: attempt_dir.join("log.txt"),
        log_bound: config.log_bound,
        limit: launch.limit,
        limits: limits(launch),
        stop: spec.work.stop,
        devices: Devices {
            held: launch
                .devices
                .iter()
                .map(|device| Device { uuid: device.uuid.clone(), index: device.index, real: device.real })
                .collect(),
            ids: spec.request.gpu_ids,
            lock_dir: config.lock_dir.clone(),
            holder: format!("{} {}", launch.job, spec.name),
            driver_environment: config.driver_environment.clone(),
        },
        collect: Collect {
            items: spec.output.iter().map(|item| filled(item, &values)).collect(),
            work_dir: work.path().clone(),
            output_dir: output_dir.clone(),
            live: matches!(work, WorkDir::Live(_)),
            newer_than_ns: 0,
            output_to: spec.output_to.clone(),
            job: launch.job.to_string(),
            partial: true,
            own: config.paths.own_trees(),
        },
        collector: config
            .collector
            .clone()
            .unwrap_or_else(|| vec!["/proc/self/exe".to_owned(), "collect".to_owned()]),
        run_dir,
        work,
        output_dir,
    }
}

fn work_dir(launch: &Launch, config: &LocalConfig, run_dir: &Path) -> WorkDir {
    match (&launch.spec.work.dir, &launch.spec.work.code) {
        (Some(dir), Code::Live) => WorkDir::Live(dir.clone()),
        (Some(_), Code::Snapshot { .. }) if launch.prepared => {
            WorkDir::Prepared(config.paths.prepared(launch.job, launch.task.0, launch.attempt.0))
        }
        (Some(_), Code::Snapshot { .. }) | (None, _) => {
            WorkDir::Fresh(run_dir.join(format!("work-{}-{}", launch.task, launch.attempt)))
        }
    }
}

/// What was asked for is enforced; what a job gets by default is only counted.
fn limits(launch: &Launch) -> Limits {
    let request = &launch.spec.request;
    Limits {
        memory: request.memory.is_some().then_some(launch.memory),
        cpus: request.cpus.is_some().then_some(launch.cores),
        share: launch.cores,
    }
}

/// The `for_each` values of the task.
fn task_values(launch: &Launch) -> BTreeMap<String, String> {
    let TaskIx(index) = launch.task;
    let tasks = launch.spec.work.for_each.as_ref().map(|each| &each.tasks);
    tasks.and_then(|tasks| tasks.get(index as usize)).cloned().unwrap_or_default()
}

/// Values go into arguments, never into shell text.
fn run(run: &Run, values: &BTreeMap<String, String>) -> Run {
    match run {
        Run::Shell(text) => Run::Shell(text.clone()),
        Run::Argv(argv) => Run::Argv(argv.iter().map(|word| fill(word, values)).collect()),
    }
}

fn filled(item: &OutputItem, values: &BTreeMap<String, String>) -> OutputItem {
    OutputItem { path: fill(&item.path, values), ..item.clone() }
}

/// Replaces `{key}` for declared keys only, in one pass: a value is never looked through again.
fn fill(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        let value = from.find('}').and_then(|close| Some((close, values.get(&from[1..close])?)));
        if let Some((close, value)) = value {
            out.push_str(value);
            rest = &from[close + 1..];
        } else {
            out.push('{');
            rest = &from[1..];
        }
    }
    out + rest
}

fn data(launch: &Launch, config: &LocalConfig) -> Vec<DataLink> {
    let sources = launch.sources.iter().chain(std::iter::repeat(&None));
    launch
        .spec
        .data
        .iter()
        .zip(sources)
        .map(|(item, source)| {
            let target = match (&item.from, source) {
                (DataFrom::Path(path), _) => path.clone(),
                (DataFrom::Job { path, .. }, Some(output)) => {
                    let output = config.paths.jobs().join(output);
                    if path.is_empty() { output } else { output.join(path) }
                }
                // Unresolved: the supervisor says that it is not there.
                (DataFrom::Job { job, path }, None) => PathBuf::from(format!("job:{job}/{path}")),
            };
            DataLink { target, name: item.name.clone() }
        })
        .collect()
}

/// What Overnight says; the supervisor adds what only it knows.
fn fixed(launch: &Launch, config: &LocalConfig, work: &Path, port: u16) -> BTreeMap<String, String> {
    let spec = &launch.spec;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let has_tasks = spec.work.for_each.as_ref().is_some_and(|each| each.tasks.len() > 1);
    let code = if has_tasks && matches!(spec.work.code, Code::Snapshot { .. }) && spec.work.dir.is_some() {
        text(&config.paths.snapshot(launch.job))
    } else {
        text(work)
    };
    let mut all: BTreeMap<String, String> = [
        ("OVERNIGHT_JOB", launch.job.to_string()),
        ("OVERNIGHT_TASK", launch.task.to_string()),
        ("OVERNIGHT_ATTEMPT", launch.attempt.to_string()),
        ("OVERNIGHT_CPUS", launch.cores.to_string()),
        ("OVERNIGHT_CODE", code),
        ("OVERNIGHT_PORT", port.to_string()),
        ("MASTER_ADDR", "127.0.0.1".to_owned()),
        ("MASTER_PORT", (port + ports::MASTER).to_string()),
        ("PYTHONUNBUFFERED", "1".to_owned()),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect();
    if let Some(finish_by_ms) = launch.finish_by_ms {
        all.insert("OVERNIGHT_FINISH_BY".to_owned(), (finish_by_ms / 1000).to_string());
    }
    if spec.work.checkpoint.is_some() {
        let kept = config.paths.jobs().join(&launch.folder).join("checkpoint");
        all.insert("OVERNIGHT_CHECKPOINT".to_owned(), text(&kept));
    }
    // A default that the job may replace: it is about its own output, not about the lease.
    for key in ["PYTHONUNBUFFERED", "MASTER_ADDR", "MASTER_PORT"] {
        if spec.work.env.contains_key(key) {
            all.remove(key);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_declared_keys_are_replaced_and_a_value_is_not_looked_through_again() {
        let values =
            BTreeMap::from([("lr".to_owned(), "{seed}".to_owned()), ("seed".to_owned(), "5".to_owned())]);
        assert_eq!(fill("a-{lr}-{seed}-{other}-{", &values), "a-{seed}-5-{other}-{");
        assert_eq!(fill("{{seed}}", &values), "{5}");
    }
}
