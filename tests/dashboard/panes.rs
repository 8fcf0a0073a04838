//! What panes say, and which keys they have: nothing is cut for good, nothing is offered that cannot be seen to happen.

use super::*;
use overnight::protocol::{Diagnostic, InboxRow, InboxState, Severity};
use overnight::tui::{Brought, GpusView, Measured, MeterView, Pane};

impl Person {
    fn types(&mut self, text: &str) {
        for c in text.chars() {
            let now = self.ui.now;
            let key = KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
            let action = self.ui.keys.action(mode(&self.ui), self.ui.prefix, key);
            update(&mut self.ui, action.unwrap_or_else(|| panic!("{c} means nothing")), &self.snap, now);
        }
    }

    fn line_with(&self, text: &str) -> String {
        let found = self.sees().lines().find(|line| line.contains(text)).map(str::to_owned);
        found.unwrap_or_else(|| panic!("{text:?} is not there:\n{}", self.sees()))
    }

    fn keys_line(&self) -> String {
        self.sees().lines().last().unwrap_or_default().to_owned()
    }

    #[track_caller]
    fn has(&self, text: &str) {
        assert!(self.sees().contains(text), "{text:?} is not there:\n{}", self.sees());
    }

    #[track_caller]
    fn has_no(&self, text: &str) {
        assert!(!self.sees().contains(text), "{text:?} is there:\n{}", self.sees());
    }

    fn goes_to(&mut self, pane: Pane) {
        for _ in 0..8 {
            if self.ui.focus != pane {
                self.press("Tab");
            }
        }
        assert_eq!(self.ui.focus, pane);
    }
}

#[test]
fn views_turn_only_where_they_are_seen() {
    let mut person = Person::at(busy(), (120, 40));
    for pane in [Pane::Gpus, Pane::Meter, Pane::Log] {
        person.goes_to(pane);
        for words in ["time range", "zoom", "tabs"] {
            assert!(!person.keys_line().contains(words), "{pane:?}: {}", person.keys_line());
        }
        person.press("] [ ] 0");
        if pane != Pane::Log {
            person.press("T T + =");
            assert!(person.message().contains("does nothing here"), "{}", person.message());
        }
        assert_eq!((person.ui.gpus_view, person.ui.meter_view), (GpusView::default(), MeterView::default()));
        assert_eq!(person.ui.opened, None);
    }
    person.goes_to(Pane::Gpus);
    person.press("T");
    assert_eq!(
        person.message(),
        "T does nothing here (GPUs: how far back: the next stretch of time); ? shows the keys"
    );
    person.press(": z o o m - i n Enter");
    assert_eq!(person.message(), "there is no stretch of time here: see GPUs");
    assert_eq!(person.ui.gpus_view, GpusView::default());
    // The same pane with the screen to itself has its views.
    person.press("z ]");
    assert_ne!(person.ui.gpus_view, GpusView::default());
    person.press("z 3");
    assert!(person.keys_line().contains("T time range"));
    person.press("T");
    assert_ne!(person.ui.meter_view, MeterView::default());
}

#[test]
fn what_cannot_be_done_to_an_ended_job_is_answered_with_the_reason() {
    let mut person = Person::at(busy(), (80, 24));
    person.press("4");
    let job = person.ui.history_job.unwrap();
    let ended = |verb: &str| format!("cannot {verb} #{job}: it has ended");
    for (key, verb) in
        [("x", "cancel"), ("+", "raise"), ("t", "move"), ("J", "move"), ("H", "pause"), ("e", "edit")]
    {
        person.ui.message = None;
        person.press(key);
        assert_eq!(person.message(), ended(verb), "{key}");
    }
    person.press("Esc Enter");
    for (key, verb) in [("+", "raise"), ("-", "lower"), ("t", "move"), ("K", "move"), ("E", "edit")] {
        person.ui.message = None;
        person.press(key);
        assert_eq!(person.message(), ended(verb), "{key} in the opened job");
    }
    assert!(!person.keys_line().contains("prio"));
}

