//! Runs the errands of the view: on a thread where a disk may be slow, in the terminal where another program wants it.

use super::{Next, Shell, TuiError, browse, external, measure, mend, terminal};
use crate::model::Now;
use crate::tui::errand::{Brought, Errand};
use crate::tui::news;
use crate::tui::shell::Exit;
use crate::tui::shell::feed::{FeedEvent, UiCommand};
use crate::tui::shell::options::Outside;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

impl Shell {
    /// Sees how much lies in a folder.
    pub(super) fn measure(&self, path: PathBuf) -> std::io::Result<()> {
        browse::on_a_thread(&self.events, move || {
            let found = measure::measure(&path);
            Brought::Measured { path, found }
        })
    }

    /// Runs one; what it brings comes at once or as an event.
    pub(super) fn errand(&mut self, errand: Errand) -> Result<Next, TuiError> {
        let (outside, events) = (&self.outside, &self.events);
        let away = match errand {
            Errand::Browse => {
                let (start, templates) = (outside.start.clone(), outside.templates.clone());
                let look = move || Brought::Browsed(browse::browse(&start, templates.as_deref()));
                return self.started(browse::on_a_thread(&self.events, look));
            }
            Errand::Read(path) => {
                let read = move || {
                    let text = browse::read(&path);
                    Brought::Text { path, text }
                };
                return self.started(browse::on_a_thread(&self.events, read));
            }
            Errand::Measure(path) => {
                return self.started(self.measure(path));
            }
            Errand::Copy(text) => {
                let sent = self.screen.copy(&text);
                return sent
                    .map(|()| Next::Go)
                    .map_err(|source| TuiError::Terminal { doing: "written to", source });
            }
            Errand::Leave(folder) => {
                return match leave(outside, &folder) {
                    Ok(()) => Ok(Next::End(Exit::Quit)),
                    Err(why) => self.brought(Brought::Failed(why)),
                };
            }
            Errand::EditText { text, .. } if !external::has_editor(outside) => {
                return self.brought(Brought::EditHere { was: text, text: None, file: None });
            }
            Errand::EditFile(path) if !external::has_editor(outside) => {
                let read = browse::read(&path);
                return self.brought(match read {
                    Ok(was) => Brought::EditHere { was, text: None, file: Some(path) },
                    Err(why) => Brought::Edited(Err(why)),
                });
            }
            Errand::Write { path, was, text } => return self.write(path, was, text),
            Errand::EditText { name, text } => {
                external::edit_text(outside, &name, text, events).map_err(|why| Brought::Edited(Err(why)))
            }
            Errand::EditFile(path) => {
                external::edit_file(outside, path, events).map_err(|why| Brought::Edited(Err(why)))
            }
            Errand::Shell(folder) => external::shell(outside, &folder, events).map_err(Brought::Failed),
            Errand::Pager(path) => external::page(outside, &path, events).map_err(Brought::Failed),
        };
        match away {
            Ok(absence) => {
                self.away = Some(absence);
                Ok(Next::Go)
            }
            Err(brought) => {
                self.screen.repaint();
                self.brought(brought)
            }
        }
    }

    /// Puts a text into its file, whole or not at all. Nothing that was typed is lost by a full disk.
    fn write(&mut self, path: PathBuf, was: Vec<u8>, text: Vec<u8>) -> Result<Next, TuiError> {
        // A link stays one: what it points to is replaced.
        let place = path.canonicalize().unwrap_or_else(|_| path.clone());
        let Err(why) = mend::write(&place, &was, &text) else {
            return self.brought(Brought::Edited(Ok(Some(text))));
        };
        self.brought(Brought::EditHere { was, text: Some(text), file: Some(path) })?;
        self.brought(Brought::Failed(why))
    }

    fn started(&mut self, thread: std::io::Result<()>) -> Result<Next, TuiError> {
        match thread {
            Ok(()) => Ok(Next::Go),
            Err(error) => self.brought(Brought::Failed(format!("files cannot be looked at: {error}"))),
        }
    }

    fn brought(&mut self, brought: Brought) -> Result<Next, TuiError> {
        let now = self.ui.now;
        let out = news::receive(&mut self.ui, &mut self.snap, FeedEvent::Brought(brought), now);
        self.obey(out)
    }

    /// The program that had the terminal has ended.
    pub(super) fn returned(
        &mut self,
        ended: Result<ExitStatus, String>,
        now: Now,
    ) -> Result<Vec<UiCommand>, TuiError> {
        let Some(absence) = self.away.take() else { return Ok(Vec::new()) };
        let (taken, brought) = external::end(absence, ended);
        taken.map_err(|source| TuiError::Terminal { doing: "taken back", source })?;
        self.resized(terminal::size());
        self.screen.repaint();
        self.pressed = true;
        Ok(news::receive(&mut self.ui, &mut self.snap, FeedEvent::Brought(brought), now))
    }
}

/// Writes where the shell around the dashboard is to go.
fn leave(outside: &Outside, folder: &Path) -> Result<(), String> {
    let Some(file) = &outside.cwd_file else {
        return Err(
            "nobody waits for a folder: start it with --cwd-file FILE; README.md has the shell function"
                .into(),
        );
    };
    if !folder.is_dir() {
        return Err(external::no_folder(folder));
    }
    std::fs::write(file, folder.as_os_str().as_bytes())
        .map_err(|error| format!("{} cannot be written: {error}", file.display()))
}
