//! The `theme` key: one theme, or one for dark and one for light terminals.

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Which theme the dashboard has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ThemeSetting {
    /// This one.
    One(String),
    /// One of two, by the terminal's background.
    Pair {
        /// On a dark background, and where nobody knows.
        dark: String,
        /// On a light one.
        light: String,
        /// How the background is found out, besides `COLORFGBG`.
        detect: Detect,
    },
}

/// How a terminal's background is found out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Detect {
    /// Not at all: only what `COLORFGBG` says.
    #[default]
    Off,
    /// By asking the terminal.
    Osc11,
}

impl<'de> Deserialize<'de> for ThemeSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Setting)
    }
}

/// Reads either form; an untagged enum would forget what was wrong.
struct Setting;

impl<'de> Visitor<'de> for Setting {
    type Value = ThemeSetting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a theme's name, or {dark = \"..\", light = \"..\"}")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<ThemeSetting, E> {
        Ok(ThemeSetting::One(name.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ThemeSetting, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Pair {
            dark: String,
            light: String,
            #[serde(default)]
            detect: Detect,
        }
        let Pair { dark, light, detect } = Pair::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(ThemeSetting::Pair { dark, light, detect })
    }
}
