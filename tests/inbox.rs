//! Every way in which a file or a folder gets into the inbox, with the real programs and real events.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, helpers too")]

use overnight::inbox::{Drop, Inbox, InboxConfig, InboxError, InboxEvent, Taken, mark_owner};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longer than anything here takes; reaching it is a failure.
const PATIENCE: Duration = Duration::from_secs(30);
const JOB: &str = "work: {run: \"true\"}\ndata: []\nrequest: {gpus: 0, for: 1m}\noutput: []\n";

/// A watched folder, and what was said about it.
struct Watched {
    inbox: Inbox,
    events: Receiver<(InboxEvent, Instant)>,
    root: tempfile::TempDir,
}

impl Watched {
    /// Starts over an empty folder; once something was delivered it is watched.
    fn start() -> Self {
        let watched = Self::with(|_| {});
        watched.mv_in("armed.yaml", JOB);
        watched.take(&watched.dropped("armed.yaml"));
        watched
    }

    /// Starts over a folder that `prepare` has filled.
    fn with(prepare: impl FnOnce(&Path)) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("inbox")).unwrap();
        fs::create_dir(root.path().join("staging")).unwrap();
        prepare(&root.path().join("inbox"));
        let (inbox, events) = watch(root.path()).unwrap();
        Self { inbox, events, root }
    }

    fn dir(&self) -> PathBuf {
        self.root.path().join("inbox")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    fn staging(&self, name: &str) -> PathBuf {
        self.root.path().join("staging").join(name)
    }

    /// Writes a file elsewhere and renames it in.
    fn mv_in(&self, name: &str, text: &str) {
        fs::write(self.staging(name), text).unwrap();
        fs::rename(self.staging(name), self.at(name)).unwrap();
    }

    fn next(&self) -> InboxEvent {
        self.events.recv_timeout(PATIENCE).expect("an event").0
    }

    /// This name is dropped. A program that another test starts at this moment holds the file open until it runs.
    fn dropped(&self, name: &str) -> Drop {
        loop {
            match self.next() {
                InboxEvent::Dropped(drop) if drop.name == name => return drop,
                InboxEvent::Waiting { name: told, why }
                    if told == name && why.ends_with("still being written") => {}
                other => panic!("{name} was not dropped: {other:?}"),
            }
        }
    }

    fn refused(&self, name: &str) -> (String, String) {
        match self.next() {
            InboxEvent::Refused { name: told, reason, hint, .. } if told == name => (reason, hint),
            other => panic!("{name} was not refused: {other:?}"),
        }
    }

    fn waiting(&self, name: &str) -> String {
        match self.next() {
            InboxEvent::Waiting { name: told, why } if told == name => why,
            other => panic!("{name} does not wait: {other:?}"),
        }
    }

    /// An alarm with these words comes; what was caught halfway may come before it.
    fn alarm(&self, words: &str) {
        loop {
            match self.next() {
                InboxEvent::Alarm { text } if text.contains(words) => return,
                InboxEvent::Alarm { .. } => {}
                other => panic!("no alarm that {words}: {other:?}"),
            }
        }
    }

    fn take(&self, drop: &Drop) -> Taken {
        self.inbox.take(&drop.name, &drop.ident, None).unwrap()
    }

    /// Everything that was still to be said: what a file written now is behind.
    fn rest(&self) -> Vec<InboxEvent> {
        let mark = "the-last-one.yaml";
        fs::write(self.at(mark), JOB).unwrap();
        let mut rest = Vec::new();
        loop {
            match self.next() {
                InboxEvent::Dropped(drop) if drop.name == mark => {
                    self.take(&drop);
                    return rest;
                }
                other => rest.push(other),
            }
        }
    }

    #[track_caller]
    fn nothing_more(&self) {
        assert_eq!(self.rest(), []);
    }
}

