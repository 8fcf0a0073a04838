//! The dashboard by its keys: orders, groups, columns, marks, filters, menus and the mouse, as people press them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "support/keys.rs"]
mod keys;
#[path = "dashboard/overlays.rs"]
mod overlays;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use fixtures::{busy, empty, many};
use overnight::model::{Cursor, Generation, JobId, Span};
use overnight::protocol::{
    Command, JobRow, MeterBy, Place, Query, Reply, Request, Snapshot, SubmittedJob, UndoRow,
};
use overnight::tui::{
    Action, Asked, Column, Depth, FeedEvent, Filter, Flow, Glyphs, GpuTab, Group, Key, Keymap, Mode, Overlay,
    Period, Range, Screen, TABLE, Tab, Ui, UiCommand, load, mode, next_deadline, paint, receive, settle,
    tick, update,
};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::collections::BTreeMap;
use std::sync::Arc;

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
        self.event(keys::pressed(key))
    }

    fn event(&mut self, pressed: KeyEvent) -> Vec<UiCommand> {
        let action = self.ui.keys.action(mode(&self.ui), self.ui.prefix, pressed);
        action.map_or_else(Vec::new, |action| self.does(action))
    }

    fn does(&mut self, action: Action) -> Vec<UiCommand> {
        let now = self.ui.now;
        update(&mut self.ui, action, &self.snap, now)
    }

    fn types(&mut self, text: &str) -> Vec<UiCommand> {
        let press = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
        text.chars().flat_map(|c| self.event(press(c))).collect()
    }

    fn on(&mut self, job: u64) -> &mut Self {
        self.ui.queue_job = Some(JobId(job));
        settle(&mut self.ui, &self.snap);
        self
    }

    fn mark(&mut self, jobs: &[u64]) {
        for job in jobs {
            self.on(*job).press("Space");
        }
    }

    /// The scheduler changes jobs.
    fn changes(&mut self, change: impl Fn(&mut JobRow)) -> Vec<UiCommand> {
        let mut snap = self.snap.clone();
        for row in &mut snap.jobs {
            change(Arc::make_mut(row));
        }
        let now = self.ui.now;
        receive(&mut self.ui, &mut self.snap, FeedEvent::Snapshot(Box::new(snap)), now)
    }

    fn hears(&mut self, job: u64, reply: Reply) {
        let asked = Asked::Command(Some(JobId(job)));
        let now = self.ui.now;
        receive(&mut self.ui, &mut self.snap, FeedEvent::Reply { asked, reply: Box::new(reply) }, now);
    }

    /// Presses `u`, and hears what can be undone, the newest first.
    fn undoes(&mut self, rows: Vec<UndoRow>) -> Vec<UiCommand> {
        let asked = [UiCommand::Ask { flow: Flow::Newest, request: Request::Query(Query::Undoable) }];
        assert_eq!(self.press("u"), asked);
        let (asked, reply) = (Asked::Flow(Flow::Newest), Box::new(Reply::Undoable(rows)));
        let now = self.ui.now;
        receive(&mut self.ui, &mut self.snap, FeedEvent::Reply { asked, reply }, now)
    }

    fn later(&mut self, ms: u64) -> Vec<UiCommand> {
        let now = self.ui.now.plus(Span(ms));
        tick(&mut self.ui, &self.snap, now)
    }

    fn lines(&self) -> Vec<String> {
        let (width, height) = self.ui.size;
        let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
        paint(&mut buf, &self.ui, &self.snap, &load("auto", None, Depth::C256).unwrap());
        (0..height).map(|y| (0..width).map(|x| buf[(x, y)].symbol()).collect::<String>()).collect()
    }

    fn sees(&self) -> String {
        self.lines().iter().map(|row| row.trim_end().to_owned() + "\n").collect()
    }

    fn message(&self) -> &str {
        self.ui.message.as_ref().map_or("", |message| &message.text)
    }

    /// The jobs of the table, from top to bottom.
    fn jobs(&self) -> Vec<u64> {
        let words = ["RUN", "WAIT", "OUT", "RENT", "PAUS", "STOP", "DONE", "FAIL", "LIMIT", "CANC", "LOST"];
        let row = |line: &String| {
            let line: Vec<&str> = line.trim_start_matches(['|', '>', ' ']).split_whitespace().collect();
            let state = line.iter().take(4).position(|word| words.contains(word))?;
            line[..state]
                .iter()
                .find_map(|word| word.trim_end_matches('*').parse::<u64>().ok().filter(|n| *n > 99))
        };
        self.lines().iter().filter_map(row).collect()
    }

    /// Where a text stands on the screen.
    fn find(&self, text: &str) -> (u16, u16) {
        let lines = self.lines();
        let y = lines
            .iter()
            .position(|line| line.contains(text))
            .unwrap_or_else(|| panic!("{text}:\n{}", self.sees()));
        (lines[y].find(text).unwrap() as u16, y as u16)
    }
}

fn commands(sent: &[UiCommand]) -> Vec<&Command> {
    sent.iter()
        .filter(|sent| !matches!(sent, UiCommand::Look { .. }))
        .map(|sent| match sent {
            UiCommand::Send { command, .. } => command,
            other => panic!("a command was expected: {other:?}"),
        })
        .collect()
}

/// A change of this account that can be undone, made so many milliseconds after the start.
fn change(job: u64, after_ms: i64) -> UndoRow {
    UndoRow {
        job: JobId(job),
        name: format!("job-{job}"),
        what: "priority 0 -> 10".into(),
        by: "me".into(),
        at: fixtures::now().wall_ms + after_ms,
        until: fixtures::now().wall_ms + 3_600_000,
    }
}

fn ok() -> Reply {
    Reply::Ok { message: "done".into() }
}

// ---- orders, groups, columns ----

