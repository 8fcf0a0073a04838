//! Editing a job that waits, what can be undone of it, and what a change would do to others.

use crate::build::{Ask, Rig, job, owner};
use overnight::model::{Amount, Cursor, Generation, JobId, JobSpec, JobText, Limit, Priority, RunEnd, Span};
use overnight::protocol::{Change, Command, Edited, Expectation, FieldChange, Place, Reply, WhatIf};
use overnight::sched::view::what_if;
use overnight::sched::{Edit, Effect, Input, undoable, would_edit};

fn begin(rig: &mut Rig, id: JobId) -> Generation {
    let generation = rig.generation(id);
    match rig.command(Command::BeginEdit { job: id, generation }) {
        Reply::Editing { job, generation, until } => {
            assert_eq!((job, until), (id, rig.now.wall_ms + 600_000));
            generation
        }
        other => panic!("{other:?}"),
    }
}

fn an_edit(rig: &Rig, id: JobId, generation: Generation, spec: JobSpec) -> Edit {
    Edit {
        by: owner("ana"),
        job: id,
        generation,
        spec,
        warnings: vec!["said of the new one".to_owned()],
        file: JobText { text: "# new".to_owned(), base: None, at_ms: rig.now.wall_ms },
        unchanged: false,
        fields: vec![FieldChange { field: "request.x".into(), old: Some("1".into()), new: Some("2".into()) }],
        reply_to: 99,
    }
}

fn edit_at(rig: &mut Rig, id: JobId, generation: Generation, spec: JobSpec) -> Reply {
    let edit = an_edit(rig, id, generation, spec);
    rig.step(vec![Input::Edit(Box::new(edit))]);
    rig.last.replies.iter().find(|(to, _)| *to == 99).unwrap().1.clone()
}

fn edit(rig: &mut Rig, id: JobId, spec: JobSpec) -> Reply {
    let generation = rig.generation(id);
    edit_at(rig, id, generation, spec)
}

fn done(reply: Reply) -> Edited {
    match reply {
        Reply::Edited(edited) if edited.applied => *edited,
        other => panic!("{other:?}"),
    }
}

fn refused(reply: Reply) -> String {
    match reply {
        Reply::Refused { message } => message,
        other => panic!("{other:?}"),
    }
}

fn undo(rig: &mut Rig, id: JobId) -> Reply {
    rig.command(Command::Undo { job: Some(id) })
}

fn said(reply: Reply) -> String {
    match reply {
        Reply::Ok { message } => message,
        other => panic!("{other:?}"),
    }
}

fn line(rig: &Rig) -> Vec<u64> {
    rig.world.queue.line().map(|job| job.id.0).collect()
}

/// A rig whose only device is held by a job that runs for an hour, and jobs that wait.
fn busy(waiting: usize) -> (Rig, Vec<JobId>) {
    let mut rig = Rig::new(1);
    rig.submit(job("first").secs(3_600));
    let ids = (0..waiting).map(|n| rig.submit(job(&format!("w{n}")).secs(3_600))).collect();
    (rig, ids)
}

#[test]
fn a_job_that_is_edited_is_not_started_until_the_mark_ends_by_itself() {
    let (mut rig, ids) = busy(1);
    let id = ids[0];
    begin(&mut rig, id);
    assert_eq!(
        rig.why(id),
        format!(
            "being edited by ana until {}s",
            (rig.now.wall_ms + 600_000 - crate::build::BEGIN.wall_ms) / 1000
        )
    );
    rig.succeed(JobId(1));
    rig.read();
    assert_eq!(rig.state(id), Cursor::Queued);
    // A restart neither lets it start early nor makes it wait for longer.
    rig.restart();
    rig.wait(300);
    assert_eq!(rig.state(id), Cursor::Queued);
    assert_eq!(rig.last.wake.map(|wake| wake.at <= rig.now.boottime_ms + 300_000), Some(true));
    rig.wait(299);
    assert_eq!(rig.state(id), Cursor::Queued);
    assert!(rig.job(id).edit.is_some());
    rig.wait(1);
    assert!(rig.job(id).edit.is_none());
    assert_eq!(rig.state(id), Cursor::Renting);
}

#[test]
fn a_mark_whose_editor_died_is_ended_by_its_owner_and_by_nobody_else() {
    let (mut rig, ids) = busy(1);
    let id = ids[0];
    let mark = begin(&mut rig, id);
    let generation = rig.generation(id);
    let resume = Command::Resume { job: id, generation };
    rig.step(vec![Input::Command { by: owner("bob"), command: resume.clone(), reply_to: 5 }]);
    assert!(rig.job(id).edit.is_some());
    assert!(said(rig.command(resume)).contains("no longer being edited"));
    assert!(rig.job(id).edit.is_none());
    // The editor was there after all: its text is refused, and with its client.
    assert!(refused(edit_at(&mut rig, id, mark, job("w0").secs(60))).contains("has changed meanwhile"));
}