fn watch(root: &Path) -> Result<(Inbox, Receiver<(InboxEvent, Instant)>), InboxError> {
    let (sender, events): (Sender<_>, _) = channel();
    let sender = Mutex::new(sender);
    let uid = rustix::process::getuid().as_raw();
    let config = InboxConfig::new(root.join("inbox"), &root.join("state"), uid);
    let deliver = Arc::new(move |event| {
        #[expect(clippy::disallowed_methods, reason = "measures how soon an event came")]
        let at = Instant::now();
        std::mem::drop(sender.lock().unwrap().send((event, at)));
    });
    Inbox::start(config, deliver).map(|inbox| (inbox, events))
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

fn run(program: &str, args: &[&Path]) -> bool {
    Command::new(program).args(args).status().is_ok_and(|status| status.success())
}

#[test]
fn a_file_renamed_in_is_one_drop_at_once() {
    let watched = Watched::start();
    let mut latencies = Vec::new();
    for n in 0..50 {
        let name = format!("job-{n}.yaml");
        fs::write(watched.staging(&name), JOB).unwrap();
        #[expect(clippy::disallowed_methods, reason = "measures how soon an event comes")]
        let before = Instant::now();
        fs::rename(watched.staging(&name), watched.at(&name)).unwrap();
        let (event, at) = watched.events.recv_timeout(PATIENCE).unwrap();
        let InboxEvent::Dropped(drop) = event else { panic!("{event:?}") };
        assert_eq!((drop.name.as_str(), drop.stem.as_str()), (name.as_str(), format!("job-{n}").as_str()));
        assert_eq!(drop.bytes, JOB.as_bytes());
        assert_eq!(drop.ident.hash, blake3::hash(JOB.as_bytes()).to_hex().as_str());
        assert_eq!(drop.ident.ino, fs::metadata(watched.at(&name)).unwrap().ino());
        latencies.push(at - before);
        assert_eq!(watched.take(&drop), Taken::Moved(None));
        assert!(!watched.at(&name).exists());
    }
    latencies.sort_unstable();
    println!("rename to delivery: median {:?}, worst {:?}", latencies[25], latencies[49]);
    // Far below the settling time that a written file waits for, even on a loaded machine.
    assert!(latencies[25] < Duration::from_millis(50), "{latencies:?}");
    watched.nothing_more();
}

#[test]
fn nothing_wakes_the_inbox_while_nothing_happens() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("inbox")).unwrap();
    let (sender, threads) = channel();
    let sender = Mutex::new(sender);
    let deliver = Arc::new(move |_| {
        let thread = rustix::thread::gettid().as_raw_nonzero();
        let _ = sender.lock().unwrap().send(thread);
    });
    let config = InboxConfig::new(
        root.path().join("inbox"),
        &root.path().join("state"),
        rustix::process::getuid().as_raw(),
    );
    let _inbox = Inbox::start(config, deliver).unwrap();
    fs::write(root.path().join("inbox/a.yaml"), JOB).unwrap();
    let thread = threads.recv_timeout(PATIENCE).unwrap();
    let waits = || {
        let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
        line.split_whitespace().next_back().unwrap().parse::<u64>().unwrap()
    };
    let before = waits();
    assert!(threads.recv_timeout(Duration::from_secs(2)).is_err(), "nothing is to be said");
    // It goes to sleep once. Another test's mounts may wake it.
    assert!(waits() - before <= 4, "{} wake-ups in two seconds", waits() - before);
}

#[test]
fn a_copied_file_is_one_drop() {
    let watched = Watched::start();
    fs::write(watched.staging("a.yaml"), JOB).unwrap();
    assert!(run("cp", &[&watched.staging("a.yaml"), &watched.at("a.yaml")]));
    let drop = watched.dropped("a.yaml");
    assert_eq!(drop.bytes, JOB.as_bytes());
    watched.nothing_more();
    assert!(run("cp", &[&watched.staging("a.yaml"), &watched.at("b.yml")]));
    assert_eq!(watched.dropped("b.yml").stem, "b");
    watched.nothing_more();
}

