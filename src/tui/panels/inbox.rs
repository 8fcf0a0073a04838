//! Job files that were seen: refused ones first, with what is wrong, where, and how to mend it.

use crate::protocol::{Diagnostic, InboxRow, InboxState, Severity};
use crate::tui::View;
use crate::tui::keys::Action;
use crate::tui::layout::Pane;
use crate::tui::look::canvas::Canvas;
use crate::tui::look::text::{cut_end, cut_middle, left, moment, width};
use crate::tui::look::theme::Role;
use crate::tui::overlay::{fix, verdict};
use crate::tui::rows;
use ratatui::layout::Rect;

/// Rows of the list on the inbox's own screen; the finding takes the rest.
pub(in crate::tui) const fn list_rows(inner: u16) -> u16 {
    if inner < 6 { inner } else { inner / 3 }
}

/// The list, and on the inbox's own screen the findings in the file under the cursor.
pub(in crate::tui) fn paint(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, (alone, focus): (bool, bool)) {
    if v.snap.inbox.is_empty() {
        crate::tui::panels::empty::inbox(c, area, v);
        return;
    }
    if !alone {
        pane(c, area, v, focus);
        return;
    }
    let files = rows::files(v.ui, v.snap);
    if files.is_empty() {
        crate::tui::panels::empty::hidden(c, area, v, Pane::Inbox);
        return;
    }
    let rows = list_rows(area.height);
    let list = Rect { height: rows, ..area };
    let top = v.top(Pane::Inbox, usize::from(rows), files.len());
    for (at, row) in files.iter().skip(top).take(rows.into()).enumerate() {
        let selected = v.ui.file.as_ref() == Some(&row.name);
        line(c, list, at as u16, (v, row, selected));
        c.spot(Rect { y: list.y + at as u16, height: 1, ..list }, Action::Select(Pane::Inbox, top + at));
        if selected {
            c.cursor_row(list, at as u16);
        }
    }
    let Some(row) = files.iter().find(|row| Some(&row.name) == v.ui.file.as_ref()) else { return };
    if rows < area.height {
        let below = Rect { y: area.y + rows, height: area.height - rows, ..area };
        let count = files.len();
        let shown = usize::from(rows).min(count.saturating_sub(top));
        let more = if shown < count {
            format!("{}-{} of {count} files", top + 1, top + shown)
        } else {
            String::new()
        };
        let more = [(more.as_str(), Role::Dim)];
        c.rule(below, 0, &[(&row.name, Role::Title)], if more[0].0.is_empty() { &[] } else { &more });
        let inner = Rect { y: below.y + 1, height: below.height - 1, ..below };
        let lines = verdict::fitted(&findings(v, row), usize::from(inner.width));
        let scroll = v.ui.top(Pane::Job).min(lines.len().saturating_sub(usize::from(inner.height)));
        for (at, (text, role)) in lines.iter().skip(scroll).take(inner.height.into()).enumerate() {
            c.text(inner, at as u16, text, *role);
        }
    }
}

/// Beside the queue: what is wrong with a refused file in a line of its own, as far as there is room.
fn pane(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, focus: bool) {
    let files = rows::files(v.ui, v.snap);
    let (count, height) = (files.len(), usize::from(area.height));
    let mut spare = height.saturating_sub(count);
    let top = v.top(Pane::Inbox, height, count);
    let mut at = 0;
    for (index, row) in files.into_iter().enumerate().skip(top) {
        if at >= area.height {
            break;
        }
        c.spot(Rect { y: area.y + at, height: 1, ..area }, Action::Select(Pane::Inbox, index));
        let selected = focus && v.ui.file.as_ref() == Some(&row.name);
        let cursor = if selected { ">" } else { " " };
        if let InboxState::Refused { diagnostics } = &row.state {
            let first = first_error(diagnostics);
            let place = first.map_or_else(String::new, |d| place(d, ":"));
            let what = first.map_or("refused", |d| d.message.as_str());
            let text = format!("!{cursor}{}{place}  {what}", row.name);
            c.text(area, at, &cut_end(&text, area.width.into()), Role::ToastError);
            if let Some(hint) = first.and_then(|d| d.hint.as_ref()).filter(|_| spare > 0) {
                let way = || format!("  {} mends it", v.ui.keys.way(&Action::Fix));
                let key = if fix::can(diagnostics) { way() } else { String::new() };
                let hint = cut_end(&format!("    {hint}{key}"), area.width.into());
                c.text(area, at + 1, &hint, Role::Text);
                spare -= 1;
                if selected {
                    c.cursor_row(area, at);
                }
                at += 2;
                continue;
            }
        } else {
            line(c, area, at, (v, row, selected));
        }
        if selected {
            c.cursor_row(area, at);
        }
        at += 1;
    }
}

