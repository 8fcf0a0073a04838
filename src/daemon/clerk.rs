//! The thread that writes what people read: job folders, answers, receipts; and that removes scratch. Off the path of
//! every launch, in the order in which it is told.

use super::message::{Mailbox, Message};
use crate::beneath;
use crate::files;
use crate::model::clean;
use crate::sched::Input;
use rustix::fs::{AtFlags, Mode};
use std::os::unix::fs::DirBuilderExt;
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
    /// Starts the thread. It ends when its clerks are gone and all orders are carried out. `own`: the scheduler's
    /// trees, below which no link is followed.
    pub(super) fn spawn(
        mailbox: Mailbox,
        own: Vec<PathBuf>,
    ) -> std::io::Result<(Self, std::thread::JoinHandle<()>)> {
        let (sender, orders) = mpsc::sync_channel(BACKLOG);
        let thread =
            std::thread::Builder::new().name("clerk".to_owned()).stack_size(512 << 10).spawn(move || {
                for order in orders {
                    carry_out(order, &mailbox, &own);
                }
            })?;
        Ok((Self(sender), thread))
    }

    /// Gives an order. A thread that is gone takes none: what it writes is written again at the next start.
    pub(super) fn order(&self, order: Order) {
        drop(self.0.send(order));
    }
}

fn carry_out(order: Order, mailbox: &Mailbox, own: &[PathBuf]) {
    match order {
        Order::Folder { dir, source, answer, attempt } => {
            let made =
                Folder::open(&dir, own).and_then(|to| folder(&to, source.as_deref(), &answer, attempt));
            warn(&dir, "write the folder of a job", made);
        }
        Order::Links { dir, attempt } => {
            let made = Folder::open(&dir, own).and_then(|to| to.links(attempt));
            warn(&dir, "link the log and the output of a job", made);
        }
        Order::Receipt { dir, json, markdown, attempt } => {
            let made = Folder::open(&dir, own).and_then(|to| receipt(&to, &json, &markdown, attempt));
            warn(&dir, "write a receipt", made);
        }
        Order::Remove(trees) => remove(&trees, own),
        Order::Release { remove: trees, then } => {
            remove(&trees, own);
            mailbox.post(Message::Input(*then));
        }
    }
}

fn remove(trees: &[PathBuf], own: &[PathBuf]) {
    for tree in trees {
        if let Err(error) = files::remove_own(tree, own) {
            tracing::warn!(path = %tree.display(), error = %error, "cannot remove scratch");
        }
    }
}

fn warn(path: &Path, doing: &str, result: std::io::Result<()>) {
    if let Err(error) = result {
        tracing::warn!(path = %path.display(), %error, "cannot {doing}");
    }
}

fn folder(to: &Folder, source: Option<&str>, answer: &str, attempt: u32) -> std::io::Result<()> {
    if let Some(source) = source.filter(|_| !to.has("job.yaml")) {
        to.write("job.yaml", source)?;
    }
    if !to.has("answer.txt") {
        to.write("answer.txt", &clean(answer))?;
    }
    to.links(attempt)
}

fn receipt(to: &Folder, json: &str, markdown: &str, attempt: u32) -> std::io::Result<()> {
    to.write("receipt.json", json)?;
    to.write("receipt.md", &clean(markdown))?;
    to.links(attempt)
}

/// A job's folder, open: what the work puts in its place, or in the place of a file, is neither followed nor written to.
struct Folder(beneath::Dir);

impl Folder {
    /// Opens it; makes it if it is missing.
    fn open(dir: &Path, own: &[PathBuf]) -> std::io::Result<Self> {
        match beneath::own_place(dir, own) {
            Err(rustix::io::Errno::NOENT) => private_dir(dir)?,
            other => return Ok(Self(other?)),
        }
        Ok(Self(beneath::own_place(dir, own)?))
    }

    fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// A reader sees the old text or the new one.
    fn write(&self, name: &str, text: &str) -> std::io::Result<()> {
        beneath::replace(&self.0, name.as_ref(), text.as_bytes(), Mode::RUSR | Mode::WUSR)
    }

    /// `log.txt` and `output` name the current attempt's.
    fn links(&self, attempt: u32) -> std::io::Result<()> {
        for name in ["log.txt", "output"] {
            let target = format!("attempts/{attempt}/{name}");
            let found = rustix::fs::readlinkat(&self.0, name, Vec::new());
            if found.is_ok_and(|found| found.as_bytes() == target.as_bytes()) {
                continue;
            }
            let fresh = format!(".{name}.new");
            match rustix::fs::unlinkat(&self.0, &fresh, AtFlags::empty()) {
                Ok(()) | Err(rustix::io::Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
            rustix::fs::symlinkat(&target, &self.0, &fresh)?;
            rustix::fs::renameat(&self.0, &fresh, &self.0, name)?;
        }
        Ok(())
    }
}

/// Makes a directory that only its owner reads, with what leads to it.
pub(super) fn private_dir(dir: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}