#[test]
fn held_today_and_rate_are_on_every_screen_with_a_header() {
    for size in [(60, 12), (80, 24), (100, 30), (120, 40), (180, 45), (200, 50)] {
        for screen in Screen::ALL {
            for zoom in [false, true] {
                let mut person = Person::at(busy(), size);
                let now = person.ui.now;
                update(&mut person.ui, Action::Show(screen), &person.snap, now);
                if zoom {
                    person.press("z");
                }
                for number in ["7/8", "60.96", "+7"] {
                    assert!(
                        person.sees().contains(number),
                        "{size:?} {screen:?} {zoom}: {number}\n{}",
                        person.sees()
                    );
                }
            }
        }
    }
    // In every state at once the last to go are what runs, what waits and the numbers.
    let mut snap = busy();
    for (at, state) in [Cursor::Returning, Cursor::Releasing].into_iter().enumerate() {
        let mut row = running(job(900 + at as u64, "bo", "more", 1), 60, &[]);
        row.state = state;
        snap.jobs.push(Arc::new(row));
    }
    Arc::make_mut(&mut snap.jobs[0]).cancel_at = Some(now().wall_ms + 3000);
    let person = Person::at(snap, (60, 12));
    let first = person.sees().lines().next().unwrap().to_owned();
    for part in ["RUN 2", "WAIT 5", "7/8 60.94h +", "LIVE"] {
        assert!(first.contains(part), "{part}: {first}");
    }
}

#[test]
fn a_waiting_jobs_last_line_says_when_it_starts_and_why_it_is_late() {
    let mut person = Person::at(busy(), (80, 24));
    person.on(147);
    assert!(
        person.sees().contains("wait| needs 8 free, about 10:26, no later than 11:56"),
        "{}",
        person.sees()
    );
    person.changes(147, |row| {
        row.late = true;
        row.finish_by = Some(now().wall_ms + 3_600_000);
        row.finishes_at = Some(now().wall_ms + 3 * 3_600_000);
    });
    assert!(person.sees().contains("wait| will miss 10:26 by 2h00m"), "{}", person.sees());
    person.on(142);
    assert!(person.sees().contains("log| "), "{}", person.sees());
}

#[test]
fn how_much_a_running_job_has_written_is_told_with_its_output() {
    let mut person = Person::at(busy(), (200, 50));
    person.on(144);
    assert!(person.sees().contains("-> output/") && !person.sees().contains("so far"));
    let path = person.snap.jobs.iter().find(|row| row.id == JobId(144)).unwrap().directory.join("output");
    let found = Some(Measured { bytes: 214 << 20, files: 31 });
    let now = person.ui.now;
    let brought = FeedEvent::Brought(Brought::Measured { path, found });
    receive(&mut person.ui, &mut person.snap, brought, now);
    assert!(person.sees().contains("-> output/ (214 MiB, 31 files so far)"), "{}", person.sees());
    person.ui.size = (120, 40);
    assert!(person.sees().contains("-> output/ (214 MiB so far)"), "{}", person.sees());
    person.on(142);
    assert!(!person.sees().contains("so far"), "it is another job's");
}

#[test]
fn a_list_with_more_rows_than_its_box_shows_where_one_is_in_it() {
    let mut person = Person::at(many(), (120, 40));
    let edge = |person: &Person| -> Vec<bool> {
        let rows: Vec<String> = person.sees().lines().map(str::to_owned).collect();
        let head = rows.iter().position(|row| row.contains("STATE")).unwrap();
        let foot = rows.iter().position(|row| row.contains(" jobs ")).unwrap();
        rows[head + 1..foot].iter().map(|row| row.chars().nth(71) == Some('#')).collect()
    };
    let first = edge(&person);
    assert!(first[0] && !first[first.len() - 1], "{}", person.sees());
    person.press("G");
    let last = edge(&person);
    assert!(!last[0] && last[last.len() - 1], "{}", person.sees());
    assert!(!edge(&Person::at(busy(), (120, 40))).contains(&true), "all of it is shown");
}

