//! One document becomes one job: the top level and its four sections.

use super::fields::{JobFile, RequestSection, Section, WorkSection};
use super::findings::{error, warning};
use super::reader::{Field, Reader};
use super::tree::{Kind, Mark, Node};
use super::{lint, stray};
use crate::model::{Code, JobSpec, NotifyOn, Work, slug};

/// Reads one document. `None` only together with an error.
pub(super) fn read(r: &mut Reader<'_, '_>, root: &Node) -> Option<JobSpec> {
    let Kind::Map { entries, flow } = &root.kind else {
        r.add(
            error(98, super::reader::visible(Mark { width: 1, ..root.mark }), "a job file is a mapping")
                .hint("it has the sections work, data, request and output"),
        );
        return None;
    };
    let strays = stray::find(r, entries);
    let top = r.fields(
        entries.iter().filter(|(key, _)| !strays.has(key)).map(|(key, value)| (key, value)),
        JobFile::SECTION,
    );
    let whole = !strays.any();
    let (work, request) = (top.get("work"), top.get("request"));
    let work_entries = section(r, work, &strays.work, WorkSection::SECTION);
    let request_entries = section(r, request, &strays.request, RequestSection::SECTION);
    let name_field = top.get("name");
    let project = top.get("project").and_then(|field| name(r, field));
    let (work_fields, request_fields) = (
        work_entries.map(|entries| r.fields(entries.into_iter(), WorkSection::SECTION)),
        request_entries.map(|entries| r.fields(entries.into_iter(), RequestSection::SECTION)),
    );
    let (data_field, output_field) = (top.get("data"), top.get("output"));
    if whole && !r.partial {
        missing(r, [work, request], [data_field, output_field], root, *flow);
    }
    let read = work_fields.map(|fields| super::work::read(r, fields, work.map(|f| f.key.mark)));
    let dir = read.as_ref().and_then(|read| read.dir.clone());
    let data = data_field.map(|field| super::data::read_data(r, field, dir.as_ref()));
    let at = request.map_or(root.mark, |f| f.key.mark);
    let request = request_fields.map(|fields| (super::request::read(r, &fields, at), fields));
    let keys = read.as_ref().and_then(|read| read.keys.as_ref());
    let output = output_field.map(|field| super::data::read_output(r, field, keys));
    let output_to = top.get("output_to").and_then(|f| r.path(f.name, f.value, dir.as_ref()));
    let notify = top.get("notify").map(|field| notify(r, field)).unwrap_or_default();
    top.close();
    let name = job_name(r, name_field, keys);
    if let Some((request, fields)) = &request {
        super::feasible::check(r, request, fields);
    }
    let (mut read, (request, fields)) = (read?, request?);
    lint::request(r, &request, &fields, &read);
    fields.close();
    let work = read.work.take()?;
    lint::work(r, &read, &work, &request);
    let (data, output, name) = (data??, output??, name?);
    if output.is_empty() && output_to.is_none() {
        thrown_away(r, &work, output_field);
    }
    let mut spec = JobSpec {
        name,
        project,
        work,
        data,
        request,
        output,
        output_to: output_to.map(|place| place.will_be),
        notify,
    };
    add_environment(r, &mut spec.work);
    Some(spec)
}

