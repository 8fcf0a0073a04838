//! Where a new job starts: a file, a template, or what was submitted before. Typing narrows, the right side previews.

use super::choose::{Chooser, Chosen, fits};
use super::{Overlay, middle, review, tallest, verdict};
use crate::model::{JobId, clean_line};
use crate::protocol::{JobFile, Overrides, Snapshot};
use crate::tui::errand::{Browsed, Errand};
use crate::tui::keys::Action;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{cut_middle, width, wrap};
use crate::tui::look::theme::Role;
use crate::tui::ui::{Level, Ui};
use crate::tui::update::draft::{Draft, Origin, TEMPLATES, Verdict};
use crate::tui::update::flows::{Desk, FileFor, ask_file};
use crate::tui::{UiCommand, View, rows};
use ratatui::layout::Rect;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where job files come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::tui) enum Source {
    #[default]
    Files,
    Templates,
    History,
}

impl Source {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Files, "Files"), (Self::Templates, "Templates"), (Self::History, "History")];

    fn turned(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|(source, _)| *source == self).unwrap_or(0);
        Self::ALL[(at + by) % Self::ALL.len()].0
    }
}

/// What is known of the sources, and the row under the cursor.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Picker {
    /// Which source.
    source: Source,
    list: Chooser,
    /// Files and templates; `None`: they are being looked for.
    pub(in crate::tui) browsed: Option<Browsed>,
    /// Earlier requests, the newest first; none twice.
    history: Vec<Origin>,
    /// Jobs whose request is still to be asked for, the newest last.
    asking: Option<Vec<JobId>>,
    /// One is on its way.
    asked: bool,
    drafts: BTreeMap<Origin, Result<Draft, String>>,
    verdicts: BTreeMap<Origin, Verdict>,
    /// The file that is being read.
    reading: Option<PathBuf>,
    /// It is read to be opened.
    entering: bool,
    checking: Option<(u64, Origin)>,
}

/// Distinct requests that are listed.
const REQUESTS: usize = 20;
/// Jobs that are asked for to find them.
const JOBS: usize = 60;

impl Picker {
    /// The rows that are left: where from, name, words.
    fn rows(&self, desk: &Desk, recent: &[PathBuf]) -> Vec<(Origin, String)> {
        let browsed = self.browsed.as_ref();
        let all: Vec<(Origin, String)> = match self.source {
            Source::Files => {
                let found = browsed.into_iter().flat_map(|browsed| &browsed.files);
                let others = found.filter(|path| !recent.contains(path));
                recent
                    .iter()
                    .chain(others)
                    .map(|path| (Origin::File(path.clone()), desk.short(path)))
                    .collect()
            }
            Source::Templates => {
                let own = browsed.into_iter().flat_map(|browsed| &browsed.templates);
                let own = own.map(|path| {
                    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                    (Origin::OwnTemplate(path.clone()), format!("{name} (own)"))
                });
                TEMPLATES
                    .iter()
                    .map(|(name, _)| (Origin::Template(name), (*name).to_owned()))
                    .chain(own)
                    .collect()
            }
            Source::History => {
                let known = self.history.iter();
                known.filter_map(|origin| Some((origin.clone(), self.draft(origin)?.shown.clone()))).collect()
            }
        };
        let typed = self.list.field.text();
        let named = desk.named(typed).filter(|_| self.source == Source::Files).map(Origin::File);
        let named = named.filter(|origin| all.iter().all(|(other, _)| other != origin));
        let left = all.into_iter().filter(|(_, name)| fits(typed, name).is_some());
        left.chain(named.map(|origin| (origin, typed.to_owned()))).collect()
    }

    fn draft(&self, origin: &Origin) -> Option<&Draft> {
        self.drafts.get(origin).and_then(|draft| draft.as_ref().ok())
    }

    /// A verdict has come.
    pub(in crate::tui) fn judged(&mut self, serial: u64, verdict: Verdict) {
        if let Some((asked, origin)) = self.checking.take() {
            if asked == serial {
                self.verdicts.insert(origin, verdict);
            } else {
                self.checking = Some((asked, origin));
            }
        }
    }

    /// The request of an earlier job has come, or there is none.
    pub(in crate::tui) fn remembered(&mut self, file: Option<JobFile>) {
        self.asked = false;
        let Some(file) = file else { return };
        let draft = Draft::job(file);
        let twice = self.history.iter().any(|origin| {
            self.draft(origin).is_some_and(|known| known.text == draft.text && known.stem == draft.stem)
        });
        if !twice {
            self.history.push(draft.origin.clone());
            self.drafts.insert(draft.origin.clone(), Ok(draft));
        }
    }

    /// A file was read.
    pub(in crate::tui) fn read(&mut self, desk: &Desk, path: &Path, text: Result<Vec<u8>, String>) {
        if self.reading.as_deref() == Some(path) {
            self.reading = None;
        }
        let is_template =
            self.browsed.as_ref().is_some_and(|found| found.templates.iter().any(|t| t == path));
        let (origin, draft) = if is_template {
            let draft = text.map(|text| Draft::own_template(desk, path, text));
            (Origin::OwnTemplate(path.to_owned()), draft)
        } else {
            (Origin::File(path.to_owned()), text.map(|text| Draft::file(desk, path, text)))
        };
        self.drafts.insert(origin, draft);
    }

