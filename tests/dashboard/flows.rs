//! Flows of more than one step: what each key and each answer leads to.

use super::*;
use overnight::protocol::{
    Diagnostic, Edited, FieldChange, JobFile, Query, Request, Severity, SubmittedJob, UndoRow,
};
use overnight::tui::{Brought, Browsed, Desk, Errand, FileFor, Flow};
use std::path::PathBuf;

const GOOD: &str = "work: {run: python train.py}\ndata: []\nrequest: {gpus: 2, for: 2h}\noutput: []\n";

impl Person {
    fn at_work() -> Self {
        let mut person = Self::at(busy(), (100, 30));
        let (start, home) = ("/home/ana/work".into(), "/home/ana".into());
        person.ui.flows.desk = Desk { start, home, ..Desk::default() };
        person
    }

    fn gets(&mut self, event: FeedEvent) -> Vec<UiCommand> {
        let now = self.ui.now;
        receive(&mut self.ui, &mut self.snap, event, now)
    }

    fn brought(&mut self, brought: Brought) -> Vec<UiCommand> {
        self.gets(FeedEvent::Brought(brought))
    }

    fn told(&mut self, flow: Flow, reply: Reply) -> Vec<UiCommand> {
        self.gets(FeedEvent::Reply { asked: Asked::Flow(flow), reply: Box::new(reply) })
    }

    /// Presses `u`, and hears what can be undone, the newest first.
    fn undoes(&mut self, rows: Vec<UndoRow>) -> Vec<UiCommand> {
        let out = self.press("u");
        assert_eq!(asks(&out), (Flow::Newest, &Request::Query(Query::Undoable)));
        self.told(Flow::Newest, Reply::Undoable(rows))
    }

    #[track_caller]
    fn shows(&self, text: &str) {
        assert!(self.sees().contains(text), "{text:?} is not there:\n{}", self.sees());
    }

    #[track_caller]
    fn shows_no(&self, text: &str) {
        assert!(!self.sees().contains(text), "{text:?} is there:\n{}", self.sees());
    }
}

/// The only question of a step, and its flow.
#[track_caller]
fn asks(out: &[UiCommand]) -> (Flow, &Request) {
    match out {
        [UiCommand::Ask { flow, request }] => (*flow, request),
        other => panic!("one question was expected: {other:?}"),
    }
}

#[track_caller]
fn errand(out: &[UiCommand]) -> &Errand {
    match out {
        [UiCommand::Errand(errand)] => errand,
        other => panic!("one errand was expected: {other:?}"),
    }
}

fn train(id: Option<u64>, place: Option<u32>, why: Option<&str>) -> Vec<SubmittedJob> {
    vec![SubmittedJob {
        id: id.map(JobId),
        name: "train".to_owned(),
        place,
        why: why.map(str::to_owned),
        starts_at: None,
        starts_by: None,
        late: false,
        gpus: Vec::new(),
    }]
}

fn would(place: Option<u32>, why: Option<&str>) -> Reply {
    Reply::Checked { jobs: train(None, place, why), diagnostics: Vec::new() }
}

fn submitted(id: u64) -> Reply {
    Reply::Submitted { jobs: train(Some(id), Some(4), Some("needs 8 free")), diagnostics: Vec::new() }
}

fn wrong() -> Vec<Diagnostic> {
    vec![Diagnostic {
        severity: Severity::Error,
        code: 1,
        message: "unknown field `gpu_count` in request".into(),
        file: "bad.yaml".into(),
        line: 4,
        column: 3,
        width: 9,
        source: Some("  gpu_count: 1".into()),
        label: Some("not a field of request".into()),
        hint: Some("it is called `gpus`".into()),
        known: Vec::new(),
        fix: None,
    }]
}

/// The picker over two files, the first of which was read and found good.
fn picking() -> Person {
    let mut person = Person::at_work();
    assert_eq!(person.press("n"), [UiCommand::Errand(Errand::Browse)]);
    let files = ["/home/ana/work/train.yaml", "/home/ana/work/sub/bad.yaml"].map(PathBuf::from).to_vec();
    let out = person.brought(Brought::Browsed(Browsed { files, cut: false, templates: Vec::new() }));
    let path = PathBuf::from("/home/ana/work/train.yaml");
    assert_eq!(*errand(&out), Errand::Read(path.clone()), "the row under the cursor is read");
    let out = person.brought(Brought::Text { path, text: Ok(GOOD.into()) });
    let (flow, request) = asks(&out);
    let Request::Command(Command::Check(file)) = request else { panic!("{request:?}") };
    assert_eq!((file.text.as_slice(), file.stem.as_str()), (GOOD.as_bytes(), "train"));
    assert_eq!(file.base, Some("/home/ana/work".into()));
    assert_eq!(person.told(flow, would(Some(4), Some("needs 8 free"))), Vec::new());
    person
}

