//! The shape of the source, checked: layers, sizes, module docs, banned words, and what lies at the top of the repository.
//!
//! Reads files, runs nothing. An exception needs a reason here, and an exception that is no longer needed fails the test.

#![expect(clippy::unwrap_used, reason = "an unwrap is how a test helper fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines of code a file may have; blank lines, comments and tests apart.
const FILE_LINES: usize = 400;
/// Lines a function may have, from its signature to its closing brace.
const FUNCTION_LINES: usize = 70;

/// The modules of each layer. A new module has to be put somewhere before anything may use it.
const LAYERS: &[(u8, &[&str])] =
    &[(0, &["model"]), (1, &["protocol", "sched"]), (2, ADAPTERS), (3, &["app", "cli", "daemon", "tui"])];
/// Layer 2: blind to each other.
const ADAPTERS: &[&str] = &["client", "engine", "files", "gpu", "inbox", "jobfile", "store", "supervisor"];
/// Beside the layers, for 2 and 3 only: the core is handed its time and its settings.
const SHELL_TOOLS: &[&str] = &["beneath", "cgroup", "clock", "config"];
/// Uses that the layers forbid: (file below `src/` or its folder, what it uses, why).
const LAYER_EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("engine/local", "supervisor::record", "the journal: the supervisor writes it, the engine reads it"),
    ("engine/local", "supervisor::spec", "the launch spec: the engine writes it, the supervisor reads it"),
    ("engine/local", "supervisor::message", "the orders and the news on the socket between the two"),
    (
        "engine/local",
        "supervisor::collection",
        "the collect order and the manifest, files that the two share",
    ),
    (
        "engine/local",
        "supervisor::process",
        "a process named by boot, start and token: what is left of a tree is found the same way",
    ),
    ("engine/local", "supervisor::SOCKET", "the name of the socket between the two"),
];

/// Files with more than [`FILE_LINES`] lines of code: (file below `src/`, why).
const LONG_FILES: &[(&str, &str)] = &[];
/// Functions with more than [`FUNCTION_LINES`] lines: (file below `src/`, function, why).
const LONG_FUNCTIONS: &[(&str, &str, &str)] =
    &[("model/attempt.rs", "next", "the transition table: exhaustive on purpose, one arm a pair")];

/// Words that may not be in `src/`, and what to write instead.
const BANNED: &[(&str, &str)] = &[
    ("todo!", "finish it"),
    ("unimplemented!", "finish it"),
    ("dbg!", "use tracing"),
    ("#[allow(", "use #[expect(.., reason = \"..\")]"),
    ("#![allow(", "use #![expect(.., reason = \"..\")]"),
];

/// What may lie at the top of the repository.
const TOP: &[&str] = &[
    ".ci",
    ".git",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "clippy.toml",
    "deny.toml",
    "docs",
    "rustfmt.toml",
    "sample-jobs",
    "screenshots",
    "src",
    "target",
    "tests",
    "themes",
];