#[test]
fn a_file_that_is_written_slowly_is_taken_when_it_is_closed_and_not_before() {
    let watched = Watched::start();
    let mut file = fs::File::create(watched.at("slow.yaml")).unwrap();
    for (n, line) in JOB.lines().enumerate() {
        writeln!(file, "{line}").unwrap();
        if n == 0 {
            // It settles, is looked at, and somebody still has it open.
            assert_eq!(watched.waiting("slow.yaml"), "it is still being written");
        } else {
            // Other drops come and go meanwhile.
            watched.nothing_more();
        }
    }
    drop(file);
    assert_eq!(watched.dropped("slow.yaml").bytes, JOB.as_bytes());
    watched.nothing_more();
}

#[test]
fn a_file_renamed_in_while_somebody_still_writes_it_waits_for_the_close() {
    let watched = Watched::start();
    let mut file = fs::File::create(watched.staging("open.yaml")).unwrap();
    file.write_all(b"work:").unwrap();
    fs::rename(watched.staging("open.yaml"), watched.at("open.yaml")).unwrap();
    assert_eq!(watched.waiting("open.yaml"), "it is still being written");
    file.write_all(b" {}\n").unwrap();
    drop(file);
    assert_eq!(watched.dropped("open.yaml").bytes, b"work: {}\n");
    watched.nothing_more();
}

#[test]
fn a_temporary_name_that_is_renamed_is_one_drop() {
    let watched = Watched::start();
    for temporary in [".a.yaml.KXSu3i", "a.yaml.tmp", "sedL6pgX3", "a.yaml~"] {
        fs::write(watched.at(temporary), JOB).unwrap();
        fs::rename(watched.at(temporary), watched.at("a.yaml")).unwrap();
        let drop = watched.dropped("a.yaml");
        watched.take(&drop);
        watched.nothing_more();
    }
}

#[test]
fn rsync_is_one_drop() {
    let watched = Watched::start();
    fs::write(watched.staging("a.yaml"), JOB).unwrap();
    if !run("rsync", &[&watched.staging("a.yaml"), &watched.dir()]) {
        eprintln!("SKIPPED: rsync is not installed");
        return;
    }
    watched.dropped("a.yaml");
    watched.nothing_more();
}

#[test]
fn a_file_that_is_being_edited_is_not_taken_until_the_editor_lets_go() {
    let watched = Watched::start();
    for lock in [".a.yaml.swp", ".#a.yaml", ".~lock.a.yaml#"] {
        // Emacs locks by a symbolic link that leads nowhere.
        symlink("ana@host.4242", watched.at(lock)).unwrap();
        fs::write(watched.at("a.yaml"), "half").unwrap();
        assert_eq!(watched.waiting("a.yaml"), format!("it is being edited ({lock})"));
        fs::write(watched.at("a.yaml"), JOB).unwrap();
        watched.nothing_more();
        fs::remove_file(watched.at(lock)).unwrap();
        let drop = watched.dropped("a.yaml");
        assert_eq!(drop.bytes, JOB.as_bytes());
        watched.take(&drop);
        watched.nothing_more();
    }
}

#[test]
fn vim_saving_a_new_file_is_one_drop_with_all_of_it() {
    let watched = Watched::start();
    let vim = Command::new("vim")
        .args(["-Nu", "NONE", "-es", "-c", "call setline(1, ['work: 1', 'data: 2'])", "-c", "wq"])
        .arg(watched.at("v.yaml"))
        .env("TERM", "dumb")
        .stdin(std::process::Stdio::null())
        .status();
    if !vim.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: vim is not installed");
        return;
    }
    let mut event = watched.next();
    if matches!(event, InboxEvent::Waiting { .. }) {
        event = watched.next();
    }
    let InboxEvent::Dropped(drop) = event else { panic!("{event:?}") };
    assert_eq!((drop.name.as_str(), drop.bytes.as_slice()), ("v.yaml", &b"work: 1\ndata: 2\n"[..]));
    watched.nothing_more();
}

