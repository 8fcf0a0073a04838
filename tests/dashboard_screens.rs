//! The screens of the dashboard at every size: nothing cut, nothing beyond the edge; what they ask for and when; the charts,
//! the timeline, the ledger, the forecasts and the mending of a file.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "support/keys.rs"]
mod keys;
#[path = "support/looks.rs"]
mod looks;

use fixtures::{WALL_MS, ago, busy, done, empty, gpu, job, many, now, uuid, waiting};
use looks::{MINUTE, ledger, telemetry, timeline};
use overnight::model::{
    Bytes, DeviceState, GpuProcess, JobId, LeaseId, Outcome, ProcessKind, Quarantine, Revision, Span,
};
use overnight::protocol::{
    Change, Command, Connection, Expectation, InboxState, MeterBy, Place, Query, Reply, Snapshot, Update,
    WhatIf, WhatIfRow,
};
use overnight::tui::{
    Asked, Depth, Errand, FeedEvent, Glyphs, GpuTab, Look, Opened, Overlay, Screen, Tab, Theme, Ui,
    UiCommand, due, load, mode, next_deadline, paint, receive, settle, tick, update,
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
                let key = keys::pressed(key);
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
                Look::Older { .. } => {
                    // In two parts, all done jobs: those of the snapshot, and some from before.
                    let mut rows: Vec<_> = self.snap.history.iter().map(|row| (**row).clone()).collect();
                    rows.extend((0..40).map(|n| {
                        done(job(400 - n, "bo", "ancient", 1), 90_000 + n * 60, 60, Outcome::Succeeded)
                    }));
                    let rest = rows.split_off(100);
                    let left = rest.len() as u32;
                    self.hears(Asked::Look(*look), Reply::Jobs { rows, left });
                    Reply::Jobs { rows: rest, left: 0 }
                }
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
            0..5 => {
                gpu(index, DeviceState::Held { lease: LeaseId(142) }, Some((index * 7 % 101) as u8), &[142])
            }
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
        assert!("+|┐┘│".contains(last), "{what} at {width}x{height}: {row:?}");
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

fn looks(commands: &[UiCommand]) -> Vec<&Query> {
    commands
        .iter()
        .filter_map(|command| match command {
            UiCommand::Look { query, .. } => Some(query),
            _ => None,
        })
        .collect()
}

#[test]
fn what_a_screen_shows_is_asked_for_while_it_is_shown_and_not_more_often_than_it_changes() {
    let mut person = Person::at(busy(), (80, 24), Glyphs::Ascii);
    assert_eq!(person.answered(), [], "the queue at 80 columns shows nothing of it");
    person.press("2");
    assert_eq!(person.answered().len(), 2, "telemetry and timeline");
    assert_eq!(person.answered(), []);
    let soon = next_deadline(&person.ui, &person.snap, &person.ui.now, 60_000).unwrap();
    assert!(soon <= 10_000, "the next step of the ring is looked for: {soon}");
    person.later(9_000);
    assert_eq!(person.answered(), [], "a step takes ten seconds");
    person.later(1_000);
    assert_eq!(person.answered(), [Look::GpuHistory { span_ms: 1_200_000 }]);
    // A change of the line moves the plan.
    let update =
        Update { revision: Revision(901), since: Some(Revision(900)), at: now(), ..Update::default() };
    let at = person.ui.now;
    receive(&mut person.ui, &mut person.snap, FeedEvent::Update(Box::new(update)), at);
    assert!(matches!(person.answered()[..], [Look::Timeline { .. }]));
    person.later(60_000);
    person.ui.connection = Connection::Stale { age: Span(4_000) };
    assert_eq!(person.answered(), [], "nobody is there to answer");
    person.ui.connection = Connection::Live;
    person.press("1");
    assert_eq!(person.answered(), []);
    let mut wide = Person::at(busy(), (200, 50), Glyphs::Ascii);
    assert_eq!(wide.answered(), [Look::GpuHistory { span_ms: 1_200_000 }]);
    wide.ui.thrift = true;
    wide.later(60_000);
    assert_eq!(wide.answered(), [], "lines of what was are not worth a narrow line's bytes");
    wide.press("2");
    wide.answered();
    let moves = |person: &Person| person.sees().contains("-20m");
    assert!(!moves(&wide) && wide.sees().contains("power"), "the figures alone: {}", wide.sees());
    wide.ui.thrift = false;
    assert!(moves(&wide), "{}", wide.sees());
}

#[test]
fn the_meter_is_read_by_what_and_since_when_one_chooses() {
    let mut person = Person::at(busy(), (80, 24), Glyphs::Ascii);
    person.press("3");
    let midnight = WALL_MS - WALL_MS.rem_euclid(86_400_000);
    assert_eq!(person.answered(), [Look::Meter { by: MeterBy::User, since_ms: Some(midnight) }]);
    person.press("] T");
    let week = Some(midnight - 6 * 86_400_000);
    assert_eq!(person.answered(), [Look::Meter { by: MeterBy::Project, since_ms: week }]);
    let sees = person.sees();
    assert!(sees.contains("[project]") && sees.contains("[7 days]") && sees.contains("wiki"), "{sees}");
    assert!(sees.contains("NOT BILLED") && !sees.contains("COST"), "money is never invented: {sees}");
    person.press("T T [");
    assert_eq!(person.answered(), [Look::Meter { by: MeterBy::User, since_ms: None }]);
    person.later(16_000);
    assert_eq!(person.answered().len(), 1, "what is held grows it");
    let look = Look::Meter { by: MeterBy::User, since_ms: None };
    person.hears(Asked::Look(look), Reply::Unavailable { message: "the ledger is being checked".into() });
    person.press("]");
    assert!(person.sees().contains("the ledger is being checked"), "{}", person.sees());
}

#[test]
fn the_time_axis_is_moved_and_zoomed_and_comes_back_to_now() {
    let mut person = Person::at(busy(), (120, 40), Glyphs::Ascii);
    person.press("2");
    let window = |person: &mut Person| match person.answered()[..] {
        [Look::Timeline { from, until }] | [_, Look::Timeline { from, until }] => (from, until),
        ref other => panic!("a timeline was expected: {other:?}"),
    };
    let hours = 3_600_000;
    assert_eq!(window(&mut person), (-2 * hours, 4 * hours));
    person.press("+");
    assert_eq!(window(&mut person), (-hours, 2 * hours));
    person.press("Left");
    assert_eq!(window(&mut person), (-hours - hours * 3 / 4, 2 * hours - hours * 3 / 4));
    assert!(person.sees().contains("-0h45m, 0 is now"), "{}", person.sees());
    person.press("0 -");
    assert_eq!(window(&mut person), (-2 * hours, 4 * hours));
    person.press("T");
    assert!(person.answered().contains(&Look::GpuHistory { span_ms: 3_600_000 }));
    assert!(person.sees().contains("[1 h]"), "{}", person.sees());
}

#[test]
fn what_is_not_known_is_never_zero() {
    let mut person = Person::at(busy(), (120, 40), Glyphs::Ascii);
    person.press("2");
    assert!(person.sees().contains("Asking the scheduler"), "{}", person.sees());
    person.answered();
    // The highest row of the first chart: two waves, nothing in the time that nobody looked at.
    let sees = person.sees();
    let chart = sees.lines().find(|line| line.contains("|100%")).unwrap();
    let plot = &chart[7..55];
    assert!(plot.trim().contains("       "), "the gap: {plot:?}");
    let bottom = sees.lines().skip_while(|line| !line.contains("|100%")).nth(1).unwrap();
    assert!(!bottom[7..20].contains(' '), "a known nothing has a mark: {bottom:?}");
    // A device that was never read.
    person.snap.gpus[0].uuid = uuid(77);
    person.ui.gpu = Some(uuid(77));
    assert!(person.sees().contains("has not read this GPU yet"), "{}", person.sees());
}

#[test]
fn a_device_says_what_is_odd_about_it() {
    let mut snap = busy();
    snap.gpus[0].idle_since = Some(WALL_MS - 400_000);
    snap.gpus[0].utilisation = Some(0);
    snap.gpus[1].utilisation = None;
    snap.gpus[2].processes = vec![GpuProcess {
        pid: 812,
        uid: Some(0),
        user: Some("root".into()),
        name: "python".into(),
        memory: Some(Bytes::gib(3)),
        kind: ProcessKind::Compute,
        token: None,
        ignored: false,
    }];
    let why = "left by #139: pid 4711 python of ana".to_owned();
    snap.gpus[5].state = DeviceState::Quarantined(Quarantine { why, since: ago(60), lease: None });
    let mut person = Person::at(snap, (120, 40), Glyphs::Ascii);
    person.press("2");
    let sees = person.sees();
    let line = |index: usize| sees.lines().nth(index + 3).unwrap().to_owned();
    assert!(line(0).contains("] idle"), "{}", line(0));
    assert!(line(1).contains("] n/a "), "{}", line(1));
    assert!(line(2).contains("other pid 812 root python"), "{}", line(2));
    assert!(line(5).contains("quar") && line(5).contains("left by #139: pid 4711"), "{}", line(5));
    person.press("3");
    person.answered();
    assert!(person.sees().contains("idle: gpu 0 since 09:20"), "{}", person.sees());
}

/// A job in line whose deadline the forecast does not keep.
fn late() -> Snapshot {
    let mut snap = busy();
    for row in &mut snap.jobs {
        let row = Arc::make_mut(row);
        match row.id.0 {
            142 => row.finishes_at = Some(WALL_MS + 53 * MINUTE),
            151 => {
                row.starts_at = Some(WALL_MS + 54 * MINUTE);
                row.starts_by = Some(WALL_MS + 90 * MINUTE);
                row.finishes_at = Some(WALL_MS + 114 * MINUTE);
                row.finish_by = Some(WALL_MS + 34 * MINUTE);
                row.late = true;
            }
            _ => {}
        }
    }
    snap
}

#[test]
fn a_late_job_says_by_how_much_and_who_is_in_the_way() {
    let mut person = Person::at(late(), (120, 40), Glyphs::Ascii);
    person.ui.queue_job = Some(JobId(151));
    person.ui.opened = Some(Opened { job: JobId(151), tab: Tab::Summary, scroll: 0 });
    settle(&mut person.ui, &person.snap);
    let sees = person.sees();
    let words = "will miss 10:00 by 1h20m: #142 holds 2 GPUs until about 10:19";
    assert!(sees.contains(words), "{sees}");
    assert!(sees.contains("place 2  about 10:20, no later than 10:56"), "{sees}");
    let mut wide = Person::at(late(), (300, 80), Glyphs::Ascii);
    wide.ui.queue_job = Some(JobId(151));
    assert!(wide.sees().contains("LATE, next, about 10:20"), "{}", wide.sees());
}

fn expected(place: u32, minutes: i64, late: bool) -> Expectation {
    let starts_at = Some(WALL_MS + minutes * MINUTE);
    Expectation { place: Some(place), starts_at, starts_by: None, finishes_at: None, late }
}

#[test]
fn what_a_move_does_to_others_is_asked_first_and_shown_while_it_settles() {
    let mut snap = busy();
    let other = waiting(job(153, "me", "tokenise-news", 1), 6, 4, "behind others");
    snap.jobs.insert(10, Arc::new(other));
    let mut person = Person::at(snap, (200, 50), Glyphs::Ascii);
    person.ui.queue_job = Some(JobId(153));
    let sent = person.press("t");
    let look = Look::WhatIf { job: JobId(153), change: Change::Move(Place::Top) };
    assert_eq!(looks(&sent), [&Query::WhatIf { job: JobId(153), change: Change::Move(Place::Top) }]);
    assert!(matches!(sent[0], UiCommand::Look { .. }), "the question goes first: {sent:?}");
    assert!(matches!(sent[1], UiCommand::Send { command: Command::Move { .. }, .. }), "{sent:?}");
    let row = |job: u64, old: Expectation, new: Expectation| WhatIfRow {
        job: JobId(job),
        name: "x".into(),
        user: "me".into(),
        old,
        new,
    };
    let rows = vec![
        row(153, expected(6, 90, false), expected(2, 20, false)),
        row(151, expected(2, 54, false), expected(3, 134, true)),
        row(152, expected(3, 60, false), expected(4, 140, false)),
        row(149, expected(4, 200, false), expected(5, 200, false)),
    ];
    person.hears(Asked::Look(look), Reply::WhatIf(WhatIf { refused: None, rows, more: 0 }));
    assert_eq!(person.message(), "moves 2 jobs later, 1 will miss its deadline");
    let sees = person.sees();
    let line = |id: &str| sees.lines().find(|line| line.contains(id)).unwrap().to_owned();
    assert!(line(" 151 WAIT").contains("~about 10:20 -> 11:40 "), "{}", line(" 151 WAIT"));
    person.ui.size = (300, 80);
    let wide = person.sees();
    assert!(wide.contains("~about 10:20 -> 11:40"), "{wide}");
    person.ui.size = (200, 50);
    assert!(line(" 149 WAIT").contains("~place 4 -> 5"), "{}", line(" 149 WAIT"));
    // The scheduler's own words come after it and do not push it away.
    person.hears(Asked::Command(Some(JobId(153))), Reply::Ok { message: "#153 moved".into() });
    assert_eq!(person.message(), "#153 moved; moves 2 jobs later, 1 will miss its deadline");
    person.later(11_000);
    assert!(!person.sees().contains("10:20 -> 11:40"), "{}", person.sees());
}

#[test]
fn a_refused_file_can_be_mended_only_where_that_is_certain() {
    let mut person = Person::at(busy(), (80, 24), Glyphs::Ascii);
    person.press("5");
    assert!(person.sees().contains("f mends it in place"), "{}", person.sees());
    let sent = person.press("f");
    let inbox = person.snap.scheduler.inbox.clone();
    assert_eq!(sent, [UiCommand::ReadFile { name: "sweep.yaml".into(), path: inbox.join("sweep.yaml") }]);
    if let InboxState::Refused { diagnostics } = &mut person.snap.inbox[0].state {
        diagnostics[0].fix = None;
    }
    assert_eq!(person.press("f"), []);
    assert!(person.message().contains("e edits the file"), "{}", person.message());
    let sent = person.press("e");
    assert_eq!(sent, [UiCommand::Errand(Errand::EditFile(inbox.join("sweep.yaml")))]);
    for key in ["f", "e"] {
        person.press("Down");
        assert_eq!(person.press(key), []);
        assert!(person.message().contains("was not refused"), "{}", person.message());
    }
}

#[test]
fn the_question_before_a_file_is_mended_shows_both_lines_and_keeps_by_default() {
    let fix = overnight::tui::Fix {
        name: "sweep.yaml".into(),
        path: "/home/ana/overnight/inbox/sweep.yaml".into(),
        was: b"  gpu_count: 2\n".to_vec(),
        new: b"  gpus: 2\n".to_vec(),
        lines: vec![overnight::tui::Mended {
            line: 7,
            old: "  gpu_count: 2".into(),
            new: "  gpus: 2".into(),
        }],
        left: 1,
        button: overnight::tui::Button::Keep,
    };
    for size in SIZES {
        let mut person = Person::at(busy(), size, Glyphs::Unicode);
        person.press("5");
        person.ui.overlay = Some(Overlay::Fix(fix.clone()));
        whole(&person, "mend");
    }
    let mut person = Person::at(busy(), (80, 24), Glyphs::Ascii);
    person.press("5");
    person.ui.overlay = Some(Overlay::Fix(fix.clone()));
    insta::assert_snapshot!("mend_80x24", person.sees());
    assert_eq!(person.press("Enter"), [], "Enter keeps it");
    assert_eq!(person.ui.overlay, None);
    person.ui.overlay = Some(Overlay::Fix(fix.clone()));
    assert_eq!(person.press("y"), [UiCommand::Mend(Box::new(fix))]);
}

#[test]
fn the_job_of_the_cursor_is_the_same_everywhere_on_the_timeline() {
    let mut person = Person::at(busy(), (120, 40), Glyphs::Ascii);
    person.press("2");
    person.answered();
    let (width, height) = person.ui.size;
    let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
    paint(&mut buf, &person.ui, &person.snap, &theme());
    let rows = person.rows();
    let reversed = |y: usize| {
        (0..width)
            .filter(|x| buf[(*x, y as u16)].modifier.contains(ratatui::style::Modifier::REVERSED))
            .count()
    };
    // From the foot of the box upwards: axis, GPU 7 to GPU 0.
    let bottom = rows.iter().rposition(|row| row.starts_with('+')).unwrap();
    assert!(rows[bottom - 9].contains("#142 llama-ft-8b") && rows[bottom - 8].contains("#142 llama-ft-8b"));
    assert!(reversed(bottom - 9) > 10 && reversed(bottom - 9) == reversed(bottom - 8), "both its GPUs");
    assert_eq!(reversed(bottom - 7), 0, "another job's");
}

#[test]
fn the_history_goes_further_back_than_the_snapshot() {
    let mut person = Person::at(many(), (80, 24), Glyphs::Ascii);
    person.press("4");
    assert!(person.sees().contains("End: older"), "{}", person.sees());
    assert_eq!(person.answered(), [], "nobody has looked for them yet");
    person.press("End");
    assert_eq!(person.answered(), [Look::Older { done: 5_000 }]);
    assert!(!person.sees().contains("ancient"));
    person.press("End");
    let sees = person.sees();
    assert!(sees.contains(">361  bo") && sees.contains("ancient") && !sees.contains("End: older"), "{sees}");
    assert_eq!(person.answered(), []);
    person.press("Space");
    assert!(person.ui.marks.contains(&JobId(361)), "one of them is marked like any other");
    person.press("Space r");
    assert!(person.sees().contains("361"), "and can be submitted again: {}", person.sees());
    assert!(person.ui.overlay.is_some(), "{}", person.sees());
    let mut short = Person::at(busy(), (80, 24), Glyphs::Ascii);
    short.press("4 End");
    assert_eq!(short.answered(), [], "the snapshot has all of them");
}
