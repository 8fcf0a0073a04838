//! `theme`: what there is, what a theme looks like, and whether it can be read by everybody.

use super::args::{ThemeAction, ThemeArgs};
use super::output::{Fit, Table, Tone};
use super::{CliError, Exit, Io, Setup, Shown};
use crate::tui::{
    self, Contrast, Depth, Distance, Glyphs, Listed, Need, Origin, Rank, Report, Role, Sight, Theme,
    ThemeError, sample,
};
use serde_json::{Value, json};

/// The depths at which a theme is measured; without colours there is nothing to measure.
const MEASURED: [Depth; 3] = [Depth::True, Depth::C256, Depth::C16];

pub(super) fn theme(args: &ThemeArgs, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    match &args.action {
        ThemeAction::List { json } => list(*json, setup, io),
        ThemeAction::Show { theme, color, json } => show(theme, *color, *json, setup, io),
        ThemeAction::Check { theme, json } => check(theme.as_deref(), *json, setup, io),
        ThemeAction::Preview { theme, color } => {
            let theme = load(theme, depth(*color, setup, io), setup, io)?;
            picture(&sample::dashboard(&theme, glyphs(setup)), *color, io)?;
            Ok(Exit::Ok)
        }
    }
}

fn list(json: bool, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let all = tui::list_themes(setup.theme_dir().as_deref());
    if json {
        let all: Vec<Value> = all.iter().map(listed).collect();
        io.json(&all)?;
        return Ok(Exit::Ok);
    }
    let chosen = setup.theme(None, || None);
    let columns = [
        ("THEME", Fit::Left),
        ("FOR", Fit::Left),
        ("SAFE FOR", Fit::Left),
        ("FROM", Fit::Left),
        ("ABOUT", Fit::End(20)),
    ];
    let mut table = Table::new(&columns);
    for theme in &all {
        let mark = if theme.name == chosen { " *" } else { "" };
        let tone = if theme.problem.is_some() { Tone::Bad } else { Tone::Plain };
        table.cell(format!("{}{mark}", theme.name), tone);
        table.cell(theme.variant.name(), Tone::Plain);
        table.cell(needs(&theme.safe_for), Tone::Plain);
        table.cell(if theme.origin == Origin::Bundled { "program" } else { "own" }, Tone::Plain);
        table.cell(theme.problem.as_deref().unwrap_or(&theme.about), tone);
    }
    table.print(io)?;
    if let Some(dir) = setup.theme_dir() {
        io.note(&format!("* is in use; your own themes go to {}", dir.display()));
    }
    Ok(Exit::Ok)
}

fn needs(needs: &[Need]) -> String {
    if needs.is_empty() {
        "-".to_owned()
    } else {
        needs.iter().map(|need| need.name()).collect::<Vec<_>>().join(" ")
    }
}

fn origin(origin: &Origin) -> Value {
    match origin {
        Origin::Bundled => Value::Null,
        Origin::File(path) => json!(path),
    }
}

fn listed(theme: &Listed) -> Value {
    json!({
        "name": theme.name,
        "about": theme.about,
        "variant": theme.variant.name(),
        "safe_for": theme.safe_for.iter().map(|need| need.name()).collect::<Vec<_>>(),
        "file": origin(&theme.origin),
        "problem": theme.problem,
    })
}

/// As many colours as were asked for, as the terminal has, or all where there is none.
fn depth(color: Option<Depth>, setup: &Setup, io: &Io<'_>) -> Depth {
    let environment = &setup.environment;
    let terminal = || {
        Depth::choose(&|name| match name {
            "TERM" => environment.term.clone(),
            "COLORTERM" => environment.colorterm.clone(),
            "NO_COLOR" => environment.no_color.then(|| "1".to_owned()),
            _ => None,
        })
    };
    color.unwrap_or_else(|| if io.width.is_some() { terminal() } else { Depth::True })
}

fn glyphs(setup: &Setup) -> Glyphs {
    if setup.environment.is_utf8() { Glyphs::Unicode } else { Glyphs::Ascii }
}

fn load(name: &str, depth: Depth, setup: &Setup, io: &mut Io<'_>) -> Result<Theme, CliError> {
    let theme = tui::load(name, setup.theme_dir().as_deref(), depth).map_err(|error| refused(&error))?;
    for warning in &theme.warnings {
        io.note(&format!("warning: {warning}"));
    }
    Ok(theme)
}

fn refused(error: &ThemeError) -> CliError {
    CliError::Refused { message: crate::model::chain(error) }
}