/// A file of `src/`.
struct Source {
    /// Below `src/`, with `/`.
    path: String,
    text: String,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files_below(dir: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files_below(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

fn sources() -> Vec<Source> {
    let base = root().join("src");
    let mut paths = Vec::new();
    files_below(&base, &mut paths);
    paths
        .into_iter()
        .map(|path| Source {
            path: path.strip_prefix(&base).unwrap().to_str().unwrap().to_owned(),
            text: fs::read_to_string(&path).unwrap(),
        })
        .collect()
}

/// A file that holds tests only.
fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.ends_with("_tests.rs") || path.contains("/tests/")
}

/// The text without what follows `#[cfg(test)] mod …`: by custom the last thing in a file.
fn production(text: &str) -> &str {
    let mut at = 0;
    while let Some(found) = text[at..].find("#[cfg(test)]") {
        let start = at + found;
        let rest = text[start + "#[cfg(test)]".len()..].trim_start();
        let inline = rest.strip_prefix("mod ").is_some_and(|rest| {
            rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').trim_start().starts_with('{')
        });
        if inline {
            return &text[..start];
        }
        at = start + 1;
    }
    text
}

fn fail_with(what: &str, faults: &[String]) {
    let mut message = String::new();
    for fault in faults {
        let _ = write!(message, "\n  {fault}");
    }
    assert!(faults.is_empty(), "{what}:{message}");
}

/// Blanks out comments and the insides of text and character literals, so that braces and words in them do not count.
/// Line breaks stay where they are.
fn code_only(text: &str) -> String {
    let bytes: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let blank = |out: &mut String, c: char| out.push(if c == '\n' { '\n' } else { ' ' });
    while at < bytes.len() {
        let c = bytes[at];
        let next = bytes.get(at + 1).copied();
        if c == '/' && next == Some('/') {
            while at < bytes.len() && bytes[at] != '\n' {
                out.push(' ');
                at += 1;
            }
        } else if c == '/' && next == Some('*') {
            let mut depth = 0;
            while at < bytes.len() {
                match (bytes[at], bytes.get(at + 1)) {
                    ('/', Some('*')) => depth += 1,
                    ('*', Some('/')) => depth -= 1,
                    _ => {
                        blank(&mut out, bytes[at]);
                        at += 1;
                        continue;
                    }
                }
                out.push_str("  ");
                at += 2;
                if depth == 0 {
                    break;
                }
            }
        } else if let Some(hashes) = raw_text_at(&bytes, at) {
            let end: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            at += 2 + hashes;
            out.push_str(&" ".repeat(2 + hashes));
            let rest: String = bytes[at..].iter().collect();
            let length = rest.find(&end).map_or(bytes.len() - at, |found| rest[..found].chars().count());
            bytes[at..at + length].iter().for_each(|c| blank(&mut out, *c));
            at = (at + length + end.len()).min(bytes.len());
            out.push_str(&" ".repeat(end.len()));
        } else if c == '"' || (c == '\'' && is_char_literal(&bytes, at)) {
            out.push(' ');
            at += 1;
            while at < bytes.len() && bytes[at] != c {
                if bytes[at] == '\\' {
                    out.push(' ');
                    at += 1;
                }
                if at < bytes.len() {
                    blank(&mut out, bytes[at]);
                    at += 1;
                }
            }
            out.push(' ');
            at += 1;
        } else {
            out.push(c);
            at += 1;
        }
    }
    out
}

/// The number of `#` if raw text (`r"`, `r#"`) starts here.
fn raw_text_at(text: &[char], at: usize) -> Option<usize> {
    let before_is_word =
        at > 0 && (text[at - 1].is_alphanumeric() || text[at - 1] == '_') && text[at - 1] != 'b';
    if text[at] != 'r' || before_is_word {
        return None;
    }
    let hashes = text[at + 1..].iter().take_while(|c| **c == '#').count();
    (text.get(at + 1 + hashes) == Some(&'"')).then_some(hashes)
}

/// Tells `'a'` from the lifetime `'a`.
fn is_char_literal(text: &[char], at: usize) -> bool {
    text.get(at + 1) == Some(&'\\') || text.get(at + 2) == Some(&'\'')
}

fn layer_of(module: &str) -> Option<u8> {
    LAYERS.iter().find(|(_, modules)| modules.contains(&module)).map(|(layer, _)| *layer)
}

/// The module of `src/` that a file belongs to: its folder, or its stem at the top.
fn module_of(path: &str) -> &str {
    path.split('/').next().unwrap().trim_end_matches(".rs")
}

/// Every path below the crate that a file names, braces taken apart: `crate::{a::b, c}` is `a::b` and `c`.
fn crate_paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for start in ["crate::", "overnight::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
                continue;
            }
            read_paths(&code[at + start.len()..], "", &mut found);
        }
    }
    found
}

