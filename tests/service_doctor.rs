//! `service` and `doctor` through the binary: what is written where, what is left alone, what is found.

#![expect(clippy::unwrap_used, reason = "an unwrap is how a test helper fails")]

#[path = "support/fake_nvml.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod fake_nvml;
#[path = "support/small_disk.rs"]
mod small_disk;
#[path = "support/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod support;

use fake_nvml::{FakeDevice, FakeNvml, FakeState};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use small_disk::{SmallDisk, skipped};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::sandbox::{Run, Sandbox, eventually};
use tempfile::TempDir;

/// Runs a command to its end.
fn run(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn user_unit(sandbox: &Sandbox) -> PathBuf {
    sandbox.dir().join("home/.config/systemd/user/overnight.service")
}

/// The first line of a unit of ours, for this rest.
fn with_sum(body: &str) -> String {
    format!("# overnight service, sum {}\n{body}", &blake3::hash(body.as_bytes()).to_hex()[..16])
}

#[test]
fn a_unit_is_installed_once_brought_up_to_date_and_never_put_over_what_somebody_edited() {
    let sandbox = Sandbox::new("none");
    let install = |more: &[&str]| sandbox.run(&[&["service", "install", "--user"], more].concat());
    let printed = sandbox.run(&["service", "print", "--user"]).ok().stdout;
    assert!(printed.contains(&format!("serve --root {}", sandbox.root().display())), "{printed}");
    for line in
        ["KillMode=process", "Restart=on-failure", "Delegate=yes", "OOMPolicy=continue", "Environment=PATH=/"]
    {
        assert!(printed.contains(line), "{line} is not in {printed}");
    }
    let unit = user_unit(&sandbox);
    assert!(!unit.exists(), "printing writes nothing");

    let first = install(&[]).ok();
    assert!(first.stdout.contains(&format!("wrote {}", unit.display())), "{}", first.stdout);
    assert!(first.stdout.contains("systemctl --user enable --now overnight"), "{}", first.stdout);
    assert!(first.stdout.contains("loginctl enable-linger"), "{}", first.stdout);
    assert_eq!(fs::read_to_string(&unit).unwrap(), printed);
    assert_eq!(fs::metadata(&unit).unwrap().mode() & 0o777, 0o644);
    let again = install(&[]).ok();
    assert!(again.stdout.contains("is there already"), "{}", again.stdout);

    // As an earlier version left it: replaced, and said what changes.
    let body = printed.split_once('\n').unwrap().1.replace("RestartSec=5", "RestartSec=1");
    fs::write(&unit, with_sum(&body)).unwrap();
    let newer = install(&[]).ok();
    assert!(
        newer.stdout.contains("- RestartSec=1") && newer.stdout.contains("+ RestartSec=5"),
        "{}",
        newer.stdout
    );
    assert!(newer.stdout.contains("replaced"), "{}", newer.stdout);
    assert_eq!(fs::read_to_string(&unit).unwrap(), printed);

    // Edited by hand, or another's: left alone, and said what would change.
    let edited = printed.replace("RestartSec=5", "RestartSec=60");
    for theirs in [edited.as_str(), "[Service]\nExecStart=/usr/bin/other\n", ""] {
        fs::write(&unit, theirs).unwrap();
        let refused = install(&[]);
        assert_eq!(refused.code, 1, "{}", refused.stdout);
        assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
        assert!(refused.stdout.contains("+ RestartSec=5"), "{}", refused.stdout);
        assert_eq!(fs::read_to_string(&unit).unwrap(), theirs);
    }
    // A unit of ours for other folders is not ours to take over either.
    let other = printed.replace(sandbox.root().to_str().unwrap(), "/other/root");
    fs::write(&unit, with_sum(other.split_once('\n').unwrap().1)).unwrap();
    let refused = install(&[]);
    assert!(refused.code == 1 && refused.stderr.contains("--name"), "{}", refused.stderr);
    install(&["--name", "overnight-b"]).ok();
    assert!(unit.with_file_name("overnight-b.service").exists());
    install(&["--force"]).ok();
    assert_eq!(fs::read_to_string(&unit).unwrap(), printed);

    // And away again: not while it is enabled, and not what somebody edited.
    let remove = |more: &[&str]| sandbox.run(&[&["service", "remove", "--user"], more].concat());
    let wants = unit.parent().unwrap().join("default.target.wants");
    fs::create_dir(&wants).unwrap();
    std::os::unix::fs::symlink(&unit, wants.join("overnight.service")).unwrap();
    let refused = remove(&[]);
    assert!(refused.code == 1 && refused.stderr.contains("disable --now overnight"), "{}", refused.stderr);
    fs::remove_dir_all(&wants).unwrap();
    fs::write(&unit, &edited).unwrap();
    let refused = remove(&[]);
    assert!(refused.code == 1 && refused.stderr.contains("--force"), "{}", refused.stderr);
    assert!(unit.exists());
    let removed = remove(&["--force"]).ok();
    assert!(removed.stdout.contains("daemon-reload") && !unit.exists(), "{}", removed.stdout);
    assert!(remove(&[]).ok().stdout.contains("there is no "), "nothing is left to do");
}

#[test]
fn a_unit_that_is_masked_or_no_file_is_not_written_through() {
    let sandbox = Sandbox::new("none");
    let unit = user_unit(&sandbox);
    fs::create_dir_all(unit.parent().unwrap()).unwrap();
    let precious = sandbox.dir().join("precious");
    fs::write(&precious, "data").unwrap();
    symlink(&precious, &unit).unwrap();
    let refused = sandbox.run(&["service", "install", "--user"]);
    assert!(refused.code == 1 && refused.stderr.contains("is a link"), "{}", refused.stderr);
    sandbox.run(&["service", "install", "--user", "--force"]).ok();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "data");
    assert!(unit.symlink_metadata().unwrap().is_file());
    fs::remove_file(&unit).unwrap();
    fs::create_dir(&unit).unwrap();
    let refused = sandbox.run(&["service", "install", "--user"]);
    assert!(refused.code == 1 && refused.stderr.contains("is no file"), "{}", refused.stderr);
    let refused = sandbox.run(&["service", "install", "--user", "--name", "a/b"]);
    assert!(refused.code == 2 && refused.stderr.contains("name"), "{}", refused.stderr);
}

