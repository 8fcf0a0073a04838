//! Looks over the raw lines before the parser does: tabs and odd blanks as indentation, fields without a blank.

use super::findings::{Findings, error};
use super::lines::{Part, glued, header, indent, key_of, odd_blank, parts};
use super::syntax::Draft;
use super::tree::Mark;
use std::collections::BTreeMap;

/// Lines with a wrong indentation that are mended before the rest is left to the parser.
const INDENTED: usize = 1000;
/// Lines that one mend may change.
const MENDED_LINES: u32 = 200;

impl Draft {
    /// What the parser says wrongly or not at all. Returns whether a line was mended.
    pub(super) fn prepass(&mut self, found: &mut Findings<'_>) -> bool {
        let suspicious = self.lines.iter().any(|line| {
            line.starts_with(|c: char| c == '\t' || odd_blank(c))
                || line.trim_start_matches(' ').starts_with(|c: char| c == '\t' || odd_blank(c))
                || glued(line).is_some()
        });
        if !suspicious {
            return false;
        }
        let parts = parts(&self.lines);
        let mut tabbed: Vec<(u32, String)> = Vec::new();
        let mut blanks: Vec<(u32, String)> = Vec::new();
        let mut glue = false;
        for (at, part) in parts.iter().enumerate() {
            let number = self.first + at as u32;
            let line = self.lines[at].clone();
            if line.trim().is_empty() {
                continue;
            }
            if tabbed.len() + blanks.len() > INDENTED {
                break;
            }
            let lead = line.chars().take_while(|c| *c == ' ' || *c == '\t' || odd_blank(*c));
            match part {
                Part::Tabbed(parent) => {
                    let rest = line.trim_start_matches(' ').trim_start_matches('\t');
                    tabbed.push((number, format!("{}{rest}", " ".repeat(parent + 2))));
                }
                Part::Free if lead.clone().any(odd_blank) => {
                    let width = lead.clone().count();
                    let rest: String = line.chars().skip(width).collect();
                    blanks.push((number, format!("{}{rest}", " ".repeat(width))));
                }
                Part::Free if lead.clone().any(|c| c == '\t') && !line.trim_start().starts_with('#') => {
                    let lead: String = lead.map(|c| if c == '\t' { "  " } else { " " }).collect();
                    tabbed.push((number, format!("{lead}{}", line.trim_start())));
                }
                Part::Free if self.continues(at) => {}
                Part::Free => glue |= self.glue(found, number),
                Part::Block | Part::Inside => {}
            }
        }
        self.many(found, &tabbed, true);
        self.many(found, &blanks, false);
        glue || !tabbed.is_empty() || !blanks.is_empty()
    }

    /// One finding for all lines with the same wrong indentation.
    fn many(&mut self, found: &mut Findings<'_>, lines: &[(u32, String)], tabs: bool) {
        let Some((number, _)) = lines.first() else { return };
        let others = if lines.len() > 1 { format!(" and {} more", lines.len() - 1) } else { String::new() };
        let source = found.line(*number);
        let lead = source.chars().take_while(|c| *c == ' ' || *c == '\t' || odd_blank(*c));
        let width = lead.clone().count() as u32;
        let mark = Mark { line: *number, column: 1, width };
        let finding = if tabs {
            let code = if source.starts_with('\t') && header_above(found, *number) { 27 } else { 26 };
            error(code, mark, format!("a tab indents line {number}{others}; YAML allows blanks only"))
                .hint("two blanks for it (your editor shows both alike)")
        } else {
            let odd = lead.clone().find(|c| odd_blank(*c)).map_or(0xA0, |c| c as u32);
            let name = if odd == 0xA0 { "a no-break space" } else { "an odd space" };
            error(31, mark, format!("line {number}{others} begins with {name} (U+{odd:04X})"))
                .hint("pasted from a web page? use blanks")
        };
        // The mend covers the lines between too, and no more than can be looked through.
        let last = lines.last().map_or(*number, |(last, _)| *last).min(number + MENDED_LINES);
        let new: BTreeMap<u32, &String> =
            lines.iter().take_while(|(line, _)| *line <= last).map(|(line, new)| (*line, new)).collect();
        let region = (*number..=last)
            .map(|at| new.get(&at).map_or_else(|| found.line(at).to_owned(), |new| (*new).clone()));
        let region = region.collect::<Vec<_>>().join("\n");
        let width = (*number..=last).map(|at| found.line(at).chars().count() + 1).sum::<usize>() - 1;
        found.add(finding.fix_at(Mark { line: *number, column: 1, width: width as u32 }, region));
        for (line, new) in lines {
            self.set(*line, new.clone());
            if tabs {
                found.mended(*line);
            }
        }
    }

    /// Whether a line goes on with the plain text of a field above it.
    fn continues(&self, at: usize) -> bool {
        let here = indent(&self.lines[at]);
        let above = self.lines.iter().take(at).rev().filter(|line| !line.trim().is_empty());
        let above = above.take(8).find(|line| key_of(line).is_some());
        above.is_some_and(|line| {
            indent(line) < here && key_of(line).is_some_and(|key| !key.value.trim().is_empty())
        })
    }

    /// `gpus:1` and `gpus=1`.
    fn glue(&mut self, found: &mut Findings<'_>, number: u32) -> bool {
        let line = self.line(number).to_owned();
        let Some((start, name, sign)) = glued(&line) else { return false };
        let value = &line[start + name.len() + 1..];
        let text = if sign == ':' {
            format!("no blank after `:`; `{name}:{}` is one word", value.trim())
        } else {
            "`=` is not YAML".to_owned()
        };
        let better = format!("{name}: {}", value.trim());
        let mark = Mark {
            line: number,
            column: start as u32 + 1,
            width: line.trim().trim_start_matches("- ").chars().count() as u32,
        };
        found.add(error(45, mark, text).hint(format!("`{better}`")).fix(better.clone()));
        found.mended(number);
        self.set(number, format!("{}{better}", &line[..start]));
        true
    }
}

/// Whether the nearest written line above opens a block of text.
fn header_above(found: &Findings<'_>, number: u32) -> bool {
    (1..number).rev().map(|at| found.line(at)).find(|line| !line.trim().is_empty()).is_some_and(header)
}
