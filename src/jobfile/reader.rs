//! Walks the tree: opens sections, hands out fields, and says what is unknown, doubled, missing or of the wrong shape.

use super::fields::Section;
use super::findings::{Finding, Findings, error};
use super::tree::{Kind, Mark, Node};
use super::{Context, unknown};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// What reading one document needs.
pub(super) struct Reader<'a, 'b> {
    pub(super) cx: &'b Context<'b>,
    pub(super) found: &'b mut Findings<'a>,
    /// The parser gave up in this document: nothing is called missing.
    pub(super) partial: bool,
    /// Comments beside values.
    pub(super) comments: &'b [(Mark, String)],
    /// Names of the jobs in this file.
    pub(super) names: &'b BTreeSet<String>,
    /// `in` is given and could not be read: nothing is said about paths relative to it.
    pub(super) lost_dir: bool,
}

/// The fields of one section.
#[derive(Debug)]
pub(super) struct Fields<'t> {
    section: Section,
    entries: Vec<(&'static str, Field<'t>)>,
    asked: Cell<u32>,
}

/// One field: its key and its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'t> {
    pub(super) name: &'static str,
    pub(super) key: &'t Node,
    pub(super) value: &'t Node,
}

impl<'t> Fields<'t> {
    /// The field of that name.
    pub(super) fn get(&self, name: &'static str) -> Option<Field<'t>> {
        let at = self.section.fields.iter().position(|f| *f == name);
        debug_assert!(at.is_some(), "{name} is not in the table of {}", self.section.name);
        self.asked.set(self.asked.get() | at.map_or(0, |at| 1 << at));
        self.entries.iter().find(|(known, _)| *known == name).map(|(_, field)| *field)
    }

    /// Ends the section: every field of its table must have been asked for.
    pub(super) fn close(self) {
        debug_assert_eq!(
            self.asked.get().count_ones() as usize,
            self.section.fields.len(),
            "a field of {} is known and not read",
            self.section.name
        );
    }
}

impl Reader<'_, '_> {
    pub(super) fn add(&mut self, finding: Finding) {
        self.found.add(finding);
    }