/// A copy of the program under this name, and a root that is to be, in a folder with everything in its name that means
/// something to systemd or to a shell.
fn strange(dir: &Path, program: &str) -> (PathBuf, PathBuf) {
    let program = dir.join(program);
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_overnight"), &program).unwrap();
    (program, dir.join("it's 100%h \"$HOME\" \\x/root"))
}

#[test]
fn systemd_reads_units_back_whatever_is_in_the_paths() {
    let test = "systemd_reads_units_back_whatever_is_in_the_paths";
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return skipped(test, "no systemd-analyze here");
    }
    let dir = tempfile::tempdir().unwrap();
    // The second is one that systemd takes from a shell only.
    for (name, direct) in [("100%h $HOME/over night", true), ("it's \"q\" \\/over night", false)] {
        let (program, root) = strange(dir.path(), name);
        for kind in ["--user", "--system"] {
            let printed = run(Command::new(&program)
                .args(["service", "print", kind, "--root"])
                .arg(&root)
                .env_clear()
                .env("HOME", dir.path())
                .env("PATH", "/usr/bin:/a b:/c%d"))
            .ok();
            let unit = dir.path().join("overnight.service");
            fs::write(&unit, &printed.stdout).unwrap();
            // It says so where a word is not what it looks like, and where the program is not there.
            let verify = || run(Command::new("systemd-analyze").arg("verify").arg(&unit));
            let verified = verify();
            // Who runs these tests as nobody is told what that means.
            let said: Vec<&str> =
                verified.stderr.lines().filter(|line| !line.contains("Special user")).collect();
            assert!(verified.code == 0 && said.is_empty(), "{said:?} of\n{}", printed.stdout);
            if direct {
                fs::write(&unit, printed.stdout.replace("over night", "over  night")).unwrap();
                let refused = verify();
                assert!(refused.stderr.contains("over  night"), "it would not notice: {}", refused.stderr);
            }
        }
    }
}

