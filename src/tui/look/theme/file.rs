//! One theme file, read into values that know their places. Pure. What is merely unknown is a warning; what is wrong is an
//! error.

use super::place::{At, ThemeError, did_you_mean};
use super::roles::Role;
use crate::tui::look::canvas::Glyphs;
use crate::tui::look::colour::{parse_c16, parse_modifier, parse_rgb};
use crate::tui::look::vision::Need;
use ratatui::style::{Color, Modifier};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What a theme is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Variant {
    /// Dark terminals.
    Dark,
    /// Light terminals.
    Light,
    /// Both.
    #[default]
    Any,
}

impl Variant {
    /// Its name in a file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dark => "dark",
            Self::Light => "light",
            Self::Any => "any",
        }
    }
}

/// A palette entry.
#[derive(Debug, Clone)]
pub(super) struct Colour {
    pub(super) at: At,
    /// [`Color::Reset`]: the terminal's own.
    pub(super) exact: Color,
    pub(super) c256: Option<u8>,
    pub(super) c16: Option<Color>,
    /// What stands for it without colours.
    pub(super) mono: Modifier,
}

/// A role's value; colours are names that the palette of the whole chain explains.
#[derive(Debug, Clone)]
pub(super) struct Look {
    pub(super) at: At,
    pub(super) fg: Option<(At, String)>,
    pub(super) bg: Option<(At, String)>,
    pub(super) modifiers: Modifier,
    /// Instead of them where there are no colours.
    pub(super) mono: Option<Modifier>,
}

/// What one file says.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) about: String,
    pub(super) variant: Option<Variant>,
    pub(super) safe_for: Vec<Need>,
    pub(super) license: String,
    pub(super) inherits: Option<(At, String)>,
    pub(super) palette: BTreeMap<String, Colour>,
    pub(super) looks: Vec<(Role, Look)>,
    pub(super) gauge_at: Option<[u8; 2]>,
    pub(super) temp_at: Option<[u8; 2]>,
    pub(super) log_ansi: Option<bool>,
    pub(super) glyphs: Option<Glyphs>,
    pub(super) warnings: Vec<String>,
}

type Key<'i> = Spanned<Cow<'i, str>>;
type Value<'i> = Spanned<DeValue<'i>>;

/// The keys of a theme before its sections, and the sections.
const TOP: [&str; 11] =
    ["name", "about", "variant", "safe_for", "inherits", "license", "palette", "ui", "state", "gauge", "log"];
const NAMED: &str = "write default, #rrggbb or one of the sixteen names (black red green yellow blue magenta cyan gray \
                     dark-gray light-red .. light-cyan white)";

/// Reads a file; `file` is for messages, `stem` the name it goes by.
pub(super) fn read(file: &Arc<str>, stem: &str, text: &str) -> Result<File, ThemeError> {
    let mut reader = Reader { file, text, out: File::default(), faults: Vec::new() };
    let table = DeTable::parse(text).map_err(|error| {
        let at = reader.at(error.span().map_or(0, |span| span.start));
        ThemeError::Invalid { at, message: crate::model::clean_line(error.message()) }
    })?;
    for (key, value) in table.get_ref() {
        let read = reader.top(stem, key, value);
        reader.noted(read);
    }
    let Reader { out, faults, .. } = reader;
    ThemeError::of(faults).map_or(Ok(out), Err)
}

struct Reader<'a> {
    file: &'a Arc<str>,
    text: &'a str,
    out: File,
    /// What is wrong, each line for itself.
    faults: Vec<ThemeError>,
}