#[test]
fn a_new_day_begins_with_nothing_though_nothing_stirs() {
    let mut snap = busy();
    snap.jobs.clear();
    let mut person = Person::at(snap, (80, 24));
    assert!(person.sees().contains("today 18 ok 2 fail") && person.sees().contains("61.02 GPU-h today"));
    let midnight = next_deadline(&person.ui, &person.snap, &person.ui.now, 1000).unwrap();
    person.later(midnight + 1);
    assert!(
        person.sees().contains("today 0 ok") && person.sees().contains("0.00 GPU-h today"),
        "{}",
        person.sees()
    );
}

#[test]
fn a_job_that_is_edited_still_waits() {
    let mut snap = busy();
    let row = snap.jobs.iter_mut().find(|row| row.id == JobId(151)).unwrap();
    Arc::make_mut(row).editing =
        Some(overnight::protocol::EditMark { by: "me".into(), until: now().wall_ms + 60_000 });
    let person = Person::at(snap, (80, 24));
    person.has("EDIT");
    person.has("WAIT 5");
}

#[test]
fn a_frozen_or_stale_display_says_so_where_there_is_no_header_and_one_does_not_hide_the_other() {
    let mut person = Person::at(busy(), (40, 8));
    person.has_no("FROZEN");
    person.press("p");
    person.has("FROZEN");
    person.ui.connection = Connection::Stale { age: Span::secs(14) };
    for size in [(40, 8), (60, 12), (80, 24), (120, 40)] {
        person.ui.size = size;
        person.has("FROZEN");
        person.has("STALE 14 s");
    }
    person.ui.size = (40, 8);
    person.press("p");
    person.has_no("FROZEN");
    person.has("STALE 14 s");
}

#[test]
fn a_screen_that_is_too_small_always_says_how_large_it_must_be() {
    for size in [(29, 5), (28, 5), (24, 4), (24, 1), (12, 2), (11, 1), (6, 3), (4, 1), (200, 3), (50, 5)] {
        let person = Person::at(busy(), size);
        person.has("30x6");
    }
    Person::at(busy(), (24, 4)).has("(30x6 needed, have 24x4)");
    Person::at(busy(), (60, 4)).has("overnight: 3 run 5 wait (30x6 needed, have 60x4)");
}

#[test]
fn nothing_failed_in_a_job_that_was_cancelled_while_it_waited() {
    let mut snap = busy();
    let mut row = done(job(170, "me", "not-any-more", 1), 60, 0, Outcome::Cancelled { by: "me".into() });
    (row.rented_at, row.started_at) = (None, None);
    snap.history.insert(0, Arc::new(row));
    let mut person = Person::at(snap, (80, 24));
    person.press("4 Enter");
    person.has("#170 not-any-more");
    person.has_no("[!]");
    person.has("[-] rent");
}

#[test]
fn names_have_the_room_that_there_is_and_keep_their_ends() {
    let mut snap = busy();
    let names = ["llama-ft-70b-on-the-whole-corpus-lr1e-4", "llama-ft-70b-on-the-whole-corpus-lr3e-4"];
    for (at, name) in names.into_iter().enumerate() {
        snap.jobs.push(Arc::new(job(180 + at as u64, "ana", name, 1)));
    }
    for size in [(30, 6), (60, 12), (80, 24), (120, 40)] {
        let mut person = Person::at(snap.clone(), size);
        person.press("G");
        person.has("lr3e-4");
    }
    let person = Person::at(snap, (250, 60));
    for name in names {
        person.has(name);
    }
    // A low screen can be a wide one.
    let person = Person::at(busy(), (200, 10));
    person.has("USER");
    person.has("WHY / WHERE");
    person.has("after #151");
}