#[test]
fn a_mark_is_one_persons_and_is_dropped_by_them_alone() {
    let (mut rig, ids) = busy(1);
    let id = ids[0];
    let mark = begin(&mut rig, id);
    let generation = rig.generation(id);
    let until = rig.now.wall_ms + 600_000;
    rig.pass(Span::secs(60));
    let second = rig.command(Command::BeginEdit { job: id, generation });
    assert_eq!(second, Reply::BeingEdited { job: id, by: "ana".into(), until });
    // Nor does anybody else's edit go through, or their end of an edit.
    let other = Generation(mark.0 - 1);
    assert!(matches!(edit_at(&mut rig, id, other, job("w0").secs(60)), Reply::BeingEdited { .. }));
    said(rig.command(Command::EndEdit { job: id, generation: other }));
    assert!(rig.job(id).edit.is_some());
    said(rig.command(Command::EndEdit { job: id, generation: mark }));
    assert!(rig.job(id).edit.is_none());
    said(rig.command(Command::EndEdit { job: id, generation: mark }));
    assert!(refused(edit_at(&mut rig, id, mark, job("w0").secs(60))).contains("has changed meanwhile"));
}

#[test]
fn an_edit_replaces_the_request_and_keeps_number_place_and_time() {
    let (mut rig, ids) = busy(3);
    let id = ids[1];
    let submitted = rig.job(id).submitted;
    rig.pass(Span::secs(100));
    let mark = begin(&mut rig, id);
    // What happens to it meanwhile does not make the edit stale.
    let generation = rig.generation(id);
    said(rig.command(Command::Pause { job: id, generation }));
    let reply = done(edit_at(&mut rig, id, mark, job("other").secs(60)));
    assert_eq!(reply.message, format!("#{id} is changed: request.x 1 -> 2"));
    assert!(!reply.loses_place);
    let row = rig.job(id);
    assert_eq!((row.spec.name.as_str(), row.submitted, row.edit.is_none()), ("other", submitted, true));
    assert_eq!(row.spec.request.limit, Limit::For(Span::secs(60)));
    assert_eq!((row.warnings.len(), row.paused.as_deref()), (1, Some("ana")));
    assert_eq!(line(&rig), [ids[0].0, id.0, ids[2].0]);
    assert!(rig.effects.contains(&Effect::Rewrite { job: id, was: Some(format!("{id}-w1")) }));
    assert!(rig.world.queue.named("w1").next().is_none());
    assert_eq!(rig.world.queue.named("other").next().map(|job| job.id), Some(id));
    rig.restart();
    assert_eq!(rig.job(id).file.as_ref().map(|file| file.text.as_str()), Some("# new"));
}

#[test]
fn more_gpus_lose_the_place_and_a_dry_run_says_so_before() {
    let mut rig = Rig::new(2);
    rig.submit(job("first").gpus(2).secs(3_600));
    let ids: Vec<JobId> = (0..3).map(|n| rig.submit(job(&format!("w{n}")).gpus(1))).collect();
    let larger = job("w0").gpus(2);
    let dry = would_edit(&rig.world, &an_edit(&rig, ids[0], rig.generation(ids[0]), larger.clone()));
    let Reply::Edited(dry) = dry else { panic!("{dry:?}") };
    assert!(dry.loses_place && !dry.applied && dry.message.contains("would be changed"));
    assert_eq!(line(&rig), [ids[0].0, ids[1].0, ids[2].0]);
    let reply = done(edit(&mut rig, ids[0], larger));
    assert!(reply.loses_place && reply.message.contains("waits where a new job would"));
    assert_eq!(line(&rig), [ids[1].0, ids[2].0, ids[0].0]);
    // The next one that comes is behind it.
    let late = rig.submit(job("late"));
    assert_eq!(line(&rig), [ids[1].0, ids[2].0, ids[0].0, late.0]);
    // With fewer it stays where it is; undone, it is where it was at first.
    assert!(!done(edit(&mut rig, ids[0], job("w0").gpus(1))).loses_place);
    said(undo(&mut rig, ids[0]));
    said(undo(&mut rig, ids[0]));
    assert_eq!(line(&rig), [ids[0].0, ids[1].0, ids[2].0, late.0]);
    assert_eq!(rig.job(ids[0]).spec.request.gpus, Amount::Some(1));
    assert_eq!(rig.job(ids[0]).file, None);
}