#[test]
fn the_picker_previews_with_the_schedulers_verdict_and_carets() {
    let mut person = picking();
    person.shows("ok: place 4, needs 8 free");
    person.shows("python train.py");
    insta::assert_snapshot!("new_job_100x30", person.sees());
    let out = person.press("Down");
    let path = PathBuf::from("/home/ana/work/sub/bad.yaml");
    assert_eq!(*errand(&out), Errand::Read(path.clone()));
    let out = person.brought(Brought::Text { path, text: Ok(b"request:\n  gpu_count: 1\n".to_vec()) });
    let (flow, _) = asks(&out);
    person.told(flow, Reply::Invalid { diagnostics: wrong() });
    person.shows("^^^^^^^^^ not a field of request");
    person.shows("hint: it is called `gpus`");
    // What is typed narrows; what nothing has is said.
    person.press("t r a");
    person.shows_no("sub/bad.yaml");
    person.press("z z");
    person.shows("Nothing has these letters");
    person.press("Esc");
    person.shows_no("New job");
}

#[test]
fn a_path_that_is_typed_is_a_file_wherever_it_lies() {
    for (typed, path) in [
        ("/data/jobs/x.yaml", "/data/jobs/x.yaml"),
        ("~/far/x.yaml", "/home/ana/far/x.yaml"),
        ("./near.yaml", "/home/ana/work/near.yaml"),
    ] {
        let mut person = picking();
        let mut asked = Vec::new();
        for c in typed.chars() {
            let key = KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
            let action = person.ui.keys.action(mode(&person.ui), person.ui.prefix, key).unwrap();
            let now = person.ui.now;
            asked = update(&mut person.ui, action, &person.snap, now);
            // What is read of each beginning is not there.
            while let Some(UiCommand::Errand(Errand::Read(path))) = asked.last().cloned() {
                let text = Err(format!("{} cannot be read", path.display()));
                asked = person.brought(Brought::Text { path, text });
            }
        }
        person.shows("cannot be read");
        let out = person.press("Enter");
        let read = UiCommand::Errand(Errand::Read(path.into()));
        assert_eq!(out, [read], "{typed}: {asked:?}");
        person.brought(Brought::Text { path: path.into(), text: Ok(GOOD.into()) });
        assert!(matches!(person.ui.overlay, Some(Overlay::Review(_))), "{}", person.sees());
    }
}

#[test]
fn tab_goes_to_templates_and_to_earlier_requests_of_which_none_is_twice() {
    let mut person = picking();
    let out = person.press("Tab");
    person.shows("[Templates]");
    let (flow, request) = asks(&out);
    assert!(matches!(request, Request::Command(Command::Check(file)) if file.stem == "training"));
    person.told(flow, would(None, None));
    person.shows("ok: would start now");
    let mut out = person.press("Tab");
    for text in ["one", "one", "two"] {
        let (flow, request) = asks(&out);
        let Request::Query(Query::JobFile { job }) = request else { panic!("{request:?}") };
        assert_eq!(flow, Flow::File(*job, FileFor::History));
        let file = JobFile {
            job: *job,
            generation: Generation(1),
            name: "again".into(),
            text: text.into(),
            base: None,
        };
        out = person.told(flow, Reply::JobFile(Box::new(file)));
        if let [UiCommand::Ask { flow: Flow::Check(_), .. }, UiCommand::Ask { .. }] = out[..] {
            out.remove(0);
        }
    }
    let listed = person.sees().matches("again").count();
    assert_eq!(listed, 2, "{}", person.sees());
}

/// The card over the good file.
fn reviewing() -> Person {
    let mut person = picking();
    let out = person.press("Enter");
    let path = PathBuf::from("/home/ana/work/train.yaml");
    assert_eq!(*errand(&out), Errand::Read(path.clone()), "as it is now");
    let out = person.brought(Brought::Text { path, text: Ok(GOOD.into()) });
    let (flow, _) = asks(&out);
    person.told(flow, would(Some(4), Some("needs 8 free")));
    person
}

#[test]
fn the_card_says_what_is_asked_for_and_enter_submits_it() {
    let mut person = reviewing();
    for text in ["train", "2h00m", "python train.py", "place 4, needs 8 free", "N-train/output"] {
        person.shows(text);
    }
    insta::assert_snapshot!("review_100x30", person.sees());
    // `q` is Esc's twin, and a letter of what is typed.
    person.press("p q");
    person.shows("to 100): q");
    person.press("Esc q");
    person.shows_no("Submit ?");
    person.shows("New job");
    let mut person = reviewing();
    let out = person.press("Enter");
    let (flow, request) = asks(&out);
    assert!(matches!(request, Request::Command(Command::Submit(file)) if file.text == GOOD.as_bytes()));
    assert_eq!(flow, Flow::Submit);
    person.shows_no("Submit ?");
    person.told(flow, submitted(153));
    assert_eq!(person.message(), "#153 queued, place 4   u removes it");
}