/// Reads one path, or a braced list of paths, at the start of `code`; returns how many bytes it took.
fn read_paths(code: &str, prefix: &str, found: &mut Vec<String>) -> usize {
    if let Some(inside) = code.strip_prefix('{') {
        let mut at = 1;
        let mut rest = inside;
        loop {
            let blanks = rest.len() - rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',').len();
            (at, rest) = (at + blanks, &rest[blanks..]);
            if rest.is_empty() || rest.starts_with('}') {
                return at + 1;
            }
            let took = read_paths(rest, prefix, found).max(1);
            let took = took + rest[took..].find([',', '}']).unwrap_or(rest.len() - took);
            (at, rest) = (at + took, &rest[took..]);
        }
    }
    let word = code.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len());
    let path =
        if prefix.is_empty() { code[..word].to_owned() } else { format!("{prefix}::{}", &code[..word]) };
    match code[word..].strip_prefix("::") {
        Some(rest) if rest.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '{') => {
            word + 2 + read_paths(rest, &path, found)
        }
        _ => {
            if word > 0 {
                found.push(path);
            }
            word
        }
    }
}

/// Why `from` may not use `to`; `None` if it may.
fn layer_fault(from: &str, to: &str) -> Option<String> {
    if from == to || from == "lib" || from == "main" {
        return None;
    }
    let tool = SHELL_TOOLS.contains(&to);
    if SHELL_TOOLS.contains(&from) {
        let inner = tool || layer_of(to).is_some_and(|layer| layer <= 1);
        return (!inner).then(|| format!("{from} may use layers 0 and 1 only, not {to}"));
    }
    let Some(own) = layer_of(from) else { return Some(format!("{from} is in no layer: add it to LAYERS")) };
    if tool {
        return (own < 2).then(|| format!("layer {own} is handed its time and settings: no {to}"));
    }
    let Some(other) = layer_of(to) else { return Some(format!("{to} is in no layer: add it to LAYERS")) };
    let allowed = match own {
        0 => false,
        1 => other == 0 || (from == "sched" && to == "protocol"),
        2 => other < 2,
        _ => true,
    };
    (!allowed).then(|| format!("{from} (layer {own}) may not use {to} (layer {other})"))
}

#[test]
fn every_module_uses_only_the_layers_below_it() {
    let mut faults = Vec::new();
    let mut needed = vec![false; LAYER_EXCEPTIONS.len()];
    for source in sources().iter().filter(|source| !is_test_file(&source.path)) {
        let from = module_of(&source.path);
        for path in crate_paths(&code_only(production(&source.text))) {
            let to = path.split("::").next().unwrap();
            let is_module = to.starts_with(char::is_lowercase) && exists(to);
            let Some(fault) = is_module.then(|| layer_fault(from, to)).flatten() else { continue };
            let exception = LAYER_EXCEPTIONS.iter().position(|(file, uses, _)| {
                (source.path == *file || source.path.starts_with(&format!("{file}/")))
                    && (path == *uses || path.starts_with(&format!("{uses}::")))
            });
            match exception {
                Some(ix) => needed[ix] = true,
                None => faults.push(format!("src/{}: {fault} (`crate::{path}`)", source.path)),
            }
        }
    }
    for (ix, (file, uses, _)) in LAYER_EXCEPTIONS.iter().enumerate() {
        // An exception is stale only once both sides exist.
        if !needed[ix] && exists(uses.split("::").next().unwrap()) && exists(file) {
            faults.push(format!("the exception {file} -> {uses} is no longer needed"));
        }
    }
    fail_with("layers", &faults);
}

/// Whether a module of that name is in `src/`.
fn exists(module: &str) -> bool {
    let src = root().join("src");
    src.join(module).is_dir() || src.join(format!("{module}.rs")).is_file()
}