#[test]
fn the_title_says_the_order_and_the_same_letter_reverses_it() {
    let mut person = Person::at(busy(), (80, 24));
    assert!(person.sees().contains("order ^"), "{}", person.sees());
    person.press("s");
    assert!(person.sees().contains("Order by") && person.sees().contains("order ^"), "{}", person.sees());
    person.press("n");
    assert!(person.sees().contains("name ^"), "{}", person.sees());
    assert_eq!(person.jobs()[..2], [148, 149], "big-eval, diffusion-xl");
    person.press("s n");
    assert!(person.sees().contains("name v"), "{}", person.sees());
    assert_eq!(person.jobs()[0], 150, "vit-sweep-04");
    person.press("F6 g");
    assert_eq!(person.jobs()[0], 147, "eight GPUs are the most");
    person.press("s o");
    assert_eq!(person.jobs()[0], 142);
    person.press("s Down Enter");
    assert_eq!(person.ui.tables.queue.key, Key::Id);
    person.press("s Esc 4 s w");
    assert!(person.sees().contains("wait v"), "{}", person.sees());
    assert_eq!(person.ui.tables.history.key, Key::Wait);
}

#[test]
fn an_order_that_changes_by_itself_stands_still_while_the_cursor_is_moved() {
    let mut person = Person::at(busy(), (80, 24));
    person.press("s h");
    assert_eq!(person.jobs()[..2], [145, 142], "{}", person.sees());
    person.press("g g j");
    assert_eq!(person.ui.queue_job, Some(JobId(142)));
    person.changes(|row| {
        if row.id == JobId(143) {
            row.closed_gpu_ms = 90_000_000;
        }
    });
    assert_eq!(person.jobs()[..2], [145, 142], "not under the finger");
    let wakes = next_deadline(&person.ui, &person.snap, &person.ui.now, 10_000);
    assert!(wakes.is_some_and(|ms| ms <= 3000), "{wakes:?}");
    person.later(3000);
    assert_eq!(person.jobs()[..3], [143, 145, 142], "{}", person.sees());
    assert_eq!(person.ui.queue_job, Some(JobId(142)), "the cursor stays on its job");
    // An order that only people change follows at once.
    person.press("s p j");
    person.changes(|row| {
        if row.id == JobId(152) {
            row.priority = overnight::model::Priority::clamped(90);
        }
    });
    assert_eq!(person.jobs()[0], 152);
}

#[test]
fn rows_stand_in_groups_with_their_sums() {
    let mut person = Person::at(busy(), (120, 40));
    person.press("v");
    assert!(person.sees().contains("ana  3 jobs") && person.sees().contains("by user"), "{}", person.sees());
    assert_eq!(person.jobs()[..3], [142, 146, 147]);
    person.press("g g j j j");
    assert_eq!(person.ui.queue_job, Some(JobId(143)), "the cursor passes over a group's name");
    person.press("v");
    assert!(person.sees().contains("RUN  3 jobs"), "{}", person.sees());
    person.press("v");
    assert!(
        person.sees().contains("gpu 0  1 job  ") && person.sees().contains("no GPU"),
        "{}",
        person.sees()
    );
    person.press("F5");
    assert_eq!(person.ui.tables.queue.group, Group::None);
    person.press("4 v v");
    assert_eq!(person.ui.tables.history.group, Group::Day);
    assert!(person.sees().contains("Mon 2026-11-30  6 jobs  "), "{}", person.sees());
    person.press("v");
    assert!(person.sees().contains("week of 2026-11-30"), "{}", person.sees());
    // The row under the cursor is seen in a long list of groups too.
    let mut person = Person::at(many(), (80, 24));
    person.press("v G");
    assert!(person.lines().iter().any(|line| line.starts_with('>')), "{}", person.sees());
}

#[test]
fn columns_are_switched_and_moved_and_the_rest_is_reached_sideways() {
    let mut person = Person::at(busy(), (80, 24));
    person.press("C Space");
    assert!(person.sees().contains("[ ] USER"), "{}", person.sees());
    person.press("Enter");
    let head = person.lines().into_iter().find(|line| line.contains("STATE")).unwrap();
    assert!(!head.contains("USER"), "{head}");
    // The name stays; J moves it behind GPU.
    person.press("C j Space J Enter");
    let head = person.lines().into_iter().find(|line| line.contains("STATE")).unwrap();
    assert!(head.find("GPU") < head.find("NAME"), "{head}");
    person.press("F2");
    for _ in 0..11 {
        person.press("j");
    }
    person.press("q");
    assert!(person.ui.overlay.is_none());
    for (_, on) in &mut person.ui.tables.queue.columns {
        *on = true;
    }
    let head = |person: &Person| person.lines().into_iter().find(|line| line.contains("STATE")).unwrap();
    assert!(!head(&person).contains("END BY"), "{}", head(&person));
    person.press("> Right > > > > >");
    assert!(head(&person).contains("END BY") && head(&person).contains("NAME"), "{}", head(&person));
    person.press("< < Left < < < < <");
    assert_eq!(person.ui.tables.queue.sideways, 0);
    assert!(person.ui.tables.queue.columns.iter().any(|(column, _)| *column == Column::Why));
}

#[test]
fn a_pane_has_the_screen_and_gives_it_back() {
    let mut person = Person::at(busy(), (120, 40));
    let before = person.sees();
    person.press("Tab z");
    assert!(
        person.sees().contains("GPUs  7/8") && !person.sees().contains("Queue  all"),
        "{}",
        person.sees()
    );
    person.press("Tab");
    assert!(person.ui.zoom && person.sees().contains("Meter  60.96"), "the next pane: {}", person.sees());
    person.press("z Tab Tab Tab");
    assert_eq!(person.sees(), before);
    let mut person = Person::at(many(), (80, 24));
    let rows = person.jobs().len();
    person.press("z");
    assert!(person.jobs().len() >= rows + 6, "{}", person.sees());
    person.press("Esc");
    assert_eq!(person.jobs().len(), rows);
}

// ---- marks ----