/// With its styles on a terminal, or where a depth was asked for; else its characters.
fn picture(buf: &ratatui::buffer::Buffer, color: Option<Depth>, io: &mut Io<'_>) -> Result<(), CliError> {
    io.show(&Shown::coloured(&tui::as_lines(buf), io.width.is_some() || color.is_some()))
}

fn show(
    name: &str,
    color: Option<Depth>,
    json: bool,
    setup: &Setup,
    io: &mut Io<'_>,
) -> Result<Exit, CliError> {
    let theme = load(name, depth(color, setup, io), setup, io)?;
    if json {
        io.json(&resolved(&theme))?;
        return Ok(Exit::Ok);
    }
    io.line(&format!("{}: {}", theme.name, theme.about))?;
    let from = match &theme.origin {
        Origin::Bundled => "part of the program".to_owned(),
        Origin::File(path) => path.display().to_string(),
    };
    let safe = if theme.safe_for.is_empty() {
        String::new()
    } else {
        format!(", safe for {}", needs(&theme.safe_for))
    };
    io.line(&format!(
        "for {} terminals{safe}; {from}; colours: {}",
        theme.variant.name(),
        theme.depth.name()
    ))?;
    io.gap()?;
    let width = io.width.map_or(u16::MAX, |width| u16::try_from(width).unwrap_or(u16::MAX));
    picture(&sample::roles(&theme, glyphs(setup), width), color, io)?;
    Ok(Exit::Ok)
}

fn resolved(theme: &Theme) -> Value {
    let roles = Role::ALL.iter().map(|role| {
        let style = theme.style(*role);
        let (section, name) = role.name();
        json!({
            "section": section,
            "role": name,
            "about": role.about(),
            "fg": style.fg.map(tui::colour_name),
            "bg": style.bg.map(tui::colour_name),
            "mod": tui::modifier_names(style.add_modifier),
            "at": theme.place(*role).map(ToString::to_string),
        })
    });
    json!({
        "name": theme.name,
        "about": theme.about,
        "variant": theme.variant.name(),
        "safe_for": theme.safe_for.iter().map(|need| need.name()).collect::<Vec<_>>(),
        "license": theme.license,
        "file": origin(&theme.origin),
        "depth": theme.depth.name(),
        "glyphs": theme.glyphs.map(Glyphs::name),
        "gauge_at": theme.gauge_at,
        "temp_at": theme.temp_at,
        "log_ansi": theme.log_ansi,
        "warnings": theme.warnings,
        "roles": roles.collect::<Vec<_>>(),
    })
}

/// A theme's name and what was measured, or why it cannot be.
struct Checked {
    name: String,
    report: Report,
    warnings: Vec<String>,
}

fn check(theme: Option<&str>, json: bool, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let dir = setup.theme_dir();
    let names = theme.map_or_else(
        || tui::list_themes(dir.as_deref()).into_iter().map(|listed| listed.name).collect(),
        |name| vec![name.to_owned()],
    );
    let all: Vec<Checked> = names.into_iter().map(|name| measured(name, setup)).collect();
    let failed = all.iter().any(|checked| !checked.report.faults.is_empty());
    if json {
        io.json(&all.iter().map(document).collect::<Vec<_>>())?;
    } else if theme.is_some() {
        all.iter().try_for_each(|checked| in_full(checked, io))?;
    } else {
        in_short(&all, io)?;
    }
    for checked in all.iter().filter(|_| !json) {
        checked.warnings.iter().for_each(|warning| io.note(&format!("warning: {warning}")));
        for fault in &checked.report.faults {
            io.line(&format!("{}: {fault}", checked.name))?;
        }
    }
    Ok(if failed { Exit::Failed } else { Exit::Ok })
}

fn measured(name: String, setup: &Setup) -> Checked {
    let dir = setup.theme_dir();
    let themes: Result<Vec<Theme>, ThemeError> =
        MEASURED.iter().map(|depth| tui::load(&name, dir.as_deref(), *depth)).collect();
    match themes {
        Ok(themes) => {
            let warnings = themes.first().map(|theme| theme.warnings.clone()).unwrap_or_default();
            Checked { name, report: tui::check_theme(&themes), warnings }
        }
        Err(error) => {
            let faults = vec![crate::model::chain(&error)];
            Checked { name, report: Report { faults, ..Report::default() }, warnings: Vec::new() }
        }
    }
}

fn verdict(report: &Report) -> (&'static str, Tone) {
    if report.faults.is_empty() { ("ok", Tone::Good) } else { ("FAILS", Tone::Bad) }
}

