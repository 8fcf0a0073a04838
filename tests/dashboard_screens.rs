//! The screens of the dashboard at every size: nothing cut, nothing beyond the edge; what they ask for and when; the charts,
//! the timeline, the ledger, the forecasts and the mending of a file.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/fixtures.rs"]
#[expect(dead_code, reason = "shared with the tests of the keys")]
mod fixtures;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use fixtures::{WALL_MS, ago, busy, empty, gpu, job, many, now, running, uuid, waiting};
use overnight::model::{
    Bytes, DeviceState, GpuProcess, JobId, LeaseId, ProcessKind, Quarantine, Revision, Span,
};
use overnight::protocol::{
    Change, Command, Connection, Edit, Expectation, GpuHistory, GpuRing, GpuTrace, InboxState, MeterBy,
    MeterRow, MeterTable, Place, Query, Reply, Snapshot, SpanKind, Timeline, TimelineSpan, Update, WhatIf,
    WhatIfRow,
};
use overnight::tui::{
    Asked, Depth, FeedEvent, Glyphs, GpuTab, Look, Opened, Overlay, Screen, Tab, Theme, Ui, UiCommand, due,
    load, mode, next_deadline, paint, receive, settle, tick, update,
};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::sync::Arc;
use unicode_width::UnicodeWidthStr;

const SIZES: [(u16, u16); 6] = [(30, 6), (60, 12), (80, 24), (120, 40), (200, 50), (300, 80)];

fn theme() -> Theme {
    load("auto", None, Depth::C256).unwrap()
}

fn rows(ui: &Ui, snap: &Snapshot) -> Vec<String> {
    let (width, height) = ui.size;
    let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
    paint(&mut buf, ui, snap, &theme());
    (0..height).map(|y| (0..width).map(|x| buf[(x, y)].symbol()).collect::<String>()).collect()
}

/// A person at a screen.
struct Person {
    ui: Ui,
    snap: Snapshot,
}

impl Person {
    fn at(snap: Snapshot, size: (u16, u16), glyphs: Glyphs) -> Self {
        Self { ui: fixtures::ui(&snap, size, glyphs), snap }
    }

    fn press(&mut self, keys: &str) -> Vec<UiCommand> {
        keys.split(' ')
            .flat_map(|key| {
                let code = match key {
                    "Enter" => KeyCode::Enter,
                    "Esc" => KeyCode::Esc,
                    "Left" => KeyCode::Left,
                    "End" => KeyCode::End,
                    "Down" => KeyCode::Down,
                    key => KeyCode::Char(key.chars().next().unwrap()),
                };
                let key = KeyEvent::new(code, KeyModifiers::NONE);
                let action = self.ui.keys.action(mode(&self.ui), self.ui.prefix, key);
                let now = self.ui.now;
                action.map_or_else(Vec::new, |action| update(&mut self.ui, action, &self.snap, now))
            })
            .collect()
    }

    /// Everything that is asked for now is answered.
    fn answered(&mut self) -> Vec<Look> {
        let asked = due(&mut self.ui, &self.snap);
        let looks = asked.into_iter().map(|command| match command {
            UiCommand::Look { look, .. } => look,
            other => panic!("a look was expected: {other:?}"),
        });
        let looks: Vec<Look> = looks.collect();
        for look in &looks {
            let reply = match look {
                Look::GpuHistory { span_ms } => Reply::GpuHistory(Box::new(telemetry(&self.snap, *span_ms))),
                Look::Timeline { from, until } => Reply::Timeline(Box::new(timeline(*from, *until))),
                Look::Meter { by, since_ms } => Reply::Meter(ledger(*by, *since_ms)),
                Look::Older { .. } => Reply::Jobs { rows: Vec::new(), left: 0 },
                Look::WhatIf { .. } => continue,
            };
            self.hears(Asked::Look(*look), reply);
        }
        looks
    }

    fn hears(&mut self, asked: Asked, reply: Reply) {
        let now = self.ui.now;
        let reply = Box::new(reply);
        receive(&mut self.ui, &mut self.snap, FeedEvent::Reply { asked, reply }, now);
    }

    fn later(&mut self, ms: u64) {
        let now = self.ui.now.plus(Span(ms));
        tick(&mut self.ui, &self.snap, now);
    }

    fn rows(&self) -> Vec<String> {
        rows(&self.ui, &self.snap)
    }

    fn sees(&self) -> String {
        self.rows().iter().map(|row| row.trim_end().to_owned() + "\n").collect()
    }

    fn message(&self) -> &str {
        self.ui.message.as_ref().map_or("", |message| &message.text)
    }
}

