//! The section `request`: how much, how long, by when.

use super::UntilDone;
use super::fields::RetrySection;
use super::findings::error;
use super::reader::{Field, Fields, Reader, visible};
use super::tree::{Kind, Mark};
use crate::model::{Amount, Bytes, GpuIds, Limit, Priority, Request, Retry, RetryOn};

/// Jobs that one job may wait for by name.
const WAITS: usize = 1000;

/// Reads the section; `at` is its key. In the place of what has been found wrong stands what no further check minds, so
/// that everything else is still checked.
pub(super) fn read(r: &mut Reader<'_, '_>, fields: &Fields<'_>, at: Mark) -> Request {
    let gpus = gpus(r, fields.get("gpus"), at);
    let gpu_model = fields.get("gpu_model").map(|field| models(r, field)).unwrap_or_default();
    let gpu_memory = fields.get("gpu_memory").and_then(|field| r.size(field));
    let gpu_ids = fields
        .get("gpu_ids")
        .and_then(|field| r.word(field, &[("index", GpuIds::Index), ("uuid", GpuIds::Uuid)]))
        .unwrap_or_default();
    let share = fields.get("share").and_then(|field| Some((field, r.flag(field)?)));
    if let Some((field, true)) = share {
        r.not_yet(field.value.mark, "share: true", "the job gets whole GPUs: take the line out");
    }
    let cpus = fields.get("cpus").and_then(|field| {
        let amount = r.count_or_all(field)?;
        if amount == Amount::Some(0) {
            r.add(error(99, field.value.mark, "cpus: must be more than 0"));
        }
        Some(amount)
    });
    let memory = fields.get("memory").and_then(|field| memory(r, field));
    let disk = fields.get("disk").and_then(|field| {
        let size = r.size(field)?;
        r.not_yet(field.value.mark, "disk", "take the line out; nothing is reserved on disk");
        Some(size)
    });
    let limit = limit(r, fields.get("for"), at);
    let finish_by_ms = fields.get("finish_by").and_then(|field| r.moment(field));
    let start_after_ms = fields.get("start_after").and_then(|field| r.moment(field));
    let after = fields.get("after").map(|field| jobs(r, field)).unwrap_or_default();
    let after_any = fields.get("after_any").map(|field| jobs(r, field)).unwrap_or_default();
    let given = fields.get("priority").and_then(|field| priority(r, field));
    let priority = r.cx.overrides.priority.or(given).unwrap_or_default();
    let at_once = fields.get("at_once").and_then(|field| {
        let n = r.count(field)?;
        r.not_yet(field.value.mark, "at_once", "take the line out; a job has one task");
        Some(n)
    });
    let retry = fields.get("retry").map(|field| retry(r, field)).unwrap_or_default();
    Request {
        gpus: gpus.unwrap_or(Amount::All),
        gpu_model,
        gpu_memory,
        gpu_ids,
        share: share.is_some_and(|(_, share)| share),
        cpus,
        memory,
        disk,
        limit: limit.unwrap_or(Limit::UntilDone),
        finish_by_ms,
        start_after_ms,
        after,
        after_any,
        priority,
        at_once,
        retry,
    }
}

fn gpus(r: &mut Reader<'_, '_>, field: Option<Field<'_>>, at: Mark) -> Option<Amount<u32>> {
    let given = field.map(|field| r.count_or_all(field));
    if let Some(gpus) = r.cx.overrides.gpus {
        return Some(Amount::Some(gpus));
    }
    if given.is_none() && !r.partial {
        r.add(error(96, at, "request needs `gpus`").hint("how many? `gpus: 1`; 0 is CPU-only, or `all`"));
    }
    given?
}

fn memory(r: &mut Reader<'_, '_>, field: Field<'_>) -> Option<Amount<Bytes>> {
    if r.text(field)? == "all" { Some(Amount::All) } else { r.size(field).map(Amount::Some) }
}

fn limit(r: &mut Reader<'_, '_>, field: Option<Field<'_>>, at: Mark) -> Option<Limit> {
    let mut mark = field.map_or(at, |field| field.value.mark);
    let given = field.map(|field| {
        let text = r.text(field)?;
        match text {
            "until_done" => Some(Limit::UntilDone),
            "unlimited" | "infinite" | "forever" | "none" | "UNLIMITED" => {
                r.add(
                    error(93, field.value.mark, format!("for: `{text}` is called `until_done` here"))
                        .hint("write `until_done`")
                        .fix("until_done"),
                );
                None
            }
            _ => r.span(field).map(Limit::For),
        }
    });
    let limit = match (r.cx.overrides.limit, given) {
        (Some(span), _) => {
            mark = Mark::default();
            Some(Limit::For(span))
        }
        (None, Some(limit)) => limit,
        (None, None) => {
            if !r.partial {
                r.add(
                    error(20, at, "request needs `for`")
                        .hint("how long may it take? `for: 6h`, or `for: until_done`"),
                );
            }
            None
        }
    }?;
    let limits = r.cx.limits;
    let longest = limits.max_for;
    match limit {
        Limit::UntilDone if limits.until_done == UntilDone::Forbidden => {
            r.add(
                error(103, mark, "for: `until_done` is not allowed on this host")
                    .hint("say how long it may take, such as `6h`"),
            );
        }
        Limit::For(span) if longest.is_some_and(|longest| span > longest) => {
            let longest = longest.unwrap_or_default();
            r.add(error(103, mark, format!("for: {span} is more than the {longest} allowed on this host")));
        }
        Limit::For(_) | Limit::UntilDone => {}
    }
    Some(limit)
}