/// A line for each theme: the lowest figure of each kind.
fn in_short(all: &[Checked], io: &mut Io<'_>) -> Result<(), CliError> {
    let columns = [
        ("THEME", Fit::Left),
        ("TEXT", Fit::Right),
        ("2ND", Fit::Right),
        ("LINES", Fit::Right),
        ("CURSOR", Fit::Right),
        ("NORMAL", Fit::Right),
        ("PROTAN", Fit::Right),
        ("DEUTAN", Fit::Right),
        ("TRITAN", Fit::Right),
        ("", Fit::Left),
    ];
    let mut table = Table::new(&columns);
    for Checked { name, report, .. } in all {
        table.cell(name.as_str(), Tone::Plain);
        for rank in Rank::ALL {
            let lowest = report.contrasts.iter().filter(|one| one.rank == rank);
            let lowest = lowest.min_by(|a, b| a.ratio.total_cmp(&b.ratio));
            table.cell(lowest.map_or_else(|| "-".to_owned(), |one| format!("{:.1}", one.ratio)), Tone::Plain);
        }
        for sight in Sight::ALL {
            let least = report.distances.iter().filter(|one| one.sight == sight);
            let least = least.min_by(|a, b| a.distance.total_cmp(&b.distance));
            let tone = if least.is_some_and(|one| one.least.is_none()) { Tone::Dim } else { Tone::Plain };
            let text = least.map_or_else(
                || "-".to_owned(),
                |one| format!("{:.1}{}", one.distance, if one.least.is_some() { "" } else { "?" }),
            );
            table.cell(text, tone);
        }
        let (word, tone) = verdict(report);
        table.cell(word, tone);
    }
    table.print(io)?;
    io.note(
        "contrast as n:1, distance of the states' colours as CIE76; `?` is not promised, `-` is the terminal's own scheme",
    );
    Ok(())
}

/// Every figure of one theme.
fn in_full(Checked { name, report, .. }: &Checked, io: &mut Io<'_>) -> Result<(), CliError> {
    let columns = [
        ("MEASURE", Fit::Left),
        ("COLOURS", Fit::Right),
        ("FIGURE", Fit::Right),
        ("AT LEAST", Fit::Right),
        ("LOWEST", Fit::Left),
    ];
    let mut table = Table::new(&columns);
    for Contrast { rank, depth, ratio, least, role, .. } in &report.contrasts {
        let tone = if ratio < least { Tone::Bad } else { Tone::Plain };
        table.cell(format!("contrast of {}", rank.name()), tone);
        table.cell(depth.name(), Tone::Plain);
        table.cell(format!("{ratio:.2}"), tone);
        table.cell(format!("{least:.1}"), Tone::Plain);
        let (section, name) = role.name();
        table.cell(format!("[{section}] {name}"), Tone::Plain);
    }
    for Distance { sight, depth, distance, least, between: [a, b], .. } in &report.distances {
        let tone = if least.is_some_and(|least| *distance < least) { Tone::Bad } else { Tone::Plain };
        table.cell(format!("distance, {} eyes", sight.name()), tone);
        table.cell(depth.name(), Tone::Plain);
        table.cell(format!("{distance:.1}"), tone);
        table.cell(least.map_or_else(|| "no promise".to_owned(), |least| format!("{least:.0}")), Tone::Plain);
        table.cell(format!("{} / {}", a.name().1, b.name().1), Tone::Plain);
    }
    if report.contrasts.is_empty() && report.distances.is_empty() && report.faults.is_empty() {
        io.line("nothing to measure: the terminal's own scheme says what it looks like")?;
    } else if !report.contrasts.is_empty() || !report.distances.is_empty() {
        table.print(io)?;
    }
    io.line(&format!("{name}: {}", verdict(report).0))
}

fn document(Checked { name, report, warnings }: &Checked) -> Value {
    let contrasts = report.contrasts.iter().map(|one| {
        json!({
            "of": one.rank.name(), "depth": one.depth.name(), "ratio": one.ratio, "least": one.least,
            "section": one.role.name().0, "role": one.role.name().1, "at": one.at.as_ref().map(ToString::to_string),
        })
    });
    let distances = report.distances.iter().map(|one| {
        json!({
            "sight": one.sight.name(), "depth": one.depth.name(), "distance": one.distance, "least": one.least,
            "between": one.between.map(|role| role.name().1), "at": one.at.as_ref().map(ToString::to_string),
        })
    });
    json!({
        "name": name,
        "ok": report.faults.is_empty(),
        "contrasts": contrasts.collect::<Vec<_>>(),
        "distances": distances.collect::<Vec<_>>(),
        "faults": report.faults,
        "warnings": warnings,
    })
}
