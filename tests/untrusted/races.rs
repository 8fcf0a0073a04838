//! Trees that somebody changes while they are read: whatever is swapped when, nothing from outside is ever taken.

use overnight::files::{SnapshotLimits, SnapshotRequest, collect, remove_tree, snapshot};
use overnight::model::{Collect, OutputItem, OutputKind};
use rustix::fs::{Mode, OFlags, RenameFlags};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tempfile::TempDir;

const SECRET: &str = "TOP-SECRET-WORDS";
/// Both sides of a swap must have been met so often.
const MET: usize = 5;

/// `tree/a` with `dir/file` in it, and beside `dir` a link of the same shape that leads outside.
fn world() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    fs::create_dir_all(top.join("tree/a/dir")).unwrap();
    fs::write(top.join("tree/a/dir/file"), "inside").unwrap();
    fs::create_dir(top.join("outside")).unwrap();
    fs::write(top.join("outside/file"), SECRET).unwrap();
    symlink("../../outside", top.join("tree/a/link")).unwrap();
    dir
}

/// Swaps `tree/a/dir` and `tree/a/link` for each other, over and over, while `test` runs.
fn while_swapping(top: &Path, test: impl FnOnce(&AtomicUsize)) {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let (stop, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        scope.spawn(|| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dir = rustix::fs::open(top.join("tree/a"), flags, Mode::empty()).unwrap();
            while !stop.load(Ordering::Relaxed) {
                // Gone for a moment while the test makes it anew.
                let _ = rustix::fs::renameat_with(&dir, "dir", &dir, "link", RenameFlags::EXCHANGE);
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        test(&swaps);
    });
}

/// Whether the secret is in a file below.
fn has_secret(dir: &Path) -> bool {
    fs::read_dir(dir).into_iter().flatten().flatten().any(|entry| {
        let meta = entry.path().symlink_metadata().unwrap();
        if meta.is_dir() {
            has_secret(&entry.path())
        } else {
            meta.is_file() && fs::read_to_string(entry.path()).unwrap().contains(SECRET)
        }
    })
}

#[test]
fn no_output_is_collected_through_a_link_that_a_directory_has_become() {
    let dir = world();
    let top = dir.path();
    let item = |path: &str| OutputItem { path: path.to_owned(), kind: OutputKind::Files, optional: true };
    while_swapping(top, |_| {
        let (mut found, mut missed) = (0, 0);
        for turn in 0.. {
            let output_dir = top.join(format!("output-{turn}"));
            let order = Collect {
                items: vec![item("a/dir/file"), item("**/file"), item("a/dir")],
                work_dir: top.join("tree"),
                output_dir: output_dir.clone(),
                // Copied, not moved: the next turn finds it again.
                live: true,
                newer_than_ns: 0,
                output_to: None,
                job: "1".to_owned(),
                partial: false,
                own: Vec::new(),
            };
            let collected = collect(&order, &mut |_| {}).unwrap();
            assert!(!has_secret(&output_dir), "{collected:?}");
            if collected.outputs.is_empty() {
                missed += 1;
            } else {
                found += 1;
            }
            remove_tree(&output_dir).unwrap();
            if turn >= 200 && found >= MET && missed >= MET {
                break;
            }
        }
    });
}

#[test]
fn no_snapshot_is_taken_through_a_link_that_a_directory_has_become() {
    let dir = world();
    let top = dir.path();
    while_swapping(top, |_| {
        let (mut whole, mut less) = (0, 0);
        for turn in 0.. {
            let dest = top.join("copy");
            let request = SnapshotRequest {
                dir: top.join("tree"),
                skip: Vec::new(),
                keep: Vec::new(),
                limits: SnapshotLimits::default(),
                dest: dest.clone(),
            };
            // An entry that has become something else since it was listed is left out; that is no failure.
            snapshot(&request).unwrap();
            assert!(!has_secret(&dest));
            let there = ["a/dir/file", "a/link/file"].iter().any(|file| {
                let parent = dest.join(file);
                parent.parent().unwrap().symlink_metadata().is_ok_and(|meta| meta.is_dir()) && parent.exists()
            });
            if there {
                whole += 1;
            } else {
                less += 1;
            }
            if turn >= 100 && whole >= MET && (less >= 1 || turn >= 2_000) {
                break;
            }
        }
    });
}

#[test]
fn nothing_outside_is_removed_through_a_link_that_a_directory_has_become() {
    let dir = world();
    let top = dir.path();
    while_swapping(top, |_| {
        for _ in 0..300 {
            // `a` stays, so that the swaps go on below it.
            for name in ["dir", "link"] {
                remove_tree(&top.join("tree/a").join(name)).unwrap();
            }
            let _ = fs::create_dir(top.join("tree/a/dir"));
            let _ = fs::write(top.join("tree/a/dir/file"), "inside");
            let _ = symlink("../../outside", top.join("tree/a/link"));
            assert_eq!(fs::read_to_string(top.join("outside/file")).unwrap(), SECRET);
        }
    });
}

#[test]
fn a_drop_is_what_was_looked_at_even_while_others_take_its_name() {
    use overnight::inbox::{Inbox, InboxConfig, InboxEvent};
    use std::sync::{Arc, mpsc};
    let dir = tempfile::tempdir().unwrap();
    let inbox = dir.path().join("inbox");
    fs::create_dir(&inbox).unwrap();
    let secret = dir.path().join("secret");
    fs::write(&secret, SECRET).unwrap();
    fs::write(inbox.join("a.yaml"), "honest").unwrap();
    symlink(&secret, inbox.join(".b")).unwrap();
    let (tell, told) = mpsc::channel();
    let uid = rustix::process::geteuid().as_raw();
    let config = InboxConfig::new(inbox.clone(), dir.path(), uid);
    let deliver: overnight::inbox::Deliver = Arc::new(move |event| drop(tell.send(event)));
    let watched = Inbox::start(config, deliver).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dir = rustix::fs::open(&inbox, flags, Mode::empty()).unwrap();
            while !stop.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(&dir, "a.yaml", &dir, ".b", RenameFlags::EXCHANGE).unwrap();
            }
        });
        let (mut dropped, mut refused) = (0, 0);
        while dropped < MET || refused < MET {
            watched.forget("a.yaml");
            match told.recv_timeout(super::TIMEOUT) {
                Ok(InboxEvent::Dropped(drop)) => {
                    assert_eq!(drop.bytes, b"honest");
                    dropped += 1;
                }
                Ok(InboxEvent::Refused { reason, .. }) => {
                    assert!(!reason.contains(SECRET), "{reason}");
                    refused += 1;
                }
                Ok(_) => {}
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    panic!("{error} after {dropped} drops and {refused} refusals");
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}
