//! The dashboard as people see it: what is on the screen at every size, what keys do, how many bytes it costs.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "dashboard/flows.rs"]
mod flows;
#[path = "support/keys.rs"]
mod keys;
#[path = "dashboard/messages.rs"]
mod messages;
#[path = "dashboard/panes.rs"]
mod panes;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use fixtures::{ago, busy, done, empty, job, many, now, running};
use overnight::model::{
    Cursor, DeviceState, Generation, JobId, Now, Outcome, Quarantine, Revision, Span, Uuid,
};
use overnight::protocol::{
    Command, Connection, GpuSelect, JobDetail, JobRow, Move, Notice, NoticeLevel, Place, Reply, Snapshot,
    StepRow, Update,
};
use overnight::tui::{
    Action, Asked, Button, Clear, Confirm, Depth, FeedEvent, Glyphs, Incomplete, Keymap, Mode, Opened,
    Overlay, Role, Screen, Screenful, Tab, Theme, Ui, UiCommand, fold, load, mode, next_deadline, paint,
    receive, settle, tick, update,
};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use std::io::Write as _;
use std::sync::Arc;

const SIZES: [(u16, u16); 5] = [(30, 6), (60, 12), (80, 24), (120, 40), (200, 50)];

fn theme() -> Theme {
    load("auto", None, Depth::C256).unwrap()
}

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

/// A person at a screen.
struct Person {
    ui: Ui,
    snap: Snapshot,
}

impl Person {
    fn at(snap: Snapshot, size: (u16, u16)) -> Self {
        Self { ui: fixtures::ui(&snap, size, Glyphs::Ascii), snap }
    }

    fn press(&mut self, keys: &str) -> Vec<UiCommand> {
        keys.split(' ').flat_map(|key| self.key(key)).collect()
    }

    fn key(&mut self, key: &str) -> Vec<UiCommand> {
        let pressed = keys::pressed(key);
        match self.ui.keys.action(mode(&self.ui), self.ui.prefix, pressed) {
            Some(action) => {
                let now = self.ui.now;
                update(&mut self.ui, action, &self.snap, now)
            }
            None => Vec::new(),
        }
    }

    fn on(&mut self, job: u64) -> &mut Self {
        self.ui.queue_job = Some(JobId(job));
        settle(&mut self.ui, &self.snap);
        self
    }

    /// The scheduler changes a job.
    fn changes(&mut self, id: u64, change: impl FnOnce(&mut JobRow)) -> Vec<UiCommand> {
        let mut snap = self.snap.clone();
        let row = snap.jobs.iter_mut().find(|row| row.id == JobId(id)).unwrap();
        let row = Arc::make_mut(row);
        row.generation = row.generation.next();
        change(row);
        let now = self.ui.now;
        receive(&mut self.ui, &mut self.snap, FeedEvent::Snapshot(Box::new(snap)), now)
    }

    fn later(&mut self, ms: u64) -> Vec<UiCommand> {
        let now = self.ui.now.plus(Span(ms));
        tick(&mut self.ui, &self.snap, now)
    }

    fn sees(&self) -> String {
        text(&screen(&self.ui, &self.snap, &theme(), self.ui.size))
    }

    fn message(&self) -> &str {
        self.ui.message.as_ref().map_or("", |message| &message.text)
    }

    fn shown_jobs(&self) -> Vec<u64> {
        let sees = self.sees();
        let rows = sees.lines().filter_map(|line| {
            let line = line.get(1..)?.trim_start_matches(|c: char| "~>* 0123456789-".contains(c) && c != ' ');
            let mut words = line.split_whitespace();
            let id = words.next()?.parse().ok()?;
            ["RUN", "WAIT", "OUT", "RENT", "PAUS", "STOP"].contains(&words.next()?).then_some(id)
        });
        rows.collect()
    }
}

fn command(sent: &[UiCommand]) -> &Command {
    match sent {
        // What a change does to others is asked before it is made.
        [UiCommand::Look { .. }, UiCommand::Send { command, .. }] | [UiCommand::Send { command, .. }] => {
            command
        }
        other => panic!("one command was expected: {other:?}"),
    }
}

#[test]
fn every_size_looks_as_it_was_agreed() {
    for (name, snap) in [("empty", empty()), ("busy", busy()), ("500_jobs", many())] {
        for (width, height) in SIZES {
            let ui = fixtures::ui(&snap, (width, height), Glyphs::Ascii);
            let seen = text(&screen(&ui, &snap, &theme(), (width, height)));
            insta::assert_snapshot!(format!("{name}_{width}x{height}"), seen);
        }
    }
}

#[test]
fn the_other_screens_and_tabs_look_as_they_were_agreed() {
    let snap = busy();
    for at in [Screen::Gpus, Screen::Meter, Screen::History, Screen::Inbox] {
        let mut person = Person::at(snap.clone(), (80, 24));
        update(&mut person.ui, Action::Show(at), &snap, now());
        insta::assert_snapshot!(format!("{}_80x24", at.name()), person.sees());
    }
    for tab in Tab::ALL {
        let mut person = Person::at(snap.clone(), (80, 24));
        person.ui.opened = Some(Opened { job: JobId(144), tab, scroll: 0 });
        person.ui.detail = Some(Box::new(detail(&snap)));
        settle(&mut person.ui, &snap);
        insta::assert_snapshot!(format!("job_{}_80x24", tab.name()), person.sees());
    }
    let mut person = Person::at(snap.clone(), (80, 24));
    person.ui.me = "ana".into();
    person.on(147).press("x");
    insta::assert_snapshot!("cancel_80x24", person.sees());
    let mut person = Person::at(snap.clone(), (80, 24));
    person.press("?");
    insta::assert_snapshot!("help_80x24", person.sees());
    let ui = fixtures::ui(&snap, (80, 24), Glyphs::Unicode);
    insta::assert_snapshot!("unicode_80x24", text(&screen(&ui, &snap, &theme(), (80, 24))));
}