    /// Opens a mapping: reports unknown and doubled fields. `None` if it is no mapping.
    pub(super) fn open<'t>(&mut self, node: &'t Node, section: Section) -> Option<Fields<'t>> {
        let Kind::Map { entries, .. } = &node.kind else {
            self.shape(node, section.name, "a mapping");
            return None;
        };
        Some(self.fields(entries.iter().map(|(key, value)| (key, value)), section))
    }

    /// Sorts entries into the fields of a section.
    pub(super) fn fields<'t>(
        &mut self,
        entries: impl Iterator<Item = (&'t Node, &'t Node)>,
        section: Section,
    ) -> Fields<'t> {
        let mut fields = Fields { section, entries: Vec::new(), asked: Cell::new(0) };
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        for (key, value) in entries {
            if self.found.full() {
                break;
            }
            let Some(text) = self.key(key) else { continue };
            if let Some(first) = seen.get(text) {
                self.add(
                    error(48, key.mark, format!("`{text}` twice, first in line {first}"))
                        .hint("keep one of them"),
                );
                continue;
            }
            seen.insert(text, key.mark.line);
            let known = section.fields.iter().find(|name| **name == text).copied();
            let name = known.or_else(|| unknown::field(self, key, text, section));
            if let Some(name) = name
                && !fields.entries.iter().any(|(other, _)| *other == name)
            {
                fields.entries.push((name, Field { name, key, value }));
            }
        }
        fields
    }

    /// A key's text; merge keys and aliases are refused.
    pub(super) fn key<'t>(&mut self, key: &'t Node) -> Option<&'t str> {
        match &key.kind {
            Kind::Text { value, .. } if value == "<<" => {
                self.add(error(56, key.mark, "merge keys are not used here").hint("write it twice"));
                None
            }
            Kind::Text { value, .. } => Some(value),
            Kind::Alias(_) => {
                self.add(alias(key.mark));
                None
            }
            Kind::Nothing | Kind::List { .. } | Kind::Map { .. } => {
                self.add(
                    error(92, key.mark, "a field name is a word")
                        .hint("quote text that starts with `{` or `[`"),
                );
                None
            }
        }
    }

    /// A scalar as written. Anything else is reported.
    pub(super) fn text<'t>(&mut self, field: Field<'t>) -> Option<&'t str> {
        match &field.value.kind {
            Kind::Text { value, .. } => Some(value),
            Kind::Nothing => {
                self.nothing(field);
                None
            }
            Kind::List { .. } | Kind::Map { .. } | Kind::Alias(_) => {
                self.shape(field.value, field.name, "text");
                None
            }
        }
    }

    /// A field without a value.
    pub(super) fn nothing(&mut self, field: Field<'_>) {
        let mark = if field.value.mark.width > 0 { field.value.mark } else { field.key.mark };
        self.add(
            error(36, mark, format!("{} has no value", field.name))
                .hint(format!("write a value, or leave `{}` out", field.name)),
        );
    }

    /// The items of a list; anything else is reported with the mend.
    pub(super) fn list<'t>(&mut self, field: Field<'t>, code: u16) -> Option<&'t [Node]> {
        match &field.value.kind {
            Kind::List { items, .. } => Some(items),
            Kind::Text { value, .. } => {
                let quoted = self.written(field.value.mark).unwrap_or_else(|| value.clone());
                let one = format!("[{quoted}]");
                self.add(
                    error(code, field.value.mark, format!("{} is a list", field.name))
                        .hint(format!("{}: {one}", field.name))
                        .fix(one),
                );
                None
            }
            Kind::Nothing => {
                let mark = if field.value.mark.width > 0 { field.value.mark } else { field.key.mark };
                let after = Mark {
                    column: field.key.mark.column + field.key.mark.width + 1,
                    width: 0,
                    ..field.key.mark
                };
                self.add(
                    error(36, mark, format!("{} has no value", field.name))
                        .hint(format!("no {0}: `{0}: []`", field.name))
                        .fix_at(after, " []"),
                );
                None
            }
            Kind::Map { .. } | Kind::Alias(_) => {
                self.shape(field.value, field.name, "a list");
                None
            }
        }
    }

    /// The file's own characters at a place within one line.
    pub(super) fn written(&self, mark: Mark) -> Option<String> {
        let line = self.found.line(mark.line);
        let text: String = line.chars().skip(mark.column as usize - 1).take(mark.width as usize).collect();
        (!text.is_empty()).then_some(text)
    }

    /// Says that a value has the wrong shape.
    pub(super) fn shape(&mut self, node: &Node, name: &str, wanted: &str) {
        let is = match &node.kind {
            Kind::Alias(_) => return self.add(alias(node.mark)),
            Kind::Nothing => "nothing",
            Kind::Text { .. } => "text",
            Kind::List { .. } => "a list",
            Kind::Map { .. } => "a mapping",
        };
        let mut finding = error(98, visible(node.mark), format!("{name} is {wanted}, not {is}"));
        if let Kind::Map { flow: true, .. } = node.kind {
            finding = finding.hint("a `{` at the start is a YAML mapping; quote text that starts with it");
        }
        self.add(finding);
    }

    /// One of several words.
    pub(super) fn word<T: Copy>(&mut self, field: Field<'_>, words: &[(&'static str, T)]) -> Option<T> {
        let text = self.text(field)?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let all: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        let lower = text.to_lowercase();
        let near = unknown::nearest(&lower, words.iter().map(|(word, _)| *word));
        let mut finding =
            error(93, field.value.mark, format!("{}: `{text}` is not one of {}", field.name, all.join(" ")));
        if let Some(near) = near {
            finding = finding.hint(format!("did you mean `{near}`?")).fix(near);
        }
        self.add(finding);
        None
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, field: Field<'_>) -> Option<bool> {
        let text = self.text(field)?;
        match text {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                self.add(
                    error(93, field.value.mark, format!("{}: `{text}` is not true or false", field.name))
                        .hint("write `true` or `false`"),
                );
                None
            }
        }
    }

    /// Says that a field is known and not built yet.
    pub(super) fn not_yet(&mut self, mark: Mark, what: &str, hint: &str) {
        self.add(error(89, visible(mark), format!("{what} is not supported yet")).hint(hint));
    }
}

/// Aliases have no place here.
pub(super) fn alias(mark: Mark) -> Finding {
    error(56, mark, "aliases are not used here")
        .hint("write it twice; text that starts with `*` or `&`: quote it")
}

/// A mark that can be seen: at least one character.
pub(super) fn visible(mark: Mark) -> Mark {
    Mark { width: mark.width.max(1), ..mark }
}
