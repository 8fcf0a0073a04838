//! Job files on the command line: reading them, and what can be said of them without a scheduler.

use super::{CliError, Io, Setup, Shown};
use crate::config::{Config, UntilDone};
use crate::jobfile::{self, Base, Context, Parsed, RenderStyle};
use crate::protocol::{Diagnostic, Overrides, Severity, SubmitFile};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Names of the job file in a folder.
const IN_FOLDER: [&str; 2] = ["job.yaml", "job.yml"];

/// A job file as it was read.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// Its text: one byte more than is allowed, if it is too large.
    pub text: Vec<u8>,
    /// As the person named it.
    pub shown: String,
    /// Where the default name comes from.
    pub stem: String,
    /// The file; `None` for standard input.
    pub file: Option<PathBuf>,
    /// Where relative paths start.
    pub base: Option<PathBuf>,
    /// It is a folder that goes whole.
    pub folder: bool,
}

impl Source {
    /// Reads what a person named: a file, a folder with a job.yaml, or `-`.
    pub(super) fn read(named: &Path, config: &Config) -> Result<Self, CliError> {
        let most = config.limits.max_file.0;
        if named.as_os_str() == "-" {
            let text = read_some(std::io::stdin().lock(), most).map_err(|source| CliError::File {
                doing: "read",
                path: "standard input".into(),
                source,
            })?;
            let (shown, stem) = ("<stdin>".to_owned(), "job".to_owned());
            return Ok(Self { text, shown, stem, file: None, base: None, folder: false });
        }
        let failed = |doing| move |source| CliError::File { doing, path: named.to_owned(), source };
        let whole = std::path::absolute(named).map_err(failed("find"))?;
        let folder = whole.is_dir();
        let (path, shown) = if folder {
            let Some(name) = IN_FOLDER.into_iter().find(|name| whole.join(name).is_file()) else {
                let message = format!("{} is a folder without a job.yaml", named.display());
                return Err(CliError::Refused { message });
            };
            (whole.join(name), named.join(name))
        } else {
            (whole.clone(), named.to_owned())
        };
        let text = File::open(&path).and_then(|file| read_some(file, most)).map_err(failed("read"))?;
        let stem = if folder { whole.file_name() } else { whole.file_stem() };
        Ok(Self {
            text,
            shown: shown.display().to_string(),
            stem: stem.unwrap_or_default().to_string_lossy().into_owned(),
            base: path.parent().map(Path::to_owned),
            file: Some(path),
            folder,
        })
    }

    /// As the scheduler gets it.
    pub(super) fn submit_file(&self, setup: &Setup, overrides: &Overrides, paused: bool) -> SubmitFile {
        SubmitFile {
            text: self.text.clone(),
            shown: self.shown.clone(),
            stem: self.stem.clone(),
            file: self.file.clone(),
            base: self.base.clone(),
            overrides: overrides.clone(),
            environment: setup.environment.for_work(),
            paused,
        }
    }

    /// What can be said without a scheduler. `base`: where relative paths would start.
    pub(super) fn parse(
        &self,
        setup: &Setup,
        base: Option<&Path>,
        overrides: &Overrides,
    ) -> Result<Parsed, CliError> {
        let context = Context {
            shown: &self.shown,
            stem: &self.stem,
            base: base.map(|base| Base { at: base.to_owned(), will_be: base.to_owned() }),
            home: setup.environment.home()?,
            now_wall_ms: crate::clock::wall_ms(),
            zone: setup.zone.clone(),
            pool: None,
            limits: limits(&setup.config),
            overrides,
            check_host: true,
        };
        Ok(jobfile::parse(&self.text, &context))
    }
}

/// What the operator allows, in the job file's terms.
pub fn limits(config: &Config) -> jobfile::Limits {
    let (until_done, max_for) = match config.limits.until_done {
        UntilDone::Allow => (jobfile::UntilDone::Allowed, None),
        UntilDone::Forbid => (jobfile::UntilDone::Forbidden, None),
        UntilDone::Cap(span) => (jobfile::UntilDone::Forbidden, Some(span)),
    };
    jobfile::Limits { file_bytes: config.limits.max_file.0, tasks: config.limits.tasks, until_done, max_for }
}

/// Prints findings, with carets, and says whether there is an error among them.
pub(super) fn print_findings(findings: &[Diagnostic], io: &mut Io<'_>) -> Result<bool, CliError> {
    if !findings.is_empty() {
        let style = if io.colour { RenderStyle::Ansi } else { RenderStyle::Plain };
        let text = jobfile::render(findings, style);
        io.show(&Shown::coloured(&text, io.colour))?;
        if !text.ends_with('\n') {
            io.gap()?;
        }
    }
    Ok(findings.iter().any(|finding| finding.severity == Severity::Error))
}

/// At most one byte more than is allowed: enough to be refused for its size, whatever it is.
fn read_some(from: impl Read, most: u64) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    from.take(most + 1).read_to_end(&mut text)?;
    Ok(text)
}
