//! Themes: what each role looks like. A theme is a TOML file; the bundled ones are part of the binary.
//!
//! Roles are named once, in [`Role`]; panels ask for a role and never for a colour. Parsing is pure; only [`load`]
//! reads a file, and only the shell calls it.

use crate::tui::look::colour::{Depth, parse_c16, parse_modifier, parse_rgb};
use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use thiserror::Error;

macro_rules! roles {
    ($($(#[$doc:meta])* $role:ident = $section:literal . $name:literal,)*) => {
        /// What a piece of the screen is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Role { $($(#[$doc])* $role,)* }

        impl Role {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$role,)*];

            /// Its section and name in a theme file.
            pub const fn name(self) -> (&'static str, &'static str) {
                match self { $(Self::$role => ($section, $name),)* }
            }
        }
    };
}

roles! {
    /// The whole screen, before anything is drawn on it.
    Base = "ui"."base",
    /// Ordinary text.
    Text = "ui"."text",
    /// Text of second rank.
    Dim = "ui"."dim",
    /// Titles and column heads.
    Title = "ui"."title",
    /// Lines between panes.
    Border = "ui"."border",
    /// The lines of the pane that has the focus.
    BorderFocus = "ui"."border_focus",
    /// The row under the cursor.
    CursorRow = "ui"."cursor_row",
    /// A marked row.
    MarkedRow = "ui"."marked_row",
    /// A row whose change the scheduler has not confirmed yet.
    Pending = "ui"."pending",
    /// A key in the key line.
    KeyHint = "ui"."key_hint",
    /// What the key does.
    KeyText = "ui"."key_text",
    /// A text field, and an active filter.
    Input = "ui"."input",
    /// What a search found.
    Match = "ui"."match",
    /// News.
    ToastInfo = "ui"."toast_info",
    /// Look at this.
    ToastWarn = "ui"."toast_warn",
    /// Something failed.
    ToastError = "ui"."toast_error",
    /// A dialog's text.
    Dialog = "ui"."dialog",
    /// A button that destroys.
    DialogDanger = "ui"."dialog_danger",
    /// Where in a list.
    Scrollbar = "ui"."scrollbar",
    /// The display is frozen.
    Frozen = "ui"."paused",
    /// Numbers that may be old.
    Stale = "ui"."stale",
    /// A job that waits.
    Wait = "state"."wait",
    /// A waiting job that somebody paused.
    Paused = "state"."paused",
    /// A lease was granted, the work has not started.
    Rent = "state"."rent",
    /// The work runs.
    Run = "state"."run",
    /// Output is being collected.
    Out = "state"."out",
    /// The last clean-up.
    Rel = "state"."rel",
    /// Succeeded.
    Done = "state"."done",
    /// Failed, or reached its limit.
    Fail = "state"."fail",
    /// Being cancelled, or cancelled.
    Stop = "state"."stop",
    /// Lost to the pool's fault.
    Lost = "state"."lost",
    /// A bar below the first threshold.
    GaugeLow = "gauge"."low",
    /// A bar between the thresholds.
    GaugeMid = "gauge"."mid",
    /// A bar above the second threshold.
    GaugeHigh = "gauge"."high",
    /// The rest of a bar.
    GaugeEmpty = "gauge"."empty",
    /// A sparkline.
    Spark = "gauge"."spark",
    /// Log lines of stderr.
    Stderr = "log"."stderr",
    /// Time stamps in logs.
    Timestamp = "log"."timestamp",
    /// Found in a log.
    Search = "log"."search",
}

/// A theme at one colour depth: every role has a style.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    /// Its name.
    pub name: String,
    /// The depth its styles were made for.
    pub depth: Depth,
    /// Percent at which a bar becomes mid and high.
    pub gauge_at: [u8; 2],
    /// Degrees at which a temperature becomes mid and high.
    pub temp_at: [u8; 2],
    /// Colours in job logs pass.
    pub log_ansi: bool,
    /// What is odd about the file, in words.
    pub warnings: Vec<String>,
    styles: Vec<Style>,
}

