//! `config.toml`: every key is optional, none is unknown, and a mistake is told with its line and the nearest name.
//!
//! The documentation comments of these types are the text of `docs/configuration.md`.

use super::{ConfigError, Environment, ThemeSetting};
use crate::model::{Bytes, ParseValueError, Span, parse_bytes, parse_span};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What the operator has set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The folder with the inbox and the jobs. `~/` is the home directory. Default: `~/overnight`.
    pub root: Option<PathBuf>,
    /// Which GPUs to hand out: `auto`, `none` or `simulated:N`.
    #[schemars(with = "String")]
    pub gpus: GpuSource,
    /// What jobs find in their environment.
    pub environment: EnvironmentConfig,
    /// What a job may ask for at most.
    pub limits: LimitsConfig,
    /// What a job gets that does not say.
    pub defaults: Defaults,
    /// What counts as use of a GPU by somebody else.
    pub outside: OutsideConfig,
    /// Prices, for the meter's `cost` column.
    pub rates: Rates,
    /// How long finished jobs are kept.
    pub keep: KeepConfig,
    /// How people are told.
    pub notify: NotifyConfig,
    /// The dashboard's theme: a name (`overnight theme list`) or a path; or one each for dark and light terminals,
    /// `{ dark = "nord", light = "okabe-light" }`, chosen by `COLORFGBG` where the terminal sets it, else the dark one.
    /// `--theme` and `OVERNIGHT_THEME` go first. With `detect = "osc11"` in it the terminal is asked for its background.
    /// Default: `auto`; `mono` if `NO_COLOR` is set.
    #[schemars(with = "Option<serde_json::Value>")]
    pub theme: Option<ThemeSetting>,
    /// Keys of the dashboard: an action's name and its keys, such as `cancel = ["x", "F9"]`;
    /// docs/keys.md has them all.
    pub keys: BTreeMap<String, Vec<String>>,
    /// How the dashboard draws.
    pub ui: UiConfig,
    /// The file, if the command line named one.
    #[serde(skip)]
    #[schemars(skip)]
    pub named: Option<PathBuf>,
}

/// What jobs find in their environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EnvironmentConfig {
    /// `PATH` of dropped jobs. Default: as the login shell sets it, captured once.
    pub path: Option<String>,
    /// `LANG` of dropped jobs. Default: as the login shell sets it, captured once.
    pub lang: Option<String>,
}

/// What a job may ask for at most, and how long the pool waits for a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// What `for: until_done` may do: `allow`, `forbid`, or the longest time that any job may ask for, such as `7d`.
    #[schemars(with = "String")]
    pub until_done: UntilDone,
    /// The largest job file.
    #[serde(with = "size")]
    #[schemars(with = "String")]
    pub max_file: Bytes,
    /// The largest code snapshot, in MiB.
    pub snapshot_mib: u64,
    /// The most files of a code snapshot.
    pub snapshot_files: u64,
    /// The most log of one attempt that is kept, in MiB: its head and its tail.
    pub log_mib: u64,
    /// The most tasks of one job.
    pub tasks: u32,
    /// How long a GPU may take to be proven clean after its lease has ended. After that it is in quarantine.
    #[serde(with = "length")]
    #[schemars(with = "String")]
    pub drain: Span,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            until_done: UntilDone::Allow,
            max_file: Bytes::mib(1),
            snapshot_mib: 200,
            snapshot_files: 20_000,
            log_mib: 256,
            tasks: 100_000,
            drain: Span::secs(30),
        }
    }
}

/// What a job gets that does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Defaults {
    /// From the warning signal to the kill.
    #[serde(with = "length")]
    #[schemars(with = "String")]
    pub grace: Span,
    /// Cores for each GPU. Default: the pool's cores divided by its GPUs.
    pub cpus_per_gpu: Option<u32>,
    /// Memory for each GPU. Default: the pool's memory divided by its GPUs.
    #[serde(with = "maybe_size")]
    #[schemars(with = "Option<String>")]
    pub memory_per_gpu: Option<Bytes>,
}

impl Default for Defaults {
    fn default() -> Self {
        Self { grace: Span::secs(30), cpus_per_gpu: None, memory_per_gpu: None }
    }
}

