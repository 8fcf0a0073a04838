//! Names that lead elsewhere, planted where the scheduler reads, writes and removes: by somebody who can write to the
//! inbox, by the work in its own folders.

use super::support::sandbox::{Sandbox, eventually};
use super::{is_root, job, skipped};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

const SECRET: &str = "TOP-SECRET-WORDS";

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
}

/// Why a name in the inbox was refused.
fn reason(sandbox: &Sandbox, name: &str) -> String {
    let path = sandbox.inbox().join(format!("{name}.why.txt"));
    eventually(&format!("a reason for {name}"), || fs::read_to_string(&path).ok())
}

#[test]
fn what_is_no_file_of_the_owners_is_refused_and_nothing_of_it_is_told() {
    let sandbox = Sandbox::serving("none");
    let inbox = sandbox.inbox();
    let secret = sandbox.dir().join("secret");
    fs::write(&secret, format!("work: {{run: {SECRET}}}\n{SECRET}\n")).unwrap();
    symlink(&secret, inbox.join("link.yaml")).unwrap();
    fs::hard_link(&secret, inbox.join("hard.yaml")).unwrap();
    fifo(&inbox.join("pipe.yaml"));
    let _socket = UnixListener::bind(inbox.join("socket.yaml")).unwrap();
    let mut refused = vec![
        ("link.yaml", "symbolic link"),
        ("hard.yaml", "hard link"),
        ("pipe.yaml", "pipe"),
        ("socket.yaml", "socket"),
    ];
    // A folder whose job file, or whose very self, is somewhere else.
    fs::create_dir(inbox.join("linked-job")).unwrap();
    symlink(&secret, inbox.join("linked-job/job.yaml")).unwrap();
    let elsewhere = sandbox.dir().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::copy(&secret, elsewhere.join("job.yaml")).unwrap();
    symlink(&elsewhere, inbox.join("linked-folder")).unwrap();
    fs::create_dir(inbox.join("piped")).unwrap();
    fifo(&inbox.join("piped/job.yaml"));
    refused.extend([("linked-job", "symbolic link"), ("linked-folder", "symbolic link"), ("piped", "pipe")]);
    if is_root() {
        // 1, 5 is /dev/zero: whoever reads it never ends.
        mknodat(
            CWD,
            inbox.join("zero.yaml"),
            FileType::CharacterDevice,
            Mode::RWXU,
            rustix::fs::makedev(1, 5),
        )
        .unwrap();
        fs::write(inbox.join("theirs.yaml"), SECRET).unwrap();
        chown(inbox.join("theirs.yaml"), Some(65_534), None).unwrap();
        let theirs = sandbox.dir().join("staging/theirs");
        fs::create_dir_all(theirs.join("deep")).unwrap();
        fs::write(theirs.join("job.yaml"), job("bash deep/run.sh", "[]", "[]")).unwrap();
        fs::write(theirs.join("deep/run.sh"), SECRET).unwrap();
        chown(theirs.join("deep/run.sh"), Some(65_534), None).unwrap();
        fs::rename(&theirs, inbox.join("theirs")).unwrap();
        refused.extend([
            ("zero.yaml", "device"),
            ("theirs.yaml", "another account"),
            ("theirs", "deep/run.sh in it belongs to another account (uid 65534)"),
        ]);
    } else {
        skipped(
            "what_is_no_file_of_the_owners_is_refused_and_nothing_of_it_is_told",
            "devices and strangers' files: only root may make them",
        );
    }
    for (name, why) in refused {
        let text = reason(&sandbox, name);
        assert!(text.contains(why), "{name}: {text}");
        assert!(!text.contains(SECRET), "{name}: {text}");
        assert!(inbox.join(name).symlink_metadata().is_ok(), "{name} stays where it is");
    }
    assert_eq!(sandbox.jobs().len(), 0);
    assert!(!sandbox.scheduler_said().contains(SECRET));
    // And none of it is in the way of an honest file.
    sandbox.drop_file("honest.yaml", &job("true", "[]", "[]"));
    assert_eq!(sandbox.wait_for_end("honest"), "succeeded");
}

