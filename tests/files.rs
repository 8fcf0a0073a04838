//! Snapshots, copies, removal and collection over real trees.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

#[path = "support/small_disk.rs"]
mod small_disk;

use overnight::files::{
    SnapshotError, SnapshotLimits, SnapshotReport, SnapshotRequest, collect_main, copy_tree, remove_tree,
    snapshot,
};
use overnight::model::{Bytes, Collect, Collected, OutputItem, OutputKind};
use small_disk::{SmallDisk, skipped};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A tree out of `path: content`.
fn tree(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in files {
        put(dir.path(), path, content);
    }
    dir
}

fn put(dir: &Path, path: &str, content: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn mkfifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode};
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
}

/// Everything in a tree: directories end with a slash, links name their target.
fn names(dir: &Path) -> Vec<String> {
    fn walk(dir: &Path, below: &str, names: &mut Vec<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                names.push(format!("{name}/"));
                walk(&entry.path(), &format!("{name}/"), names);
            } else if kind.is_symlink() {
                names.push(format!("{name} -> {}", fs::read_link(entry.path()).unwrap().display()));
            } else {
                names.push(name);
            }
        }
    }
    let mut names = Vec::new();
    walk(dir, "", &mut names);
    names.sort();
    names
}

// --- snapshots ---

fn request(dir: &Path, dest: &Path) -> SnapshotRequest {
    SnapshotRequest {
        dir: dir.to_owned(),
        skip: Vec::new(),
        keep: Vec::new(),
        limits: SnapshotLimits::default(),
        dest: dest.to_owned(),
    }
}

#[test]
fn a_snapshot_honours_ignore_files_outside_of_git_and_takes_hidden_and_untracked_files() {
    let dir = tree(&[
        ("train.py", "code"),
        (".env", "hidden"),
        (".gitignore", "*.log\n/out/\n!keep.log\n# a comment\n"),
        (".overnightignore", "data/\n"),
        ("run.log", "x"),
        ("keep.log", "x"),
        ("out/a", "x"),
        ("sub/out/b", "x"),
        ("sub/.gitignore", "secret\n"),
        ("sub/secret", "x"),
        ("data/big", "x"),
        ("module/.git", "gitdir: ../.git/modules/module"),
        ("module/lib.py", "x"),
        (".git/config", "x"),
    ]);
    let to = tempfile::tempdir().unwrap();
    let dest = to.path().join("1");
    let report = snapshot(&request(dir.path(), &dest)).unwrap();
    assert_eq!(
        names(&dest),
        [
            ".env",
            ".gitignore",
            ".overnightignore",
            "keep.log",
            "module/",
            "module/lib.py",
            "sub/",
            "sub/.gitignore",
            "sub/out/",
            "sub/out/b",
            "train.py"
        ]
    );
    assert_eq!(names(to.path()).iter().filter(|name| !name.starts_with("1/")).count(), 0);
    assert_eq!((report.files, report.skipped_special), (8, Vec::new()));
    assert_eq!(fs::read_to_string(dest.join("train.py")).unwrap(), "code");
}

#[test]
fn a_snapshot_honours_what_the_repository_above_ignores_and_nothing_above_the_repository() {
    let top = tree(&[
        (".gitignore", "*.py\n"),
        ("repo/.git/config", "x"),
        ("repo/.gitignore", "/code/build/\n*.tmp\n"),
        ("repo/code/a.py", "x"),
        ("repo/code/a.tmp", "x"),
        ("repo/code/build/o", "x"),
    ]);
    let dest = top.path().join("snap");
    snapshot(&request(&top.path().join("repo/code"), &dest)).unwrap();
    assert_eq!(names(&dest), ["a.py"]);
}

