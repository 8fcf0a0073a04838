//! The message row: what is on it, how long, what Enter does about it, and where the rest is read.

use super::*;
use overnight::model::Failure;
use overnight::tui::{Brought, Errand, Level, LogFind, LogFound, Measured};

/// Longer than any row here.
const LONG: &str = "cannot raise #147: above the limit for your user, which is 50 as the operator has set it in the \
                    configuration of this machine; ask them, or lower another job of yours first; nothing has changed";

impl Person {
    fn hears_of(&mut self, job: u64, text: &str) {
        let asked = Asked::Command(Some(JobId(job)));
        let reply = Box::new(Reply::Refused { message: text.into() });
        let now = self.ui.now;
        receive(&mut self.ui, &mut self.snap, FeedEvent::Reply { asked, reply }, now);
    }

    /// The message row.
    fn row(&self) -> String {
        let sees = self.sees();
        let rows: Vec<&str> = sees.lines().collect();
        rows[rows.len() - 2].to_owned()
    }

    fn opened(&self) -> Option<u64> {
        self.ui.opened.map(|opened| opened.job.0)
    }
}

#[test]
fn an_error_comes_back_after_anything_less_and_stays_until_esc() {
    let mut person = Person::at(busy(), (80, 24));
    person.hears_of(147, "above the limit");
    person.ui.say(Level::Info, "the mouse is on", None);
    assert!(person.row().starts_with("the mouse is on") && person.row().contains("Esc: back to the error"));
    person.ui.say(Level::Warning, "no job is selected", None);
    person.later(8_000);
    assert!(person.row().starts_with("! above the limit"), "{}", person.row());
    person.later(3_600_000);
    assert!(person.row().starts_with("! above the limit"), "{}", person.row());
    person.ui.say(Level::Info, "the mouse is off", None);
    person.press("Esc");
    assert!(person.row().starts_with("! above the limit"), "one thing a press: {}", person.row());
    person.press("Esc");
    assert!(!person.row().contains("above the limit"), "{}", person.row());
    // Good news is no reason to hide what was just answered, nor the error behind it.
    person.hears_of(147, "above the limit");
    person.ui.say(Level::Info, "the mouse is on", None);
    let mut snap = person.snap.clone();
    let mut row = (*snap.jobs.remove(0)).clone();
    row.state = Cursor::Done;
    row.outcome = Some(Outcome::Succeeded);
    let name = row.name.clone();
    snap.history.insert(0, Arc::new(row));
    let now = person.ui.now;
    receive(&mut person.ui, &mut person.snap, FeedEvent::Snapshot(Box::new(snap)), now);
    assert!(person.row().starts_with("the mouse is on"), "{}", person.row());
    assert!(person.ui.said.back().is_some_and(|said| said.text.contains(&name)), "it is in :messages");
    person.press("Esc Esc");
    // A newer error is the one that stays.
    person.hears_of(147, "first");
    person.hears_of(147, "second");
    person.press("Esc");
    assert_eq!(person.message(), "");
}

#[test]
fn a_long_message_ends_in_dots_and_enter_shows_the_whole_of_it() {
    for size in [(60, 12), (80, 24), (120, 40)] {
        let mut person = Person::at(busy(), size);
        person.on(147);
        person.hears_of(147, LONG);
        let sees = person.sees();
        let row = sees.lines().find(|row| row.contains("! cannot raise #147")).unwrap();
        assert!(row.contains("..") && row.contains("Enter: details"), "{size:?}: {row}");
        person.press("Enter");
        assert!(person.sees().contains("Messages") && person.opened().is_none(), "{}", person.sees());
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
        let sees: String = person.sees().replace(['|', '+'], " ");
        for part in ["above the limit for your user", "nothing has changed"] {
            assert!(words(&sees).contains(part), "{size:?}: {part}: {sees}");
        }
        person.press("Esc Enter");
        assert_eq!(person.opened(), Some(147), "then it is the row under the cursor again");
    }
}

