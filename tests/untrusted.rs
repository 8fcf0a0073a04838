//! What strangers write: text that would act on a terminal, paths that lead elsewhere, clients that never end. Through the
//! binary where there is a way, and against trees that somebody changes meanwhile.

#![expect(clippy::unwrap_used, reason = "an unwrap is how a test helper fails")]

#[path = "untrusted/clients.rs"]
mod clients;
#[path = "cli_shapes/fixtures.rs"]
mod fixtures;
#[path = "untrusted/paths.rs"]
mod paths;
#[path = "untrusted/races.rs"]
mod races;
#[path = "cli_shapes/scheduler.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod scheduler;
#[path = "support/fixtures.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod screens;
#[path = "support/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod support;
#[path = "untrusted/text.rs"]
mod text;

use serde_json::Value;
use std::time::Duration;
use support::sandbox::{Sandbox, eventually};

/// Long enough for a loaded machine; only reached when something is wrong.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Said past the capture of output, which would hide it.
fn skipped(test: &str, why: &str) {
    std::io::Write::write_all(&mut std::io::stderr(), format!("SKIPPED {test}: {why}\n").as_bytes()).unwrap();
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// One job in full, by name. Asked again where the state's disk is slow just then.
fn shown(sandbox: &Sandbox, job: &str) -> Value {
    let run = eventually(&format!("an answer about {job}"), || {
        let run = sandbox.run(&["show", job, "--json"]);
        (run.code == 0).then_some(run)
    });
    run.json()
}

/// A CPU-only job that runs `run`; `more` are further lines of its sections `data` and `output`.
fn job(run: &str, data: &str, output: &str) -> String {
    let run = run.replace('\n', "\n    ");
    format!(
        "work:\n  run: |\n    {run}\ndata: {data}\nrequest: {{gpus: 0, cpus: 1, memory: 1GiB, for: 5m}}\noutput: {output}\n"
    )
}