#[test]
fn what_was_submitted_is_removed_by_u_for_ten_seconds() {
    for (wait, state, removed) in
        [(0, Cursor::Queued, true), (0, Cursor::Running, false), (11_000, Cursor::Queued, false)]
    {
        let mut person = reviewing();
        person.press("Enter");
        person.told(Flow::Submit, submitted(153));
        assert_eq!(person.undoes(Vec::new()), Vec::new(), "its row has not come yet");
        let mut new = job(153, "me", "train", 2);
        new.state = state;
        person.snap.jobs.push(Arc::new(new));
        person.later(wait);
        let out = if wait == 0 { person.undoes(Vec::new()) } else { person.press("u") };
        match (removed, wait) {
            (true, _) => {
                assert!(matches!(
                    command(&out),
                    Command::Cancel { job: JobId(153), undo: Span(0), now: false, .. }
                ));
            }
            (false, 0) => assert!(out.is_empty() && person.message().contains("has started already")),
            (false, _) => {
                assert!(matches!(out[..], [UiCommand::Ask { flow: Flow::Newest, .. }]), "{out:?}");
                let older = changed(151, "priority 0 -> 10", -60_000);
                let out = person.told(Flow::Newest, Reply::Undoable(vec![older]));
                assert_eq!(out, Vec::new(), "what nobody has in mind is not taken back");
                let said = "#153 was submitted last, x cancels it; before: #151 priority 0 -> 10, u again takes that back";
                assert_eq!(person.message(), said);
                assert_eq!(*command(&person.press("u")), Command::Undo { job: None });
            }
        }
    }
}

#[test]
fn an_edit_is_asked_for_once_and_can_be_left_before_its_editor_opens() {
    let mut person = Person::at(busy(), (80, 24));
    let asked = person.on(151).press("e");
    assert!(matches!(asked[..], [UiCommand::Ask { flow: Flow::Mark(JobId(151)), .. }]), "{asked:?}");
    assert_eq!(person.press("e"), Vec::new());
    assert_eq!(person.on(152).press("e"), Vec::new(), "one at a time");
    assert!(person.message().contains("#151 is being opened"), "{}", person.message());
    assert_eq!(person.press("q"), Vec::new());
    assert_eq!(person.message(), "#151 is not edited");
    let mark = Reply::Editing { job: JobId(151), generation: Generation(7), until: now().wall_ms + 600_000 };
    let out = person.told(Flow::Mark(JobId(151)), mark);
    let end = Command::EndEdit { job: JobId(151), generation: Generation(7) };
    assert!(
        matches!(&out[..], [UiCommand::Ask { request: Request::Command(command), .. }] if *command == end)
    );
    // Its text is on its way: the mark is there, and goes with the edit.
    person.on(151).press("e");
    let mark = Reply::Editing { job: JobId(151), generation: Generation(9), until: now().wall_ms + 600_000 };
    person.told(Flow::Mark(JobId(151)), mark);
    let end = Command::EndEdit { job: JobId(151), generation: Generation(9) };
    let out = person.press("q");
    assert!(
        matches!(&out[..], [UiCommand::Ask { request: Request::Command(command), .. }] if *command == end)
    );
    assert_eq!(person.press("q"), vec![UiCommand::Quit]);
}

/// A change of this account, so many milliseconds after the start.
fn changed(job: u64, what: &str, after_ms: i64) -> UndoRow {
    UndoRow {
        job: JobId(job),
        name: format!("job-{job}"),
        what: what.into(),
        by: "me".into(),
        at: now().wall_ms + after_ms,
        until: now().wall_ms + 3_600_000,
    }
}

