//! Fields at the wrong level: one finding for all of them, with the lines moved as the mend.

use super::fields::{JobFile, RequestSection, WorkSection};
use super::findings::error;
use super::reader::Reader;
use super::tree::{Kind, Mark, Node};

/// A section that has to be written and the entries that go below it.
type Group<'l, 't> = (Option<&'l str>, &'l Vec<&'t (Node, Node)>);

/// Entries of the top level that belong into a section.
#[derive(Debug, Default)]
pub(super) struct Strays<'t> {
    pub(super) work: Vec<&'t (Node, Node)>,
    pub(super) request: Vec<&'t (Node, Node)>,
}

impl Strays<'_> {
    pub(super) fn any(&self) -> bool {
        !self.work.is_empty() || !self.request.is_empty()
    }

    pub(super) fn has(&self, key: &Node) -> bool {
        self.work.iter().chain(&self.request).any(|(stray, _)| std::ptr::eq(stray, key))
    }
}

/// Finds fields of `work` and `request` at the top level and says so once.
pub(super) fn find<'t>(r: &mut Reader<'_, '_>, entries: &'t [(Node, Node)]) -> Strays<'t> {
    let mut strays = Strays::default();
    for entry in entries {
        let Some(text) = entry.0.text() else { continue };
        if JobFile::SECTION.fields.contains(&text) {
            continue;
        }
        if WorkSection::SECTION.fields.contains(&text) {
            strays.work.push(entry);
        } else if RequestSection::SECTION.fields.contains(&text) {
            strays.request.push(entry);
        }
    }
    if !strays.any() {
        return strays;
    }
    let has = |name: &str| entries.iter().any(|(key, _)| key.text() == Some(name));
    let under = |list: &[&(Node, Node)], section: &str| !list.is_empty() && has(section);
    let both = [(&strays.work, "work"), (&strays.request, "request")];
    for (list, section) in both {
        if under(list, section)
            && let Some((first, _)) = list.first()
        {
            let names = names(list.iter().copied());
            let belong = if list.len() == 1 { "belongs" } else { "belong" };
            let finding =
                error(46, first.mark, format!("{names} {belong} under `{section}:`")).hint("indent by two");
            let fix = moved(r, &[(None, list)]);
            r.add(match fix {
                Some((mark, text)) => finding.fix_at(mark, text),
                None => finding,
            });
        }
    }
    let left: Vec<Group<'_, '_>> = both
        .into_iter()
        .filter(|(list, section)| !list.is_empty() && !has(section))
        .map(|(list, section)| (Some(section), list))
        .collect();
    let mut all: Vec<&(Node, Node)> = left.iter().flat_map(|(_, list)| list.iter().copied()).collect();
    all.sort_by_key(|(key, _)| (key.mark.line, key.mark.column));
    if let Some((first, _)) = all.first() {
        let sections: Vec<String> =
            left.iter().filter_map(|(section, _)| Some(format!("`{}:`", (*section)?))).collect();
        let finding = error(44, first.mark, format!("{} at top level", names(all.iter().copied())))
            .hint(format!("indent them under {}", sections.join(" and ")));
        let fix = moved(r, &left);
        r.add(match fix {
            Some((mark, text)) => finding.fix_at(mark, text),
            None => finding,
        });
    }
    strays
}

fn names<'t>(list: impl Iterator<Item = &'t (Node, Node)>) -> String {
    let names: Vec<String> = list.filter_map(|(key, _)| key.text()).map(|text| format!("`{text}`")).collect();
    names.join(", ")
}

/// The lines of the strays, indented by two below their sections, if they stand together.
fn moved(r: &Reader<'_, '_>, groups: &[Group<'_, '_>]) -> Option<(Mark, String)> {
    let mut regions: Vec<(u32, u32, usize)> = Vec::new();
    for (group, (_, list)) in groups.iter().enumerate() {
        for (key, _) in *list {
            if key.mark.column != 1 {
                return None;
            }
            let mut end = key.mark.line + 1;
            while end <= r.found.line_count() && starts_inside(r.found.line(end)) {
                end += 1;
            }
            regions.push((key.mark.line, end, group));
        }
    }
    regions.sort_unstable();
    let together = regions.windows(2).all(|pair| pair[0].1 == pair[1].0);
    let (first, last) = (regions.first()?.0, regions.last()?.1 - 1);
    if !together {
        return None;
    }
    let mut text: Vec<String> = Vec::new();
    for (group, (section, _)) in groups.iter().enumerate() {
        text.extend(section.map(|section| format!("{section}:")));
        for (from, to, _) in regions.iter().filter(|region| region.2 == group) {
            text.extend((*from..*to).map(|line| {
                let line = r.found.line(line);
                if line.trim().is_empty() { String::new() } else { format!("  {line}") }
            }));
        }
    }
    let width: usize = (first..=last).map(|line| r.found.line(line).chars().count() + 1).sum::<usize>() - 1;
    Some((Mark { line: first, column: 1, width: width as u32 }, text.join("\n")))
}

/// Whether a line goes on with what stands above it.
fn starts_inside(line: &str) -> bool {
    line.starts_with([' ', '\t']) && !line.trim().is_empty()
}

/// The lines of a list of one-field mappings without their dashes.
pub(super) fn without_dashes(r: &Reader<'_, '_>, items: &[Node]) -> Option<(Mark, String)> {
    let first = items.first()?.mark.line;
    let mut lines: Vec<String> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let Kind::Map { flow: false, .. } = item.kind else { return None };
        let line = r.found.line(item.mark.line);
        if item.mark.line != first + at as u32 || !line.trim_start().starts_with("- ") {
            return None;
        }
        let rest = line.trim_start().trim_start_matches('-').trim_start();
        lines.push(format!("  {rest}"));
    }
    let last = items.last()?.mark.line;
    let width: usize = (first..=last).map(|line| r.found.line(line).chars().count() + 1).sum::<usize>() - 1;
    Some((Mark { line: first, column: 1, width: width as u32 }, lines.join("\n")))
}

impl Reader<'_, '_> {
    /// Behind the last written line of the document that starts at `line`.
    pub(super) fn end_of_document(&self, line: u32) -> Mark {
        let mut last = line;
        for at in line..=self.found.line_count() {
            let text = self.found.line(at);
            if at > line && (text.starts_with("---") || text.starts_with("...")) {
                break;
            }
            if !text.trim().is_empty() {
                last = at;
            }
        }
        Mark { line: last, column: self.found.line(last).chars().count() as u32 + 1, width: 0 }
    }
}