#[test]
fn marks_are_seen_counted_and_cleared_last() {
    let mut person = Person::at(busy(), (80, 24));
    person.on(151).press("Space Space");
    assert_eq!(person.ui.queue_job, Some(JobId(149)), "each goes one down");
    assert!(
        person.lines().iter().any(|line| line.starts_with("2*") && line.contains("151")),
        "{}",
        person.sees()
    );
    assert!(person.sees().contains("2 marked"), "{}", person.sees());
    person.press("/ u : c y Enter");
    assert!(person.sees().contains("2 marked, 2 hidden"), "{}", person.sees());
    assert_eq!(
        commands(&person.press("+")).len(),
        1,
        "what is hidden is not touched: the cursor's job is meant"
    );
    person.press("Esc");
    assert!(person.ui.filters.jobs.is_empty() && person.ui.marks.len() == 2, "first the filter");
    person.press("Esc");
    assert!(person.ui.marks.is_empty(), "then the marks");
    person.press("a");
    assert_eq!(person.ui.marks.len(), 11);
    person.changes(|_| {});
    person.press("a");
    assert!(person.ui.marks.is_empty(), "again: none");
    let mut wide = Person::at(busy(), (120, 40));
    wide.mark(&[151]);
    assert!(wide.sees().contains("11 jobs  1 marked"), "{}", wide.sees());
}

