//! Titles and feet: the boxes of the panes, and the line with the screens where there are no boxes.

use crate::tui::View;
use crate::tui::keys::Mode;
use crate::tui::layout::{self, Kind, Layout, Pane};
use crate::tui::look::canvas::{Canvas, Piece};
use crate::tui::look::text;
use crate::tui::look::theme::Role;
use crate::tui::panels::{detail, header, log, meter, statusline};
use crate::tui::ui::{Opened, Screen, Tab};
use crate::tui::{arrange, looks, rows, update};
use ratatui::layout::Rect;

/// The line between the header and the body in the layouts without boxes.
pub(in crate::tui) fn tabs(c: &mut Canvas<'_>, v: &View<'_>, layout: &Layout) {
    if layout.tabs.height == 0 {
        return;
    }
    if let Some(opened) = &v.ui.opened {
        opened_line(c, v, layout.tabs, opened);
        return;
    }
    if v.ui.typing && layout.message != layout.keys {
        let counted = statusline::counted(v, layout::filtered(v.ui));
        c.rule(layout.tabs, 0, &[], &[(&counted, Role::Title)]);
        let line = Rect { x: layout.tabs.x + 3, width: layout.tabs.width.saturating_sub(20), ..layout.tabs };
        statusline::filter(c, line, v);
        return;
    }
    let pane = layout::filtered(v.ui);
    let lists_jobs = matches!(pane, Pane::Queue | Pane::History);
    let (plain, role) = filtered(v, pane);
    let marks = if lists_jobs && layout.kind != Kind::Compact {
        update::marks::words(v.ui, v.snap, pane)
    } else {
        String::new()
    };
    let mut text = format!("{plain}{marks}");
    let more =
        if v.ui.screen == Screen::History && looks::has_further(v.ui, v.snap) { "  End: older" } else { "" };
    let mut names = header::screens(v, true);
    let columns: usize = names.iter().map(|(name, _)| text::width(name)).sum();
    let fits = columns + text::width(&text) + text::width(more) + 9 <= usize::from(layout.tabs.width);
    let is_filtered = !v.ui.filters.of(pane).is_empty();
    if is_filtered || lists_jobs && !fits {
        // A filtered list must not look like a short one: the filter goes before the names of the other screens.
        names.retain(|(name, role)| *role == Role::Title && name.starts_with('['));
    }
    if is_filtered {
        let columns: usize = names.iter().map(|(name, _)| text::width(name)).sum();
        let room = usize::from(layout.tabs.width).saturating_sub(columns + text::width(more) + 9);
        let short = format!("/{}  {}", v.ui.filters.of(pane).text().trim(), statusline::counted(v, pane));
        let wishes = [text, format!("{short}{marks}"), short];
        let fitting = wishes.iter().find(|wish| text::width(wish) <= room);
        text = fitting.cloned().unwrap_or_else(|| text::cut_end(&wishes[2], room));
    }
    let names: Vec<_> = names.iter().map(|(text, role)| (text.as_str(), *role)).collect();
    let tail = [(text.as_str(), role), (more, Role::Dim)];
    c.rule(layout.tabs, 0, &names, if text.is_empty() { &[] } else { &tail });
    header::spots(c, Rect { x: layout.tabs.x + 3, ..layout.tabs }, &names);
}

/// Which job is opened, where one is in its log, and its tabs; where there is little room the name goes first, then what is
/// said of the log, never the tabs.
fn opened_line(c: &mut Canvas<'_>, v: &View<'_>, area: Rect, opened: &Opened) {
    let (title, word, role) = opened_title(v, opened);
    let tabs = detail::tabs(opened);
    let log = if opened.tab == Tab::Log { log::title(v) } else { String::new() };
    let log = log.split_once("  wrap").map_or_else(String::new, |(place, _)| format!("  {place}"));
    let columns: usize = tabs.iter().map(|(text, _)| text::width(text)).sum();
    let room = usize::from(area.width).saturating_sub(columns + text::width(word) + 9);
    let for_title = room.saturating_sub(text::width(&log));
    let title = if text::width(&title) <= for_title {
        title
    } else {
        let name = title.trim_end().rsplit_once("  ").map_or(title.as_str(), |(name, _)| name);
        let number = format!("#{}  ", opened.job);
        if for_title < number.len() + 8 { number } else { text::cut_middle(name, for_title - 2) + "  " }
    };
    let log = text::cut_end(&log, room.saturating_sub(text::width(&title)));
    c.rule(area, 0, &[(&title, Role::Title), (word, role), (&log, Role::Dim)], &tabs);
    detail::tab_spots(c, area);
}

fn opened_title(v: &View<'_>, opened: &Opened) -> (String, &'static str, Role) {
    let detail = v.ui.detail.as_ref().map(|detail| &detail.row).filter(|row| row.id == opened.job);
    v.find(opened.job).or(detail).map_or_else(|| (format!("#{}", opened.job), "", Role::Dim), detail::title)
}