#[test]
fn nothing_is_written_through_a_name_that_was_planted_in_the_inbox() {
    let mut sandbox = Sandbox::new("none");
    let victim = sandbox.dir().join("victim");
    fs::write(&victim, "precious").unwrap();
    let inbox = sandbox.inbox();
    fs::create_dir_all(&inbox).unwrap();
    for planted in ["bad.yaml.why.txt", ".bad.yaml.why.txt.new"] {
        symlink(&victim, inbox.join(planted)).unwrap();
    }
    fs::hard_link(&victim, inbox.join("worse.yaml.why.txt")).unwrap();
    // Accepted files leave the inbox by this one.
    let away = sandbox.dir().join("away");
    fs::create_dir(&away).unwrap();
    symlink(&away, inbox.join(".taken")).unwrap();
    let refused = sandbox.run(&["serve"]);
    assert!(refused.code == 1 && refused.stderr.contains(".taken"), "{}", refused.stderr);
    fs::remove_file(inbox.join(".taken")).unwrap();
    // The mark of who owns the folder is another name of a file of the owner's.
    fs::remove_file(inbox.join(".overnight-owner")).unwrap();
    fs::hard_link(&victim, inbox.join(".overnight-owner")).unwrap();
    let refused = sandbox.run(&["serve"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("not this account's own file"),
        "{}",
        refused.stderr
    );
    fs::remove_file(inbox.join(".overnight-owner")).unwrap();
    sandbox.serve();
    for name in ["bad.yaml", "worse.yaml"] {
        sandbox.drop_file(name, "work: {runn: true}\n");
        let why = inbox.join(format!("{name}.why.txt"));
        eventually("a reason in the place of the planted name", || {
            let is_file = fs::symlink_metadata(&why).is_ok_and(|meta| meta.is_file());
            (is_file && fs::read_to_string(&why).unwrap().contains("runn")).then_some(())
        });
    }
    sandbox.drop_file("good.yaml", &job("true", "[]", "[]"));
    assert_eq!(sandbox.wait_for_end("good"), "succeeded");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(fs::read_dir(&away).unwrap().count(), 0);
}

/// The receipt of a job that is done.
fn receipt(sandbox: &Sandbox, name: &str) -> (Value, String) {
    sandbox.wait_for_end(name);
    let folder = sandbox.job_folder(&super::shown(sandbox, name));
    let text = eventually("a receipt", || fs::read_to_string(folder.join("receipt.json")).ok());
    (serde_json::from_str(&text).unwrap(), text)
}

#[test]
fn work_that_plants_links_in_its_own_folders_gets_nothing_of_what_they_lead_to() {
    let sandbox = Sandbox::serving("none");
    let outside = sandbox.dir().join("outside");
    fs::create_dir_all(outside.join("deep")).unwrap();
    for file in ["key.txt", "deep/key.txt", "output", "receipt.json"] {
        fs::write(outside.join(file), SECRET).unwrap();
    }
    let before = names(&outside);
    let out = outside.display();
    // In the place of what is looked through, on the way, at its end.
    let all = "[{path: \"**/*.txt\", optional: true}, {path: link, optional: true}, {path: link/deep, optional: true}, {path: here.txt, optional: true}]";
    let cases = [
        (
            "links",
            format!(
                "ln -s {out} link; ln -s {out}/key.txt here.txt; mkdir d; ln -s {out} d/link; mkfifo pipe.txt"
            ),
        ),
        ("output-dir", format!("rmdir \"$OVERNIGHT_OUTPUT\"; ln -s {out} \"$OVERNIGHT_OUTPUT\"")),
        (
            "above-output",
            format!("cd \"$OVERNIGHT_OUTPUT/../..\"; mv 1 moved; ln -s {out} 1; mkdir {out}/output.d"),
        ),
        ("work-dir", format!("d=$PWD; cd /; rmdir \"$d\"; ln -s {out} \"$d\"")),
        (
            "above-work",
            format!(
                "d=$(dirname \"$PWD\"); cd /; mv \"$d\" \"$d.moved\"; mkdir \"$d\"; ln -s {out} \"$d/$(basename \"$OLDPWD\")\""
            ),
        ),
    ];
    for (name, run) in &cases {
        sandbox.drop_file(&format!("{name}.yaml"), &job(run, "[]", all));
    }
    for (name, _) in &cases {
        let outcome = sandbox.wait_for_end(name);
        let shown = super::shown(&sandbox, name);
        assert_eq!(shown["outputs"], serde_json::json!([]), "{name} ({outcome}): {shown:#}");
        // What is looked through is copied or moved; none of it was.
        let folder = sandbox.job_folder(&shown);
        let here = Command::new("grep").args(["-rl", SECRET]).arg(&folder).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&here.stdout), "", "{name}");
    }
    fs::remove_dir(outside.join("output.d")).unwrap();
    assert_eq!(names(&outside), before);
    for file in ["key.txt", "deep/key.txt", "output", "receipt.json"] {
        assert_eq!(fs::read_to_string(outside.join(file)).unwrap(), SECRET, "{file}");
    }
    let (links, _) = receipt(&sandbox, "links");
    let notes = links["warnings"].to_string();
    assert!(notes.contains("not followed") && notes.contains("is no regular file"), "{notes}");
}