/// A wave, and for a while nothing that was read.
fn telemetry(snap: &Snapshot, span_ms: u64) -> GpuHistory {
    let steps = 120_u32;
    let trace = |row: &overnight::protocol::GpuRow| {
        let top = row.utilisation.unwrap_or(0);
        let at = |n: u32| (!(40..50).contains(&n)).then(|| u8::try_from(n % 30 * u32::from(top) / 29).unwrap());
        let load: Vec<Option<u8>> = (0..steps).map(at).collect();
        let ring = GpuRing {
            period_ms: span_ms / u64::from(steps),
            until: WALL_MS,
            memory_used: load.iter().map(|load| load.map(|load| Bytes::gib(u64::from(load) * 8 / 10))).collect(),
            power_w: load.iter().map(|load| load.map(|load| 60 + u32::from(load) * 6)).collect(),
            temperature_c: load.iter().map(|load| load.map(|load| 30 + i32::from(load) / 2)).collect(),
            held: load.iter().map(|load| load.map(|_| !row.jobs.is_empty())).collect(),
            utilisation: load,
        };
        GpuTrace { uuid: row.uuid.clone(), index: row.index, rings: vec![ring] }
    };
    GpuHistory { gpus: snap.gpus.iter().map(trace).collect() }
}

const MINUTE: i64 = 60_000;

fn span(index: u32, kind: SpanKind, id: u64, name: &str, (from, until): (i64, Option<i64>)) -> TimelineSpan {
    TimelineSpan {
        gpu: uuid(index),
        index: Some(index),
        kind,
        lease: (kind <= SpanKind::Held).then_some(LeaseId(id)),
        job: (id > 0).then_some(JobId(id)),
        name: name.into(),
        user: "ana".into(),
        from: WALL_MS + from * MINUTE,
        from_by: None,
        until: until.map(|until| WALL_MS + until * MINUTE),
        until_by: None,
    }
}

fn timeline(from: i64, until: i64) -> Timeline {
    use SpanKind::{Draining, Held, Past, Planned, Quarantined};
    let mut spans = vec![
        span(0, Past, 138, "vit-sweep-02", (-118, Some(-63))),
        span(0, Held, 142, "llama-ft-8b", (-62, Some(45))),
        span(0, Planned, 147, "llama-ft-70b", (60, Some(200))),
        span(1, Held, 142, "llama-ft-8b", (-62, Some(45))),
        span(1, Planned, 147, "llama-ft-70b", (60, Some(200))),
        span(2, Held, 143, "vit-sweep-03", (-39, Some(21))),
        span(3, Held, 143, "vit-sweep-03", (-39, Some(21))),
        span(4, Past, 136, "probe", (-100, Some(-90))),
        span(4, Held, 144, "eval-nightly", (-12, None)),
        span(5, Past, 140, "tokenise-test", (-70, Some(-45))),
        span(5, Draining, 140, "tokenise-test", (-45, Some(-44))),
        span(5, Planned, 151, "tokenise-wiki", (2, Some(30))),
        span(6, Held, 146, "llama-ft-8b-b", (0, Some(60))),
        span(7, Quarantined, 0, "", (-80, Some(-20))),
        span(7, Held, 146, "llama-ft-8b-b", (0, Some(60))),
    ];
    spans.sort_by_key(|span| (span.index, span.from));
    Timeline { from_ms: WALL_MS + from, until_ms: WALL_MS + until, now_ms: WALL_MS, spans, cut_before: None }
}

fn ledger(by: MeterBy, since: Option<i64>) -> MeterTable {
    let row = |key: &str, jobs, hundredths: u64, waived: u64| MeterRow {
        key: key.into(),
        jobs,
        gpu_ms: hundredths * 36_000,
        core_ms: hundredths * 8 * 36_000,
        waived_gpu_ms: waived * 36_000,
        cost: None,
    };
    let rows = match by {
        MeterBy::User => vec![
            row("ana", 9, 3011, 0),
            row("bo", 14, 1490, 66),
            row("cy", 3, 961, 0),
            row("me", 31, 640, 0),
        ],
        MeterBy::Project => vec![row("", 40, 4102, 0), row("wiki", 17, 2000, 66)],
        MeterBy::Job => vec![row("142 llama-ft-8b", 1, 207, 0), row("143 vit-sweep-03", 1, 130, 0)],
        MeterBy::Gpu => (0..8).map(|at| row(&uuid(at).0, 5, 700 + u64::from(at) * 20, 0)).collect(),
        MeterBy::Day => vec![row("2026-11-29", 20, 9120, 66), row("2026-11-30", 57, 6102, 0)],
    };
    MeterTable { since, until: WALL_MS, by, rows, held_now: 7 }
}

fn no_scheduler(size: (u16, u16), glyphs: Glyphs) -> Person {
    let mut person = Person::at(Snapshot::default(), size, glyphs);
    person.ui.known = false;
    person.ui.retry_at = now().boottime_ms + 4_000;
    let why = "Scheduler not running: `overnight serve` starts it.".to_owned();
    person.ui.connection = Connection::Lost { why, retry_in: Span(4_000) };
    person
}