#[test]
fn who_is_last_has_no_place_to_lose() {
    let mut rig = Rig::new(2);
    rig.submit(job("first").gpus(2).secs(3_600));
    let id = rig.submit(job("w").gpus(1));
    assert!(!done(edit(&mut rig, id, job("w").gpus(2))).loses_place);
}

#[test]
fn the_priority_of_an_edit_counts_only_where_the_text_changed_it() {
    let (mut rig, ids) = busy(1);
    let id = ids[0];
    let mark = begin(&mut rig, id);
    let generation = rig.generation(id);
    let priority = Priority::clamped(20);
    said(rig.command(Command::SetPriority { job: id, generation, priority }));
    done(edit_at(&mut rig, id, mark, job("w0").secs(60)));
    assert_eq!(rig.job(id).priority, priority);
    let mark = begin(&mut rig, id);
    done(edit_at(&mut rig, id, mark, job("w0").secs(60).priority(-30)));
    assert_eq!(rig.job(id).priority, Priority::clamped(-30));
}

#[test]
fn what_does_not_wait_or_would_never_start_is_not_edited() {
    let (mut rig, ids) = busy(2);
    let generation = rig.generation(JobId(1));
    assert!(
        refused(rig.command(Command::BeginEdit { job: JobId(1), generation })).contains("only a waiting job")
    );
    assert!(refused(edit(&mut rig, JobId(1), job("x"))).contains("only a waiting job"));
    assert!(matches!(edit_at(&mut rig, JobId(77), Generation(1), job("x")), Reply::NotFound { .. }));
    let stale = Generation(rig.generation(ids[0]).0 + 1);
    assert!(refused(edit_at(&mut rig, ids[0], stale, job("x"))).contains("look at it again"));
    // Each waits for the other.
    done(edit(&mut rig, ids[0], job("w0").after("w1")));
    let circle = refused(edit(&mut rig, ids[1], job("w1").after("w0")));
    assert!(circle.contains("which waits for it"), "{circle}");
    let generation = rig.generation(ids[1]);
    said(rig.command(Command::Cancel { job: ids[1], generation, undo: Span::secs(10), now: false }));
    assert!(refused(edit(&mut rig, ids[1], job("w1"))).contains("being cancelled"));
    let generation = rig.generation(ids[1]);
    assert!(refused(rig.command(Command::BeginEdit { job: ids[1], generation })).contains("being cancelled"));
}

#[test]
fn an_edit_may_add_and_drop_what_a_job_waits_for() {
    let (mut rig, ids) = busy(2);
    done(edit(&mut rig, ids[1], job("w1").after("w0")));
    assert_eq!(rig.job(ids[1]).after[0].job, Some(ids[0]));
    done(edit(&mut rig, ids[1], job("w1")));
    assert!(rig.job(ids[1]).after.is_empty());
    // A name that somebody waits for may come by an edit.
    let waits = rig.submit(job("waits").after("new-name"));
    assert_eq!(rig.job(waits).after[0].job, None);
    done(edit(&mut rig, ids[1], job("new-name")));
    assert_eq!(rig.job(waits).after[0].job, Some(ids[1]));
}

#[test]
fn other_code_is_copied_anew_and_not_while_it_is_being_copied() {
    let (mut rig, _) = busy(0);
    let id = rig.submit(job("coded").code());
    let preparing = |rig: &Rig| {
        let of = |effect: &&Effect| matches!(effect, Effect::Prepare(prepare) if prepare.job == id);
        rig.effects.iter().filter(of).count()
    };
    assert_eq!(preparing(&rig), 1);
    let mut other = job("coded").code();
    other.work.dir = Some("/somewhere/else".into());
    assert!(refused(edit(&mut rig, id, other.clone())).contains("being made ready"));
    // What has nothing to do with it can be changed.
    done(edit(&mut rig, id, job("coded").code().secs(60)));
    let attempt = rig.attempt(id);
    let task = overnight::model::TaskIx(0);
    rig.step(vec![Input::Prepared { job: id, task, attempt, result: Ok(()) }]);
    done(edit(&mut rig, id, other));
    assert_eq!(preparing(&rig), 2);
    let last = rig.effects.iter().rev().find_map(|effect| match effect {
        Effect::Prepare(prepare) => Some((prepare.edited, prepare.spec.work.dir.clone())),
        _ => None,
    });
    assert_eq!(last, Some((true, Some("/somewhere/else".into()))));
    rig.succeed(JobId(1));
    rig.read();
    assert_eq!(rig.state(id), Cursor::Queued, "it is not ready");
}