fn names(dir: &Path) -> Vec<String> {
    let mut all: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    all.sort();
    all
}

#[test]
fn a_jobs_folder_is_written_whatever_the_work_has_put_there() {
    let sandbox = Sandbox::serving("none");
    let victim = sandbox.dir().join("victim");
    fs::write(&victim, "precious").unwrap();
    let v = victim.display();
    // The scheduler writes the same names meanwhile.
    let plant = format!(
        "cd \"$OVERNIGHT_OUTPUT/../../..\"\n\
         for f in receipt.json receipt.md .receipt.json.new .receipt.md.new receipt.json.new; do ln -sf {v} $f; done\n\
         until rm -f job.yaml && mkfifo job.yaml; do :; done\n\
         until rm -f log.txt && ln {v} log.txt; do :; done"
    );
    sandbox.drop_file("planter.yaml", &job(&plant, "[]", "[]"));
    assert_eq!(sandbox.wait_for_end("planter"), "succeeded");
    let folder = sandbox.job_folder(&super::shown(&sandbox, "planter"));
    for file in ["receipt.json", "receipt.md"] {
        eventually(&format!("a real {file}"), || {
            let meta = fs::symlink_metadata(folder.join(file)).ok()?;
            (meta.is_file() && meta.len() > 20).then_some(())
        });
    }
    eventually("a link to the log", || fs::read_link(folder.join("log.txt")).ok());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    // Its job file is a pipe now: a retry, which reads it, must not wait for a writer.
    let again = sandbox.run(&["retry", "planter"]);
    assert_eq!(sandbox.run(&["ls"]).code, 0, "the scheduler answers after {}{}", again.stdout, again.stderr);
}

#[test]
fn scratch_is_removed_but_not_what_somebody_has_mounted_in_it() {
    let test = "scratch_is_removed_but_not_what_somebody_has_mounted_in_it";
    if !is_root() {
        return skipped(test, "only root may mount");
    }
    let sandbox = Sandbox::serving("none");
    let place = sandbox.dir().join("place");
    let run = format!(
        "mkdir \"$TMPDIR/m\" \"$TMPDIR/other\"; mount -t tmpfs none \"$TMPDIR/m\" || exit 7\n\
         echo kept > \"$TMPDIR/m/file\"; echo gone > \"$TMPDIR/other/file\"; echo \"$TMPDIR\" > {}",
        place.display()
    );
    sandbox.drop_file("mounter.yaml", &job(&run, "[]", "[]"));
    let outcome = sandbox.wait_for_end("mounter");
    if super::shown(&sandbox, "mounter")["outcome"]["code"] == 7 {
        return skipped(test, "mounting is not allowed here");
    }
    assert_eq!(outcome, "succeeded");
    let scratch = fs::read_to_string(&place).unwrap();
    let scratch = Path::new(scratch.trim());
    eventually("scratch without what can be removed", || (!scratch.join("other").exists()).then_some(()));
    let kept = fs::read_to_string(scratch.join("m/file")).unwrap();
    assert!(Command::new("umount").arg(scratch.join("m")).status().unwrap().success());
    assert_eq!(kept, "kept\n");
    let said = sandbox.scheduler_said();
    assert!(said.contains("what is mounted at"), "{said}");
}

