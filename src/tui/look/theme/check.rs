//! Whether a theme can be read and its states told apart: contrast against what is behind the text, and the distance of
//! the states' colours for different eyes. Pure. What a terminal's own scheme decides cannot be measured and is left out.

use super::{At, Role, Theme, Variant};
use crate::tui::look::colour::{Depth, contrast, of_xterm, rgb};
use crate::tui::look::vision::{Need, Sight};
use ratatui::style::Color;

/// What is asked of text.
const TEXT: f64 = 4.5;
/// What is asked of text that stands on both black and white.
const TWO_SIDED: f64 = 3.9;
/// What is asked of text for people with low vision.
const LOW_VISION: f64 = 7.0;
/// What is hinted at.
const HINT: f64 = 3.0;
/// What is asked of lines.
const EDGE: f64 = 2.0;
/// What is asked between two states.
const APART: f64 = 20.0;
/// Rounding of a figure is no fault.
const SLACK: f64 = 0.005;

/// The states that have to be told apart.
const STATES: [Role; 5] = [Role::Run, Role::Wait, Role::Paused, Role::Rent, Role::Fail];

/// What kind of thing a figure is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// Text: what is not one of the others.
    Text,
    /// Text of second rank.
    Secondary,
    /// Lines and the empty part of bars.
    Edge,
    /// The row under the cursor.
    Cursor,
}

impl Rank {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Text, Self::Secondary, Self::Edge, Self::Cursor];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Secondary => "secondary text",
            Self::Edge => "lines",
            Self::Cursor => "cursor row",
        }
    }

    /// Of a role.
    pub const fn of(role: Role) -> Self {
        match role {
            Role::Border | Role::Scrollbar | Role::GaugeEmpty => Self::Edge,
            Role::Dim | Role::KeyText | Role::Timestamp | Role::Stale => Self::Secondary,
            Role::CursorRow => Self::Cursor,
            _ => Self::Text,
        }
    }

    fn least(self, theme: &Theme) -> f64 {
        let text = if theme.variant == Variant::Any { TWO_SIDED } else { TEXT };
        match self {
            Self::Edge => EDGE,
            _ if theme.safe_for.contains(&Need::LowVision) => LOW_VISION,
            Self::Text => text,
            Self::Secondary | Self::Cursor => TEXT,
        }
    }
}

/// The lowest contrast of a rank at a depth.
#[derive(Debug, Clone)]
pub struct Contrast {
    /// Of what.
    pub rank: Rank,
    /// At which depth.
    pub depth: Depth,
    /// The ratio.
    pub ratio: f64,
    /// What is asked.
    pub least: f64,
    /// The role that has it.
    pub role: Role,
    /// Where its colour is defined.
    pub at: Option<At>,
}

/// The smallest distance between two states for some eyes at a depth.
#[derive(Debug, Clone)]
pub struct Distance {
    /// Whose.
    pub sight: Sight,
    /// At which depth.
    pub depth: Depth,
    /// CIE76.
    pub distance: f64,
    /// What is asked, if anything is promised.
    pub least: Option<f64>,
    /// The two.
    pub between: [Role; 2],
    /// Where the second one's colour is defined.
    pub at: Option<At>,
}

/// What was measured of a theme.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Contrasts.
    pub contrasts: Vec<Contrast>,
    /// Distances.
    pub distances: Vec<Distance>,
    /// What fails, each with its place.
    pub faults: Vec<String>,
    /// What would be hard to read with the sixteen colours of an xterm. Schemes differ: it is no fault.
    pub hints: Vec<String>,
}

/// Measures a theme, which is handed over at each depth that has colours of its own to measure, or at any other.
pub fn check(at_depths: &[Theme]) -> Report {
    let mut report = Report::default();
    for theme in at_depths {
        contrasts(theme, &mut report);
        distances(theme, &mut report);
        hints(theme, &mut report);
    }
    report
}

/// One of the sixteen is measured as an xterm draws it, which is no promise of other schemes.
fn hints(theme: &Theme, report: &mut Report) {
    let mut told = Vec::new();
    for role in Role::ALL {
        let Some((name, front)) = theme.style(*role).fg.and_then(of_xterm) else { continue };
        let ratio = backgrounds(theme.variant).map(|back| contrast(front, *back)).min_by(f64::total_cmp);
        let least = Rank::of(*role).least(theme).min(HINT);
        let Some(ratio) = ratio.filter(|ratio| ratio + SLACK < least && !told.contains(&name)) else {
            continue;
        };
        told.push(name);
        let (section, role) = role.name();
        report.hints.push(format!(
            "[{section}] {role} is {name}, in an xterm {ratio:.1}:1: at least {least}:1 is readable"
        ));
    }
}

/// Says a fault, with its place if it has one.
fn fault(report: &mut Report, at: Option<&At>, text: &str) {
    report.faults.push(at.map_or_else(|| text.to_owned(), |at| format!("{at}: {text}")));
}

