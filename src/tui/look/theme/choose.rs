//! Which theme: `--theme`, else `OVERNIGHT_THEME`, else the config, else `mono` under `NO_COLOR`, else `auto`. Pure.

use super::file::Variant;
use crate::config::{Detect, ThemeSetting};

/// What may say which theme.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wishes<'a> {
    /// `--theme`.
    pub flag: Option<&'a str>,
    /// `OVERNIGHT_THEME`, unless empty.
    pub variable: Option<&'a str>,
    /// The config's `theme`.
    pub config: Option<&'a ThemeSetting>,
    /// `NO_COLOR` is set and not empty.
    pub no_color: bool,
    /// What the terminal answered, where it was asked.
    pub background: Option<Variant>,
    /// `COLORFGBG`, which some terminals set.
    pub colorfgbg: Option<&'a str>,
}

impl Wishes<'_> {
    /// Whether the terminal's background decides and the terminal is to be asked for it.
    pub fn ask(&self) -> bool {
        let asked = matches!(self.config, Some(ThemeSetting::Pair { detect: Detect::Osc11, .. }));
        asked && self.flag.is_none() && self.variable.is_none()
    }
}

/// The name of the theme.
pub fn choose(wishes: &Wishes<'_>) -> String {
    let by_config = || match wishes.config? {
        ThemeSetting::One(name) => Some(name.as_str()),
        ThemeSetting::Pair { dark, light, .. } => {
            Some(match wishes.background.or_else(|| background(wishes.colorfgbg)) {
                Some(Variant::Light) => light.as_str(),
                Some(Variant::Dark | Variant::Any) | None => dark.as_str(),
            })
        }
    };
    let fallback = if wishes.no_color { "mono" } else { "auto" };
    wishes.flag.or(wishes.variable).or_else(by_config).unwrap_or(fallback).to_owned()
}

/// What `COLORFGBG` says of the background: `15;0`, and `15;default;0` in some versions.
fn background(colorfgbg: Option<&str>) -> Option<Variant> {
    match colorfgbg?.rsplit(';').next()?.parse::<u8>().ok()? {
        0..=6 | 8 => Some(Variant::Dark),
        7 | 9..=15 => Some(Variant::Light),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_says_something_decides() {
        let one = ThemeSetting::One("nord".into());
        let all = Wishes {
            flag: Some("okabe-dark"),
            variable: Some("gruvbox-dark"),
            config: Some(&one),
            no_color: true,
            ..Wishes::default()
        };
        assert_eq!(choose(&all), "okabe-dark");
        assert_eq!(choose(&Wishes { flag: None, ..all }), "gruvbox-dark");
        assert_eq!(choose(&Wishes { flag: None, variable: None, ..all }), "nord");
        assert_eq!(choose(&Wishes { flag: None, variable: None, config: None, ..all }), "mono");
        assert_eq!(choose(&Wishes::default()), "auto");
    }

    #[test]
    fn a_pair_follows_the_background_where_the_terminal_tells_it() {
        let pair =
            ThemeSetting::Pair { dark: "nord".into(), light: "okabe-light".into(), detect: Detect::Off };
        for (told, theme) in [
            (None, "nord"),
            (Some("15;0"), "nord"),
            (Some("0;15"), "okabe-light"),
            (Some("0;default;15"), "okabe-light"),
            (Some("12;8"), "nord"),
            (Some("0;7"), "okabe-light"),
            (Some("rubbish"), "nord"),
            (Some(""), "nord"),
            (Some("0;99"), "nord"),
        ] {
            let wishes = Wishes { config: Some(&pair), colorfgbg: told, ..Wishes::default() };
            assert_eq!(choose(&wishes), theme, "{told:?}");
            // Its own answer counts for more than what was in the environment.
            let answered = Wishes { background: Some(Variant::Light), ..wishes };
            assert_eq!(choose(&answered), "okabe-light", "{told:?}");
        }
    }

    #[test]
    fn the_terminal_is_asked_only_where_the_config_says_so_and_its_answer_decides() {
        let pair = |detect| ThemeSetting::Pair { dark: "nord".into(), light: "okabe-light".into(), detect };
        let (off, osc11) = (pair(Detect::Off), pair(Detect::Osc11));
        let wishes = Wishes { config: Some(&osc11), ..Wishes::default() };
        assert!(wishes.ask());
        assert!(!Wishes { flag: Some("nord"), ..wishes }.ask());
        assert!(!Wishes { variable: Some("nord"), ..wishes }.ask());
        assert!(!Wishes { config: Some(&off), ..wishes }.ask());
        assert!(!Wishes::default().ask());
    }
}
