//! The dashboard as people see it: what is on the screen at every size, what keys do, how many bytes it costs.

#[path = "support/fixtures.rs"]
mod fixtures;

use fixtures::{busy, empty, many};
use overnight::protocol::Snapshot;
use overnight::tui::{Depth, Glyphs, Theme, Ui, load, paint};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const SIZES: [(u16, u16); 5] = [(30, 6), (60, 12), (80, 24), (120, 40), (200, 50)];

fn screen(ui: &Ui, snap: &Snapshot, theme: &Theme, (width, height): (u16, u16)) -> Buffer {
    let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
    paint(&mut buf, ui, snap, theme);
    buf
}

fn rows(buf: &Buffer) -> Vec<String> {
    let area = *buf.area();
    (0..area.height).map(|y| (0..area.width).map(|x| buf[(x, y)].symbol()).collect::<String>()).collect()
}

fn text(buf: &Buffer) -> String {
    rows(buf).iter().map(|row| row.trim_end().to_owned() + "\n").collect()
}

/// Not a check: prints frames to look at. `cargo test --test dashboard look -- --ignored --nocapture`
#[test]
#[ignore = "for eyes"]
fn look() {
    let theme = load("auto", None, Depth::C256).unwrap();
    for (name, snap) in [("empty", empty()), ("busy", busy()), ("many", many())] {
        for size in SIZES {
            let ui = fixtures::ui(&snap, size, Glyphs::Ascii);
            println!("{name} {size:?}\n{}", text(&screen(&ui, &snap, &theme, size)));
        }
    }
}
