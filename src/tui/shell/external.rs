//! Other programs on the terminal: an editor, a pager, a shell. The dashboard steps aside and comes back.
//!
//! One way for all of them: the terminal is given back, the program has it in the foreground with signals as it finds
//! them in a shell, a thread waits for its end, the terminal is taken again. The loop goes on meanwhile and draws
//! nothing: what arrives is taken in, and a hang-up ends it as ever. A private copy never outlives the program.

use crate::model::clean_line;
use crate::supervisor::log::LogFile;
use crate::tui::errand::Brought;
use crate::tui::shell::feed::FeedEvent;
use crate::tui::shell::options::Outside;
use crate::tui::shell::{browse, input, terminal};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is left behind if the dashboard ends now: the program, as long as its number is its own, and the private copy.
#[derive(Debug, Default)]
struct Left {
    running: Option<Pid>,
    private: Option<PathBuf>,
}

static LEFT: Mutex<Left> = Mutex::new(Left { running: None, private: None });

fn left() -> MutexGuard<'static, Left> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Another program has the terminal.
pub(in crate::tui) fn is_away() -> bool {
    left().running.is_some()
}

/// The dashboard ends: the program is hung up and its private copy goes.
pub(in crate::tui) fn abandon() {
    let mut left = left();
    if let Some(pid) = left.running.take() {
        let _ended = rustix::process::kill_process(pid, Signal::HUP);
        let _ended = rustix::process::kill_process(pid, Signal::CONT);
    }
    if let Some(folder) = left.private.take() {
        // Where it cannot be removed nobody is left to be told.
        let _stays = std::fs::remove_dir_all(folder);
    }
}

/// What runs, and what it comes to.
#[derive(Debug)]
enum Work {
    /// A file in the editor, and its text before.
    Edit {
        path: PathBuf,
        before: Vec<u8>,
    },
    Pager,
    Shell,
}

/// While another program has the terminal.
#[derive(Debug)]
pub(in crate::tui) struct Absence {
    work: Work,
    program: String,
    /// Keys are that program's.
    _still: MutexGuard<'static, ()>,
}

impl Drop for Absence {
    fn drop(&mut self) {
        abandon();
    }
}

/// A text in the editor, in a private copy.
pub(super) fn edit_text(
    outside: &Outside,
    name: &str,
    text: Vec<u8>,
    events: &Sender<FeedEvent>,
) -> Result<Absence, String> {
    let folder = private_folder().map_err(|error| format!("a private copy cannot be made: {error}"))?;
    left().private = Some(folder.clone());
    let path = folder.join(format!("{}.yaml", crate::model::slug(name)));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(&text));
    if let Err(error) = written {
        abandon();
        return Err(format!("a private copy cannot be written: {error}"));
    }
    edit(outside, path, text, events)
}

/// A file in the editor, where it lies.
pub(super) fn edit_file(
    outside: &Outside,
    path: PathBuf,
    events: &Sender<FeedEvent>,
) -> Result<Absence, String> {
    let before = browse::read(&path)?;
    edit(outside, path, before, events)
}

/// Bytes copied at a time.
const COPIED: usize = 1 << 20;

/// The editor where none is set.
const EDITOR: &str = "vi";

/// Whether there is an editor: one that is set, or that which is on every machine but the barest.
pub(super) fn has_editor(outside: &Outside) -> bool {
    let mut folders =
        outside.environment.get("PATH").into_iter().flat_map(|path| std::env::split_paths(path));
    outside.editor.is_some() || folders.any(|folder| folder.join(EDITOR).is_file())
}

fn edit(
    outside: &Outside,
    path: PathBuf,
    before: Vec<u8>,
    events: &Sender<FeedEvent>,
) -> Result<Absence, String> {
    let editor = outside.editor.clone().unwrap_or_else(|| EDITOR.to_owned());
    let mut command = of_the_shell(&editor, &path);
    if outside.start.is_dir() {
        command.current_dir(&outside.start);
    }
    run(command, editor, Work::Edit { path, before }, events)
}

/// A file in the pager.
pub(super) fn page(outside: &Outside, path: &Path, events: &Sender<FeedEvent>) -> Result<Absence, String> {
    let log = LogFile::open(path)
        .map_err(|error| format!("there is no log to open yet: {}: {error}", path.display()))?;
    // A pager knows no holes: what is left of such a log is copied for it.
    let copy = if log.has_hole() { Some(whole(log)) } else { None };
    let copy = copy.transpose().map_err(|error| {
        abandon();
        format!("a private copy of the log cannot be made: {error}")
    })?;
    let path = copy.as_deref().unwrap_or(path);
    let default = "sh -c 'command -v less >/dev/null && exec less -R \"$1\"; exec more \"$1\"' sh";
    let pager = outside.pager.clone();
    let command = of_the_shell(pager.as_deref().unwrap_or(default), path);
    run(command, pager.unwrap_or_else(|| "less".to_owned()), Work::Pager, events)
}