#[test]
fn data_that_is_no_data_is_refused_and_a_link_out_of_a_jobs_output_is_none_of_it() {
    let sandbox = Sandbox::serving("none");
    let pipe = sandbox.dir().join("pipe");
    fifo(&pipe);
    let file = sandbox.dir().join("piped.yaml");
    fs::write(&file, job("cat pipe", &format!("[{}]", pipe.display()), "[]")).unwrap();
    for verb in ["check", "submit"] {
        let run = sandbox.run(&[verb, file.to_str().unwrap()]);
        assert!(
            run.code == 1 && run.stdout.contains("neither a file nor a directory"),
            "{}{}",
            run.stdout,
            run.stderr
        );
    }
    // A directory that its owner has linked to is data like any other.
    let far = sandbox.dir().join("far/set");
    fs::create_dir_all(&far).unwrap();
    fs::write(far.join("x"), "data").unwrap();
    symlink(sandbox.dir().join("far"), sandbox.dir().join("near")).unwrap();
    let near = sandbox.dir().join("near/set");
    sandbox.drop_file(
        "honest.yaml",
        &job(
            "grep data set/x && grep data \"$OVERNIGHT_DATA/set/x\"",
            &format!("[{}]", near.display()),
            "[]",
        ),
    );
    assert_eq!(sandbox.wait_for_end("honest"), "succeeded");

    let outside = sandbox.dir().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("key"), SECRET).unwrap();
    let make = format!(
        "cd \"$OVERNIGHT_OUTPUT\"; echo a > real; ln -s real inside; ln -s {} out; ln -s ../../../job.yaml up",
        outside.display()
    );
    sandbox.drop_file("maker.yaml", &job(&make, "[]", "[]"));
    assert_eq!(sandbox.wait_for_end("maker"), "succeeded");
    for (name, path, outcome) in [
        ("of-real", "real", "succeeded"),
        ("of-inside", "inside", "succeeded"),
        ("of-out", "out/key", "never_started"),
        ("of-up", "up", "never_started"),
        ("of-none", "none", "never_started"),
    ] {
        sandbox.drop_file(
            &format!("{name}.yaml"),
            &job("cat \"$OVERNIGHT_DATA/d\"", &format!("[{{from: \"job:maker/{path}\", as: d}}]"), "[]"),
        );
        assert_eq!(
            sandbox.wait_for_end(name),
            outcome,
            "{name}: {:#}",
            super::shown(&sandbox, name)["outcome"]
        );
    }
    let why = super::shown(&sandbox, "of-out")["outcome"]["reason"].as_str().unwrap().to_owned();
    assert!(why.contains("leads out of the outputs"), "{why}");
}

#[test]
fn a_stranger_cannot_steer_output_by_a_link_in_a_place_for_everybody() {
    let test = "a_stranger_cannot_steer_output_by_a_link_in_a_place_for_everybody";
    if !is_root() {
        return skipped(test, "only root may make a stranger's link");
    }
    let sandbox = Sandbox::serving("none");
    let shared = sandbox.dir().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let private = sandbox.dir().join("private");
    fs::create_dir(&private).unwrap();
    // The stranger was first: the owner's results would land in the owner's private folder, or anywhere.
    symlink(&private, shared.join("results")).unwrap();
    std::os::unix::fs::lchown(shared.join("results"), Some(65_534), None).unwrap();
    let to = |name: &str, place: &Path| {
        let text = job("echo r > \"$OVERNIGHT_OUTPUT/r.txt\"", "[]", "[]")
            + &format!("output_to: {}\n", place.display());
        sandbox.drop_file(&format!("{name}.yaml"), &text);
        assert_eq!(sandbox.wait_for_end(name), "succeeded");
        super::shown(&sandbox, name)["warnings"].to_string()
    };
    let notes = to("steered", &shared.join("results"));
    assert!(notes.contains("not copied to"), "{notes}");
    assert_eq!(fs::read_dir(&private).unwrap().count(), 0);
    // One's own link is one's own choice.
    symlink(&private, shared.join("mine")).unwrap();
    let notes = to("chosen", &shared.join("mine"));
    assert!(private.join("r.txt").exists(), "{notes}");
}
