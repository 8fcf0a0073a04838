//! The section `work`: what runs.

use super::each::{self, Keys};
use super::fields::{Adjust, SetupSection, StopSection};
use super::findings::{Finding, error, warning};
use super::paths::{Place, variable};
use super::reader::{Field, Fields, Reader, alias, visible};
use super::tree::{Kind, Mark, Node};
use super::{host, is_secret_name, run};
use crate::model::{Code, Setup, Span, Stop, StopSignal, Work, WorkKind};
use std::collections::BTreeMap;

/// What the section says, with the places that lints need.
#[derive(Debug)]
pub(super) struct WorkRead<'t> {
    /// `None` only together with an error.
    pub(super) work: Option<Work>,
    pub(super) dir: Option<Place>,
    pub(super) keys: Option<Keys>,
    pub(super) run: Option<Field<'t>>,
    pub(super) shell: Option<Field<'t>>,
    pub(super) grace: Option<(Field<'t>, Span)>,
}

/// Reads the section; `at` is its key.
pub(super) fn read<'t>(r: &mut Reader<'_, '_>, fields: Fields<'t>, at: Option<Mark>) -> WorkRead<'t> {
    let kind = fields.get("kind").and_then(|field| kind(r, field)).unwrap_or_default();
    let dir_field = fields.get("in");
    let dir = dir_field.and_then(|field| directory(r, field));
    r.lost_dir = dir_field.is_some() && dir.is_none();
    let code = fields.get("code").and_then(|field| code(r, field, dir_field.is_some())).unwrap_or_default();
    let setup_field = fields.get("setup");
    let (setup, shell) = setup_field.map(|field| setup(r, field, dir.as_ref())).unwrap_or_default();
    let keys = fields.get("for_each").map(|field| each::read(r, field, dir.as_ref()));
    let run_field = fields.get("run");
    if run_field.is_none() && !r.partial {
        let at = at.unwrap_or_default();
        r.add(error(96, at, "work needs `run`").hint("the command: `run: python train.py`"));
    }
    let run = run_field.and_then(|field| run::read(r, field, keys.as_ref()));
    let mut env = fields.get("env").map(|field| environment(r, field)).unwrap_or_default();
    let env_file = fields.get("env_file").and_then(|field| {
        let place = r.path(field.name, field.value, dir.as_ref())?;
        if r.cx.check_host {
            host::env_file(r, field.value.mark, &place);
        }
        Some(place.will_be)
    });
    let checkpoint = fields.get("checkpoint").and_then(|field| {
        let text = r.text(field)?.to_owned();
        r.not_yet(field.value.mark, "checkpoint", "take the line out; a retry starts fresh");
        if !r.partial {
            let limit = "nothing will run again: `retry: {when: [lost, limit]}` starts from the checkpoint";
            r.add(warning(87, field.key.mark, "a checkpoint without a retry at the limit").hint(limit));
        }
        Some(text)
    });
    let (stop, grace) = fields.get("stop").map(|field| stop(r, field)).unwrap_or_default();
    fields.close();
    if let Some(keys) = &keys
        && let Some(task) = keys.only_task()
    {
        env.extend(task.clone());
    }
    let for_each = keys.as_ref().and_then(Keys::for_each);
    let work = run.map(|run| Work {
        kind,
        dir: dir.as_ref().map(|place| place.will_be.clone()),
        code,
        setup,
        run,
        env,
        env_file,
        for_each,
        checkpoint,
        stop,
    });
    WorkRead { work, dir, keys, run: run_field, shell, grace }
}

fn kind(r: &mut Reader<'_, '_>, field: Field<'_>) -> Option<WorkKind> {
    if matches!(field.value.text(), Some("service" | "interactive" | "notebook")) {
        r.add(
            error(95, field.value.mark, "kind: a job runs with nobody watching and ends").hint(
                "services and interactive work are not jobs; notebooks: `papermill in.ipynb out.ipynb`",
            ),
        );
        return None;
    }
    r.word(
        field,
        &[
            ("training", WorkKind::Training),
            ("inference", WorkKind::Inference),
            ("processing", WorkKind::Processing),
            ("simulation", WorkKind::Simulation),
            ("other", WorkKind::Other),
        ],
    )
}