#[test]
fn enter_follows_the_message_only_while_the_row_says_so() {
    let fails = |person: &mut Person| {
        person.on(147);
        let mut snap = person.snap.clone();
        let at = snap.jobs.iter().position(|row| row.id == JobId(144)).unwrap();
        let mut row = (*snap.jobs.remove(at)).clone();
        row.state = Cursor::Done;
        row.outcome = Some(Outcome::Failed(Failure::Code(1)));
        snap.history.insert(0, Arc::new(row));
        let now = person.ui.now;
        receive(&mut person.ui, &mut person.snap, FeedEvent::Snapshot(Box::new(snap)), now)
    };
    let mut person = Person::at(busy(), (80, 24));
    fails(&mut person);
    assert!(person.row().contains("Enter: open   Esc: clear"), "{}", person.row());
    person.press("Enter");
    assert_eq!((person.opened(), person.message()), (Some(144), ""));
    for key in ["Space", "j", "m m"] {
        let mut person = Person::at(busy(), (80, 24));
        fails(&mut person);
        person.press(key);
        assert!(!person.row().contains("Enter: open"), "{key}: {}", person.row());
        let cursor = person.ui.queue_job.map(|job| job.0);
        person.press("Enter");
        assert_eq!(person.opened(), cursor, "{key}");
    }
    // What is not on the row is not followed.
    let mut person = Person::at(busy(), (80, 24));
    person.ui.say(Level::Info, "#141 llama-ft-8b-a: succeeded", Some(JobId(141)));
    let closes = person.ui.now.wall_ms + 5_000;
    person.changes(143, |row| row.cancel_at = Some(closes));
    assert!(person.row().contains("cancelling #143"), "{}", person.row());
    person.on(147).press("Enter");
    assert_eq!(person.opened(), Some(147));
    // Nor does an error that was gone on after hide a cancel while it can be undone.
    let mut person = Person::at(busy(), (80, 24));
    fails(&mut person);
    let closes = person.ui.now.wall_ms + 5_000;
    person.changes(143, |row| row.cancel_at = Some(closes));
    assert!(person.row().starts_with("! #144"), "it is new: {}", person.row());
    person.press("j");
    assert!(
        person.row().starts_with("cancelling #143") && person.row().ends_with("u undo"),
        "{}",
        person.row()
    );
    person.changes(143, |row| row.cancel_at = None);
    assert!(person.row().starts_with("! #144"), "{}", person.row());
    // How it ended is read in fifty columns too.
    let mut person = Person::at(busy(), (50, 10));
    person.changes(144, |row| row.name = "a-name-that-has-all-the-columns-of-the-row".into());
    fails(&mut person);
    let sees = person.sees();
    let row = sees.lines().find(|row| row.contains("! #144")).unwrap();
    assert!(row.contains("..") && row.contains("failed: exit 1  Enter: open"), "{row}");
}

#[test]
fn the_newest_cancel_is_offered_and_only_while_nothing_newer_was_done() {
    let mut person = Person::at(busy(), (80, 24));
    let start = person.ui.now.wall_ms;
    for (job, after) in [(149, 0), (151, 2_000), (147, 1_000)] {
        person.changes(job, |row| row.cancel_at = Some(start + after + 10_000));
    }
    person.later(2_000);
    let row = person.row();
    assert!(
        row.starts_with("cancelling #151 in 10 s (+2 more, the first in 8 s)") && row.ends_with("u undo"),
        "{row}"
    );
    person.later(1_000);
    person.on(152).press("+");
    let reply = Box::new(Reply::Ok { message: "#152 has priority 10".into() });
    let asked = Asked::Command(Some(JobId(152)));
    let now = person.ui.now;
    receive(&mut person.ui, &mut person.snap, FeedEvent::Reply { asked, reply }, now);
    assert!(person.row().starts_with("#152 has priority 10"), "it is what u takes back: {}", person.row());
    person.press("Esc");
    let row = person.row();
    assert!(row.starts_with("cancelling #151") && row.ends_with("U undo list"), "{row}");
    person.press("u");
    assert!(person.row().ends_with("u undo"), "{}", person.row());
}

#[test]
fn notices_are_read_whole_among_the_messages() {
    let mut snap = busy();
    let text = "no GPU found: the NVML library is missing (libnvidia-ml.so.1); install the NVIDIA driver of this \
                machine, or look at simulated GPUs with overnight demo";
    snap.notices.insert(0, Notice { level: NoticeLevel::Error, text: text.into(), job: None });
    let mut person = Person::at(snap, (80, 24));
    let row = person.row();
    assert!(row.starts_with("! no GPU found: the NVML library") && row.ends_with(":messages"), "{row}");
    assert!(row.contains(".."), "{row}");
    person.on(147).press("Enter");
    assert_eq!(person.opened(), Some(147), "a notice stays for days: Enter is not its");
    person.press("q : m e s s a g e s Enter");
    for part in ["no GPU found: the NVML library is missing", "overnight demo"] {
        assert!(person.sees().contains(part), "{part}: {}", person.sees());
    }
}

#[test]
fn what_a_job_ended_by_is_told_with_its_end() {
    let mut person = Person::at(busy(), (80, 24));
    let mut snap = person.snap.clone();
    let at = snap.jobs.iter().position(|row| row.id == JobId(144)).unwrap();
    let mut row = (*snap.jobs.remove(at)).clone();
    row.state = Cursor::Done;
    row.outcome = Some(Outcome::Failed(Failure::Code(1)));
    snap.history.insert(0, Arc::new(row.clone()));
    let now = person.ui.now;
    let out = receive(&mut person.ui, &mut person.snap, FeedEvent::Snapshot(Box::new(snap)), now);
    assert!(out.contains(&UiCommand::Detail(JobId(144))), "{out:?}");
    let mut known = detail(&busy());
    known.row = row;
    known.notes = vec!["the GPU's memory was not enough: ask for more with request.gpu_memory".into()];
    receive(&mut person.ui, &mut person.snap, FeedEvent::Detail(Box::new(known)), now);
    assert!(
        person.row().starts_with("! #144 eval-nightly: failed: exit 1 (CUDA out of memory)"),
        "{}",
        person.row()
    );
    person.press("Enter");
    assert!(person.sees().contains("end   failed: exit 1 (CUDA out of memory)"), "{}", person.sees());
}

