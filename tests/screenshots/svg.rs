//! A terminal screen as an SVG picture: one rectangle for each run of background, one text for each run of foreground.
//!
//! Lines and blocks are drawn, not written: fonts leave gaps between them.

use std::fmt::Write as _;
use vt100::{Cell, Color, Screen};

/// The size of a cell; 14 px of a monospaced font fit it.
const CELL: (f64, f64) = (8.5, 17.0);
/// Around the screen.
const MARGIN: f64 = 12.0;
/// From the top of a cell to the line that letters stand on.
const BASELINE: f64 = 13.0;
/// What a terminal shows where a program asks for no colour.
const INK: &str = "#d8dee9";
const PAPER: &str = "#12161f";
/// The sixteen colours that a terminal's own theme gives.
const PALETTE: [&str; 16] = [
    "#1b2030", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4", "#5c6370",
    "#ff8b92", "#b5e08f", "#ffd990", "#82c4ff", "#de9cf0", "#7ad6e0", "#ffffff",
];

/// How a cell looks, without its text.
#[derive(Debug, Clone, PartialEq)]
struct Look {
    ink: String,
    paper: String,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
}

/// The whole screen.
pub(crate) fn draw(screen: &Screen) -> String {
    let (rows, cols) = (screen.size().0.get(), screen.size().1.get());
    let width = f64::from(cols) * CELL.0 + 2.0 * MARGIN;
    let height = f64::from(rows) * CELL.1 + 2.0 * MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.1} {height:.1}\" \
         font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>\n"
    );
    for row in 0..rows {
        backgrounds(screen, row, cols, &mut out);
        texts(screen, row, cols, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

fn x_of(col: u16) -> f64 {
    MARGIN + f64::from(col) * CELL.0
}

fn y_of(row: u16) -> f64 {
    MARGIN + f64::from(row) * CELL.1
}

fn rect(x: f64, y: f64, (width, height): (f64, f64), fill: &str, out: &mut String) {
    let _ = writeln!(
        out,
        "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{fill}\" shape-rendering=\"crispEdges\"/>"
    );
}

fn backgrounds(screen: &Screen, row: u16, cols: u16, out: &mut String) {
    let paper = |col| screen.cell(row, col).map_or_else(|| PAPER.to_owned(), |cell| look(cell).paper);
    let mut from = 0;
    while from < cols {
        let colour = paper(from);
        let to = (from + 1..cols).find(|col| paper(*col) != colour).unwrap_or(cols);
        if colour != PAPER {
            rect(x_of(from), y_of(row), (f64::from(to - from) * CELL.0, CELL.1), &colour, out);
        }
        from = to;
    }
}

fn texts(screen: &Screen, row: u16, cols: u16, out: &mut String) {
    let mut col = 0;
    while col < cols {
        let Some(cell) = screen.cell(row, col) else { break };
        let look = look(cell);
        if let Some(shapes) = cell.contents().chars().next().and_then(shapes) {
            for (x, y, w, h) in shapes {
                let (left, top) = (x_of(col) + x * CELL.0, y_of(row) + y * CELL.1);
                rect(left, top, (w * CELL.0, h * CELL.1), &look.ink, out);
            }
            col += 1;
            continue;
        }
        let start = col;
        let mut text = String::new();
        while let Some(next) = screen.cell(row, col).filter(|_| col < cols) {
            let drawn = next.contents().chars().next().and_then(shapes).is_some();
            if drawn || self::look(next) != look {
                break;
            }
            // The second half of a wide character has no text of its own.
            if !next.is_wide_continuation() {
                text.push_str(if next.has_contents() { next.contents() } else { " " });
            }
            col += 1;
        }
        write_run(&text, &look, (x_of(start), y_of(row), f64::from(col - start) * CELL.0), out);
    }
}

fn write_run(text: &str, look: &Look, (x, y, width): (f64, f64, f64), out: &mut String) {
    if text.trim().is_empty() && !look.underline {
        return;
    }
    let mut style = String::new();
    for (on, attribute) in [
        (look.bold, " font-weight=\"bold\""),
        (look.dim, " opacity=\"0.65\""),
        (look.italic, " font-style=\"italic\""),
        (look.underline, " text-decoration=\"underline\""),
    ] {
        style.push_str(if on { attribute } else { "" });
    }
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\" \
         fill=\"{}\"{style}>{text}</text>",
        y + BASELINE,
        look.ink
    );
}

fn look(cell: &Cell) -> Look {
    let (mut ink, mut paper) = (colour(cell.fgcolor(), INK), colour(cell.bgcolor(), PAPER));
    if cell.inverse() {
        std::mem::swap(&mut ink, &mut paper);
    }
    Look {
        ink,
        paper,
        bold: cell.bold(),
        dim: cell.dim(),
        italic: cell.italic(),
        underline: cell.underline(),
    }
}

fn colour(colour: Color, default: &str) -> String {
    match colour {
        Color::Default => default.to_owned(),
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
        Color::Idx(ix @ 0..16) => PALETTE[usize::from(ix)].to_owned(),
        Color::Idx(ix @ 16..232) => {
            let level = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
            let ix = ix - 16;
            format!("#{:02x}{:02x}{:02x}", level(ix / 36), level(ix / 6 % 6), level(ix % 6))
        }
        Color::Idx(ix) => {
            let grey = 8 + 10 * (ix - 232);
            format!("#{grey:02x}{grey:02x}{grey:02x}")
        }
    }
}

/// The rectangles of a line or block character, in parts of a cell: x, y, width, height.
fn shapes(c: char) -> Option<Vec<(f64, f64, f64, f64)>> {
    const W: f64 = 2.0 / 17.0; // a line's width, in cells
    const H: f64 = 1.0 / 17.0; // a line's height, in cells
    let (left, right) =
        ((0.0, 0.5 - H / 2.0, 0.5 + W / 2.0, H), (0.5 - W / 2.0, 0.5 - H / 2.0, 0.5 + W / 2.0, H));
    let (up, down) =
        ((0.5 - W / 2.0, 0.0, W, 0.5 + H / 2.0), (0.5 - W / 2.0, 0.5 - H / 2.0, W, 0.5 + H / 2.0));
    Some(match c {
        '─' => vec![left, right],
        '│' => vec![up, down],
        '┌' | '╭' => vec![right, down],
        '┐' | '╮' => vec![left, down],
        '└' | '╰' => vec![right, up],
        '┘' | '╯' => vec![left, up],
        '├' => vec![up, down, right],
        '┤' => vec![up, down, left],
        '┬' => vec![left, right, down],
        '┴' => vec![left, right, up],
        '┼' => vec![left, right, up, down],
        '▀' => vec![(0.0, 0.0, 1.0, 0.5)],
        '▁'..='█' => {
            let height = f64::from(c as u32 - 0x2580) / 8.0;
            vec![(0.0, 1.0 - height, 1.0, height)]
        }
        '▉'..='▏' => vec![(0.0, 0.0, f64::from(0x2590 - c as u32) / 8.0, 1.0)],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU16;

    fn picture(bytes: &str) -> String {
        let size = |n| NonZeroU16::new(n).unwrap();
        let mut parser = vt100::Parser::new(size(2), size(20), 0);
        parser.process(bytes.as_bytes());
        draw(parser.screen())
    }

    #[test]
    fn colours_attributes_and_special_characters_arrive() {
        let svg = picture("\x1b[1;38;2;1;2;3ma<b&c\x1b[0m \x1b[7mR\x1b[0m");
        assert!(svg.contains("fill=\"#010203\" font-weight=\"bold\">a&lt;b&amp;c</text>"), "{svg}");
        assert!(svg.contains(&format!("fill=\"{INK}\" shape")), "the reversed cell's background: {svg}");
        assert!(svg.contains(&format!("fill=\"{PAPER}\">R</text>")), "{svg}");
    }

    #[test]
    fn bars_are_drawn_in_eighths_and_lines_join() {
        let svg = picture("█▌▂─┐");
        assert_eq!(svg.matches("<rect").count(), 1 + 3 + 2 + 2, "{svg}");
        assert!(svg.contains("width=\"4.25\" height=\"17.00\""), "half a block: {svg}");
        assert!(!svg.contains("<text"), "{svg}");
    }
}
