//! How the dashboard is run: from the command line, the config and the environment, which are handed in.

use crate::clock;
use crate::config::Notify;
use crate::model::Now;
use crate::tui::look::canvas::Glyphs;
use crate::tui::look::colour::Depth;
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What flows need of the world outside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outside {
    /// `VISUAL`, else `EDITOR`.
    pub editor: Option<String>,
    /// `PAGER`
    pub pager: Option<String>,
    /// The person's shell.
    pub shell: Option<PathBuf>,
    /// The folder the dashboard was started in.
    pub start: PathBuf,
    /// The person's own templates.
    pub templates: Option<PathBuf>,
    /// The home directory, for `~/` in job files.
    pub home: PathBuf,
    /// What goes along with a submission: `PATH`, `LANG`, `LC_*`.
    pub environment: BTreeMap<String, String>,
    /// The folder that the shell around the dashboard goes to is written there.
    pub cwd_file: Option<PathBuf>,
}

/// How the dashboard is run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The theme's name.
    pub theme: String,
    /// What is wrong with how it was wished for.
    pub complaint: Option<String>,
    /// The user's own themes.
    pub theme_dir: Option<PathBuf>,
    /// How many colours.
    pub depth: Depth,
    /// Which characters.
    pub glyphs: Glyphs,
    /// The terminal is at the other end of a network.
    pub remote: bool,
    /// What time it is: [`clock::now`], or the one moment of a picture.
    pub clock: fn() -> Now,
    /// For local times.
    pub tz: TimeZone,
    /// The account that looks; empty: the scheduler's.
    pub me: String,
    /// Keys that take the place of the table's: an action's name and its keys.
    pub keys: BTreeMap<String, Vec<String>>,
    /// The columns of the queue by name, from left to right; none: as they are by themselves.
    pub columns: Vec<String>,
    /// Those of the history.
    pub history_columns: Vec<String>,
    /// Few bytes.
    pub low_bandwidth: bool,
    /// The mouse selects and scrolls.
    pub mouse: bool,
    /// A sign turns while a log is searched.
    pub spinner: bool,
    /// Frames are marked for the terminal to show at once.
    pub sync: bool,
    /// How to tell of a job that ended while the window had no focus.
    pub notify: Notify,
    /// For flows that leave the screen.
    pub outside: Outside,
}

impl Options {
    /// From the environment: `OVERNIGHT_THEME`, `NO_COLOR`, `TERM`, `COLORTERM`, `LC_ALL`, `LC_CTYPE`, `LANG`,
    /// `SSH_CONNECTION`, `XDG_CONFIG_HOME`, `HOME`.
    pub fn from_lookup(lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
        let utf8 = ["utf-8", "utf8"].iter().any(|name| locale.to_ascii_lowercase().contains(name));
        let mono = set("NO_COLOR").is_some();
        let config = set("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".config")));
        Self {
            theme: set("OVERNIGHT_THEME").unwrap_or_else(|| if mono { "mono" } else { "auto" }.to_owned()),
            complaint: None,
            theme_dir: config.as_ref().map(|dir| dir.join("overnight/themes")),
            depth: Depth::choose(lookup),
            glyphs: if utf8 { Glyphs::Unicode } else { Glyphs::Ascii },
            remote: set("SSH_CONNECTION").is_some(),
            clock: clock::now,
            tz: TimeZone::system(),
            me: String::new(),
            keys: BTreeMap::new(),
            columns: Vec::new(),
            history_columns: Vec::new(),
            low_bandwidth: false,
            mouse: false,
            spinner: false,
            sync: true,
            notify: Notify::Off,
            outside: Outside {
                templates: config.map(|dir| dir.join("overnight/templates")),
                ..Outside::default()
            },
        }
    }
}

/// Why there can be no dashboard here, if that is so.
pub fn refusal(terminal: bool, term: Option<&str>) -> Option<&'static str> {
    (!terminal || term == Some("dumb")).then_some("not a terminal; use `overnight ls`, `overnight watch`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(set: &[(&str, &str)]) -> Options {
        Options::from_lookup(&|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn a_locale_that_is_not_utf8_means_ascii() {
        assert_eq!(from(&[("LANG", "de_DE.UTF-8")]).glyphs, Glyphs::Unicode);
        assert_eq!(from(&[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")]).glyphs, Glyphs::Ascii);
        assert_eq!(from(&[("LC_CTYPE", "C.utf8")]).glyphs, Glyphs::Unicode);
        assert_eq!(from(&[]).glyphs, Glyphs::Ascii);
    }

    #[test]
    fn no_color_means_the_mono_theme_unless_one_is_named() {
        assert_eq!(from(&[("NO_COLOR", "1")]).theme, "mono");
        let named = from(&[("NO_COLOR", "1"), ("OVERNIGHT_THEME", "okabe-dark")]);
        assert_eq!((named.theme.as_str(), named.depth), ("okabe-dark", Depth::Mono));
        assert_eq!(
            from(&[("HOME", "/home/x")]).theme_dir.unwrap(),
            PathBuf::from("/home/x/.config/overnight/themes")
        );
    }

    #[test]
    fn a_dumb_terminal_is_refused_with_advice() {
        assert!(refusal(true, Some("dumb")).is_some());
        assert!(refusal(false, Some("xterm")).is_some());
        assert!(refusal(true, Some("xterm")).is_none());
    }
}