#[test]
fn the_core_reads_no_clock_no_file_and_no_environment() {
    const SHELL_ONLY: &[&str] = &[
        "std::fs",
        "std::net",
        "std::process",
        "std::env",
        "std::thread",
        "tokio::",
        "rustix::",
        "Instant::now",
        "SystemTime",
    ];
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| layer_of(module_of(&source.path)).is_some_and(|l| l < 2)) {
        let code = code_only(production(&source.text));
        for word in SHELL_ONLY.iter().filter(|word| code.contains(**word)) {
            faults.push(format!("src/{}: `{word}`", source.path));
        }
    }
    fail_with("layers 0 and 1 are pure", &faults);
}

#[test]
fn files_are_short_enough_or_have_a_reason() {
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| !is_test_file(&source.path)) {
        let code = code_only(production(&source.text));
        let lines = code.lines().filter(|line| !line.trim().is_empty()).count();
        let excused = LONG_FILES.iter().any(|(path, _)| *path == source.path);
        if lines > FILE_LINES && !excused {
            faults.push(format!("src/{}: {lines} lines of code; {FILE_LINES} are enough", source.path));
        } else if lines <= FILE_LINES && excused {
            faults.push(format!("src/{}: {lines} lines now; take it off LONG_FILES", source.path));
        }
    }
    stale_files(LONG_FILES.iter().map(|(path, _)| *path), &mut faults);
    fail_with("long files", &faults);
}

/// An exception for a file that is no longer there.
fn stale_files<'a>(paths: impl Iterator<Item = &'a str>, faults: &mut Vec<String>) {
    faults.extend(
        paths
            .filter(|path| !root().join("src").join(path).exists())
            .map(|path| format!("no file src/{path}: stale")),
    );
}

/// Every function with a body: its name, and its lines from signature to closing brace.
fn functions(code: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if code[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + 3..];
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let (Some(open), stop) = (rest.find('{'), rest.find(';')) else { continue };
        if name.is_empty() || stop.is_some_and(|stop| stop < open && !rest[..open].contains('[')) {
            continue;
        }
        let mut depth = 0_usize;
        let mut end = rest.len();
        for (ix, c) in rest[open..].char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                end = open + ix;
                break;
            }
        }
        found.push((name, rest[..end].matches('\n').count() + 1));
    }
    found
}

#[test]
fn functions_are_short_enough_or_have_a_reason() {
    let mut faults = Vec::new();
    let mut needed = vec![false; LONG_FUNCTIONS.len()];
    for source in sources().iter().filter(|source| !is_test_file(&source.path)) {
        for (name, lines) in functions(&code_only(production(&source.text))) {
            if lines <= FUNCTION_LINES {
                continue;
            }
            match LONG_FUNCTIONS
                .iter()
                .position(|(path, function, _)| *path == source.path && *function == name)
            {
                Some(ix) => needed[ix] = true,
                None => faults.push(format!(
                    "src/{}: fn {name} has {lines} lines; {FUNCTION_LINES} are enough",
                    source.path
                )),
            }
        }
    }
    for (ix, (path, function, _)) in LONG_FUNCTIONS.iter().enumerate().filter(|(ix, _)| !needed[*ix]) {
        faults
            .push(format!("src/{path}: fn {function} is short or gone; take entry {ix} off LONG_FUNCTIONS"));
    }
    fail_with("long functions", &faults);
}

#[test]
fn every_file_says_what_it_is_for() {
    let faults: Vec<String> = sources()
        .iter()
        .filter(|source| !is_test_file(&source.path) && !source.text.starts_with("//!"))
        .map(|source| format!("src/{}: does not open with `//!`", source.path))
        .collect();
    fail_with("module docs", &faults);
}

#[test]
fn no_banned_word_is_in_the_source() {
    let mut faults = Vec::new();
    for source in sources() {
        let code = code_only(&source.text);
        for (ix, line) in code.lines().enumerate() {
            for (word, instead) in BANNED.iter().filter(|(word, _)| line.contains(word)) {
                faults.push(format!("src/{}:{}: `{word}`: {instead}", source.path, ix + 1));
            }
        }
    }
    fail_with("banned words", &faults);
}