#[test]
fn a_unit_of_the_machine_goes_where_those_are_and_needs_root() {
    let test = "a_unit_of_the_machine_goes_where_those_are_and_needs_root";
    let sandbox = Sandbox::new("none");
    if !is_root() {
        return skipped(test, "only root may try");
    }
    // Units of its own, and nobody else's.
    let inside = "mount -t tmpfs none /etc/systemd && mkdir /etc/systemd/system && \"$@\" && cat /etc/systemd/system/*.service";
    let install = sandbox.command(&["service", "install", "--system"]);
    let mut apart = Command::new("unshare");
    apart.args(["-m", "sh", "-c", inside, "sh"]).arg(install.get_program()).args(install.get_args());
    apart.env("HOME", sandbox.dir().join("home"));
    let installed = run(&mut apart);
    if installed.stderr.contains("unshare") {
        return skipped(test, "no mount namespaces here");
    }
    let installed = installed.ok();
    assert!(
        installed.stdout.contains("wrote /etc/systemd/system/overnight-root.service"),
        "{}",
        installed.stdout
    );
    assert!(installed.stdout.contains("User=root\n"), "{}", installed.stdout);
    assert!(installed.stdout.contains("WantedBy=multi-user.target"), "{}", installed.stdout);

    let shared = tempfile::tempdir().unwrap();
    fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = shared.path().join("overnight");
    fs::copy(env!("CARGO_BIN_EXE_overnight"), &program).unwrap();
    let inside = "mount -t tmpfs none /etc/systemd && mkdir /etc/systemd/system && exec setpriv --reuid 65534 --clear-groups \"$@\"";
    let refused = run(Command::new("unshare")
        .args(["-m", "sh", "-c", inside, "sh"])
        .arg(&program)
        .args(["service", "install", "--system", "--root", "/nowhere"])
        .env("HOME", "/nonexistent"));
    assert!(
        refused.code == 1 && refused.stderr.contains("| sudo tee /etc/systemd/system/overnight-"),
        "{}",
        refused.stderr
    );
}

