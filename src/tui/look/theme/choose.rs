//! Which theme: `--theme`, else `OVERNIGHT_THEME`, else the config, else `mono` under `NO_COLOR`, else `auto`. Pure.

use super::file::Variant;
use crate::config::ThemeSetting;

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
    /// `COLORFGBG`, which some terminals set.
    pub colorfgbg: Option<&'a str>,
}

/// The name of the theme.
pub fn choose(wishes: &Wishes<'_>) -> String {
    let by_config = || match wishes.config?.plain() {
        ThemeSetting::One(name) => Some(name.as_str()),
        ThemeSetting::Odd { .. } => None,
        ThemeSetting::Pair { dark, light, .. } => Some(match background(wishes.colorfgbg) {
            Some(Variant::Light) => light.as_str(),
            Some(Variant::Dark | Variant::Any) | None => dark.as_str(),
        }),
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
    use crate::config::Detect;

    #[test]
    fn the_first_that_says_something_decides() {
        let one = ThemeSetting::One("nord".into());
        let all = Wishes {
            flag: Some("okabe-dark"),
            variable: Some("gruvbox-dark"),
            config: Some(&one),
            no_color: true,
            colorfgbg: None,
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
        }
    }
}
