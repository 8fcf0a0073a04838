//! `doctor`: what the scheduler and its jobs have to live with on this machine, and what to do about it. Changes nothing.
//!
//! `probe` gathers facts, `judge` makes findings of them, and this file prints those.

mod facts;
mod finding;
mod judge;
mod probe;

use super::escapes::Shown;
use super::output::Tone;
use super::{CliError, Exit, Io, Setup};
use crate::protocol::json::SCHEMA;
use finding::{Finding, Level};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

/// Columns where there is no terminal to ask.
const WIDTH: usize = 80;
/// Longer lines are hard to read, however wide the terminal.
const WIDEST: usize = 100;
/// Where the text begins.
const INDENT: usize = 15;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    version: &'static str,
    ok: usize,
    warn: usize,
    fail: usize,
    findings: &'a [Finding],
}

pub(super) fn doctor(json: bool, setup: &Setup, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let facts = probe::facts(setup);
    let findings = judge::judge(&facts);
    if json {
        io.json(&document(&findings))?;
    } else {
        let account = format!("{} (uid {})", facts.account.user, facts.account.uid);
        io.line(&format!(
            "overnight {} on {}, as {account}",
            facts.program.version,
            crate::config::hostname()
        ))?;
        print(&findings, io)?;
    }
    Ok(exit(&findings))
}

fn document(findings: &[Finding]) -> Document<'_> {
    let of = |level| findings.iter().filter(|finding| finding.level == level).count();
    Document {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        ok: of(Level::Ok),
        warn: of(Level::Warn),
        fail: of(Level::Fail),
        findings,
    }
}

fn exit(findings: &[Finding]) -> Exit {
    let failed = |finding: &&Finding| finding.level == Level::Fail;
    if findings.iter().filter(failed).any(|finding| finding.unusable) {
        Exit::State
    } else if findings.iter().any(|finding| failed(&finding)) {
        Exit::Failed
    } else {
        Exit::Ok
    }
}

/// The worst at the end, where the prompt is.
fn print(findings: &[Finding], io: &mut Io<'_>) -> Result<(), CliError> {
    let levels =
        [(Level::Ok, "ok", Tone::Good), (Level::Warn, "warn", Tone::Busy), (Level::Fail, "fail", Tone::Bad)];
    for (level, word, tone) in levels {
        let of: Vec<&Finding> = findings.iter().filter(|finding| finding.level == level).collect();
        if of.is_empty() {
            continue;
        }
        io.gap()?;
        let mut line = Shown::default();
        coloured(&mut line, word, tone, io);
        line.end_line();
        io.show(&line)?;
        for finding in of {
            paragraph(finding.what, &finding.found, Tone::Plain, io)?;
            if let Some(todo) = &finding.todo {
                paragraph("", &format!("do: {todo}"), Tone::Dim, io)?;
            }
        }
    }
    let Document { ok, warn, fail, .. } = document(findings);
    let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    io.gap()?;
    io.line(&format!("{ok} ok, {}, {}", plural(warn, "warning"), plural(fail, "failure")))
}

/// The subject, and beside it lines no wider than the terminal.
fn paragraph(what: &str, text: &str, tone: Tone, io: &mut Io<'_>) -> Result<(), CliError> {
    let columns = io.width.unwrap_or(WIDTH).min(WIDEST).saturating_sub(INDENT).max(20);
    for (at, part) in wrap(text, columns).into_iter().enumerate() {
        let mut line = Shown::default();
        let head = if at == 0 { what } else { "" };
        line.push(&format!("  {head:<width$}", width = INDENT - 2));
        coloured(&mut line, &part, tone, io);
        line.end_line();
        io.show(&line)?;
    }
    Ok(())
}

fn coloured(line: &mut Shown, text: &str, tone: Tone, io: &Io<'_>) {
    if io.colour && tone != Tone::Plain {
        line.tone(tone);
        line.push(text);
        line.tone(Tone::Plain);
    } else {
        line.push(text);
    }
}

/// Lines of whole words; a word that is longer than a line is cut where a path or a list has a joint, else anywhere.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut rest = word;
        let mut glue = true;
        while !rest.is_empty() {
            let line = lines.last_mut().map_or("", |line| line.as_str());
            let blank = usize::from(glue && !line.is_empty());
            let room = columns.saturating_sub(line.width() + blank);
            let (piece, after) = if rest.width() <= room {
                (rest, "")
            } else if rest.width() > columns {
                joint(rest, if room < columns / 3 { 0 } else { room })
            } else {
                ("", rest)
            };
            if piece.is_empty() && line.is_empty() {
                // One character wider than the line.
                let first = rest.chars().next().map_or(rest.len(), char::len_utf8);
                lines.push(rest[..first].to_owned());
                rest = &rest[first..];
            } else if piece.is_empty() {
                lines.push(String::new());
            } else if let Some(line) = lines.last_mut() {
                if blank == 1 {
                    line.push(' ');
                }
                line.push_str(piece);
                rest = after;
                glue = false;
            }
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// As much of a long word as fits, up to a `/` or a `:` if one is near.
fn joint(word: &str, room: usize) -> (&str, &str) {
    let mut end = 0;
    let mut joint = 0;
    let mut used = 0;
    for (at, c) in word.char_indices() {
        used += unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
        if used > room {
            break;
        }
        end = at + c.len_utf8();
        match c {
            '/' => joint = at,
            ':' | ',' => joint = end,
            _ => {}
        }
    }
    word.split_at(if joint * 2 > end { joint } else { end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_whole_words_and_long_paths_are_cut_at_a_joint() {
        assert_eq!(wrap("one two three four", 9), ["one two", "three", "four"]);
        assert_eq!(wrap("/usr/local/bin:/usr/bin:/bin", 16), ["/usr/local/bin:", "/usr/bin:/bin"]);
        assert_eq!(wrap("x", 5), ["x"]);
        assert_eq!(wrap("", 5), [""; 0]);
        let long = "a".repeat(50);
        assert_eq!(wrap(&long, 20).concat(), long);
        for columns in 1..40 {
            let text = "process 17 says \u{65e5}\u{672c}\u{8a9e} /a/very/long/path/with/many/parts and ends";
            let lines = wrap(text, columns);
            assert!(columns == 1 || lines.iter().all(|line| line.width() <= columns), "{columns}: {lines:?}");
            assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
        }
    }
}