#[test]
fn long_lines_of_an_opened_job_go_on_below_and_can_be_searched() {
    let mut person = Person::at(busy(), (60, 14));
    let mut whole = detail(&person.snap);
    let words: Vec<String> = (0..40).map(|n| format!("--option-{n}")).collect();
    whole.spec = serde_json::json!({"work": {"run": words.join(" ")}, "output": []});
    person.ui.opened = Some(Opened { job: JobId(144), tab: Tab::Spec, scroll: 0 });
    person.ui.detail = Some(Box::new(whole));
    person.has("--option-5");
    let mut seen = String::new();
    for _ in 0..20 {
        seen.push_str(&person.sees());
        person.press("j");
    }
    for word in &words {
        assert!(seen.contains(&format!("{word}\n")) || seen.contains(&format!("{word} ")), "{word}\n{seen}");
    }
    person.press("G / o p t i o n - 3 9 Enter");
    person.has("--option-39");
    person.press("g g / - 2 Enter");
    person.has("--option-20");
    let first = person.ui.opened.unwrap().scroll;
    person.press("n");
    assert!(person.ui.opened.unwrap().scroll > first, "the next match is further down");
    person.press("N N");
    assert!(person.message().contains("went on at the end"), "{}", person.message());
    person.press("/ z z Enter");
    assert_eq!(person.message(), "no line of this tab has \"zz\"");
    person.press("Esc Esc");
    assert!(person.ui.opened.is_some() && person.ui.log.search.is_none(), "Esc takes the search first");
}

#[test]
fn the_summary_cuts_nothing() {
    let mut person = Person::at(busy(), (60, 24));
    let command = "python train.py --data /a/very/long/path/to/some/data/that/goes/on --seed 7 --the-end";
    person.changes(144, |row| row.command = command.into());
    person.on(144).press("Enter");
    person.has("--the-end");
    person.has("lease 144");
}

#[test]
fn the_tabs_of_a_job_are_named_however_much_there_is_to_say_about_its_log() {
    let mut person = Person::at(busy(), (80, 24));
    person.on(144).press("l");
    person.press("/ a n y t h i n g - a t - a l l Enter & a - r a t h e r - l o n g - t e x t Enter");
    person.has("Summary [Log] Spec Files Events");
}

#[test]
fn the_pane_of_a_job_names_its_tabs_and_leads_to_them() {
    let mut person = Person::at(busy(), (120, 40));
    person.has("[Summary] Log Spec Files Events");
    person.has("/ search  n next  f follow");
    person.on(144).goes_to(Pane::Job);
    person.press("]");
    assert_eq!(person.ui.opened.map(|opened| (opened.job, opened.tab)), Some((JobId(144), Tab::Log)));
}

fn refused(name: &str) -> InboxRow {
    let known: Vec<String> = (0..24).map(|n| format!("field_{n}")).collect();
    let state = InboxState::Refused {
        diagnostics: vec![Diagnostic {
            severity: Severity::Error,
            code: 1,
            message: "unknown field `gpu_count`".into(),
            file: format!("~/overnight/inbox/{name}"),
            line: 7,
            column: 3,
            width: 9,
            source: Some("  gpu_count: 2".into()),
            label: Some("not a field of request".into()),
            hint: Some(
                "this is a hint of many words, so many that they do not fit in one line of eighty columns"
                    .into(),
            ),
            known,
            fix: None,
        }],
    };
    InboxRow { name: name.into(), at: now().wall_ms, state }
}

#[test]
fn a_finding_is_read_to_its_end_and_more_files_are_told_of() {
    let mut snap = busy();
    snap.inbox = (0..9).map(|n| refused(&format!("sweep-{n}.yaml"))).collect();
    let mut person = Person::at(snap, (80, 24));
    person.press("5");
    person.has("= known fields: field_0");
    person.has("of eighty columns");
    person.has("of 9 files");
    person.press("PgDn PgDn PgDn");
    person.has("field_23");
    person.has("!>");
    // Beside the queue too the row under the cursor has a mark of its own.
    person.ui.size = (200, 50);
    person.press("1");
    person.goes_to(Pane::Inbox);
    person.has("!>sweep-0.yaml");
    person.goes_to(Pane::Gpus);
    person.has("0>[");
}

#[test]
fn no_device_is_no_riddle() {
    let mut snap = busy();
    snap.gpus.clear();
    snap.scheduler.gpus_by =
        "none: no NVML: libnvidia-ml.so.1 cannot be loaded: install the NVIDIA driver".into();
    for size in [(60, 12), (80, 24), (120, 40), (200, 50)] {
        let mut snap = snap.clone();
        (snap.jobs, snap.history) = (Vec::new(), Vec::new());
        let seen = Person::at(snap, size).sees();
        let words = seen.replace(['|', '\n'], " ");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("libnvidia-ml.so.1"), "{size:?}\n{seen}");
        assert!(seen.contains("overnight demo") || size.0 >= 110, "{size:?}\n{seen}");
    }
}

