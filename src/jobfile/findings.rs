//! Collects findings: at most a hundred, one for each place and cause, secrets masked, in file order at the end.

use super::tree::Mark;
use crate::model::clean_line;
use crate::protocol::{Diagnostic, Edit, Severity};
use std::collections::{BTreeMap, BTreeSet};

/// More findings than this help nobody.
const MOST: usize = 100;
/// A longer source line is not shown.
const SOURCE: usize = 2000;

/// One finding on its way into the list.
#[derive(Debug)]
pub(super) struct Finding {
    severity: Severity,
    code: u16,
    mark: Mark,
    message: String,
    label: Option<String>,
    hint: Option<String>,
    known: &'static [&'static str],
    fix: Option<(Mark, String)>,
    ours: Option<(String, String)>,
}

/// A reason to refuse the file.
pub(super) fn error(code: u16, mark: Mark, message: impl Into<String>) -> Finding {
    Finding {
        severity: Severity::Error,
        code,
        mark,
        message: message.into(),
        label: None,
        hint: None,
        known: &[],
        fix: None,
        ours: None,
    }
}

/// A reason to look at the file.
pub(super) fn warning(code: u16, mark: Mark, message: impl Into<String>) -> Finding {
    Finding { severity: Severity::Warning, ..error(code, mark, message) }
}

impl Finding {
    pub(super) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn known(mut self, known: &'static [&'static str]) -> Self {
        self.known = known;
        self
    }

    /// The mend is to write `text` in place of the token.
    pub(super) fn fix(self, text: impl Into<String>) -> Self {
        let mark = self.mark;
        self.fix_at(mark, text)
    }

    /// The mend is to write `text` in place of what is at `mark`.
    pub(super) fn fix_at(mut self, mark: Mark, text: impl Into<String>) -> Self {
        self.fix = Some((mark, text.into()));
        self
    }

    /// The finding is in another file, on the given line.
    pub(super) fn in_file(mut self, file: impl Into<String>, source: impl Into<String>) -> Self {
        self.ours = Some((file.into(), source.into()));
        self
    }
}

/// The findings of a file.
#[derive(Debug)]
pub(super) struct Findings<'a> {
    file: String,
    lines: Vec<&'a str>,
    list: Vec<Diagnostic>,
    /// Lines with a mistake in the YAML itself: nothing more is said about them.
    mended: BTreeSet<u32>,
    secrets: BTreeMap<u32, Vec<Mark>>,
}

impl<'a> Findings<'a> {
    pub(super) fn new(file: &str, text: &'a str) -> Self {
        Self {
            file: clean_line(file),
            lines: text.split('\n').collect(),
            list: Vec::new(),
            mended: BTreeSet::new(),
            secrets: BTreeMap::new(),
        }
    }

    pub(super) fn line(&self, line: u32) -> &'a str {
        (line as usize).checked_sub(1).and_then(|at| self.lines.get(at)).copied().unwrap_or("")
    }

    pub(super) fn line_count(&self) -> u32 {
        self.lines.len() as u32
    }

    pub(super) fn add(&mut self, finding: Finding) {
        if self.full()
            || (finding.ours.is_none() && self.mended.contains(&finding.mark.line))
            || self.list.iter().any(|d| {
                d.code == finding.code
                    && d.line == finding.mark.line
                    && d.column == finding.mark.column
                    && d.message == finding.message
            })
        {
            return;
        }
        let (file, source) = match finding.ours {
            Some((file, source)) => (clean_line(&file), Some(source)),
            None => {
                (self.file.clone(), (finding.mark.line > 0).then(|| self.line(finding.mark.line).to_owned()))
            }
        };
        let source = source
            .filter(|line| line.len() <= SOURCE && finding.mark.column > 0)
            .map(|line| clean_line(line.trim_end()));
        self.list.push(Diagnostic {
            severity: finding.severity,
            code: finding.code,
            message: short(&finding.message),
            file,
            line: finding.mark.line,
            column: finding.mark.column,
            width: finding.mark.width,
            source,
            label: finding.label.as_deref().map(short),
            hint: finding.hint.as_deref().map(short),
            known: finding.known.iter().map(ToString::to_string).collect(),
            fix: finding.fix.map(|(mark, text)| Edit {
                line: mark.line,
                column: mark.column,
                width: mark.width,
                text,
            }),
        });
    }

    /// Nothing more is said about this line.
    pub(super) fn mended(&mut self, line: u32) {
        self.mended.insert(line);
    }

    /// The text at `mark` is a secret: not shown in source lines.
    pub(super) fn secret(&mut self, mark: Mark) {
        self.secrets.entry(mark.line).or_default().push(mark);
    }

    /// The files named in findings are as many as the errors among them.
    pub(super) fn has_errors_since(&self, from: usize) -> bool {
        self.list.iter().skip(from).any(|d| d.severity == Severity::Error)
    }

    /// Nothing more is taken in.
    pub(super) fn full(&self) -> bool {
        self.list.len() >= MOST
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn since(&self, from: usize) -> Vec<Diagnostic> {
        let mut list: Vec<Diagnostic> = self.list.iter().skip(from).cloned().collect();
        self.mask(&mut list);
        sort(&mut list);
        list
    }

    pub(super) fn finish(self) -> Vec<Diagnostic> {
        self.since(0)
    }

    fn mask(&self, list: &mut [Diagnostic]) {
        for d in list.iter_mut().filter(|d| d.file == self.file) {
            let (Some(secrets), Some(source)) = (self.secrets.get(&d.line), &mut d.source) else { continue };
            let hidden =
                |column: u32| secrets.iter().any(|s| (s.column..s.column + s.width).contains(&column));
            *source =
                source.chars().zip(1..).map(|(c, column)| if hidden(column) { '•' } else { c }).collect();
        }
    }
}

/// File order; findings without a place last.
fn sort(list: &mut [Diagnostic]) {
    list.sort_by_key(|d| (d.line == 0, d.line, d.column, d.code));
}

/// One clean line of bounded length.
fn short(text: &str) -> String {
    let text = clean_line(text);
    if text.chars().count() <= 400 { text } else { text.chars().take(399).chain(['…']).collect() }
}