/// A private copy of a log without what was cut of it.
fn whole(mut log: LogFile) -> std::io::Result<PathBuf> {
    let folder = private_folder()?;
    left().private = Some(folder.clone());
    let path = folder.join("log.txt");
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let mut place = 0;
    loop {
        let piece = log.after(place, COPIED)?;
        if piece.bytes.is_empty() {
            return Ok(path);
        }
        place = piece.end();
        file.write_all(&piece.bytes)?;
    }
}

/// A shell in a folder.
pub(super) fn shell(outside: &Outside, folder: &Path, events: &Sender<FeedEvent>) -> Result<Absence, String> {
    if !folder.is_dir() {
        return Err(no_folder(folder));
    }
    let shell = outside.shell.clone().unwrap_or_else(|| "sh".into());
    let mut command = Command::new(&shell);
    // Shells say where they are by the name they were sent to, not by where its links lead.
    command.current_dir(folder).env("PWD", folder);
    run(command, shell.display().to_string(), Work::Shell, events)
}

/// Why nobody can go there.
pub(super) fn no_folder(folder: &Path) -> String {
    format!("{} is not there yet: it is made when output comes back", folder.display())
}

/// What a person has set may have arguments, quotes and `~`: the shell reads it, as it does for git.
fn of_the_shell(program: &str, file: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec env {program} \"$@\"")]).arg("sh").arg(file);
    command
}

/// A new folder that only its owner can look into.
fn private_folder() -> std::io::Result<PathBuf> {
    let mut random = [0_u8; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let folder = std::env::temp_dir().join(format!("overnight-edit-{:016x}", u64::from_le_bytes(random)));
    DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}

fn run(
    mut command: Command,
    program: String,
    work: Work,
    events: &Sender<FeedEvent>,
) -> Result<Absence, String> {
    let still = input::still();
    terminal::restore();
    let started = command.spawn().and_then(|child| wait_for(child, events));
    match started {
        Ok(()) => Ok(Absence { work, program, _still: still }),
        Err(error) => {
            abandon();
            // Where the terminal cannot be taken again the next frame ends the dashboard.
            let _taken = terminal::again();
            Err(format!("{} cannot be run: {error}", clean_line(&program)))
        }
    }
}

/// Waits for the end on a thread, and tells of it.
fn wait_for(mut child: Child, events: &Sender<FeedEvent>) -> std::io::Result<()> {
    let pid = Pid::from_child(&child);
    left().running = Some(pid);
    let events = events.clone();
    std::thread::Builder::new().name("away".into()).spawn(move || {
        // Its number is its own until it is waited for: nobody else's process is hung up.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ended = rustix::io::retry_on_intr(|| rustix::process::waitid(WaitId::Pid(pid), options));
        left().running = None;
        let ended = child.wait().map_err(|error| error.to_string());
        let _gone = events.send(FeedEvent::Returned(ended));
    })?;
    Ok(())
}

/// Takes the terminal again; what the program came to.
pub(super) fn end(absence: Absence, ended: Result<ExitStatus, String>) -> (std::io::Result<()>, Brought) {
    let said = said(&absence, ended);
    let brought = match (&absence.work, said) {
        // A shell ends with what its last command ended with.
        (Work::Shell, _) | (Work::Pager, Ok(())) => Brought::Back,
        (Work::Pager, Err(why)) => Brought::Failed(why),
        (Work::Edit { .. }, Err(why)) => Brought::Edited(Err(why)),
        (Work::Edit { path, before }, Ok(())) => {
            Brought::Edited(browse::read(path).map(|text| (text != *before).then_some(text)))
        }
    };
    let taken = terminal::again();
    drop(absence);
    (taken, brought)
}

fn said(absence: &Absence, ended: Result<ExitStatus, String>) -> Result<(), String> {
    use std::os::unix::process::ExitStatusExt as _;
    let program = clean_line(&absence.program);
    let variable = if matches!(absence.work, Work::Pager) { "PAGER" } else { "VISUAL or EDITOR" };
    let status = ended.map_err(|error| format!("{program}: {error}"))?;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(126 | 127), _) => Err(format!("`{program}` cannot be run: set {variable}")),
        (Some(code), _) => Err(format!("{program} ended with exit {code}")),
        (None, Some(signal)) => Err(format!("{program} was ended by signal {signal}")),
        (None, None) => Err(format!("{program} ended")),
    }
}
