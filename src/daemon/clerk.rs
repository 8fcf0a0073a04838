//! The thread that writes what people read: job folders, answers, receipts, reasons beside refused files; that takes
//! accepted files out of the inbox; and that removes scratch. Off the path of every launch, in the order in which it is
//! told.
//!
//! What a full or broken disk does not take is kept, and done as soon as it does. What concerns the same folder or the
//! same name waits behind it; everything else goes on.

use super::message::{Mailbox, Message};
use crate::beneath;
use crate::clock;
use crate::files;
use crate::inbox::{Inbox, InboxError};
use crate::model::{DropIdent, Span, clean};
use crate::sched::Input;
use rustix::fs::{AtFlags, FileType, Mode};
use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Orders that may wait.
const BACKLOG: usize = 16_384;
/// Between two tries of what the disk did not take.
const AGAIN: Span = Span::secs(2);
/// Bytes of text that are kept for a disk to come back; what is beyond is written at the next start.
const KEPT_BYTES: usize = 64 << 20;

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
    /// A job's folder after an edit.
    Rewrite {
        /// The folder.
        dir: PathBuf,
        /// What it was, where it has another name now.
        was: Option<PathBuf>,
        /// The job file's text.
        source: String,
        /// The answer.
        answer: String,
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
    /// An accepted drop goes out of the inbox, and the reason beside it.
    Take {
        /// Its name there.
        name: String,
        /// What it must still be.
        ident: DropIdent,
        /// Where a folder goes; `None` for a file.
        folder_to: Option<PathBuf>,
    },
    /// The reason beside a refused file; `None`: there is none any more.
    Why {
        /// The file of the reason.
        path: PathBuf,
        /// The reason.
        text: Option<String>,
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

/// Hands orders to the thread. Boxed: the channel's room is there from the start.
#[derive(Debug, Clone)]
pub(super) struct Clerk(mpsc::SyncSender<Box<Order>>);

impl Clerk {
    /// Starts the thread. It ends when its clerks are gone and all orders are carried out. `own`: the scheduler's
    /// trees, below which no link is followed.
    pub(super) fn spawn(
        mailbox: Mailbox,
        inbox: Arc<Inbox>,
        own: Vec<PathBuf>,
    ) -> io::Result<(Self, std::thread::JoinHandle<()>)> {
        let (sender, orders) = mpsc::sync_channel(BACKLOG);
        let desk = Desk { mailbox, inbox, own, kept: VecDeque::new(), again_at: Span(0), said: None };
        let thread = std::thread::Builder::new()
            .name("clerk".to_owned())
            .stack_size(512 << 10)
            .spawn(move || desk.run(&orders))?;
        Ok((Self(sender), thread))
    }

    /// Gives an order. A thread that is gone takes none: what it writes is written again at the next start.
    pub(super) fn order(&self, order: Order) {
        drop(self.0.send(Box::new(order)));
    }
}

impl Order {
    /// What it is about: orders about the same thing keep their order.
    fn about(&self) -> &Path {
        match self {
            Self::Folder { dir, .. }
            | Self::Rewrite { dir, .. }
            | Self::Links { dir, .. }
            | Self::Receipt { dir, .. } => dir,
            Self::Take { name, .. } => Path::new(name),
            Self::Why { path, .. } => path,
            Self::Remove(_) | Self::Release { .. } => Path::new(""),
        }
    }

    const fn doing(&self) -> &'static str {
        match self {
            Self::Folder { .. } | Self::Rewrite { .. } => "write the folder of a job",
            Self::Links { .. } => "link the log and the output of a job",
            Self::Receipt { .. } => "write a receipt",
            Self::Take { .. } => "take an accepted drop out of the inbox",
            Self::Why { .. } => "say why a file was refused",
            Self::Remove(_) | Self::Release { .. } => "remove scratch",
        }
    }

    const fn bytes(&self) -> usize {
        match self {
            Self::Folder { source: Some(source), answer, .. } | Self::Rewrite { source, answer, .. } => {
                source.len() + answer.len()
            }
            Self::Receipt { json, markdown, .. } => json.len() + markdown.len(),
            Self::Why { text: Some(text), .. } => text.len(),
            _ => 0,
        }
    }
}

struct Desk {
    mailbox: Mailbox,
    inbox: Arc<Inbox>,
    own: Vec<PathBuf>,
    /// What the disk did not take, in the order in which it was told.
    kept: VecDeque<Order>,
    again_at: Span,
    /// What the loop was told of it.
    said: Option<String>,
}

impl Desk {
    fn run(mut self, orders: &mpsc::Receiver<Box<Order>>) {
        loop {
            let next = if self.kept.is_empty() {
                orders.recv().ok()
            } else {
                let left = self.again_at.0.saturating_sub(clock::monotonic().0);
                match orders.recv_timeout(Duration::from_millis(left)) {
                    Ok(order) => Some(order),
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        self.again();
                        continue;
                    }
                    Err(mpsc::RecvTimeoutError::Disconnected) => None,
                }
            };
            let Some(order) = next else { break };
            self.take_on(*order);
        }
        self.again();
    }

    fn take_on(&mut self, order: Order) {
        match order {
            Order::Remove(trees) => remove(&trees, &self.own),
            Order::Release { remove: trees, then } => {
                remove(&trees, &self.own);
                self.mailbox.post(Message::Input(*then));
            }
            order if self.kept.iter().any(|kept| kept.about() == order.about()) => self.keep(order),
            order => {
                if let Err(error) = self.carry_out(&order) {
                    self.failed(order, &error);
                }
            }
        }
    }

    /// Tries again what the disk did not take.
    fn again(&mut self) {
        for order in std::mem::take(&mut self.kept) {
            if self.kept.iter().any(|kept| kept.about() == order.about()) {
                self.keep(order);
            } else if let Err(error) = self.carry_out(&order)
                && files::is_worth_another_try(&error)
            {
                self.keep(order);
            }
        }
        self.again_at = Span(clock::monotonic().0 + AGAIN.0);
        if self.kept.is_empty() {
            self.say(None);
        }
    }

    fn failed(&mut self, order: Order, error: &io::Error) {
        tracing::warn!(about = %order.about().display(), %error, "cannot {}", order.doing());
        if files::is_worth_another_try(error) {
            self.say(Some(format!(
                "cannot {} ({}: {error}): done as soon as the disk takes it",
                order.doing(),
                order.about().display()
            )));
            self.keep(order);
        }
    }

    fn keep(&mut self, order: Order) {
        if self.kept.iter().map(Order::bytes).sum::<usize>() + order.bytes() > KEPT_BYTES {
            return;
        }
        if self.kept.is_empty() {
            self.again_at = Span(clock::monotonic().0 + AGAIN.0);
        }
        self.kept.push_back(order);
    }

    fn say(&mut self, trouble: Option<String>) {
        if self.said.is_some() != trouble.is_some() {
            self.said.clone_from(&trouble);
            self.mailbox.post(Message::Behind(trouble));
        }
    }

    fn carry_out(&self, order: &Order) -> io::Result<()> {
        match order {
            Order::Folder { dir, source, answer, attempt } => {
                folder(&Folder::open(dir, &self.own)?, source.as_deref(), answer, *attempt)
            }
            Order::Rewrite { dir, was, source, answer } => {
                was.as_deref().map_or(Ok(()), |was| rename(was, dir))?;
                let to = Folder::open(dir, &self.own)?;
                to.write("job.yaml", source)?;
                to.write("answer.txt", &clean(answer))
            }
            Order::Links { dir, attempt } => Folder::open(dir, &self.own)?.links(*attempt),
            Order::Receipt { dir, json, markdown, attempt } => {
                receipt(&Folder::open(dir, &self.own)?, json, markdown, *attempt)
            }
            Order::Take { name, ident, folder_to } => take(&self.inbox, name, ident, folder_to.as_deref()),
            Order::Why { path, text: Some(text) } => write_why(path, text),
            Order::Why { path, text: None } => remove_file(path),
            Order::Remove(_) | Order::Release { .. } => Ok(()),
        }
    }
}

