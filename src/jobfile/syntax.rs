//! Explains mistakes in the YAML itself, which the parser says wrongly or not at all, and mends them in memory, so
//! that the rest of the document is checked in the same go. Each mended line has its one finding and no more.

use super::findings::{Findings, error};
use super::lines::{Key, Part, comment, indent, key_of, known, parts, single, split};
use super::paths::windows;
use super::tree::{Document, Mark, SyntaxError, Trouble, build};

/// Mistakes that are mended in one document before the rest is left unread.
const MENDS: usize = 24;
/// A larger document, in bytes, is not read so often.
const LARGE: usize = 64 << 10;

/// One document's lines while they are mended.
pub(super) struct Draft {
    pub(super) lines: Vec<String>,
    pub(super) first: u32,
}

/// Reads one document: its tree, with findings for what is not YAML.
pub(super) fn read(found: &mut Findings<'_>, text: &str, first: u32) -> Document {
    let mut draft = Draft { lines: text.split('\n').map(ToOwned::to_owned).collect(), first };
    let mut changed = draft.prepass(found);
    let mut mended;
    let mut text = text;
    // Each mend reads the document again.
    let mends = if text.len() > LARGE { MENDS / 8 } else { MENDS };
    for _ in 0..mends {
        if changed {
            mended = draft.lines.join("\n");
            text = &mended;
        }
        let (mut document, trouble) = build(text, first);
        let Some(trouble) = trouble else { return document };
        if trouble.kind == Trouble::Size {
            // Nobody wrote this by hand: looking through it would only cost.
            document.root = None;
        }
        changed = draft.explain(found, &trouble);
        if !changed {
            return document;
        }
    }
    Document { partial: true, ..Document::default() }
}

impl Draft {
    pub(super) fn line(&self, number: u32) -> &str {
        number.checked_sub(self.first).and_then(|at| self.lines.get(at as usize)).map_or("", String::as_str)
    }

    pub(super) fn set(&mut self, number: u32, line: String) {
        if let Some(old) = number.checked_sub(self.first).and_then(|at| self.lines.get_mut(at as usize)) {
            *old = line;
        }
    }

    /// Says what the parser's error means. Returns whether the line was mended.
    fn explain(&mut self, found: &mut Findings<'_>, trouble: &SyntaxError) -> bool {
        let at = Mark { line: trouble.line, column: trouble.column, width: 1 };
        match &trouble.kind {
            Trouble::Character(c) if matches!(c, '@' | '`' | '%') => return self.reserved(found, at, *c),
            Trouble::Colon => {
                if self.colon(found, at) {
                    return true;
                }
            }
            Trouble::Escape => {
                if self.escape(found, at) {
                    return true;
                }
            }
            Trouble::Other(_) | Trouble::Character(_) | Trouble::Bracket => {
                if self.bracket_start(found, at)
                    || self.hidden_bracket(found, at)
                    || self.open_bracket(found, at)
                {
                    return true;
                }
            }
            Trouble::Quote => return self.open_quote(found, at),
            Trouble::Tab | Trouble::Depth | Trouble::Size | Trouble::Directive => {}
        }
        found.add(plain(trouble, at, self.line(at.line)));
        false
    }

    /// `name: @x`, `%j` and backquotes.
    fn reserved(&mut self, found: &mut Findings<'_>, at: Mark, c: char) -> bool {
        let line = self.line(at.line).to_owned();
        let Some((before, rest)) = split(&line, at.column) else { return false };
        let flow = before.contains(['[', '{']);
        let end = if flow { rest.find([',', ']', '}']).unwrap_or(rest.len()) } else { comment(rest) };
        let value = rest[..end].trim_end();
        let quoted = single(value);
        let hint = match c {
            '%' if rest.starts_with("%j") => "quote it; `%j` is Slurm's",
            '`' if before.trim_start().starts_with("run:") => "quote it, or use `run: |` and a new line",
            _ => "quote it",
        };
        let mark = Mark { width: value.chars().count() as u32, ..at };
        found.add(
            error(57, mark, format!("a value cannot start with `{c}`"))
                .hint(format!("{hint}: {quoted}"))
                .fix(quoted.clone()),
        );
        found.mended(at.line);
        self.set(at.line, format!("{before}{quoted}{}", &rest[value.len()..]));
        true
    }

