//! Makes `screenshots/` from the running dashboard: in a terminal, over one picture of a busy machine at one moment, its
//! screens drawn as SVG and PNG. The same every time, to the byte.
//!
//! `cargo run --example screenshots` writes `screenshots/`; `-- --check` compares with what is there, and fails where a
//! screen has changed. PNG needs `rsvg-convert` (Debian: `librsvg2-bin`, `fonts-dejavu-core`).

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a tool for developers: it fails loudly and reports"
)]

#[path = "../support/double.rs"]
#[expect(dead_code, reason = "a picture needs a part of what tests need")]
mod double;
#[path = "../support/fixtures.rs"]
#[expect(dead_code, reason = "pictures need a part of what tests need")]
mod fixtures;
#[path = "../support/looks.rs"]
mod looks;
#[path = "../support/pty.rs"]
#[expect(dead_code, reason = "pictures need a part of what tests need")]
mod pty;
mod still;
mod svg;

use pty::Pty;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// One picture: its name, the size, the keys that lead there, and what the screen shows by then.
struct Shot {
    name: &'static str,
    size: (u16, u16),
    keys: &'static str,
    shows: &'static str,
    theme: &'static str,
}

const fn shot(name: &'static str, size: (u16, u16), keys: &'static str, shows: &'static str) -> Shot {
    Shot { name, size, keys, shows, theme: "okabe-dark" }
}

const SHOTS: &[Shot] = &[
    shot("main-80x24", (80, 24), "jj", "acc 0.7"),
    shot("main-120x40", (120, 40), "jj", "acc 0.7"),
    shot("main-200x50", (200, 50), "jj", "acc 0.7"),
    Shot { theme: "harbor-light", ..shot("light-120x40", (120, 40), "jj", "acc 0.7") },
    Shot { theme: "mono", ..shot("mono-80x24", (80, 24), "jj", "acc 0.7") },
    shot("gpus-120x40", (120, 40), "2", "#142"),
    shot("meter-120x40", (120, 40), "3", "ana"),
    shot("history-120x40", (120, 40), "4", "RESULT"),
    shot("inbox-80x24", (80, 24), "5", "gpu_count"),
    shot("cancel-80x24", (80, 24), "x", "Cancel #"),
    shot("palette-80x24", (80, 24), ":pri", "raise"),
    shot("help-80x24", (80, 24), "?", "cancel"),
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("screenshots");
    match words[..] {
        ["--show", theme] => still::show(theme),
        [] => SHOTS.iter().for_each(|shot| take(shot, &root)),
        ["--check"] => check(&root),
        _ => panic!("usage: screenshots [--check]"),
    }
}

/// Makes them again and compares.
fn check(kept: &Path) {
    let made = tempfile::tempdir().unwrap();
    let mut changed = Vec::new();
    for shot in SHOTS {
        take(shot, made.path());
        let read = |dir: &Path| std::fs::read_to_string(dir.join(shot.name).with_extension("svg"));
        if read(kept).ok() != read(made.path()).ok() {
            changed.push(shot.name);
        }
    }
    assert!(
        changed.is_empty(),
        "these look otherwise than in screenshots/: {changed:?}; look, and make them anew"
    );
    println!("{} pictures are as they were", SHOTS.len());
}

fn take(shot: &Shot, out: &Path) {
    std::fs::create_dir_all(out).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut dashboard = Command::new(std::env::current_exe().unwrap());
    dashboard.args(["--show", shot.theme]).env("TERM", "xterm-256color").current_dir(dir.path());
    let (cols, rows) = shot.size;
    let mut terminal = Pty::spawn(dashboard, cols, rows);
    terminal.wait_for_text("LIVE");
    whole_frame(&terminal);
    terminal.send(shot.keys);
    whole_frame(&terminal);
    terminal.wait_for_text(shot.shows);
    let picture = out.join(shot.name).with_extension("svg");
    std::fs::write(&picture, svg::draw(&terminal.screen())).unwrap();
    terminal.send("\x03\x03");
    terminal.wait_for_exit();
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
