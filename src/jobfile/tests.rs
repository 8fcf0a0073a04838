//! The job file against its table: every input under `tests/jobfile`, and properties of the reader.

use super::*;
use crate::model::{Amount, Bytes, Code, JobSpec, Limit, Run, Span, WorkKind};
use crate::protocol::{Diagnostic, Overrides, PoolFacts, Severity};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Mon 2026-11-30 15:00 UTC.
const NOW: i64 = 1_796_050_800_000;

struct Case {
    shown: String,
    stem: String,
    home: PathBuf,
    base: Option<Base>,
    pool: Option<PoolFacts>,
    limits: Limits,
    overrides: Overrides,
    check_host: bool,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            shown: "~/overnight/inbox/train.yaml".into(),
            stem: "train".into(),
            home: PathBuf::from("/home/ana"),
            base: None,
            pool: Some(pool()),
            limits: Limits::default(),
            overrides: Overrides::default(),
            check_host: false,
        }
    }
}

impl Case {
    fn parse(&self, text: impl AsRef<[u8]>) -> Parsed {
        let cx = Context {
            shown: &self.shown,
            stem: &self.stem,
            base: self.base.clone(),
            home: &self.home,
            now_wall_ms: NOW,
            zone: jiff::tz::TimeZone::UTC,
            pool: self.pool.as_ref(),
            limits: self.limits,
            overrides: &self.overrides,
            check_host: self.check_host,
        };
        parse(text.as_ref(), &cx)
    }
}

fn pool() -> PoolFacts {
    PoolFacts {
        gpus: vec![("NVIDIA A100 80GB PCIe".to_owned(), Bytes::mib(81559)); 8],
        cores: 128,
        memory: Bytes::gib(1024),
        jobs: vec!["prep".into(), "fetch".into()],
        known: true,
    }
}

fn text_of(parsed: &Parsed) -> String {
    render(&parsed.diagnostics, RenderStyle::Plain)
}

fn inputs(folder: &str) -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jobfile").join(folder);
    let mut list: Vec<(String, Vec<u8>)> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap()))
        .collect();
    list.sort();
    assert!(!list.is_empty());
    list
}

/// Findings that an input cannot show by itself: they need the host, or another part finds them.
const ELSEWHERE: &[u16] = &[78, 80, 90, 100, 103];
/// Rows whose input is accepted without a word.
const ACCEPTED: &[&str] =
    &["07_gpus_quoted", "14_memory_80_fits", "18_for_clock", "28_tab_in_block", "29_bom", "60_continued"];

fn rendered(folder: &str) -> String {
    let mut out = String::new();
    for (name, bytes) in inputs(folder) {
        let parsed = Case { shown: format!("inbox/{name}"), ..Case::default() }.parse(&bytes);
        writeln!(out, "──── {name}: {} accepted\n{}", parsed.jobs.len(), text_of(&parsed)).unwrap();
    }
    out
}

fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jobfile/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn errors(parsed: &Parsed) -> Vec<u16> {
    parsed.diagnostics.iter().filter(|d| d.severity == Severity::Error).map(|d| d.code).collect()
}

fn codes(parsed: &Parsed) -> Vec<u16> {
    parsed.diagnostics.iter().map(|d| d.code).collect()
}

fn only_job(parsed: &Parsed) -> &JobSpec {
    assert_eq!(errors(parsed), Vec::<u16>::new(), "{}", text_of(parsed));
    assert_eq!(parsed.jobs.len(), 1);
    &parsed.jobs[0].0
}

fn job(work: &str, request: &str) -> String {
    format!("work: {{{work}}}\ndata: []\nrequest: {{{request}}}\noutput: []\n")
}

#[test]
fn messages_for_what_real_users_write_stay_as_they_are() {
    snapshot("broken", &rendered("broken"));
}

#[test]
fn messages_for_every_row_of_the_table_stay_as_they_are() {
    snapshot("rows", &rendered("rows"));
}

#[test]
fn each_input_finds_what_its_name_says() {
    for (name, bytes) in inputs("rows") {
        let stem = name.trim_end_matches(".yaml");
        let parsed = Case::default().parse(&bytes);
        let Some(code) = stem.split('_').next().and_then(|n| n.parse::<u16>().ok()) else { continue };
        if ACCEPTED.contains(&stem) {
            assert_eq!(codes(&parsed), Vec::<u16>::new(), "{name}");
            assert_eq!(parsed.jobs.len(), 1, "{name}");
        } else {
            assert!(codes(&parsed).contains(&code), "{name} finds {:?}", codes(&parsed));
        }
        assert_eq!(parsed.jobs.is_empty(), !errors(&parsed).is_empty(), "{name}");
    }
}

#[test]
fn every_finding_of_the_table_is_found_by_some_input() {
    let found: Vec<u16> = ["broken", "rows"]
        .into_iter()
        .flat_map(inputs)
        .flat_map(|(_, bytes)| codes(&Case::default().parse(&bytes)))
        .collect();
    for code in 1..=103_u16 {
        let silent = ACCEPTED.iter().any(|name| name.starts_with(&format!("{code:02}_")));
        assert!(found.contains(&code) || silent || ELSEWHERE.contains(&code), "nothing finds {code}");
    }
}