    /// The draft that was read to be opened.
    pub(in crate::tui) fn entered(&mut self, path: &Path) -> Option<Draft> {
        let origin = [Origin::File(path.to_owned()), Origin::OwnTemplate(path.to_owned())];
        if !std::mem::take(&mut self.entering) {
            return None;
        }
        origin.iter().find_map(|origin| self.draft(origin)).cloned()
    }

    /// What was asked gets no answer.
    pub(in crate::tui) fn lost(&mut self) {
        (self.checking, self.asked) = (None, false);
    }
}

/// Fetches what the row under the cursor lacks, one thing at a time.
pub(in crate::tui) fn go_on(ui: &mut Ui) -> Vec<UiCommand> {
    let Some(Overlay::Picker(mut picker)) = ui.overlay.take_if(|over| over.is_picker()) else {
        return Vec::new();
    };
    let out = step(ui, &mut picker);
    ui.overlay = Some(Overlay::Picker(picker));
    out
}

fn step(ui: &mut Ui, picker: &mut Picker) -> Vec<UiCommand> {
    for (name, kind) in TEMPLATES {
        picker
            .drafts
            .entry(Origin::Template(name))
            .or_insert_with(|| Ok(Draft::template(&ui.flows.desk, name, kind)));
    }
    let mut out = Vec::new();
    let rows = picker.rows(&ui.flows.desk, &ui.flows.recent);
    let chosen = rows.get(picker.list.at.min(rows.len().saturating_sub(1))).map(|(origin, _)| origin.clone());
    match chosen {
        Some(Origin::File(path) | Origin::OwnTemplate(path))
            if !picker.drafts.contains_key(&Origin::File(path.clone()))
                && !picker.drafts.contains_key(&Origin::OwnTemplate(path.clone()))
                && picker.reading.is_none() =>
        {
            picker.reading = Some(path.clone());
            out.push(UiCommand::Errand(Errand::Read(path)));
        }
        Some(origin)
            if !picker.verdicts.contains_key(&origin) && picker.checking.is_none() && ui.connected() =>
        {
            if let Some(draft) = picker.draft(&origin) {
                let (serial, ask) = draft.check(ui, Overrides::default());
                picker.checking = Some((serial, origin));
                out.push(ask);
            }
        }
        Some(_) | None => {}
    }
    let looks = picker.source == Source::History && !picker.asked && picker.history.len() < REQUESTS;
    if looks
        && ui.connected()
        && let Some(job) = picker.asking.as_mut().and_then(Vec::pop)
    {
        picker.asked = true;
        out.push(ask_file(job, FileFor::History));
    }
    out
}

pub(super) fn update(
    ui: &mut Ui,
    snap: &Snapshot,
    mut picker: Box<Picker>,
    action: &Action,
) -> Vec<UiCommand> {
    let rows = picker.rows(&ui.flows.desk, &ui.flows.recent);
    let turned = match action {
        Action::NextButton => Some(1),
        Action::PreviousButton => Some(2),
        _ => None,
    };
    if let Some(by) = turned {
        picker.source = picker.source.turned(by);
        picker.list.at = 0;
        if picker.source == Source::History && picker.asking.is_none() {
            picker.asking = Some(newest(snap));
        }
    } else if let Chosen::Row(at) = picker.list.update(action, rows.len()) {
        return enter(ui, picker, rows.get(at).map(|(origin, _)| origin));
    }
    ui.overlay = Some(Overlay::Picker(picker));
    go_on(ui)
}

/// The last jobs, the newest last.
fn newest(snap: &Snapshot) -> Vec<JobId> {
    let mut jobs: Vec<JobId> = snap.jobs.iter().chain(&snap.history).map(|row| row.id).collect();
    jobs.sort_unstable();
    jobs.split_off(jobs.len().saturating_sub(JOBS))
}

fn enter(ui: &mut Ui, mut picker: Box<Picker>, origin: Option<&Origin>) -> Vec<UiCommand> {
    match origin {
        // As it is now, not as it was when it was previewed.
        Some(Origin::File(path) | Origin::OwnTemplate(path)) => {
            if let Some(Err(why)) = origin.and_then(|origin| picker.drafts.get(origin)) {
                ui.say(Level::Warning, why.clone(), None);
            }
            picker.entering = true;
            picker.reading = Some(path.clone());
            ui.overlay = Some(Overlay::Picker(picker));
            vec![UiCommand::Errand(Errand::Read(path.clone()))]
        }
        Some(origin) => {
            let Some(draft) = picker.draft(origin).cloned() else {
                ui.overlay = Some(Overlay::Picker(picker));
                return Vec::new();
            };
            review::open(ui, draft, Some(picker))
        }
        None => {
            ui.overlay = Some(Overlay::Picker(picker));
            Vec::new()
        }
    }
}