/// Why a theme cannot be used.
#[derive(Debug, Error)]
pub enum ThemeError {
    /// No such theme.
    #[error("no theme `{name}`; there are {}", BUNDLED.iter().map(|(n, _)| *n).collect::<Vec<_>>().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The file cannot be read.
    #[error("theme {}: cannot be read", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Not TOML, or not of a theme's form.
    #[error("theme {name}: {source}")]
    Form {
        /// Which.
        name: String,
        /// Where and why.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// A value that is no colour, name or modifier.
    #[error("theme {name}: `{value}` is no colour, palette name or modifier (in {place})")]
    Value {
        /// Which.
        name: String,
        /// The role or palette entry.
        place: String,
        /// What it says.
        value: String,
    },
    /// `inherits` leads back to itself.
    #[error("theme {name}: inherits itself")]
    Cycle {
        /// Which.
        name: String,
    },
}

/// The themes that are part of the binary.
pub const BUNDLED: [(&str, &str); 4] = [
    ("auto", include_str!("../../../themes/auto.toml")),
    ("mono", include_str!("../../../themes/mono.toml")),
    ("okabe-dark", include_str!("../../../themes/okabe-dark.toml")),
    ("harbor-light", include_str!("../../../themes/harbor-light.toml")),
];

/// A theme by name: the user's directory first, then the bundled ones.
pub fn load(name: &str, user_dir: Option<&Path>, depth: Depth) -> Result<Theme, ThemeError> {
    let find = |name: &str| -> Result<String, ThemeError> {
        // A name is a file's stem, never a path out of the directory.
        let plain = !name.is_empty() && !name.contains(['/', '\0']) && !name.starts_with('.');
        if let Some(path) = user_dir.filter(|_| plain).map(|dir| dir.join(format!("{name}.toml"))) {
            match std::fs::read_to_string(&path) {
                Ok(text) => return Ok(text),
                Err(source) if source.kind() == std::io::ErrorKind::NotFound => {}
                Err(source) => return Err(ThemeError::Read { path, source }),
            }
        }
        let bundled = BUNDLED.iter().find(|(n, _)| *n == name);
        bundled.map(|(_, text)| (*text).to_owned()).ok_or(ThemeError::Unknown { name: name.to_owned() })
    };
    Theme::parse(name, &find, depth)
}

impl Theme {
    /// The default theme. It is bundled and tested, so it always parses; plain text if it ever did not.
    pub fn auto(depth: Depth) -> Self {
        load(if depth == Depth::Mono { "mono" } else { "auto" }, None, depth).unwrap_or_else(|_| Self {
            name: "plain".to_owned(),
            depth,
            gauge_at: [60, 85],
            temp_at: [75, 85],
            log_ansi: false,
            warnings: Vec::new(),
            styles: vec![Style::new(); Role::ALL.len()],
        })
    }

    /// What a role looks like.
    pub fn style(&self, role: Role) -> Style {
        self.styles.get(role as usize).copied().unwrap_or_default()
    }

    /// Parses the theme `name` and what it inherits; `find` returns the text of a theme.
    pub fn parse(
        name: &str,
        find: &dyn Fn(&str) -> Result<String, ThemeError>,
        depth: Depth,
    ) -> Result<Self, ThemeError> {
        let mut chain: Vec<File> = Vec::new();
        let mut seen = vec![name.to_owned()];
        let mut next = Some(name.to_owned());
        while let Some(current) = next.take() {
            let file: File = toml::from_str(&find(&current)?)
                .map_err(|source| ThemeError::Form { name: current.clone(), source: Box::new(source) })?;
            next.clone_from(&file.inherits);
            if let Some(parent) = &next {
                if seen.contains(parent) {
                    return Err(ThemeError::Cycle { name: name.to_owned() });
                }
                seen.push(parent.clone());
            }
            chain.push(file);
        }
        chain.reverse();
        Resolver::new(name, depth).resolve(&chain)
    }
}

#[derive(Debug, Deserialize)]
struct File {
    inherits: Option<String>,
    #[serde(default)]
    palette: BTreeMap<String, Colour>,
    #[serde(default)]
    ui: BTreeMap<String, Look>,
    #[serde(default)]
    state: BTreeMap<String, Look>,
    #[serde(default)]
    gauge: Gauge,
    #[serde(default)]
    log: Log,
}

#[derive(Debug, Default, Deserialize)]
struct Gauge {
    at: Option<[u8; 2]>,
    temp_at: Option<[u8; 2]>,
    #[serde(flatten)]
    looks: BTreeMap<String, Look>,
}

#[derive(Debug, Default, Deserialize)]
struct Log {
    ansi: Option<String>,
    #[serde(flatten)]
    looks: BTreeMap<String, Look>,
}

/// A palette entry.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Colour {
    Plain(String),
    Full { rgb: String, c256: Option<u8>, c16: Option<String>, mono: Option<Vec<String>> },
}

/// A role's value.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Look {
    Name(String),
    Full {
        fg: Option<String>,
        bg: Option<String>,
        #[serde(rename = "mod")]
        modifiers: Option<Vec<String>>,
        mono: Option<Vec<String>>,
    },
}