#[test]
fn carets_cover_characters_that_are_there() {
    for (name, bytes) in ["broken", "rows"].into_iter().flat_map(inputs) {
        let text = String::from_utf8_lossy(&bytes).replace('\r', "");
        let text = text.trim_start_matches('\u{FEFF}');
        for d in Case::default().parse(&bytes).diagnostics {
            assert!(
                !d.message.contains('\n')
                    && d.message
                        .starts_with(|c: char| !c.is_uppercase() || c == 'W' || c == 'O' || d.code == 76),
                "{name}: {}",
                d.message
            );
            let Some(source) = &d.source else { continue };
            let line = text.split('\n').nth(d.line as usize - 1).unwrap();
            assert_eq!(line.trim_end().chars().count(), source.chars().count(), "{name}");
            let end = d.column + d.width - 1;
            assert!(
                d.width >= 1 && end as usize <= line.chars().count().max(1),
                "{name} {}: {}",
                d.code,
                d.message
            );
        }
    }
}

#[test]
fn a_certain_mend_mends() {
    let mut tried = 0;
    for (name, bytes) in ["broken", "rows"].into_iter().flat_map(inputs) {
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let before = Case::default().parse(&text);
        for d in before.diagnostics.iter().filter(|d| d.fix.is_some()) {
            tried += 1;
            let mended = apply_fixes(&text, &[d.fix.clone().unwrap()]);
            assert_ne!(mended, text, "{name}");
            let after = Case::default().parse(&mended);
            let same = |list: &[Diagnostic]| list.iter().filter(|o| o.code == d.code).count();
            assert!(
                same(&after.diagnostics) < same(&before.diagnostics),
                "{name}: {} stays after\n{mended}\n{}",
                d.message,
                text_of(&after)
            );
        }
    }
    assert!(tried > 50, "{tried} mends tried");
}

#[test]
fn all_mends_of_a_file_together_make_it_a_job() {
    for (text, want) in [
        ("name: t\nrun: python train.py\ngpus: 1\nfor: 1h\ndata: []\noutput: []\n", "python train.py"),
        ("work:\n\trun: x\ndata: []\nrequest:\n\tgpus: 1\n\tfor: 1h\noutput: []\n", "x"),
        ("work: x\ndata:\nrequest:\n  - gpu: 1\n  - time: 1h\noutput: a.txt\n", "x"),
        ("work:\r\n  run: `x` @y\r\ndata: []\r\nrequest:\r\n  gpus=1\r\n    for: 1.5h\r\n", "`x` @y"),
        ("work:\n  run: >\n    a\n    b\ndata: {c: /d}\nrequest: {gpus: 1, for: 6 hours}\n", "a\nb\n"),
    ] {
        let mut text = text.to_owned();
        // A mend may show what stood behind the first mistake.
        for _ in 0..4 {
            let edits: Vec<_> =
                Case::default().parse(&text).diagnostics.into_iter().filter_map(|d| d.fix).collect();
            text = apply_fixes(&text, &edits);
        }
        let parsed = Case::default().parse(&text);
        assert_eq!(only_job(&parsed).work.run, Run::Shell(want.to_owned()), "{text}");
    }
}

#[test]
fn the_same_file_with_other_line_ends_is_the_same_job() {
    let text = "work:\n  run: |\n    a\n    b\ndata: []\nrequest: {gpus: 1, for: 1h}\noutput: []\n";
    let plain = Case::default().parse(text);
    for other in [text.replace('\n', "\r\n"), format!("\u{FEFF}{text}"), text.replace('\n', "\r")] {
        assert_eq!(Case::default().parse(&other), plain);
    }
    assert_eq!(only_job(&plain).work.run, Run::Shell("a\nb\n".into()));
}

#[test]
fn model_jobs_parse_and_come_back_from_their_own_words() {
    let mut out = String::new();
    for (name, bytes) in inputs("models") {
        let case = Case { stem: name.trim_end_matches(".yaml").to_owned(), ..Case::default() };
        let parsed = case.parse(&bytes);
        write!(out, "──── {name}\n{}", text_of(&parsed)).unwrap();
        if name.contains("not-yet") {
            assert_eq!(codes(&parsed), [89, 89, 89], "{name}");
            continue;
        }
        assert_eq!(errors(&parsed), Vec::<u16>::new(), "{name}: {}", text_of(&parsed));
        for (spec, _) in &parsed.jobs {
            let json = to_json(spec);
            writeln!(out, "{}", serde_json::to_string_pretty(&json).unwrap()).unwrap();
            let again = case.parse(json.to_string());
            assert_eq!(only_job(&again), spec, "{json}");
        }
    }
    snapshot("models", &out);
}

#[test]
fn templates_parse_without_a_word() {
    for kind in
        [WorkKind::Training, WorkKind::Inference, WorkKind::Processing, WorkKind::Simulation, WorkKind::Other]
    {
        let parsed = Case::default().parse(template(kind));
        assert_eq!(parsed.diagnostics, Vec::new(), "{}", text_of(&parsed));
        assert_eq!(parsed.jobs[0].0.work.kind, kind);
    }
}