/// A `crontab` that keeps its table in a file.
fn with_crontab(script: &str) -> (Sandbox, PathBuf, TempDir) {
    let programs = tempfile::Builder::new().prefix("overnight-crontab-").tempdir().unwrap();
    let table = programs.path().join("table");
    let program = programs.path().join("crontab");
    fs::write(&program, script.replace("TABLE", table.to_str().unwrap())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", programs.path().display());
    (Sandbox::with_environment("none", vec![("PATH".to_owned(), path.into())]), table, programs)
}

const CRONTAB: &str = "#!/bin/sh\ncase $1 in -l) cat TABLE 2>/dev/null || { echo 'no crontab for me' >&2; exit 1; };; -) cat > TABLE;; esac\n";

#[test]
fn a_crontab_gets_the_line_once_and_keeps_all_others() {
    let (sandbox, table, _programs) = with_crontab(CRONTAB);
    let install = |more: &[&str]| sandbox.run(&[&["service", "install", "--cron"], more].concat());
    let line = sandbox.run(&["service", "print", "--cron"]).ok().stdout;
    let first = install(&[]).ok();
    assert!(first.stdout.contains("added to the crontab"), "{}", first.stdout);
    assert_eq!(fs::read_to_string(&table).unwrap(), line);
    let again = install(&[]).ok();
    assert!(again.stdout.contains("has it already"), "{}", again.stdout);
    assert_eq!(fs::read_to_string(&table).unwrap(), line);
    // Ours of yesterday, between lines of others.
    let old = line.replace("umask 077", "umask 022");
    fs::write(&table, format!("MAILTO=me\n{old}0 3 * * * backup\n")).unwrap();
    let newer = install(&[]).ok();
    assert!(newer.stdout.contains("replaced in the crontab"), "{}", newer.stdout);
    assert_eq!(fs::read_to_string(&table).unwrap(), format!("MAILTO=me\n0 3 * * * backup\n{line}"));
    // A line that somebody has written by hand.
    let theirs = "@reboot /usr/bin/overnight serve\n";
    fs::write(&table, theirs).unwrap();
    let refused = install(&[]);
    assert!(refused.code == 1 && refused.stderr.contains("not ours"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(&table).unwrap(), theirs);
    install(&["--force"]).ok();
    assert_eq!(fs::read_to_string(&table).unwrap(), format!("{theirs}{line}"));
    assert!(
        finding(&sandbox.run(&["doctor", "--json"]), "boot")["found"].as_str().unwrap().contains("crontab")
    );
    let remove = || sandbox.run(&["service", "remove", "--cron"]).ok().stdout;
    assert!(remove().contains("removed from the crontab"));
    assert_eq!(fs::read_to_string(&table).unwrap(), theirs);
    assert!(remove().contains("has no line"));
}

#[test]
fn a_crontab_that_cannot_be_read_or_written_is_not_emptied() {
    let denied = "#!/bin/sh\necho 'you are not allowed to use this program' >&2; exit 1\n";
    let (sandbox, table, _programs) = with_crontab(denied);
    let refused = sandbox.run(&["service", "install", "--cron"]);
    assert!(refused.code == 1 && refused.stderr.contains("not allowed"), "{}", refused.stderr);
    assert!(!table.exists());
    let full = "#!/bin/sh\ncase $1 in -l) echo '0 3 * * * backup';; *) cat > /dev/null; echo 'no space left' >&2; exit 1;; esac\n";
    let (sandbox, _, _programs) = with_crontab(full);
    let refused = sandbox.run(&["service", "install", "--cron"]);
    assert!(refused.code == 1 && refused.stderr.contains("no space left"), "{}", refused.stderr);
    let none = Sandbox::with_environment("none", vec![("PATH".to_owned(), "/nonexistent".into())]);
    let refused = none.run(&["service", "install", "--cron"]);
    assert!(refused.code == 1 && refused.stderr.contains("neither systemd nor"), "{}", refused.stderr);
}

#[test]
fn the_line_of_the_crontab_starts_a_scheduler_over_the_very_folders() {
    let dir = tempfile::tempdir().unwrap();
    let (program, root) = strange(dir.path(), "it's 100% $HOME/over night");
    let ask = |args: &[&str]| {
        run(Command::new(&program)
            .arg("--root")
            .arg(&root)
            .args(args)
            .env_clear()
            .env("HOME", dir.path())
            .env("PATH", "/usr/bin:/bin"))
    };
    let line = ask(&["service", "print", "--cron"]).ok().stdout;
    // As cron reads it: the schedule, then a command in which an escaped percent sign is one.
    let command = line.trim_end().strip_prefix("@reboot ").unwrap().replace("\\%", "%");
    assert!(!line.replace("\\%", "").contains('%'), "{line}");
    let mut scheduler = Command::new("/bin/sh")
        .args(["-c", &command])
        .env_clear()
        .env("HOME", dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("a scheduler that answers", || {
        assert!(
            scheduler.try_wait().unwrap().is_none(),
            "it ended: {}",
            fs::read_to_string(root.join(".state/scheduler.log")).unwrap_or_default()
        );
        (ask(&["ls", "--json"]).code == 0).then_some(())
    });
    assert!(root.join("inbox").is_dir());
    assert_eq!(fs::metadata(root.join(".state")).unwrap().mode() & 0o777, 0o700);
    ask(&["stop"]).ok();
    assert!(scheduler.wait().unwrap().success());
}

/// The worst finding of this subject.
#[track_caller]
fn finding(run: &Run, what: &str) -> Value {
    let all: Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error} in {}", run.stdout));
    let of: Vec<&Value> =
        all["findings"].as_array().unwrap().iter().filter(|found| found["what"] == what).collect();
    let worst =
        ["fail", "warn", "ok"].into_iter().find_map(|level| of.iter().find(|found| found["level"] == level));
    (*worst.unwrap_or_else(|| panic!("no {what} in {all:#}"))).clone()
}

/// Every path below a directory, with its kind, mode, size and time.
fn picture(dir: &Path) -> Vec<String> {
    fn walk(dir: &Path, all: &mut Vec<String>) {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let meta = entry.path().symlink_metadata().unwrap();
            all.push(format!(
                "{} {:o} {} {}",
                entry.path().display(),
                meta.mode(),
                meta.size(),
                meta.mtime_nsec()
            ));
            if meta.is_dir() {
                walk(&entry.path(), all);
            }
        }
    }
    let mut all = Vec::new();
    walk(dir, &mut all);
    all.sort();
    all
}

#[test]
fn the_doctor_needs_no_scheduler_and_leaves_everything_as_it_is() {
    let sandbox = Sandbox::new("none");
    let before = picture(sandbox.dir());
    let seen = sandbox.run(&["doctor", "--json"]);
    assert_eq!(picture(sandbox.dir()), before);
    let document: Value = serde_json::from_str(&seen.stdout).unwrap();
    assert_eq!(document["schema"], 1);
    let count = |level: &str| {
        document["findings"].as_array().unwrap().iter().filter(|found| found["level"] == level).count() as u64
    };
    for level in ["ok", "warn", "fail"] {
        assert_eq!(document[level], count(level), "{document:#}");
    }
    for found in document["findings"].as_array().unwrap() {
        let todo = &found["do"];
        assert!(
            found["level"] == "ok" || found["what"] == "notice" || todo.is_string(),
            "nothing to do: {found:#}"
        );
    }
    assert!(finding(&seen, "scheduler")["found"].as_str().unwrap().contains("none runs"));
    assert_eq!(seen.code, i32::from(document["fail"] != 0));
    // Everything a person reads fits, wherever they read it.
    let text = sandbox.run(&["doctor"]);
    for line in text.stdout.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let last = text.stdout.lines().last().unwrap();
    assert!(last.contains(" ok, ") && last.contains("warning"), "{last}");
    let terminal = sandbox.in_terminal(&["doctor"], 60, 60);
    terminal.wait_for_text(" ok, ");
    assert_eq!(picture(sandbox.dir()), before);
}

#[test]
fn the_doctor_asks_the_scheduler_that_runs_and_names_the_one_that_does_not_answer() {
    let mut sandbox = Sandbox::serving("none");
    let seen = sandbox.run(&["doctor", "--json"]);
    let pid = {
        let found = finding(&seen, "scheduler")["found"].as_str().unwrap().to_owned();
        assert!(found.contains(&format!("version {}", env!("CARGO_PKG_VERSION"))), "{found}");
        assert!(found.contains(&format!("over {}", sandbox.root().display())), "{found}");
        found.split("process ").nth(1).unwrap().split(',').next().unwrap().parse::<i32>().unwrap()
    };
    assert_eq!(finding(&seen, "store")["found"], "in use by the scheduler");
    assert!(finding(&seen, "environment")["found"].as_str().unwrap().contains("PATH=/"));
    // Another root over the same state.
    let state = sandbox.root().join(".state");
    let other = sandbox.dir().join("other");
    let mixed =
        run(sandbox.command(&["doctor", "--state"]).arg(&state).args(["--json", "--root"]).arg(&other));
    // The last --root counts.
    let found: Value = serde_json::from_str(&mixed.stdout).unwrap();
    let fails: Vec<&Value> =
        found["findings"].as_array().unwrap().iter().filter(|found| found["level"] == "fail").collect();
    assert!(
        fails.iter().any(|found| found["found"].as_str().unwrap().contains("you ask about")),
        "{found:#}"
    );
    assert_eq!(mixed.code, 1);

    let process = Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(process, Signal::STOP).unwrap();
    let silent = sandbox.run(&["doctor", "--json"]);
    rustix::process::kill_process(process, Signal::CONT).unwrap();
    let found = finding(&silent, "scheduler");
    assert_eq!((found["level"].as_str(), silent.code), (Some("fail"), 1), "{found:#}");
    let words = found["found"].as_str().unwrap();
    assert!(
        words.contains(&format!("process {pid}, since ")) && words.contains("does not answer"),
        "{words}"
    );
    // A socket whose name is gone is bound again by the scheduler itself.
    fs::remove_file(state.join("overnight.sock")).unwrap();
    eventually("a socket", || (sandbox.run(&["ls"]).code == 0).then_some(()));
    sandbox.kill_scheduler();
    let gone = sandbox.run(&["doctor", "--json"]);
    assert!(finding(&gone, "scheduler")["found"].as_str().unwrap().contains("none runs"));
    assert!(finding(&gone, "store")["found"].as_str().unwrap().contains("readable"), "{}", gone.stdout);
}

#[test]
fn the_doctor_says_what_is_wrong_with_a_state_and_leaves_it_alone() {
    let sandbox = Sandbox::new("none");
    let state = sandbox.root().join(".state");
    fs::create_dir_all(sandbox.root()).unwrap();
    fs::write(&state, "a file").unwrap();
    let seen = sandbox.run(&["doctor", "--json"]);
    assert_eq!((seen.code, finding(&seen, "state")["level"].as_str()), (4, Some("fail")), "{}", seen.stdout);
    fs::remove_file(&state).unwrap();
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
    for bad in ["", "not a store at all", "redb, it says"] {
        fs::write(state.join("state.redb"), bad).unwrap();
        let before = picture(sandbox.dir());
        let seen = sandbox.run(&["doctor", "--json"]);
        assert_eq!(picture(sandbox.dir()), before);
        let store = finding(&seen, "store");
        assert_eq!((seen.code, store["level"].as_str()), (4, Some("fail")), "{bad:?}: {store:#}");
        assert_eq!(finding(&seen, "state")["level"], "warn", "others may enter it");
    }
    // What the scheduler says is the same.
    let serve = sandbox.run(&["serve"]);
    assert_eq!(serve.code, 4, "{}", serve.stderr);
    fs::remove_file(state.join("state.redb")).unwrap();
    fs::create_dir(state.join("state.redb")).unwrap();
    assert_eq!(sandbox.run(&["doctor"]).code, 4);
    fs::remove_dir(state.join("state.redb")).unwrap();
    if is_root() {
        std::os::unix::fs::chown(&state, Some(65_534), None).unwrap();
        let seen = sandbox.run(&["doctor", "--json"]);
        let found = finding(&seen, "state");
        assert!(seen.code == 4 && found["found"].as_str().unwrap().contains("uid 65534"), "{found:#}");
        let refused = sandbox.run(&["serve"]);
        assert!(refused.code == 4 && refused.stderr.contains("another account"), "{}", refused.stderr);
        fs::remove_dir_all(&state).unwrap();
    } else {
        skipped(
            "the_doctor_says_what_is_wrong_with_a_state_and_leaves_it_alone",
            "only root may give a folder away",
        );
    }
}

#[test]
fn the_doctor_asks_the_driver_and_passes_on_its_words() {
    let devices: Vec<FakeDevice> = (0..2).map(|n| FakeDevice::idle(&format!("GPU-{n}"), n + 1)).collect();
    let fake = FakeNvml::new(&FakeState { devices: devices.clone(), ..FakeState::default() });
    let sandbox = Sandbox::with_environment(
        "auto",
        vec![
            ("LD_LIBRARY_PATH".to_owned(), fake.library_dir().to_owned()),
            ("FAKE_NVML_STATE".to_owned(), fake.state_file()),
        ],
    );
    let seen = sandbox.run(&["doctor", "--json"]);
    assert_eq!(finding(&seen, "nvml")["found"], "2 GPUs: 2 x NVIDIA A100 80GB PCIe", "{}", seen.stdout);
    // The library was upgraded under the kernel's module.
    fake.set(&FakeState { init: 18, devices: devices.clone(), ..FakeState::default() });
    let seen = sandbox.run(&["doctor", "--json"]);
    let found = finding(&seen, "nvml");
    assert_eq!((found["level"].as_str(), seen.code), (Some("fail"), 1), "{found:#}");
    assert!(found["do"].as_str().unwrap().contains("reboot"), "{found:#}");
    // It hangs: nobody waits for it for ever.
    fake.set(&FakeState { hang_ms: 3_600_000, devices, ..FakeState::default() });
    let seen = sandbox.run(&["doctor", "--json"]);
    assert!(finding(&seen, "nvml")["found"].as_str().unwrap().contains("does not answer"), "{}", seen.stdout);
}

#[test]
fn the_doctor_looks_at_the_disk_that_the_state_is_on() {
    let Some(disk) = SmallDisk::new("the_doctor_looks_at_the_disk_that_the_state_is_on", 16 << 10) else {
        return;
    };
    let sandbox = Sandbox::new("none");
    let state = disk.0.join("a state");
    let seen = run(sandbox.command(&["doctor", "--json", "--state"]).arg(&state));
    let all: Value = serde_json::from_str(&seen.stdout).unwrap();
    let said: Vec<String> = all["findings"].as_array().unwrap().iter().map(ToString::to_string).collect();
    let of = |words: &str| said.iter().filter(|found| found.contains(words)).collect::<Vec<_>>();
    assert_eq!(of("is in memory (tmpfs)").len(), 1, "{said:#?}");
    let full = of("of 16 MiB free on tmpfs");
    assert!(full.len() == 1 && full[0].contains("\"fail\"") && full[0].contains("make room"), "{said:#?}");
    assert_eq!(seen.code, 1);
    assert!(!state.exists());
}