    /// `: ` inside a value, or a line at the wrong indentation.
    fn colon(&mut self, found: &mut Findings<'_>, at: Mark) -> bool {
        let line = self.line(at.line).to_owned();
        let Some(key) = key_of(&line) else { return false };
        let colon = key.column + key.text.chars().count();
        if at.column as usize <= colon + 1 {
            return self.indentation(found, at.line, &line, &key);
        }
        let value = key.value.trim_end();
        let start = line.len() - key.value.len();
        let value = &value[..comment(value)].trim_end();
        let column = line[..start].chars().count() as u32 + 1;
        let mark = Mark { line: at.line, column, width: value.chars().count() as u32 };
        let finding = error(58, at, "`: ` inside makes this a mapping");
        let finding = if key.text == "run" || key.text == "shell" {
            let indent = " ".repeat(indent(&line) + 2);
            finding
                .hint(format!("use `{}: |` and a new line", key.text))
                .fix_at(mark, format!("|\n{indent}{value}"))
        } else {
            finding.hint(format!("quote it: {}", single(value))).fix_at(mark, single(value))
        };
        found.add(finding);
        found.mended(at.line);
        self.set(at.line, format!("{}{}", &line[..start], single(value)));
        true
    }

    /// A field too far left or too far right.
    fn indentation(&mut self, found: &mut Findings<'_>, number: u32, line: &str, key: &Key<'_>) -> bool {
        let content = |from: u32, back: u32| {
            (self.first..from)
                .rev()
                .filter(|at| {
                    let line = self.line(*at).trim();
                    !line.is_empty() && !line.starts_with('#')
                })
                .nth(back as usize)
        };
        let Some(above) = content(number, 0) else { return false };
        let above_line = self.line(above).to_owned();
        let Some(above_key) = key_of(&above_line) else { return false };
        let (here, there) = (indent(line), indent(&above_line));
        if here <= there {
            return false;
        }
        let section = content(above, 0).map(|at| self.line(at).to_owned());
        if let Some(section) = section.as_deref().and_then(key_of)
            && section.value.trim().is_empty()
            && section.column == above_key.column
            && known(section.text)
        {
            let mark = Mark {
                line: above,
                column: above_key.column as u32 + 1,
                width: above_key.text.chars().count() as u32,
            };
            let lead = Mark { line: above, column: 1, width: there as u32 };
            found.add(
                error(46, mark, format!("`{}` belongs under `{}:`", above_key.text, section.text))
                    .hint("indent by two")
                    .fix_at(lead, " ".repeat(here)),
            );
            found.mended(above);
            let mended = format!("{}{}", " ".repeat(here), above_line.trim_start());
            self.set(above, mended);
            return true;
        }
        let mark =
            Mark { line: number, column: key.column as u32 + 1, width: key.text.chars().count() as u32 };
        found.add(
            error(47, mark, format!("`{}` is indented more than `{}`", key.text, above_key.text))
                .hint("same column")
                .fix_at(Mark { line: number, column: 1, width: here as u32 }, " ".repeat(there)),
        );
        let mut at = number;
        while indent(self.line(at)) >= here && !self.line(at).trim().is_empty() {
            let moved = self.line(at)[here - there..].to_owned();
            found.mended(at);
            self.set(at, moved);
            at += 1;
        }
        true
    }