#[test]
fn what_was_done_after_a_submission_is_taken_back_before_it() {
    let mut person = reviewing();
    person.press("Enter");
    person.told(Flow::Submit, submitted(153));
    person.snap.jobs.push(Arc::new(job(153, "me", "train", 2)));
    person.later(1_000);
    person.on(151).press("+");
    person.later(1_000);
    let before = changed(152, "move", -60_000);
    let out = person.undoes(vec![changed(151, "priority 0 -> 10", 1_001), before.clone()]);
    assert_eq!(*command(&out), Command::Undo { job: None }, "the change is newer");
    let theirs = UndoRow { by: "ana".into(), ..changed(147, "move", 1_500) };
    let out = person.undoes(vec![theirs, before.clone()]);
    assert!(matches!(command(&out), Command::Cancel { job: JobId(153), undo: Span(0), .. }), "{out:?}");
    assert_eq!(*command(&person.press("u")), Command::Undo { job: None }, "then what was before it");
    // Two submissions in ten seconds are two.
    for id in [154, 155] {
        person.ui.overlay = None;
        let mut next = reviewing();
        next.ui.deeds = person.ui.deeds.clone();
        next.ui.now = person.ui.now;
        next.press("Enter");
        next.snap = person.snap.clone();
        next.snap.jobs.push(Arc::new(job(id, "me", "train", 2)));
        next.told(Flow::Submit, submitted(id));
        person = next;
        person.later(100);
    }
    for id in [155, 154] {
        let out = person.undoes(vec![before.clone()]);
        assert!(matches!(command(&out), Command::Cancel { job, .. } if job.0 == id), "{out:?}");
    }
}

#[test]
fn the_card_names_the_devices_it_would_get() {
    let mut person = reviewing();
    let out = person.press("p h i g h Enter");
    let (flow, _) = asks(&out);
    let Reply::Checked { mut jobs, diagnostics } = would(None, None) else { panic!() };
    jobs[0].gpus = vec![6, 7];
    person.told(flow, Reply::Checked { jobs, diagnostics });
    person.shows("now on gpu 6,7");
}

#[test]
fn a_warning_is_read_beside_what_is_open() {
    for size in [(80, 24), (100, 30), (200, 50)] {
        let mut person = picking();
        person.ui.size = size;
        person.ui.say(overnight::tui::Level::Warning, "sub/bad.yaml cannot be read", None);
        person.shows("New job");
        person.shows("! sub/bad.yaml cannot be read");
    }
}

