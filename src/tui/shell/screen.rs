//! Cells to bytes: what differs from the screen, in one write inside a synchronised update. Nothing where nothing differs.
//!
//! It writes colours itself: under `NO_COLOR` crossterm would reset bold and reverse with every colour, and ratatui's
//! terminal sends 25 bytes for a frame without changes.

use crate::protocol::Snapshot;
use crate::tui::look::theme::Theme;
use crate::tui::ui::Ui;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use std::io::{self, Write};

/// Collects a frame and hands it on in one write.
#[derive(Debug)]
pub struct Output<W> {
    frame: Vec<u8>,
    out: W,
    sent: u64,
}

/// Enough for a whole screen at 200 columns.
const FRAME_BYTES: usize = 64 * 1024;
const SYNC_BEGIN: &[u8] = b"\x1b[?2026h";
const SYNC_END: &[u8] = b"\x1b[?2026l";
/// Clicks and the wheel: without drags and moves, which would flood a slow link.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";

impl<W: Write> Output<W> {
    /// Around a terminal, or a test's collector.
    pub fn new(out: W) -> Self {
        Self { frame: Vec::with_capacity(FRAME_BYTES), out, sent: 0 }
    }

    fn push(&mut self, text: &str) {
        self.frame.extend_from_slice(text.as_bytes());
    }

    fn send(&mut self) -> io::Result<()> {
        self.sent += self.frame.len() as u64;
        let sent = self.out.write_all(&self.frame).and_then(|()| self.out.flush());
        self.frame.clear();
        sent
    }
}

/// The screen as it is and as it will be.
#[derive(Debug)]
pub struct Screenful<W> {
    output: Output<W>,
    shown: Buffer,
    next: Buffer,
    cursor: Option<(u16, u16, bool)>,
    /// Nothing is known of what is on the terminal.
    blank: bool,
    /// Frames are marked for the terminal to show at once.
    is_marked: bool,
    /// The terminal tells of clicks and the wheel.
    has_mouse: bool,
}

impl<W: Write> Screenful<W> {
    /// A screen of which nothing is known.
    pub fn new(out: W, (width, height): (u16, u16)) -> Self {
        let area = Rect::new(0, 0, width, height);
        Self {
            output: Output::new(out),
            shown: Buffer::empty(area),
            next: Buffer::empty(area),
            cursor: None,
            blank: true,
            is_marked: true,
            has_mouse: false,
        }
    }

    /// Whether frames are marked for the terminal to show at once: some gateways print the marks.
    #[must_use]
    pub fn marked(mut self, is_marked: bool) -> Self {
        self.is_marked = is_marked;
        self
    }

    /// Sends something that is no picture.
    pub fn say(&mut self, text: &str) -> io::Result<()> {
        self.output.push(text);
        self.output.send()
    }

    /// A new size: everything is drawn again.
    pub fn resize(&mut self, (width, height): (u16, u16)) {
        let area = Rect::new(0, 0, width, height);
        self.next = Buffer::empty(area);
        self.repaint();
    }

    /// Everything is drawn again.
    pub fn repaint(&mut self) {
        self.shown = Buffer::empty(*self.next.area());
        self.blank = true;
    }

    /// Where the bytes went.
    pub const fn out(&self) -> &W {
        &self.output.out
    }

    /// How many bytes have been handed on.
    pub const fn sent(&self) -> u64 {
        self.output.sent
    }

