//! What is asked of the scheduler and of the log's reader without a key: what the screen shows and the dashboard does not
//! have, and whether somebody is there.

use super::{PATIENCE_MS, QUIET_MS, Shell};
use crate::model::{Cursor, Now, Span};
use crate::protocol::Connection;
use crate::tui::panels::life;
use crate::tui::shell::feed::UiCommand;
use crate::tui::shell::log::LogMessage;
use crate::tui::update::copying;
use crate::tui::{looks, news};

/// The output of a job that runs is measured anew after this.
const MEASURED_MS: u64 = 60_000;

/// That of another job no sooner than this: a cursor that runs over jobs starts no crowd of walks.
const APART_MS: u64 = 2_000;

impl Shell {
    /// Notices that the scheduler has gone quiet.
    pub(super) fn listen(&mut self, now: Now) {
        let quiet = now.boottime_ms.saturating_sub(self.heard_ms);
        let lost = matches!(self.ui.connection, Connection::Lost { .. });
        match self.waiting_ms {
            Some(since) if !lost && now.boottime_ms >= since + PATIENCE_MS => {
                self.ui.connection = Connection::Stale { age: Span(quiet) };
            }
            None if self.runs() && !lost && quiet >= QUIET_MS => {
                self.waiting_ms = Some(now.boottime_ms);
                // The thread is gone only if the dashboard ends.
                let _ended = self.commands.send(UiCommand::Ping);
            }
            Some(_) | None => {}
        }
    }

    /// Measures the output of a job that runs, now and then, where that is shown.
    fn ask_how_much(&mut self) {
        let shown = life::shown(&self.ui, &self.snap).filter(|row| row.state == Cursor::Running);
        let Some((job, output)) = shown.map(|row| (row.id, copying::output(row))) else { return };
        let now_ms = self.ui.now.boottime_ms;
        let rests = |(before, ms)| now_ms < ms + if before == job { MEASURED_MS } else { APART_MS };
        if !self.measured.is_some_and(rests) {
            self.measured = Some((job, now_ms));
            // Where there is no thread left it is not told.
            let _none = self.measure(output);
        }
    }

    /// Asks for what the screen shows and the dashboard does not have.
    pub(super) fn ask(&mut self) {
        let (want, detail) = news::wants(&mut self.ui, &self.snap, self.want.as_ref());
        if want != self.want {
            self.want.clone_from(&want);
            // The thread is gone only if the dashboard ends.
            let _ended = self.wants.send(LogMessage::Want(want));
        }
        let finding = self.ui.log.find.as_ref().map(|find| find.id);
        if finding != self.finding {
            self.finding = finding;
            let _ended = self.wants.send(LogMessage::Find(self.ui.log.find.clone()));
        }
        if let Some(command @ UiCommand::Detail(job)) = detail {
            let revision = crate::tui::rows::find(&self.ui, &self.snap, job).map(|row| row.revision);
            if self.detail_asked != Some((job, revision)) && self.ui.connected() {
                self.detail_asked = Some((job, revision));
                let _ended = self.commands.send(command);
            }
        }
        self.ask_how_much();
        for command in looks::due(&mut self.ui, &self.snap) {
            let _ended = self.commands.send(command);
        }
    }
}
