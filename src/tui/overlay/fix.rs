//! Before a refused job file is mended in place: the lines as they are and as they would be. The focus is on the button
//! that does nothing.

use super::confirm::{Button, buttons, pressed};
use super::{Overlay, middle};
use crate::model::clean_line;
use crate::protocol::{Diagnostic, Edit, InboxRow, InboxState, Severity, Snapshot};
use crate::tui::errand::Errand;
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{cut_middle, width};
use crate::tui::look::theme::Role;
use crate::tui::ui::{Level, Screen, Ui};
use crate::tui::{UiCommand, View};
use ratatui::layout::Rect;
use std::path::PathBuf;

/// One line, and what it becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mended {
    /// From 1.
    pub line: u32,
    /// As it is.
    pub old: String,
    /// As it would be: several lines where lines are added.
    pub new: String,
}

/// The question before a file is mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// Its name in the inbox.
    pub name: String,
    /// The file itself.
    pub path: PathBuf,
    /// What was read, and is there still when it is written.
    pub was: Vec<u8>,
    /// What would be written.
    pub new: Vec<u8>,
    /// The lines that change.
    pub lines: Vec<Mended>,
    /// Errors that stay: nobody is certain how to mend them.
    pub left: usize,
    /// The button that Enter presses.
    pub button: Button,
}

/// The refused file under the cursor.
fn selected<'a>(ui: &Ui, snap: &'a Snapshot) -> Option<(&'a InboxRow, &'a [Diagnostic])> {
    let row = snap.inbox.iter().find(|row| Some(&row.name) == ui.file.as_ref())?;
    match &row.state {
        InboxState::Refused { diagnostics } => Some((row, diagnostics)),
        InboxState::Waiting { .. } | InboxState::Accepted { .. } => None,
    }
}

fn errors(diagnostics: &[Diagnostic]) -> impl Iterator<Item = &Diagnostic> {
    diagnostics.iter().filter(|finding| finding.severity == Severity::Error)
}

/// Whether a file can be mended by a key.
pub(in crate::tui) fn can(diagnostics: &[Diagnostic]) -> bool {
    errors(diagnostics).any(|finding| finding.fix.is_some())
}

/// Why the file under the cursor cannot be mended; `None` if it can.
pub(in crate::tui) fn refusal(ui: &Ui, snap: &Snapshot) -> Option<String> {
    if ui.screen != Screen::Inbox && ui.focus != crate::tui::layout::Pane::Inbox {
        return Some(elsewhere(ui, &Action::Fix, "mends"));
    }
    match selected(ui, snap) {
        None => Some("this file was not refused: there is nothing to mend".to_owned()),
        Some((_, diagnostics)) if !can(diagnostics) => {
            let edit = ui.keys.way(&Action::EditFile);
            Some(format!("nobody is certain how to mend this: {edit} edits the file where it lies"))
        }
        Some(_) => None,
    }
}

/// Why there is no refused file under the cursor to be edited; `None` if there is.
pub(in crate::tui) fn no_file(ui: &Ui, snap: &Snapshot) -> Option<String> {
    let is_there = ui.screen == Screen::Inbox || ui.focus == crate::tui::layout::Pane::Inbox;
    match selected(ui, snap) {
        _ if !is_there => Some(elsewhere(ui, &Action::EditFile, "edits")),
        None => {
            let edit = ui.keys.way(&Action::Edit);
            Some(format!("this file was not refused: {edit} in the queue edits its job"))
        }
        Some(_) => None,
    }
}

/// The files are not on the screen: where they are, and the key that does it there.
fn elsewhere(ui: &Ui, action: &Action, does: &str) -> String {
    let (inbox, key) = (ui.keys.way(&Action::Show(Screen::Inbox)), ui.keys.way(action));
    format!("{inbox} shows the files of the inbox; {key} {does} one")
}

/// Opens the file in the editor. It is read again when it is saved.
pub(in crate::tui) fn edit(ui: &mut Ui, snap: &Snapshot) -> Vec<UiCommand> {
    if let Some(reason) = no_file(ui, ui.shown(snap)) {
        ui.say(Level::Warning, reason, None);
        return Vec::new();
    }
    let Some((row, found)) = selected(ui, ui.shown(snap)) else { return Vec::new() };
    let path = snap.scheduler.inbox.join(&row.name);
    // Of a folder its job file was read.
    let is_folder =
        found.first().is_some_and(|found| found.file.ends_with(&format!("{}/job.yaml", row.name)));
    let path = if is_folder { path.join("job.yaml") } else { path };
    vec![UiCommand::Errand(Errand::EditFile(path))]
}

/// Has the file read; what it says is asked about then.
pub(in crate::tui) fn ask(ui: &mut Ui, snap: &Snapshot) -> Vec<UiCommand> {
    if let Some(reason) = refusal(ui, ui.shown(snap)) {
        ui.say(Level::Warning, reason, None);
        return Vec::new();
    }
    let Some((row, _)) = selected(ui, ui.shown(snap)) else { return Vec::new() };
    vec![UiCommand::ReadFile { name: row.name.clone(), path: snap.scheduler.inbox.join(&row.name) }]
}