/// Takes an accepted drop out of the inbox.
pub(super) fn take(inbox: &Inbox, name: &str, ident: &DropIdent, folder_to: Option<&Path>) -> io::Result<()> {
    folder_to.and_then(Path::parent).map_or(Ok(()), private_dir)?;
    match inbox.take(name, ident, folder_to) {
        Ok(_) => Ok(()),
        Err(InboxError::Io { source, .. }) => Err(source),
        Err(error @ InboxError::Owned { .. }) => Err(io::Error::other(error)),
    }
}

fn remove(trees: &[PathBuf], own: &[PathBuf]) {
    for tree in trees {
        if let Err(error) = files::remove_own(tree, own) {
            tracing::warn!(path = %tree.display(), error = %error, "cannot remove scratch");
        }
    }
}

/// In place of whatever lies there: nothing that its name may stand for is written to.
fn write_why(path: &Path, text: &str) -> io::Result<()> {
    let (Some(inbox), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    beneath::replace(beneath::named(inbox)?, name, text.as_bytes(), Mode::RUSR | Mode::WUSR)
}

/// Whether a file is there with something in it: a power cut may leave the name alone.
pub(super) fn is_written(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.len() > 0)
}

fn folder(to: &Folder, source: Option<&str>, answer: &str, attempt: u32) -> io::Result<()> {
    if let Some(source) = source.filter(|_| !to.is_written("job.yaml")) {
        to.write("job.yaml", source)?;
    }
    if !to.is_written("answer.txt") {
        to.write("answer.txt", &clean(answer))?;
    }
    to.links(attempt)
}

fn receipt(to: &Folder, json: &str, markdown: &str, attempt: u32) -> io::Result<()> {
    to.write("receipt.json", json)?;
    to.write("receipt.md", &clean(markdown))?;
    to.links(attempt)
}

/// A job's folder, open: what the work puts in its place, or in the place of a file, is neither followed nor written to.
struct Folder(beneath::Dir);

impl Folder {
    /// Opens it; makes it if it is missing.
    fn open(dir: &Path, own: &[PathBuf]) -> io::Result<Self> {
        match beneath::own_place(dir, own) {
            Err(rustix::io::Errno::NOENT) => private_dir(dir)?,
            other => return Ok(Self(other?)),
        }
        Ok(Self(beneath::own_place(dir, own)?))
    }

    fn is_written(&self, name: &str) -> bool {
        rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|file| {
            FileType::from_raw_mode(file.st_mode) != FileType::RegularFile || file.st_size > 0
        })
    }

    /// A reader sees the old text or the new one.
    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        beneath::replace(&self.0, name.as_ref(), text.as_bytes(), Mode::RUSR | Mode::WUSR)
    }

    /// `log.txt` and `output` name the current attempt's.
    fn links(&self, attempt: u32) -> io::Result<()> {
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

/// A folder of that name that is there already stays: nothing is lost, and what is missing there is written.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    match rustix::fs::renameat_with(rustix::fs::CWD, from, rustix::fs::CWD, to, flags) {
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::EXIST | rustix::io::Errno::NOTEMPTY) => Ok(()),
        other => Ok(other?),
    }
}

fn remove_file(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes a directory that only its owner reads, with what leads to it.
pub(super) fn private_dir(dir: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}