fn contrasts(theme: &Theme, report: &mut Report) {
    let mut all: Vec<Contrast> = Vec::new();
    for role in Role::ALL {
        let Some(ratio) = ratio(theme, *role) else { continue };
        let rank = Rank::of(*role);
        // What has no colour of its own is drawn in that of text.
        let coloured = if theme.style(*role).fg.is_some() { *role } else { Role::Text };
        let at = theme.place(coloured).cloned();
        all.push(Contrast { rank, depth: theme.depth, ratio, least: rank.least(theme), role: *role, at });
    }
    let mut low: Vec<&Contrast> = all.iter().filter(|one| one.ratio + SLACK < one.least).collect();
    while let Some(first) = low.first().copied() {
        // One colour is one fault, however many roles have it.
        let same = |one: &&Contrast| one.at == first.at && one.least.total_cmp(&first.least).is_eq();
        let more = low.iter().filter(|one| same(one)).count() - 1;
        low.retain(|one| !same(one));
        let (section, name) = first.role.name();
        let more = if more == 0 { String::new() } else { format!(" (so do {more} more roles)") };
        let text = format!(
            "[{section}] {name} has {:.2}:1 in {}, and needs {}:1{more}",
            first.ratio,
            theme.depth.name(),
            first.least
        );
        fault(report, first.at.as_ref(), &text);
    }
    for rank in Rank::ALL {
        let of = all.iter().filter(|one| one.rank == rank);
        report.contrasts.extend(of.min_by(|a, b| a.ratio.total_cmp(&b.ratio)).cloned());
    }
}

/// The lowest contrast of a role against what can be behind it; `None` where the terminal's scheme decides.
fn ratio(theme: &Theme, role: Role) -> Option<f64> {
    let (base, mut style) = (theme.style(Role::Base), theme.style(role));
    if role == Role::CursorRow {
        // As the canvas draws it: the colour of text, then what the role adds.
        style = theme.style(Role::Text).patch(style);
    }
    let own = |colour: Option<Color>| colour.filter(|colour| *colour != Color::Reset);
    let front = own(style.fg).or_else(|| own(base.fg));
    let back = own(style.bg).or_else(|| own(base.bg));
    let named = |colour: Option<Color>| colour.map(rgb);
    // The ratio is the same either way round: reverse changes nothing.
    match (named(front), named(back)) {
        (Some(Some(front)), Some(Some(back))) => Some(contrast(front, back)),
        (Some(Some(front)), None) => {
            backgrounds(theme.variant).map(|back| contrast(front, *back)).min_by(f64::total_cmp)
        }
        (None, Some(Some(back))) => backgrounds(theme.variant)
            .map(|paper| contrast(paper.map(|channel| 255 - channel), back))
            .min_by(f64::total_cmp),
        _ => None,
    }
}

/// What can be behind text where the theme leaves the background alone.
fn backgrounds(variant: Variant) -> std::slice::Iter<'static, [u8; 3]> {
    const BOTH: [[u8; 3]; 2] = [[0; 3], [255; 3]];
    match variant {
        Variant::Dark => BOTH[..1].iter(),
        Variant::Light => BOTH[1..].iter(),
        Variant::Any => BOTH.iter(),
    }
}

fn distances(theme: &Theme, report: &mut Report) {
    let mut pairs = Vec::new();
    for (ix, a) in STATES.into_iter().enumerate() {
        for b in STATES.into_iter().skip(ix + 1) {
            let (first, second) = (theme.style(a), theme.style(b));
            if first.fg != second.fg {
                pairs.push([a, b]);
            } else if first.add_modifier == second.add_modifier {
                let text = format!(
                    "[state] {} and {} look the same in {}",
                    a.name().1,
                    b.name().1,
                    theme.depth.name()
                );
                fault(report, theme.place(b), &text);
            }
        }
    }
    for sight in Sight::ALL {
        let promised =
            sight == Sight::Normal || theme.safe_for.iter().any(|need| need.sight() == Some(sight));
        let measured = pairs.iter().filter_map(|[a, b]| {
            let colour = |role| theme.style(role).fg.and_then(rgb);
            Some((sight.distance(colour(*a)?, colour(*b)?), [*a, *b]))
        });
        let Some((distance, between)) = measured.min_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
        let at = theme.place(between[1]).cloned();
        if promised && distance + SLACK < APART {
            let text = format!(
                "[state] {} and {} are {distance:.1} apart for {} eyes in {}, and need {APART}",
                between[0].name().1,
                between[1].name().1,
                sight.name(),
                theme.depth.name()
            );
            fault(report, at.as_ref(), &text);
        }
        let least = promised.then_some(APART);
        report.distances.push(Distance { sight, depth: theme.depth, distance, least, between, at });
    }
}