fn detail(snap: &Snapshot) -> JobDetail {
    let row = snap.jobs.iter().find(|row| row.id == JobId(144)).unwrap();
    let step = |step: &str, at: Option<i64>| StepRow { step: step.into(), at };
    JobDetail {
        row: (**row).clone(),
        at: now(),
        steps: vec![
            step("submit", Some(row.submitted_at)),
            step("rent", row.rented_at),
            step("run", row.started_at),
            step("output", None),
            step("release", None),
        ],
        attempts: vec![overnight::protocol::AttemptRow {
            task: overnight::model::TaskIx(0),
            attempt: overnight::model::AttemptNo(1),
            state: Cursor::Running,
            lease: Some(overnight::model::LeaseId(144)),
            devices: row.devices.clone(),
            granted: Some(ago(767)),
            started: Some(ago(760)),
            enforcement: Some(overnight::model::Enforcement::advisory("no cgroup may be made here".into())),
            ended: None,
            returned: None,
            held: None,
            gpu_ms: 767_000,
            waived: false,
            ended_by: None,
            outcome: None,
            verdict: None,
        }],
        outputs: vec![(
            overnight::model::TaskIx(0),
            overnight::model::ReturnedFile {
                path: "scores.json".into(),
                kind: overnight::model::OutputKind::Report,
                bytes: overnight::model::Bytes(48_213),
                blake3: "af1349b9f5f9a1a6a0404dea36dcc949".repeat(2),
                partial: false,
            },
        )],
        warnings: vec!["`memory` is not enforced on this host".into()],
        notes: Vec::new(),
        spec: serde_json::json!({
            "name": "eval-nightly",
            "work": {"run": "python eval.py --suite nightly", "env": {"HF_TOKEN": "***"}},
            "data": ["/datasets/nightly"],
            "request": {"gpus": 1, "for": "1h", "priority": -10},
            "output": [{"path": "scores.json", "kind": "report"}],
        }),
    }
}

#[test]
fn the_cursors_row_is_reversed_and_states_have_their_colours() {
    let snap = busy();
    for glyphs in [Glyphs::Ascii, Glyphs::Unicode] {
        for (name, depth) in
            [("auto", Depth::True), ("auto", Depth::C256), ("okabe-dark", Depth::C256), ("auto", Depth::C16)]
        {
            let theme = load(name, None, depth).unwrap();
            let ui = fixtures::ui(&snap, (80, 24), glyphs);
            let buf = screen(&ui, &snap, &theme, (80, 24));
            let lines = rows(&buf);
            let row =
                |id: &str| lines.iter().position(|line| line.contains(&format!(" {id} "))).unwrap() as u16;
            assert!(buf[(0, row("144"))].symbol() == ">");
            for x in 0..80 {
                assert!(
                    buf[(x, row("144"))].modifier.contains(Modifier::REVERSED),
                    "{name} {depth:?} column {x}"
                );
                assert!(!buf[(x, row("143"))].modifier.contains(Modifier::REVERSED));
            }
            for (id, role) in [
                ("142", Role::Run),
                ("145", Role::Out),
                ("146", Role::Rent),
                ("147", Role::Wait),
                ("148", Role::Paused),
            ] {
                let cell = &buf[(8, row(id))];
                assert_eq!(Some(cell.fg), theme.style(role).fg, "{name} {depth:?} {id}");
            }
        }
    }
}

/// A device is in quarantine since just now.
fn in_quarantine(gpu: &Uuid) -> Snapshot {
    let mut snap = busy();
    let row = snap.gpus.iter_mut().find(|row| row.uuid == *gpu).unwrap();
    let why = "left by #142: pid 4711 python of ana still holds 3.0GiB of its memory".to_owned();
    row.state = DeviceState::Quarantined(Quarantine { why: why.clone(), since: now(), lease: None });
    row.detail = Some(why);
    snap
}

/// Everything that can be on the screen.
fn situations() -> Vec<Person> {
    let mut out = Vec::new();
    let mut strange = busy();
    for row in &mut strange.jobs {
        Arc::make_mut(row).name = "日本語の名前-\u{202e}evil\u{1b}[31m-e\u{301}".into();
    }
    strange.notices.push(Notice { level: NoticeLevel::Error, text: "disk full".repeat(40), job: None });
    for snap in [empty(), busy(), many(), strange] {
        for at in Screen::ALL {
            let mut person = Person::at(snap.clone(), (80, 24));
            update(&mut person.ui, Action::Show(at), &snap, now());
            person.ui.glyphs = Glyphs::Unicode;
            out.push(person);
        }
        for tab in Tab::ALL {
            let mut person = Person::at(snap.clone(), (80, 24));
            person.ui.opened = Some(Opened { job: JobId(144), tab, scroll: 3 });
            person.ui.detail = Some(Box::new(detail(&busy())));
            person.ui.log.wrap = tab == Tab::Log;
            out.push(person);
        }
        let mut help = Person::at(snap.clone(), (80, 24));
        help.press("?");
        let mut confirm = Person::at(snap.clone(), (80, 24));
        let (job, generation) = (JobId(144), Generation(1));
        confirm.ui.overlay = Some(Overlay::Confirm(Confirm { job, generation, button: Button::Now }));
        let mut typing = Person::at(snap.clone(), (80, 24));
        typing.press("/ z z z");
        let mut lost = Person::at(snap.clone(), (80, 24));
        lost.ui.connection = Connection::Lost { why: "no scheduler".into(), retry_in: Span(4000) };
        lost.ui.known = false;
        let mut stale = Person::at(snap, (80, 24));
        stale.ui.connection = Connection::Stale { age: Span::secs(14) };
        out.extend(vec![help, confirm, typing, lost, stale]);
        if let Some(gpu) = out[0].snap.gpus.first().map(|gpu| gpu.uuid.clone()) {
            let mut clear = Person::at(in_quarantine(&gpu), (80, 24));
            clear.ui.overlay = Some(Overlay::Clear(Clear { gpu, since: now(), button: Button::Cancel }));
            out.push(clear);
        }
    }
    out
}