pub(super) fn paint(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, picker: &Picker) {
    let popup = middle(area, area.width.saturating_sub(4).clamp(30, 150), tallest(area));
    c.clear(popup);
    let foot = "Tab: other source   Enter: take it   Esc: close";
    let inner = c.frame(popup, &[("New job", Role::Title)], &[(foot, Role::Dim)], true);
    let mut x = inner.x + 1;
    for (source, name) in Source::ALL {
        let (text, role) = if source == picker.source {
            (format!("[{name}]"), Role::Title)
        } else {
            (format!(" {name} "), Role::Dim)
        };
        x = c.pieces(
            Rect { x, width: inner.right().saturating_sub(x), ..inner },
            0,
            &[(&text, role), (" ", role)],
        );
    }
    let prompt = " find ";
    let field = &picker.list.field;
    c.pieces(inner, 1, &[(prompt, Role::KeyHint), (field.text(), Role::Input)]);
    let body = Rect { y: inner.y + 2, height: inner.height.saturating_sub(2), ..inner };
    let (list, preview) = split(body);
    let rows = picker.rows(&v.ui.flows.desk, &v.ui.flows.recent);
    names(c, list, picker, &rows);
    let chosen = rows.get(picker.list.at.min(rows.len().saturating_sub(1)));
    if let Some((origin, _)) = chosen {
        if list.width < body.width {
            let bar = c.vertical();
            for y in 0..body.height {
                c.text(Rect { x: list.right(), width: 1, ..body }, y, bar, Role::Border);
            }
        }
        show(c, preview, picker, origin);
    }
    let x = inner.x + (width(prompt) + width(field.before())) as u16;
    c.cursor = Some((x.min(inner.right().saturating_sub(1)), inner.y + 1, true));
}

/// The list beside the preview, or above it.
const fn split(body: Rect) -> (Rect, Rect) {
    if body.width >= 70 {
        let columns = body.width / 3;
        let list = Rect { width: columns, ..body };
        let preview = Rect { x: body.x + columns + 2, width: body.width - columns - 2, ..body };
        return (list, preview);
    }
    let height = body.height / 3;
    (Rect { height, ..body }, Rect { y: body.y + height, height: body.height - height, ..body })
}

fn names(c: &mut Canvas<'_>, list: Rect, picker: &Picker, rows: &[(Origin, String)]) {
    if rows.is_empty() {
        let text = match (picker.source, &picker.browsed) {
            _ if !picker.list.field.is_empty() => {
                "  Nothing has these letters. A path begins with / or ~/ or ./"
            }
            (Source::Files, None) => "  looking for *.yaml ...",
            (Source::Files, Some(_)) => "  No *.yaml below this folder.",
            (Source::Templates, _) => "  No template.",
            (Source::History, _) if picker.asked => "  ...",
            (Source::History, _) => "  Nothing was submitted yet.",
        };
        for (at, line) in wrap(text, list.width.into(), 2).iter().enumerate() {
            c.text(list, at as u16, line, Role::Dim);
        }
        return;
    }
    let at = picker.list.at.min(rows.len() - 1);
    let cut = picker.source == Source::Files && picker.browsed.as_ref().is_some_and(|found| found.cut);
    let height = usize::from(list.height).saturating_sub(usize::from(cut)).max(1);
    let top = rows::scrolled(0, at, height, rows.len());
    for (row, (_, name)) in rows.iter().enumerate().skip(top).take(height) {
        let y = (row - top) as u16;
        let mark = if row == at { "> " } else { "  " };
        let name = cut_middle(name, usize::from(list.width).saturating_sub(3));
        c.pieces(list, y, &[(mark, Role::Title), (&name, Role::Text)]);
        if row == at {
            c.cursor_row(list, y);
        }
    }
    if cut {
        c.text(list, list.height.saturating_sub(1), "  There are more: start it nearer.", Role::Dim);
    }
}

/// The verdict, then the text.
fn show(c: &mut Canvas<'_>, area: Rect, picker: &Picker, origin: &Origin) {
    let draft = match picker.drafts.get(origin) {
        Some(Ok(draft)) => draft,
        Some(Err(why)) => return c.text(area, 0, why, Role::ToastError),
        None => return c.text(area, 0, "...", Role::Dim),
    };
    let mut lines: Vec<(String, Role)> = match picker.verdicts.get(origin) {
        None => vec![("being checked ...".to_owned(), Role::Dim)],
        Some(Verdict::Unknown(why)) => vec![(format!("not checked: {why}"), Role::ToastWarn)],
        Some(Verdict::Bad(findings)) => verdict::lines(findings),
        Some(Verdict::Good(jobs, warnings)) => {
            let mut lines = vec![(format!("ok: {}", review::fate(jobs)), Role::ToastInfo)];
            lines.extend(verdict::lines(warnings));
            lines
        }
    };
    lines.push((String::new(), Role::Text));
    if let Origin::File(path) = origin {
        lines.push((format!("# {}", clean_line(&path.display().to_string())), Role::Dim));
    }
    lines.extend(draft.lines().into_iter().map(|line| (line, Role::Text)));
    verdict::paint(c, area, &lines, 0);
}
