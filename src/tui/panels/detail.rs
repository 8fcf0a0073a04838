//! One job on the whole screen: Summary, Log, Spec, Files, Events.

use crate::model::{Bytes, EndedBy, Uuid, Verdict, clean_line};
use crate::protocol::{AttemptRow, JobDetail, JobRow};
use crate::tui::View;
use crate::tui::keys::Action;
use crate::tui::look::canvas::{Canvas, Piece};
use crate::tui::look::text::{between, clock, duration, hours, moment, state, wrap};
use crate::tui::look::theme::Role;
use crate::tui::panels::life;
use crate::tui::panels::log;
use crate::tui::ui::{Opened, Tab};
use ratatui::layout::Rect;
use ratatui::text::Line;

/// `#144 eval-nightly  bo  RUN`.
pub(in crate::tui) fn title(row: &JobRow) -> (String, &'static str, Role) {
    let (word, role) = state(row);
    (format!("#{} {}  {}  ", row.id, row.name, row.user), word, role)
}

/// The tabs, the present one in brackets.
pub(in crate::tui) fn tabs(opened: &Opened) -> Vec<Piece<'static>> {
    let mut out = Vec::new();
    for tab in Tab::ALL {
        if tab == opened.tab {
            out.extend([("[", Role::Title), (tab.name(), Role::Title), ("]", Role::Title)]);
        } else {
            out.push((tab.name(), Role::Dim));
        }
        if Tab::ALL.last() != Some(&tab) {
            out.push((" ", Role::Dim));
        }
    }
    out
}

/// A click on a tab opens it.
pub(in crate::tui) fn tab_spots(c: &mut Canvas<'_>, row: Rect) {
    c.words(row, Tab::ALL.into_iter().map(|tab| (tab.name(), Action::ShowTab(tab))));
}

/// The tab that is open.
pub(in crate::tui) fn paint(c: &mut Canvas<'_>, area: Rect, v: &View<'_>, opened: &Opened) {
    let detail = v.ui.detail.as_ref().filter(|detail| detail.row.id == opened.job);
    let row = v.find(opened.job).or(detail.map(|detail| &detail.row));
    let Some(row) = row else {
        let text = format!("Job #{} is no longer listed. Esc goes back.", opened.job);
        c.text(area, 0, &text, Role::Dim);
        return;
    };
    if opened.tab == Tab::Log {
        log::paint(c, area, v, row);
        return;
    }
    let Some(lines) = texts(v, opened, area.width.into()) else {
        c.text(area, 0, "Asking the scheduler.", Role::Dim);
        return;
    };
    let scroll = opened.scroll.min(lines.len().saturating_sub(usize::from(area.height).max(1)));
    for (at, (text, role)) in lines.into_iter().skip(scroll).take(area.height.into()).enumerate() {
        match &v.ui.log.search {
            Some(pattern) => {
                let line = Line::styled(text, c.theme.style(role));
                let line = pattern.mark(line, c.theme.style(Role::Search));
                c.line(area, at as u16, &line);
            }
            None => c.text(area, at as u16, &text, role),
        }
    }
}

/// The lines of a tab in so many columns, if they are there: for scrolling and searching too.
pub(in crate::tui) fn texts(v: &View<'_>, opened: &Opened, columns: usize) -> Option<Vec<(String, Role)>> {
    let detail = v.ui.detail.as_ref().filter(|detail| detail.row.id == opened.job);
    if opened.tab == Tab::Summary {
        let row = v.find(opened.job).or(detail.map(|detail| &detail.row))?;
        return Some(life::lines(v, row, columns));
    }
    Some(lines(v, detail?, opened.tab, columns))
}

/// The lines of a tab in so many columns: what is long goes on below.
fn lines(v: &View<'_>, detail: &JobDetail, tab: Tab, columns: usize) -> Vec<(String, Role)> {
    let whole = match tab {
        Tab::Summary | Tab::Log => Vec::new(),
        Tab::Spec => spec(&detail.spec).into_iter().map(|line| (line, Role::Text)).collect(),
        Tab::Files => files(v, detail),
        Tab::Events => events(v, detail),
    };
    let fitted = |(text, role): (String, Role)| {
        let indent = text.len() - text.trim_start().len() + 2;
        wrap(&text, columns, indent).into_iter().map(move |line| (line, role))
    };
    whole.into_iter().flat_map(fitted).collect()
}

