//! The `theme` key: one theme, or one for dark and one for light terminals.

use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
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
    /// What was written is no theme, or half of one.
    #[serde(serialize_with = "what_counts")]
    Odd {
        /// This counts: `auto` for what is not there.
        instead: Box<ThemeSetting>,
        /// What is wrong with it, and how it is put right. A theme is no reason not to start.
        why: String,
    },
}

impl ThemeSetting {
    /// What counts.
    pub fn plain(&self) -> &Self {
        if let Self::Odd { instead, .. } = self { instead.plain() } else { self }
    }

    /// What is wrong with it.
    pub fn complaint(&self) -> Option<&str> {
        if let Self::Odd { why, .. } = self { Some(why) } else { None }
    }
}

/// A setting that is odd is written as what counts.
fn what_counts<S: Serializer>(instead: &ThemeSetting, _why: &str, serializer: S) -> Result<S::Ok, S::Error> {
    instead.serialize(serializer)
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
        f.write_str(FORM)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<ThemeSetting, E> {
        Ok(odd(auto(), &format!("`{value}` is no theme")))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<ThemeSetting, E> {
        Ok(odd(auto(), &format!("`{value}` is no theme")))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<ThemeSetting, E> {
        Ok(odd(auto(), &format!("`{value}` is no theme")))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ThemeSetting, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(odd(auto(), "a list is no theme"))
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<ThemeSetting, E> {
        Ok(ThemeSetting::One(name.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ThemeSetting, A::Error> {
        let map = BTreeMap::<String, toml::Value>::deserialize(de::value::MapAccessDeserializer::new(map))?;
        let mut wrong = Vec::new();
        let mut half = |name: &str| match map.get(name) {
            Some(toml::Value::String(theme)) => theme.clone(),
            Some(_) => {
                wrong.push(format!("`{name}` is no theme's name"));
                "auto".to_owned()
            }
            None => {
                wrong.push(format!("there is no `{name}`"));
                "auto".to_owned()
            }
        };
        let (dark, light) = (half("dark"), half("light"));
        let detect = match map.get("detect").map(|value| value.as_str()) {
            None | Some(Some("off")) => Detect::Off,
            Some(Some("osc11")) => Detect::Osc11,
            Some(_) => {
                wrong.push("`detect` is `off` or `osc11`".to_owned());
                Detect::Off
            }
        };
        for key in map.keys().filter(|key| !["dark", "light", "detect"].contains(&key.as_str())) {
            wrong.push(format!("`{key}` is no key of it"));
        }
        let pair = ThemeSetting::Pair { dark, light, detect };
        Ok(if wrong.is_empty() { pair } else { odd(pair, &wrong.join(", ")) })
    }
}

const FORM: &str = "a theme's name, or {dark = \"..\", light = \"..\"}";

fn auto() -> ThemeSetting {
    ThemeSetting::One("auto".to_owned())
}

fn odd(instead: ThemeSetting, wrong: &str) -> ThemeSetting {
    let why = format!("theme in config.toml: {wrong}: `auto` stands for it; write {FORM}");
    ThemeSetting::Odd { instead: Box::new(instead), why: crate::model::clean_line(&why) }
}