/// Says which sections are missing.
fn missing(
    r: &mut Reader<'_, '_>,
    needed: [Option<Field<'_>>; 2],
    lists: [Option<Field<'_>>; 2],
    root: &Node,
    flow: bool,
) {
    let examples = [("work", "`work: {run: python train.py}`"), ("request", "`request: {gpus: 1, for: 6h}`")];
    for (_, (name, example)) in needed.iter().zip(examples).filter(|(field, _)| field.is_none()) {
        r.add(error(96, Mark::default(), format!("section `{name}` is missing")).hint(example));
    }
    let hints = [("data", "nothing to read"), ("output", "nothing to return")];
    for (_, (name, hint)) in lists.iter().zip(hints).filter(|(field, _)| field.is_none()) {
        let finding = error(37, Mark::default(), format!("section `{name}` is missing"))
            .hint(format!("{hint}: `{name}: []`"));
        let end = r.end_of_document(root.mark.line);
        r.add(if flow { finding } else { finding.fix_at(end, format!("\n{name}: []")) });
    }
}

/// A private copy, and nothing named that comes back from it.
fn thrown_away(r: &mut Reader<'_, '_>, work: &Work, output: Option<Field<'_>>) {
    let private = work.dir.is_some() && work.code != Code::Live;
    if let Some(field) = output.filter(|_| private && !lint::mentions(&work.run, "OVERNIGHT_OUTPUT")) {
        r.add(
            warning(81, super::reader::visible(field.value.mark), "what the work writes is thrown away")
                .hint("name the files that shall come back"),
        );
    }
}

/// `--env` wins over the file.
fn add_environment(r: &mut Reader<'_, '_>, work: &mut Work) {
    for (name, value) in &r.cx.overrides.env {
        if let Some(finding) = super::work::forbidden(name, Mark::default()) {
            r.found.add(finding);
        }
        work.env.insert(name.clone(), value.clone());
    }
}

/// The entries of a section with those that stand at the top level by mistake.
fn section<'t>(
    r: &mut Reader<'_, '_>,
    field: Option<Field<'t>>,
    strays: &[&'t (Node, Node)],
    section: Section,
) -> Option<Vec<(&'t Node, &'t Node)>> {
    let mut entries: Vec<(&Node, &Node)> = Vec::new();
    let known = |node: &Node| node.text().is_some_and(|text| section.fields.contains(&text));
    match field.map(|field| (field, &field.value.kind)) {
        Some((_, Kind::Map { entries: own, .. })) => {
            entries.extend(own.iter().map(|(key, value)| (key, value)));
        }
        Some((field, Kind::Nothing)) if strays.is_empty() && !r.partial => {
            r.add(
                error(36, field.key.mark, format!("{} has no value", section.name))
                    .hint("indent its fields by two"),
            );
            return None;
        }
        None | Some((_, Kind::Nothing)) => {}
        Some((field, Kind::Text { value, .. })) => {
            let (inner, example) = if section.name == "work" {
                ("run", format!("`work: {{run: {value}}}`"))
            } else {
                ("gpus", "`request: {gpus: 1, for: 6h}`".to_owned())
            };
            let finding = error(43, field.value.mark, format!("{} is a section", section.name)).hint(example);
            let written = r.written(field.value.mark).unwrap_or_default();
            let indent = " ".repeat(field.key.mark.column as usize + 1);
            let certain = section.name == "work" && field.key.mark.column == 1;
            r.add(if certain { finding.fix(format!("\n{indent}{inner}: {written}")) } else { finding });
            return None;
        }
        Some((field, Kind::List { items, .. })) => {
            let maps: Vec<&(Node, Node)> = items
                .iter()
                .filter_map(|item| match &item.kind {
                    Kind::Map { entries, .. } => Some(entries),
                    Kind::Nothing | Kind::Text { .. } | Kind::List { .. } | Kind::Alias(_) => None,
                })
                .flatten()
                .collect();
            let at = Mark { width: 1, ..field.value.mark };
            let finding = error(42, at, format!("{} is a mapping", section.name)).hint("take off the dashes");
            let fix = stray::without_dashes(r, items);
            r.add(match fix {
                Some((mark, text)) => finding.fix_at(mark, text),
                None => finding,
            });
            if !maps.iter().all(|(key, _)| known(key)) {
                return None;
            }
            entries.extend(maps.into_iter().map(|(key, value)| (key, value)));
        }
        Some((field, Kind::Alias(_))) => {
            r.shape(field.value, section.name, "a mapping");
            return None;
        }
    }
    entries.extend(strays.iter().map(|(key, value)| (key, value)));
    (field.is_some() || !entries.is_empty()).then_some(entries)
}

/// The job's name: from the command line, from the file, or from the file's stem.
fn job_name(
    r: &mut Reader<'_, '_>,
    field: Option<Field<'_>>,
    keys: Option<&super::each::Keys>,
) -> Option<String> {
    if let Some(given) = &r.cx.overrides.name {
        let given = given.clone();
        if valid_name(&given) {
            return Some(given);
        }
        r.add(
            error(94, Mark::default(), format!("--name `{given}` is not a name"))
                .hint(format!("`{}`: lower-case letters, digits, `.` `_` `-`, at most 64", slug(&given))),
        );
        return None;
    }
    match field {
        None => Some(slug(r.cx.stem)),
        Some(field) => {
            let text = r.text(field)?.to_owned();
            let replaced = keys.map_or(text.clone(), |keys| keys.replace(&text));
            if replaced == text { name(r, field) } else { Some(slug(&replaced)) }
        }
    }
}

fn valid_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'))
        && text.bytes().any(|b| b != b'.')
}

/// A name as names are written.
pub(super) fn name(r: &mut Reader<'_, '_>, field: Field<'_>) -> Option<String> {
    let text = r.text(field)?;
    let bare = text.trim_matches(['\u{201C}', '\u{201D}', '\u{201E}', '\u{2018}', '\u{2019}']);
    if bare != text {
        r.add(
            warning(32, field.value.mark, format!("curly quotes are part of the {}", field.name))
                .hint("use `\"`"),
        );
    }
    if valid_name(bare) {
        return Some(bare.to_owned());
    }
    let better = slug(bare);
    r.add(
        error(94, field.value.mark, format!("{}: `{text}` is not a name", field.name))
            .hint(format!("`{better}`: lower-case letters, digits, `.` `_` `-`, at most 64"))
            .fix(better),
    );
    None
}

fn notify(r: &mut Reader<'_, '_>, field: Field<'_>) -> Vec<NotifyOn> {
    let words = [("end", NotifyOn::End), ("fail", NotifyOn::Fail), ("late", NotifyOn::Late)];
    let items = r.list(field, 98).unwrap_or_default();
    let list: Vec<NotifyOn> =
        items.iter().filter_map(|item| r.word(Field { value: item, ..field }, &words)).collect();
    if let Some(first) = items.first() {
        r.not_yet(first.mark, "notify", "take the line out; `overnight wait JOB` ends when the job does");
    }
    list
}