struct Resolver<'a> {
    name: &'a str,
    depth: Depth,
    palette: BTreeMap<&'a str, &'a Colour>,
    warnings: Vec<String>,
}

impl<'a> Resolver<'a> {
    const fn new(name: &'a str, depth: Depth) -> Self {
        Self { name, depth, palette: BTreeMap::new(), warnings: Vec::new() }
    }

    fn resolve(mut self, chain: &'a [File]) -> Result<Theme, ThemeError> {
        let mut looks: BTreeMap<(&str, &str), &Look> = BTreeMap::new();
        let (mut gauge_at, mut temp_at, mut log_ansi) = ([60, 85], [75, 85], true);
        for file in chain {
            self.palette.extend(file.palette.iter().map(|(name, colour)| (name.as_str(), colour)));
            let sections = [
                ("ui", &file.ui),
                ("state", &file.state),
                ("gauge", &file.gauge.looks),
                ("log", &file.log.looks),
            ];
            for (section, entries) in sections {
                for (role, look) in entries {
                    if !Role::ALL.iter().any(|known| known.name() == (section, role.as_str())) {
                        self.warnings.push(format!("theme {}: no role [{section}] {role}", self.name));
                    }
                    looks.insert((section, role), look);
                }
            }
            gauge_at = file.gauge.at.unwrap_or(gauge_at);
            temp_at = file.gauge.temp_at.unwrap_or(temp_at);
            log_ansi = file.log.ansi.as_ref().map_or(log_ansi, |word| word != "strip");
        }
        let mut styles = Vec::with_capacity(Role::ALL.len());
        for role in Role::ALL {
            let (section, name) = role.name();
            if let Some(look) = looks.get(&(section, name)) {
                styles.push(self.look(look, &format!("[{section}] {name}"))?);
            } else {
                self.warnings.push(format!("theme {}: role [{section}] {name} is not set", self.name));
                styles.push(Style::new());
            }
        }
        Ok(Theme {
            name: self.name.to_owned(),
            depth: self.depth,
            gauge_at,
            temp_at,
            log_ansi: log_ansi && self.depth != Depth::Mono,
            warnings: self.warnings,
            styles,
        })
    }

    fn look(&self, look: &Look, place: &str) -> Result<Style, ThemeError> {
        let (fg, bg, modifiers, mono) = match look {
            Look::Name(name) => (Some(name), None, None, None),
            Look::Full { fg, bg, modifiers, mono } => {
                (fg.as_ref(), bg.as_ref(), modifiers.as_ref(), mono.as_ref())
            }
        };
        let mut style = Style::new();
        let modifiers = if self.depth == Depth::Mono { mono.or(modifiers) } else { modifiers };
        style = style.add_modifier(self.modifiers(modifiers.map_or(&[], Vec::as_slice), place)?);
        if let Some(name) = fg {
            let (colour, mono) = self.colour(name, place)?;
            if self.depth == Depth::Mono {
                style = style.add_modifier(mono);
            } else if colour != Color::Reset {
                style = style.fg(colour);
            }
        }
        if let Some(name) = bg.filter(|_| self.depth >= Depth::C256) {
            let (colour, _) = self.colour(name, place)?;
            if colour != Color::Reset {
                style = style.bg(colour);
            }
        }
        Ok(style)
    }

    /// A palette name, `default` or `#rrggbb`: the colour at this depth, and what stands for it without colours.
    fn colour(&self, name: &str, place: &str) -> Result<(Color, Modifier), ThemeError> {
        let bad = |value: &str| ThemeError::Value {
            name: self.name.to_owned(),
            place: place.to_owned(),
            value: value.to_owned(),
        };
        let rgb = |text: &str| match text {
            "default" => Ok(Color::Reset),
            _ => parse_rgb(text).map(|[r, g, b]| Color::Rgb(r, g, b)).ok_or_else(|| bad(text)),
        };
        match self.palette.get(name) {
            None => Ok((self.depth.map(rgb(name)?), Modifier::empty())),
            Some(Colour::Plain(text)) => Ok((self.depth.map(rgb(text)?), Modifier::empty())),
            Some(Colour::Full { rgb: text, c256, c16, mono }) => {
                let exact = rgb(text)?;
                let colour = match (self.depth, c256, c16) {
                    (Depth::C256, Some(index), _) => Color::Indexed(*index),
                    (Depth::C16, _, Some(word)) => parse_c16(word).ok_or_else(|| bad(word))?,
                    (depth, _, _) => depth.map(exact),
                };
                Ok((colour, self.modifiers(mono.as_deref().unwrap_or_default(), place)?))
            }
        }
    }