fn files(v: &View<'_>, detail: &JobDetail) -> Vec<(String, Role)> {
    let folder = format!("in {}", v.ui.flows.desk.homely(&detail.row.directory.join("output")));
    let mut out = vec![(folder, Role::Dim)];
    if !detail.outputs.is_empty() {
        out.push(("     SIZE  KIND     FILE  BLAKE3".to_owned(), Role::Title));
    }
    if detail.outputs.is_empty() {
        let done = detail.row.done_at.is_some();
        let text = if done {
            "Nothing came back."
        } else {
            "Nothing has come back yet: output is collected when the run ends."
        };
        out.push((text.to_owned(), Role::Text));
    }
    let total: u64 = detail.outputs.iter().map(|(_, file)| file.bytes.0).sum();
    for (task, file) in &detail.outputs {
        let task = if detail.row.tasks.total > 1 { format!("task {task}  ") } else { String::new() };
        let partial = if file.partial { "  partial" } else { "" };
        // The whole of it where there is room: it is what one compares with.
        let digits = if v.ui.size.0 >= 110 { 64 } else { 16 };
        let hash = file.blake3.get(..digits).unwrap_or(&file.blake3);
        let kind = format!("{:?}", file.kind).to_lowercase();
        let size = file.bytes.to_string();
        let text = format!("{task}{size:>9}  {kind:<8} {}  {hash}{partial}", file.path.display());
        out.push((text, if file.partial { Role::ToastWarn } else { Role::Text }));
    }
    if detail.outputs.len() > 1 {
        out.push((format!("{:>9}  in {} files", Bytes(total).to_string(), detail.outputs.len()), Role::Dim));
    }
    out
}

fn events(v: &View<'_>, detail: &JobDetail) -> Vec<(String, Role)> {
    let mut out = Vec::new();
    let mut before = None;
    for (at, step) in detail.steps.iter().enumerate() {
        let mark = life::steps(&detail.row).get(at).map_or("[ ]", |(mark, _)| mark.shown().0);
        let Some(when) = step.at else {
            out.push((format!("{mark} {:<8} -", step.step), Role::Dim));
            continue;
        };
        let delta =
            before.map_or_else(String::new, |before| format!("  +{}", duration(between(before, when))));
        let day = moment(when, v.now.wall_ms, &v.ui.tz);
        let day = day.rsplit_once(' ').map_or_else(String::new, |(day, _)| format!("{day} "));
        let text = format!("{mark} {:<8} {day}{}{delta}", step.step, clock(when, &v.ui.tz));
        out.push((text, Role::Text));
        before = Some(when);
    }
    for attempt in &detail.attempts {
        out.extend(attempt_lines(v, detail, attempt));
    }
    out.extend(detail.warnings.iter().map(|text| (format!("warning: {text}"), Role::ToastWarn)));
    out.extend(detail.notes.iter().map(|text| (format!("note: {text}"), Role::Text)));
    out
}

/// An attempt: its lease and devices, its moments, what it held, how it ended, and the proof of release.
fn attempt_lines(v: &View<'_>, detail: &JobDetail, attempt: &AttemptRow) -> Vec<(String, Role)> {
    let task = if detail.row.tasks.total > 1 { format!(" of task {}", attempt.task) } else { String::new() };
    let lease = attempt.lease.map_or_else(|| "  no lease".to_owned(), |lease| format!("  lease {lease}"));
    let on: Vec<String> = attempt.devices.iter().map(|uuid| device(v, uuid)).collect();
    let on = if on.is_empty() { String::new() } else { format!(" on {}", on.join(", ")) };
    let mut out = vec![(format!("attempt {}{task}{lease}{on}", attempt.attempt), Role::Title)];
    let moments = [
        ("granted", attempt.granted),
        ("started", attempt.started),
        ("ended", attempt.ended),
        ("returned", attempt.returned),
    ];
    let moments: Vec<String> = moments
        .iter()
        .filter_map(|(word, at)| Some(format!("{word} {}", clock(at.as_ref()?.wall_ms, &v.ui.tz))))
        .collect();
    if !moments.is_empty() {
        out.push((format!("  {}", moments.join("  ")), Role::Text));
    }
    let held = attempt.held.map_or_else(String::new, |held| format!("{}  ", duration(held)));
    let waived = if attempt.waived { ", not billed" } else { "" };
    out.push((format!("  held {held}{} GPU-h{waived}", hours(attempt.gpu_ms)), Role::Text));
    if let Some(enforcement) = &attempt.enforcement {
        out.push((format!("  limits: {}", clean_line(&enforcement.to_string())), Role::Text));
    }
    if let Some(outcome) = &attempt.outcome {
        let role = if outcome.is_success() { Role::Text } else { Role::Fail };
        out.push((format!("  ended: {outcome}"), role));
    }
    out.extend(release(attempt));
    out
}

