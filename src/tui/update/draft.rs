//! A job file that is to become a job: where it is from, its text, and what is known of it. Pure.

use crate::jobfile::{self, Base, Context, is_secret_name};
use crate::model::{Amount, JobId, JobSpec, Limit, Run, WorkKind};
use crate::protocol::{
    Command, Diagnostic, JobFile, Overrides, Reply, Request, Severity, SubmitFile, SubmittedJob,
};
use crate::tui::UiCommand;
use crate::tui::look::text::duration;
use crate::tui::ui::Ui;
use crate::tui::update::flows::{Desk, Flow};
use std::path::{Path, PathBuf};

/// Where a text is from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A file: edited where it lies.
    File(PathBuf),
    /// A template of the program, by its kind.
    Template(&'static str),
    /// A template of the person's own.
    OwnTemplate(PathBuf),
    /// The request of an earlier job.
    Job(JobId),
}

/// A job file that is to become a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Where it is from.
    pub origin: Origin,
    /// What it is called where it is talked about.
    pub shown: String,
    /// The default name of its job.
    pub(in crate::tui) stem: String,
    /// Where its relative paths start.
    base: Option<PathBuf>,
    /// Its text.
    pub text: Vec<u8>,
}

/// What the scheduler says of a text.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::tui) enum Verdict {
    /// What would become of its jobs, and warnings.
    Good(Vec<SubmittedJob>, Vec<Diagnostic>),
    /// What is wrong with it.
    Bad(Vec<Diagnostic>),
    /// It cannot be asked, and why.
    Unknown(String),
}

impl Verdict {
    /// From the answer to a check.
    pub(in crate::tui) fn of(reply: Reply) -> Self {
        match reply {
            Reply::Checked { jobs, diagnostics } if is_good(&diagnostics) && !jobs.is_empty() => {
                Self::Good(jobs, diagnostics)
            }
            Reply::Checked { diagnostics, .. } | Reply::Invalid { diagnostics } => Self::Bad(diagnostics),
            Reply::Refused { message } | Reply::NotFound { message } | Reply::Unavailable { message } => {
                Self::Unknown(message)
            }
            _ => Self::Unknown("the scheduler gave another answer".to_owned()),
        }
    }
}

fn is_good(findings: &[Diagnostic]) -> bool {
    findings.iter().all(|finding| finding.severity < Severity::Error)
}

/// What a text asks for, in words, as a card shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::tui) struct Facts {
    /// Jobs in the file.
    pub jobs: usize,
    /// The first one's name.
    pub name: String,
    /// `2 x H100`
    pub gpus: String,
    /// `-10`
    pub priority: i16,
    /// `1h00m`
    pub limit: String,
    /// The first line.
    pub command: String,
    /// The extra place, if there is one.
    pub output_to: Option<String>,
}

/// The templates of the program: what `overnight new` prints.
pub(in crate::tui) const TEMPLATES: [(&str, WorkKind); 5] = [
    ("training", WorkKind::Training),
    ("inference", WorkKind::Inference),
    ("processing", WorkKind::Processing),
    ("simulation", WorkKind::Simulation),
    ("other", WorkKind::Other),
];

impl Draft {
    /// A file that was read.
    pub(in crate::tui) fn file(desk: &Desk, path: &Path, text: Vec<u8>) -> Self {
        Self {
            origin: Origin::File(path.to_owned()),
            shown: desk.short(path),
            stem: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            base: path.parent().map(Path::to_owned),
            text,
        }
    }

    /// A template of the program.
    pub(in crate::tui) fn template(desk: &Desk, name: &'static str, kind: WorkKind) -> Self {
        Self {
            origin: Origin::Template(name),
            shown: format!("{name} template"),
            stem: name.to_owned(),
            base: Some(desk.start.clone()),
            text: jobfile::template(kind).as_bytes().to_vec(),
        }
    }

    /// A template of the person's own: of the start folder, as one of the program's is.
    pub(in crate::tui) fn own_template(desk: &Desk, path: &Path, text: Vec<u8>) -> Self {
        let file = Self::file(desk, path, text);
        Self { origin: Origin::OwnTemplate(path.to_owned()), base: Some(desk.start.clone()), ..file }
    }

    /// The request of a job.
    pub(in crate::tui) fn job(file: JobFile) -> Self {
        Self {
            origin: Origin::Job(file.job),
            shown: format!("#{} {}", file.job, file.name),
            stem: file.name,
            base: file.base,
            text: file.text.into_bytes(),
        }
    }

    /// As the scheduler gets it.
    pub(in crate::tui) fn submit_file(&self, desk: &Desk, overrides: Overrides) -> SubmitFile {
        let file = match &self.origin {
            Origin::File(path) => Some(path.clone()),
            Origin::Template(_) | Origin::OwnTemplate(_) | Origin::Job(_) => None,
        };
        SubmitFile {
            text: self.text.clone(),
            shown: self.shown.clone(),
            stem: self.stem.clone(),
            file,
            base: self.base.clone(),
            overrides,
            environment: desk.environment.clone(),
            paused: false,
        }
    }