#[test]
fn the_history_is_scrolled_sideways_so_that_names_have_room() {
    let mut snap = busy();
    let name = "vit-sweep-with-a-name-that-is-longer-than-anybody-needs-99";
    snap.history.insert(0, Arc::new(done(job(171, "bo", name, 1), 60, 60, Outcome::Succeeded)));
    let mut person = Person::at(snap, (80, 24));
    person.press("4");
    person.has_no(name);
    person.press("> > > > > > > > > > >");
    person.has(name);
    person.has_no("RESULT");
    person.press("< < < < < < < < < < <");
    person.has("USER  RESULT");
}

#[test]
fn one_job_is_one_job() {
    let mut snap = busy();
    snap.jobs.truncate(1);
    let person = Person::at(snap, (120, 40));
    person.has(" 1 job -");
}

#[test]
fn a_line_of_the_help_that_has_no_room_is_told_in_full_below() {
    let mut person = Person::at(busy(), (44, 12));
    person.press("?");
    for _ in 0..90 {
        let seen = person.sees();
        let row = seen.lines().find(|line| line.contains("|> ")).unwrap_or_default().to_owned();
        if row.contains("..") {
            let start = row.trim_start_matches("|> ").split("  ").nth(1).unwrap_or_default();
            let start = start.trim_start().split("..").next().unwrap_or_default();
            assert!(seen.matches(start).count() >= 2, "{row}\n{seen}");
        }
        person.press("Down");
    }
    person.press("Esc ? s u b m i t");
    person.has("submit a finished job again");
}

#[test]
fn devices_and_files_are_filtered_on_their_own_screens() {
    for size in [(60, 12), (80, 24), (120, 40), (200, 50)] {
        let mut person = Person::at(busy(), size);
        person.press("2 /");
        assert!(person.ui.typing, "{size:?}");
        person.types("u:bo");
        person.has("3/8 GPUs");
        let held = |person: &Person| {
            let gpu = person.snap.gpus.iter().find(|gpu| Some(&gpu.uuid) == person.ui.gpu.as_ref());
            gpu.unwrap().jobs.clone()
        };
        assert_eq!(held(&person), [JobId(143)], "the cursor is on a row that is there: {size:?}");
        person.press("Enter j j j j");
        assert_eq!(held(&person), [JobId(144)], "{size:?}");
        person.has("/u:bo  3/8 GPUs");
        person.press("/");
        person.types(" s:zzz");
        if size.0 >= 80 {
            person.has("no state begins with `zzz`: free held");
        }
        person.press("C-u n o n e Enter");
        person.has("No GPU matches");
        // The queue has a filter of its own, and above it all devices are.
        person.press("1");
        person.has_no("/none");
        assert_eq!(person.ui.filters.jobs.text(), "");
        person.press("2 Esc");
        person.has_no("No GPU matches");
        assert!(person.ui.filters.gpus.is_empty());
    }
}

#[test]
fn the_inbox_is_filtered_where_it_stands_and_esc_brings_everything_back() {
    let snap = busy();
    let all = snap.inbox.len();
    for size in [(80, 24), (200, 50)] {
        let mut person = Person::at(snap.clone(), size);
        if size.0 == 80 {
            person.press("5");
        } else {
            person.goes_to(Pane::Inbox);
        }
        person.press("G");
        let before = person.ui.file.clone();
        person.press("/");
        person.types("s:refused");
        person.has(&format!("1/{all} files"));
        assert_eq!(person.ui.file.as_deref(), Some("sweep.yaml"));
        person.press("Esc");
        assert_eq!(person.ui.file, before, "the cursor is where it was");
        person.press("/");
        person.types("!s:refused");
        person.press("Enter");
        person.has("/!s:refused");
        person.has_no("! sweep.yaml");
        person.press("Esc");
        assert!(person.ui.filters.files.is_empty());
    }
}

