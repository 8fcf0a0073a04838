//! Unknown fields: what the writer probably meant.

use super::fields::{JobFile, OutputEntry, RequestSection, Section, SetupSection, WorkSection};
use super::findings::{Finding, error};
use super::reader::Reader;
use super::tree::{Mark, Node};

/// What people call a field, and its name here.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("time", "for"),
    ("walltime", "for"),
    ("timeout", "for"),
    ("time_limit", "for"),
    ("limit", "for"),
    ("duration", "for"),
    ("max_time", "for"),
    ("mem", "memory"),
    ("ram", "memory"),
    ("memory_limit", "memory"),
    ("command", "run"),
    ("cmd", "run"),
    ("script", "run"),
    ("exec", "run"),
    ("entrypoint", "run"),
    ("ngpus", "gpus"),
    ("num_gpus", "gpus"),
    ("gpu_count", "gpus"),
    ("n_gpus", "gpus"),
    ("gres", "gpus"),
    ("cpu", "cpus"),
    ("cores", "cpus"),
    ("ncpus", "cpus"),
    ("cpus_per_task", "cpus"),
    ("threads", "cpus"),
    ("workdir", "in"),
    ("working_dir", "in"),
    ("cwd", "in"),
    ("dir", "in"),
    ("directory", "in"),
    ("chdir", "in"),
    ("outputs", "output"),
    ("artifacts", "output"),
    ("inputs", "data"),
    ("input", "data"),
    ("datasets", "data"),
    ("deadline", "finish_by"),
    ("environment", "env"),
    ("envs", "env"),
    ("depends_on", "after"),
    ("dependency", "after"),
    ("dependencies", "after"),
    ("needs", "after"),
    ("begin", "start_after"),
    ("array", "for_each"),
    ("matrix", "for_each"),
    ("retries", "retry"),
    ("requeue", "retry"),
    ("job_name", "name"),
    ("title", "name"),
    ("vram", "gpu_memory"),
    ("gpu_mem", "gpu_memory"),
    ("gpu_type", "gpu_model"),
    ("model", "gpu_model"),
    ("throttle", "at_once"),
    ("nice", "priority"),
    ("resources", "request"),
    ("source", "from"),
    ("src", "from"),
    ("required", "optional"),
];

/// Fields of other systems that have no counterpart.
const ELSEWHERE: &[&str] =
    &["partition", "qos", "account", "nodelist", "exclude", "reservation", "queue", "constraint"];
/// Fields that ask for something that is not a job.
const INTERACTIVE: &[&str] = &["tty", "interactive", "stdin", "ports", "port"];

/// Reports an unknown field. Returns the field that it certainly is, so that its value is checked too.
pub(super) fn field(
    r: &mut Reader<'_, '_>,
    key: &Node,
    text: &str,
    section: Section,
) -> Option<&'static str> {
    let place = format!("in {}", section.name);
    let unknown = |code: u16| {
        error(code, key.mark, format!("unknown field `{text}` {place}"))
            .label(format!("not a field of {}", section.name))
            .known(section.fields)
    };
    let bare = text.trim_start_matches('-').replace('-', "_").to_lowercase();
    if let Some(finding) = foreign(&bare, text, key, section) {
        let line = r.found.line(key.mark.line);
        let whole = Mark { column: 1, width: line.chars().count() as u32 + 1, ..key.mark };
        let alone = bare == "login" && line.trim_start().starts_with(text);
        r.add(if alone { finding.fix_at(whole, "") } else { finding });
        return None;
    }
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == bare).map(|(_, name)| *name);
    if let Some(name) = other.and_then(|name| section.fields.iter().find(|f| **f == name)) {
        let (code, example) = match bare.as_str() {
            "time" => (2, Some("2h")),
            "mem" => (3, Some("32GiB")),
            "command" | "cmd" | "script" => (4, None),
            _ => (1, None),
        };
        let example = example.map(|example| format!(": `{name}: {example}`")).unwrap_or_default();
        r.add(unknown(code).hint(format!("it is called `{name}`{example}")).fix(*name));
        return Some(name);
    }
    if let Some(near) = nearest(&bare, section.fields.iter().copied()) {
        r.add(unknown(1).hint(format!("did you mean `{near}`?")).fix(near));
        return Some(near);
    }
    let name = other.unwrap_or(&bare);
    let elsewhere =
        [WorkSection::SECTION, RequestSection::SECTION, SetupSection::SECTION, OutputEntry::SECTION]
            .into_iter()
            .chain([JobFile::SECTION])
            .find(|other| other.name != section.name && other.fields.contains(&name));
    r.add(match elsewhere {
        Some(home) if home.name == "a job file" => {
            unknown(1).hint(format!("`{name}` stands at the top level, not indented"))
        }
        Some(home) => unknown(1).hint(format!("`{name}` belongs under `{}`", home.name)),
        None => unknown(1),
    });
    None
}

/// Fields that have no counterpart here, or that have one elsewhere: the finding that says so.
fn foreign(bare: &str, text: &str, key: &Node, section: Section) -> Option<Finding> {
    let place = format!("in {}", section.name);
    let unknown = |code: u16| {
        error(code, key.mark, format!("unknown field `{text}` {place}"))
            .label(format!("not a field of {}", section.name))
    };
    Some(match bare {
        bare if ELSEWHERE.contains(&bare) => {
            unknown(5).hint("one pool here; say what the job needs: `gpu_model`, `gpu_memory`")
        }
        "nodes" | "hosts" | "num_nodes" => {
            error(6, key.mark, "a job runs on this one host").hint("for several nodes use the slurm engine")
        }
        bare if INTERACTIVE.contains(&bare) => {
            error(95, key.mark, format!("`{text}`: a job runs with nobody watching"))
                .hint("interactive work and services are not jobs; notebooks: `papermill in.ipynb out.ipynb`")
        }
        "login" => error(86, key.mark, "login is gone")
            .hint("say what it was for: `setup: {conda: x}`, `setup: {shell: source ~/env.sh}`"),
        "licenses" | "licences" | "tokens" => {
            unknown(1).hint("`at_once` limits one job; across jobs chain with `after_any`")
        }
        "image" | "container" | "docker" => {
            unknown(1).hint("start the container in `run`: `apptainer exec --nv image.sif …`")
        }
        _ => return None,
    })
}

/// The nearest of some words, if it is near enough to be meant.
pub fn nearest<'w>(text: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let most = if text.len() <= 4 { 1 } else { 2 };
    words
        .map(|word| (distance(text, word), word))
        .filter(|(distance, word)| *distance <= most && *distance < word.chars().count())
        .min()
        .map(|(_, word)| word)
}

/// Edits between two short words, a swap of neighbours counting as one.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(40).collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = (0..=a.len()).map(|i| (i..=i + b.len()).collect()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}
