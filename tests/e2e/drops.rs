//! Every way in which people write into the inbox: one drop is one job, and nothing half-written is taken.

use super::support::auditor::Auditor;
use super::support::pty::Pty;
use super::support::sandbox::{Sandbox, eventually};
use super::{nothing_is_left_behind, one_gpu};
use std::fs::{self, File};
use std::io::Write;
use std::process::Command;
use std::time::Duration;

/// A job that leaves its name in a file when it runs.
fn signing(sandbox: &Sandbox, name: &str) -> String {
    one_gpu(&format!("echo {name} >> '{}'", sandbox.dir().join("signed").display()), "")
}

/// All names that were signed, in alphabetical order.
fn signed(sandbox: &Sandbox) -> Vec<String> {
    let text = fs::read_to_string(sandbox.dir().join("signed")).unwrap_or_default();
    let mut names: Vec<String> = text.lines().map(str::to_owned).collect();
    names.sort();
    names
}

/// Nothing but bookkeeping is left in the inbox, and each of these jobs ran once.
#[track_caller]
fn each_ran_once(sandbox: &Sandbox, names: &[&str]) {
    for name in names {
        assert_eq!(sandbox.wait_for_end(name), "succeeded", "{name}");
    }
    assert_eq!(sandbox.jobs().len(), names.len(), "{:#?}", sandbox.jobs());
    let mut expected: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    expected.sort();
    assert_eq!(signed(sandbox), expected);
    eventually("an inbox without files", || {
        let mut entries = fs::read_dir(sandbox.inbox()).unwrap().map(|entry| entry.unwrap().file_name());
        entries.all(|name| name.to_string_lossy().starts_with('.')).then_some(())
    });
    nothing_is_left_behind(sandbox);
}

/// Whether a program is there; says so if not.
#[expect(clippy::print_stderr, reason = "a check that did not run must not look like one that did")]
fn is_installed(program: &str) -> bool {
    let there = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()));
    if !there {
        eprintln!("SKIPPED: {program} is not installed");
    }
    there
}

#[test]
fn copied_moved_and_synchronised_files_are_taken_once() {
    let sandbox = Sandbox::serving("simulated:4");
    let audit = Auditor::watch(&sandbox);
    let mut names = vec!["copied", "moved", "linked-over"];
    for (name, program, args) in
        [("copied", "cp", &["-p"][..]), ("moved", "mv", &["-f"]), ("synced", "rsync", &["-a"])]
    {
        if !is_installed(program) {
            continue;
        }
        let file = sandbox.dir().join("staging").join(format!("{name}.yaml"));
        fs::write(&file, signing(&sandbox, name)).unwrap();
        assert!(Command::new(program).args(args).arg(&file).arg(sandbox.inbox()).status().unwrap().success());
        if name == "synced" {
            names.push(name);
        }
    }
    sandbox.drop_file("linked-over.yaml", &signing(&sandbox, "linked-over"));
    each_ran_once(&sandbox, &names);
    audit.finish();
}

#[test]
fn a_slowly_written_file_is_taken_whole_and_only_when_it_is_closed() {
    let sandbox = Sandbox::serving("simulated:1");
    let text = signing(&sandbox, "slow");
    let mut file = File::create(sandbox.inbox().join("slow.yaml")).unwrap();
    for piece in text.as_bytes().chunks(text.len() / 3) {
        file.write_all(piece).unwrap();
        // Longer than a closed file is left alone: what is open is not taken however long it rests.
        std::thread::park_timeout(Duration::from_millis(400));
        assert_eq!(sandbox.jobs().len(), 0, "taken while it was being written");
    }
    drop(file);
    each_ran_once(&sandbox, &["slow"]);
}

#[test]
fn a_second_file_of_the_same_name_is_a_second_job() {
    let sandbox = Sandbox::serving("simulated:2");
    let audit = Auditor::watch(&sandbox);
    for round in 0..20 {
        // At any moment of the first one's way out of the inbox.
        sandbox.drop_file("twice.yaml", &signing(&sandbox, &format!("round-{round:02}")));
    }
    let all = eventually("as many jobs as drops that could not have replaced each other", || {
        let jobs = sandbox.jobs();
        let done = jobs.iter().all(|job| job["state"] == "done");
        let empty = !sandbox.inbox().join("twice.yaml").exists();
        (done && empty && !jobs.is_empty()).then_some(jobs)
    });
    // A rename may replace a file that was not read yet: that drop never was. No drop may run twice, and the last must run.
    let mut ran = signed(&sandbox);
    assert_eq!(ran.len(), all.len());
    ran.dedup();
    assert_eq!(ran.len(), all.len(), "a drop ran twice: {ran:?}");
    assert_eq!(ran.last().map(String::as_str), Some("round-19"));
    nothing_is_left_behind(&sandbox);
    audit.finish();
}

