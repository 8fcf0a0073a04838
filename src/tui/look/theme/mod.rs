//! Themes: what each role looks like. A theme is a TOML file; the bundled ones are part of the binary.
//!
//! ```text
//!  name ─► source (user's directory, binary) ─► file (one file, with places) ─► resolve (all it inherits, one depth) ─► Theme
//! ```
//!
//! Panels ask for a [`Role`] and never for a colour. Reading is pure but for `source`, which only the shell and the
//! command line call.

pub(in crate::tui) mod check;
mod choose;
mod file;
mod place;
mod resolve;
mod roles;
mod source;
#[cfg(test)]
mod tests;

use crate::tui::look::canvas::Glyphs;
use crate::tui::look::colour::Depth;
use crate::tui::look::vision::Need;
use ratatui::style::Style;
use std::path::Path;

pub use choose::{Wishes, choose};
pub use file::Variant;
pub use place::{At, ThemeError};
pub use roles::Role;
pub use source::{BUNDLED, Origin, is_path, list};

const GAUGE_AT: [u8; 2] = [60, 85];
const TEMP_AT: [u8; 2] = [75, 85];

/// A role's style and where it is defined; no place if nothing defines it.
#[derive(Debug, Clone, Default, PartialEq)]
struct Styled {
    style: Style,
    at: Option<At>,
}

/// A theme at one colour depth: every role has a style.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    /// Its name.
    pub name: String,
    /// What it is for, in a line.
    pub about: String,
    /// Under which terms its file may be passed on.
    pub license: String,
    /// What it is made for.
    pub variant: Variant,
    /// Whom it promises to be safe for; [`check::check`] holds it to that.
    pub safe_for: Vec<Need>,
    /// Where it comes from.
    pub origin: Origin,
    /// The depth its styles were made for.
    pub depth: Depth,
    /// Percent at which a bar becomes mid and high.
    pub gauge_at: [u8; 2],
    /// Degrees at which a temperature becomes mid and high.
    pub temp_at: [u8; 2],
    /// Colours in job logs pass.
    pub log_ansi: bool,
    /// The characters it wants; see [`Theme::glyphs`].
    pub glyphs: Option<Glyphs>,
    /// What is odd about its files, each with its place.
    pub warnings: Vec<String>,
    styles: Vec<Styled>,
}

/// A theme as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// What it is for, in a line.
    pub about: String,
    /// What it is made for.
    pub variant: Variant,
    /// Whom it promises to be safe for.
    pub safe_for: Vec<Need>,
    /// Where it comes from.
    pub origin: Origin,
    /// Why it cannot be used, with line and column.
    pub problem: Option<String>,
}

/// A theme by name, the user's directory first; or by path.
pub fn load(name: &str, user_dir: Option<&Path>, depth: Depth) -> Result<Theme, ThemeError> {
    resolve::chain(name, &|name, bundled_only, at| source::find(name, user_dir, bundled_only, at))?
        .resolve(depth)
}

impl Theme {
    /// The default theme. It is bundled and tested, so it always parses; plain text if it ever did not.
    pub fn auto(depth: Depth) -> Self {
        load(if depth == Depth::Mono { "mono" } else { "auto" }, None, depth).unwrap_or_else(|_| Self {
            name: "plain".to_owned(),
            about: String::new(),
            license: String::new(),
            variant: Variant::Any,
            safe_for: Vec::new(),
            origin: Origin::Bundled,
            depth,
            gauge_at: GAUGE_AT,
            temp_at: TEMP_AT,
            log_ansi: false,
            glyphs: None,
            warnings: Vec::new(),
            styles: vec![Styled::default(); Role::ALL.len()],
        })
    }

    /// What a role looks like.
    pub fn style(&self, role: Role) -> Style {
        self.styles.get(role as usize).map(|styled| styled.style).unwrap_or_default()
    }

    /// Where the colour of a role is defined, or the role where it has none.
    pub fn place(&self, role: Role) -> Option<&At> {
        self.styles.get(role as usize).and_then(|styled| styled.at.as_ref())
    }

    /// The characters: as the theme wants them, unless the locale or the person wants ASCII.
    pub fn glyphs(&self, asked: Glyphs) -> Glyphs {
        match asked {
            Glyphs::Ascii => Glyphs::Ascii,
            Glyphs::Unicode | Glyphs::Blocks => self.glyphs.unwrap_or(asked),
        }
    }
}
