//! How many colours the terminal has, chosen without asking it, and the mapping of colours to that depth.
//!
//! Nothing here does I/O: the environment is handed in. `theme` and `logtext` are the callers.

use ratatui::style::{Color, Modifier, Style};

/// How many colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Depth {
    /// None: bold, dim, reverse and underline only.
    Mono,
    /// The sixteen of the terminal's own scheme.
    C16,
    /// The xterm palette.
    C256,
    /// 24 bits.
    True,
}

impl Depth {
    /// All of them, the poorest first.
    pub const ALL: [Self; 4] = [Self::Mono, Self::C16, Self::C256, Self::True];

    /// Reads `--color none|16|256|true`.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|depth| depth.name() == text)
    }

    /// Its name, as `--color` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mono => "none",
            Self::C16 => "16",
            Self::C256 => "256",
            Self::True => "true",
        }
    }

    /// Chooses from `NO_COLOR`, `TERM` and `COLORTERM`.
    pub fn choose(lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let term = set("TERM").unwrap_or_default();
        let colorterm = set("COLORTERM").unwrap_or_default();
        if set("NO_COLOR").is_some() {
            Self::Mono
        } else if term == "linux" || term == "ansi" || term.starts_with("vt") {
            Self::C16
        } else if matches!(colorterm.as_str(), "truecolor" | "24bit") || term.ends_with("-direct") {
            Self::True
        } else if term.contains("256color") || term.starts_with("screen") || term.starts_with("tmux") {
            Self::C256
        } else {
            Self::C16
        }
    }

    /// The nearest colour this depth has.
    pub fn map(self, colour: Color) -> Color {
        match (self, colour) {
            (_, Color::Reset) | (Self::Mono, _) => Color::Reset,
            (Self::C256, Color::Rgb(r, g, b)) => Color::Indexed(nearest([r, g, b], 16..=255)),
            (Self::C16, Color::Rgb(r, g, b)) => sixteen(nearest([r, g, b], 0..=15)),
            (Self::C16, Color::Indexed(i)) if i > 15 => sixteen(nearest(xterm(i), 0..=15)),
            (_, colour) => colour,
        }
    }

    /// A style at this depth. Backgrounds go at 16 colours: too few of them are readable behind text.
    #[must_use]
    pub fn map_style(self, mut style: Style) -> Style {
        style.fg = style.fg.map(|c| self.map(c)).filter(|c| *c != Color::Reset || self != Self::Mono);
        style.bg = match self {
            Self::Mono | Self::C16 => None,
            Self::C256 | Self::True => style.bg.map(|c| self.map(c)),
        };
        style
    }
}

/// Reads `#rrggbb`.
pub(in crate::tui) fn parse_rgb(text: &str) -> Option<[u8; 3]> {
    let hex = text.strip_prefix('#').filter(|hex| hex.len() == 6 && hex.is_ascii())?;
    let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    Some([byte(0)?, byte(2)?, byte(4)?])
}

/// The sixteen names, in their order.
const NAMES: [&str; 16] = [
    "black",
    "red",
    "green",
    "yellow",
    "blue",
    "magenta",
    "cyan",
    "gray",
    "dark-gray",
    "light-red",
    "light-green",
    "light-yellow",
    "light-blue",
    "light-magenta",
    "light-cyan",
    "white",
];

/// What a modifier is called in a theme file.
const MODIFIERS: [(&str, Modifier); 5] = [
    ("bold", Modifier::BOLD),
    ("dim", Modifier::DIM),
    ("italic", Modifier::ITALIC),
    ("underlined", Modifier::UNDERLINED),
    ("reverse", Modifier::REVERSED),
];

/// Reads one of the sixteen names.
pub(in crate::tui) fn parse_c16(text: &str) -> Option<Color> {
    NAMES.iter().position(|name| *name == text).map(|at| sixteen(at as u8))
}

/// Reads `bold`, `dim` and the like.
pub(in crate::tui) fn parse_modifier(text: &str) -> Option<Modifier> {
    MODIFIERS.iter().find(|(name, _)| *name == text).map(|(_, modifier)| *modifier)
}

/// A colour as a theme file writes it; the number of one of 256.
pub fn colour_name(colour: Color) -> String {
    match colour {
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
        Color::Indexed(index) => index.to_string(),
        named => {
            let found = (0..16).find(|index| sixteen(*index) == named);
            found.map_or("default", |index| NAMES[usize::from(index)]).to_owned()
        }
    }
}

/// Modifiers as a theme file writes them.
pub fn modifier_names(modifiers: Modifier) -> Vec<&'static str> {
    let set = MODIFIERS.iter().filter(|(_, modifier)| modifiers.contains(*modifier));
    set.map(|(name, _)| *name).collect()
}

const fn sixteen(index: u8) -> Color {
    match index {
        0 => Color::Black,
        1 => Color::Red,
        2 => Color::Green,
        3 => Color::Yellow,
        4 => Color::Blue,
        5 => Color::Magenta,
        6 => Color::Cyan,
        7 => Color::Gray,
        8 => Color::DarkGray,
        9 => Color::LightRed,
        10 => Color::LightGreen,
        11 => Color::LightYellow,
        12 => Color::LightBlue,
        13 => Color::LightMagenta,
        14 => Color::LightCyan,
        _ => Color::White,
    }
}

