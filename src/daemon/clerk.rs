//! The thread that writes what people read: job folders, answers, receipts; and that removes scratch. Off the path of
//! every launch, in the order in which it is told.

use super::message::{Mailbox, Message};
use crate::files;
use crate::sched::Input;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

/// Orders that may wait.
const BACKLOG: usize = 16_384;

/// One thing to write or remove.
pub(super) enum Order {
    /// A job's folder: `job.yaml`, `answer.txt`.
    Folder {
        /// The folder.
        dir: PathBuf,
        /// The job file's text; `None` leaves what is there.
        source: Option<String>,
        /// The answer.
        answer: String,
        /// Links `log.txt` and `output` to this attempt.
        attempt: u32,
    },
    /// A job's folder links `log.txt` and `output` to a further attempt.
    Links {
        /// The folder.
        dir: PathBuf,
        /// The attempt.
        attempt: u32,
    },
    /// Files of a job that is done.
    Receipt {
        /// The folder.
        dir: PathBuf,
        /// `receipt.json`.
        json: String,
        /// `receipt.md`.
        markdown: String,
        /// The attempt whose log and output the folder's links name.
        attempt: u32,
    },
    /// Trees to remove.
    Remove(Vec<PathBuf>),
    /// Trees to remove, then this input.
    Release {
        /// Trees.
        remove: Vec<PathBuf>,
        /// What to tell the core then.
        then: Box<Input>,
    },
}

/// Hands orders to the thread.
#[derive(Debug, Clone)]
pub(super) struct Clerk(mpsc::SyncSender<Order>);

impl Clerk {
    /// Starts the thread. It ends when its clerks are gone and all orders are carried out.
    pub(super) fn spawn(mailbox: Mailbox) -> std::io::Result<(Self, std::thread::JoinHandle<()>)> {
        let (sender, orders) = mpsc::sync_channel(BACKLOG);
        let thread =
            std::thread::Builder::new().name("clerk".to_owned()).stack_size(512 << 10).spawn(move || {
                for order in orders {
                    carry_out(order, &mailbox);
                }
            })?;
        Ok((Self(sender), thread))
    }

    /// Gives an order. A thread that is gone takes none: what it writes is written again at the next start.
    pub(super) fn order(&self, order: Order) {
        drop(self.0.send(order));
    }
}

fn carry_out(order: Order, mailbox: &Mailbox) {
    match order {
        Order::Folder { dir, source, answer, attempt } => {
            warn(&dir, "write the folder of a job", folder(&dir, source.as_deref(), &answer, attempt));
        }
        Order::Links { dir, attempt } => {
            warn(&dir, "link the log and the output of a job", links(&dir, attempt));
        }
        Order::Receipt { dir, json, markdown, attempt } => {
            warn(&dir, "write a receipt", receipt(&dir, &json, &markdown, attempt));
        }
        Order::Remove(trees) => remove(&trees),
        Order::Release { remove: trees, then } => {
            remove(&trees);
            mailbox.post(Message::Input(*then));
        }
    }
}

fn remove(trees: &[PathBuf]) {
    for tree in trees {
        if let Err(error) = files::remove_tree(tree) {
            tracing::warn!(path = %tree.display(), error = %error, "cannot remove scratch");
        }
    }
}

fn warn(path: &Path, doing: &str, result: std::io::Result<()>) {
    if let Err(error) = result {
        tracing::warn!(path = %path.display(), %error, "cannot {doing}");
    }
}

fn folder(dir: &Path, source: Option<&str>, answer: &str, attempt: u32) -> std::io::Result<()> {
    private_dir(dir)?;
    if let Some(source) = source {
        let file = dir.join("job.yaml");
        if !file.exists() {
            write(&file, source)?;
        }
    }
    if !dir.join("answer.txt").exists() {
        write(&dir.join("answer.txt"), answer)?;
    }
    links(dir, attempt)
}

fn receipt(dir: &Path, json: &str, markdown: &str, attempt: u32) -> std::io::Result<()> {
    private_dir(dir)?;
    write(&dir.join("receipt.json"), json)?;
    write(&dir.join("receipt.md"), markdown)?;
    links(dir, attempt)
}

/// `log.txt` and `output` of the job's folder name the current attempt's.
fn links(dir: &Path, attempt: u32) -> std::io::Result<()> {
    for name in ["log.txt", "output"] {
        let target = PathBuf::from("attempts").join(attempt.to_string()).join(name);
        let link = dir.join(name);
        if std::fs::read_link(&link).is_ok_and(|found| found == target) {
            continue;
        }
        let fresh = dir.join(format!(".{name}.new"));
        if let Err(error) = std::fs::remove_file(&fresh)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(error);
        }
        std::os::unix::fs::symlink(&target, &fresh)?;
        std::fs::rename(&fresh, &link)?;
    }
    Ok(())
}

/// Writes under a temporary name, then renames: a reader sees the old text or the new one.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let fresh = path.with_file_name(name);
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    std::fs::rename(&fresh, path)
}

/// Makes a directory that only its owner reads, with what leads to it.
pub(super) fn private_dir(dir: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}