/// What counts as use of a GPU by somebody else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OutsideConfig {
    /// Names of processes that belong to a GPU's baseline. `*` stands for anything.
    pub ignore: Vec<String>,
    /// Where the schedulers of all accounts keep the locks of the GPUs that they hold; the same for all of them.
    /// Default: `/run/lock/overnight`, else `/tmp/overnight-locks`.
    pub lock_dir: Option<PathBuf>,
}

impl Default for OutsideConfig {
    fn default() -> Self {
        let names = ["Xorg", "gnome-shell", "Xwayland", "nvidia-*", "dcgm*"];
        Self { ignore: names.map(str::to_owned).to_vec(), lock_dir: None }
    }
}

/// Prices, for the meter's `cost` column. Without any there is no such column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Rates {
    /// Price of a GPU for an hour. Without any price the meter has no `cost`.
    pub gpu_hour: Option<f64>,
    /// Price of a core for an hour.
    pub core_hour: Option<f64>,
}

/// How long finished jobs are kept. Default: for ever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeepConfig {
    /// Days that a job's folder is kept after the job is done. Default: for ever. Known, and not used yet.
    pub days: Option<u32>,
    /// GiB that all job folders of done jobs may take together; the oldest go first. Default: no bound. Known, and not
    /// used yet.
    pub gib: Option<u64>,
}

/// How people are told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NotifyConfig {
    /// The program that is run to tell people, and its arguments; no shell. Known, and not used yet.
    pub command: Option<Vec<String>>,
}

/// How the dashboard draws.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UiConfig {
    /// Only ASCII characters. Default: unless the locale is UTF-8.
    pub ascii: Option<bool>,
    /// The mouse selects and scrolls. Shift selects text as ever.
    pub mouse: bool,
    /// Frames are marked for the terminal to show at once. `false` for gateways that print the marks.
    pub sync: bool,
    /// Few bytes, as `--low-bandwidth`: 16 colours, timers in minutes, GPU figures every five seconds, logs once a second.
    pub low_bandwidth: bool,
    /// Whether a sign in the title of the log turns, once a second, while the log is searched: `off` or `on`. Without it
    /// nothing of the dashboard moves unless what it shows has.
    pub spinner: Spinner,
    /// How the dashboard tells of a job that ended while its window had no focus: `off`, `bell`, or `osc9`, which some
    /// terminals show as a notification of the desktop.
    pub notify: Notify,
    /// The columns of the queue, from left to right: user name gpus priority held time project submitted start limit why.
    /// `C` in the dashboard shows them, and tells what to write here.
    pub columns: Vec<String>,
    /// The columns of the history: user result held end waited ran peak load gpu-peak gpus priority project submitted
    /// start name.
    pub history_columns: Vec<String>,
}

/// Whether something turns while a log is searched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Spinner {
    /// No.
    #[default]
    Off,
    /// Yes.
    On,
}

/// How the dashboard tells of a job that ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Notify {
    /// Not at all.
    #[default]
    Off,
    /// The terminal's bell.
    Bell,
    /// A line that the terminal hands to the desktop.
    Osc9,
}

impl Default for UiConfig {
    fn default() -> Self {
        Self {
            ascii: None,
            mouse: false,
            sync: true,
            low_bandwidth: false,
            spinner: Spinner::Off,
            notify: Notify::Off,
            columns: Vec::new(),
            history_columns: Vec::new(),
        }
    }
}

/// Where GPUs come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GpuSource {
    /// Those that the driver lists; none where there is no driver.
    #[default]
    Auto,
    /// None: CPU-only jobs.
    None,
    /// This many simulated ones, with cores and memory of their own.
    Simulated(u32),
}

impl fmt::Display for GpuSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::None => f.write_str("none"),
            Self::Simulated(n) => write!(f, "simulated:{n}"),
        }
    }
}

impl FromStr for GpuSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("simulated:").map(str::parse::<u32>)) {
            ("auto", _) => Ok(Self::Auto),
            ("none", _) => Ok(Self::None),
            (_, Some(Ok(n @ 1..=1024))) => Ok(Self::Simulated(n)),
            (_, Some(_)) => Err(format!("`{text}`: the number is from 1 to 1024")),
            (_, None) => Err(format!("`{text}` is not auto, none or simulated:N")),
        }
    }
}

/// What `for: until_done` may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UntilDone {
    /// Run without a limit.
    #[default]
    Allow,
    /// Nothing: refused.
    Forbid,
    /// Nothing, and no job may ask for more than this.
    Cap(Span),
}

