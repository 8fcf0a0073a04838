//! Warnings: what is accepted and will probably not do what its writer wants.

use super::findings::warning;
use super::paths::tidy;
use super::reader::{Fields, Reader};
use super::rules::{Rules, Script, ends, visible_devices};
use super::shell::{Command, Word, commands};
use super::tree::{Kind, Mark, Node, Style};
use super::work::WorkRead;
use super::{host, unknown};
use crate::model::{Amount, Limit, Request, Run, Work};

/// Whether the command speaks of something.
pub(super) fn mentions(run: &Run, text: &str) -> bool {
    match run {
        Run::Shell(script) => script.contains(text),
        Run::Argv(words) => words.iter().any(|word| word.contains(text)),
    }
}

/// Warnings about the request.
pub(super) fn request(r: &mut Reader<'_, '_>, request: &Request, fields: &Fields<'_>, read: &WorkRead<'_>) {
    if let (Some(at), Some(field)) = (request.finish_by_ms, fields.get("finish_by")) {
        let now = r.cx.now_wall_ms;
        let limit = request.limit.span().map(|span| (span, now.saturating_add_unsigned(span.0)));
        let finding = if at <= now {
            Some(
                warning(25, field.value.mark, "finish_by is past")
                    .hint(format!("it was {}; the job will be late", r.shown_moment(at))),
            )
        } else if let Some((span, earliest)) = limit.filter(|(_, earliest)| *earliest > at) {
            let earliest = r.shown_moment(earliest);
            let message = format!("finish_by cannot be met: now + {} is {earliest}", super::show::span(span));
            Some(warning(25, field.value.mark, message).hint("the job is taken and marked late"))
        } else {
            None
        };
        if let Some(finding) = finding {
            r.add(finding);
        }
    }
    for name in ["after", "after_any"] {
        let Some(field) = fields.get(name) else { continue };
        let Kind::List { items, .. } = &field.value.kind else { continue };
        for item in items {
            if let Some(text) = item.text() {
                job_name(r, text, item.mark);
            }
        }
    }
    if let (Limit::For(limit), Some((grace, span))) = (request.limit, read.grace)
        && span.0 * 2 > limit.0
    {
        r.add(
            warning(
                87,
                grace.value.mark,
                "the grace is more than half of `for`: the work may hold its GPUs that much longer",
            )
            .hint("a shorter grace or a longer `for`"),
        );
    }
}

/// Warns about a job that is waited for and that nobody has heard of.
pub(super) fn job_name(r: &mut Reader<'_, '_>, name: &str, mark: Mark) {
    let Some(pool) = r.cx.pool else { return };
    if r.found.full() || r.names.contains(name) || pool.jobs.iter().any(|job| job == name) {
        return;
    }
    let finding = warning(88, mark, format!("no job named {name}"));
    let near =
        unknown::nearest(name, r.names.iter().chain(&pool.jobs).map(String::as_str)).map(ToOwned::to_owned);
    r.add(match (near, pool.jobs.as_slice()) {
        (Some(near), _) => finding.hint(format!("did you mean {near}? It waits until there is one")),
        (None, []) => finding.hint("it waits until there is one; none is waiting or running"),
        (None, jobs) => {
            let newest: Vec<&str> = jobs.iter().take(3).map(String::as_str).collect();
            finding.hint(format!("it waits until there is one; newest names: {}", newest.join(", ")))
        }
    });
}

/// Warnings about the command and the scripts it names.
pub(super) fn work(r: &mut Reader<'_, '_>, read: &WorkRead<'_>, work: &Work, request: &Request) {
    let Some(run) = read.run else { return };
    comment_eaten(r, run.value);
    let gpus = match request.gpus {
        Amount::Some(n) => Some(n),
        Amount::All => None,
    };
    let rules = Rules { gpus, setup: &work.setup };
    let (script, list) = match &work.run {
        Run::Shell(script) => (script.as_str(), commands(script)),
        Run::Argv(words) => {
            let words = words.iter().map(|word| Word { text: word.clone(), at: 0, quoted: true }).collect();
            ("", vec![Command { words, background: false }])
        }
    };
    let text = Script { node: Some(run.value), file: None, text: script };
    ends(r, &text, &list);
    rules.all(r, &text, &list);
    called(r, read, &list, &rules);
    if let (Some(shell), Some(script)) = (read.shell, &work.setup.shell) {
        comment_eaten(r, shell.value);
        let text = Script { node: Some(shell.value), file: None, text: script };
        for command in commands(script) {
            visible_devices(r, &text, &command);
        }
    }
}

/// `run: python x.py #1`
fn comment_eaten(r: &mut Reader<'_, '_>, node: &Node) {
    let Kind::Text { style: Style::Plain, .. } = node.kind else { return };
    let eaten = r.comments.iter().find(|(mark, text)| {
        mark.line == node.mark.line
            && mark.column > node.mark.column
            && text.chars().nth(1).is_some_and(|c| !c.is_whitespace())
    });
    if let Some((mark, text)) = eaten {
        let finding = warning(59, *mark, format!("`{text}` is a YAML comment and is not run"))
            .hint("quote the command, or use `run: |` and a new line");
        r.found.add(finding);
    }
}

/// Scripts that the command names and that are there.
fn called(r: &mut Reader<'_, '_>, work: &WorkRead<'_>, list: &[Command], rules: &Rules<'_>) {
    let Some(dir) = work.dir.as_ref().filter(|_| r.cx.check_host) else { return };
    for command in list.iter().take(64) {
        let program = command.program();
        let first = program.first().map_or("", |word| word.text.as_str());
        let name = match command.name() {
            "bash" | "sh" | "source" | "." => program.iter().skip(1).find(|word| !word.text.starts_with('-')),
            _ if first.starts_with("./") || first.rsplit('.').next() == Some("sh") => program.first(),
            _ => None,
        };
        let Some(name) = name.map(|word| word.text.trim_matches(['"', '\''])) else { continue };
        let Some(script) = host::script(&dir.at, name) else { continue };
        let path = r.homely(&tidy(&dir.at.join(name)));
        let text = Script { node: None, file: Some(path), text: &script };
        let commands = commands(&script);
        rules.all(r, &text, &commands);
    }
}