#[test]
fn a_priority_and_copies_are_typed_on_the_card() {
    let mut person = reviewing();
    let out = person.press("p C-u 3 0 Enter");
    let (flow, request) = asks(&out);
    let Request::Command(Command::Check(file)) = request else { panic!("{request:?}") };
    assert_eq!(file.overrides.priority.map(overnight::model::Priority::get), Some(30));
    person.told(flow, would(Some(1), Some("next")));
    person.press("c C-u 0 Enter");
    assert!(person.message().contains("from 1 to 100"), "{}", person.message());
    person.press("C-u 3 Enter");
    person.shows("train-1 .. train-3");
    let out = person.press("Enter");
    let names: Vec<_> = out
        .iter()
        .map(|one| match one {
            UiCommand::Ask { flow: Flow::Submit, request: Request::Command(Command::Submit(file)) } => {
                assert_eq!(file.overrides.priority.map(overnight::model::Priority::get), Some(30));
                file.overrides.name.clone().unwrap()
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["train-1", "train-2", "train-3"]);
    for id in 153..156 {
        person.told(Flow::Submit, submitted(id));
    }
    assert_eq!(person.message(), "3 jobs, #153 to #155   u removes them");
    for id in 153..156 {
        let mut new = job(id, "me", "train", 2);
        new.state = if id == 153 { Cursor::Running } else { Cursor::Queued };
        person.snap.jobs.push(Arc::new(new));
    }
    let out = person.undoes(Vec::new());
    let cancelled = |one: &UiCommand| match one {
        UiCommand::Send { command: Command::Cancel { job, .. }, .. } => Some(job.0),
        _ => None,
    };
    assert_eq!(out.iter().filter_map(cancelled).collect::<Vec<_>>(), [154, 155]);
    assert!(person.message().contains("#153 has started already"), "{}", person.message());
}

#[test]
fn a_text_that_is_edited_on_the_card_is_checked_again_and_a_bad_one_is_not_submitted() {
    let mut person = reviewing();
    let out = person.press("e");
    assert_eq!(*errand(&out), Errand::EditFile("/home/ana/work/train.yaml".into()));
    let out = person.brought(Brought::Edited(Ok(Some(b"request: {gpu_count: 1}\n".to_vec()))));
    let (flow, _) = asks(&out);
    assert_eq!(person.press("Enter"), Vec::new());
    assert!(person.message().contains("being checked"));
    person.told(flow, Reply::Invalid { diagnostics: wrong() });
    person.shows("^^^^^^^^^ not a field of request");
    assert_eq!(person.press("Enter"), Vec::new());
    assert!(person.message().contains("e edits it"), "{}", person.message());
    person.brought(Brought::Edited(Err("vi was ended by signal 9".into())));
    assert_eq!(person.message(), "vi was ended by signal 9");
    person.shows("Submit ?");
}

#[test]
fn a_retry_shows_what_it_will_be_and_what_the_last_end_means() {
    let mut person = Person::at_work();
    person.press("4");
    person.ui.history_job = Some(JobId(139));
    settle(&mut person.ui, &person.snap);
    assert_eq!(person.press("r"), [UiCommand::Detail(JobId(139))]);
    let row = (**person.snap.history.iter().find(|row| row.id == JobId(139)).unwrap()).clone();
    let generation = row.generation;
    let mut known = detail(&busy());
    known.notes = vec!["the GPU's memory was not enough: ask for more with request.gpu_memory".into()];
    known.row = row;
    person.gets(FeedEvent::Detail(Box::new(known)));
    person.shows("#139 ended by CUDA out of memory on");
    person.shows("a folder of its own");
    insta::assert_snapshot!("retry_100x30", person.sees());
    let (flow, _) = asks(&person.press("D")).to_owned();
    assert_eq!(flow, Flow::File(JobId(139), FileFor::Duplicate));
    let file = JobFile { job: JobId(139), generation, name: "x".into(), text: GOOD.into(), base: None };
    let out = person.told(flow, Reply::JobFile(Box::new(file)));
    let (flow, _) = asks(&out);
    person.told(flow, would(None, None));
    person.shows("Submit ?");
    assert!(matches!(errand(&person.press("e")), Errand::EditText { text, .. } if text == GOOD.as_bytes()));
    person.press("Esc");
    person.press("r");
    assert_eq!(*command(&person.press("Enter")), Command::Retry { job: JobId(139), generation });
}

/// A waiting job in the editor.
fn editing() -> (Person, Generation) {
    let mut person = Person::at_work();
    let out = person.on(147).press("e");
    let (flow, request) = asks(&out);
    let generation = Generation(1);
    assert_eq!(*request, Request::Command(Command::BeginEdit { job: JobId(147), generation }));
    let (job, mark) = (JobId(147), Generation(2));
    let until = now().wall_ms + 600_000;
    let out = person.told(flow, Reply::Editing { job, generation: mark, until });
    let (flow, _) = asks(&out);
    assert_eq!(flow, Flow::File(job, FileFor::Edit));
    let file = JobFile { job, generation: mark, name: "llama".into(), text: GOOD.into(), base: None };
    let out = person.told(flow, Reply::JobFile(Box::new(file)));
    let name = "147-llama".to_owned();
    assert_eq!(*errand(&out), Errand::EditText { name, text: GOOD.into() });
    (person, mark)
}

fn edited(loses_place: bool, applied: bool) -> Reply {
    let change = |field: &str, old: Option<&str>, new: &str| FieldChange {
        field: field.into(),
        old: old.map(Into::into),
        new: Some(new.into()),
    };
    Reply::Edited(Box::new(Edited {
        job: JobId(147),
        message: "#147 is changed: request.gpus".into(),
        applied,
        changes: vec![change("request.gpus", Some("2"), "4"), change("request.finish_by", None, "08:00")],
        loses_place,
        diagnostics: Vec::new(),
    }))
}

#[test]
fn an_edit_shows_what_changes_and_is_applied_by_y_only() {
    for (keys, applied) in [("y", true), ("Enter", false), ("n", false), ("Esc", false), ("C-c", false)] {
        let (mut person, mark) = editing();
        let out = person.brought(Brought::Edited(Ok(Some(b"new text".to_vec()))));
        let (flow, request) = asks(&out);
        assert!(matches!(request, Request::Command(Command::Edit { generation, dry_run: true, file, .. })
                if *generation == mark && file.text == b"new text"));
        person.told(flow, edited(true, false));
        for text in ["request.gpus", "loses its place", "08:00"] {
            person.shows(text);
        }
        if applied {
            insta::assert_snapshot!("edit_diff_100x30", person.sees());
        }
        let out = person.press(keys);
        let (flow, request) = asks(&out);
        if applied {
            assert!(matches!(request, Request::Command(Command::Edit { dry_run: false, .. })));
            person.told(flow, edited(true, true));
            assert_eq!(person.message(), "#147 is changed: request.gpus");
        } else {
            assert_eq!(
                *request,
                Request::Command(Command::EndEdit { job: JobId(147), generation: mark }),
                "{keys}"
            );
        }
        assert!(person.ui.overlay.is_none(), "{keys}");
    }
}

#[test]
fn where_there_is_no_editor_the_text_is_edited_here_and_lost_only_on_purpose() {
    let (mut person, mark) = editing();
    let here = |person: &mut Person| {
        let was = b"work:\n  run: a\n".to_vec();
        person.brought(Brought::EditHere { was, text: None, file: None })
    };
    here(&mut person);
    person.shows("Ctrl-X done");
    person.press("Down End b Enter c");
    person.shows("  run: ab");
    person.press("Esc");
    assert!(person.message().contains("Esc again"), "{}", person.message());
    let out = person.press("C-x");
    let (_, request) = asks(&out);
    assert!(matches!(request, Request::Command(Command::Edit { generation, dry_run: true, file, .. })
            if *generation == mark && file.text == b"work:\n  run: ab\n  c\n"));
    // Left as it is, or left on purpose: the job is as it was.
    for keys in ["C-x", "Esc", "x Esc Esc"] {
        let (mut person, mark) = editing();
        here(&mut person);
        let out = person.press(keys);
        let (_, request) = asks(&out);
        assert_eq!(
            *request,
            Request::Command(Command::EndEdit { job: JobId(147), generation: mark }),
            "{keys}"
        );
        assert!(person.ui.overlay.is_none());
    }
    // A file that is about to be submitted is written where it lies, and the card is there again.
    let mut person = reviewing();
    let path = std::path::PathBuf::from("/home/ana/work/train.yaml");
    person.brought(Brought::EditHere { was: b"a".to_vec(), text: None, file: Some(path.clone()) });
    person.shows("/home/ana/work/train.yaml");
    let out = person.press("b C-x");
    let (was, text) = (b"a".to_vec(), b"ba".to_vec());
    assert_eq!(*errand(&out), Errand::Write { path: path.clone(), was: was.clone(), text: text.clone() });
    assert!(matches!(person.ui.overlay, Some(Overlay::Review(_))));
    // Where it could not be written what was typed is there again, and can be tried again.
    person.brought(Brought::EditHere {
        was: was.clone(),
        text: Some(text.clone()),
        file: Some(path.clone()),
    });
    assert_eq!(*errand(&person.press("C-x")), Errand::Write { path, was, text });
}

#[test]
fn an_edit_that_changes_nothing_or_fails_drops_the_mark() {
    for (text, said) in [
        (Ok(None), "#147: nothing was changed"),
        (Err("vi was ended by signal 9".to_owned()), "vi was ended by signal 9: #147 is as it was"),
    ] {
        let (mut person, mark) = editing();
        let out = person.brought(Brought::Edited(text));
        let (_, request) = asks(&out);
        assert_eq!(*request, Request::Command(Command::EndEdit { job: JobId(147), generation: mark }));
        assert_eq!(person.message(), said);
    }
}

#[test]
fn a_mistake_is_shown_with_carets_and_edited_again() {
    let (mut person, mark) = editing();
    let out = person.brought(Brought::Edited(Ok(Some(b"bad".to_vec()))));
    person.told(asks(&out).0, Reply::Invalid { diagnostics: wrong() });
    person.shows("^^^^^^^^^ not a field of request");
    insta::assert_snapshot!("edit_wrong_100x30", person.sees());
    assert!(matches!(errand(&person.press("e")), Errand::EditText { text, .. } if text == b"bad"));
    // Left as it was: the mistake is still there.
    let out = person.brought(Brought::Edited(Ok(None)));
    person.told(asks(&out).0, Reply::Invalid { diagnostics: wrong() });
    let out = person.press("Esc");
    assert_eq!(*asks(&out).1, Request::Command(Command::EndEdit { job: JobId(147), generation: mark }));
    // A text that cannot be applied any more is not thrown away.
    let (mut person, _) = editing();
    let out = person.brought(Brought::Edited(Ok(Some(b"late".to_vec()))));
    person.told(asks(&out).0, Reply::Refused { message: "#147 has started".into() });
    person.shows("#147 has started");
    let out = person.press("e");
    assert!(matches!(asks(&out).1, Request::Command(Command::BeginEdit { .. })), "marked anew");
    let (job, until) = (JobId(147), now().wall_ms + 600_000);
    let out = person.told(Flow::Mark(job), Reply::Editing { job, generation: Generation(9), until });
    assert!(matches!(errand(&out), Errand::EditText { text, .. } if text == b"late"));
}

#[test]
fn a_connection_that_breaks_while_a_job_is_edited_is_told_of_and_the_text_is_sent_later() {
    let (mut person, _) = editing();
    let gone = Connection::Lost { why: "gone".into(), retry_in: Span(500) };
    person.gets(FeedEvent::Connection(gone));
    assert!(
        person.message().contains("#147 is as it was; its mark ends by itself at"),
        "{}",
        person.message()
    );
    assert_eq!(person.brought(Brought::Edited(Ok(Some(b"new".to_vec())))), Vec::new());
    assert!(person.message().contains("is sent when it is back"), "{}", person.message());
    let back = person.gets(FeedEvent::Snapshot(Box::new(busy())));
    assert!(matches!(asks(&back).1, Request::Command(Command::Edit { dry_run: true, .. })), "{back:?}");
    // Lost before the text had come: nothing is left to be done.
    let mut person = Person::at_work();
    person.on(147).press("e");
    person.gets(FeedEvent::Connection(Connection::Lost { why: "gone".into(), retry_in: Span(500) }));
    assert!(person.message().contains("#147 is as it was"), "{}", person.message());
    assert_eq!(person.gets(FeedEvent::Snapshot(Box::new(busy()))), Vec::new());
}

#[test]
fn a_job_that_somebody_else_edits_or_that_runs_is_not_edited() {
    let mut person = Person::at_work();
    assert_eq!(person.on(142).press("e"), Vec::new());
    assert_eq!(person.message(), "cannot edit #142: already running");
    person.on(147).press("e");
    let until = now().wall_ms + 60_000;
    let by = "bo".to_owned();
    assert_eq!(person.told(Flow::Mark(JobId(147)), Reply::BeingEdited { job: JobId(147), by, until }), []);
    assert!(person.message().starts_with("#147 is being edited by bo until"), "{}", person.message());
}

#[test]
fn four_fields_are_edited_in_a_form_and_checked_where_they_are() {
    let mut person = Person::at_work();
    person.on(147).press("E");
    person.shows("time limit");
    insta::assert_snapshot!("quick_edit_100x30", person.sees());
    person.press("C-u t w o Tab C-u 5 0 0 Tab C-u 2");
    assert_eq!(person.press("Enter"), Vec::new());
    for text in ["a whole number", "from -100 to 100", "write it like 30m"] {
        person.shows(text);
    }
    person.press("C-u 4 Down C-u 3 0 Tab C-u 3 h");
    let out = person.press("Enter");
    let (flow, _) = asks(&out);
    assert_eq!(flow, Flow::File(JobId(147), FileFor::Quick));
    let (job, generation) = (JobId(147), Generation(1));
    let file = JobFile { job, generation, name: "llama".into(), text: GOOD.into(), base: None };
    let out = person.told(flow, Reply::JobFile(Box::new(file.clone())));
    let (flow, request) = asks(&out);
    let Request::Command(Command::Edit { file: sent, dry_run: true, .. }) = request else {
        panic!("{request:?}")
    };
    assert_eq!(sent.overrides.gpus, Some(4));
    assert_eq!(sent.overrides.priority.map(overnight::model::Priority::get), Some(30));
    assert_eq!((sent.overrides.limit, sent.overrides.name.clone()), (Some(Span::secs(10_800)), None));
    // What the scheduler finds is said where it belongs.
    let mut diagnostics = wrong();
    diagnostics[0].message = "this host has 8".into();
    diagnostics[0].source = Some("request: {gpus: 99}".into());
    person.told(flow, Reply::Invalid { diagnostics });
    person.shows("this host has 8");
    person.shows("time limit");
    let out = person.press("Enter");
    let out = person.told(asks(&out).0, Reply::JobFile(Box::new(file)));
    person.told(asks(&out).0, edited(false, false));
    person.shows("request.gpus");
    let out = person.press("y");
    assert!(matches!(asks(&out).1, Request::Command(Command::Edit { dry_run: false, .. })));
    let mut person = Person::at_work();
    assert_eq!(person.on(147).press("E Enter"), Vec::new());
    assert_eq!(person.message(), "#147: nothing was changed");
}

#[test]
fn everything_that_can_be_undone_is_listed_and_taken_back_one_by_one() {
    let mut person = Person::at_work();
    let out = person.press(": u n d o Enter");
    let (flow, request) = asks(&out);
    assert_eq!((flow, request), (Flow::Undoable, &Request::Query(Query::Undoable)));
    let row = |job: u64, what: &str, until: i64| UndoRow {
        job: JobId(job),
        name: format!("job-{job}"),
        what: what.into(),
        by: "me".into(),
        at: now().wall_ms,
        until: now().wall_ms + until,
    };
    let rows = vec![
        row(144, "cancel", 5_000),
        row(151, "priority 0 -> 10", 3_600_000),
        row(151, "place 3 -> 2", 3_600_000),
    ];
    person.told(flow, Reply::Undoable(rows));
    person.shows("priority 0 -> 10");
    person.shows("0m05s left");
    person.shows_no("place 3 -> 2");
    person.shows("(then 1 before it)");
    assert_eq!(*command(&person.press("Down Enter")), Command::Undo { job: Some(JobId(151)) });
    person.press("U");
    person.told(Flow::Undoable, Reply::Undoable(Vec::new()));
    person.shows("Nothing.");
}

#[test]
fn a_letter_copies_and_the_text_is_there_to_be_selected_by_hand() {
    for (letter, text) in [
        ("i", "142"),
        ("o", "/home/ana/overnight/jobs/142-llama-ft-8b/output"),
        ("l", "/home/ana/overnight/jobs/142-llama-ft-8b/log.txt"),
        ("c", "python llama-ft-8b.py"),
    ] {
        let mut person = Person::at_work();
        let out = person.on(142).press(&format!("y {letter}"));
        assert_eq!(*errand(&out), Errand::Copy(text.into()));
        person.shows(&format!("[{text}]"));
        assert!(!person.sees().contains("copied"), "nobody knows whether it was");
    }
    let mut person = Person::at_work();
    person.on(142).press("y i");
    person.shows("sent to clipboard (if your terminal allows it)");
    let mut person = Person::at_work();
    person.on(142).press("y");
    insta::assert_snapshot!("copy_100x30", person.sees());
    assert_eq!(person.press("e"), Vec::new());
    assert_eq!(person.message(), "#142 has no error");
    let (flow, _) = asks(&person.on(142).press("y y")).to_owned();
    let (job, generation) = (JobId(142), Generation(1));
    let file = |text: &str| JobFile { job, generation, name: "x".into(), text: text.into(), base: None };
    let out = person.told(flow, Reply::JobFile(Box::new(file("name: x\u{1b}[2J\nwork: y\n"))));
    assert_eq!(*errand(&out), Errand::Copy("name: x\u{fffd}[2J\nwork: y\n".into()), "cleaned");
    person.shows("(+1 lines)");
    let out = person.told(flow, Reply::JobFile(Box::new(file(&"x".repeat(9_000)))));
    assert_eq!(out, Vec::new());
    assert!(person.message().contains("too long"), "{}", person.message());
}

#[test]
fn a_shell_a_pager_and_the_way_out_go_to_the_folder_of_the_job() {
    let mut person = Person::at_work();
    let folder = PathBuf::from("/home/ana/overnight/jobs/142-llama-ft-8b/output");
    let log = folder.with_file_name("log.txt");
    assert_eq!(*errand(&person.on(142).press("o")), Errand::Shell(folder.clone()));
    assert_eq!(*errand(&person.press("O")), Errand::Leave(folder));
    assert_eq!(*errand(&person.press("|")), Errand::Pager(log));
    assert_eq!(person.brought(Brought::Failed("it is not there yet".into())), Vec::new());
    assert_eq!(person.message(), "it is not there yet");
}

#[test]
fn keys_that_are_held_go_out_as_one_request_and_what_has_not_gone_out_is_taken_back() {
    let mut person = Person::at_work();
    person.on(152);
    assert!(matches!(command(&person.press("K")), Command::Move { to: Place::Up, .. }));
    // Down and up again is nothing; the top makes what went before needless.
    assert_eq!(person.press("J K J"), Vec::new());
    assert_eq!(person.changes(152, |_| {}), Vec::new(), "400 ms together");
    let out = person.later(400);
    assert!(matches!(command(&out), Command::Move { to: Place::Down, .. }), "{out:?}");
    assert_eq!(person.changes(152, |_| {}), Vec::new());
    person.later(400);
    person.on(150).press("+");
    assert_eq!(person.press("+ + u"), Vec::new(), "the newest has not gone out");
    person.changes(150, |_| {});
    assert_eq!(person.later(400), Vec::new(), "and does not");
}

#[test]
fn flows_fit_every_size_and_nothing_untrusted_gets_through() {
    let theme = theme();
    let mut people = vec![picking(), reviewing()];
    let (mut diff, _) = editing();
    let out = diff.brought(Brought::Edited(Ok(Some(b"x".to_vec()))));
    diff.told(asks(&out).0, edited(true, false));
    let (mut bad, _) = editing();
    let out = bad.brought(Brought::Edited(Ok(Some(b"x".to_vec()))));
    let mut evil = wrong();
    evil[0].message = "日本\u{1b}[2J\u{202e}".repeat(30);
    bad.told(asks(&out).0, Reply::Invalid { diagnostics: evil });
    people.extend([diff, bad]);
    for keys in ["E", "y", "U"] {
        let mut person = Person::at_work();
        person.on(147).press(keys);
        people.push(person);
    }
    let mut retry = Person::at_work();
    retry.press("4 r");
    people.push(retry);
    for mut person in people {
        assert!(person.ui.overlay.is_some());
        for size in [(1, 1), (20, 4), (30, 6), (31, 9), (60, 12), (69, 20), (80, 24), (120, 40), (300, 80)] {
            person.ui.size = size;
            for glyphs in [Glyphs::Ascii, Glyphs::Unicode] {
                person.ui.glyphs = glyphs;
                settle(&mut person.ui, &person.snap);
                let seen = text(&screen(&person.ui, &person.snap, &theme, size));
                assert!(
                    !seen.contains(['\u{1b}', '\u{202e}']) && (glyphs == Glyphs::Unicode || seen.is_ascii())
                );
            }
        }
    }
}
