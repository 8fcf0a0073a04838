//! What the view wants done outside of it: commands to the scheduler, the terminal, files, other programs.

use super::{Exit, Next, Shell, TuiError, mend, newfile, terminal};
use crate::protocol::Command;
use crate::tui::look::theme;
use crate::tui::overlay::fix;
use crate::tui::shell::feed::UiCommand;

impl Shell {
    /// Does what the view wants done.
    pub(super) fn obey(&mut self, wanted: Vec<UiCommand>) -> Result<Next, TuiError> {
        for command in wanted {
            match command {
                UiCommand::Quit => return Ok(Next::End(Exit::Quit)),
                UiCommand::Repaint => self.screen.repaint(),
                UiCommand::Notify(text) => self.notify(&text)?,
                UiCommand::ReadFile { name, path } => {
                    fix::read(&mut self.ui, &self.snap, &name, mend::read(&path));
                }
                UiCommand::Mend(it) => {
                    fix::wrote(&mut self.ui, &it.name, mend::write(&it.path, &it.was, &it.new));
                    let rescan = UiCommand::Send { job: None, command: Command::Rescan };
                    self.commands.send(rescan).map_err(|_| TuiError::Failed)?;
                }
                UiCommand::Suspend => {
                    terminal::suspend()
                        .map_err(|source| TuiError::Terminal { doing: "taken back", source })?;
                    self.ui.size = terminal::size();
                    self.screen.resize(self.ui.size);
                    crate::tui::settle(&mut self.ui, &self.snap);
                }
                UiCommand::Theme(name) => self.choose(name),
                UiCommand::Themes => {
                    self.before = Some((self.look.clone(), self.theme.clone()));
                    let all = theme::list(self.look.dir.as_deref()).into_iter();
                    self.ui.themes =
                        all.map(|theme| (theme.name, theme.problem.unwrap_or(theme.about))).collect();
                }
                UiCommand::Write { file, text, what } => {
                    let (level, told) = newfile::write(&file, &text, &what);
                    self.ui.say(level, told, None);
                }
                UiCommand::Panic => std::panic::panic_any("a failure on purpose, by :panic"),
                UiCommand::Errand(errand) => {
                    if let Next::End(exit) = self.errand(errand)? {
                        return Ok(Next::End(exit));
                    }
                }
                command @ (UiCommand::Send { .. }
                | UiCommand::Ask { .. }
                | UiCommand::Detail(_)
                | UiCommand::Refresh
                | UiCommand::Start
                | UiCommand::Look { .. }
                | UiCommand::Ping) => {
                    let now_ms = self.ui.now.boottime_ms;
                    self.waiting_ms.get_or_insert(now_ms);
                    self.commands.send(command).map_err(|_| TuiError::Failed)?;
                }
            }
        }
        Ok(Next::Go)
    }
}