/// Sixty-four devices of an 80-column world.
fn large() -> Snapshot {
    let mut snap = busy();
    snap.gpus = (0..64_u32)
        .map(|index| match index % 8 {
            0..5 => gpu(
                index,
                DeviceState::Held { lease: LeaseId(142) },
                Some((index * 7 % 101) as u8),
                &[142],
            ),
            5 => gpu(index, DeviceState::Free, Some(0), &[]),
            6 => gpu(index, DeviceState::Unknown { detail: "no answer for 4 s".into() }, None, &[]),
            _ => gpu(
                index,
                DeviceState::Quarantined(Quarantine {
                    why: "left by #139: pid 4711 python of ana".into(),
                    since: ago(60),
                    lease: None,
                }),
                Some(0),
                &[],
            ),
        })
        .collect();
    snap.meter.gpus_total = 64;
    snap
}

/// Every row is exactly as wide as the screen, in columns; nothing is beyond ASCII where it must not be.
#[track_caller]
fn whole(person: &Person, what: &str) {
    let (width, height) = person.ui.size;
    let rows = person.rows();
    assert_eq!(rows.len(), usize::from(height), "{what}");
    for row in &rows {
        assert_eq!(row.width(), usize::from(width), "{what} at {width}x{height}: {row:?}");
        assert!(person.ui.glyphs == Glyphs::Unicode || row.is_ascii(), "{what}: {row:?}");
    }
    // A box that begins in a row ends in it.
    for row in rows.iter().filter(|row| row.starts_with("+-") || row.starts_with('┌')) {
        let right = usize::from(width.min(240));
        let last = row.chars().nth(right - 1).unwrap();
        assert!("+┐┘".contains(last), "{what} at {width}x{height}: {row:?}");
    }
}

#[test]
fn every_screen_is_whole_at_every_size() {
    for size in SIZES {
        for glyphs in [Glyphs::Ascii, Glyphs::Unicode] {
            for (name, snap) in
                [("empty", empty()), ("busy", busy()), ("500 jobs", many()), ("64 GPUs", large())]
            {
                for screen in Screen::ALL {
                    let mut person = Person::at(snap.clone(), size, glyphs);
                    update(&mut person.ui, overnight::tui::Action::Show(screen), &snap, now());
                    for tab in GpuTab::ALL {
                        person.ui.gpus_view.tab = tab;
                        whole(&person, name);
                        person.answered();
                        whole(&person, name);
                    }
                }
            }
            whole(&no_scheduler(size, glyphs), "no scheduler");
        }
    }
}

#[test]
fn the_queue_looks_as_it_was_agreed_in_both_sets_of_characters() {
    for (width, height) in SIZES {
        for (name, snap) in [("empty", empty()), ("busy", busy()), ("500_jobs", many())] {
            let mut person = Person::at(snap.clone(), (width, height), Glyphs::Unicode);
            person.answered();
            insta::assert_snapshot!(format!("{name}_unicode_{width}x{height}"), person.sees());
        }
        let lost = no_scheduler((width, height), Glyphs::Ascii);
        insta::assert_snapshot!(format!("no_scheduler_{width}x{height}"), lost.sees());
    }
    let mut wide = Person::at(busy(), (300, 80), Glyphs::Ascii);
    wide.answered();
    insta::assert_snapshot!("busy_300x80", wide.sees());
    for (width, height) in [(60, 12), (80, 24), (120, 40)] {
        let mut person = Person::at(large(), (width, height), Glyphs::Ascii);
        person.answered();
        insta::assert_snapshot!(format!("64_gpus_{width}x{height}"), person.sees());
    }
}

#[test]
fn the_other_screens_look_as_they_were_agreed() {
    for (width, height) in [(80, 24), (120, 40), (200, 50)] {
        for screen in [Screen::Gpus, Screen::Meter, Screen::History, Screen::Inbox] {
            let mut person = Person::at(busy(), (width, height), Glyphs::Ascii);
            update(&mut person.ui, overnight::tui::Action::Show(screen), &person.snap, now());
            person.answered();
            insta::assert_snapshot!(format!("{}_{width}x{height}", screen.name()), person.sees());
        }
    }
    let mut person = Person::at(busy(), (80, 24), Glyphs::Ascii);
    person.press("2 ]");
    person.answered();
    insta::assert_snapshot!("timeline_80x24", person.sees());
    person.press("]");
    insta::assert_snapshot!("device_80x24", person.sees());
    let mut person = Person::at(large(), (80, 24), Glyphs::Unicode);
    person.press("2 ]");
    person.answered();
    insta::assert_snapshot!("timeline_64_gpus_80x24", person.sees());
}