    /// Sends a text to the clipboard by OSC 52. Whether the terminal takes it nobody learns.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        self.output.push(&clipboard(text));
        self.output.send()
    }

    /// Draws; returns whether anything was written.
    pub fn draw(&mut self, ui: &Ui, snap: &Snapshot, theme: &Theme) -> io::Result<bool> {
        self.next.reset();
        let cursor = crate::tui::paint(&mut self.next, ui, snap, theme);
        let changes = self.shown.diff(&self.next);
        if changes.is_empty() && !self.blank && cursor == self.cursor && ui.mouse == self.has_mouse {
            return Ok(false);
        }
        if self.is_marked {
            self.output.frame.extend_from_slice(SYNC_BEGIN);
        }
        if self.blank {
            self.output.push("\x1b[0m\x1b[2J");
        }
        // Another program may have had the terminal since: what is on is asked for again with everything else.
        if ui.mouse != self.has_mouse || (self.blank && ui.mouse) {
            self.output.push(if ui.mouse { MOUSE_ON } else { MOUSE_OFF });
            self.has_mouse = ui.mouse;
        }
        encode(&mut self.output, &changes, &self.next);
        place(&mut self.output, cursor, self.cursor, self.blank);
        if self.is_marked {
            self.output.frame.extend_from_slice(SYNC_END);
        }
        let sent = self.output.send();
        std::mem::swap(&mut self.shown, &mut self.next);
        self.cursor = cursor;
        self.blank = false;
        sent.map(|()| true)
    }
}

/// The sequence that asks a terminal to take a text, raw: tmux and screen read it themselves.
fn clipboard(text: &str) -> String {
    format!("\x1b]52;c;{}\x07", BASE64.encode(text))
}

/// The terminal's cursor: parked on the selected row for screen readers, shown in inputs.
fn place<W: Write>(
    out: &mut Output<W>,
    cursor: Option<(u16, u16, bool)>,
    before: Option<(u16, u16, bool)>,
    blank: bool,
) {
    let shows = cursor.is_some_and(|(_, _, shows)| shows);
    let showed = before.is_some_and(|(_, _, shows)| shows);
    if let Some((x, y, _)) = cursor {
        out.push(&format!("\x1b[{};{}H", y + 1, x + 1));
    }
    if shows && (!showed || blank) {
        out.push("\x1b[?25h");
    } else if !shows && (showed || blank) {
        out.push("\x1b[?25l");
    }
}

/// A look that a terminal can be set to.
#[derive(PartialEq, Eq, Clone, Copy)]
struct Look {
    fg: Color,
    bg: Color,
    modifier: Modifier,
}

impl Look {
    const PLAIN: Self = Self { fg: Color::Reset, bg: Color::Reset, modifier: Modifier::empty() };

    const fn of(cell: &Cell) -> Self {
        Self { fg: cell.fg, bg: cell.bg, modifier: cell.modifier }
    }
}

fn encode<W: Write>(out: &mut Output<W>, changes: &[(u16, u16, &Cell)], next: &Buffer) {
    let mut look = Look::PLAIN;
    let mut at: Option<(u16, u16)> = None;
    let mut blanked: Option<u16> = None;
    for (n, (x, y, cell)) in changes.iter().enumerate() {
        if blanked == Some(*y) {
            continue;
        }
        let wanted = Look::of(cell);
        let gap = at.filter(|(column, row)| row == y && column < x).map(|(column, _)| (column, *x));
        let filled = gap.and_then(|gap| between(next, *y, gap, look, wanted));
        match at {
            _ if filled.is_some() => {}
            Some((column, row)) if row == *y && column == *x => {}
            Some((column, row)) if row == *y && column < *x => out.push(&format!("\x1b[{}C", x - column)),
            _ => out.push(&format!("\x1b[{};{}H", y + 1, x + 1)),
        }
        if let Some((text, false)) = &filled {
            out.push(text);
        }
        if wanted != look {
            out.push(&codes(look, wanted));
            look = wanted;
        }
        if let Some((text, true)) = &filled {
            out.push(text);
        }
        if look == Look::PLAIN && ends_blank(&changes[n..], next) {
            out.push("\x1b[K");
            (blanked, at) = (Some(*y), Some((*x, *y)));
            continue;
        }
        out.push(cell.symbol());
        let columns = crate::tui::look::text::width(cell.symbol()).max(1) as u16;
        at = Some((x + columns, *y));
    }
    if look != Look::PLAIN {
        out.push("\x1b[0m");
    }
}