#[test]
fn skip_leaves_out_and_keep_takes_what_is_ignored_even_inside_ignored_directories() {
    let dir = tree(&[
        (".gitignore", "build/\n.env.local\n"),
        (".env.local", "x"),
        ("build/model.bin", "x"),
        ("build/deep/er/model.bin", "x"),
        ("build/other", "x"),
        ("wandb/run", "x"),
        ("src/wandb/run", "x"),
        ("a.py", "x"),
    ]);
    let dest = dir.path().join("../snap-of-skip");
    let dest = fs::canonicalize(dest.parent().unwrap())
        .unwrap()
        .join(format!("snap-{}", dir.path().file_name().unwrap().to_string_lossy()));
    let request = SnapshotRequest {
        skip: vec!["wandb".to_owned()],
        keep: vec![".env.local".to_owned(), "build/**/model.bin".to_owned()],
        ..request(dir.path(), &dest)
    };
    snapshot(&request).unwrap();
    assert_eq!(
        names(&dest),
        [
            ".env.local",
            ".gitignore",
            "a.py",
            "build/",
            "build/deep/",
            "build/deep/er/",
            "build/deep/er/model.bin",
            "build/model.bin",
            "src/"
        ]
    );
    remove_tree(&dest).unwrap();
}

#[test]
fn a_snapshot_copies_links_as_links_and_leaves_out_special_files() {
    let dir = tree(&[("a/file", "x")]);
    symlink("/etc", dir.path().join("etc")).unwrap();
    symlink("a/file", dir.path().join("link")).unwrap();
    mkfifo(&dir.path().join("fifo"));
    fs::set_permissions(dir.path().join("a/file"), fs::Permissions::from_mode(0o755)).unwrap();
    let to = tempfile::tempdir().unwrap();
    let dest = to.path().join("1");
    let report = snapshot(&request(dir.path(), &dest)).unwrap();
    assert_eq!(names(&dest), ["a/", "a/file", "etc -> /etc", "link -> a/file"]);
    assert_eq!(
        report,
        SnapshotReport { bytes: Bytes(1), files: 3, skipped_special: vec!["fifo".to_owned()] }
    );
    let (was, is) = (dir.path().join("a/file").metadata().unwrap(), dest.join("a/file").metadata().unwrap());
    assert_eq!(is.mode() & 0o777, 0o755);
    assert_eq!((is.mtime(), is.mtime_nsec()), (was.mtime(), was.mtime_nsec()));
    assert_eq!(is.nlink(), 1);
}

#[test]
fn a_snapshot_over_the_limit_names_the_total_and_the_largest_directories_and_copies_nothing() {
    let dir = tree(&[("a.py", "x"), ("src/lib/x.py", "xx")]);
    for (path, mib) in
        [("data/raw/night7/frames", 900), ("wandb/run", 300), ("e/f", 5), ("d/f", 4), ("c/f", 3)]
    {
        put(dir.path(), path, "");
        // Sparse: the size counts, not the blocks.
        fs::OpenOptions::new().write(true).open(dir.path().join(path)).unwrap().set_len(mib << 20).unwrap();
    }
    let to = tempfile::tempdir().unwrap();
    let error = snapshot(&request(dir.path(), &to.path().join("1"))).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(
            "is 1.2 GiB, limit 200 MiB: data/raw/night7/ 900 MiB, wandb/ 300 MiB, e/ 5 MiB, d/ 4 MiB, c/ 3 MiB;"
        ),
        "{text}"
    );
    assert_eq!(names(to.path()), [""; 0]);
    let SnapshotError::TooLarge { bytes, files, .. } = error else { panic!("{error:?}") };
    assert_eq!((bytes, files), (Bytes((1212 << 20) + 3), 7));
}

#[test]
fn a_snapshot_of_too_many_files_says_where_they_are() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("frames")).unwrap();
    for n in 0..30 {
        fs::write(dir.path().join(format!("frames/{n}")), "").unwrap();
    }
    let to = tempfile::tempdir().unwrap();
    let limits = SnapshotLimits { files: 20, ..SnapshotLimits::default() };
    let request = SnapshotRequest { limits, ..request(dir.path(), &to.path().join("1")) };
    let text = snapshot(&request).unwrap_err().to_string();
    assert!(text.contains("is 30 files, limit 20: frames/ 30 files;"), "{text}");
}