#[test]
fn no_size_from_1x1_to_300x100_panics() {
    let widths: Vec<u16> =
        (1..34).chain([58, 59, 60, 61, 79, 80, 109, 110, 120, 179, 180, 239, 240, 241, 300]).collect();
    let heights: Vec<u16> = (1..14).chain([19, 20, 24, 27, 28, 40, 44, 45, 50, 100]).collect();
    let theme = theme();
    for (at, mut person) in situations().into_iter().enumerate() {
        for (n, width) in widths.iter().enumerate() {
            for (m, height) in heights.iter().enumerate() {
                // Every situation at every ninth size, every size in some situations.
                if (n + m + at) % 9 != 0 {
                    continue;
                }
                person.ui.size = (*width, *height);
                settle(&mut person.ui, &person.snap);
                let buf = screen(&person.ui, &person.snap, &theme, (*width, *height));
                assert_eq!(*buf.area(), Rect::new(0, 0, *width, *height));
                // A frame for another size than the one that is known: the terminal has just changed.
                screen(&person.ui, &person.snap, &theme, (*height, *width));
            }
        }
    }
}

#[test]
fn ascii_has_no_byte_above_127_and_nothing_untrusted_gets_through() {
    let theme = theme();
    for mut person in situations() {
        for size in SIZES {
            person.ui.size = size;
            person.ui.glyphs = Glyphs::Ascii;
            let seen = text(&screen(&person.ui, &person.snap, &theme, size));
            assert!(seen.is_ascii(), "{seen}");
            person.ui.glyphs = Glyphs::Unicode;
            let seen = text(&screen(&person.ui, &person.snap, &theme, size));
            assert!(!seen.contains(['\u{1b}', '\u{202e}']), "{seen}");
        }
    }
}

#[test]
fn the_smallest_job_file_and_the_way_in_are_shown_at_first() {
    let person = Person::at(empty(), (80, 24));
    for line in overnight::tui::SMALLEST {
        assert!(person.sees().contains(line));
    }
    assert!(person.sees().contains("/home/ana/overnight/inbox"));
}

// ---- bytes ----

#[derive(Default)]
struct Counter {
    bytes: Vec<u8>,
    writes: usize,
}

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        self.writes += 1;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Draws what a minute of a busy evening looks like; returns bytes a second and the number of writes.
fn minute(snap: &mut Snapshot, size: (u16, u16), depth: Depth) -> (f64, usize) {
    let theme = load("auto", None, depth).unwrap();
    let mut ui = fixtures::ui(snap, size, Glyphs::Unicode);
    let mut out = Screenful::new(Counter::default(), size);
    out.draw(&ui, snap, &theme).unwrap();
    let (first, first_writes) = (out.out().bytes.len(), out.out().writes);
    for second in 1..=60_u32 {
        ui.now = now().plus(Span::secs(u64::from(second)));
        if second % 2 == 0 {
            for gpu in &mut snap.gpus {
                if gpu.index != 5 {
                    let wobble = (second * 7 + gpu.index * 13) % 9;
                    gpu.utilisation = Some((20 + gpu.index * 10 + wobble) as u8);
                    gpu.temperature_c = Some(60 + (wobble as i32) / 4);
                    gpu.power_w = Some(400 + wobble * 11);
                }
            }
        }
        out.draw(&ui, snap, &theme).unwrap();
    }
    ((out.out().bytes.len() - first) as f64 / 60.0, out.out().writes - first_writes)
}

#[test]
fn eight_busy_gpus_stay_within_the_byte_budget() {
    for (size, budget) in [((80, 24), 600.0), ((200, 50), 2200.0)] {
        for depth in [Depth::True, Depth::C256, Depth::C16, Depth::Mono] {
            let mut snap = busy();
            for (n, row) in snap.jobs.iter_mut().enumerate().take(3) {
                // Young jobs: their seconds run on the screen.
                *row = Arc::new(running(job(142 + n as u64, "ana", "young", 2), 30, &[0, 1]));
            }
            for gpu in &mut snap.gpus {
                gpu.state = overnight::model::DeviceState::Held { lease: overnight::model::LeaseId(142) };
                gpu.jobs = vec![JobId(142)];
            }
            let (rate, writes) = minute(&mut snap, size, depth);
            println!("{size:?} {depth:?}: {rate:.0} B/s in {writes} writes");
            assert!(rate <= budget, "{size:?} {depth:?}: {rate:.0} B/s");
            assert!(rate > 20.0, "something must move: {rate:.0} B/s");
            assert!(writes <= 60, "one write a frame: {writes}");
        }
    }
}