impl Reader<'_> {
    fn at(&self, byte: usize) -> At {
        At::of(self.file, self.text, byte)
    }

    fn fault<T>(&self, value: &Value<'_>, message: impl Into<String>) -> Result<T, ThemeError> {
        Err(ThemeError::Invalid { at: self.at(value.span().start), message: message.into() })
    }

    /// What was read, unless it is wrong: that is told with the rest.
    fn noted<T>(&mut self, read: Result<T, ThemeError>) -> Option<T> {
        read.map_err(|fault| self.faults.push(fault)).ok()
    }

    fn unknown<'w>(&mut self, key: &Key<'_>, what: &str, known: impl Iterator<Item = &'w str>) {
        let typed = crate::model::clean_line(key.get_ref());
        let hint = did_you_mean(&typed, known);
        let text = format!("{}: no {what} `{typed}`{hint}", self.at(key.span().start));
        self.out.warnings.push(text);
    }

    fn top(&mut self, stem: &str, key: &Key<'_>, value: &Value<'_>) -> Result<(), ThemeError> {
        match key.get_ref().as_ref() {
            "name" => {
                let name = self.string(value)?;
                if name != stem {
                    let at = self.at(value.span().start);
                    let name = crate::model::clean_line(name);
                    self.out
                        .warnings
                        .push(format!("{at}: it goes by its file's name `{stem}`, not `{name}`"));
                }
            }
            "about" => self.out.about = crate::model::clean_line(self.string(value)?),
            "license" => self.out.license = crate::model::clean_line(self.string(value)?),
            "inherits" => {
                let name = self.string(value)?.to_owned();
                self.out.inherits = Some((self.at(value.span().start), name));
            }
            "variant" => {
                let variants = [Variant::Dark, Variant::Light, Variant::Any];
                let found = self.one_of(value, variants, Variant::name)?;
                self.out.variant = Some(found);
            }
            "safe_for" => {
                for word in self.list(value)? {
                    let need = self.one_of(word, Need::ALL, Need::name)?;
                    self.out.safe_for.push(need);
                }
            }
            "palette" => {
                for (name, entry) in self.table(value)? {
                    let read = self.colour(entry);
                    if let Some(colour) = self.noted(read) {
                        self.out.palette.insert(name.get_ref().to_string(), colour);
                    }
                }
            }
            "glyphs" => {
                for (name, entry) in self.table(value)? {
                    if name.get_ref() == "set" {
                        self.out.glyphs = Some(self.one_of(entry, Glyphs::ALL, Glyphs::name)?);
                    } else {
                        self.unknown(name, "key in [glyphs]", ["set"].into_iter());
                    }
                }
            }
            section @ ("ui" | "state" | "gauge" | "log") => {
                for (name, entry) in self.table(value)? {
                    let read = self.entry(section, name, entry);
                    self.noted(read);
                }
            }
            _ => self.unknown(key, "key", TOP.into_iter().chain(["glyphs"])),
        }
        Ok(())
    }

    /// One line of a section: a role, or one of the few settings that are none.
    fn entry(&mut self, section: &str, name: &Key<'_>, value: &Value<'_>) -> Result<(), ThemeError> {
        match (section, name.get_ref().as_ref()) {
            ("gauge", "at") => self.out.gauge_at = Some(self.thresholds(value)?),
            ("gauge", "temp_at") => self.out.temp_at = Some(self.thresholds(value)?),
            ("log", "ansi") => {
                let pass = |pass: bool| if pass { "pass" } else { "strip" };
                self.out.log_ansi = Some(self.one_of(value, [true, false], pass)?);
            }
            (_, typed) => {
                if let Some(role) = Role::named(section, typed) {
                    let look = self.look(value)?;
                    self.out.looks.push((role, look));
                } else {
                    let roles = Role::ALL.iter().map(|role| role.name());
                    let here = roles.filter(|(of, _)| *of == section).map(|(_, name)| name);
                    self.unknown(name, &format!("role in [{section}]"), here);
                }
            }
        }
        Ok(())
    }

    fn colour(&mut self, value: &Value<'_>) -> Result<Colour, ThemeError> {
        let at = self.at(value.span().start);
        let mut colour = Colour { at, exact: Color::Reset, c256: None, c16: None, mono: Modifier::empty() };
        if value.get_ref().is_str() {
            colour.exact = self.exact(value)?;
            return Ok(colour);
        }
        let mut given = false;
        for (name, entry) in self.table(value)? {
            match name.get_ref().as_ref() {
                "rgb" => {
                    colour.exact = self.exact(entry)?;
                    given = true;
                }
                "c256" => colour.c256 = Some(self.byte(entry)?),
                "c16" => match parse_c16(self.string(entry)?) {
                    Some(named) => colour.c16 = Some(named),
                    None => {
                        return self.fault(entry, format!("this is not one of the sixteen names; {NAMED}"));
                    }
                },
                "mono" => colour.mono = self.modifiers(entry)?,
                _ => self.unknown(name, "key of a colour", ["rgb", "c256", "c16", "mono"].into_iter()),
            }
        }
        if given { Ok(colour) } else { self.fault(value, "a colour needs its rgb, such as \"#367cf8\"") }
    }

    fn exact(&self, value: &Value<'_>) -> Result<Color, ThemeError> {
        let text = self.string(value)?;
        match direct(text) {
            Some(colour) => Ok(colour),
            None => self.fault(value, format!("`{}` is no colour; {NAMED}", crate::model::clean_line(text))),
        }
    }

    fn look(&mut self, value: &Value<'_>) -> Result<Look, ThemeError> {
        let at = self.at(value.span().start);
        let mut look = Look { at, fg: None, bg: None, modifiers: Modifier::empty(), mono: None };
        let named = |reader: &Self, value: &Value<'_>| {
            let name = reader.string(value)?.to_owned();
            Ok(Some((reader.at(value.span().start), name)))
        };
        if value.get_ref().is_str() {
            look.fg = named(self, value)?;
            return Ok(look);
        }
        for (name, entry) in self.table(value)? {
            match name.get_ref().as_ref() {
                "fg" => look.fg = named(self, entry)?,
                "bg" => look.bg = named(self, entry)?,
                "mod" => look.modifiers = self.modifiers(entry)?,
                "mono" => look.mono = Some(self.modifiers(entry)?),
                _ => self.unknown(name, "key of a role", ["fg", "bg", "mod", "mono"].into_iter()),
            }
        }
        Ok(look)
    }

    fn modifiers(&self, value: &Value<'_>) -> Result<Modifier, ThemeError> {
        let mut sum = Modifier::empty();
        for word in self.list(value)? {
            match parse_modifier(self.string(word)?) {
                Some(modifier) => sum |= modifier,
                None => return self.fault(word, "write bold, dim, italic, underlined or reverse"),
            }
        }
        Ok(sum)
    }

    fn thresholds(&self, value: &Value<'_>) -> Result<[u8; 2], ThemeError> {
        let [mid, high] = self.list(value)? else {
            return self.fault(value, "two numbers, such as [60, 85]");
        };
        let (low, high) = (self.byte(mid)?, self.byte(high)?);
        if low <= high { Ok([low, high]) } else { self.fault(value, "the first is not above the second") }
    }

    fn byte(&self, value: &Value<'_>) -> Result<u8, ThemeError> {
        let number = value.get_ref().as_integer();
        match number.and_then(|number| u8::from_str_radix(number.as_str(), number.radix()).ok()) {
            Some(number) => Ok(number),
            None => self.fault(value, "a number from 0 to 255"),
        }
    }

    fn string<'v>(&self, value: &'v Value<'_>) -> Result<&'v str, ThemeError> {
        match value.get_ref().as_str() {
            Some(text) => Ok(text),
            None => self.fault(value, format!("text in quotes, not {}", value.get_ref().type_str())),
        }
    }

    fn list<'v, 'i>(&self, value: &'v Value<'i>) -> Result<&'v [Value<'i>], ThemeError> {
        match value.get_ref().as_array() {
            Some(list) => Ok(list),
            None => self.fault(value, format!("a list in [ ], not {}", value.get_ref().type_str())),
        }
    }

    fn table<'v, 'i>(&self, value: &'v Value<'i>) -> Result<&'v DeTable<'i>, ThemeError> {
        match value.get_ref().as_table() {
            Some(table) => Ok(table),
            None => self.fault(value, format!("a table, not {}", value.get_ref().type_str())),
        }
    }

    fn one_of<T: Copy, const N: usize>(
        &self,
        value: &Value<'_>,
        of: [T; N],
        name: impl Fn(T) -> &'static str,
    ) -> Result<T, ThemeError> {
        let typed = self.string(value)?;
        if let Some(one) = of.into_iter().find(|one| name(*one) == typed) {
            return Ok(one);
        }
        let names: Vec<&str> = of.into_iter().map(name).collect();
        self.fault(value, format!("one of {}", names.join(", ")))
    }
}

/// What stands for itself: `default`, `#rrggbb`, one of the sixteen names.
pub(super) fn direct(text: &str) -> Option<Color> {
    if text == "default" {
        return Some(Color::Reset);
    }
    parse_rgb(text).map(|[r, g, b]| Color::Rgb(r, g, b)).or_else(|| parse_c16(text))
}