#[test]
fn the_columns_of_the_history_are_chosen_and_what_keeps_them_is_told() {
    let mut person = Person::at(busy(), (80, 24));
    person.press("4");
    let head = |person: &Person| person.line_with("RESULT");
    assert!(head(&person).contains("LOAD") && !head(&person).contains("SUBMITTED"), "{}", head(&person));
    person.press("C");
    person.has("Columns of the history");
    // WAIT and RUN go, the time of submission comes.
    person.press("j j j j Space j Space j j j j j j j Space Enter");
    assert!(!head(&person).contains("WAIT") && head(&person).contains("SUBMITTED"), "{}", head(&person));
    assert!(person.message().contains("history_columns = [\"user\", \"result\""), "{}", person.message());
    person.press("1");
    person.has("WHY / WHERE");
}

#[test]
fn columns_are_what_the_configuration_names() {
    let mut person = Person::at(busy(), (80, 24));
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let wrong = person.ui.tables.choose(&names(&["why", "name", "nmae", "why"]), &[]);
    assert_eq!(wrong.len(), 2);
    assert!(wrong[0].starts_with("ui.columns: there is no column `nmae`: user name gpus"), "{}", wrong[0]);
    assert_eq!(wrong[1], "ui.columns: column `why` is there twice");
    let head = person.line_with("STATE");
    assert!(head.find("WHY") < head.find("NAME") && !head.contains("USER"), "{head}");
}

#[test]
fn the_newest_is_under_the_cursor_until_somebody_has_moved_it() {
    let mut person = Person::at(busy(), (80, 24));
    let arrive = |person: &mut Person, id: u64| {
        let mut snap = person.snap.clone();
        snap.history.insert(0, Arc::new(done(job(id, "bo", "new", 1), 60, 60, Outcome::Succeeded)));
        let now = person.ui.now;
        receive(&mut person.ui, &mut person.snap, FeedEvent::Snapshot(Box::new(snap)), now);
    };
    arrive(&mut person, 171);
    person.press("4");
    assert_eq!(person.ui.history_job, Some(JobId(171)));
    // Who looks at it has a row in mind.
    arrive(&mut person, 172);
    assert_eq!(person.ui.history_job, Some(JobId(171)));
    person.press("1");
    arrive(&mut person, 173);
    person.press("4");
    assert_eq!(person.ui.history_job, Some(JobId(173)));
    person.press("j j 1");
    let chosen = person.ui.history_job;
    arrive(&mut person, 174);
    person.press("4");
    assert_eq!(person.ui.history_job, chosen, "what was chosen stays");
}

#[test]
fn columns_that_were_tried_are_as_before_after_esc() {
    for key in ["Esc", "q"] {
        let mut person = Person::at(busy(), (80, 24));
        let before = person.ui.tables.queue.columns.clone();
        person.press("C Space j j J");
        assert_ne!(person.ui.tables.queue.columns, before);
        person.press(key);
        assert_eq!(person.ui.tables.queue.columns, before, "{key}");
    }
}

#[test]
fn a_job_that_is_being_cancelled_says_so_and_nothing_else_is_done_to_it() {
    let mut person = Person::at(busy(), (80, 24));
    person.ui.me = "ana".into();
    let at = person.ui.now.wall_ms + 10_000;
    person.on(147).press("+");
    person.changes(147, |row| {
        row.cancel_at = Some(at);
        row.cancel_by = Some("ana".into());
    });
    person.has("cancel in 10 s");
    person.has_no("prio 0 -> 10");
    for key in ["+", "-", "t", "J", "H", "E"] {
        person.ui.message = None;
        assert_eq!(person.press(key), Vec::new(), "{key}");
        assert!(person.message().ends_with("it is being cancelled"), "{key}: {}", person.message());
    }
    // Somebody else's cancel is theirs to take back.
    person.changes(147, |row| row.cancel_by = Some("bo".into()));
    person.has("bo cancels in 10 s");
    person.has_no("u undo");
}

#[test]
fn what_is_wrong_with_a_filter_is_read_whole() {
    let mut person = Person::at(busy(), (80, 24));
    person.press("2 /");
    person.types("g:>0");
    person.has("! no field `g:`; there are u: s: n: gpu: id:, and \"g:\" as text");
}
