//! What a key costs: from the action to the bytes for the terminal, among ten jobs and among ten thousand.
//!
//! Budget: 16 ms at ten thousand jobs and 64 devices. The empty screen in the same run is what one machine's figures are
//! compared by.

#[path = "../support/crowd.rs"]
mod crowd;
#[path = "../support/fixtures.rs"]
mod fixtures;

use criterion::{Criterion, criterion_group, criterion_main};
use overnight::protocol::Snapshot;
use overnight::tui::{Action, Depth, Glyphs, Screenful, Theme, Ui, receive, update};
use std::hint::black_box;

const SIZES: [(u16, u16); 2] = [(80, 24), (200, 50)];

fn situations() -> Vec<(&'static str, Snapshot)> {
    vec![("empty", fixtures::empty()), ("11 jobs", fixtures::busy()), ("10,000 jobs", crowd::crowd(10_000))]
}

fn screen(snap: &Snapshot, size: (u16, u16)) -> (Ui, Screenful<std::io::Sink>, Theme) {
    let ui = fixtures::ui(snap, size, Glyphs::Unicode);
    let theme = Theme::auto(Depth::C256);
    let mut out = Screenful::new(std::io::sink(), size);
    let _written = out.draw(&ui, snap, &theme);
    (ui, out, theme)
}

fn keys(c: &mut Criterion) {
    for (name, snap) in situations() {
        for size in SIZES {
            let at = format!("{name}, {}x{}", size.0, size.1);
            let (mut ui, mut out, theme) = screen(&snap, size);
            let mut down = true;
            c.bench_function(&format!("{}/{at}", "cursor"), |b| {
                b.iter(|| {
                    let action = if down { Action::Down } else { Action::Up };
                    down = !down;
                    let now = ui.now;
                    black_box(update(&mut ui, action, &snap, now));
                    out.draw(&ui, &snap, &theme)
                });
            });
            let (mut ui, mut out, theme) = screen(&snap, size);
            ui.filters.jobs = "lr00 s:wait".into();
            c.bench_function(&format!("{}/{at}", "cursor, filtered"), |b| {
                b.iter(|| {
                    let action = if down { Action::Last } else { Action::First };
                    down = !down;
                    let now = ui.now;
                    black_box(update(&mut ui, action, &snap, now));
                    out.draw(&ui, &snap, &theme)
                });
            });
            let (mut ui, mut out, theme) = screen(&snap, size);
            ui.typing = true;
            c.bench_function(&format!("{}/{at}", "a letter of a filter"), |b| {
                b.iter(|| {
                    let action = if down { Action::Insert('s') } else { Action::Erase };
                    down = !down;
                    let now = ui.now;
                    black_box(update(&mut ui, action, &snap, now));
                    out.draw(&ui, &snap, &theme)
                });
            });
        }
    }
}

fn news(c: &mut Criterion) {
    for (name, snap) in situations() {
        let (mut ui, mut out, theme) = screen(&snap, (80, 24));
        let mut shown = snap.clone();
        c.bench_function(&format!("a snapshot arrives/{name}"), |b| {
            b.iter(|| {
                let event = overnight::tui::FeedEvent::Snapshot(Box::new(snap.clone()));
                let now = ui.now;
                black_box(receive(&mut ui, &mut shown, event, now));
                out.draw(&ui, &shown, &theme)
            });
        });
    }
}

criterion_group!(benches, keys, news);
criterion_main!(benches);