#[test]
fn nothing_is_written_when_nothing_runs() {
    let snap = empty();
    let mut ui = fixtures::ui(&snap, (80, 24), Glyphs::Unicode);
    let mut out = Screenful::new(Counter::default(), (80, 24));
    assert!(out.draw(&ui, &snap, &theme()).unwrap());
    let before = out.out().bytes.len();
    assert_eq!(next_deadline(&ui, &snap, &now(), 1000), None, "nothing wakes an idle dashboard");
    for second in 1..=10 {
        ui.now = now().plus(Span::secs(second));
        assert!(!out.draw(&ui, &snap, &theme()).unwrap());
    }
    assert_eq!(out.out().bytes.len(), before);
}

#[test]
fn a_frame_is_one_write_inside_a_synchronised_update() {
    let snap = busy();
    let ui = fixtures::ui(&snap, (200, 50), Glyphs::Unicode);
    let mut out = Screenful::new(Counter::default(), (200, 50));
    out.draw(&ui, &snap, &theme()).unwrap();
    let Counter { bytes, writes } = out.out();
    assert_eq!(*writes, 1);
    assert!(bytes.starts_with(b"\x1b[?2026h") && bytes.ends_with(b"\x1b[?2026l"));
}

#[test]
fn moving_the_cursor_costs_few_bytes_and_no_request() {
    let mut person = Person::at(busy(), (80, 24));
    person.snap.notices.clear();
    let mut out = Screenful::new(Counter::default(), (80, 24));
    out.draw(&person.ui, &person.snap, &theme()).unwrap();
    let before = out.out().bytes.len();
    assert_eq!(person.press("k"), Vec::new());
    out.draw(&person.ui, &person.snap, &theme()).unwrap();
    let cost = out.out().bytes.len() - before;
    assert!((50..700).contains(&cost), "{cost}");
}

/// What a terminal shows after these bytes.
fn terminal(bytes: &[u8], (width, height): (u16, u16)) -> vt100::Parser {
    let mut parser = vt100::Parser::new(height.try_into().unwrap(), width.try_into().unwrap(), 0);
    parser.process(bytes);
    parser
}

#[test]
fn a_real_terminal_shows_the_same_as_the_buffer_after_any_changes() {
    let size = (120, 40);
    let mut person = Person::at(busy(), size);
    person.ui.glyphs = Glyphs::Unicode;
    let mut out = Screenful::new(Counter::default(), size);
    for keys in [
        "j j j",
        "2",
        "1",
        "/ v i t",
        "Enter",
        "Esc",
        "G",
        "x",
        "n",
        "Tab Tab",
        "?",
        "Esc",
        "4",
        "5",
        "3",
        "1 Enter ]",
        "q",
    ] {
        person.press(keys);
        out.draw(&person.ui, &person.snap, &theme()).unwrap();
        let seen = terminal(&out.out().bytes, size).screen().contents();
        let buf = screen(&person.ui, &person.snap, &theme(), size);
        let wanted: String = rows(&buf).iter().map(|row| row.trim_end().to_owned() + "\n").collect();
        assert_eq!(seen.trim_end(), wanted.trim_end(), "after {keys}");
    }
}

#[test]
fn without_colours_the_cursors_row_is_still_reversed() {
    let snap = busy();
    let ui = fixtures::ui(&snap, (80, 24), Glyphs::Unicode);
    for name in ["mono", "auto", "okabe-dark"] {
        let theme = load(name, None, Depth::Mono).unwrap();
        let mut out = Screenful::new(Counter::default(), (80, 24));
        out.draw(&ui, &snap, &theme).unwrap();
        let seen = String::from_utf8(out.out().bytes.clone()).unwrap();
        for sequence in seen.split("\x1b[").skip(1) {
            let Some((codes, _)) =
                sequence.split_once('m').filter(|(c, _)| c.chars().all(|c| c.is_ascii_digit() || c == ';'))
            else {
                continue;
            };
            for code in codes.split(';') {
                let code: u32 = if code.is_empty() { 0 } else { code.parse().unwrap() };
                assert!(code < 30, "{name}: a colour in ESC[{codes}m");
            }
        }
        let parser = terminal(seen.as_bytes(), (80, 24));
        let row = (0..24).find(|y| parser.screen().cell(*y, 0).unwrap().contents() == ">").unwrap();
        assert!((0..80).all(|x| parser.screen().cell(row, x).unwrap().inverse()), "{name}");
    }
}

// ---- keys ----

#[test]
fn the_cursor_moves_and_stays_on_its_job_when_the_order_changes() {
    let mut person = Person::at(many(), (80, 24));
    person.press("g g");
    assert_eq!(person.ui.queue_job, Some(JobId(142)));
    person.press("j j j k");
    assert_eq!(person.ui.queue_job, Some(JobId(144)));
    person.press("G");
    assert_eq!(person.ui.queue_job, Some(JobId(1488)));
    assert!(person.sees().contains(">494"), "{}", person.sees());
    person.press("PgUp");
    assert_eq!(person.ui.queue_job, Some(JobId(1488 - 11)));
    person.press("g g C-d");
    assert_eq!(person.ui.queue_job, Some(JobId(147)));
    let mut turned = person.snap.clone();
    turned.jobs.reverse();
    receive(&mut person.ui, &mut person.snap, FeedEvent::Snapshot(Box::new(turned)), now());
    assert_eq!(person.ui.queue_job, Some(JobId(147)));
    assert!(
        person.sees().lines().any(|line| line.starts_with('>') && line.contains(" 147 ")),
        "{}",
        person.sees()
    );
}