fn first_error(diagnostics: &[Diagnostic]) -> Option<&Diagnostic> {
    diagnostics.iter().find(|d| d.severity == Severity::Error).or(diagnostics.first())
}

fn line(c: &mut Canvas<'_>, area: Rect, at: u16, (v, row, selected): (&View<'_>, &InboxRow, bool)) {
    let when = moment(row.at, v.now.wall_ms, &v.ui.tz);
    let name_columns = usize::from(area.width).saturating_sub(when.len() + 3) * 2 / 5;
    let name = left(&cut_middle(&row.name, name_columns), name_columns);
    let (mark, told, role) = match &row.state {
        InboxState::Refused { diagnostics } => {
            let first = first_error(diagnostics);
            let told = first.map_or_else(
                || "refused".to_owned(),
                |d| format!("{} {}", place(d, ""), d.message).trim_start().to_owned(),
            );
            let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
            let more = if errors > 1 { format!("  (+{})", errors - 1) } else { String::new() };
            ("!", format!("{told}{more}"), Role::ToastError)
        }
        InboxState::Waiting { why } => (" ", why.clone(), Role::Wait),
        InboxState::Accepted { jobs, warnings } => {
            let list: Vec<String> = jobs.iter().map(|id| format!("#{id}")).collect();
            let told = format!("-> {}", list.join(" "));
            if warnings.is_empty() {
                (" ", told, Role::Text)
            } else {
                (" ", format!("{told}  {} warning(s)", warnings.len()), Role::ToastWarn)
            }
        }
    };
    let first = format!("{mark}{}{when} {name} ", if selected { ">" } else { " " });
    let told = cut_end(&told, usize::from(area.width).saturating_sub(width(&first)));
    c.pieces(area, at, &[(&first, if mark == "!" { Role::ToastError } else { Role::Text }), (&told, role)]);
}

fn findings(v: &View<'_>, row: &InboxRow) -> Vec<(String, Role)> {
    match &row.state {
        InboxState::Refused { diagnostics } => {
            let mut lines = finding(diagnostics);
            let stays = "file left where it is; it is read again when you save it";
            if fix::can(diagnostics) {
                let key = v.ui.keys.way(&Action::Fix);
                lines.push((format!("{key} mends it in place, after showing how"), Role::KeyHint));
            }
            lines.push((stays.to_owned(), Role::Dim));
            lines.push((format!("in {}", v.ui.flows.desk.homely(&v.snap.scheduler.inbox)), Role::Dim));
            lines
        }
        InboxState::Waiting { why } => vec![(format!("not taken yet: {why}"), Role::Wait)],
        InboxState::Accepted { jobs, warnings } => {
            let list: Vec<String> = jobs.iter().map(|id| format!("#{id}")).collect();
            let open = v.ui.keys.way(&Action::Open);
            let mut lines = vec![(format!("accepted as {}   {open} opens", list.join(" ")), Role::Text)];
            lines.extend(finding(warnings));
            lines
        }
    }
}

/// Findings in the words that `check` and the file beside it have, an empty line after each.
fn finding(findings: &[Diagnostic]) -> Vec<(String, Role)> {
    let end = (!findings.is_empty()).then(|| (String::new(), Role::Text));
    verdict::lines(findings).into_iter().chain(end).collect()
}

/// `7:3`; nothing where a mistake is nowhere in particular, as in an empty file.
fn place(d: &Diagnostic, before: &str) -> String {
    if d.line == 0 { String::new() } else { format!("{before}{}:{}", d.line, d.column) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_token() {
        let lines: Vec<String> = finding(&[Diagnostic {
            severity: Severity::Error,
            code: 1,
            message: "unknown field `gpu_count`".into(),
            file: "sweep.yaml".into(),
            line: 7,
            column: 3,
            width: 9,
            source: Some("  gpu_count: 2".into()),
            label: Some("not a field of request".into()),
            hint: Some("did you mean `gpus`?".into()),
            known: vec!["gpus".into(), "for".into()],
            fix: None,
        }])
        .into_iter()
        .map(|(text, _)| text)
        .collect();
        assert_eq!(
            lines,
            [
                "error: unknown field `gpu_count`",
                "  --> sweep.yaml:7:3",
                "   |",
                " 7 |   gpu_count: 2",
                "   |   ^^^^^^^^^ not a field of request",
                "   = hint: did you mean `gpus`?",
                "   = known fields: gpus for",
                "",
            ]
        );
    }
}
