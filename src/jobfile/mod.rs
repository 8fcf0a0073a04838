//! Job files: YAML in, jobs and findings out. Layer 2.
//!
//! [`parse`] reads a file of one or several documents, checks every field and says everything that is wrong at once,
//! with line, column, caret, hint and, where it is certain, the mend. It looks at the file system only when the
//! [`Context`] says so, and reads no clock: the moment that relative times count from is handed in.
//!
//! | module | does |
//! |---|---|
//! | `context` | what the caller knows: names, folders, limits, the pool, overrides |
//! | `intake` | from bytes to documents to jobs |
//! | `tree` | the YAML parser's border: texts with places |
//! | `prepass`, `syntax`, `lines` | explain and mend what is not YAML |
//! | `fields` | the table of all fields; the JSON Schema comes from it |
//! | `reader`, `unknown`, `stray` | open sections, hand out fields, say what is unknown or at the wrong level |
//! | `job`, `work`, `run`, `each`, `data`, `request` | one section each |
//! | `values`, `times`, `paths` | numbers, lengths, sizes, moments, paths |
//! | `feasible`, `host` | the pool and the host: can it ever run here |
//! | `lint`, `rules`, `shell` | warnings about what is accepted |
//! | `findings`, `render` | collect findings; draw them, apply mends |
//! | `show`, `diff` | a spec back in the job file's words; what differs between two |
//! | `patch` | changes written into a file's text |

mod context;
mod data;
mod diff;
mod each;
mod feasible;
mod fields;
mod findings;
mod host;
mod intake;
mod job;
mod lines;
mod lint;
mod patch;
mod paths;
mod prepass;
mod reader;
mod render;
mod request;
mod rules;
mod run;
mod shell;
mod show;
mod stray;
mod syntax;
#[cfg(test)]
mod tests;
mod times;
mod tree;
mod unknown;
mod values;
mod work;

pub use context::{Base, Context, Limits, Parsed, RenderStyle, UntilDone};
pub use diff::changes;
pub use fields::schema;
pub use intake::parse;
pub use patch::{documents, with_overrides};
pub use render::{apply_fixes, render};
pub use show::to_json;

use crate::model::WorkKind;

/// An annotated job file to start from; it parses without errors.
pub const fn template(kind: WorkKind) -> &'static str {
    match kind {
        WorkKind::Training => include_str!("templates/training.yaml"),
        WorkKind::Inference => include_str!("templates/inference.yaml"),
        WorkKind::Processing => include_str!("templates/processing.yaml"),
        WorkKind::Simulation => include_str!("templates/simulation.yaml"),
        WorkKind::Other => include_str!("templates/other.yaml"),
    }
}

/// Whether an environment variable's name says that its value is a secret.
pub fn is_secret_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let words: Vec<&str> = upper.split('_').filter(|word| !word.is_empty()).collect();
    let telling = |word: &&str| {
        matches!(
            *word,
            "TOKEN"
                | "SECRET"
                | "SECRETS"
                | "PASSWORD"
                | "PASSWD"
                | "PASSPHRASE"
                | "PASS"
                | "APIKEY"
                | "CREDENTIAL"
                | "CREDENTIALS"
                | "PAT"
                | "AUTH"
        )
    };
    let keys = words.contains(&"KEY")
        && (words.last() == Some(&"KEY") || words.contains(&"ACCESS") || words.contains(&"API"));
    words.iter().any(telling)
        || keys
        || (upper != "PWD" && words.last() == Some(&"PWD") && words != ["OLD", "PWD"])
}