#[test]
fn when_the_selected_job_ends_the_cursor_stays_at_its_place() {
    let mut person = Person::at(busy(), (80, 24));
    let mut snap = person.snap.clone();
    snap.jobs.retain(|row| row.id != JobId(144));
    let ended = done(job(144, "bo", "eval-nightly", 1), 1, 700, Outcome::LimitReached);
    snap.history.insert(0, Arc::new(ended));
    receive(&mut person.ui, &mut person.snap, FeedEvent::Snapshot(Box::new(snap)), now());
    assert_eq!(person.ui.queue_job, Some(JobId(145)));
    assert!(person.message().contains("#144 eval-nightly: limit reached"), "{}", person.message());
    person.press("Enter");
    assert_eq!(person.ui.opened.unwrap().job, JobId(144), "Enter follows the message while it is fresh");
}

#[test]
fn a_filter_narrows_as_it_is_typed_and_is_never_hidden() {
    let mut person = Person::at(busy(), (80, 24));
    person.press("/ u : m e");
    assert_eq!(person.shown_jobs(), [151, 152, 148]);
    assert!(person.sees().contains("3/11 jobs"), "{}", person.sees());
    person.press("Enter");
    assert!(person.sees().contains("/u:me"), "{}", person.sees());
    // With marks and an order that have no room beside it.
    let mut long = Person::at(busy(), (80, 24));
    long.press("Space Space / u : m e Space ! s : f a i l Space ! n : x y z Enter");
    assert!(long.sees().contains("/u:me !s:fail !n:xyz  3/11 jobs"), "{}", long.sees());
    assert_eq!(person.press("j"), Vec::new());
    assert_eq!(person.ui.queue_job, Some(JobId(152)));
    person.press("/ Space s : p a u s Enter");
    assert_eq!(person.shown_jobs(), [148]);
    person.press("Esc");
    assert_eq!(person.shown_jobs().len(), 11);
    person.press("/ z z z Enter");
    assert!(person.sees().contains("No job matches \"zzz\" (11 hidden).  Esc clears."), "{}", person.sees());
    for (typed, left) in [
        ("142", vec![142]),
        ("s:run !u:bo", vec![142]),
        ("vit", vec![143, 150]),
        ("gpu:4", vec![144]),
        ("RENT", vec![146]),
    ] {
        person.ui.filters.jobs = typed.into();
        settle(&mut person.ui, &person.snap);
        assert_eq!(person.shown_jobs(), left, "{typed}");
    }
    person.press("Esc m");
    assert_eq!(person.shown_jobs(), [151, 152, 148], "own jobs only");
}

#[test]
fn a_cancel_asks_keeps_by_default_and_can_be_undone() {
    let mut person = Person::at(busy(), (80, 24));
    person.ui.me = "bo".into();
    person.on(144);
    for keep in ["Enter", "Esc", "q"] {
        let asked = person.press("x");
        assert!(
            asked.iter().all(|one| matches!(one, UiCommand::Detail(_) | UiCommand::Errand(_))),
            "{asked:?}"
        );
        assert!(asked.contains(&UiCommand::Detail(JobId(144))), "its file says how it is stopped");
        assert_eq!(person.press(keep), Vec::new(), "Keep it");
    }
    person.press("x");
    let sent = person.press("y");
    let generation = Generation(1);
    let undo = Span::secs(5);
    assert_eq!(*command(&sent), Command::Cancel { job: JobId(144), generation, undo, now: false });
    let closes = now().wall_ms + 5000;
    person.changes(144, |row| row.cancel_at = Some(closes));
    assert!(person.sees().contains("144 STOP"), "{}", person.sees());
    let reply = Box::new(Reply::Ok { message: "cancelling #144".into() });
    let asked = Asked::Command(Some(JobId(144)));
    receive(&mut person.ui, &mut person.snap, FeedEvent::Reply { asked, reply }, now());
    assert!(
        person.sees().contains("cancelling #144 in 5 s"),
        "the countdown, not the reply: {}",
        person.sees()
    );
    let wakes = next_deadline(&person.ui, &person.snap, &person.ui.now, 2000);
    assert!(wakes.is_some_and(|ms| ms <= 1000), "the countdown moves: {wakes:?}");
    person.later(2000);
    assert!(person.sees().contains("cancelling #144 in 3 s"), "{}", person.sees());
    assert_eq!(*command(&person.press("u")), Command::Undo { job: None });
    person.ui.me = "ana".into();
    let sent = person.on(147).press("x y");
    assert!(matches!(command(&sent), Command::Cancel { undo: Span(10_000), .. }), "waiting: ten seconds");
    person.ui.me = "me".into();
    let sent = person.on(151).press("x !");
    assert!(matches!(command(&sent), Command::Cancel { undo: Span(0), now: false, .. }), "{sent:?}");
    let sent = person.on(152).press("x Tab Enter");
    assert!(matches!(command(&sent), Command::Cancel { .. }), "{sent:?}");
}

#[test]
fn a_job_that_changed_while_the_question_was_open_is_not_cancelled() {
    let mut person = Person::at(busy(), (80, 24));
    person.ui.me = "bo".into();
    person.on(144).press("x");
    person.changes(144, |row| row.state = Cursor::Returning);
    assert_eq!(person.press("y"), Vec::new());
    assert!(person.message().contains("nothing was cancelled"), "{}", person.message());
}

#[test]
fn a_second_cancel_offers_the_kill() {
    let mut person = Person::at(busy(), (80, 24));
    person.ui.me = "bo".into();
    person.changes(144, |row| row.cancel_at = Some(now().wall_ms - 1));
    person.on(144).press("x");
    assert!(person.sees().contains("Kill #144"), "{}", person.sees());
    let sent = person.press("y");
    assert!(matches!(command(&sent), Command::Cancel { now: true, undo: Span(0), .. }), "{sent:?}");
}