    fn modifiers(&self, words: &[String], place: &str) -> Result<Modifier, ThemeError> {
        words.iter().try_fold(Modifier::empty(), |sum, word| {
            parse_modifier(word).map(|modifier| sum | modifier).ok_or_else(|| ThemeError::Value {
                name: self.name.to_owned(),
                place: place.to_owned(),
                value: word.clone(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::look::colour::{contrast, xterm};

    const DEPTHS: [Depth; 4] = [Depth::Mono, Depth::C16, Depth::C256, Depth::True];

    #[test]
    fn every_bundled_theme_sets_every_role_at_every_depth() {
        for (name, _) in BUNDLED {
            for depth in DEPTHS {
                let theme = load(name, None, depth).unwrap();
                assert_eq!(theme.warnings, Vec::<String>::new(), "{name}");
                assert!(theme.style(Role::CursorRow).add_modifier.contains(Modifier::REVERSED), "{name}");
            }
        }
    }

    #[test]
    fn without_colours_no_role_has_one() {
        for (name, _) in BUNDLED {
            let theme = load(name, None, Depth::Mono).unwrap();
            for role in Role::ALL {
                let style = theme.style(*role);
                assert_eq!((style.fg, style.bg), (None, None), "{name} {role:?}");
            }
        }
    }

    #[test]
    fn text_is_readable_on_its_background() {
        let rgb = |colour: Color| match colour {
            Color::Rgb(r, g, b) => [r, g, b],
            Color::Indexed(index) => xterm(index),
            other => panic!("{other:?}"),
        };
        for (name, backgrounds, least) in [
            ("auto", vec![[0, 0, 0], [255, 255, 255]], 3.9),
            ("okabe-dark", vec![[0x14, 0x16, 0x1a]], 4.5),
            ("harbor-light", vec![[0xfa, 0xfa, 0xfa]], 4.5),
        ] {
            let theme = load(name, None, Depth::True).unwrap();
            for role in Role::ALL {
                let Some(colour) = theme.style(*role).fg else { continue };
                for background in &backgrounds {
                    let ratio = contrast(rgb(colour), *background);
                    assert!(ratio >= least, "{name} {role:?}: {ratio:.2} on {background:?}");
                }
            }
        }
    }

    fn parse(files: &[(&str, &str)]) -> Result<Theme, ThemeError> {
        let find = |name: &str| {
            let found = files.iter().find(|(n, _)| *n == name);
            found.map(|(_, t)| (*t).to_owned()).ok_or(ThemeError::Unknown { name: name.to_owned() })
        };
        Theme::parse(files[0].0, &find, Depth::True)
    }

    #[test]
    fn a_child_overrides_its_parents_palette_and_roles() {
        let theme = parse(&[
            ("child", "inherits = 'parent'\n[palette]\nink = '#010203'\n"),
            ("parent", "[palette]\nink = '#ffffff'\n[ui]\ntext = 'ink'\n"),
        ]);
        assert_eq!(theme.unwrap().style(Role::Text).fg, Some(Color::Rgb(1, 2, 3)));
    }

    #[test]
    fn what_is_wrong_with_a_theme_is_said() {
        assert!(matches!(
            parse(&[("a", "inherits = 'b'"), ("b", "inherits = 'a'")]),
            Err(ThemeError::Cycle { .. })
        ));
        assert!(matches!(parse(&[("a", "inherits = 'gone'")]), Err(ThemeError::Unknown { .. })));
        assert!(matches!(parse(&[("a", "[ui]\ntext = 'pink'")]), Err(ThemeError::Value { .. })));
        assert!(matches!(parse(&[("a", "[ui\n")]), Err(ThemeError::Form { .. })));
        let theme = parse(&[("a", "[ui]\ntxt = 'default'")]).unwrap();
        assert!(theme.warnings[0].contains("no role [ui] txt"), "{:?}", theme.warnings);
    }

    #[test]
    fn the_users_directory_goes_first_and_names_stay_inside_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("auto.toml"), "[ui]\ntext = '#102030'\n").unwrap();
        let theme = load("auto", Some(dir.path()), Depth::True).unwrap();
        assert_eq!(theme.style(Role::Text).fg, Some(Color::Rgb(0x10, 0x20, 0x30)));
        assert!(matches!(load("../auto", Some(dir.path()), Depth::True), Err(ThemeError::Unknown { .. })));
    }
}
