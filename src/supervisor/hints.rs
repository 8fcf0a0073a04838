//! What the end of a log and an exit code usually mean, in words for the receipt. Pure.

use crate::model::RunEnd;

/// How much of the log's end is looked at.
pub(super) const LOOK_BACK: usize = 64 << 10;

/// What is printed, and what to say about it.
const SIGNS: [(&[&str], &str); 8] = [
    (
        &[
            "CUDA out of memory",
            "CUDA error: out of memory",
            "CUDA_ERROR_OUT_OF_MEMORY",
            "cudaErrorMemoryAllocation",
            "RESOURCE_EXHAUSTED: Out of memory",
        ],
        "the GPU's memory was not enough: ask for more with request.gpu_memory, or use a smaller batch",
    ),
    (
        &["unbound variable"],
        "a shell variable was not set: `set -u` in run stops there; write ${NAME:-} where a variable may be missing",
    ),
    (&["No space left on device", "Disk quota exceeded"], "a disk was full during the run"),
    (
        &["Address already in use", "EADDRINUSE"],
        "a port was taken: use $MASTER_PORT or $OVERNIGHT_PORT instead of a fixed one",
    ),
    (
        &["CondaError: Run 'conda init'", "conda: command not found", "module: command not found"],
        "conda and module are not set up in a batch shell: name them in work.setup",
    ),
    (
        &["No CUDA GPUs are available", "no CUDA-capable device is detected"],
        "the work found no GPU: request.gpus says how many it gets, and CUDA_VISIBLE_DEVICES must be left alone",
    ),
    (
        &["ModuleNotFoundError: No module named"],
        "a Python module is missing: name the environment in work.setup (conda or venv)",
    ),
    (&["overnight: setup:"], "the environment named in work.setup could not be set up; the log says why"),
];

/// Hints about an end, given the end of the log.
pub(super) fn hints(end: &RunEnd, log: &[u8]) -> Vec<String> {
    let mut notes = Vec::new();
    match end {
        RunEnd::Exited { code: 0 } | RunEnd::Cancelled { .. } | RunEnd::Lost { .. } => return notes,
        RunEnd::Exited { code: 127 } => notes.push(
            "exit 127: a command was not found; PATH is the one of the scheduler's config, not of your shell"
                .to_owned(),
        ),
        RunEnd::Exited { code: 126 } => notes.push(
            "exit 126: a command was found but cannot be executed: chmod +x, or name its interpreter"
                .to_owned(),
        ),
        RunEnd::OutOfMemory { certain: true } => notes.push(
            "the kernel killed a process of the work for memory: ask for more with request.memory, or use less"
                .to_owned(),
        ),
        RunEnd::Exited { .. }
        | RunEnd::Signalled { .. }
        | RunEnd::OutOfMemory { certain: false }
        | RunEnd::LimitReached
        | RunEnd::NotStarted { .. } => {}
    }
    let text = String::from_utf8_lossy(log);
    for (signs, hint) in SIGNS {
        if signs.iter().any(|sign| text.contains(sign)) {
            notes.push(hint.to_owned());
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_explained_and_a_success_is_left_alone() {
        let log = b"x\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n";
        assert_eq!(hints(&RunEnd::Exited { code: 1 }, log).len(), 1);
        assert!(hints(&RunEnd::Exited { code: 1 }, log)[0].contains("gpu_memory"));
        assert!(hints(&RunEnd::Exited { code: 0 }, log).is_empty());
        assert!(hints(&RunEnd::Exited { code: 127 }, b"")[0].contains("not found"));
        assert!(hints(&RunEnd::Exited { code: 126 }, b"")[0].contains("chmod"));
        assert!(hints(&RunEnd::Exited { code: 1 }, b"line 3: X: unbound variable")[0].contains("set -u"));
        assert!(hints(&RunEnd::Exited { code: 3 }, b"fine").is_empty());
    }
}