#[test]
fn a_second_file_renamed_onto_the_name_between_delivery_and_take_is_a_drop_of_its_own() {
    let watched = Watched::start();
    watched.mv_in("a.yaml", "first");
    let first = watched.dropped("a.yaml");
    watched.mv_in("a.yaml", "second");
    assert_eq!(watched.take(&first), Taken::Replaced);
    let second = watched.dropped("a.yaml");
    assert_eq!((first.bytes.as_slice(), second.bytes.as_slice()), (&b"first"[..], &b"second"[..]));
    assert_eq!(watched.take(&second), Taken::Moved(None));
    assert_eq!(watched.take(&second), Taken::Gone);
    watched.nothing_more();
}

#[test]
fn a_file_whose_name_is_as_long_as_names_may_be_is_taken() {
    let watched = Watched::start();
    for name in ["n".repeat(250) + ".yaml", "日本".repeat(41) + "x.yaml"] {
        watched.mv_in(&name, JOB);
        let drop = watched.dropped(&name);
        assert_eq!(watched.take(&drop), Taken::Moved(None), "{name}");
        assert!(!watched.at(&name).exists());
    }
}

#[test]
fn takes_and_renames_onto_the_same_name_at_the_same_moment_lose_nothing() {
    const DROPS: usize = 500;
    let watched = Watched::start();
    for n in 0..DROPS {
        fs::write(watched.staging(&n.to_string()), format!("drop {n}")).unwrap();
    }
    let (go, told) = channel::<usize>();
    let (staging, name) = (watched.root.path().join("staging"), watched.at("a.yaml"));
    let renamer = std::thread::spawn(move || {
        for n in told {
            fs::rename(staging.join(n.to_string()), &name).unwrap();
        }
    });
    go.send(0).unwrap();
    let mut seen = BTreeMap::new();
    while seen.len() < DROPS {
        let InboxEvent::Dropped(drop) = watched.next() else { continue };
        *seen.entry(String::from_utf8(drop.bytes.clone()).unwrap()).or_insert(0) += 1;
        // The next rename and this take race.
        if seen.len() < DROPS {
            go.send(seen.len()).unwrap();
        }
        watched.take(&drop);
    }
    std::mem::drop(go);
    renamer.join().unwrap();
    assert!(seen.values().all(|times| *times == 1), "{seen:?}");
    watched.nothing_more();
    assert_eq!(fs::read_dir(watched.dir().join(".taken")).unwrap().count(), 0);
}

#[test]
fn a_file_rewritten_in_place_between_delivery_and_take_is_a_drop_of_its_own() {
    let watched = Watched::start();
    watched.mv_in("a.yaml", "first");
    let first = watched.dropped("a.yaml");
    fs::write(watched.at("a.yaml"), "other").unwrap();
    assert_eq!(watched.take(&first), Taken::Replaced);
    let second = watched.dropped("a.yaml");
    assert_eq!(second.bytes, b"other");
    assert_eq!(watched.take(&second), Taken::Moved(None));
    watched.nothing_more();
}

#[test]
fn a_thousand_at_once_come_once_each_and_soon() {
    let watched = Watched::start();
    for n in 0..1000 {
        fs::write(watched.staging(&format!("{n}.yaml")), JOB).unwrap();
    }
    #[expect(clippy::disallowed_methods, reason = "measures how soon a thousand come")]
    let before = Instant::now();
    for n in 0..1000 {
        let name = format!("{n}.yaml");
        fs::rename(watched.staging(&name), watched.at(&name)).unwrap();
    }
    let mut names = BTreeMap::new();
    let mut last = before;
    while names.len() < 1000 {
        let (event, at) = watched.events.recv_timeout(PATIENCE).unwrap();
        let InboxEvent::Dropped(drop) = event else { panic!("{event:?}") };
        last = at;
        assert_eq!(watched.take(&drop), Taken::Moved(None));
        *names.entry(drop.name).or_insert(0) += 1;
    }
    println!("1,000 renamed in: all delivered after {:?}", last - before);
    assert!(last - before < Duration::from_secs(2), "{:?}", last - before);
    assert!(names.values().all(|times| *times == 1));
    watched.nothing_more();
}