fn models(r: &mut Reader<'_, '_>, field: Field<'_>) -> Vec<String> {
    let one = [field.value.clone()];
    let items: &[_] = match &field.value.kind {
        Kind::List { items, .. } => items,
        Kind::Text { .. } | Kind::Alias(_) => &one,
        Kind::Nothing | Kind::Map { .. } => {
            r.text(field);
            return Vec::new();
        }
    };
    let mut words = Vec::new();
    for item in items {
        if let Kind::Alias(name) = &item.kind {
            let word = name.trim_matches('*').to_lowercase();
            r.add(
                error(15, item.mark, "`*` at the start is a YAML alias")
                    .hint(format!("plain words do: `gpu_model: {word}`"))
                    .fix(word),
            );
            continue;
        }
        let Some(text) = r.text(Field { value: item, ..field }) else { continue };
        let word = text.trim_matches('*').trim();
        if word.contains(['*', '?']) || !word.chars().any(char::is_alphanumeric) {
            r.add(
                error(15, item.mark, format!("gpu_model: `{text}` is not a word of a device's name"))
                    .hint("plain words do: `gpu_model: a100`"),
            );
            continue;
        }
        words.push(word.to_owned());
    }
    words
}

fn jobs(r: &mut Reader<'_, '_>, field: Field<'_>) -> Vec<String> {
    let items = r.list(field, 40).unwrap_or_default();
    if items.len() > WAITS {
        r.add(error(99, visible(field.value.mark), format!("{}: at most {WAITS} jobs", field.name)));
        return Vec::new();
    }
    items.iter().filter_map(|item| r.text(Field { value: item, ..field }).map(ToOwned::to_owned)).collect()
}

fn priority(r: &mut Reader<'_, '_>, field: Field<'_>) -> Option<Priority> {
    let text = r.text(field)?;
    match text {
        "low" => return Some(Priority::LOW),
        "normal" => return Some(Priority::NORMAL),
        "high" => return Some(Priority::HIGH),
        _ => {}
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let number = (!digits.is_empty() && digits.len() <= 6 && digits.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse::<i64>().ok())
        .flatten();
    match number {
        Some(n) if (-100..=100).contains(&n) => Some(Priority::clamped(n)),
        Some(n) => {
            r.add(
                error(99, field.value.mark, format!("priority: {n} is out of range"))
                    .hint("-100 to 100; low is -50, normal 0, high 50"),
            );
            None
        }
        None => {
            r.add(
                error(93, field.value.mark, format!("priority: `{text}` is not a priority"))
                    .hint("`low`, `normal`, `high`, or -100 to 100"),
            );
            None
        }
    }
}

fn retry(r: &mut Reader<'_, '_>, field: Field<'_>) -> Retry {
    let mut retry = Retry::default();
    if let Kind::Text { value, .. } = &field.value.kind {
        let finding = error(98, field.value.mark, "retry is a mapping")
            .hint(format!("`retry: {{times: {value}, when: [lost]}}`"));
        let certain = value.bytes().all(|b| b.is_ascii_digit());
        r.add(if certain { finding.fix(format!("{{times: {value}, when: [lost]}}")) } else { finding });
        return retry;
    }
    let Some(fields) = r.open(field.value, RetrySection::SECTION) else { return retry };
    if let Some(times) = fields.get("times").and_then(|field| Some((field, r.count(field)?))) {
        retry.times = times.1;
        if times.1 > 1000 {
            r.add(error(99, times.0.value.mark, "retry: at most 1000 times"));
        }
    }
    if let Some(when) = fields.get("when") {
        retry.when = retry_when(r, when);
    }
    fields.close();
    retry
}

fn retry_when(r: &mut Reader<'_, '_>, field: Field<'_>) -> Vec<RetryOn> {
    let mut list = Vec::new();
    for item in r.list(field, 98).unwrap_or_default() {
        let Some(text) = r.text(Field { value: item, ..field }) else { continue };
        match (text, text.parse::<i32>()) {
            ("lost", _) => list.push(RetryOn::Lost),
            ("limit", _) => {
                list.push(RetryOn::Limit);
                r.not_yet(item.mark, "retry: limit", "take it out: `when: [lost]`");
            }
            (_, Ok(code)) if (1..=255).contains(&code) && text.bytes().all(|b| b.is_ascii_digit()) => {
                list.push(RetryOn::Code(code));
            }
            (_, Ok(_) | Err(_)) => r.add(
                error(93, visible(item.mark), format!("when: `{text}` is not an end"))
                    .hint("`lost`, `limit`, or exit codes from 1 to 255"),
            ),
        }
    }
    list
}