    /// `"… \d …"`.
    fn escape(&mut self, found: &mut Findings<'_>, at: Mark) -> bool {
        let line = self.line(at.line).to_owned();
        let Some((before, rest)) = split(&line, at.column) else { return false };
        let mut bad = None;
        let mut end = None;
        let mut chars = rest.char_indices().skip(1);
        while let Some((place, c)) = chars.next() {
            match c {
                '\\' => {
                    if let Some((_, next)) = chars.next()
                        && !"0abt\tnvfre \"/\\N_LPxuU".contains(next)
                    {
                        bad.get_or_insert((place, next));
                    }
                }
                '"' => {
                    end = Some(place);
                    break;
                }
                _ => {}
            }
        }
        let (Some((place, c)), Some(end)) = (bad, end) else { return false };
        let content = &rest[1..end];
        let quoted = single(content);
        if windows(content) {
            let last = content.rsplit(['\\', '/']).find(|part| !part.is_empty()).unwrap_or("x");
            let mark = Mark { width: rest[..=end].chars().count() as u32, ..at };
            found.add(
                error(33, mark, format!("Windows path; and `\\{c}` in double quotes is an escape"))
                    .hint(format!("paths of this host: `/datasets/{last}`")),
            );
        } else {
            let column = at.column + rest[..place].chars().count() as u32;
            let whole = Mark { width: rest[..=end].chars().count() as u32, ..at };
            let mark = Mark { line: at.line, column, width: 2 };
            found.add(
                error(61, mark, format!("`\\{c}` in double quotes is a YAML escape"))
                    .hint("single quotes or `run: |`")
                    .fix_at(whole, quoted.clone()),
            );
        }
        found.mended(at.line);
        self.set(at.line, format!("{before}{quoted}{}", &rest[end + 1..]));
        true
    }

    /// A bracket that is still open where the next field begins.
    fn open_bracket(&mut self, found: &mut Findings<'_>, at: Mark) -> bool {
        let parts = parts(&self.lines);
        let index = at.line.saturating_sub(self.first) as usize;
        if parts.get(index) != Some(&Part::Inside) {
            return false;
        }
        let Some(start) =
            parts.get(..index).and_then(|before| before.iter().rposition(|part| *part == Part::Free))
        else {
            return false;
        };
        let line = self.lines[start].clone();
        let number = self.first + start as u32;
        let open = still_open(&line);
        let Some((column, c)) = open.first().copied() else { return false };
        let closing = closing(&open);
        let mark = Mark { line: number, column, width: 1 };
        found.add(
            error(92, mark, format!("`{c}` is not closed")).hint(format!("`{closing}` belongs to its end")),
        );
        let end = line[..comment(&line)].trim_end().to_owned();
        found.mended(number);
        self.set(number, format!("{end}{closing}"));
        // Only where what follows is a field of its own is the rest worth reading.
        parts.get(start + 1) == Some(&Part::Inside)
            && self.lines.get(start + 1).is_some_and(|next| key_of(next).is_some())
    }

    /// `{gpus: two #4, for: 1h}`: the `#` hides the end of the bracket.
    fn hidden_bracket(&mut self, found: &mut Findings<'_>, at: Mark) -> bool {
        let is_text = |number: &u32| {
            let line = self.line(*number).trim();
            !line.is_empty() && !line.starts_with('#')
        };
        let above = (self.first..at.line).rev().find(is_text);
        for number in [Some(at.line), above].into_iter().flatten() {
            let line = self.line(number).to_owned();
            let (head, hidden) = line.split_at(comment(&line));
            let open = still_open(head);
            let is_quoted = ['"', '\''].into_iter().any(|quote| head.matches(quote).count() % 2 == 1);
            if open.is_empty() || is_quoted || !hidden.contains([']', '}']) {
                continue;
            }
            let mark = Mark {
                line: number,
                column: head.chars().count() as u32 + 2,
                width: hidden.trim().chars().count() as u32,
            };
            let closing = closing(&open);
            found.add(
                error(
                    92,
                    mark,
                    format!("`#` begins a comment here, and the `{closing}` in it closes nothing"),
                )
                .hint("quote a text with a ` #`; a comment goes behind the bracket"),
            );
            found.mended(number);
            self.set(number, format!("{}{closing}", head.trim_end()));
            return true;
        }
        false
    }

    /// A quote without its end: the line is closed, and the rest read on.
    fn open_quote(&mut self, found: &mut Findings<'_>, at: Mark) -> bool {
        found.add(
            error(92, at, "a quote is not closed")
                .hint("quotes come in pairs; one inside text: put the other kind around it"),
        );
        let line = self.line(at.line).to_owned();
        let Some((before, rest)) = split(&line, at.column) else { return false };
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else { return false };
        let next = self.line(at.line + 1).to_owned();
        found.mended(at.line);
        // Within brackets the quote has their end in it.
        let closing = closing(&still_open(before));
        let text = rest.trim_end().trim_end_matches([']', '}']);
        let text = if closing.is_empty() { line.trim_end() } else { &line[..before.len() + text.len()] };
        self.set(at.line, format!("{text}{quote}{closing}"));
        key_of(&next).is_some()
    }