/// What is between two columns, where that is shorter than to jump over it; whether it has the look that comes.
fn between(
    next: &Buffer,
    y: u16,
    (from, to): (u16, u16),
    look: Look,
    wanted: Look,
) -> Option<(String, bool)> {
    // A jump is four bytes.
    if to - from > 4 {
        return None;
    }
    let cells: Vec<&Cell> = (from..to).filter_map(|x| next.cell((x, y))).collect();
    let all = |look: Look| cells.iter().all(|cell| cell.symbol().len() == 1 && Look::of(cell) == look);
    let text = || cells.iter().map(|cell| cell.symbol()).collect();
    if all(look) {
        return Some((text(), false));
    }
    all(wanted).then(|| (text(), true))
}

/// Whether nothing but plain blanks follows in the row, and more of them are new than it takes to say so.
fn ends_blank(changes: &[(u16, u16, &Cell)], next: &Buffer) -> bool {
    let Some((x, y, _)) = changes.first() else { return false };
    let new = changes.iter().take_while(|(_, row, _)| row == y).count();
    let blank =
        |x| next.cell((x, *y)).is_some_and(|cell| cell.symbol() == " " && Look::of(cell) == Look::PLAIN);
    new > 3 && (*x..next.area().right()).all(blank)
}

/// A picture as lines, for a terminal that goes on scrolling: styles, and nothing that moves the cursor.
pub fn as_lines(buf: &Buffer) -> String {
    let mut text = String::new();
    for row in buf.content.chunks(usize::from(buf.area.width).max(1)) {
        let mut look = Look::PLAIN;
        let mut skip = 0;
        for cell in row {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let wanted = Look::of(cell);
            if wanted != look {
                text.push_str(&codes(look, wanted));
                look = wanted;
            }
            text.push_str(cell.symbol());
            skip = crate::tui::look::text::width(cell.symbol()).max(1) - 1;
        }
        if look == Look::PLAIN {
            text.truncate(text.trim_end_matches(' ').len());
        }
        text.push_str(if look == Look::PLAIN { "\n" } else { "\x1b[0m\n" });
    }
    text
}

/// From one look to another in as few bytes as is simple.
fn codes(from: Look, to: Look) -> String {
    let mut codes: Vec<String> = Vec::new();
    let keeps = to.modifier.contains(from.modifier)
        && (to.fg != Color::Reset || from.fg == Color::Reset)
        && (to.bg != Color::Reset || from.bg == Color::Reset);
    let from = if keeps { from } else { Look::PLAIN };
    if !keeps {
        codes.push(String::new());
    }
    for (modifier, code) in [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::REVERSED, 7),
        (Modifier::CROSSED_OUT, 9),
    ] {
        if to.modifier.contains(modifier) && !from.modifier.contains(modifier) {
            codes.push(code.to_string());
        }
    }
    if to.fg != from.fg {
        codes.push(colour(to.fg, 30));
    }
    if to.bg != from.bg {
        codes.push(colour(to.bg, 40));
    }
    format!("\x1b[{}m", codes.join(";"))
}

fn colour(colour: Color, base: u8) -> String {
    let plain = |at: u8| (base + at).to_string();
    let light = |at: u8| (base + 60 + at).to_string();
    match colour {
        Color::Reset => plain(9),
        Color::Black => plain(0),
        Color::Red => plain(1),
        Color::Green => plain(2),
        Color::Yellow => plain(3),
        Color::Blue => plain(4),
        Color::Magenta => plain(5),
        Color::Cyan => plain(6),
        Color::Gray => plain(7),
        Color::DarkGray => light(0),
        Color::LightRed => light(1),
        Color::LightGreen => light(2),
        Color::LightYellow => light(3),
        Color::LightBlue => light(4),
        Color::LightMagenta => light(5),
        Color::LightCyan => light(6),
        Color::White => light(7),
        Color::Indexed(index) => format!("{};5;{index}", base + 8),
        Color::Rgb(r, g, b) => format!("{};2;{r};{g};{b}", base + 8),
    }
}