impl fmt::Display for UntilDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow => f.write_str("allow"),
            Self::Forbid => f.write_str("forbid"),
            Self::Cap(span) => write!(f, "{}", span_text(*span)),
        }
    }
}

impl FromStr for UntilDone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "allow" => Ok(Self::Allow),
            "forbid" => Ok(Self::Forbid),
            _ => parse_span(text)
                .map(Self::Cap)
                .map_err(|error| format!("{error}: write allow, forbid, or a length of time such as 7d")),
        }
    }
}

macro_rules! text_serde {
    ($($name:ident),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
text_serde!(GpuSource, UntilDone);

/// The shortest text that [`parse_span`] reads back.
fn span_text(span: Span) -> String {
    match span.as_secs() {
        s if s % 86_400 == 0 => format!("{}d", s / 86_400),
        s if s % 3_600 == 0 => format!("{}h", s / 3_600),
        s if s % 60 == 0 => format!("{}m", s / 60),
        s => format!("{s}s"),
    }
}

/// The text that [`parse_bytes`] reads back.
fn size_text(bytes: Bytes) -> String {
    match bytes.0 {
        n if n % Bytes::GIB == 0 => format!("{}GiB", n / Bytes::GIB),
        n if n % Bytes::MIB == 0 => format!("{}MiB", n / Bytes::MIB),
        n => format!("{n}B"),
    }
}

fn with_example<T, E: serde::de::Error>(value: Result<T, ParseValueError>, example: &str) -> Result<T, E> {
    value.map_err(|error| E::custom(format!("{error}: write it like {example}")))
}

mod length {
    use super::{Deserialize, Deserializer, Serializer, Span, parse_span, span_text, with_example};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde calls")]
    pub(super) fn serialize<S: Serializer>(span: &Span, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&span_text(*span))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        with_example(parse_span(&String::deserialize(deserializer)?), "\"30s\" or \"2m\"")
    }
}

mod size {
    use super::{Bytes, Deserialize, Deserializer, Serializer, parse_bytes, size_text, with_example};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde calls")]
    pub(super) fn serialize<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&size_text(*bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        with_example(parse_bytes(&String::deserialize(deserializer)?), "\"32GiB\"")
    }
}

mod maybe_size {
    use super::{Bytes, Deserializer, Serializer, size};

    #[expect(clippy::ref_option, reason = "the shape that serde calls")]
    pub(super) fn serialize<S: Serializer>(bytes: &Option<Bytes>, serializer: S) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => size::serialize(bytes, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
        size::deserialize(deserializer).map(Some)
    }
}

impl Config {
    /// Reads `file`, or the usual place. Only a file that was named has to be there.
    pub fn load(file: Option<&Path>, environment: &Environment) -> Result<Self, ConfigError> {
        let path = match (file, environment.config_file()) {
            (Some(file), _) => file.to_owned(),
            (None, Ok(usual)) => usual,
            (None, Err(_)) => return Ok(Self::default()),
        };
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let named = file.map(super::absolute).transpose()?;
                Ok(Self { named, ..Self::parse(&text, &path)? })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && file.is_none() => {
                Ok(Self::default())
            }
            Err(source) => Err(ConfigError::Read { path, source }),
        }
    }

    /// Reads the text of a file; `path` is for messages.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            let before = text.get(..start).unwrap_or_default();
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            let line = before.matches('\n').count() + 1;
            let message = hinted(error.message());
            ConfigError::Invalid { path: path.to_owned(), line, column, message }
        })
    }
}

/// Puts the nearest known name behind "unknown field `x`, expected one of `a`, `b`".
fn hinted(message: &str) -> String {
    let message = crate::model::clean_line(message);
    let mut names = message.split('`').skip(1).step_by(2);
    if !message.starts_with("unknown field") {
        return message;
    }
    let Some(typed) = names.next() else { return message };
    let nearest = names.map(|name| (crate::model::edits(typed, name), name)).min();
    match nearest {
        Some((steps, name)) if steps <= 2.max(typed.len() / 3) => {
            format!("unknown key `{typed}`: did you mean `{name}`?")
        }
        Some(_) | None => message.replacen("unknown field", "unknown key", 1),
    }
}
