//! The thread that writes what people read: job folders, answers, receipts, reasons beside refused files; that takes
//! accepted files out of the inbox; and that removes scratch. Off the path of every launch, in the order in which it is
//! told.
//!
//! What a full or broken disk does not take is kept, and done as soon as it does. What concerns the same folder or the
//! same name waits behind it; everything else goes on.

use super::message::{Mailbox, Message};
use crate::clock;
use crate::files;
use crate::inbox::{Inbox, InboxError};
use crate::model::{DropIdent, Span};
use crate::sched::Input;
use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
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

/// Hands orders to the thread.
#[derive(Debug, Clone)]
pub(super) struct Clerk(mpsc::SyncSender<Order>);

impl Clerk {
    /// Starts the thread. It ends when its clerks are gone and all orders are carried out.
    pub(super) fn spawn(
        mailbox: Mailbox,
        inbox: Arc<Inbox>,
    ) -> io::Result<(Self, std::thread::JoinHandle<()>)> {
        let (sender, orders) = mpsc::sync_channel(BACKLOG);
        let desk = Desk { mailbox, inbox, kept: VecDeque::new(), again_at: Span(0), said: None };
        let thread = std::thread::Builder::new()
            .name("clerk".to_owned())
            .stack_size(512 << 10)
            .spawn(move || desk.run(&orders))?;
        Ok((Self(sender), thread))
    }

    /// Gives an order. A thread that is gone takes none: what it writes is written again at the next start.
    pub(super) fn order(&self, order: Order) {
        drop(self.0.send(order));
    }
}

impl Order {
    /// What it is about: orders about the same thing keep their order.
    fn about(&self) -> &Path {
        match self {
            Self::Folder { dir, .. } | Self::Links { dir, .. } | Self::Receipt { dir, .. } => dir,
            Self::Take { name, .. } => Path::new(name),
            Self::Why { path, .. } => path,
            Self::Remove(_) | Self::Release { .. } => Path::new(""),
        }
    }

    const fn doing(&self) -> &'static str {
        match self {
            Self::Folder { .. } => "write the folder of a job",
            Self::Links { .. } => "link the log and the output of a job",
            Self::Receipt { .. } => "write a receipt",
            Self::Take { .. } => "take an accepted drop out of the inbox",
            Self::Why { .. } => "say why a file was refused",
            Self::Remove(_) | Self::Release { .. } => "remove scratch",
        }
    }

    const fn bytes(&self) -> usize {
        match self {
            Self::Folder { source: Some(source), answer, .. } => source.len() + answer.len(),
            Self::Receipt { json, markdown, .. } => json.len() + markdown.len(),
            Self::Why { text: Some(text), .. } => text.len(),
            _ => 0,
        }
    }
}

struct Desk {
    mailbox: Mailbox,
    inbox: Arc<Inbox>,
    /// What the disk did not take, in the order in which it was told.
    kept: VecDeque<Order>,
    again_at: Span,
    /// What the loop was told of it.
    said: Option<String>,
}

impl Desk {
    fn run(mut self, orders: &mpsc::Receiver<Order>) {
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
            self.take_on(order);
        }
        self.again();
    }

    fn take_on(&mut self, order: Order) {
        match order {
            Order::Remove(trees) => remove(&trees),
            Order::Release { remove: trees, then } => {
                remove(&trees);
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
                folder(dir, source.as_deref(), answer, *attempt)
            }
            Order::Links { dir, attempt } => links(dir, *attempt),
            Order::Receipt { dir, json, markdown, attempt } => receipt(dir, json, markdown, *attempt),
            Order::Take { name, ident, folder_to } => take(&self.inbox, name, ident, folder_to.as_deref()),
            Order::Why { path, text: Some(text) } => write(path, text),
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

fn remove(trees: &[PathBuf]) {
    for tree in trees {
        if let Err(error) = files::remove_tree(tree) {
            tracing::warn!(path = %tree.display(), error = %error, "cannot remove scratch");
        }
    }
}

fn folder(dir: &Path, source: Option<&str>, answer: &str, attempt: u32) -> io::Result<()> {
    private_dir(dir)?;
    if let Some(source) = source {
        let file = dir.join("job.yaml");
        if !is_written(&file) {
            write(&file, source)?;
        }
    }
    if !is_written(&dir.join("answer.txt")) {
        write(&dir.join("answer.txt"), answer)?;
    }
    links(dir, attempt)
}

/// Whether a file is there with something in it: a power cut may leave the name alone.
pub(super) fn is_written(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.len() > 0)
}

fn receipt(dir: &Path, json: &str, markdown: &str, attempt: u32) -> io::Result<()> {
    private_dir(dir)?;
    write(&dir.join("receipt.json"), json)?;
    write(&dir.join("receipt.md"), markdown)?;
    links(dir, attempt)
}

/// `log.txt` and `output` of the job's folder name the current attempt's.
fn links(dir: &Path, attempt: u32) -> io::Result<()> {
    for name in ["log.txt", "output"] {
        let target = PathBuf::from("attempts").join(attempt.to_string()).join(name);
        let link = dir.join(name);
        if std::fs::read_link(&link).is_ok_and(|found| found == target) {
            continue;
        }
        let fresh = dir.join(format!(".{name}.new"));
        remove_file(&fresh)?;
        std::os::unix::fs::symlink(&target, &fresh)?;
        std::fs::rename(&fresh, &link)?;
    }
    Ok(())
}

/// Writes under a hidden name, then renames: a reader sees the old text or the new one.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    let fresh = path.with_file_name(name);
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    let written =
        io::Write::write_all(&mut file, text.as_bytes()).and_then(|()| std::fs::rename(&fresh, path));
    if written.is_err() {
        // It takes room where there is none.
        let _ = std::fs::remove_file(&fresh);
    }
    written
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