#[test]
fn a_held_key_costs_one_request_at_a_time_and_the_row_moves_at_once() {
    let mut person = Person::at(busy(), (80, 24));
    person.on(150);
    let sent = person.press("+");
    let wanted = |n| overnight::model::Priority::clamped(n);
    assert!(matches!(command(&sent), Command::SetPriority { priority, .. } if *priority == wanted(0)));
    assert_eq!(person.press("+ + +"), Vec::new(), "one is on its way");
    assert!(
        person.sees().lines().any(|l| l.contains('~') && l.contains(" 150 ") && l.contains(" 30 ")),
        "{}",
        person.sees()
    );
    let order = person.shown_jobs();
    assert_eq!(order[5..7], [150, 147], "{order:?}");
    assert_eq!(person.changes(150, |row| row.priority = wanted(0)), Vec::new(), "within 400 ms of the first");
    let sent = person.later(400);
    assert!(
        matches!(command(&sent), Command::SetPriority { priority, generation: Generation(2), .. } if *priority == wanted(30)),
        "{sent:?}"
    );
    assert_eq!(person.changes(150, |row| row.priority = wanted(30)), Vec::new());
    assert!(!person.sees().contains('~'), "settled: {}", person.sees());
    assert_eq!(*command(&person.press("u")), Command::Undo { job: None });
}

#[test]
fn a_refusal_puts_the_row_back_and_says_why() {
    let mut person = Person::at(busy(), (80, 24));
    person.on(150).press("+");
    let message = "above the limit for your user: max 0".to_owned();
    let reply = Box::new(Reply::Refused { message: message.clone() });
    let asked = Asked::Command(Some(JobId(150)));
    receive(&mut person.ui, &mut person.snap, FeedEvent::Reply { asked, reply }, now());
    assert_eq!(person.message(), message);
    assert!(!person.sees().contains('~'));
    person.later(60_000);
    assert_eq!(person.message(), message, "errors stay until Esc");
    person.press("Esc");
    assert_eq!(person.message(), "");
}

#[test]
fn moves_go_to_the_place_asked_for_and_back() {
    let mut person = Person::at(busy(), (80, 24));
    let sent = person.on(152).press("K");
    assert!(matches!(command(&sent), Command::Move { to: Place::Up, .. }));
    let order = person.shown_jobs();
    assert_eq!(order[6..8], [152, 151], "{order:?}");
    assert_eq!(person.ui.queue_job, Some(JobId(152)), "the cursor stays on the job");
    assert_eq!(person.press("K"), Vec::new());
    assert!(person.message().contains("already first of me's jobs"), "{}", person.message());
    person.changes(152, |_| {});
    person.later(400);
    assert_eq!(
        *command(&person.press("u")),
        Command::Undo { job: None },
        "the scheduler knows what was done"
    );
    let sent = person.on(147).press("H");
    assert!(matches!(command(&sent), Command::Pause { .. }));
    let sent = person.on(148).press("H");
    assert!(matches!(command(&sent), Command::Resume { .. }));
}

#[test]
fn keys_that_cannot_be_followed_say_why() {
    let mut person = Person::at(busy(), (80, 24));
    for (job, keys, reason) in [
        (142, "+", "cannot raise #142: already running"),
        (142, "H", "running jobs cannot be paused; x cancels"),
        (145, "t", "cannot move #145: its run has ended"),
        (142, "r", "cannot retry #142: it has not ended"),
        (148, "t", "cannot move #148: paused jobs have no place in line; H resumes"),
        (142, "Q", "Q does nothing here; ? shows the keys"),
    ] {
        assert_eq!(person.on(job).press(keys), Vec::new(), "{keys}");
        assert_eq!(person.message(), reason);
    }
    person.press("4");
    let asks = person.press("r");
    assert!(matches!(asks[..], [UiCommand::Detail(JobId(141))]), "what its end means is asked: {asks:?}");
    assert!(matches!(command(&person.press("Enter")), Command::Retry { job: JobId(141), .. }));
    person.press("1");
    person.ui.connection = Connection::Lost { why: "gone".into(), retry_in: Span(0) };
    assert_eq!(person.on(147).press("+"), Vec::new());
    assert_eq!(person.message(), "cannot raise: no scheduler");
}

#[test]
fn esc_never_quits_and_q_goes_back_before_it_does() {
    let mut person = Person::at(busy(), (80, 24));
    assert_eq!(person.press("Enter ] ] Esc Esc Esc Esc"), Vec::new());
    assert!(person.ui.opened.is_none());
    assert_eq!(person.press("Enter q"), Vec::new());
    assert_eq!(person.press("q"), [UiCommand::Quit]);
    assert_eq!(person.press("/ a C-c"), Vec::new(), "only the input is closed");
    assert!(person.ui.filters.jobs.is_empty() && !person.ui.typing);
    assert_eq!(person.press("x C-c"), Vec::new(), "only the question is closed");
    assert_eq!(person.press("C-c"), [UiCommand::Quit]);
    assert_eq!(person.press("C-l C-z"), [UiCommand::Repaint, UiCommand::Suspend]);
}

#[test]
fn screens_panes_and_tabs_are_reached() {
    let mut person = Person::at(busy(), (80, 24));
    for (key, at) in ["1", "2", "3", "4", "5"].into_iter().zip(Screen::ALL) {
        person.press(key);
        assert_eq!(person.ui.screen, at);
    }
    person.press("1 Tab");
    assert_eq!(person.ui.screen, Screen::Gpus, "one pane: the next screen");
    let mut person = Person::at(busy(), (120, 40));
    person.press("Tab");
    assert!(person.sees().contains("> GPUs"), "{}", person.sees());
    person.press("j j Enter");
    assert_eq!(person.ui.opened.unwrap().job, JobId(143), "a GPU opens the job that holds it");
    person.press("]");
    assert_eq!(person.ui.opened.unwrap().tab, Tab::Log);
    person.press("[ [");
    assert_eq!(person.ui.opened.unwrap().tab, Tab::Events);
    person.press("q l");
    assert_eq!(person.ui.opened.unwrap().tab, Tab::Log);
}