#[test]
fn every_end_is_kept_and_what_nobody_wanted_is_shown() {
    let mut person = Person::at(busy(), (80, 24));
    let mut snap = person.snap.clone();
    let ends = [
        (142, Outcome::Failed(Failure::Code(1))),
        (143, Outcome::Succeeded),
        (144, Outcome::Cancelled { by: "bo".into() }),
    ];
    for (id, outcome) in ends {
        let at = snap.jobs.iter().position(|row| row.id == JobId(id)).unwrap();
        let mut row = (*snap.jobs.remove(at)).clone();
        (row.state, row.outcome) = (Cursor::Done, Some(outcome));
        snap.history.insert(0, Arc::new(row));
    }
    let now = person.ui.now;
    let out = receive(&mut person.ui, &mut person.snap, FeedEvent::Snapshot(Box::new(snap)), now);
    assert!(person.message().starts_with("#142 llama-ft-8b: failed"), "{}", person.message());
    let told = out.iter().filter(|one| matches!(one, UiCommand::Notify(_))).count();
    assert_eq!(told, 1, "one call for all: {out:?}");
    person.press(": messages Enter");
    for name in ["#142", "#143", "#144"] {
        assert!(person.sees().contains(name), "{name}: {}", person.sees());
    }
}

#[test]
fn a_cancel_names_the_signal_and_is_not_offered_once_the_job_has_ended() {
    let mut person = Person::at(busy(), (80, 24));
    person.ui.me = "bo".into();
    let out = person.on(144).press("x");
    let folder = person.snap.jobs.iter().find(|row| row.id == JobId(144)).unwrap().directory.join("output");
    assert!(out.contains(&UiCommand::Errand(Errand::Measure(folder.clone()))), "{out:?}");
    assert!(person.sees().contains("Stops with its stop signal"), "{}", person.sees());
    let mut known = detail(&busy());
    known.row = (**person.snap.jobs.iter().find(|row| row.id == JobId(144)).unwrap()).clone();
    for (spec, words) in [
        (serde_json::json!({"work": {}}), "Stops with SIGTERM, SIGKILL after 30 s."),
        (
            serde_json::json!({"work": {"stop": {"signal": "USR1", "grace": "2m"}}}),
            "Stops with SIGUSR1, SIGKILL after 120 s.",
        ),
    ] {
        known.spec = spec;
        let now = person.ui.now;
        receive(&mut person.ui, &mut person.snap, FeedEvent::Detail(Box::new(known.clone())), now);
        assert!(person.sees().contains(words), "{words}: {}", person.sees());
    }
    assert!(person.sees().contains("Output so far is kept in "), "{}", person.sees());
    let now = person.ui.now;
    let measured = Brought::Measured { path: folder, found: Some(Measured { bytes: 214 << 20, files: 31 }) };
    receive(&mut person.ui, &mut person.snap, FeedEvent::Brought(measured), now);
    assert!(person.sees().contains("Output so far (214 MiB) is kept in "), "{}", person.sees());
    person.changes(144, |row| {
        row.state = Cursor::Done;
        row.outcome = Some(Outcome::Succeeded);
    });
    let sees = person.sees();
    assert!(sees.contains("#144 has ended") && !sees.contains("[y] Cancel job"), "{sees}");
    assert_eq!(person.press("y"), Vec::new());
    assert!(person.ui.overlay.is_none());
}

#[test]
fn q_gives_the_screen_back_before_it_quits() {
    let mut person = Person::at(busy(), (120, 40));
    person.press("z");
    assert!(person.ui.zoom && person.sees().contains("q back"), "{}", person.sees());
    assert_eq!(person.press("q"), Vec::new());
    assert!(!person.ui.zoom);
    assert_eq!(person.press("q"), [UiCommand::Quit]);
}

#[test]
fn that_a_search_went_on_at_the_other_end_is_told_until_the_next_key() {
    let mut person = Person::at(busy(), (80, 24));
    person.on(144).press("l");
    person.press("/ s t e p Enter");
    let find: LogFind = person.ui.log.find.clone().unwrap();
    let now = person.ui.now;
    let found = FeedEvent::Found(find.id, LogFound::Line(0, true));
    receive(&mut person.ui, &mut person.snap, found, now);
    assert_eq!(person.message(), "the search went on at the end");
    person.press("j");
    assert_eq!(person.message(), "");
}