/// The file was read: shows what would change, or says why nothing can.
pub(in crate::tui) fn read(
    ui: &mut Ui,
    snap: &Snapshot,
    name: &str,
    file: Result<(PathBuf, Vec<u8>), String>,
) {
    let row = snap.inbox.iter().find(|row| row.name == name);
    let Some(InboxState::Refused { diagnostics }) = row.map(|row| &row.state) else {
        ui.say(Level::Warning, format!("{name} was read again meanwhile: nothing was changed"), None);
        return;
    };
    let mended =
        file.and_then(|(path, was)| mended(&was, diagnostics).map(|(new, lines)| (path, was, new, lines)));
    match mended {
        Ok((path, was, new, lines)) => {
            let left = errors(diagnostics).filter(|finding| finding.fix.is_none()).count();
            let name = name.to_owned();
            ui.overlay = Some(Overlay::Fix(Fix { name, path, was, new, lines, left, button: Button::Keep }));
        }
        Err(why) => ui.say(Level::Error, format!("{name}: {why}"), None),
    }
}

const CHANGED: &str = "it has changed since it was refused; it is read again, look then";

/// The text with every certain mend in it, and the lines that change. What was found must still be there.
pub(in crate::tui) fn mended(
    was: &[u8],
    diagnostics: &[Diagnostic],
) -> Result<(Vec<u8>, Vec<Mended>), String> {
    let text = std::str::from_utf8(was).map_err(|_| "it is not UTF-8: save it as UTF-8".to_owned())?;
    let (mark, text) = text.strip_prefix('\u{feff}').map_or(("", text), |rest| ("\u{feff}", rest));
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    for finding in errors(diagnostics).filter(|finding| finding.line > 0) {
        let there = lines.get(finding.line as usize - 1).ok_or_else(|| CHANGED.to_owned())?;
        let same = finding.source.as_ref().is_none_or(|source| clean_line(there.trim_end()) == *source);
        if !same {
            return Err(CHANGED.to_owned());
        }
    }
    let before = lines.clone();
    let mut edits: Vec<&Edit> = errors(diagnostics).filter_map(|finding| finding.fix.as_ref()).collect();
    // From the end: an edit leaves the columns before it as they are.
    edits.sort_by_key(|edit| std::cmp::Reverse((edit.line, edit.column)));
    edits.dedup();
    let mut free = (u32::MAX, u32::MAX);
    for edit in edits {
        // Two mends of one place exclude each other: the second is offered when the file is read again.
        if edit.line == free.0 && edit.column + edit.width > free.1 {
            continue;
        }
        free = (edit.line, edit.column);
        replace(&mut lines, edit).ok_or_else(|| CHANGED.to_owned())?;
    }
    let changed = before.iter().zip(&lines).enumerate().filter(|(_, (old, new))| old != new);
    let changed = changed.map(|(at, (old, new))| Mended {
        line: u32::try_from(at + 1).unwrap_or(u32::MAX),
        old: old.clone(),
        new: new.clone(),
    });
    let changed = changed.collect();
    Ok((format!("{mark}{}", lines.join("\n")).into_bytes(), changed))
}

/// Carries out a mend, of one line or of several; `None`: what it is about is not there.
fn replace(lines: &mut [String], edit: &Edit) -> Option<()> {
    let first = (edit.line as usize).checked_sub(1)?;
    let column = (edit.column as usize).checked_sub(1)?;
    // The end of a line is one column, however the file writes it.
    let columns = |line: &String| line.trim_end_matches('\r').chars().count();
    let mut end = column + edit.width as usize;
    let mut last = first;
    while end > columns(lines.get(last)?) {
        end -= columns(&lines[last]) + 1;
        last += 1;
    }
    let byte =
        |line: &str, column: usize| line.char_indices().map(|(at, _)| at).chain([line.len()]).nth(column);
    let from = byte(&lines[first], column)?;
    let to = byte(lines.get(last)?, end)?;
    if first == last {
        lines[first].replace_range(from..to, &edit.text);
        return Some(());
    }
    let new: Vec<&str> = edit.text.split('\n').collect();
    if new.len() != last - first + 1 {
        return None;
    }
    let (before, after) = (lines[first][..from].to_owned(), lines[last][to..].to_owned());
    for (at, text) in (first..=last).zip(new) {
        let end = if at == last { &after } else { &lines[at][lines[at].trim_end_matches('\r').len()..] };
        lines[at] = format!("{}{text}{end}", if at == first { before.as_str() } else { "" });
    }
    Some(())
}

pub(super) fn update(ui: &mut Ui, mut it: Fix, action: &Action) -> Vec<UiCommand> {
    match pressed(&mut it.button, action, &[Button::Keep, Button::Cancel]) {
        Some(Button::Keep) => Vec::new(),
        Some(_) => vec![UiCommand::Mend(Box::new(it))],
        None => {
            ui.overlay = Some(Overlay::Fix(it));
            Vec::new()
        }
    }
}