#[test]
fn a_snapshot_replaces_what_a_crash_left_half_done() {
    let dir = tree(&[("a", "new")]);
    let to = tree(&[(".1.partial/old", "x"), ("1/old", "x")]);
    snapshot(&request(dir.path(), &to.path().join("1"))).unwrap();
    assert_eq!(names(to.path()), ["1/", "1/a"]);
}

#[test]
fn a_snapshot_of_what_is_no_directory_says_so() {
    let dir = tree(&[("file", "x")]);
    for path in ["file", "none"] {
        let error = snapshot(&request(&dir.path().join(path), &dir.path().join("dest"))).unwrap_err();
        assert!(matches!(error, SnapshotError::NotADirectory { .. }), "{error:?}");
    }
}

// --- copies and removal ---

#[test]
fn a_copied_tree_has_the_same_modes_times_and_links_and_shares_no_inode() {
    let dir = tree(&[("src/a/run.sh", "#!"), ("src/b", "x")]);
    let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
    fs::set_permissions(src.join("a/run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    symlink("../b", src.join("a/link")).unwrap();
    symlink("nowhere", src.join("dangling")).unwrap();
    let then = rustix::fs::Timespec { tv_sec: 1_000_000, tv_nsec: 42 };
    let times = rustix::fs::Timestamps { last_access: then, last_modification: then };
    for path in ["b", "a/run.sh", "a", "dangling"] {
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::utimensat(rustix::fs::CWD, src.join(path), &times, flags).unwrap();
    }
    fs::set_permissions(src.join("a"), fs::Permissions::from_mode(0o555)).unwrap();

    copy_tree(&src, &dst).unwrap();
    assert_eq!(names(&dst), names(&src));
    for path in ["b", "a/run.sh", "a", "dangling"] {
        let (was, is) =
            (fs::symlink_metadata(src.join(path)).unwrap(), fs::symlink_metadata(dst.join(path)).unwrap());
        assert_eq!((is.mode(), is.mtime(), is.mtime_nsec()), (was.mode(), 1_000_000, 42), "{path}");
        assert_ne!(is.ino(), was.ino());
    }
    // Again: it replaces what is there.
    fs::write(dst.join("extra"), "x").unwrap();
    copy_tree(&src, &dst).unwrap();
    assert_eq!(names(&dst), names(&src));
    assert_eq!(names(dir.path()).iter().filter(|name| name.contains("partial")).count(), 0);
}

#[test]
fn removal_follows_no_link_and_copes_with_closed_directories_and_deep_trees() {
    let outside = tree(&[("precious", "x")]);
    let dir = tree(&[("t/a/b", "x"), ("t/closed/c", "x")]);
    let top = dir.path().join("t");
    symlink(outside.path(), top.join("link")).unwrap();
    symlink(outside.path().join("precious"), top.join("a/link")).unwrap();
    mkfifo(&top.join("fifo"));
    fs::set_permissions(top.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    // Deeper than a path may be long, and than descriptors are to be had: made one directory at a time.
    let mut deep = rustix::fs::open(&top, rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap();
    for _ in 0..2000 {
        rustix::fs::mkdirat(&deep, "deep", rustix::fs::Mode::RWXU).unwrap();
        deep = rustix::fs::openat(&deep, "deep", rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty())
            .unwrap();
    }
    for n in 0..3000 {
        fs::write(top.join(format!("{n}")), "").unwrap();
    }
    remove_tree(&top).unwrap();
    assert_eq!(names(dir.path()), [""; 0]);
    assert_eq!(names(outside.path()), ["precious"]);

    remove_tree(&top).unwrap();
    symlink(outside.path(), &top).unwrap();
    remove_tree(&top).unwrap();
    assert_eq!(names(dir.path()), [""; 0]);
    assert_eq!(names(outside.path()), ["precious"]);
}

// --- collection ---

/// Without anybody who wants to know how far it is.
fn collect(order: &Collect) -> Result<Collected, overnight::files::CollectError> {
    overnight::files::collect(order, &mut |_| {})
}

struct Attempt {
    dir: TempDir,
    order: Collect,
}

/// An attempt with files in its work and its output directory.
fn attempt(items: &[&str], work: &[(&str, &str)], output: &[(&str, &str)]) -> Attempt {
    let dir = tempfile::tempdir().unwrap();
    let (work_dir, output_dir) = (dir.path().join("work"), dir.path().join("output"));
    for (path, content) in work {
        put(&work_dir, path, content);
    }
    fs::create_dir_all(&work_dir).unwrap();
    for (path, content) in output {
        put(&output_dir, path, content);
    }
    let order = Collect {
        items: items.iter().map(|path| item(path)).collect(),
        work_dir,
        output_dir,
        live: false,
        newer_than_ns: 0,
        output_to: None,
        job: "17".to_owned(),
        partial: false,
        own: Vec::new(),
    };
    Attempt { dir, order }
}

/// A declared output; `?` after it: optional.
fn item(path: &str) -> OutputItem {
    let optional = path.ends_with('?');
    OutputItem { path: path.trim_end_matches('?').to_owned(), kind: OutputKind::Model, optional }
}

fn paths(collected: &Collected) -> Vec<&str> {
    collected.outputs.iter().map(|file| file.path.to_str().unwrap()).collect()
}

#[test]
fn files_directories_and_globs_come_home_with_size_kind_and_hash() {
    let attempt = attempt(
        &["runs/best.pt", "./figures/**/*.png", "ckpt/", "log-?.txt", "listed.txt"],
        &[
            ("runs/best.pt", "model"),
            ("runs/last.pt", "x"),
            ("figures/a.png", "a"),
            ("figures/deep/er/b.png", "b"),
            ("figures/deep/c.txt", "x"),
            ("ckpt/1/w", "w"),
            ("log-1.txt", "1"),
            ("log-10.txt", "x"),
            ("sub/log-2.txt", "x"),
        ],
        &[("extra/unlisted.bin", "u"), ("listed.txt", "l")],
    );
    let collected = collect(&attempt.order).unwrap();
    assert_eq!(
        paths(&collected),
        [
            "ckpt/1/w",
            "extra/unlisted.bin",
            "figures/a.png",
            "figures/deep/er/b.png",
            "listed.txt",
            "log-1.txt",
            "runs/best.pt"
        ]
    );
    assert_eq!((collected.missing.as_slice(), collected.notes.as_slice()), ([].as_slice(), [].as_slice()));
    let best = &collected.outputs[6];
    assert_eq!((best.bytes, best.kind, best.partial), (Bytes(5), OutputKind::Model, false));
    assert_eq!(best.blake3, blake3::hash(b"model").to_hex().to_string());
    assert_eq!(collected.outputs[1].kind, OutputKind::Files);
    // Moved: what was not asked for stays.
    assert!(!attempt.order.work_dir.join("runs/best.pt").exists());
    assert!(attempt.order.work_dir.join("runs/last.pt").exists());
    assert_eq!(fs::read(attempt.order.output_dir.join("runs/best.pt")).unwrap(), b"model");
}

#[test]
fn a_required_path_without_a_match_or_with_nothing_in_it_is_missing() {
    let attempt = attempt(
        &["none.pt", "empty.pt", "emptydir", "*.csv", "maybe.pt?", "half/"],
        &[("empty.pt", ""), ("emptydir/x/y", ""), ("half/empty", ""), ("half/full", "x")],
        &[],
    );
    let collected = collect(&attempt.order).unwrap();
    assert_eq!(collected.missing, ["none.pt", "empty.pt", "emptydir", "*.csv"]);
    assert_eq!(paths(&collected), ["empty.pt", "emptydir/x/y", "half/empty", "half/full"]);
}

#[test]
fn what_is_in_the_output_directory_wins_over_the_same_name_in_the_work_directory() {
    let attempt = attempt(
        &["best.pt", "*.csv"],
        &[("best.pt", "work"), ("a.csv", "a")],
        &[("best.pt", "out"), ("b.csv", "b")],
    );
    let collected = collect(&attempt.order).unwrap();
    assert_eq!(paths(&collected), ["a.csv", "b.csv", "best.pt"]);
    assert_eq!(fs::read(attempt.order.output_dir.join("best.pt")).unwrap(), b"out");
}

#[test]
fn collecting_twice_gives_the_same_and_finishes_what_a_crash_interrupted() {
    let mut attempt = attempt(
        &["*.bin", "link"],
        &[("a.bin", "a"), ("b.bin", "b"), ("target", "t")],
        &[(".overnight-partial", "half a file")],
    );
    symlink("target", attempt.order.work_dir.join("link")).unwrap();
    attempt.order.output_to = Some(attempt.dir.path().join("to"));
    // As if the first try had been cut off after one file.
    fs::rename(attempt.order.work_dir.join("a.bin"), attempt.order.output_dir.join("a.bin")).unwrap();
    let first = collect(&attempt.order).unwrap();
    assert_eq!(paths(&first), ["a.bin", "b.bin", "link"]);
    assert_eq!(collect(&attempt.order).unwrap(), first);
    assert_eq!(names(&attempt.dir.path().join("to")), ["a.bin", "b.bin", "link"]);
}

#[test]
fn a_live_directory_is_copied_from_and_only_what_is_newer_counts() {
    let mut attempt =
        attempt(&["*.pt", "old/"], &[("old.pt", "o"), ("new.pt", "n"), ("old/1", "x"), ("old/2", "y")], &[]);
    attempt.order.live = true;
    attempt.order.newer_than_ns = 2_000_000_000_000_000_000;
    let set = |path: &str, ns: i64| {
        let time = rustix::fs::Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 };
        let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
        let flags = rustix::fs::AtFlags::empty();
        rustix::fs::utimensat(rustix::fs::CWD, attempt.order.work_dir.join(path), &times, flags).unwrap();
    };
    for path in ["old.pt", "old/1"] {
        set(path, 1_999_999_999_000_000_000);
    }
    for path in ["new.pt", "old/2"] {
        set(path, 2_000_000_000_000_000_001);
    }
    let collected = collect(&attempt.order).unwrap();
    assert_eq!(paths(&collected), ["new.pt", "old/2"]);
    assert!(collected.missing.is_empty());
    assert_eq!(names(&attempt.order.work_dir).len(), 5, "nothing was moved");
}

#[test]
fn an_output_directory_inside_a_live_directory_is_not_collected_into_itself() {
    let mut attempt = attempt(&["**/*.csv"], &[("a.csv", "a"), ("out/b.csv", "b")], &[]);
    attempt.order.live = true;
    attempt.order.output_dir = attempt.order.work_dir.join("out");
    let collected = collect(&attempt.order).unwrap();
    assert_eq!(paths(&collected), ["a.csv", "b.csv"]);
    assert_eq!(collect(&attempt.order).unwrap(), collected);
}

#[test]
fn nothing_outside_of_the_work_directory_is_read() {
    let outside = tree(&[("secret", "s"), ("sub/secret", "s")]);
    let up = format!("../{}/secret", outside.path().file_name().unwrap().to_string_lossy());
    let absolute = outside.path().join("secret").to_string_lossy().into_owned();
    let items = [
        up.as_str(),
        &absolute,
        "link/secret",
        "link/**",
        "link",
        "direct",
        "sub/*/secret",
        "deep/",
        "**/secret",
        ".",
        "fifo",
    ];
    let attempt = attempt(&items, &[("deep/ok", "x"), ("sub/real/secret", "inside")], &[]);
    let work = &attempt.order.work_dir;
    symlink(outside.path(), work.join("link")).unwrap();
    symlink(outside.path(), work.join("sub/link")).unwrap();
    symlink(outside.path().join("secret"), work.join("direct")).unwrap();
    symlink(outside.path().join("secret"), work.join("deep/in")).unwrap();
    mkfifo(&work.join("fifo"));
    mkfifo(&work.join("deep/fifo"));
    symlink(outside.path().join("sub"), attempt.order.output_dir.parent().unwrap().join("o")).unwrap();
    let collected = collect(&attempt.order).unwrap();
    assert_eq!(paths(&collected), ["deep/ok", "sub/real/secret"]);
    for file in &collected.outputs {
        assert_ne!(fs::read(attempt.order.output_dir.join(&file.path)).unwrap(), b"s");
    }
    assert_eq!(collected.missing, [&up, &absolute, ".", "link/secret", "link/**", "link", "direct", "fifo"]);
    let notes = collected.notes.join("\n");
    for note in [
        "leads out",
        "is absolute",
        "link is not a directory; links are not followed",
        "direct is a link out",
    ] {
        assert!(notes.contains(note), "{note}: {notes}");
    }
    assert_eq!(names(outside.path()), ["secret", "sub/", "sub/secret"]);
}

#[test]
fn a_link_planted_in_the_output_directory_leads_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    let attempt =
        attempt(&["runs/best.pt", "fine"], &[("runs/best.pt", "model"), ("fine", "x")], &[("x", "x")]);
    symlink(outside.path(), attempt.order.output_dir.join("runs")).unwrap();
    let collected = collect(&attempt.order).unwrap();
    assert_eq!(paths(&collected), ["fine", "x"]);
    assert_eq!(collected.missing, ["runs/best.pt"]);
    assert_eq!(names(outside.path()), [""; 0]);
}

#[test]
fn a_declared_link_within_the_work_directory_brings_the_file_it_names() {
    let attempt = attempt(&["best.pt", "runs/"], &[("runs/9.pt", "nine")], &[]);
    symlink("runs/9.pt", attempt.order.work_dir.join("best.pt")).unwrap();
    let collected = collect(&attempt.order).unwrap();
    assert_eq!(paths(&collected), ["best.pt", "runs/9.pt"]);
    assert_eq!(fs::read(attempt.order.output_dir.join("best.pt")).unwrap(), b"nine");
    assert!(!fs::symlink_metadata(attempt.order.output_dir.join("best.pt")).unwrap().is_symlink());
}

#[test]
fn an_extra_place_never_loses_what_others_put_there() {
    let mut attempt =
        attempt(&["best.pt", "d/same", "new"], &[("best.pt", "mine"), ("d/same", "same"), ("new", "n")], &[]);
    let to = attempt.dir.path().join("to");
    put(&to, "best.pt", "theirs");
    put(&to, "best.17.pt", "also theirs");
    put(&to, "d/same", "same");
    attempt.order.output_to = Some(to.clone());
    for _ in 0..2 {
        let collected = collect(&attempt.order).unwrap();
        assert_eq!(names(&to), ["best.17-2.pt", "best.17.pt", "best.pt", "d/", "d/same", "new"]);
        assert_eq!(fs::read(to.join("best.pt")).unwrap(), b"theirs");
        assert_eq!(fs::read(to.join("best.17.pt")).unwrap(), b"also theirs");
        assert_eq!(fs::read(to.join("best.17-2.pt")).unwrap(), b"mine");
        assert_eq!(
            collected.notes,
            [format!("{}/best.pt is another file: copied as best.17-2.pt", to.display())]
        );
    }
}

#[test]
fn an_extra_place_that_cannot_be_is_a_note_and_no_failure() {
    let mut attempt = attempt(&["a"], &[("a", "a"), ("file", "x")], &[]);
    attempt.order.output_to = Some(attempt.order.work_dir.join("file/below"));
    let collected = collect(&attempt.order).unwrap();
    assert_eq!((paths(&collected), collected.missing.len(), collected.notes.len()), (vec!["a"], 0, 1));
    assert!(collected.notes[0].starts_with("not copied to "), "{:?}", collected.notes);
}

#[test]
fn a_partial_run_returns_what_exists_marked_as_partial() {
    let mut attempt = attempt(&["a", "b"], &[("a", "a")], &[]);
    attempt.order.partial = true;
    let collected = collect(&attempt.order).unwrap();
    assert!(collected.outputs[0].partial);
    assert_eq!(collected.missing, ["b"]);
}

#[test]
fn names_with_braces_brackets_and_wrong_text_are_names() {
    let attempt = attempt(
        &["a{b,c}", "x[1].csv", "bad/"],
        &[("a{b,c}", "1"), ("ab", "x"), ("x[1].csv", "2"), ("x1.csv", "3")],
        &[],
    );
    let bad = attempt.order.work_dir.join("bad").join(std::ffi::OsStr::from_bytes(b"\xff.bin"));
    fs::create_dir_all(bad.parent().unwrap()).unwrap();
    fs::write(&bad, "x").unwrap();
    let collected = collect(&attempt.order).unwrap();
    assert_eq!(paths(&collected), ["a{b,c}", "bad/\u{FFFD}.bin", "x1.csv", "x[1].csv"]);
    serde_json::to_string(&collected).unwrap();
}

#[test]
fn output_on_another_file_system_is_copied() {
    let shm = Path::new("/dev/shm");
    let Ok(other) = tempfile::tempdir_in(shm) else {
        skipped("output_on_another_file_system_is_copied", "no /dev/shm");
        return;
    };
    let mut attempt = attempt(&["a", "d/**"], &[("a", "a"), ("d/e/f", "f")], &[]);
    if other.path().metadata().unwrap().dev() == attempt.dir.path().metadata().unwrap().dev() {
        skipped("output_on_another_file_system_is_copied", "/dev/shm is no other file system");
        return;
    }
    attempt.order.output_dir = other.path().join("output");
    let collected = collect(&attempt.order).unwrap();
    assert_eq!(paths(&collected), ["a", "d/e/f"]);
    assert_eq!(collect(&attempt.order).unwrap(), collected);
}

#[test]
fn without_a_work_directory_the_output_directory_still_counts() {
    let attempt = attempt(&["a"], &[], &[("a", "a")]);
    fs::remove_dir_all(&attempt.order.work_dir).unwrap();
    let collected = collect(&attempt.order).unwrap();
    assert_eq!((paths(&collected), collected.missing.len()), (vec!["a"], 0));
}

// --- the hidden verb ---

const CHILD: &str = "OVERNIGHT_TEST_COLLECT";

/// Not a test of its own: the other side of [`verb`], where the second argument is the path of the answer.
#[test]
#[expect(clippy::disallowed_methods, reason = "the exit code is what the verb answers with")]
fn the_verb_itself() {
    if std::env::var_os(CHILD).is_some() {
        std::process::exit(i32::from(collect_main()));
    }
}

fn verb(order: &[u8], answer: &Path) -> (i32, String) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([std::ffi::OsStr::new("the_verb_itself"), answer.as_os_str()])
        .args(["--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(order).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn the_verb_reads_an_order_and_leaves_the_answer_whole() {
    let attempt = attempt(&["a"], &[("a", "a")], &[]);
    let answer = attempt.dir.path().join("collected.json");
    let order = serde_json::to_vec(&attempt.order).unwrap();
    assert_eq!(verb(&order, &answer), (0, String::new()));
    let collected: Collected = serde_json::from_slice(&fs::read(&answer).unwrap()).unwrap();
    assert_eq!(paths(&collected), ["a"]);
    assert_eq!(verb(&order, &answer), (0, String::new()));
    assert_eq!(serde_json::from_slice::<Collected>(&fs::read(&answer).unwrap()).unwrap(), collected);
    assert!(!attempt.dir.path().join(".collected.json.partial").exists());
}

#[test]
fn the_verb_says_why_it_cannot_read_an_order() {
    let dir = tempfile::tempdir().unwrap();
    let (code, text) = verb(b"{}", &dir.path().join("answer"));
    assert_eq!(code, 1);
    assert!(text.starts_with("overnight collect: cannot read the order to collect: missing field"), "{text}");
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn a_full_disk_ends_the_verb_with_try_again_and_the_next_try_succeeds() {
    let Some(disk) = SmallDisk::new("a_full_disk_ends_the_verb_with_try_again", 512) else { return };
    let mut attempt = attempt(&["big"], &[("big", &"x".repeat(300 << 10))], &[]);
    attempt.order.output_dir = disk.0.join("output");
    put(&disk.0, "ballast", &"x".repeat(300 << 10));
    let answer = attempt.dir.path().join("collected.json");
    let order = serde_json::to_vec(&attempt.order).unwrap();
    let (code, text) = verb(&order, &answer);
    assert_eq!(code, 75, "{text}");
    assert!(!answer.exists());
    fs::remove_file(disk.0.join("ballast")).unwrap();
    assert_eq!(verb(&order, &answer), (0, String::new()));
    let collected: Collected = serde_json::from_slice(&fs::read(&answer).unwrap()).unwrap();
    let sizes: BTreeMap<_, _> =
        collected.outputs.iter().map(|file| (file.path.clone(), file.bytes.0)).collect();
    assert_eq!(sizes, BTreeMap::from([(PathBuf::from("big"), 300 << 10)]));
}

#[test]
fn a_strangers_hard_link_in_a_place_of_the_owners_is_not_taken_and_a_containers_file_is() {
    if !rustix::process::geteuid().is_root() {
        return skipped("a_strangers_hard_link_is_not_taken", "only root may give files away");
    }
    let mut attempt = attempt(&["*.txt"], &[("theirs.txt", "x"), ("mine.txt", "x"), ("alone.txt", "x")], &[]);
    let work = attempt.order.work_dir.clone();
    for (name, uid) in [("theirs.txt", Some(65_534)), ("mine.txt", None), ("alone.txt", Some(65_534))] {
        std::os::unix::fs::chown(work.join(name), uid, None).unwrap();
    }
    let elsewhere = tempfile::tempdir_in(attempt.dir.path()).unwrap();
    for name in ["theirs.txt", "mine.txt"] {
        fs::hard_link(work.join(name), elsewhere.path().join(name)).unwrap();
    }
    // The same directory as code: what is left out is named.
    let dest = attempt.dir.path().join("snapshot");
    let report = snapshot(&request(&work, &dest)).unwrap();
    assert_eq!(
        (names(&dest), report.skipped_special),
        (vec!["alone.txt".to_owned(), "mine.txt".to_owned()], vec!["theirs.txt".to_owned()])
    );
    attempt.order.live = true;
    let collected = collect(&attempt.order).unwrap();
    assert_eq!(paths(&collected), ["alone.txt", "mine.txt"]);
    assert!(collected.notes.iter().any(|note| note.contains("theirs.txt is a hard link")), "{collected:?}");
    // In a directory that only the scheduler and its work reach, it is the work's.
    fs::remove_dir_all(&attempt.order.output_dir).unwrap();
    attempt.order.live = false;
    assert_eq!(paths(&collect(&attempt.order).unwrap()), ["alone.txt", "mine.txt", "theirs.txt"]);
}

#[test]
fn what_cannot_be_removed_keeps_nothing_else_and_a_mount_is_not_gone_into() {
    let Some(disk) = SmallDisk::new("what_cannot_be_removed_keeps_nothing_else", 64) else { return };
    let dir = tree(&[("top/a/x", "x"), ("top/z/x", "x"), ("top/m/under", "x")]);
    let (mounted, at) = (&disk.0, dir.path().join("top/m"));
    fs::write(mounted.join("precious"), "kept").unwrap();
    // The same file system as what is around it: only the mount itself tells.
    for source in [mounted.as_path(), dir.path()] {
        assert!(Command::new("mount").arg("--bind").arg(source).arg(&at).status().unwrap().success());
        put(dir.path(), "top/a/x", "x");
        let removed = remove_tree(&dir.path().join("top"));
        let kept = source.join("precious").exists() || source.join("top").exists();
        assert!(Command::new("umount").arg(&at).status().unwrap().success());
        let error = removed.unwrap_err();
        assert!(error.to_string().contains("what is mounted at"), "{error}");
        assert!(kept, "what is mounted there is not ours to remove");
        assert_eq!(names(&dir.path().join("top")), ["m/", "m/under"]);
    }
    remove_tree(&dir.path().join("top")).unwrap();
    assert!(!dir.path().join("top").exists());
}