#[test]
fn a_file_that_is_open_in_an_editor_is_not_taken_before_the_editor_ends() {
    if !is_installed("vi") {
        return;
    }
    let sandbox = Sandbox::serving("simulated:1");
    let mut command = Command::new("vi");
    command.args(["-u", "NONE", "-i", "NONE", "-c", "set swapfile updatecount=1 paste"]);
    command.arg("edited.yaml").current_dir(sandbox.inbox()).env("TERM", "xterm").env("HOME", sandbox.dir());
    let mut editor = Pty::spawn(command, 80, 24);
    editor.wait_for_text("edited.yaml");
    editor.send("i");
    editor.send(&signing(&sandbox, "edited").replace('\n', "\r"));
    editor.send("\x1b:w\r");
    editor.wait_for_text("written");
    eventually("a rest", || editor.is_quiet_for(Duration::from_millis(600)).then_some(()));
    assert_eq!(sandbox.jobs().len(), 0, "taken while it was being edited");
    editor.send(":q\r");
    editor.wait_for_exit();
    each_ran_once(&sandbox, &["edited"]);
}

#[test]
fn a_file_saved_by_nano_is_taken_once() {
    if !is_installed("nano") {
        return;
    }
    let sandbox = Sandbox::serving("simulated:1");
    let mut command = Command::new("nano");
    command.args(["--ignorercfiles", "-t"]);
    command.arg("typed.yaml").current_dir(sandbox.inbox()).env("TERM", "xterm").env("HOME", sandbox.dir());
    let mut editor = Pty::spawn(command, 80, 24);
    editor.wait_for_text("typed.yaml");
    editor.send(&signing(&sandbox, "typed").replace('\n', "\r"));
    editor.send("\x18");
    editor.wait_for_exit();
    each_ran_once(&sandbox, &["typed"]);
}

#[test]
fn an_inbox_that_was_removed_and_made_again_is_watched_again() {
    let sandbox = Sandbox::serving("simulated:1");
    let audit = Auditor::watch(&sandbox);
    sandbox.drop_file("before.yaml", &signing(&sandbox, "before"));
    assert_eq!(sandbox.wait_for_end("before"), "succeeded");
    fs::remove_dir_all(sandbox.inbox()).unwrap();
    // Made again by whoever is first.
    eventually("an inbox", || {
        let _ = fs::create_dir(sandbox.inbox());
        sandbox.inbox().is_dir().then_some(())
    });
    sandbox.drop_file("after.yaml", &signing(&sandbox, "after"));
    each_ran_once(&sandbox, &["before", "after"]);
    audit.finish();
}

#[test]
fn what_is_no_plain_file_of_ones_own_is_refused_with_the_reason() {
    let sandbox = Sandbox::serving("simulated:1");
    let elsewhere = sandbox.dir().join("staging/elsewhere.yaml");
    fs::write(&elsewhere, signing(&sandbox, "elsewhere")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, sandbox.inbox().join("symlink.yaml")).unwrap();
    fs::hard_link(&elsewhere, sandbox.inbox().join("hardlink.yaml")).unwrap();
    assert!(Command::new("mkfifo").arg(sandbox.inbox().join("fifo.yaml")).status().unwrap().success());
    fs::write(sandbox.inbox().join("large.yaml"), vec![b'#'; (1 << 20) + 1]).unwrap();
    for name in ["symlink", "hardlink", "fifo", "large"] {
        let why = sandbox.inbox().join(format!("{name}.yaml.why.txt"));
        let said = eventually("a reason", || fs::read_to_string(&why).ok().filter(|text| !text.is_empty()));
        assert!(said.len() > 20, "{name}: {said}");
    }
    assert_eq!(sandbox.jobs().len(), 0);
    sandbox.drop_file("good.yaml", &signing(&sandbox, "good"));
    assert_eq!(sandbox.wait_for_end("good"), "succeeded");
    assert_eq!(signed(&sandbox), ["good"]);
}
