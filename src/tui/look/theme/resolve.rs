//! A theme and all it inherits, made into one style for each role at one depth. Pure.

use super::file::{self, Colour, File, Look, direct};
use super::place::{At, ThemeError, did_you_mean};
use super::roles::Role;
use super::source::{self, Origin, Text};
use super::{Styled, Theme};
use crate::tui::look::colour::Depth;
use ratatui::style::{Color, Modifier, Style};
use std::collections::BTreeMap;

/// Finds a theme's text: its name, whether only the bundled ones count, and who asks.
pub(super) type Find<'a> = &'a dyn Fn(&str, bool, Option<&At>) -> Result<Text, ThemeError>;

/// A theme's files, the theme itself first.
pub(super) struct Chain {
    files: Vec<File>,
    origin: Origin,
    name: String,
}

/// Follows `inherits`, one level at a time. What inherits nothing inherits the bundled default, so that no role is ever
/// without a look.
pub(super) fn chain(name: &str, find: Find<'_>) -> Result<Chain, ThemeError> {
    let own = source::stem(name).to_owned();
    let mut text = find(name, false, None)?;
    let origin = text.origin.clone();
    let mut files = Vec::new();
    // A user's theme of a bundled one's name may build on it: the two are not the same.
    let mut seen = vec![(own.clone(), text.origin == Origin::Bundled)];
    loop {
        let (stem, bundled) = seen.last().cloned().unwrap_or_default();
        let file = file::read(&text.file, &stem, &text.body)?;
        let parent = file.inherits.clone();
        files.push(file);
        let Some((at, parent)) = parent else {
            if (stem.as_str(), bundled) != ("auto", true)
                && let Some(auto) = source::bundled("auto")
            {
                files.push(file::read(&auto.file, "auto", &auto.body)?);
            }
            return Ok(Chain { files, origin, name: own });
        };
        text = find(&parent, parent == stem && !bundled, Some(&at))?;
        let next = (parent, text.origin == Origin::Bundled);
        if seen.contains(&next) {
            let names: Vec<String> = seen.into_iter().chain([next]).map(|(name, _)| name).collect();
            return Err(ThemeError::Cycle { at, chain: names.join(" > ") });
        }
        seen.push(next);
    }
}

impl Chain {
    /// Every role's style at a depth.
    pub(super) fn resolve(&self, depth: Depth) -> Result<Theme, ThemeError> {
        let mut palette = BTreeMap::new();
        let mut looks = BTreeMap::new();
        for file in self.files.iter().rev() {
            palette.extend(file.palette.iter().map(|(name, colour)| (name.as_str(), colour)));
            looks.extend(file.looks.iter().map(|(role, look)| (*role as usize, look)));
        }
        let resolver = Resolver { depth, palette };
        let mut styles = Vec::with_capacity(Role::ALL.len());
        let mut faults = Vec::new();
        for role in Role::ALL {
            let look = looks.get(&(*role as usize)).map(|look| resolver.look(look)).transpose();
            styles.push(look.map_err(|fault| faults.push(fault)).ok().flatten().unwrap_or_default());
        }
        if let Some(fault) = ThemeError::of(faults) {
            return Err(fault);
        }
        let first = |of: fn(&File) -> Option<[u8; 2]>| self.files.iter().find_map(of);
        let ansi = self.files.iter().find_map(|file| file.log_ansi).unwrap_or(true);
        let own = self.files.first();
        Ok(Theme {
            name: self.name.clone(),
            about: own.map(|file| file.about.clone()).unwrap_or_default(),
            license: own.map(|file| file.license.clone()).unwrap_or_default(),
            variant: self.files.iter().find_map(|file| file.variant).unwrap_or_default(),
            // A promise about colours is not handed down: a child may change them.
            safe_for: own.map(|file| file.safe_for.clone()).unwrap_or_default(),
            origin: self.origin.clone(),
            depth,
            gauge_at: first(|file| file.gauge_at).unwrap_or(super::GAUGE_AT),
            temp_at: first(|file| file.temp_at).unwrap_or(super::TEMP_AT),
            log_ansi: ansi && depth != Depth::Mono,
            glyphs: self.files.iter().find_map(|file| file.glyphs),
            warnings: self.files.iter().flat_map(|file| file.warnings.iter().cloned()).collect(),
            styles,
        })
    }
}

struct Resolver<'a> {
    depth: Depth,
    palette: BTreeMap<&'a str, &'a Colour>,
}

impl Resolver<'_> {
    fn look(&self, look: &Look) -> Result<Styled, ThemeError> {
        let mono = self.depth == Depth::Mono;
        let modifiers = look.mono.filter(|_| mono).unwrap_or(look.modifiers);
        let mut style = Style::new().add_modifier(modifiers);
        let mut at = look.at.clone();
        if let Some(name) = &look.fg {
            let (colour, instead, place) = self.colour(name)?;
            at = place;
            if mono {
                style = style.add_modifier(instead);
            } else if colour != Color::Reset {
                style = style.fg(colour);
            }
        }
        // Every name is looked up at every depth: a mistake is one everywhere.
        let back = look.bg.as_ref().map(|name| self.colour(name)).transpose()?;
        if let Some((colour, _, place)) = back.filter(|_| self.depth >= Depth::C256)
            && colour != Color::Reset
        {
            style = style.bg(colour);
            at = if look.fg.is_some() { at } else { place };
        }
        Ok(Styled { style, at: Some(at) })
    }

    /// The colour at this depth, what stands for it without colours, and where it is defined.
    fn colour(&self, (at, name): &(At, String)) -> Result<(Color, Modifier, At), ThemeError> {
        if let Some(entry) = self.palette.get(name.as_str()) {
            let colour = match (self.depth, entry.c256, entry.c16) {
                (Depth::C256, Some(index), _) => Color::Indexed(index),
                (Depth::C16, _, Some(named)) => named,
                (depth, _, _) => depth.map(entry.exact),
            };
            return Ok((colour, entry.mono, entry.at.clone()));
        }
        if let Some(exact) = direct(name) {
            return Ok((self.depth.map(exact), Modifier::empty(), at.clone()));
        }
        let hint = did_you_mean(name, self.palette.keys().copied());
        let name = crate::model::clean_line(name);
        let message = format!("`{name}` is not in [palette], and no colour by itself{hint}");
        Err(ThemeError::Invalid { at: at.clone(), message })
    }
}
