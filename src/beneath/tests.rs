//! The kernel's way and ours over the same trees, and over trees that somebody changes meanwhile.

use super::*;
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

type Way = fn(BorrowedFd<'_>, &Path, Links) -> Result<OwnedFd, Errno>;

/// Both ways, as far as this kernel has them.
fn ways() -> Vec<(&'static str, Way)> {
    let mut ways: Vec<(&'static str, Way)> = vec![("walk", walk::walk)];
    if has_openat2() {
        ways.push(("kernel", kernel));
    }
    ways
}

/// As often as it takes: whatever is renamed anywhere on the machine meanwhile makes the kernel ask for another try.
fn kernel(root: BorrowedFd<'_>, names: &Path, links: Links) -> Result<OwnedFd, Errno> {
    loop {
        match by_kernel(root, names, links) {
            Err(Errno::AGAIN) => {}
            result => return result,
        }
    }
}

fn open(path: &Path) -> Dir {
    rustix::fs::open(path, DIR, Mode::empty()).unwrap()
}

fn tree() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    fs::create_dir_all(top.join("root/a/b")).unwrap();
    fs::write(top.join("root/a/b/file"), "inside").unwrap();
    fs::create_dir(top.join("outside")).unwrap();
    fs::write(top.join("outside/file"), "outside").unwrap();
    for (target, link) in [
        ("a/b/file", "to-file"),
        ("a", "to-dir"),
        ("a/b", "deep"),
        ("../outside", "out"),
        ("../outside/file", "out-file"),
        ("a/../../outside/file", "out-by-the-way"),
        ("to-file", "to-link"),
        ("loop", "loop"),
        ("nowhere", "dangling"),
    ] {
        symlink(target, top.join("root").join(link)).unwrap();
    }
    symlink(top.join("root/a"), top.join("root/absolute")).unwrap();
    symlink("../../to-file", top.join("root/a/b/up")).unwrap();
    symlink("../../../outside/file", top.join("root/a/b/too-far")).unwrap();
    dir
}

fn read(fd: &OwnedFd) -> String {
    let mut text = String::new();
    reopen(fd).unwrap().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn names_and_links_below_a_directory_are_found_and_none_that_lead_out() {
    let dir = tree();
    let root = open(&dir.path().join("root"));
    for (how, resolve) in ways() {
        let get = |path: &str, links| resolve(root.as_fd(), Path::new(path), links);
        let text = |path, links| read(&get(path, links).unwrap_or_else(|e| panic!("{how} {path}: {e}")));
        for links in [Links::Refused, Links::Inside] {
            assert_eq!(text("a/b/file", links), "inside", "{how}");
        }
        for path in ["to-file", "to-dir/b/file", "to-link", "a/b/up"] {
            assert_eq!(text(path, Links::Inside), "inside", "{how} {path}");
            assert_eq!(get(path, Links::Refused).unwrap_err(), IS_LINK, "{how} {path}");
        }
        for path in ["out/file", "out-file", "out-by-the-way", "absolute/b/file", "a/b/too-far"] {
            assert_eq!(get(path, Links::Inside).unwrap_err(), LEADS_OUT, "{how} {path}");
            assert_eq!(get(path, Links::Refused).unwrap_err(), IS_LINK, "{how} {path}");
        }
        assert_eq!(get("loop", Links::Inside).unwrap_err(), IS_LINK, "{how}");
        assert_eq!(get("dangling", Links::Inside).unwrap_err(), Errno::NOENT, "{how}");
        assert_eq!(get("a/b/file/c", Links::Inside).unwrap_err(), Errno::NOTDIR, "{how}");
    }
}

#[test]
fn absolute_and_upward_paths_are_refused_before_anything_is_looked_at() {
    let dir = tree();
    let root = open(&dir.path().join("root"));
    for path in ["/etc/passwd", "..", "../outside/file", "a/../../outside/file", "a/.."] {
        assert_eq!(look(&root, Path::new(path), Links::Inside).unwrap_err(), LEADS_OUT, "{path}");
    }
    assert_eq!(kind(&look(&root, Path::new("./"), Links::Refused).unwrap().1), FileType::Directory);
}

#[test]
fn only_regular_files_are_opened_and_nothing_else_is_woken() {
    let dir = tempfile::tempdir().unwrap();
    let root = open(dir.path());
    rustix::fs::mknodat(&root, "pipe", FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
    fs::create_dir(dir.path().join("folder")).unwrap();
    for name in ["pipe", "socket", "folder"] {
        assert_eq!(file(&root, Path::new(name), Links::Refused).unwrap_err(), NOT_A_FILE, "{name}");
        assert_eq!(named_file(&dir.path().join(name)).unwrap_err(), NOT_A_FILE, "{name}");
    }
    // Nobody has had the pipe open for reading: a writer that does not wait is told so.
    let flags = OFlags::WRONLY | OFlags::NONBLOCK;
    assert_eq!(rustix::fs::openat(&root, "pipe", flags, Mode::empty()).unwrap_err(), Errno::NXIO);
}

/// Swaps two names for each other until it is told to stop.
fn swap(dir: &Path, a: &str, b: &str, stop: &AtomicBool) {
    let dir = open(dir);
    while !stop.load(Ordering::Relaxed) {
        rustix::fs::renameat_with(&dir, a, &dir, b, rustix::fs::RenameFlags::EXCHANGE).unwrap();
    }
}

#[test]
fn a_directory_that_is_swapped_for_a_link_during_the_walk_leads_nowhere() {
    let dir = tree();
    let top = dir.path().join("root");
    symlink("../../outside", top.join("a/link")).unwrap();
    // Below `a` are now `b`, a directory with a file, and `link`, which has a file of that name outside.
    let root = open(&top);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop_on_panic = StopOnDrop(&stop);
        scope.spawn(|| swap(&top.join("a"), "b", "link", &stop));
        for (how, resolve) in ways() {
            let (mut found, mut refused) = (0, 0);
            for turn in 0.. {
                match resolve(root.as_fd(), Path::new("a/b/file"), Links::Inside) {
                    Ok(fd) => {
                        assert_eq!(read(&fd), "inside", "{how}");
                        found += 1;
                    }
                    Err(LEADS_OUT | Errno::AGAIN) => refused += 1,
                    Err(errno) => panic!("{how}: {errno}"),
                }
                // Both sides of the swap have been met, often.
                if turn > 5_000 && found > 20 && refused > 20 {
                    break;
                }
            }
        }
        drop(stop_on_panic);
    });
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_persons_links_are_followed_and_a_strangers_in_a_place_for_everybody_are_not() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tree();
    let top = dir.path();
    let through =
        |path: &str| named(&top.join(path)).and_then(|dir| file(dir, Path::new("file"), Links::Refused));
    assert!(through("root/absolute/b").is_ok());
    assert!(through("root/out").is_ok());
    assert!(through("root/deep/../b").is_ok(), "`..` after a link goes up from where that leads");
    assert_eq!(through("root/to-file").unwrap_err(), Errno::NOTDIR);
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let shared = top.join("shared");
    fs::create_dir(&shared).unwrap();
    symlink(top.join("outside"), shared.join("theirs")).unwrap();
    std::os::unix::fs::lchown(shared.join("theirs"), Some(65_534), None).unwrap();
    let mode = |mode| fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o1777);
    assert_eq!(through("shared/theirs").unwrap_err(), Errno::ACCESS);
    symlink(top.join("outside"), shared.join("ours")).unwrap();
    assert!(through("shared/ours").is_ok());
    mode(0o755);
    assert!(through("shared/theirs").is_ok(), "who may make names there is trusted with them");
}