    /// `{seed}/x.pt`, `[0-9]*.png` and `*` at the start of a value.
    fn bracket_start(&mut self, found: &mut Findings<'_>, at: Mark) -> bool {
        let line = self.line(at.line).to_owned();
        let Some((before, _)) = split(&line, at.column) else { return false };
        let closing = before.chars().next_back();
        let (open, code) = match closing {
            Some('}') => ('{', 54),
            Some(']') => ('[', 55),
            _ => return false,
        };
        let Some(start) = before.rfind(open) else { return false };
        let lead = line[..start].trim_end();
        let flow = lead.ends_with(['[', ',']);
        if !flow && !lead.ends_with([':', '-']) && !lead.is_empty() {
            return false;
        }
        let rest = &line[start..];
        let behind = before.len() - start;
        let end = if flow {
            behind + rest[behind..].find([',', ']', '}']).unwrap_or(rest.len() - behind)
        } else {
            comment(rest)
        };
        let token = rest[..end].trim_end();
        if token.contains('"') {
            return false;
        }
        let mark = Mark {
            line: at.line,
            column: line[..start].chars().count() as u32 + 1,
            width: token.chars().count() as u32,
        };
        let quoted = format!("\"{token}\"");
        let finding = if code == 54 {
            error(54, mark, "a `{` at the start is a YAML mapping").hint(quoted.clone())
        } else {
            error(55, mark, "`[` at the start means something in YAML").hint(format!("quote it: {quoted}"))
        };
        found.add(finding.fix(quoted.clone()));
        found.mended(at.line);
        self.set(at.line, format!("{}{quoted}{}", &line[..start], &rest[token.len()..]));
        true
    }
}

/// The brackets that are still open at the end of a line, with their columns.
fn still_open(line: &str) -> Vec<(u32, char)> {
    let mut open: Vec<(u32, char)> = Vec::new();
    for (column, c) in line.chars().enumerate() {
        match c {
            '[' | '{' => open.push((column as u32 + 1, c)),
            ']' | '}' => {
                open.pop();
            }
            _ => {}
        }
    }
    open
}

/// What closes them.
fn closing(open: &[(u32, char)]) -> String {
    open.iter().rev().map(|(_, c)| if *c == '[' { ']' } else { '}' }).collect()
}

/// A mistake that has no better explanation.
fn plain(trouble: &SyntaxError, at: Mark, line: &str) -> super::findings::Finding {
    let beyond = at.column as usize > line.chars().count();
    let at = if beyond && at.column > 1 {
        Mark { column: (line.chars().count() as u32).max(1), ..at }
    } else {
        at
    };
    match &trouble.kind {
        Trouble::Tab => error(26, at, format!("a tab in line {}; YAML allows blanks only", at.line))
            .hint("two blanks for it (your editor shows both alike)"),
        Trouble::Depth => error(91, at, "nested deeper than 32 levels"),
        Trouble::Size => error(91, at, "more values than a job file may have"),
        Trouble::Quote => error(92, at, "a quote is not closed").hint("quotes come in pairs"),
        Trouble::Bracket => error(92, at, "a bracket is not closed").hint("`[` needs `]`, `{` needs `}`"),
        Trouble::Directive => error(92, at, "directives are not used here").hint("delete the line"),
        Trouble::Escape => error(61, at, "an escape in double quotes that YAML does not have")
            .hint("single quotes or `run: |`"),
        Trouble::Colon => {
            error(92, at, "`:` where no field can be").hint("is the line indented as the one above?")
        }
        Trouble::Character(c) => error(92, at, format!("`{c}` cannot stand here")).hint("quote the text"),
        Trouble::Other(words) => error(92, at, format!("not YAML: {words}"))
            .hint("is the line indented as the one above, and is every quote and bracket closed?"),
    }
}