#[test]
fn every_field_of_the_tables_is_in_the_schema_and_no_other() {
    use super::fields::{
        Adjust, DataEntry, JobFile, OutputEntry, RequestSection, RetrySection, SetupSection, StopSection,
        WorkSection,
    };
    let schema = schema();
    let names = |at: &serde_json::Value| -> Vec<String> {
        let mut names: Vec<String> = at["properties"].as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    let table = |fields: &[&str]| {
        let mut names: Vec<String> = fields.iter().map(ToString::to_string).collect();
        names.sort();
        names
    };
    assert_eq!(names(&schema), table(JobFile::SECTION.fields));
    for (name, section) in [
        ("WorkSection", WorkSection::SECTION),
        ("SetupSection", SetupSection::SECTION),
        ("StopSection", StopSection::SECTION),
        ("Adjust", Adjust::SECTION),
        ("DataEntry", DataEntry::SECTION),
        ("RequestSection", RequestSection::SECTION),
        ("RetrySection", RetrySection::SECTION),
        ("OutputEntry", OutputEntry::SECTION),
    ] {
        let at = &schema["$defs"][name];
        assert_eq!(names(at), table(section.fields), "{name}");
        assert_eq!(at["additionalProperties"], false, "{name}");
    }
    assert_eq!(schema["required"], serde_json::json!(["work", "data", "request", "output"]));
    let text = schema.to_string();
    for at in text.match_indices("#/$defs/").map(|(at, found)| at + found.len()) {
        let name: String = text[at..].chars().take_while(|c| c.is_alphanumeric()).collect();
        assert!(schema["$defs"][&name].is_object(), "{name} is referred to and not there");
    }
}

#[test]
fn text_stays_as_written() {
    let parsed = Case::default().parse(job(
        "run: [python, 1e-4, 0.10, 010, yes, 1_000, 2:30], env: {A: no, B: 010, C: 1.10, D: 0x1F, E: ' x '}",
        "gpus: 0, for: 1h",
    ));
    let spec = only_job(&parsed);
    assert_eq!(
        spec.work.run,
        Run::Argv(["python", "1e-4", "0.10", "010", "yes", "1_000", "2:30"].map(ToOwned::to_owned).to_vec())
    );
    let env: Vec<&str> = spec.work.env.values().map(String::as_str).collect();
    assert_eq!(env, ["no", "010", "1.10", "0x1F", " x "]);
}

#[test]
fn moments_are_resolved_once() {
    for (text, want) in [
        ("08:00", "2026-12-01T08:00:00Z"),
        ("16:00", "2026-11-30T16:00:00Z"),
        ("15:00", "2026-12-01T15:00:00Z"),
        ("tomorrow 08:00", "2026-12-01T08:00:00Z"),
        ("today 22:30", "2026-11-30T22:30:00Z"),
        ("fri 09:00", "2026-12-04T09:00:00Z"),
        ("Monday 09:00", "2026-12-07T09:00:00Z"),
        ("mon 18:00", "2026-11-30T18:00:00Z"),
        ("in 10h", "2026-12-01T01:00:00Z"),
        ("in 1h 30m", "2026-11-30T16:30:00Z"),
        ("2026-12-01 08:00", "2026-12-01T08:00:00Z"),
        ("2026-12-01T08:00:00+02:00", "2026-12-01T06:00:00Z"),
    ] {
        let parsed = Case::default().parse(job("run: x", &format!("gpus: 0, for: 1m, finish_by: '{text}'")));
        let want: jiff::Timestamp = want.parse().unwrap();
        assert_eq!(only_job(&parsed).request.finish_by_ms, Some(want.as_millisecond()), "{text}");
    }
    for (text, code) in [
        ("8am", 24),
        ("8 pm", 24),
        ("tomorrow", 24),
        ("2026-12-01", 24),
        ("tomorow 08:00", 23),
        ("in 3", 23),
        ("25:00", 23),
        ("2026-13-01 08:00", 23),
        ("soon", 23),
        ("", 23),
        ("tomorrow 8", 24),
    ] {
        let parsed =
            Case::default().parse(job("run: x", &format!("gpus: 0, for: 1m, start_after: '{text}'")));
        assert_eq!(errors(&parsed), [code], "{text}: {}", text_of(&parsed));
    }
}

#[test]
fn a_time_that_the_clock_skips_in_spring_is_still_a_moment() {
    let zone = jiff::tz::TimeZone::get("Europe/Berlin").unwrap();
    let case = Case::default();
    let cx = Context {
        shown: "x",
        stem: "x",
        base: None,
        home: &case.home,
        now_wall_ms: NOW,
        zone,
        pool: None,
        limits: Limits::default(),
        overrides: &case.overrides,
        check_host: false,
    };
    let text = job("run: x", "gpus: 0, for: 1h, finish_by: 2027-03-28 02:30");
    let parsed = parse(text.as_bytes(), &cx);
    let want: jiff::Timestamp = "2027-03-28T01:30:00Z".parse().unwrap();
    assert_eq!(only_job(&parsed).request.finish_by_ms, Some(want.as_millisecond()));
}

#[test]
fn overrides_come_before_everything_else() {
    let overrides = Overrides {
        name: Some("other".into()),
        env: [("A".to_owned(), "2".to_owned())].into(),
        gpus: Some(3),
        limit: Some(Span::secs(600)),
        priority: None,
    };
    let case = Case { overrides, ..Case::default() };
    let parsed =
        case.parse("work: {run: x, env: {A: 1}}\ndata: []\nrequest: {gpu_model: a100}\noutput: []\n");
    let spec = only_job(&parsed);
    assert_eq!((spec.name.as_str(), spec.work.env["A"].as_str()), ("other", "2"));
    assert_eq!(spec.request.gpus, Amount::Some(3));
    assert_eq!(spec.request.limit, Limit::For(Span::secs(600)));
    let case = Case { overrides: Overrides { gpus: Some(99), ..Overrides::default() }, ..Case::default() };
    assert_eq!(errors(&case.parse(job("run: x", "gpus: 1, for: 1h"))), [12]);
}

#[test]
fn one_wrong_document_refuses_the_submission() {
    let good = job("run: x", "gpus: 1, for: 1h");
    let parsed = Case::default().parse(format!("{good}---\n{}", job("run: y", "gpus: two, for: 1h")));
    assert!(parsed.jobs.is_empty());
    assert_eq!(parsed.diagnostics[0].line, 8);
    let parsed = Case::default()
        .parse(format!("# a comment\n---\nname: a\n{good}---\nname: b\n{good}...\n---\n# nothing\n"));
    assert_eq!(parsed.jobs.len(), 2);
    assert_eq!(parsed.diagnostics, Vec::new());
}

#[test]
fn one_mistake_in_brackets_is_one_finding() {
    let rest = "data: []\nrequest: {gpus: 1, for: 1h}\noutput: []\n";
    for (text, at, said) in [
        (format!("work: {{run: \"x}}\n{rest}"), (1, 13), "a quote is not closed"),
        (format!("work: {{run: [a, 'x]}}\n{rest}"), (1, 17), "a quote is not closed"),
        (
            "work: {run: x}\ndata: []\nrequest: {gpus: two #4, for: 1h}\noutput: []\n".to_owned(),
            (3, 21),
            "`#` begins a comment here",
        ),
        (
            "work: {run: x}\ndata: []\nrequest: {gpus: 1, for: 1h}\noutput: [a #b]\n".to_owned(),
            (4, 12),
            "`#` begins",
        ),
    ] {
        let found = Case::default().parse(&text).diagnostics;
        assert_eq!(found.len(), 1, "{text}\n{found:#?}");
        assert_eq!((found[0].line, found[0].column), at, "{text}");
        assert!(found[0].message.contains(said), "{}", found[0].message);
    }
}

#[test]
fn jobs_of_one_submission_know_each_other() {
    let text = "name: a\nwork: {run: x}\ndata: []\nrequest: {gpus: 0, for: 1h}\noutput: []\n---\nname: b\nwork: {run: x}\ndata: []\nrequest: {gpus: 0, for: 1h, after: [a, nobody]}\noutput: []\n";
    let parsed = Case::default().parse(text);
    assert_eq!(parsed.jobs.len(), 2);
    assert_eq!(parsed.jobs[0].1, Vec::new());
    assert_eq!(parsed.jobs[1].1.len(), 1);
    assert_eq!(parsed.jobs[1].1[0].message, "no job named nobody");
}

#[test]
fn the_pool_is_asked_only_when_it_is_known() {
    let text = job("run: x", "gpus: 64, gpu_model: tpu, for: 1h");
    assert_eq!(errors(&Case::default().parse(&text)), [12, 13]);
    for pool in [None, Some(PoolFacts { known: false, ..pool() })] {
        assert_eq!(errors(&Case { pool, ..Case::default() }.parse(&text)), Vec::<u16>::new());
    }
    let mut mixed = pool();
    mixed.gpus.truncate(2);
    mixed.gpus.push(("NVIDIA L4".into(), Bytes::mib(23034)));
    let case = Case { pool: Some(mixed), ..Case::default() };
    assert_eq!(errors(&case.parse(job("run: x", "gpus: 3, gpu_memory: 80GiB, for: 1h"))), [12]);
    assert_eq!(errors(&case.parse(job("run: x", "gpus: 3, gpu_memory: 24GiB, for: 1h"))), Vec::<u16>::new());
    assert_eq!(errors(&case.parse(job("run: x", "gpus: 1, gpu_model: [L4], for: 1h"))), Vec::<u16>::new());
}

#[test]
fn one_wrong_field_hides_no_other_mistake() {
    let case = Case::default();
    let found = errors(&case.parse(job("run: \"nohup x &\"", "gpus: 16, for: 2, memory: 9999GiB")));
    for code in [12, 16, 64, 102] {
        assert!(found.contains(&code), "{code} is not among {found:?}");
    }
}

#[test]
fn arguments_and_patterns_of_commands_are_left_alone() {
    let text = "work:\n  run:\n    - python\n    - data=coco\n    - name:x\n  env:\n    A: x\ndata: []\nrequest: {gpus: 0, for: 1h}\noutput: [x]\n";
    assert_eq!(Case::default().parse(text).diagnostics, Vec::new());
    for line in ["awk '{{print}}' x", "mktemp aXXXXXX_bXXXXXX", "python -c \"print(f'{{x}}')\""] {
        let text =
            format!("work:\n  run: |\n    {line}\ndata: []\nrequest: {{gpus: 0, for: 1h}}\noutput: [x]\n");
        assert_eq!(Case::default().parse(text).diagnostics, Vec::new(), "{line}");
    }
    let text =
        "work:\n  run: python\n    --a\n    data=coco\ndata: []\nrequest: {gpus: 0, for: 1h}\noutput: [x]\n";
    assert_eq!(errors(&Case::default().parse(text)), [60]);
}

#[test]
fn a_windows_path_is_one_also_when_its_escapes_are_yaml() {
    let parsed = Case::default()
        .parse("work: {run: x}\ndata: [\"C:\\new\\table\"]\nrequest: {gpus: 0, for: 1h}\noutput: []\n");
    assert_eq!(errors(&parsed), [33], "{}", text_of(&parsed));
}

#[test]
fn overridden_variables_are_checked_too() {
    let env = [("CUDA_VISIBLE_DEVICES".to_owned(), "0".to_owned())].into();
    let case = Case { overrides: Overrides { env, ..Overrides::default() }, ..Case::default() };
    assert_eq!(errors(&case.parse(job("run: x", "gpus: 1, for: 1h"))), [67]);
}

#[test]
fn limits_of_the_operator_hold() {
    let limits =
        Limits { until_done: UntilDone::Forbidden, max_for: Some(Span::secs(3600)), ..Limits::default() };
    let case = Case { limits, ..Case::default() };
    assert_eq!(errors(&case.parse(job("run: x", "gpus: 1, for: until_done"))), [103]);
    assert_eq!(errors(&case.parse(job("run: x", "gpus: 1, for: 2h"))), [103]);
    assert_eq!(errors(&case.parse(job("run: x", "gpus: 1, for: 1h"))), Vec::<u16>::new());
}

#[test]
fn one_task_replaces_its_keys_and_no_other_braces() {
    let text = "name: fold-{target}\nwork:\n  for_each: {target: [T1], n: 5..5}\n  run: [fold, \"{target}\", '{\"n\": {n}}', \"{other}\"]\ndata: []\nrequest: {gpus: 0, for: 1h}\noutput: [\"out/{target}/x.pdb\"]\n";
    let parsed = Case::default().parse(text);
    let spec = only_job(&parsed);
    assert_eq!(spec.name, "fold-t1");
    assert_eq!(
        spec.work.run,
        Run::Argv(["fold", "T1", "{\"n\": 5}", "{other}"].map(ToOwned::to_owned).to_vec())
    );
    assert_eq!(spec.output[0].path, "out/T1/x.pdb");
    assert_eq!((spec.work.env["target"].as_str(), spec.work.env["n"].as_str()), ("T1", "5"));
    assert_eq!(spec.work.for_each.as_ref().unwrap().tasks.len(), 1);
}

#[test]
fn relative_paths_start_where_the_job_says() {
    let base = Base { at: PathBuf::from("/drop/now"), will_be: PathBuf::from("/jobs/17") };
    let case = Case { base: Some(base), ..Case::default() };
    let parsed = case.parse("work: {run: x, in: ./code, code: live, env_file: ../t.env}\ndata: [sets/coco, ~/d, /e]\nrequest: {gpus: 0, for: 1h}\noutput: [x]\noutput_to: ~/out\n");
    let spec = only_job(&parsed);
    assert_eq!(spec.work.dir.as_deref(), Some(Path::new("/jobs/17/code")));
    assert_eq!(spec.work.code, Code::Live);
    assert_eq!(spec.work.env_file.as_deref(), Some(Path::new("/jobs/17/code/../t.env")));
    assert_eq!(spec.output_to.as_deref(), Some(Path::new("/home/ana/out")));
    let from: Vec<String> = spec.data.iter().map(|item| format!("{:?} {}", item.from, item.name)).collect();
    assert_eq!(from, ["Path(\"/jobs/17/code/sets/coco\") coco", "Path(\"/home/ana/d\") d", "Path(\"/e\") e"]);
}

/// A home with a directory, a secret file, conda environments and a script.
fn host() -> (tempfile::TempDir, Case) {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let at = |path: &str| home.path().join(path);
    for dir in
        ["src/detector/scripts", "miniconda3/envs/detector", "miniforge3/envs/vision", "venv/bin", "data"]
    {
        std::fs::create_dir_all(at(dir)).unwrap();
    }
    std::fs::write(
        at("src/detector/scripts/go.sh"),
        "#!/bin/bash\nsrun python x.py\nCUDA_VISIBLE_DEVICES=0 python y.py\n",
    )
    .unwrap();
    std::fs::write(at("venv/bin/python"), "").unwrap();
    std::fs::write(at("tokens.env"), "A=1\n").unwrap();
    std::fs::set_permissions(at("tokens.env"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let case = Case { home: home.path().to_owned(), check_host: true, ..Case::default() };
    (home, case)
}

#[test]
fn what_a_job_names_must_be_there() {
    use std::os::unix::fs::PermissionsExt;
    let (home, case) = host();
    let file = |work: &str, data: &str| {
        format!("work: {{run: x, {work}}}\ndata: {data}\nrequest: {{gpus: 0, for: 1h}}\noutput: [x]\n")
    };
    let good = case.parse(file(
        "in: ~/src/detector, setup: {conda: detector, venv: ~/venv}, env_file: ~/tokens.env",
        "[~/data]",
    ));
    assert_eq!(good.diagnostics, Vec::new(), "{}", text_of(&good));
    for (work, data, hint) in [
        ("in: ~/src/detektor", "[]", "detector"),
        ("setup: {conda: detektor}", "[]", "there are: detector, vision"),
        ("setup: {venv: ~/data}", "[]", "python -m venv"),
        ("env_file: ~/gone.env", "[]", "there are:"),
        ("env: {A: b}", "[~/datum]", "data"),
    ] {
        let parsed = case.parse(file(work, data));
        assert_eq!(errors(&parsed), [78], "{work} {data}: {}", text_of(&parsed));
        assert!(parsed.diagnostics[0].hint.as_ref().unwrap().contains(hint), "{}", text_of(&parsed));
    }
    let secret = home.path().join("tokens.env");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o644)).unwrap();
    let parsed = case.parse(file("env_file: ~/tokens.env", "[]"));
    assert_eq!(errors(&parsed), [100]);
    assert!(parsed.diagnostics[0].hint.as_ref().unwrap().starts_with("chmod 600"));
}

#[test]
fn scripts_that_the_command_names_are_read_too() {
    let (_home, case) = host();
    for run in ["bash scripts/go.sh", "[bash, scripts/go.sh]", "./scripts/go.sh --x"] {
        let parsed = case.parse(format!(
            "work:\n  in: ~/src/detector\n  run: {run}\ndata: []\nrequest: {{gpus: 1, for: 1h}}\noutput: [x]\n"
        ));
        assert_eq!(codes(&parsed), [71, 67], "{run}: {}", text_of(&parsed));
        let d = &parsed.diagnostics[0];
        assert_eq!((d.file.as_str(), d.line, d.column), ("~/src/detector/scripts/go.sh", 2, 1));
        assert_eq!(parsed.jobs.len(), 1);
    }
}

#[test]
fn secrets_are_told_by_their_names_and_masked() {
    for name in [
        "WANDB_API_KEY",
        "HF_TOKEN",
        "MY_SECRET",
        "PGPASSWORD_PASSWORD",
        "AWS_ACCESS_KEY_ID",
        "token",
        "DB_PWD",
        "SSH_KEY",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in
        ["TOKENIZERS_PARALLELISM", "MAX_TOKENS", "PWD", "OLDPWD", "MONKEY", "KEYBOARD", "PATH", "HF_HOME", ""]
    {
        assert!(!is_secret_name(name), "{name}");
    }
    let parsed =
        Case::default().parse(job("run: x, env: {HF_TOKEN: hf_abcdefg, A: b, A: c}", "gpus: 0, for: 1h"));
    assert!(!text_of(&parsed).contains("hf_abcdefg"), "{}", text_of(&parsed));
    let parsed = Case::default().parse(job("run: x, env: {HF_TOKEN: hf_abcdefg, A: b}", "gpus: 0, for: 1h"));
    let json = to_json(only_job(&parsed));
    assert_eq!(json["work"]["env"], serde_json::json!({"HF_TOKEN": "•••", "A": "b"}));
    assert_eq!(only_job(&parsed).work.env["HF_TOKEN"], "hf_abcdefg");
}

#[test]
fn sound_shell_text_gives_no_warning() {
    for run in [
        "echo '&' && tail -n 3 x | grep -f y; cat x 2>&1 > z &>> all.log",
        "(cd x && make) || exit 1",
        "cat > conf <<EOF\nsrun x &\nEOF\npython x.py",
        "python server.py &\npid=$!\npython client.py\nkill $pid",
        "docker run --rm --init --name t image echo -it",
        "# nohup x &\npython x.py --opt='~/x' --out=\"$HOME/x\"",
        "for i in 1 2 3; do python x.py $i & pids+=($!); done; for p in \"${pids[@]}\"; do wait \"$p\"; done",
        "torchrun --nproc-per-node=2 x.py",
    ] {
        let text = format!(
            "work:\n  run: |\n{}\ndata: []\nrequest: {{gpus: 2, for: 1h}}\noutput: [x]\n",
            run.lines().map(|l| format!("    {l}\n")).collect::<Vec<_>>().concat()
        );
        let parsed = Case::default().parse(&text);
        assert_eq!(parsed.diagnostics, Vec::new(), "{run}\n{}", text_of(&parsed));
    }
}

#[test]
fn colours_change_nothing_but_colours() {
    let parsed =
        Case::default().parse("work: {run: x}\ndata: []\nrequest: {gpus: 1, for: 2:00}\noutput: []\n");
    let mut ansi = render(&parsed.diagnostics, RenderStyle::Ansi);
    assert!(ansi.contains("\u{1b}[1;31merror\u{1b}[0m"));
    while let Some(at) = ansi.find('\u{1b}') {
        let end = ansi[at..].find('m').unwrap();
        ansi.replace_range(at..=at + end, "");
    }
    assert_eq!(ansi, text_of(&parsed));
}

#[test]
fn wide_and_hostile_text_keeps_its_caret() {
    let parsed = Case::default().parse("name: 日本\u{1b}語\n");
    assert!(errors(&parsed).contains(&92));
    let parsed = Case::default()
        .parse("name: \"日本 x\"\nwork: {run: x}\ndata: []\nrequest: {gpus: 0, for: 1h}\noutput: []\n");
    assert!(text_of(&parsed).contains("1 | name: \"日本 x\"\n   |       ^^^^^^^^\n"), "{}", text_of(&parsed));
    let long = format!(
        "work: {{run: x}}\ndata: []\nrequest: {{gpus: 1, for: 1h, {} zz: 1}}\noutput: []\n",
        "after: [],".repeat(100)
    );
    let parsed = Case::default().parse(long);
    assert!(text_of(&parsed).lines().all(|line| line.chars().count() < 400));
    let parsed = Case::default()
        .parse("work: {run: x}\ndata: []\nrequest: {gpus: 1, for: 1h, \"a\u{202E}b\\e\": 1}\noutput: []\n");
    assert!(!text_of(&parsed).contains(['\u{202E}', '\u{1b}']));
}

const REFERENCE: &str = include_str!("../../docs/job-file.md");

#[test]
fn every_example_of_the_reference_is_a_job() {
    let mut examples = 0;
    for block in REFERENCE.split("```yaml\n").skip(1) {
        let text = block.split("```").next().unwrap();
        let parsed = Case::default().parse(text);
        assert!(!parsed.jobs.is_empty() && errors(&parsed).is_empty(), "{text}\n{}", text_of(&parsed));
        examples += 1;
    }
    assert!(examples >= 6);
}

#[test]
fn the_reference_names_every_field() {
    use super::fields::{
        Adjust, DataEntry, JobFile, OutputEntry, RequestSection, RetrySection, SetupSection, StopSection,
        WorkSection,
    };
    for section in [
        JobFile::SECTION,
        WorkSection::SECTION,
        SetupSection::SECTION,
        StopSection::SECTION,
        Adjust::SECTION,
        DataEntry::SECTION,
        RequestSection::SECTION,
        RetrySection::SECTION,
        OutputEntry::SECTION,
    ] {
        for field in section.fields {
            let named =
                REFERENCE.contains(&format!("`{field}`")) || REFERENCE.contains(&format!("{field}: "));
            assert!(named, "{field} of {}", section.name);
        }
    }
}

#[test]
fn the_table_of_the_reference_has_the_messages_as_they_are() {
    let mut found: Vec<Diagnostic> = ["broken", "rows"]
        .into_iter()
        .flat_map(inputs)
        .flat_map(|(_, bytes)| Case::default().parse(&bytes).diagnostics)
        .collect();
    let forbidden = Limits { until_done: UntilDone::Forbidden, ..Limits::default() };
    found.extend(
        Case { limits: forbidden, ..Case::default() }
            .parse(job("run: x", "gpus: 1, for: until_done"))
            .diagnostics,
    );
    found.extend(Case::default().parse(vec![b'a'; 2 << 20]).diagnostics);
    let (_home, case) = host();
    found.extend(case.parse(job("run: x, setup: {conda: detektor}", "gpus: 1, for: 1h")).diagnostics);
    let mut next = 1_u16;
    for line in REFERENCE.lines() {
        let cells: Vec<String> =
            line.replace("\\|", "\u{1}").split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect();
        let Some(number) = cells.get(1).and_then(|cell| cell.parse::<u16>().ok()) else { continue };
        assert_eq!(number, next);
        next += 1;
        let (mark, message) = (&cells[3], &cells[4]);
        // The size of a snapshot and the mode of a secret file are found elsewhere.
        if message.is_empty() || matches!(number, 80 | 100) {
            continue;
        }
        let same: Vec<&Diagnostic> = found.iter().filter(|d| d.code == number).collect();
        let exact: Vec<&&Diagnostic> = same.iter().filter(|d| d.message == *message).collect();
        let all: Vec<&str> = same.iter().map(|d| d.message.as_str()).collect();
        assert!(!exact.is_empty(), "row {number} says `{message}`; found are {all:?}");
        assert_eq!(mark.contains('W'), same.iter().any(|d| d.severity == Severity::Warning), "row {number}");
        assert_eq!(mark.contains('E'), same.iter().any(|d| d.severity == Severity::Error), "row {number}");
        assert_eq!(mark.contains("mend"), same.iter().any(|d| d.fix.is_some()), "row {number}");
    }
    assert_eq!(next, 104);
}

/// One text for each number.
fn many(count: u32, make: impl Fn(u32) -> String) -> String {
    (0..count).map(make).collect::<Vec<_>>().concat()
}

/// Nothing a file can hold may cost more than this; debug builds are slow.
const COST_MS: i64 = if cfg!(debug_assertions) { 2000 } else { 50 };

/// What this thread has used of a core, whatever else the machine does.
fn cpu_ms() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}

#[test]
fn hostile_files_are_refused_quickly() {
    let mut bomb = "a: &a [x]\n".to_owned();
    for n in 0..1000 {
        writeln!(bomb, "k{n}: &b{n} [{}]", "*a,".repeat(50)).unwrap();
    }
    let mib = 1 << 20;
    for (name, bytes) in [
        ("too large", vec![b'a'; 2 * mib]),
        ("sparse", vec![0; 64 * mib]),
        ("zeroes", vec![0; mib]),
        ("brackets", "[".repeat(100_000).into_bytes()),
        ("braces", "{".repeat(100_000).into_bytes()),
        ("dashes", "- ".repeat(100_000).into_bytes()),
        ("questions", "? ".repeat(100_000).into_bytes()),
        ("alias bomb", bomb.into_bytes()),
        ("one line", "a".repeat(mib).into_bytes()),
        ("unknown fields", many(80_000, |n| format!("f{n}: 1\n")).into_bytes()),
        ("keys of env", format!("work: {{env: {{{}}}}}\n", many(60_000, |n| format!("A{n}_KEY: x,"))).into_bytes()),
        ("data", format!("data: [{}]\n", many(60_000, |n| format!("/d/{n},"))).into_bytes()),
        ("keys of for_each", format!("work: {{for_each: {{{}}}}}\n", many(60_000, |n| format!("k{n}: x,"))).into_bytes()),
        ("after", format!("request: {{after: [{}]}}\n", many(60_000, |n| format!("j{n},"))).into_bytes()),
        ("chain", many(4_000, |n| format!("name: j{n}\nwork: {{run: x, env: {{A_KEY: b}}}}\ndata: []\nrequest: {{gpus: 0, for: 1h, after: [j{}]}}\n---\n", n + 1)).into_bytes()),
        ("documents", "a: 1\n---\n".repeat(100_000).into_bytes()),
        ("tabs", "\ta: 1\n".repeat(150_000).into_bytes()),
        ("colons", "a: b: c\n".repeat(100_000).into_bytes()),
        ("quotes", "a: \"\n".repeat(100_000).into_bytes()),
        ("long values", format!("a: [{}\n", "x,".repeat(400_000)).into_bytes()),
        ("utf-16", [0xFF, 0xFE].repeat(1000)),
    ] {
        let start = cpu_ms();
        let parsed = Case::default().parse(&bytes);
        let text = text_of(&parsed);
        let ms = cpu_ms() - start;
        println!("{name}: {ms} ms, {} findings, {} bytes", parsed.diagnostics.len(), text.len());
        assert!(parsed.jobs.is_empty() && !parsed.diagnostics.is_empty(), "{name}");
        assert!(ms < COST_MS, "{name} took {ms} ms");
        assert!(text.len() < 200_000, "{name}: {} bytes of findings", text.len());
    }
}

#[test]
fn a_small_file_is_read_in_a_fraction_of_a_millisecond() {
    let text = template(WorkKind::Training);
    let start = cpu_ms();
    for _ in 0..100 {
        assert_eq!(Case::default().parse(text).jobs.len(), 1);
    }
    let hundred = cpu_ms() - start;
    println!("100 small files: {hundred} ms");
    assert!(hundred < if cfg!(debug_assertions) { 600 } else { 30 }, "{hundred} ms for a hundred files");
}

fn whole(parsed: &Parsed) {
    let _ = text_of(parsed);
    assert!(parsed.jobs.is_empty() || errors(parsed).is_empty());
    assert!(!(parsed.jobs.is_empty() && errors(parsed).is_empty()));
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
        whole(&Case::default().parse(&bytes));
    }

    #[test]
    fn any_text_of_yaml_signs_is_read_or_refused(text in "[a-z0-9:{}\\[\\]'\"#&*!|>%@` \t\n,.~$\\\\-]{0,200}") {
        let parsed = Case::default().parse(&text);
        whole(&parsed);
        let edits: Vec<_> = parsed.diagnostics.into_iter().filter_map(|d| d.fix).collect();
        whole(&Case::default().parse(apply_fixes(&text, &edits)));
    }

    #[test]
    fn a_damaged_job_file_is_read_or_refused(
        pick in 0_usize..1000, cut in 0_usize..2000, put in "[:{}\\[\\]'\"#&*!|>\t\n ]{0,3}", len in 0_usize..4,
    ) {
        let all: Vec<_> = ["models", "rows", "broken"].into_iter().flat_map(inputs).collect();
        let bytes = &all[pick % all.len()].1;
        let text = String::from_utf8_lossy(bytes);
        let chars: Vec<char> = text.chars().collect();
        let cut = cut % (chars.len() + 1);
        let damaged: String = chars[..cut].iter().copied().chain(put.chars()).chain(chars[(cut + len).min(chars.len())..].iter().copied()).collect();
        let parsed = Case::default().parse(&damaged);
        whole(&parsed);
        let edits: Vec<_> = parsed.diagnostics.into_iter().filter_map(|d| d.fix).collect();
        whole(&Case::default().parse(apply_fixes(&damaged, &edits)));
    }
}