/// What became of it.
pub(in crate::tui) fn wrote(ui: &mut Ui, name: &str, written: Result<(), String>) {
    match written {
        Ok(()) => ui.say(Level::Info, format!("{name} is mended; it is read again"), None),
        Err(why) => ui.say(Level::Error, format!("{name}: {why}"), None),
    }
}

pub(super) fn paint(c: &mut Canvas<'_>, _: &View<'_>, area: Rect, it: &Fix) {
    let mut lines: Vec<(String, Role)> = Vec::new();
    for one in &it.lines {
        lines.push((format!(" line {}", one.line), Role::Dim));
        lines.push((format!(" - {}", one.old.trim_end()), Role::Fail));
        lines.extend(one.new.trim_end().split('\n').map(|new| (format!(" + {}", new.trim_end()), Role::Run)));
    }
    let widest = lines.iter().map(|(text, _)| width(text)).max().unwrap_or(0);
    let columns = u16::try_from(widest + 4).unwrap_or(u16::MAX).clamp(58, 100);
    let height = u16::try_from(lines.len() + 4 + usize::from(it.left > 0)).unwrap_or(u16::MAX);
    let popup = middle(area, columns, height.min(area.height.saturating_sub(2)).max(6));
    c.clear(popup);
    let title = format!("Mend {} ?", cut_middle(&it.name, usize::from(popup.width).saturating_sub(14)));
    let inner = c.frame(popup, &[(&title, Role::Title)], &[], true);
    let rows = usize::from(inner.height).saturating_sub(2 + usize::from(it.left > 0));
    let hidden = lines.len().saturating_sub(rows);
    for (at, (text, role)) in lines.iter().take(rows).enumerate() {
        c.text(inner, at as u16, text, *role);
    }
    if hidden > 0 {
        c.text(inner, rows as u16, &format!(" {hidden} more lines"), Role::Dim);
    } else if it.left > 0 {
        let what = if it.left == 1 { "error stays: mend it" } else { "errors stay: mend them" };
        c.text(inner, rows as u16, &format!(" {} {what} by hand.", it.left), Role::ToastWarn);
    }
    let (keep, yes) =
        if inner.width < 44 { ("[Keep]", "[y]es") } else { ("[ Keep it ]", "[y] Write this into the file") };
    buttons(c, inner, &[(Button::Keep, keep, Role::Dialog), (Button::Cancel, yes, Role::KeyHint)], it.button);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(line: u32, column: u32, source: &str, fix: Option<(u32, u32, &str)>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code: 1,
            message: "odd".into(),
            file: "a.yaml".into(),
            line,
            column,
            width: 1,
            source: Some(source.into()),
            label: None,
            hint: None,
            known: Vec::new(),
            fix: fix.map(|(column, width, text)| Edit { line, column, width, text: text.into() }),
        }
    }

    #[test]
    fn every_certain_mend_is_in_the_text_and_the_rest_stays_to_the_byte() {
        let was = "\u{feff}a: 1\r\nreqüest:\r\n  gpu_count: 2, for: 2\r\nlast: x";
        let source = "  gpu_count: 2, for: 2";
        let found =
            [finding(3, 3, source, Some((3, 9, "gpus"))), finding(3, 22, source, Some((22, 1, "2h")))];
        let (new, lines) = mended(was.as_bytes(), &found).unwrap();
        assert_eq!(
            String::from_utf8(new).unwrap(),
            "\u{feff}a: 1\r\nreqüest:\r\n  gpus: 2, for: 2h\r\nlast: x"
        );
        assert_eq!(lines.len(), 1);
        assert_eq!((lines[0].line, lines[0].new.as_str()), (3, "  gpus: 2, for: 2h\r"));
    }

    #[test]
    fn one_mend_can_be_about_several_lines() {
        for end in ["\n", "\r\n"] {
            let was = ["request:", "\tgpus: 1", "  # a word", "\tfor: 5m", "output: []"].join(end);
            let mut tab = finding(2, 1, " gpus: 1", None);
            let text = "  gpus: 1\n  # a word\n  for: 5m".into();
            tab.fix = Some(Edit { line: 2, column: 1, width: 8 + 1 + 10 + 1 + 8, text });
            tab.source = None;
            let (new, lines) = mended(was.as_bytes(), &[tab]).unwrap();
            let wanted = ["request:", "  gpus: 1", "  # a word", "  for: 5m", "output: []"].join(end);
            assert_eq!(String::from_utf8(new).unwrap(), wanted);
            assert_eq!(lines.iter().map(|line| line.line).collect::<Vec<_>>(), [2, 4]);
        }
    }

    #[test]
    fn a_file_that_says_something_else_now_is_left_alone() {
        let found = [finding(1, 1, "gpu_count: 2", Some((1, 9, "gpus")))];
        assert!(mended(b"gpus: 4\n", &found).unwrap_err().contains("changed"));
        let found = [finding(9, 1, "gpu_count: 2", Some((1, 9, "gpus")))];
        assert!(mended(b"gpu_count: 2\n", &found).unwrap_err().contains("changed"));
        assert!(mended(b"\xff\n", &found).unwrap_err().contains("UTF-8"));
    }
}