#[test]
fn missing_directories_are_made_but_not_behind_a_link() {
    let dir = tree();
    let top = dir.path().join("root");
    make_named(&top.join("new/deep")).unwrap();
    assert!(top.join("new/deep").is_dir());
    assert_eq!(make_named(&top.join("dangling/deep")).unwrap_err(), Errno::NOENT);
    assert!(!top.join("nowhere").exists());
}

#[test]
fn below_the_schedulers_own_trees_no_link_is_followed_and_outside_of_them_a_persons_are() {
    let dir = tree();
    let top = dir.path().join("root");
    let own = [top.clone()];
    assert!(own_dir(&top.join("a/b"), &own).is_ok());
    assert_eq!(own_dir(&top.join("to-dir/b"), &own).unwrap_err(), IS_LINK);
    assert!(own_dir(&top.join("to-dir/b"), &[]).is_ok());
    // The tree itself may lie behind a link: its place is a person's choice.
    symlink("root", dir.path().join("moved")).unwrap();
    assert!(own_dir(&dir.path().join("moved/a/b"), &[dir.path().join("moved")]).is_ok());
}

#[test]
fn a_file_is_replaced_whole_and_what_was_there_is_not_written_to() {
    let dir = tree();
    let top = dir.path().join("root");
    let root = open(&top);
    for name in ["out-file", ".out-file.new"] {
        let _ = symlink("../outside/file", top.join(name));
    }
    fs::hard_link(dir.path().join("outside/file"), top.join("hard")).unwrap();
    for name in ["out-file", "hard", "fresh"] {
        replace(&root, OsStr::new(name), b"new", Mode::RUSR | Mode::WUSR).unwrap();
        assert_eq!(fs::read_to_string(top.join(name)).unwrap(), "new");
        assert!(top.join(name).symlink_metadata().unwrap().is_file());
    }
    assert_eq!(fs::read_to_string(dir.path().join("outside/file")).unwrap(), "outside");
    assert!(!top.join(".out-file.new").exists());
}

/// A tree of three directories with links between them and out of them, and a path through it.
fn worlds() -> impl Strategy<Value = (Vec<(usize, String, String)>, String)> {
    let name = prop_oneof![Just("a"), Just("b"), Just("c"), Just("l"), Just("m"), Just(".."), Just(".")];
    let path = proptest::collection::vec(name, 1..6).prop_map(|names| names.join("/"));
    let link = (0_usize..4, prop_oneof![Just("l"), Just("m"), Just("c")], path.clone())
        .prop_map(|(dir, name, target)| (dir, name.to_owned(), target));
    (proptest::collection::vec(link, 0..5), path)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_kernels_way_and_ours_agree((links, path) in worlds()) {
        if !has_openat2() {
            return Ok(());
        }
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("root");
        let dirs = ["", "a", "a/b", "b"];
        for made in dirs {
            fs::create_dir_all(top.join(made)).unwrap();
            fs::write(top.join(made).join("c"), made).unwrap();
        }
        for (at, name, target) in &links {
            let _ = symlink(target, top.join(dirs[*at]).join(name));
        }
        let root = open(&top);
        let names = names(Path::new(&path)).unwrap_or_default();
        if names.as_os_str().is_empty() {
            return Ok(());
        }
        for follow in [Links::Refused, Links::Inside] {
            let id = |fd: OwnedFd| rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino)).unwrap();
            // Asked again where something was renamed meanwhile, anywhere on the machine.
            let kernel = std::iter::repeat_with(|| by_kernel(root.as_fd(), &names, follow))
                .find(|found| !matches!(found, Err(Errno::AGAIN | Errno::INTR)));
            let kernel = kernel.unwrap().map(id);
            let ours = walk::walk(root.as_fd(), &names, follow).map(id);
            prop_assert_eq!(kernel, ours, "{} with {:?}", names.display(), links);
        }
    }
}