/// Names at the top: what git tracks, or all there is where this is no checkout.
fn top_names() -> BTreeSet<String> {
    let tracked = Command::new("git").args(["ls-files"]).current_dir(root()).output();
    let tracked = tracked.ok().filter(|output| output.status.success() && !output.stdout.is_empty());
    match tracked {
        Some(output) => String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(|path| path.split('/').next().unwrap().trim_matches('"').to_owned())
            .collect(),
        None => fs::read_dir(root())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect(),
    }
}

#[test]
fn the_top_of_the_repository_holds_only_what_belongs_there() {
    let faults: Vec<String> = top_names().into_iter().filter(|name| !TOP.contains(&name.as_str())).collect();
    fail_with("not at the top of the repository", &faults);
}

#[test]
fn every_sample_job_has_an_expected_outcome_and_a_line_in_the_readme() {
    let folder = root().join("sample-jobs");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let (expected, readme) = (read("expected.txt"), read("README.md"));
    let expected: BTreeMap<&str, &str> = expected
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(' ').unwrap_or((line, "")))
        .collect();
    let mut there = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            assert!(path.join("job.yaml").is_file(), "{name}/ has no job.yaml");
            there.push(name);
        } else if path.extension().is_some_and(|ext| ext == "yaml") {
            there.push(name);
        }
    }
    there.sort();
    assert_eq!(there, expected.keys().copied().collect::<Vec<_>>(), "files and expected.txt differ");
    assert!(there.len() >= 8, "at least eight sample jobs");
    for (name, outcome) in expected {
        assert!(["succeeded", "failed", "limit_reached"].contains(&outcome), "{name}: outcome `{outcome}`");
        assert!(readme.contains(&format!("`{name}")), "sample-jobs/README.md has no line for {name}");
    }
}

mod the_checks_themselves {
    use super::*;

    #[test]
    fn braces_and_words_in_comments_and_text_do_not_count() {
        let code = code_only("let a = \"todo!{\"; // dbg!\nlet b = r#\"}\"#; let c = '{'; fn x<'a>() {}");
        assert!(!code.contains("todo!") && !code.contains("dbg!"), "{code}");
        assert_eq!((code.matches('{').count(), code.matches('}').count()), (1, 1), "{code}");
        assert_eq!(code.lines().count(), 2);
    }

    #[test]
    fn paths_in_nested_braces_are_all_found() {
        let paths =
            crate_paths("use crate::{model::{Job, Now}, engine::local};\nlet x = crate::clock::now();");
        assert_eq!(paths, ["model::Job", "model::Now", "engine::local", "clock::now"]);
    }

    #[test]
    fn layers_forbid_what_they_should() {
        for (from, to, allowed) in [
            ("model", "sched", false),
            ("protocol", "sched", false),
            ("sched", "protocol", true),
            ("sched", "clock", false),
            ("store", "model", true),
            ("store", "clock", true),
            ("store", "engine", false),
            ("gpu", "daemon", false),
            ("daemon", "store", true),
            ("cli", "client", true),
            ("clock", "model", true),
            ("clock", "store", false),
            ("novel", "model", false),
        ] {
            assert_eq!(layer_fault(from, to).is_none(), allowed, "{from} -> {to}");
        }
    }

    #[test]
    fn tests_at_the_end_of_a_file_are_set_apart_but_a_tests_file_declaration_is_not() {
        assert_eq!(production("fn a() {}\n#[cfg(test)]\nmod tests {\n}"), "fn a() {}\n");
        let declared = "fn a() {}\n#[cfg(test)]\nmod tests;\nfn b() {}";
        assert_eq!(production(declared), declared);
    }

    #[test]
    fn a_function_is_measured_from_its_signature_to_its_brace() {
        let found = functions("trait T { fn no_body(&self); }\nfn two() -> u8 {\n    1\n}\n");
        assert_eq!(found, [("two".to_owned(), 3)]);
    }
}
