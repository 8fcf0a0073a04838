//! Makes `screenshots/` from the running program: the demo in a terminal, its screens drawn as SVG and PNG.
//!
//! `cargo build --release && cargo run --example screenshots -- target/release/overnight`. PNG needs `rsvg-convert`
//! (Debian: `librsvg2-bin`, `fonts-dejavu-core`).

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a tool for developers: it fails loudly and reports"
)]

#[path = "../support/pty.rs"]
#[expect(dead_code, reason = "pictures need a part of what tests need")]
mod pty;
mod svg;

use pty::Pty;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// One picture: its name, the size, the keys that lead there, and what the screen shows by then.
struct Shot {
    name: &'static str,
    size: (u16, u16),
    keys: &'static str,
    shows: &'static str,
    /// The keys back to the queue.
    back: &'static str,
}

const SHOTS: &[Shot] = &[
    Shot { name: "main-80x24", size: (80, 24), keys: "", shows: "estimate-pi", back: "" },
    Shot { name: "main-120x40", size: (120, 40), keys: "", shows: "estimate-pi", back: "" },
    Shot { name: "cancel-80x24", size: (80, 24), keys: "x", shows: "Keep it", back: "n" },
    Shot { name: "gpus-120x40", size: (120, 40), keys: "2", shows: "GPU", back: "1" },
    Shot { name: "meter-120x40", size: (120, 40), keys: "3", shows: "USER", back: "1" },
    Shot { name: "help-80x24", size: (80, 24), keys: "?", shows: "cancel", back: "\x1b" },
];

/// Jobs that run at the same time before the first picture is taken.
const BUSY: usize = 2;

fn main() {
    let mut args = std::env::args_os().skip(1);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let binary = args.next().map_or_else(|| root.join("target/release/overnight"), PathBuf::from);
    let out = args.next().map_or_else(|| root.join("screenshots"), PathBuf::from);
    assert!(binary.is_file(), "no {}: build it first", binary.display());
    std::fs::create_dir_all(&out).unwrap();

    let mut demo = Command::new(&binary);
    demo.args(["demo", "--gpus", "4", "--seed", "1"])
        .env("TERM", "xterm-256color")
        .env("COLORTERM", "truecolor")
        .env("LANG", "C.UTF-8")
        .env_remove("NO_COLOR");
    let mut terminal = Pty::spawn(demo, 80, 24);
    terminal.wait_until("a busy queue", |screen| {
        let text = screen.contents();
        text.matches(" RUN ").count() >= BUSY && text.contains(" WAIT ")
    });
    for shot in SHOTS {
        take(&mut terminal, shot, &out);
    }
    terminal.send("q");
    terminal.wait_for_exit();
}

fn take(terminal: &mut Pty, shot: &Shot, out: &Path) {
    let (cols, rows) = shot.size;
    terminal.resize(cols, rows);
    whole_frame(terminal);
    terminal.send(shot.keys);
    whole_frame(terminal);
    terminal.wait_for_text(shot.shows);
    let picture = out.join(shot.name).with_extension("svg");
    std::fs::write(&picture, svg::draw(&terminal.screen())).unwrap();
    terminal.send(shot.back);
    let drawn = Command::new("rsvg-convert")
        .args(["--zoom", "2", "--output"])
        .arg(picture.with_extension("png"))
        .arg(&picture)
        .status();
    match drawn {
        Ok(status) if status.success() => println!("{} and .png", picture.display()),
        Ok(status) => println!("{}; no PNG: rsvg-convert ended with {status}", picture.display()),
        Err(error) => println!("{}; no PNG: rsvg-convert: {error} (Debian: librsvg2-bin)", picture.display()),
    }
}

/// Waits for a pause between frames, so that no picture shows half of one.
fn whole_frame(terminal: &Pty) {
    let _ = (0..50).any(|_| terminal.is_quiet_for(Duration::from_millis(150)));
}