#[test]
fn marked_jobs_keep_their_order_when_they_move() {
    let snap = || {
        let mut snap = busy();
        for row in &mut snap.jobs {
            Arc::make_mut(row).user = "me".into();
            Arc::make_mut(row).priority = overnight::model::Priority::NORMAL;
        }
        snap
    };
    // The line is 147 151 152 149 150.
    for (key, marked, sent, line) in [
        ("t", [152, 149], vec![149, 152], [152, 149, 147, 151, 150]),
        ("b", [147, 152], vec![147, 152], [151, 149, 150, 147, 152]),
        ("K", [152, 149], vec![152, 149], [147, 152, 149, 151, 150]),
        ("J", [151, 152], vec![152, 151], [147, 149, 151, 152, 150]),
        ("K", [147, 152], vec![152], [147, 152, 151, 149, 150]),
    ] {
        let mut person = Person::at(snap(), (80, 24));
        person.mark(&marked);
        let out = person.press(key);
        let moved: Vec<u64> = commands(&out)
            .into_iter()
            .map(|command| match command {
                Command::Move { job, generation: Generation(1), .. } => job.0,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(moved, sent, "{key} {marked:?}");
        assert_eq!(person.jobs()[5..10], line, "{key} {marked:?}: {}", person.sees());
    }
}

#[test]
fn an_action_on_marked_jobs_is_told_in_one_message_and_undone_whole() {
    let mut person = Person::at(busy(), (80, 24));
    person.mark(&[142, 151, 152, 149]);
    let out = person.press("+");
    assert_eq!(commands(&out).len(), 3, "the running one is refused here");
    person.hears(151, ok());
    person.hears(152, Reply::Refused { message: "above the limit for your user: max 0".into() });
    assert_eq!(person.message(), "", "not before all have answered");
    person.hears(149, ok());
    let text = person.message().to_owned();
    assert!(text.starts_with("2 raised, 2 refused: cannot raise #142: already running; above"), "{text}");
    let raise = |row: &mut JobRow| {
        if [151, 149].contains(&row.id.0) {
            row.priority = overnight::model::Priority::clamped(10);
            row.generation = row.generation.next();
        }
    };
    assert_eq!(person.changes(raise), Vec::new());
    let out = person.undoes(vec![change(149, 1), change(151, 1)]);
    let back = [149, 151].map(|job| Command::Undo { job: Some(JobId(job)) });
    assert_eq!(commands(&out), back.iter().collect::<Vec<_>>(), "what was refused is not taken back");
}

#[test]
fn pausing_marked_jobs_pauses_all_or_resumes_all() {
    let mut person = Person::at(busy(), (80, 24));
    person.mark(&[151, 148]);
    assert!(matches!(commands(&person.press("H"))[..], [Command::Pause { job: JobId(151), .. }]));
    let mut person = Person::at(busy(), (80, 24));
    person.mark(&[148]);
    assert!(matches!(commands(&person.press("H"))[..], [Command::Resume { job: JobId(148), .. }]));
}

#[test]
fn few_of_ones_own_are_cancelled_by_y_and_each_as_it_was_seen() {
    let mut person = Person::at(busy(), (80, 24));
    person.mark(&[151, 152]);
    assert_eq!(person.press("x Enter"), Vec::new(), "Keep is the default");
    assert_eq!(person.press("x"), Vec::new());
    assert!(
        person.sees().contains("Cancel 2 jobs ?") && person.sees().contains("tokenise-wiki"),
        "{}",
        person.sees()
    );
    // One of them changes while the question is open.
    person.changes(|row| {
        if row.id == JobId(152) {
            row.generation = Generation(7);
        }
    });
    let out = person.press("y");
    let undo = Span::secs(10);
    assert_eq!(
        commands(&out),
        [&Command::Cancel { job: JobId(151), generation: Generation(1), undo, now: false }]
    );
    person.hears(151, ok());
    assert_eq!(person.message(), "1 cancelled, 1 refused: #152 changed meanwhile: not cancelled");
    let out = person.undoes(vec![change(151, 1)]);
    assert_eq!(commands(&out), [&Command::Undo { job: Some(JobId(151)) }]);
}

/// Two jobs are raised together, and it is confirmed.
fn raises_two(person: &mut Person) {
    person.mark(&[151, 149]);
    person.press("+");
    person.hears(151, ok());
    person.hears(149, ok());
    person.changes(|row| row.generation = row.generation.next());
}

#[test]
fn the_newest_action_is_taken_back_first_be_it_of_one_job_or_of_many() {
    let mut person = Person::at(busy(), (80, 24));
    raises_two(&mut person);
    person.press("Esc Esc");
    person.later(60_000);
    // One of them, and another one, by themselves.
    person.on(152).press("-");
    person.hears(152, ok());
    person.later(2_000);
    person.on(151).press("H");
    person.hears(151, ok());
    person.changes(|row| row.generation = row.generation.next());
    let newest = Command::Undo { job: None };
    let many = vec![change(149, 1), change(151, 1)];
    let then = |more: &[UndoRow]| [more, &many].concat();
    let out = person.undoes(then(&[change(151, 62_001), change(152, 60_001)]));
    assert_eq!(commands(&out), [&newest], "what was done to one of them since");
    let out = person.undoes(then(&[change(152, 60_001)]));
    assert_eq!(commands(&out), [&newest], "what was done to another one since");
    let back = [149, 151].map(|job| Command::Undo { job: Some(JobId(job)) });
    let out = person.undoes(many.clone());
    assert_eq!(commands(&out), back.iter().collect::<Vec<_>>(), "the whole of it");
    assert_eq!(commands(&person.press("u")), [&newest], "nothing is left that only this screen knows");
}

#[test]
fn an_undo_that_is_pressed_before_the_last_one_is_answered_follows_it() {
    let mut person = Person::at(busy(), (80, 24));
    raises_two(&mut person);
    assert_eq!(person.press("u u").len(), 1, "one question at a time");
    let answer =
        |rows| FeedEvent::Reply { asked: Asked::Flow(Flow::Newest), reply: Box::new(Reply::Undoable(rows)) };
    let now = person.ui.now;
    let rows = vec![change(152, 5), change(149, 1), change(151, 1)];
    let out = receive(&mut person.ui, &mut person.snap, answer(rows), now);
    let [UiCommand::Send { command: Command::Undo { job: None }, .. }, UiCommand::Ask { flow, .. }] =
        &out[..]
    else {
        panic!("{out:?}")
    };
    assert_eq!(*flow, Flow::Newest, "asked anew, behind the first");
    let rows = vec![change(149, 1), change(151, 1)];
    let out = receive(&mut person.ui, &mut person.snap, answer(rows), now);
    assert_eq!(commands(&out).len(), 2);
}

#[test]
fn many_or_somebody_elses_are_cancelled_only_by_their_number() {
    // Somebody else's: the number is 1.
    let mut person = Person::at(busy(), (80, 24));
    person.on(147).press("x");
    assert!(person.sees().contains("Type 1 and Enter"), "{}", person.sees());
    assert_eq!(person.press("y Enter"), Vec::new());
    assert!(person.ui.overlay.is_some(), "a wrong number does nothing");
    assert_eq!(person.press("C-u 1"), Vec::new());
    assert!(matches!(commands(&person.press("Enter"))[..], [Command::Cancel { job: JobId(147), .. }]));
    // Six of one's own.
    let mut person = Person::at(many(), (80, 24));
    person.ui.me = "ana".into();
    let own: Vec<u64> =
        person.snap.jobs.iter().filter(|row| row.user == "ana").map(|row| row.id.0).take(6).collect();
    person.mark(&own);
    assert_eq!(person.press("x"), Vec::new());
    assert!(
        person.sees().contains("Cancel 6 jobs ?") && person.sees().contains("and 1 more"),
        "{}",
        person.sees()
    );
    assert_eq!(person.press("y 5 Enter"), Vec::new());
    person.press("Esc");
    assert_eq!(person.ui.marks.len(), 6, "Esc keeps the marks");
    person.press("Esc Esc Esc");
    assert!(person.ui.marks.is_empty());
    person.mark(&own);
    let out = person.press("x 6 ! Enter");
    assert_eq!(out.len(), 6);
    assert!(commands(&out).iter().all(|c| matches!(c, Command::Cancel { undo: Span(0), .. })), "{out:?}");
}

#[test]
fn done_jobs_that_are_marked_are_submitted_again() {
    let mut person = Person::at(busy(), (80, 24));
    person.press("4 Space Space");
    assert!(person.sees().contains("2 marked"), "{}", person.sees());
    assert_eq!(person.press("r Enter"), Vec::new(), "Keep is the default");
    assert_eq!(person.press("r"), Vec::new());
    assert!(person.sees().contains("Submit again 2 jobs ?"), "{}", person.sees());
    let out = person.press("y");
    let jobs: Vec<u64> = commands(&out)
        .iter()
        .filter_map(|c| if let Command::Retry { job, .. } = c { Some(job.0) } else { None })
        .collect();
    assert_eq!(jobs, [141, 140]);
    let accepted = |id: u64| {
        let (id, name) = (Some(JobId(id)), "again".to_owned());
        let job = SubmittedJob {
            id,
            name,
            place: Some(4),
            why: None,
            starts_at: None,
            starts_by: None,
            late: false,
            gpus: Vec::new(),
        };
        Reply::Submitted { jobs: vec![job], diagnostics: Vec::new() }
    };
    person.hears(141, accepted(161));
    person.hears(140, accepted(162));
    assert_eq!(person.message(), "2 submitted again   u removes them");
    let waits = person.snap.jobs.iter().find(|row| row.id == JobId(151)).unwrap().clone();
    for id in [161, 162] {
        person.snap.jobs.push(Arc::new(JobRow { id: JobId(id), ..(*waits).clone() }));
    }
    person.later(9_000);
    let out = person.undoes(vec![change(151, -5_000)]);
    let gone: Vec<u64> = commands(&out)
        .iter()
        .filter_map(|c| if let Command::Cancel { job, undo: Span(0), .. } = c { Some(job.0) } else { None })
        .collect();
    assert_eq!(gone, [161, 162]);
    let mut person = Person::at(busy(), (80, 24));
    person.press("4 a");
    assert_eq!(person.press("r"), Vec::new(), "six ask first");
    assert!(person.sees().contains("Submit again 6 jobs ?"), "{}", person.sees());
    assert_eq!(person.press("6 Enter").len(), 6);
}

#[test]
fn without_an_answer_it_is_told_as_it_stands() {
    let mut person = Person::at(busy(), (80, 24));
    person.mark(&[151, 152]);
    person.press("H");
    person.hears(151, ok());
    person.later(10_000);
    assert_eq!(person.message(), "1 paused, 1 without an answer");
}

#[test]
fn one_change_without_an_answer_is_told_too() {
    let mut person = Person::at(busy(), (80, 24));
    person.on(151).press("+");
    person.later(10_000);
    assert_eq!(person.message(), "#151: the scheduler has not answered: it is as it was");
    let mut person = Person::at(busy(), (80, 24));
    person.on(151).press("+");
    person.hears(151, ok());
    person.later(10_000);
    assert_eq!(person.message(), "", "nothing changed, and the scheduler has said so");
}

#[test]
fn a_cancel_of_a_job_that_waits_does_not_go_to_one_that_runs_meanwhile() {
    for starts in [true, false] {
        let mut person = Person::at(busy(), (80, 24));
        assert_eq!(commands(&person.on(151).press("+")).len(), 1);
        assert_eq!(commands(&person.press("x y")), [] as [&Command; 0], "behind the change");
        let mut sent = person.changes(|row| {
            if row.id == JobId(151) {
                row.generation = row.generation.next();
                row.state = if starts { Cursor::Running } else { row.state };
            }
        });
        sent.extend(person.later(1_000));
        let cancels = commands(&sent).iter().filter(|one| matches!(one, Command::Cancel { .. })).count();
        assert_eq!(cancels, usize::from(!starts), "{sent:?}");
        let said = person.message().contains("it went on meanwhile, and is not cancelled");
        assert_eq!(said, starts, "{}", person.message());
    }
}

#[test]
fn pause_pressed_twice_on_marked_jobs_resumes_them() {
    let mut person = Person::at(busy(), (80, 24));
    person.mark(&[151, 152]);
    assert!(commands(&person.press("H")).iter().all(|one| matches!(one, Command::Pause { .. })));
    person.press("H");
    let mut sent = person.changes(|row| {
        if [151, 152].contains(&row.id.0) {
            row.generation = row.generation.next();
            row.paused_by = Some("me".into());
        }
    });
    sent.extend(person.later(1_000));
    let resumed = commands(&sent).iter().filter(|one| matches!(one, Command::Resume { .. })).count();
    assert_eq!(resumed, 2, "{sent:?}");
}

#[test]
fn what_is_cancelled_or_submitted_again_is_marked_no_more() {
    let mut person = Person::at(busy(), (80, 24));
    person.mark(&[151, 152]);
    person.press("+");
    assert_eq!(person.ui.marks.len(), 2, "what is pressed again and again stays marked");
    person.later(10_000);
    person.press("x Esc");
    assert_eq!(person.ui.marks.len(), 2);
    assert_eq!(commands(&person.press("x y")).len(), 2);
    assert!(person.ui.marks.is_empty());
}

// ---- filters ----

#[test]
fn a_filter_has_fields_comparisons_expressions_and_inversions() {
    let mut person = Person::at(busy(), (80, 24));
    for (typed, left) in [
        ("g:>2", vec![147, 149, 148]),
        ("g:2..4 s:wait", vec![149, 150]),
        ("g:<=1 u:me", vec![151, 152]),
        ("n:/^vit.*0[34]$/", vec![143, 150]),
        ("n:/VIT/", vec![]),
        ("/l+ama/ -s:run", vec![146, 147]),
        ("-s:paus !u:ana u:/^(me|cy)$/", vec![145, 151, 152, 149]),
        ("gpu:4", vec![144]),
        ("gpu:>=6", vec![146]),
        ("id:>150", vec![151, 152]),
        ("#15", vec![151, 152, 150]),
        ("\"8b-b\"", vec![146]),
        ("s:waiting u:", vec![147, 151, 152, 149, 150]),
        ("TOKENISE wiki", vec![151]),
        ("p:x", vec![]),
    ] {
        person.ui.filters.jobs = typed.into();
        assert_eq!(person.ui.filters.jobs.error(), None, "{typed}");
        settle(&mut person.ui, &person.snap);
        assert_eq!(person.jobs(), left, "{typed}");
    }
    person.ui.filters.jobs = "g:>0".into();
    person.press("m");
    assert_eq!(person.jobs(), [151, 152, 148], "own jobs compose with it");
}

#[test]
fn what_cannot_be_read_is_said_while_it_is_typed_and_the_rows_stay() {
    let mut person = Person::at(busy(), (80, 24));
    person.press("/");
    person.types("u:me g:");
    assert_eq!(person.jobs(), [151, 152, 148]);
    person.types("x");
    assert_eq!(person.jobs(), [151, 152, 148], "as they were");
    assert!(person.sees().contains("! g: takes a number"), "{}", person.sees());
    assert!(person.sees().contains("3/11 jobs"), "{}", person.sees());
    for (typed, why) in [
        ("q:1", "no field `q:`"),
        ("s:zzz", "no state begins with `zzz`"),
        ("n:/(/", "not a regular expression"),
        ("id:/x/", "id: takes a number"),
        ("n:/a{1000}{1000}{1000}/", "not a regular expression"),
    ] {
        let filter = Filter::from(typed);
        let error = filter.error().unwrap_or_else(|| panic!("{typed}"));
        assert!(error.why.contains(why) && error.at == 0, "{typed}: {error:?}");
    }
    assert_eq!(Filter::from("ana g:?").error().unwrap().at, 4);
}

#[test]
fn an_active_filter_is_seen_in_reverse_on_every_table() {
    use ratatui::style::Modifier;
    for (size, key) in
        [((80, 24), "1"), ((120, 40), "1"), ((200, 50), "1"), ((80, 24), "4"), ((120, 40), "4")]
    {
        let mut person = Person::at(busy(), size);
        person.press(key);
        person.press("/ a n a Enter");
        let mut buf = Buffer::empty(Rect::new(0, 0, size.0, size.1));
        paint(&mut buf, &person.ui, &person.snap, &load("auto", None, Depth::C256).unwrap());
        let (x, y) = person.find("  /ana");
        assert!(buf[(x + 2, y)].modifier.contains(Modifier::REVERSED), "{size:?} {key}: {}", person.sees());
    }
}

// ---- menus, settings, messages, export ----

#[test]
fn settings_are_seen_at_once_and_taken_back_by_esc() {
    let mut person = Person::at(busy(), (80, 24));
    assert_eq!(person.press(","), [UiCommand::Themes]);
    let out = person.press("Right");
    let [UiCommand::Theme(first)] = &out[..] else { panic!("{out:?}") };
    assert!(first != "auto" && person.sees().contains(&format!("< {first} >")), "{}", person.sees());
    let first = first.clone();
    // It cannot be used: the one before stays on, and the next one is still the next.
    person.ui.theme = "auto".into();
    let out = person.press("Right");
    assert!(
        matches!(&out[..], [UiCommand::Theme(second)] if *second != first && second != "auto"),
        "{out:?}"
    );
    person.ui.theme = "auto".into();
    person.press("j Space");
    assert_eq!(person.ui.glyphs, Glyphs::Unicode);
    person.press("j Right");
    assert_eq!(person.ui.tick_ms, Some(1000));
    person.press("j Right");
    assert!(person.ui.thrift && person.sees().contains("< low >"), "{}", person.sees());
    assert_eq!(person.press("Esc"), [UiCommand::Theme("auto".into())]);
    assert_eq!((person.ui.glyphs, person.ui.tick_ms, person.ui.thrift), (Glyphs::Ascii, None, false));
    person.press(", j Space Enter");
    assert_eq!(person.ui.glyphs, Glyphs::Unicode);
    assert!(person.message().contains("for this session"), "{}", person.message());
    // Nor is one that cannot be used kept.
    person.press(", Right");
    person.ui.theme = "auto".into();
    person.press("Enter");
    assert!(person.message().contains("cannot be used: auto stays"), "{}", person.message());
}

#[test]
fn what_cannot_be_read_stays_open_with_why_not_beside_it() {
    let mut person = Person::at(busy(), (80, 24));
    person.press("/ g : x Enter");
    assert!(person.ui.typing && person.sees().contains("! "), "{}", person.sees());
    person.press("Backspace 2 Enter");
    assert!(!person.ui.typing && person.sees().contains("/g:2"), "{}", person.sees());
    person.press("Esc");
    person.on(144).press("l & r e : [ Enter");
    assert!(person.sees().contains("unclosed character class"), "{}", person.sees());
    person.press("a ] Enter");
    assert!(person.ui.log.only.is_some());
    // The line below the queue shows the end of all of it.
    person.press("q");
    assert!(person.ui.opened.is_none() && person.ui.log.only.is_none());
}

#[test]
fn what_was_said_can_be_read_again_in_full() {
    let mut person = Person::at(busy(), (80, 24));
    person.on(142).press("+");
    let long = "a long reason that goes on ".repeat(6) + "to its end";
    person.hears(142, Reply::Refused { message: long });
    person.press(": m e s s Enter");
    let seen = person.sees();
    assert!(
        seen.contains("09:26:40") && seen.contains("already running") && seen.contains("to its end"),
        "{seen}"
    );
    person.press("j j Esc");
    assert!(person.ui.overlay.is_none());
}

#[test]
fn the_history_that_is_shown_is_written_as_a_table() {
    let mut person = Person::at(busy(), (80, 24));
    let mut row = (*person.snap.history[0]).clone();
    row.name = "a,\"b\"".into();
    // Cancelled while it waited: it never began to end.
    (row.ended_at, row.done_at) = (None, Some(fixtures::WALL_MS));
    person.snap.history[0] = Arc::new(row);
    person.press("4 / s : d o n e Enter");
    let out = person.press(": e x p o r t Enter");
    let [UiCommand::Write { file, text, what }] = &out[..] else { panic!("{out:?}") };
    assert!(
        file.starts_with("overnight-history-2026-11-30-") && file.strip_suffix(".csv").is_some(),
        "{file}"
    );
    assert_eq!(text.lines().count(), 3, "two are done: {text}");
    assert!(text.contains("141,\"a,\"\"b\"\"\",ana,") && what == "2 jobs of the history", "{text}");
    assert!(text.lines().any(|line| line.contains("141,") && line.contains("T09:26:40")), "{text}");
}

#[test]
fn help_has_the_keys_of_all_places_as_they_are_bound() {
    let mut person = Person::at(busy(), (80, 24));
    let own = BTreeMap::from([("cancel".to_owned(), vec!["X".to_owned()])]);
    person.ui.keys = Arc::new(Keymap::with(&own).0);
    person.press("? c a n c e l");
    assert!(person.lines().iter().any(|line| line.contains("> X ")), "{}", person.sees());
    person.press("Esc ?");
    person.types("follow the end");
    assert!(person.sees().contains("log"), "{}", person.sees());
    person.press("Esc ?");
    person.types("erase a word");
    assert_eq!(person.press("Enter"), Vec::new());
    assert!(person.message().contains("works in a text field"), "{}", person.message());
}

#[test]
fn faults_of_ones_own_keys_name_what_was_meant() {
    let own = BTreeMap::from([
        ("cancle".to_owned(), vec!["X".to_owned()]),
        ("zoom".to_owned(), vec!["Hyper-x".to_owned()]),
        ("mark".to_owned(), vec!["j".to_owned()]),
    ]);
    let (map, faults) = Keymap::with(&own);
    assert!(faults[0].contains("did you mean `cancel`?"), "{faults:#?}");
    assert!(faults.iter().any(|fault| fault.contains("`Hyper-x` is no key")), "{faults:#?}");
    assert!(faults.iter().any(|fault| fault.contains("j is both mark and down")), "{faults:#?}");
    // An action with no key that is good keeps the table's.
    assert_eq!(map.key(Mode::Queue, &Action::Zoom), "z");
}

#[test]
fn what_cannot_be_seen_takes_no_keys() {
    let mut person = Person::at(busy(), (80, 24));
    person.on(142);
    person.ui.me = "ana".into();
    person.ui.size = (20, 6);
    assert_eq!(person.press("x y + ? / m"), []);
    assert!(person.ui.overlay.is_none() && !person.ui.typing && !person.ui.mine);
    person.ui.size = (80, 24);
    person.press("x");
    assert!(person.ui.overlay.is_some());
    person.ui.size = (20, 6);
    assert_eq!(person.press("y"), [], "a question that nobody sees is not answered");
    assert_eq!(person.press("q"), [UiCommand::Quit]);
}

#[test]
fn keys_that_are_no_work_of_the_line_stand_where_there_is_room() {
    let line = |size| Person::at(busy(), size).lines().last().unwrap().clone();
    assert!(line((80, 24)).contains("? help  q quit") && !line((80, 24)).contains(": cmd"));
    assert!(line((120, 40)).contains(": cmd") && line((120, 40)).contains("m mine"), "{}", line((120, 40)));
    assert!(line((200, 50)).contains("m mine") && line((200, 50)).contains("Space mark"));
}

// ---- the mouse ----

#[test]
fn a_click_selects_sorts_and_switches_and_the_wheel_scrolls_what_is_under_it() {
    let mut person = Person::at(busy(), (120, 40));
    assert_eq!(person.press("M"), []);
    assert!(person.ui.mouse);
    let click = |person: &mut Person, text: &str| {
        let (x, y) = person.find(text);
        person.does(Action::Click(x, y))
    };
    click(&mut person, "150 WAIT");
    assert_eq!(person.ui.queue_job, Some(JobId(150)));
    click(&mut person, "NAME");
    assert_eq!((person.ui.tables.queue.key, person.ui.tables.queue.down), (Key::Name, false));
    click(&mut person, "NAME");
    assert!(person.ui.tables.queue.down);
    let (x, y) = person.find("Log  ");
    person.does(Action::Wheel(x, y + 3, false));
    assert!(person.ui.log.stopped_at.is_some(), "the log under the pointer is scrolled");
    click(&mut person, "4 History");
    assert_eq!(person.ui.screen, Screen::History);
    click(&mut person, "RESULT");
    assert_eq!(person.ui.tables.history.key, Key::Result);
    assert_eq!(person.press("M"), []);
    assert!(!person.ui.mouse);
    // What lies under a question is not clicked.
    let mut person = Person::at(busy(), (80, 24));
    let (x, y) = person.find("2 GPUs");
    person.press("x");
    assert_eq!(person.does(Action::Click(x, y)), Vec::new());
    assert_eq!(person.ui.screen, Screen::Queue);
    let mut person = Person::at(busy(), (80, 24));
    person.press("s");
    let (x, y) = person.find("gpus");
    person.does(Action::Click(x, y));
    assert_eq!(person.ui.tables.queue.key, Key::Gpus);
}

// ---- everything ----

/// What asks for something to end or to run again: never out of a question that was not answered.
fn destroys(command: &UiCommand) -> bool {
    matches!(
        command,
        UiCommand::Send { command: Command::Cancel { .. } | Command::Clear { .. } | Command::Stop, .. }
    )
}

#[test]
fn every_action_is_done_from_the_palette_on_every_screen_and_size() {
    for snap in [empty(), busy()] {
        for (size, at) in [
            ((1, 1), &Screen::ALL[..1]),
            ((30, 6), &Screen::ALL[..1]),
            ((60, 12), &Screen::ALL[3..4]),
            ((80, 24), &Screen::ALL[..]),
            ((120, 40), &Screen::ALL[1..2]),
            ((200, 50), &Screen::ALL[..1]),
        ] {
            for at in at.iter().copied() {
                for row in TABLE.iter().filter(|row| !row.id.is_empty()) {
                    let mut person = Person::at(snap.clone(), size);
                    person.does(Action::Show(at));
                    person.press(":");
                    person.types(row.id);
                    let out = person.press("Enter");
                    assert!(!out.iter().any(destroys), "{} {at:?} {size:?}", row.id);
                    person.sees();
                }
            }
        }
    }
}

#[test]
fn every_line_of_the_help_is_done_without_harm() {
    for at in Screen::ALL {
        let rows = Keymap::default().rows().count();
        for line in 0..rows {
            let mut person = Person::at(busy(), (80, 24));
            person.does(Action::Show(at));
            person.press("?");
            for _ in 0..line {
                person.press("Down");
            }
            let out = person.press("Enter");
            assert!(!out.iter().any(destroys), "{line} {at:?}");
            person.sees();
        }
    }
}

#[test]
fn a_click_on_a_word_shows_what_it_names() {
    /// The middle of the last such word on the screen.
    fn at(person: &Person, line: &str, word: &str) -> (u16, u16) {
        let lines = person.lines();
        let y = lines.iter().rposition(|one| one.contains(line) && one.contains(word)).unwrap();
        let x = lines[y][..lines[y].rfind(word).unwrap()].chars().count();
        (x as u16 + 1, y as u16)
    }
    let click = |person: &mut Person, line: &str, word: &str| {
        let (x, y) = at(person, line, word);
        person.does(Action::Click(x, y));
    };
    for size in [(80, 24), (120, 40), (200, 50)] {
        let mut person = Person::at(busy(), size);
        person.ui.glyphs = Glyphs::Ascii;
        person.press("Enter");
        click(&mut person, "Summary", "Spec");
        assert_eq!(person.ui.opened.unwrap().tab, Tab::Spec, "{size:?}");
        click(&mut person, "Summary", "Files");
        assert_eq!(person.ui.opened.unwrap().tab, Tab::Files);
        person.press("q 3");
        click(&mut person, "by", "project");
        click(&mut person, "by", "30 days");
        assert_eq!((person.ui.meter_view.by, person.ui.meter_view.period), (MeterBy::Project, Period::Month));
        person.press("2");
        if size.0 < 110 {
            click(&mut person, "Charts", "Timeline");
            assert_eq!(person.ui.gpus_view.tab, GpuTab::Timeline);
            click(&mut person, "Charts", "Charts");
        }
        click(&mut person, "20 min", "24 h");
        assert_eq!(person.ui.gpus_view.range, Range::ALL[2], "{size:?}");
    }
    let mut person = Person::at(busy(), (120, 40));
    person.ui.glyphs = Glyphs::Ascii;
    click(&mut person, "Summary", "Events");
    assert_eq!(person.ui.opened.unwrap().tab, Tab::Events, "from the job's pane");
}

fn any_key() -> impl Strategy<Value = KeyEvent> {
    let keys = prop_oneof![
        8 => prop::sample::select(" abcdefghijklmnopqrstuvwxyzACDEGHJKMORTZ0123456789/:<>+-=![]|,?*#".chars().collect::<Vec<_>>())
            .prop_map(KeyCode::Char),
        1 => any::<char>().prop_map(KeyCode::Char),
        4 => prop::sample::select(vec![
            KeyCode::Enter, KeyCode::Esc, KeyCode::Tab, KeyCode::BackTab, KeyCode::Up, KeyCode::Down, KeyCode::Left,
            KeyCode::Right, KeyCode::Home, KeyCode::End, KeyCode::PageUp, KeyCode::PageDown, KeyCode::Backspace,
        ]),
        1 => (1_u8..=12).prop_map(KeyCode::F),
    ];
    (keys, prop::bool::weighted(0.1)).prop_map(|(code, control)| {
        KeyEvent::new(code, if control { KeyModifiers::CONTROL } else { KeyModifiers::NONE })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Nothing is cancelled except by `y`, `!`, a button that was chosen, or the number that was asked for.
    #[test]
    fn no_keys_break_it_and_nothing_is_cancelled_unasked(
        keys in prop::collection::vec(any_key(), 1..40),
        size in (1_u16..220, 1_u16..60),
        of in 0_usize..3,
    ) {
        let mut person = Person::at([empty(), busy(), many()][of].clone(), size);
        for key in keys {
            let asked = matches!(
                person.ui.overlay,
                Some(Overlay::Confirm(_) | Overlay::Bulk(_) | Overlay::Clear(_))
            );
            let out = person.event(key);
            prop_assert!(asked || !out.iter().any(destroys), "{key:?} sent {out:?}");
        }
        person.sees();
    }

    #[test]
    fn clicks_and_the_wheel_anywhere_break_nothing(
        at in prop::collection::vec((0_u16..230, 0_u16..70, 0_u8..3), 1..12),
        size in (1_u16..220, 1_u16..60),
    ) {
        let mut person = Person::at(busy(), size);
        for (x, y, what) in at {
            let action = match what {
                0 => Action::Click(x, y),
                1 => Action::Wheel(x, y, true),
                _ => Action::Wheel(x, y, false),
            };
            let out = person.does(action);
            prop_assert!(!out.iter().any(destroys), "{out:?}");
        }
        person.sees();
    }

    #[test]
    fn any_text_is_a_filter_or_says_where_it_is_none(text in "\\PC{0,60}") {
        let filter = Filter::from(text.as_str());
        if let Some(error) = filter.error() {
            prop_assert!(text.is_char_boundary(error.at) && !error.why.is_empty());
        }
        for row in busy().jobs {
            filter.matches(&*row);
        }
    }

}

#[test]
fn what_is_turned_round_lets_through_the_others() {
    for term in ["u:ana", "s:wait", "g:>1", "n:/a/", "gpu:0..3", "id:<147", "vit", "\"8b\""] {
        let (plain, turned) = (Filter::from(term), Filter::from(format!("!{term}").as_str()));
        for row in busy().jobs {
            assert!(plain.matches(&*row) != turned.matches(&*row), "{term} {}", row.name);
        }
    }
    for row in busy().jobs {
        let own = format!("id:{} n:\"{}\"", row.id.0, row.name.to_uppercase());
        assert!(Filter::from(own.as_str()).matches(&*row), "{own}");
    }
}

#[test]
fn moves_of_marked_jobs_are_undone_the_last_first() {
    let mut person = Person::at(busy(), (80, 24));
    person.mark(&[151, 152]);
    assert_eq!(person.press("b"), Vec::new(), "both are last already");
    assert!(
        person.message().starts_with("0 moved, 2 refused: #152 is already last")
            || person.message().starts_with("0 moved, 2 refused: #151 is already last"),
        "{}",
        person.message()
    );
    person.changes(|row| row.user = "me".into());
    let out = person.press("b");
    let moves = |out: &[UiCommand]| {
        commands(out).iter().all(|c| matches!(c, Command::Move { to: Place::Bottom, .. }))
    };
    let looks = out.iter().filter(|one| matches!(one, UiCommand::Look { .. })).count();
    assert!(moves(&out) && out.len() == 4 && looks == 2, "each is asked about before it is done: {out:?}");
    person.hears(151, ok());
    person.hears(152, ok());
    assert_eq!(person.message(), "2 moved");
    let order = [JobId(152), JobId(151)];
    let out = person.undoes(order.map(|job| change(job.0, 1)).to_vec());
    let back: Vec<_> = order.iter().map(|job| Command::Undo { job: Some(*job) }).collect();
    assert_eq!(commands(&out), back.iter().collect::<Vec<_>>(), "sent 151, 152: taken back 152, 151");
}