/// Whose jobs, in which order, and which of the rows: never silently.
fn filtered(v: &View<'_>, pane: Pane) -> (String, Role) {
    let jobs = matches!(pane, Pane::Queue | Pane::History);
    let who = if !jobs {
        ""
    } else if v.ui.mine {
        "mine  "
    } else {
        "all users  "
    };
    let order = if jobs { arrange::words(v.ui, pane) } else { String::new() };
    let filter = v.ui.filters.of(pane);
    // Beside the queue all devices are there.
    if filter.is_empty() || pane == Pane::Gpus && layout::foremost(v.ui) != Pane::Gpus {
        return (format!("{who}{order}"), Role::Dim);
    }
    let text = format!("{who}/{}  {}  {order}", filter.text().trim(), statusline::counted(v, pane));
    (text.trim_end().to_owned(), Role::Input)
}

const fn foot_of(rect: Rect) -> Rect {
    Rect { y: rect.y + rect.height.saturating_sub(1), height: 1, ..rect }
}

/// A pane's box with its title and foot.
pub(in crate::tui) fn boxed(c: &mut Canvas<'_>, v: &View<'_>, pane: Pane, rect: Rect, focus: bool) -> Rect {
    if let Some(opened) = &v.ui.opened {
        let (title, word, role) = opened_title(v, opened);
        let log = if opened.tab == Tab::Log {
            format!("  {}{}", log::title(v), log::length(v))
        } else {
            String::new()
        };
        let title = [(title.as_str(), Role::Title), (word, role), (&log, Role::Dim)];
        let inner = c.frame(rect, &title, &detail::tabs(opened), focus);
        detail::tab_spots(c, foot_of(rect));
        return inner;
    }
    if v.ui.typing && pane == layout::filtered(v.ui) {
        let inner = c.frame(rect, &[], &[(&statusline::counted(v, pane), Role::Title)], focus);
        let line = Rect { x: rect.x + 2, y: rect.y, width: rect.width.saturating_sub(4), height: 1 };
        statusline::filter(c, line, v);
        return inner;
    }
    if let (Pane::Job, Some(row)) = (pane, rows::companion(v.ui).and_then(|job| v.find(job))) {
        let (title, word, role) = detail::title(row);
        let tabs = detail::tabs(&Opened { job: row.id, tab: Tab::Summary, scroll: 0 });
        let inner = c.frame(rect, &[(&title, Role::Title), (word, role)], &tabs, focus);
        detail::tab_spots(c, foot_of(rect));
        return inner;
    }
    let (name, more, role) = title(v, pane, rect);
    let foot = foot(v, pane, rect);
    let foot: &[Piece<'_>] = if foot.is_empty() { &[] } else { &[(&foot, Role::Dim)] };
    let gap = if more.is_empty() { "" } else { "  " };
    c.frame(rect, &[(name, Role::Title), (gap, Role::Dim), (&more, role)], foot, focus)
}

/// A pane's name, and the most that can be said of it in a few words.
fn title(v: &View<'_>, pane: Pane, rect: Rect) -> (&'static str, String, Role) {
    let meter = &v.snap.meter;
    match pane {
        Pane::Queue | Pane::History => {
            let (text, role) = filtered(v, pane);
            (if pane == Pane::Queue { "Queue" } else { "History" }, text, role)
        }
        Pane::Gpus => {
            let (filter, role) = filtered(v, pane);
            let held = format!("{}/{} held", meter.gpus_held, meter.gpus_total);
            ("GPUs", if filter.is_empty() { held } else { filter }, role)
        }
        Pane::Meter => {
            let today = text::hours(header::today_gpu_ms(v));
            ("Meter", format!("{today} GPU-h today  +{}/h", meter::rate(v)), Role::Dim)
        }
        Pane::Inbox if !v.ui.filters.files.is_empty() => {
            let (filter, role) = filtered(v, pane);
            ("Inbox", filter, role)
        }
        Pane::Inbox => {
            let text = match rows::refused(v.snap) {
                0 => String::new(),
                1 => "1 bad file".to_owned(),
                bad => format!("{bad} bad files"),
            };
            ("Inbox", text, Role::ToastError)
        }
        Pane::Job => ("Job", String::new(), Role::Dim),
        Pane::Log => {
            let length = if rect.width >= 60 { log::length(v) } else { String::new() };
            ("Log", format!("{}{length}", log::title(v)), Role::Dim)
        }
    }
}

/// How many rows there are, or what can be pressed.
fn foot(v: &View<'_>, pane: Pane, rect: Rect) -> String {
    let files = rows::files(v.ui, v.snap).len();
    match pane {
        Pane::Queue => statusline::counted_marked(v, pane),
        Pane::History if v.ui.screen == Screen::History => statusline::counted_marked(v, pane),
        Pane::Log => log::keys(v, Mode::LogPane, usize::from(rect.width).saturating_sub(7)),
        Pane::Inbox if files > usize::from(rect.height.saturating_sub(2)) => format!("{files} files"),
        _ => String::new(),
    }
}