#[test]
fn a_job_that_was_tried_keeps_its_name() {
    let mut rig = Rig::new(1);
    let id = rig.submit(job("a"));
    rig.started(id);
    rig.finish(id, RunEnd::Lost { why: "x".into() });
    assert_eq!(rig.state(id), Cursor::Queued);
    assert!(refused(edit(&mut rig, id, job("b"))).contains("was tried before"));
    done(edit(&mut rig, id, job("a").secs(7)));
}

#[test]
fn everything_is_undone_in_the_reverse_order_also_after_a_restart() {
    let (mut rig, ids) = busy(3);
    let id = ids[2];
    let before = rig.job(id).clone();
    let do_it = |rig: &mut Rig, command: &dyn Fn(Generation) -> Command| {
        rig.pass(Span::secs(1));
        let generation = rig.generation(id);
        said(rig.command(command(generation)))
    };
    do_it(&mut rig, &|generation| Command::SetPriority {
        job: id,
        generation,
        priority: Priority::clamped(5),
    });
    do_it(&mut rig, &|generation| Command::SetPriority {
        job: id,
        generation,
        priority: Priority::clamped(0),
    });
    do_it(&mut rig, &|generation| Command::Move { job: id, generation, to: Place::Up });
    do_it(&mut rig, &|generation| Command::Move { job: id, generation, to: Place::Top });
    do_it(&mut rig, &|generation| Command::Pause { job: id, generation });
    do_it(&mut rig, &|generation| Command::Resume { job: id, generation });
    rig.pass(Span::secs(1));
    done(edit(&mut rig, id, job("other").secs(60)));
    let undo_window = Span::secs(100);
    do_it(&mut rig, &|generation| Command::Cancel { job: id, generation, undo: undo_window, now: false });
    assert_eq!(line(&rig), [id.0, ids[0].0, ids[1].0]);
    rig.restart();
    let what: Vec<String> = undoable(&rig.world, &rig.now).into_iter().map(|row| row.what).collect();
    let all = [
        "cancel",
        "edit: request.x",
        "resume",
        "pause",
        "move",
        "move",
        "priority 5 -> 0",
        "priority 0 -> 5",
    ];
    assert_eq!(what, all);
    let expected = [
        "is not cancelled",
        "asks for what it asked before: request.x",
        "is paused again",
        "waits for its turn again",
        "is back in its old place",
        "is back in its old place",
        "has priority 5 again",
        "has priority 0 again",
    ];
    for words in expected {
        // The newest of all is this job's.
        assert_eq!(said(rig.command(Command::Undo { job: None })), format!("#{id} {words}"));
        rig.restart();
    }
    let after = rig.job(id);
    assert_eq!(line(&rig), [ids[0].0, ids[1].0, id.0]);
    assert_eq!((&after.spec, after.ranked, &after.paused), (&before.spec, before.ranked, &before.paused));
    assert_eq!((after.position, after.priority), (before.position, before.priority));
    assert!(refused(undo(&mut rig, id)).contains("can be undone"));
}

#[test]
fn what_has_changed_since_is_not_undone() {
    let (mut rig, ids) = busy(2);
    let (a, b) = (ids[0], ids[1]);
    let up = |rig: &mut Rig, job| {
        rig.pass(Span::secs(1));
        let generation = rig.generation(job);
        said(rig.command(Command::Move { job, generation, to: Place::Up }));
    };
    up(&mut rig, b);
    up(&mut rig, a);
    assert_eq!(line(&rig), [a.0, b.0]);
    assert!(refused(undo(&mut rig, b)).contains("has changed since"));
    said(undo(&mut rig, a));
    said(undo(&mut rig, b));
    assert_eq!(line(&rig), [a.0, b.0]);
}

#[test]
fn what_was_changed_an_hour_ago_or_has_started_is_not_undone() {
    let (mut rig, ids) = busy(2);
    for id in &ids {
        let generation = rig.generation(*id);
        said(rig.command(Command::SetPriority { job: *id, generation, priority: Priority::clamped(1) }));
    }
    rig.wait(3_599);
    assert_eq!(undoable(&rig.world, &rig.now).len(), 2);
    rig.succeed(JobId(1));
    rig.read();
    assert_eq!(rig.state(ids[0]), Cursor::Renting);
    assert_eq!(undoable(&rig.world, &rig.now).len(), 1);
    assert!(refused(undo(&mut rig, ids[0])).contains("can be undone"));
    rig.wait(1);
    assert!(refused(undo(&mut rig, ids[1])).contains("can be undone"));
    assert!(undoable(&rig.world, &rig.now).is_empty());
}