fn directory(r: &mut Reader<'_, '_>, field: Field<'_>) -> Option<Place> {
    let place = r.path(field.name, field.value, None)?;
    if r.cx.check_host {
        if !place.at.exists() {
            r.missing("in", field.value.mark, &place.at);
        } else if !place.at.is_dir() {
            r.add(
                error(78, field.value.mark, "in: not a directory").hint("the directory the work starts from"),
            );
        }
    }
    Some(place)
}

fn code(r: &mut Reader<'_, '_>, field: Field<'_>, has_dir: bool) -> Option<Code> {
    if let Kind::Map { .. } = field.value.kind {
        let fields = r.open(field.value, Adjust::SECTION)?;
        let skip = fields.get("skip").map(|field| words(r, field)).unwrap_or_default();
        let keep = fields.get("keep").map(|field| words(r, field)).unwrap_or_default();
        fields.close();
        return Some(Code::Snapshot { skip, keep });
    }
    let code = r.word(field, &[("snapshot", false), ("live", true)])?;
    if code && !has_dir {
        r.add(
            error(96, field.value.mark, "code: `live` needs `in`")
                .hint("in which directory? `in: ~/src/detector`"),
        );
    }
    Some(if code { Code::Live } else { Code::default() })
}

/// One word or a list of them.
fn words(r: &mut Reader<'_, '_>, field: Field<'_>) -> Vec<String> {
    match &field.value.kind {
        Kind::List { items, .. } => items
            .iter()
            .filter_map(|item| r.text(Field { value: item, ..field }).map(ToOwned::to_owned))
            .collect(),
        Kind::Text { value, .. } => vec![value.clone()],
        Kind::Nothing | Kind::Map { .. } | Kind::Alias(_) => {
            r.text(field);
            Vec::new()
        }
    }
}

fn setup<'t>(r: &mut Reader<'_, '_>, field: Field<'t>, dir: Option<&Place>) -> (Setup, Option<Field<'t>>) {
    let Some(fields) = r.open(field.value, SetupSection::SECTION) else { return Default::default() };
    let modules = fields.get("modules").map(|field| words(r, field)).unwrap_or_default();
    let conda = fields.get("conda").and_then(|field| conda(r, field));
    let venv = fields.get("venv").and_then(|field| {
        let place = r.path(field.name, field.value, dir)?;
        if r.cx.check_host && !place.at.join("bin/python").exists() {
            if place.at.is_dir() {
                let shown = r.homely(&place.at);
                r.add(
                    error(78, field.value.mark, format!("venv: `{shown}` has no bin/python"))
                        .hint("make it with `python -m venv`"),
                );
            } else {
                r.missing("venv", field.value.mark, &place.at);
            }
        }
        Some(place.will_be)
    });
    let shell_field = fields.get("shell");
    let shell = shell_field.and_then(|field| r.text(field)).map(ToOwned::to_owned);
    fields.close();
    (Setup { modules, conda, venv, shell }, shell_field)
}

/// A name stays a name; a prefix becomes an absolute path.
fn conda(r: &mut Reader<'_, '_>, field: Field<'_>) -> Option<String> {
    let text = r.text(field)?.to_owned();
    if text.contains('/') || text.starts_with('~') {
        let place = r.path(field.name, field.value, None)?;
        if r.cx.check_host && !place.at.join("bin").is_dir() {
            r.missing("conda", field.value.mark, &place.at);
        }
        return Some(place.will_be.display().to_string());
    }
    if variable(&text) || text.is_empty() {
        r.path(field.name, field.value, None);
        return None;
    }
    if r.cx.check_host {
        host::conda(r, field.value.mark, &text);
    }
    Some(text)
}