/// The index of a device today, or its identity if it is not listed any more.
fn device(v: &View<'_>, uuid: &Uuid) -> String {
    let gpu = v.snap.gpus.iter().find(|gpu| gpu.uuid == *uuid);
    gpu.map_or_else(|| uuid.0.clone(), |gpu| format!("gpu {}", gpu.index))
}

fn release(attempt: &AttemptRow) -> Option<(String, Role)> {
    attempt.lease?;
    let end = match attempt.ended_by {
        None if attempt.ended.is_none() => return Some(("  release: still held".to_owned(), Role::Dim)),
        None => "",
        Some(EndedBy::Proven) => "every process was seen to be gone; ",
        Some(EndedBy::AfterKill) => "some process did not answer its kill; ",
        Some(EndedBy::Estimated) => "nobody saw the end, the last sign of life counts; ",
    };
    Some(match &attempt.verdict {
        None => (format!("  release: {end}the devices are being proven clean"), Role::Dim),
        Some(Verdict::Clean) => (format!("  release: {end}the devices came back clean"), Role::Text),
        Some(Verdict::Quarantined { detail }) => {
            (format!("  release: {end}in quarantine: {detail}"), Role::ToastWarn)
        }
    })
}

/// The spec as the job file would say it, in the file's order.
fn spec(value: &serde_json::Value) -> Vec<String> {
    const ORDER: [&str; 8] = ["name", "project", "work", "data", "request", "output", "output_to", "notify"];
    let mut out = Vec::new();
    let Some(map) = value.as_object() else {
        yaml(value, 0, &mut out);
        return out;
    };
    let known = ORDER.iter().filter_map(|key| map.get_key_value(*key));
    let others = map.iter().filter(|(key, _)| !ORDER.contains(&key.as_str()));
    for (key, value) in known.chain(others) {
        let one = serde_json::Map::from_iter([(key.clone(), value.clone())]);
        yaml(&serde_json::Value::Object(one), 0, &mut out);
    }
    out
}

fn yaml(value: &serde_json::Value, depth: usize, out: &mut Vec<String>) {
    use serde_json::Value as V;
    let pad = "  ".repeat(depth);
    match value {
        V::Object(map) => {
            for (key, value) in map {
                match value {
                    V::Object(inner) if !inner.is_empty() => {
                        out.push(format!("{pad}{key}:"));
                        yaml(value, depth + 1, out);
                    }
                    V::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
                        out.push(format!("{pad}{key}:"));
                        yaml(value, depth + 1, out);
                    }
                    V::String(text) if text.contains('\n') => {
                        out.push(format!("{pad}{key}: |"));
                        out.extend(text.lines().map(|line| format!("{pad}  {line}")));
                    }
                    other => out.push(format!("{pad}{key}: {}", flat(other))),
                }
            }
        }
        V::Array(items) => {
            for item in items {
                let mut inner = Vec::new();
                yaml(item, 0, &mut inner);
                for (at, line) in inner.into_iter().enumerate() {
                    out.push(format!("{pad}{} {line}", if at == 0 { "-" } else { " " }));
                }
            }
        }
        other => out.push(format!("{pad}{}", flat(other))),
    }
}

fn flat(value: &serde_json::Value) -> String {
    use serde_json::Value as V;
    match value {
        V::String(text) => text.clone(),
        V::Array(items) => format!("[{}]", items.iter().map(flat).collect::<Vec<_>>().join(", ")),
        V::Object(map) => {
            let inner: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}: {}", flat(value))).collect();
            format!("{{{}}}", inner.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_spec_reads_like_a_job_file() {
        let spec = serde_json::json!({
            "work": {"run": "set -e\npython a.py", "env": {"A": "1"}},
            "data": [{"from": "/d", "as": "d"}, "/e"],
            "request": {"gpus": 2, "for": "6h", "gpu_model": ["a100", "h100"]},
            "output": []
        });
        let text = super::spec(&spec).join("\n");
        assert!(text.starts_with("work:") && text.ends_with("output: []"), "{text}");
        for part in
            ["output: []", "  gpu_model: [a100, h100]", "  run: |\n    set -e\n    python a.py", "    A: 1"]
        {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