/// The xterm palette's value of an index.
pub(in crate::tui) const fn xterm(index: u8) -> [u8; 3] {
    const LOW: [[u8; 3]; 16] = [
        [0, 0, 0],
        [205, 0, 0],
        [0, 205, 0],
        [205, 205, 0],
        [0, 0, 238],
        [205, 0, 205],
        [0, 205, 205],
        [229, 229, 229],
        [127, 127, 127],
        [255, 0, 0],
        [0, 255, 0],
        [255, 255, 0],
        [92, 92, 255],
        [255, 0, 255],
        [0, 255, 255],
        [255, 255, 255],
    ];
    const LEVEL: [u8; 6] = [0, 95, 135, 175, 215, 255];
    match index {
        0..=15 => LOW[index as usize],
        16..=231 => {
            let i = index - 16;
            [LEVEL[(i / 36) as usize], LEVEL[(i / 6 % 6) as usize], LEVEL[(i % 6) as usize]]
        }
        _ => [8 + 10 * (index - 232); 3],
    }
}

/// What a colour looks like; `None` if the terminal's own scheme says that.
pub(in crate::tui) const fn rgb(colour: Color) -> Option<[u8; 3]> {
    match colour {
        Color::Rgb(r, g, b) => Some([r, g, b]),
        Color::Indexed(index) if index > 15 => Some(xterm(index)),
        _ => None,
    }
}

/// One of the sixteen: its name, and what it is in an xterm that nobody has set otherwise.
pub(in crate::tui) fn of_xterm(colour: Color) -> Option<(&'static str, [u8; 3])> {
    (0..).zip(NAMES).find(|(index, _)| sixteen(*index) == colour).map(|(index, name)| (name, xterm(index)))
}

fn nearest(rgb: [u8; 3], among: std::ops::RangeInclusive<u8>) -> u8 {
    let want = lab(rgb.map(linear));
    let distance = |index: u8| {
        let have = lab(xterm(index).map(linear));
        want.iter().zip(have).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()
    };
    among.min_by(|a, b| distance(*a).total_cmp(&distance(*b))).unwrap_or(7)
}

pub(in crate::tui) fn linear(channel: u8) -> f64 {
    let c = f64::from(channel) / 255.0;
    if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
}

/// CIELAB under D65 of linear light: equal distances look about equally different.
pub(in crate::tui) fn lab([red, green, blue]: [f64; 3]) -> [f64; 3] {
    let curve = |t: f64| if t > 0.008_856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
    let x = curve((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047);
    let y = curve(0.2126 * red + 0.7152 * green + 0.0722 * blue);
    let z = curve((0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883);
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// The contrast ratio of two colours, 1 to 21.
pub fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
    let luminance = |[r, g, b]: [u8; 3]| 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(set: &[(&str, &str)]) -> Depth {
        Depth::choose(&|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn the_depth_follows_the_environment() {
        assert_eq!(chosen(&[("TERM", "xterm-256color")]), Depth::C256);
        assert_eq!(chosen(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]), Depth::True);
        assert_eq!(chosen(&[("TERM", "linux"), ("COLORTERM", "truecolor")]), Depth::C16);
        assert_eq!(chosen(&[("TERM", "screen")]), Depth::C256);
        assert_eq!(chosen(&[("TERM", "vt100")]), Depth::C16);
        assert_eq!(chosen(&[("TERM", "xterm")]), Depth::C16);
        assert_eq!(chosen(&[("TERM", "xterm-direct")]), Depth::True);
        assert_eq!(chosen(&[("TERM", "xterm-256color"), ("NO_COLOR", "1")]), Depth::Mono);
        assert_eq!(chosen(&[("TERM", "xterm-256color"), ("NO_COLOR", "")]), Depth::C256);
    }

    #[test]
    fn colours_find_their_nearest_neighbour() {
        assert_eq!(Depth::C256.map(Color::Rgb(255, 0, 0)), Color::Indexed(196));
        assert_eq!(Depth::C256.map(Color::Rgb(0, 0, 0)), Color::Indexed(16));
        assert_eq!(Depth::C16.map(Color::Indexed(196)), Color::LightRed);
        assert_eq!(Depth::Mono.map(Color::Rgb(1, 2, 3)), Color::Reset);
        assert_eq!(Depth::True.map(Color::Rgb(1, 2, 3)), Color::Rgb(1, 2, 3));
    }

    #[test]
    fn mono_styles_carry_no_colour() {
        let style = Style::new().fg(Color::Red).bg(Color::Blue).add_modifier(Modifier::REVERSED);
        let mono = Depth::Mono.map_style(style);
        assert_eq!((mono.fg, mono.bg), (None, None));
        assert!(mono.add_modifier.contains(Modifier::REVERSED));
    }
}
