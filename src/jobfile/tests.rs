//! The job file against its table: every input under `tests/jobfile`, and properties of the reader.

use super::*;
use crate::model::{Amount, Bytes, Code, JobSpec, Limit, Run, Span, WorkKind};
use crate::protocol::{Diagnostic, Overrides, PoolFacts, Severity};
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

#[test]
fn dump() {
    for (name, bytes) in inputs("rows") {
        let case = Case { shown: format!("inbox/{name}"), ..Case::default() };
        let parsed = case.parse(&bytes);
        println!(
            "=== {name} jobs {} codes {:?} fixes {:?}",
            parsed.jobs.len(),
            parsed.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(),
            parsed.diagnostics.iter().map(|d| d.fix.is_some()).collect::<Vec<_>>()
        );
        println!("{}", text_of(&parsed));
    }
}