#[test]
fn an_account_undoes_its_own() {
    let (mut rig, ids) = busy(1);
    let generation = rig.generation(ids[0]);
    said(rig.command(Command::Pause { job: ids[0], generation }));
    let input = |job| Input::Command { by: owner("bob"), command: Command::Undo { job }, reply_to: 5 };
    rig.step(vec![input(None)]);
    assert!(matches!(rig.last.replies[0].1, Reply::Refused { .. }));
    rig.step(vec![input(Some(ids[0]))]);
    assert!(matches!(rig.last.replies[0].1, Reply::Ok { .. }));
}

fn asked(rig: &Rig, id: JobId, change: Change) -> WhatIf {
    what_if(&rig.world, rig.job(id), change, &rig.now)
}

/// What the line really is, in the same words.
fn expectations(rig: &Rig) -> Vec<(JobId, Expectation)> {
    let line = rig.world.queue.line().next();
    let Some(first) = line else { return Vec::new() };
    // A change that is none: everything but the first job is left out unless it changed.
    let same = what_if(&rig.world, first, Change::Priority(first.priority), &rig.now);
    assert_eq!((same.rows.len(), same.more), (1, 0), "{same:?}");
    assert_eq!(same.rows[0].old, same.rows[0].new);
    rig.world
        .queue
        .line()
        .map(|job| {
            let one = what_if(&rig.world, job, Change::Priority(job.priority), &rig.now);
            (job.id, one.rows[0].old)
        })
        .collect()
}

#[test]
fn what_if_says_what_happens_then() {
    let changes = [
        Change::Move(Place::Top),
        Change::Move(Place::Up),
        Change::Priority(Priority::clamped(10)),
        Change::Priority(Priority::clamped(-10)),
        Change::Pause,
        Change::Move(Place::Bottom),
        Change::Move(Place::Down),
    ];
    for change in changes {
        let (mut rig, ids) = busy(5);
        let id = ids[2];
        let before = expectations(&rig);
        let answer = asked(&rig, id, change);
        assert_eq!((answer.refused.as_ref(), answer.rows[0].job), (None, id), "{change:?}");
        let generation = rig.generation(id);
        let command = match change {
            Change::Move(to) => Command::Move { job: id, generation, to },
            Change::Priority(priority) => Command::SetPriority { job: id, generation, priority },
            Change::Pause => Command::Pause { job: id, generation },
            Change::Resume => Command::Resume { job: id, generation },
        };
        said(rig.command(command));
        let after = expectations(&rig);
        for (job, is) in &after {
            let was = before.iter().find(|(other, _)| other == job).unwrap().1;
            let told = answer.rows.iter().find(|row| row.job == *job);
            match told {
                Some(row) => assert_eq!((row.old, row.new), (was, *is), "{change:?} #{job}"),
                None => assert_eq!(was, *is, "{change:?} #{job}"),
            }
        }
    }
}

#[test]
fn what_if_is_bounded_and_says_why_not() {
    let (rig, ids) = busy(120);
    let answer = asked(&rig, ids[119], Change::Move(Place::Top));
    assert_eq!((answer.rows.len(), answer.more), (50, 70));
    assert_eq!(answer.rows[0].old.place, Some(120));
    assert_eq!(answer.rows[0].new.place, Some(1));
    assert_eq!(answer.rows[1].job, ids[0], "the next in line come first");
    assert!(asked(&rig, ids[0], Change::Move(Place::Up)).refused.unwrap().contains("first"));
    assert!(asked(&rig, ids[0], Change::Resume).refused.unwrap().contains("not paused"));
    assert!(asked(&rig, JobId(1), Change::Pause).refused.unwrap().contains("only a waiting job"));
}

#[test]
fn a_move_past_a_job_that_is_done_since_is_undone_without_it() {
    let (mut rig, ids) = busy(3);
    let generation = rig.generation(ids[2]);
    said(rig.command(Command::Move { job: ids[2], generation, to: Place::Up }));
    let generation = rig.generation(ids[1]);
    said(rig.command(Command::Cancel { job: ids[1], generation, undo: Span(0), now: true }));
    let passed = rig.job(ids[1]).clone();
    said(undo(&mut rig, ids[2]));
    assert_eq!(line(&rig), [ids[0].0, ids[2].0]);
    assert_eq!(*rig.job(ids[1]), passed, "what is done stays as it is");
}