#[test]
fn the_log_follows_until_one_looks_up() {
    let mut person = Person::at(busy(), (80, 24));
    person.press("l");
    assert!(person.sees().contains("step 1780/5000"), "{}", person.sees());
    assert!(person.sees().contains("FOLLOW"), "{}", person.sees());
    person.press("k k");
    assert!(person.ui.log.stopped_at.is_some() && person.sees().contains("AT "), "{}", person.sees());
    assert!(!person.sees().contains("step 1780/5000"), "{}", person.sees());
    person.press("G");
    assert!(person.ui.log.stopped_at.is_none() && person.sees().contains("step 1780/5000"));
    person.press("g g");
    assert!(person.sees().contains("step 1000/5000"), "{}", person.sees());
    person.press("f");
    assert!(person.ui.log.stopped_at.is_none());
    person.press("Space");
    assert!(person.ui.log.stopped_at.is_some());
    person.press("Space w");
    assert!(person.ui.log.stopped_at.is_none() && person.ui.log.wrap);
}

#[test]
fn a_frozen_display_does_not_move_and_says_so() {
    let mut person = Person::at(busy(), (80, 24));
    person.press("p");
    let before = person.sees();
    person.changes(147, |row| row.why = Some("next".into()));
    let mut newer = person.ui.log.window.clone();
    newer.lines.last_mut().unwrap().text = "step 5000/5000".into();
    receive(&mut person.ui, &mut person.snap, FeedEvent::Log(Box::new(newer)), now());
    person.later(42_000);
    let after = person.sees();
    assert!(after.contains("FROZEN 0m42s"), "{after}");
    assert_eq!(before.lines().skip(1).collect::<Vec<_>>(), after.lines().skip(1).collect::<Vec<_>>());
    person.press("p");
    assert!(person.sees().contains("LIVE") && person.sees().contains("step 5000/5000"), "{}", person.sees());
    assert!(person.sees().contains("next"), "{}", person.sees());
}

#[test]
fn the_connection_is_told_in_words() {
    let mut person = Person::at(busy(), (80, 24));
    let lost = Connection::Lost { why: "the scheduler has ended".into(), retry_in: Span(4000) };
    receive(&mut person.ui, &mut person.snap, FeedEvent::Connection(lost), now());
    assert!(person.sees().contains("NO DAEMON retry in 4 s"), "{}", person.sees());
    assert!(person.sees().contains("! the scheduler has ended"), "{}", person.sees());
    person.later(2500);
    assert!(person.sees().contains("retry in 2 s"), "{}", person.sees());
    person.ui.connection = Connection::Stale { age: Span::secs(14) };
    assert!(person.sees().contains("STALE 14 s"));
    let snap = Box::new(busy());
    receive(&mut person.ui, &mut person.snap, FeedEvent::Snapshot(snap), now());
    assert!(person.sees().contains("LIVE"));
    assert_eq!(person.ui.queue_job, Some(JobId(144)), "the selection is kept");
}

#[test]
fn notices_are_on_every_screen() {
    let mut snap = busy();
    let text = "the disk is full: nothing new is accepted".to_owned();
    snap.notices.insert(0, Notice { level: NoticeLevel::Error, text: text.clone(), job: None });
    for size in [(60, 12), (80, 24), (120, 40), (200, 50)] {
        for at in Screen::ALL {
            let mut person = Person::at(snap.clone(), size);
            update(&mut person.ui, Action::Show(at), &snap, now());
            assert!(person.sees().contains(&format!("! {text}")), "{size:?} {at:?}");
        }
    }
}

#[test]
fn a_quarantine_is_lifted_only_if_it_is_the_one_that_was_asked_about() {
    let gpu = fixtures::uuid(5);
    let mut person = Person::at(busy(), (80, 24));
    person.press("2 j j j j j");
    assert_eq!(person.ui.gpu.as_ref(), Some(&gpu));
    assert!(!person.sees().lines().last().unwrap().contains("c clear"));
    assert!(person.press("c").is_empty());
    assert_eq!(person.message(), "cannot clear GPU 5: it is free, not in quarantine");

    person.snap = in_quarantine(&gpu);
    assert!(person.sees().lines().last().unwrap().contains("c clear"));
    assert!(person.press("c").is_empty());
    assert!(person.sees().contains("Clear GPU 5 ?") && person.sees().contains("python of ana"));
    // Enter is the safe button; Tab goes to the other.
    assert!(person.press("Enter").is_empty() && person.ui.overlay.is_none());
    let sent = person.press("c Tab Enter");
    assert_eq!(command(&sent), &Command::Clear { gpu: GpuSelect::Uuid(gpu.clone()) });

    // While it was asked, somebody cleared it and it came into quarantine again.
    person.press("c");
    let again = person.snap.gpus.iter_mut().find(|row| row.uuid == gpu).unwrap();
    let DeviceState::Quarantined(quarantine) = &mut again.state else { panic!("{again:?}") };
    quarantine.since = now().plus(Span::secs(1));
    assert!(person.press("y").is_empty());
    assert_eq!(person.message(), "GPU 5 changed meanwhile, it is quarantined now: nothing was cleared");

    person.press("c");
    person.ui.connection = Connection::Lost { why: "no scheduler".into(), retry_in: Span(4000) };
    assert!(person.press("y").is_empty());
    assert_eq!(person.message(), "cannot clear: no scheduler");
}