fn environment(r: &mut Reader<'_, '_>, field: Field<'_>) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    let entries = match &field.value.kind {
        Kind::Map { entries, .. } => entries,
        Kind::List { items, .. } => {
            not_a_mapping(r, field, items);
            return env;
        }
        Kind::Nothing => {
            r.nothing(field);
            return env;
        }
        Kind::Text { .. } | Kind::Alias(_) => {
            r.shape(field.value, "env", "a mapping");
            return env;
        }
    };
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for (key, value) in entries {
        let Some(name) = r.key(key) else { continue };
        if let Some(first) = seen.insert(name, key.mark.line) {
            r.add(
                error(48, key.mark, format!("`{name}` twice, first in line {first}"))
                    .hint("keep one of them"),
            );
            continue;
        }
        if !variable_name(r, name, key) {
            continue;
        }
        match &value.kind {
            Kind::Text { value: text, .. } => {
                if is_secret_name(name) && !text.is_empty() {
                    r.found.secret(value.mark);
                    r.add(
                        warning(
                            75,
                            key.mark,
                            format!("the value of {name} is stored with the job and its receipts"),
                        )
                        .hint(format!("`env_file:` with the line {name}=…, mode 0600")),
                    );
                }
                if text.contains('\0') {
                    r.add(error(94, value.mark, format!("env: {name} has a NUL character")));
                }
                env.insert(name.to_owned(), text.clone());
            }
            Kind::Nothing => {
                let finding = error(
                    76,
                    if value.mark.width > 0 { value.mark } else { key.mark },
                    format!("{name} has no value"),
                )
                .hint(format!("empty text: `{name}: \"\"`"));
                let after = Mark { column: key.mark.column + key.mark.width + 1, width: 0, ..key.mark };
                r.add(if value.mark.width > 0 {
                    finding.fix_at(value.mark, "\"\"")
                } else {
                    finding.fix_at(after, " \"\"")
                });
            }
            Kind::Alias(_) => r.add(alias(value.mark)),
            Kind::List { .. } | Kind::Map { .. } => r.shape(value, name, "text"),
        }
    }
    env
}

/// `env: [A=1]` as a mapping.
fn not_a_mapping(r: &mut Reader<'_, '_>, field: Field<'_>, items: &[Node]) {
    let pairs: Option<Vec<String>> = items
        .iter()
        .map(|item| item.text().and_then(|text| text.split_once('=')))
        .map(|pair| {
            pair.map(|(name, value)| {
                format!("{name}: \"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
            })
        })
        .collect();
    let finding = error(41, visible(field.value.mark), "env is a mapping");
    r.add(match pairs {
        Some(pairs) if !pairs.is_empty() => {
            let all = format!("{{{}}}", pairs.join(", "));
            let finding = finding.hint(format!("env: {all}"));
            let one_line = matches!(field.value.kind, Kind::List { flow: true, .. });
            if one_line && field.value.mark.width > 1 { finding.fix(all) } else { finding }
        }
        Some(_) | None => finding.hint("`env: {A: \"1\"}`"),
    });
}

/// Whether a name may be set in `env`.
fn variable_name(r: &mut Reader<'_, '_>, name: &str, key: &Node) -> bool {
    let finding = forbidden(name, key.mark);
    let allowed = finding.is_none();
    if let Some(finding) = finding {
        r.add(finding);
    }
    allowed
}

/// Why a name may not be set.
pub(super) fn forbidden(name: &str, mark: Mark) -> Option<Finding> {
    let form = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !form {
        return Some(
            error(94, mark, format!("env: `{name}` is not a variable name"))
                .hint("letters, digits and `_`, not starting with a digit"),
        );
    }
    if matches!(name, "CUDA_VISIBLE_DEVICES" | "NVIDIA_VISIBLE_DEVICES" | "CUDA_DEVICE_ORDER") {
        return Some(
            error(67, mark, format!("Overnight sets {name} to the GPUs you were given"))
                .hint("delete the line, ask for the number: `gpus: 1`"),
        );
    }
    name.starts_with("OVERNIGHT_")
        .then(|| error(94, mark, format!("env: {name} is set by Overnight")).hint("delete the line"))
}

fn stop<'t>(r: &mut Reader<'_, '_>, field: Field<'t>) -> (Stop, Option<(Field<'t>, Span)>) {
    let mut stop = Stop::default();
    let Some(fields) = r.open(field.value, StopSection::SECTION) else { return (stop, None) };
    let words = [
        ("TERM", StopSignal::Term),
        ("INT", StopSignal::Int),
        ("HUP", StopSignal::Hup),
        ("USR1", StopSignal::Usr1),
        ("USR2", StopSignal::Usr2),
    ];
    if let Some(field) = fields.get("signal") {
        let bare = field.value.text().map(|text| text.to_uppercase().trim_start_matches("SIG").to_owned());
        match bare.and_then(|bare| words.iter().find(|(word, _)| *word == bare)) {
            Some((_, signal)) => stop.signal = *signal,
            None => {
                r.word(field, &words);
            }
        }
    }
    let grace = fields.get("grace").and_then(|field| Some((field, r.span(field)?)));
    if let Some((_, span)) = grace {
        stop.grace = span;
    }
    fields.close();
    (stop, grace)
}
