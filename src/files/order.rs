//! The hidden verb `overnight collect PATH`: the order comes as JSON on standard input, the answer is written to PATH. How
//! far it is, in percent, is a line on standard output, once a second.

use super::collect::collect;
use super::error::{CollectError, FilesError};
use super::tree;
use crate::model::{Collect, Collected, clean};
use std::error::Error;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// No space or an I/O error: the same order may succeed later. `EX_TEMPFAIL` of sysexits.
const TRY_AGAIN: u8 = 75;

/// Collects as ordered. The exit code: 0 done, 75 try again when the disk is back, 1 with a message for all else.
pub fn collect_main() -> u8 {
    // Whatever runs on the devices meanwhile comes first.
    let _ = rustix::process::nice(10);
    let Some(answer) = std::env::args_os().nth(2).map(PathBuf::from) else {
        complain("usage: overnight collect PATH < ORDER");
        return 1;
    };
    match obey(&answer) {
        Ok(()) => 0,
        Err(error) => {
            complain(&chain(&error));
            match error {
                CollectError::Files(error) if error.is_worth_another_try() => TRY_AGAIN,
                CollectError::Files(_) | CollectError::Order { .. } => 1,
            }
        }
    }
}

fn obey(answer: &Path) -> Result<(), CollectError> {
    let mut order = Vec::new();
    std::io::stdin().read_to_end(&mut order).map_err(FilesError::new("read the order from", "-"))?;
    let order: Collect = serde_json::from_slice(&order).map_err(|source| CollectError::Order { source })?;
    let mut told = std::io::stdout().lock();
    // Whoever listened may have gone: the output is brought home all the same.
    let mut tell = |percent: u8| drop(writeln!(told, "{percent}").and_then(|()| told.flush()));
    let collected = collect(&order, &mut tell)?;
    write_durably(answer, &collected)
}

/// The answer appears whole or not at all, and is on disk once it has appeared.
fn write_durably(path: &Path, collected: &Collected) -> Result<(), CollectError> {
    let json = serde_json::to_vec(collected).map_err(|source| CollectError::Order { source })?;
    let new = super::snapshot::partial_name(path);
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .map_err(FilesError::new("make", &new))?;
    file.write_all(&json).and_then(|()| file.sync_all()).map_err(FilesError::new("write", &new))?;
    Ok(tree::rename_durably(&new, path)?)
}

/// Standard error may be closed; then there is nobody to tell.
fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "overnight collect: {}", clean(text));
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text.push_str(": ");
        text.push_str(&error.to_string());
        next = error.source();
    }
    text
}