#[test]
fn every_key_of_the_help_means_the_same_in_its_mode() {
    let keys = Keymap::default();
    for mode in Mode::ALL {
        assert!(keys.of(mode).count() > 3, "{mode:?}");
        for row in keys.of(mode) {
            let first = row.first();
            let mut chars = first.chars();
            let (Some(key), None) = (chars.next(), chars.next()) else { continue };
            let event = KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE);
            assert_eq!(keys.action(mode, None, event).as_ref(), Some(&row.binding.action), "{mode:?} {key}");
        }
    }
}

#[test]
fn help_finds_a_key_by_its_words_and_does_it() {
    let mut person = Person::at(busy(), (80, 24));
    person.press("? f r e e z e");
    assert!(person.sees().contains("freeze the display"), "{}", person.sees());
    assert!(!person.sees().contains("priority + 10"));
    person.press("Enter");
    assert!(person.ui.frozen.is_some() && person.ui.overlay.is_none());
}

#[test]
fn the_palette_has_every_action_and_says_why_one_cannot_be_done() {
    let mut person = Person::at(busy(), (80, 24));
    person.on(142).press(": r a i s e");
    assert!(person.sees().contains("raise"), "{}", person.sees());
    assert_eq!(person.press("Enter"), Vec::new());
    assert_eq!(person.message(), "cannot raise #142: already running");
    person.press(": h i s t Enter");
    assert_eq!(person.ui.screen, Screen::History);
    person.press(": C-c");
    assert!(person.ui.overlay.is_none(), "only the palette is closed");
}

#[test]
fn the_key_line_shows_only_what_can_be_done() {
    let keys = |person: &Person| person.sees().lines().last().unwrap().to_owned();
    let mut person = Person::at(busy(), (80, 24));
    let running = keys(person.on(142));
    assert!(running.contains("x cancel") && !running.contains("prio"), "{running}");
    let waiting = keys(person.on(147));
    assert!(waiting.contains("+ prio") && waiting.contains("H pause"), "{waiting}");
    for size in [(60, 12), (80, 24), (120, 40), (200, 50)] {
        let mut person = Person::at(busy(), size);
        person.snap.notices.clear();
        let line = keys(person.on(147));
        assert!(line.contains("? help") && line.contains("q quit"), "{size:?} {line}");
    }
}

// ---- updates ----

#[test]
fn updates_carry_changed_rows_only_and_the_rest_stays() {
    let mut snap = busy();
    let all = busy();
    let mut row = (*all.jobs[2]).clone();
    row.revision = Revision(901);
    row.name = "renamed".into();
    let order: Vec<JobId> = all.jobs.iter().rev().map(|row| row.id).collect();
    let history_order: Vec<JobId> = all.history.iter().skip(1).map(|row| row.id).collect();
    let message = Update {
        revision: Revision(901),
        since: Some(Revision(900)),
        rows: vec![Arc::new(row)],
        jobs: vec![Move::All { jobs: order.clone() }],
        history: vec![Move::All { jobs: history_order }],
        ..Update::default()
    };
    assert_eq!(fold(&mut snap, message.clone()), Ok(()));
    assert_eq!(snap.jobs.iter().map(|row| row.id).collect::<Vec<_>>(), order);
    assert_eq!(snap.jobs.iter().find(|row| row.id == JobId(144)).unwrap().name, "renamed");
    assert_eq!(snap.history.len(), 5);
    let old = Update { revision: Revision(1), ..message.clone() };
    let before = snap.clone();
    assert_eq!(fold(&mut snap, old), Ok(()));
    assert_eq!(snap, before, "what is older is not taken in");
    let jobs = vec![Move::All { jobs: vec![JobId(9999)] }];
    let unknown = Update { jobs, since: Some(Revision(901)), ..message };
    assert_eq!(fold(&mut snap, unknown.clone()), Err(Incomplete));
    let mut person = Person::at(busy(), (80, 24));
    let out = receive(&mut person.ui, &mut person.snap, FeedEvent::Update(Box::new(unknown)), now());
    assert_eq!(out, [UiCommand::Refresh], "the whole snapshot is asked for");
}

#[test]
fn deadlines_come_from_what_moves() {
    let ui = fixtures::ui(&busy(), (80, 24), Glyphs::Ascii);
    let at = |snap: &Snapshot, now: Now| next_deadline(&ui, snap, &now, 1000);
    assert_eq!(at(&busy(), now().plus(Span(300))), Some(700), "running times, at the full second");
    let mut waits = busy();
    waits.jobs.retain(|row| row.state == Cursor::Queued);
    assert!(at(&waits, now()).is_some_and(|ms| ms > 1000), "waiting times, at the full minute");
    let mut told = fixtures::ui(&empty(), (80, 24), Glyphs::Ascii);
    update(&mut told, Action::Log, &empty(), now());
    let gone = next_deadline(&told, &empty(), &now(), 1000).unwrap();
    assert!(gone >= 6000, "no message goes within six seconds: {gone}");
    tick(&mut told, &empty(), now().plus(Span(gone)));
    assert_eq!(told.message, None);
}

/// Not a check: prints frames to look at. `cargo test --test dashboard look -- --ignored --nocapture`
#[test]
#[ignore = "for eyes"]
fn look() {
    for mut person in situations().into_iter().skip(15).take(15) {
        for size in SIZES {
            person.ui.size = size;
            settle(&mut person.ui, &person.snap);
            println!("{size:?}\n{}", person.sees());
        }
    }
    std::io::stdout().flush().unwrap();
}