    /// Asks what would become of it; the number names the answer.
    pub(in crate::tui) fn check(&self, ui: &mut Ui, overrides: Overrides) -> (u64, UiCommand) {
        ui.flows.serial += 1;
        let command = Command::Check(self.submit_file(&ui.flows.desk, overrides));
        let flow = Flow::Check(ui.flows.serial);
        (ui.flows.serial, UiCommand::Ask { flow, request: Request::Command(command) })
    }

    /// What it asks for; `None` where it cannot be read.
    pub(in crate::tui) fn facts(&self, ui: &Ui, overrides: &Overrides) -> Option<Facts> {
        let base = self.base.clone().map(|at| Base { will_be: at.clone(), at });
        let parsed = jobfile::parse(
            &self.text,
            &Context {
                shown: &self.shown,
                stem: &self.stem,
                base,
                home: &ui.flows.desk.home,
                now_wall_ms: ui.now.wall_ms,
                zone: ui.tz.clone(),
                pool: None,
                limits: jobfile::Limits::default(),
                overrides,
                check_host: false,
            },
        );
        let (spec, _) = parsed.jobs.first()?;
        Some(facts(spec, parsed.jobs.len()))
    }

    /// Its text as a screen shows it, values of secrets left out.
    pub(in crate::tui) fn lines(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.text);
        text.lines().take(LINES).map(masked).collect()
    }
}

/// More of a file is not previewed.
const LINES: usize = 400;

fn masked(line: &str) -> String {
    let Some((name, value)) = line.split_once(':') else { return line.to_owned() };
    let word = name.trim().trim_start_matches("- ").trim_matches(['"', '\'', '{', ' ']);
    if value.trim().is_empty() || !is_secret_name(word) { line.to_owned() } else { format!("{name}: ***") }
}

fn facts(spec: &JobSpec, jobs: usize) -> Facts {
    let request = &spec.request;
    let mut gpus = match request.gpus {
        Amount::All => "all".to_owned(),
        Amount::Some(0) => "none: CPU only".to_owned(),
        Amount::Some(n) => n.to_string(),
    };
    if !request.gpu_model.is_empty() {
        gpus = format!("{gpus} x {}", request.gpu_model.join(" or "));
    }
    if let Some(memory) = request.gpu_memory {
        gpus = format!("{gpus} with {memory} each");
    }
    Facts {
        jobs,
        name: spec.name.clone(),
        gpus,
        priority: request.priority.get(),
        limit: limit(request.limit),
        command: match &spec.work.run {
            Run::Shell(text) => first_line(text),
            Run::Argv(words) => words.join(" "),
        },
        output_to: spec.output_to.as_ref().map(|path| path.display().to_string()),
    }
}

/// `1h00m`, as cards show it.
pub(in crate::tui) fn limit(limit: Limit) -> String {
    match limit {
        Limit::For(span) => duration(span),
        Limit::UntilDone => "until done".to_owned(),
    }
}

fn first_line(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default().trim().to_owned();
    let more = lines.count();
    if more > 0 { format!("{first}  (+{more} lines)") } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secrets_are_left_out_of_a_preview() {
        for (line, shown) in [
            ("    HF_TOKEN: hf_abc", "    HF_TOKEN: ***"),
            ("  - API_KEY: x", "  - API_KEY: ***"),
            ("  gpus: 2", "  gpus: 2"),
            ("  HF_TOKEN:", "  HF_TOKEN:"),
            ("run: echo a: b", "run: echo a: b"),
        ] {
            assert_eq!(masked(line), shown);
        }
    }

    #[test]
    fn what_a_template_asks_for_is_told() {
        let ui = crate::tui::ui::Ui::new(
            crate::model::Now { boot: crate::model::BootId(1), boottime_ms: 0, wall_ms: 0 },
            jiff::tz::TimeZone::UTC,
            crate::tui::look::canvas::Glyphs::Ascii,
        );
        for (name, kind) in TEMPLATES {
            let draft = Draft::template(&Desk { start: "/home/me".into(), ..Desk::default() }, name, kind);
            let facts = draft.facts(&ui, &Overrides::default()).unwrap();
            assert!(!facts.name.is_empty() && !facts.command.is_empty() && !facts.limit.is_empty());
            let named = Overrides { name: Some("other-name".into()), gpus: Some(7), ..Overrides::default() };
            let facts = draft.facts(&ui, &named).unwrap();
            assert_eq!((facts.name.as_str(), facts.gpus.starts_with('7')), ("other-name", true));
        }
    }
}