/// The length of the event queue, put back when this is dropped. It counts when a watcher is made.
struct ShortQueue(String);

impl ShortQueue {
    const PATH: &str = "/proc/sys/fs/inotify/max_queued_events";

    fn set(length: u32) -> Option<Self> {
        let before = fs::read_to_string(Self::PATH).ok()?;
        fs::write(Self::PATH, length.to_string()).ok()?;
        Some(Self(before))
    }
}

impl std::ops::Drop for ShortQueue {
    fn drop(&mut self) {
        fs::write(Self::PATH, &self.0).unwrap();
    }
}

#[test]
fn an_overflow_of_the_event_queue_loses_nothing() {
    let Some(short) = ShortQueue::set(16) else {
        eprintln!("SKIPPED: only root sets fs.inotify.max_queued_events");
        return;
    };
    let watched = Watched::start();
    std::mem::drop(short);
    for n in 0..1000 {
        fs::write(watched.at(&format!("{n}.yaml")), JOB).unwrap();
    }
    let mut names = BTreeMap::new();
    while names.len() < 1000 {
        match watched.next() {
            InboxEvent::Dropped(drop) => {
                watched.take(&drop);
                *names.entry(drop.name).or_insert(0) += 1;
            }
            InboxEvent::Waiting { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(names.values().all(|times| *times == 1));
    watched.nothing_more();
}

#[test]
fn a_folder_removed_and_made_again_is_watched_again() {
    let watched = Watched::start();
    for round in 0..3 {
        fs::remove_dir_all(watched.dir()).unwrap();
        watched.alarm("is gone");
        fs::create_dir(watched.dir()).unwrap();
        assert_eq!(watched.next(), InboxEvent::Healed);
        let name = format!("{round}.yaml");
        watched.mv_in(&name, JOB);
        watched.take(&watched.dropped(&name));
    }
    watched.nothing_more();
}

#[test]
fn a_folder_replaced_in_one_breath_is_watched_again() {
    let watched = Watched::start();
    for round in 0..20 {
        fs::create_dir(watched.staging("next")).unwrap();
        fs::write(watched.staging("next").join(format!("{round}.yaml")), JOB).unwrap();
        fs::rename(watched.dir(), watched.staging(&format!("old-{round}"))).unwrap();
        fs::rename(watched.staging("next"), watched.dir()).unwrap();
        let mut later = false;
        loop {
            match watched.next() {
                InboxEvent::Dropped(drop) if drop.name == format!("{round}.yaml") => {
                    watched.take(&drop);
                    // Also what comes after the folder was looked through.
                    watched.mv_in(&format!("{round}-later.yaml"), JOB);
                }
                InboxEvent::Dropped(drop) => {
                    later = drop.name == format!("{round}-later.yaml");
                    watched.take(&drop);
                }
                InboxEvent::Alarm { .. } | InboxEvent::Healed => {}
                other => panic!("{other:?}"),
            }
            if later {
                break;
            }
        }
    }
}

#[test]
fn a_file_in_the_place_of_the_inbox_is_reported_until_it_is_gone() {
    let watched = Watched::start();
    fs::remove_dir_all(watched.dir()).unwrap();
    watched.alarm("is gone");
    fs::write(watched.dir(), "what is this").unwrap();
    watched.alarm("is not a folder");
    fs::remove_file(watched.dir()).unwrap();
    watched.alarm("is gone");
    fs::create_dir(watched.dir()).unwrap();
    assert_eq!(watched.next(), InboxEvent::Healed);
    watched.mv_in("a.yaml", JOB);
    watched.dropped("a.yaml");
}

#[test]
fn an_inbox_that_is_mounted_over_and_unmounted_is_watched_again() {
    let watched = Watched::start();
    let mount = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(watched.dir()).status();
    if !mount.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: mounting is not allowed here");
        return;
    }
    watched.mv_in_by_copy("a.yaml");
    let drop = watched.dropped("a.yaml");
    watched.take(&drop);
    watched.nothing_more();
    // Its own mark and lock are in there: the unmount is a lazy one.
    assert!(Command::new("umount").arg("-l").arg(watched.dir()).status().unwrap().success());
    watched.mv_in("b.yaml", JOB);
    watched.dropped("b.yaml");
}

impl Watched {
    /// For another file system: a rename is not possible.
    fn mv_in_by_copy(&self, name: &str) {
        fs::write(self.at(name), JOB).unwrap();
    }
}

#[test]
fn links_pipes_sockets_and_devices_are_refused_without_being_opened() {
    let watched = Watched::start();
    symlink("/etc/passwd", watched.at("link.yaml")).unwrap();
    let (reason, hint) = watched.refused("link.yaml");
    assert!(reason.contains("symbolic link") && hint.contains("cp"), "{reason}");

    fs::write(watched.staging("two"), JOB).unwrap();
    fs::hard_link(watched.staging("two"), watched.at("two.yaml")).unwrap();
    assert!(watched.refused("two.yaml").0.contains("hard link"));

    mknodat(CWD, watched.at("pipe.yaml"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    assert!(watched.refused("pipe.yaml").0.contains("pipe"));

    let _socket = std::os::unix::net::UnixListener::bind(watched.at("s.yaml")).unwrap();
    assert!(watched.refused("s.yaml").0.contains("socket"));

    let null = rustix::fs::makedev(1, 5);
    if mknodat(CWD, watched.at("zero.yaml"), FileType::CharacterDevice, Mode::from_raw_mode(0o600), null)
        .is_ok()
    {
        assert!(watched.refused("zero.yaml").0.contains("device"));
    } else {
        eprintln!("SKIPPED: only root makes devices");
    }
    watched.nothing_more();

    // The second name goes: the file is a file like any other.
    fs::remove_file(watched.staging("two")).unwrap();
    watched.inbox.rescan();
    assert_eq!(watched.dropped("two.yaml").bytes, JOB.as_bytes());
    watched.nothing_more();
}

#[test]
fn a_huge_sparse_file_is_refused_by_its_size() {
    let watched = Watched::start();
    let file = fs::File::create(watched.staging("huge.yaml")).unwrap();
    if file.set_len(1 << 40).is_err() {
        file.set_len(1 << 33).unwrap();
    }
    drop(file);
    fs::rename(watched.staging("huge.yaml"), watched.at("huge.yaml")).unwrap();
    let (reason, _) = watched.refused("huge.yaml");
    assert!(reason.contains("too large") && reason.contains("at most 1 MiB"), "{reason}");
    watched.nothing_more();
}

#[test]
fn a_file_of_another_account_is_refused() {
    if !is_root() {
        eprintln!("SKIPPED: only root gives files away");
        return;
    }
    let watched = Watched::start();
    fs::write(watched.staging("a.yaml"), JOB).unwrap();
    std::os::unix::fs::chown(watched.staging("a.yaml"), Some(12345), None).unwrap();
    fs::rename(watched.staging("a.yaml"), watched.at("a.yaml")).unwrap();
    assert!(watched.refused("a.yaml").0.contains("uid 12345"));
    watched.nothing_more();
}

#[test]
fn an_empty_file_may_be_filled_for_two_seconds_and_then_counts_as_empty() {
    let watched = Watched::start();
    fs::write(watched.at("later.yaml"), "").unwrap();
    watched.nothing_more();
    fs::write(watched.at("later.yaml"), JOB).unwrap();
    assert_eq!(watched.dropped("later.yaml").bytes, JOB.as_bytes());
    fs::write(watched.at("never.yaml"), "").unwrap();
    watched.nothing_more();
    assert_eq!(watched.dropped("never.yaml").bytes, b"");
    watched.nothing_more();
}

#[test]
fn what_was_delivered_comes_again_when_it_changes_and_not_when_its_mode_does() {
    let watched = Watched::start();
    watched.mv_in("a.yaml", "wrong");
    let wrong = watched.dropped("a.yaml");
    fs::write(watched.at("a.yaml.why.txt"), "line 1: …").unwrap();
    fs::set_permissions(watched.at("a.yaml"), fs::Permissions::from_mode(0o640)).unwrap();
    watched.inbox.rescan();
    watched.nothing_more();
    fs::write(watched.at("a.yaml"), "right").unwrap();
    let right = watched.dropped("a.yaml");
    assert_ne!(wrong.ident, right.ident);
    watched.nothing_more();
    watched.inbox.forget("a.yaml");
    assert_eq!(watched.dropped("a.yaml").bytes, b"right");
    fs::remove_file(watched.at("a.yaml")).unwrap();
    assert_eq!(watched.next(), InboxEvent::Gone { name: "a.yaml".into() });
    watched.nothing_more();
}

#[test]
fn names_that_are_no_job_files_are_said_once_with_what_to_do() {
    let watched = Watched::start();
    for (name, text, reason, hint) in [
        ("train.sh", "#!/bin/bash\n#SBATCH --gpus 1\n", "this is a shell script", "bash script.sh"),
        ("train.txt", JOB, "names of job files end in .yaml", "mv"),
        ("notes", "buy milk", "not a job file: names end in .yaml", ""),
    ] {
        watched.mv_in(name, text);
        let told = watched.refused(name);
        assert_eq!(told.0, reason);
        assert!(told.1.contains(hint), "{told:?}");
        watched.inbox.rescan();
        watched.nothing_more();
    }
    let odd: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff.yaml");
    fs::write(watched.staging("odd"), JOB).unwrap();
    fs::rename(watched.staging("odd"), watched.dir().join(odd)).unwrap();
    assert!(watched.refused("\u{FFFD}.yaml").0.contains("UTF-8"));
}

#[test]
fn what_is_there_at_the_start_is_delivered() {
    let watched = Watched::with(|inbox| {
        fs::write(inbox.join("a.yaml"), JOB).unwrap();
        fs::create_dir(inbox.join("folder")).unwrap();
        fs::write(inbox.join("folder/job.yaml"), JOB).unwrap();
    });
    watched.dropped("a.yaml");
    let folder = watched.dropped("folder");
    assert_eq!(folder.folder, Some(watched.at("folder")));
    watched.nothing_more();
}

#[test]
fn after_a_crash_an_accepted_file_on_its_way_out_is_removed_and_another_one_is_put_back() {
    let root = tempfile::tempdir().unwrap();
    let inbox = root.path().join("inbox");
    fs::create_dir_all(inbox.join(".taken")).unwrap();
    for (name, expected) in [("mine.yaml", "accepted"), ("other.yaml", "something else")] {
        let path = inbox.join(".taken").join(name);
        fs::write(&path, "accepted").unwrap();
        let meta = fs::metadata(&path).unwrap();
        let hash = blake3::hash(expected.as_bytes()).to_hex();
        let out = format!("{:x}-{:x}-{hash}-{name}", meta.dev(), meta.ino());
        fs::rename(&path, inbox.join(".taken").join(out)).unwrap();
    }
    let (_inbox, events) = watch(root.path()).unwrap();
    let (event, _) = events.recv_timeout(PATIENCE).unwrap();
    let InboxEvent::Dropped(drop) = event else { panic!("{event:?}") };
    assert_eq!((drop.name.as_str(), drop.bytes.as_slice()), ("other.yaml", &b"accepted"[..]));
    assert_eq!(fs::read_dir(inbox.join(".taken")).unwrap().count(), 0);
}

#[test]
fn a_folder_renamed_in_is_one_drop_and_is_taken_whole() {
    let watched = Watched::start();
    let staged = watched.staging("sweep");
    fs::create_dir_all(staged.join("src")).unwrap();
    fs::write(staged.join("src/train.py"), "print()").unwrap();
    fs::write(staged.join("job.yaml"), JOB).unwrap();
    fs::rename(&staged, watched.at("sweep")).unwrap();
    let drop = watched.dropped("sweep");
    assert_eq!((drop.stem.as_str(), &drop.folder), ("sweep", &Some(watched.at("sweep"))));
    let to = watched.root.path().join("jobs/1-sweep/drop");
    let taken = watched.inbox.take("sweep", &drop.ident, Some(&to)).unwrap();
    assert_eq!(taken, Taken::Moved(Some(to.clone())));
    assert_eq!(fs::read_to_string(to.join("src/train.py")).unwrap(), "print()");
    assert!(!watched.at("sweep").exists());
    watched.nothing_more();
}

#[test]
fn a_folder_that_is_copied_in_is_one_drop_when_all_of_it_is_there() {
    let watched = Watched::start();
    let staged = watched.staging("sweep");
    fs::create_dir_all(staged.join("a/b/c")).unwrap();
    fs::write(staged.join("job.yaml"), JOB).unwrap();
    for n in 0..200 {
        fs::write(staged.join(format!("a/b/c/{n}.txt")), "data").unwrap();
    }
    assert!(run("cp", &[Path::new("-r"), &staged, &watched.dir()]));
    watched.dropped("sweep");
    assert_eq!(fs::read_dir(watched.at("sweep/a/b/c")).unwrap().count(), 200);
    watched.nothing_more();
}

#[test]
fn a_folder_in_which_a_file_is_still_being_written_waits() {
    let watched = Watched::start();
    fs::create_dir(watched.at("slow")).unwrap();
    fs::write(watched.at("slow").join("job.yaml"), JOB).unwrap();
    let mut data = fs::File::create(watched.at("slow").join("data.bin")).unwrap();
    data.write_all(b"half").unwrap();
    assert_eq!(watched.waiting("slow"), "data.bin is still being written");
    data.write_all(b" and half").unwrap();
    drop(data);
    watched.dropped("slow");
    assert_eq!(fs::read(watched.at("slow/data.bin")).unwrap(), b"half and half");
    watched.nothing_more();
}

#[test]
fn a_folder_without_a_job_file_is_refused_and_read_when_it_has_one() {
    let watched = Watched::start();
    fs::create_dir(watched.staging("plain")).unwrap();
    fs::rename(watched.staging("plain"), watched.at("plain")).unwrap();
    assert!(watched.refused("plain").0.contains("no job.yaml"));
    watched.nothing_more();
    fs::write(watched.at("plain").join("job.yaml"), "wrong").unwrap();
    assert_eq!(watched.dropped("plain").bytes, b"wrong");
    fs::write(watched.at("plain").join("job.yaml"), JOB).unwrap();
    assert_eq!(watched.dropped("plain").bytes, JOB.as_bytes());
    watched.nothing_more();
    fs::remove_dir_all(watched.at("plain")).unwrap();
    assert!(watched.rest().contains(&InboxEvent::Gone { name: "plain".into() }));
}

#[test]
fn an_inbox_that_another_scheduler_has_is_refused() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("inbox")).unwrap();
    let _mark = mark_owner(&root.path().join("inbox"), Path::new("/elsewhere/state")).unwrap();
    let refused = watch(root.path()).map(|_| ()).unwrap_err();
    assert!(
        matches!(&refused, InboxError::Owned { owner, .. } if owner == "/elsewhere/state"),
        "{refused:?}"
    );
}
