//! Where things are: folders, their disks, what jobs find, what starts the scheduler.

use super::shell;
use crate::cli::doctor::facts::{Boot, Disk, Facts, Folder, Part, There, Work};
use crate::cli::doctor::finding::{Finding, fail, ok, warn};
use crate::model::Bytes;

/// Below this nothing is promised: an attempt's log alone may be that long.
const BYTES_LEAST: u64 = 256 << 20;
/// Below this it is said.
const BYTES_FEW: u64 = 2 << 30;
/// Files that may still be made.
const FILES_LEAST: u64 = 1_000;
const FILES_FEW: u64 = 20_000;

/// On which others may write without an event here, and locks are not what they are elsewhere.
fn is_remote(kind: &str) -> bool {
    const REMOTE: &[&str] = &[
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "ceph",
        "afs",
        "lustre",
        "gpfs",
        "beegfs",
        "glusterfs",
        "virtiofs",
        "vboxsf",
        "drvfs",
        "acfs",
        "ocfs2",
    ];
    REMOTE.contains(&kind) || (kind.starts_with("fuse.") && kind != "fuse.mergerfs")
}

pub(super) fn folders(facts: &Facts, all: &mut Vec<Finding>) {
    let mut disks: Vec<(&Disk, Vec<&str>)> = Vec::new();
    for folder in &facts.folders {
        all.extend(folder_is(folder, facts.account.uid));
        let Some(disk) = &folder.disk else { continue };
        all.extend(disk_of(folder, disk));
        match disks.iter_mut().find(|(other, _)| *other == disk) {
            Some((_, parts)) => parts.push(folder.what.word()),
            None => disks.push((disk, vec![folder.what.word()])),
        }
    }
    all.extend(disks.iter().map(|(disk, parts)| room(disk, &parts.join(", "))));
}

/// The folder itself.
fn folder_is(folder: &Folder, uid: u32) -> Vec<Finding> {
    let Folder { what, path, there, loose, .. } = folder;
    let (word, shown) = (what.word(), path.display());
    let mut all = Vec::new();
    match there {
        There::Nothing => all.push(ok(word, format!("{shown}: made at the first start"))),
        There::Other(found) => all.push(unusable(
            *what,
            fail(
                word,
                format!("{shown} {found}"),
                format!("move it away: a folder belongs there: {}", shell(path)),
            ),
        )),
        There::Folder { uid: owner, .. } if *owner != uid => all.push(unusable(
            *what,
            fail(
                word,
                format!("{shown} belongs to another account (uid {owner})"),
                format!(
                    "use a folder of your own (--root, --state), or as root: chown -R {uid} {}",
                    shell(path)
                ),
            ),
        )),
        There::Folder { mode, .. } => all.push(rights(*what, *mode, folder)),
    }
    if let Some(above) = loose {
        all.push(warn(
            word,
            format!(
                "others may rename what lies in {}, and so put another folder in its place",
                above.display()
            ),
            format!("chmod go-w {}, or use another folder", shell(above)),
        ));
    }
    all
}

fn rights(what: Part, mode: u32, folder: &Folder) -> Finding {
    let (word, shown, path) = (what.word(), folder.path.display(), shell(&folder.path));
    let others = mode & 0o077;
    match what {
        Part::State if others != 0 => warn(
            word,
            format!("others may enter {shown} (mode {mode:04o})"),
            format!("chmod 700 {path}; the scheduler does so when it starts"),
        ),
        Part::Inbox | Part::Root if mode & 0o022 != 0 => warn(
            word,
            format!("others may put files into {shown} (mode {mode:04o})"),
            format!(
                "chmod go-w {path}: only your own files are taken, and what others leave there is in the way"
            ),
        ),
        Part::Jobs if others != 0 => warn(
            word,
            format!("others may read logs and output in {shown} (mode {mode:04o})"),
            format!("chmod 700 {path}, unless that is what you want"),
        ),
        Part::Root | Part::Inbox | Part::Jobs | Part::State => ok(word, format!("{shown} (mode {mode:04o})")),
    }
}

/// Without its state no scheduler starts.
fn unusable(what: Part, finding: Finding) -> Finding {
    if what == Part::State { finding.unusable() } else { finding }
}

/// What the folder's file system can do.
fn disk_of(folder: &Folder, disk: &Disk) -> Vec<Finding> {
    let (word, shown, kind) = (folder.what.word(), folder.path.display(), &disk.kind);
    let mut all = Vec::new();
    if disk.read_only {
        let finding = fail(
            word,
            format!("{shown} is mounted read-only ({kind})"),
            "mount it for writing, or use another folder",
        );
        all.push(unusable(folder.what, finding));
    }
    match folder.what {
        Part::Inbox if is_remote(kind) => all.push(warn(
            word,
            format!("{shown} is on {kind}: files that other machines drop there cause no event here"),
            "they are found by a look every 30 s; a folder on a disk of this machine takes them at once",
        )),
        Part::State if is_remote(kind) => all.push(warn(
            word,
            format!("{shown} is on {kind}: a lost connection stops the scheduler, and locks may not hold"),
            "keep the state on a disk of this machine: --state DIR",
        )),
        Part::State if matches!(kind.as_str(), "tmpfs" | "ramfs") => all.push(warn(
            word,
            format!("{shown} is in memory ({kind}): the queue and the meter are lost with the machine"),
            "keep the state on a disk: --state DIR",
        )),
        Part::State if disk.no_exec => all.push(warn(
            word,
            format!(
                "{shown} is mounted noexec: work that starts a program of its own copy of the code fails"
            ),
            "mount it with exec, keep the state elsewhere (--state DIR), or name interpreters in `run`",
        )),
        Part::Root | Part::Inbox | Part::Jobs | Part::State => {}
    }
    all
}

fn room(disk: &Disk, parts: &str) -> Finding {
    let Disk { kind, free, size, files_free, files, .. } = disk;
    let found = format!("{parts}: {} of {} free on {kind}", Bytes(*free), Bytes(*size));
    let clear = "make room: nothing is accepted or started on a full disk, and running jobs go on";
    // Some file systems make files as they are needed and count none.
    if *files > 0 && *files_free < FILES_FEW {
        let found = format!("{parts}: {files_free} of {files} files may still be made on {kind}");
        return if *files_free < FILES_LEAST {
            fail("disk", found, clear)
        } else {
            warn("disk", found, clear)
        };
    }
    match *free {
        free if free < BYTES_LEAST => fail("disk", found, clear),
        free if free < BYTES_FEW => warn("disk", found, clear),
        _ => ok("disk", found),
    }
}

/// What jobs get. `running`: a scheduler runs, so that what is not known by now will not be.
pub(super) fn work(work: &Work, running: bool, all: &mut Vec<Finding>) {
    let path = work.variables.get("PATH").map_or("", String::as_str);
    let others = work.variables.iter().filter(|(name, _)| *name != "PATH");
    let others: Vec<String> = others.map(|(name, value)| format!(", {name}={value}")).collect();
    let get = format!("jobs get PATH={path}{}", others.concat());
    all.push(match (work.known, running) {
        (true, _) => ok("environment", get),
        (false, false) => ok(
            "environment",
            "what the login shell sets is captured at the first start; `submit` sends the caller's",
        ),
        (false, true) => warn(
            "environment",
            format!("the login shell does not tell what it sets: {get}"),
            "set environment.path in config.toml; `submit` sends the caller's",
        ),
    });
    for dir in &work.loose {
        all.push(warn(
            "environment",
            format!("others may put programs into {}, which is in the PATH of jobs", dir.display()),
            format!("chmod go-w {}, or set environment.path in config.toml", shell(dir)),
        ));
    }
    let there = |found: bool| {
        let tools = work.tools.iter().filter(move |(_, path)| path.is_some() == found);
        tools.map(|(name, path)| path.as_ref().map_or((*name).to_owned(), |path| path.display().to_string()))
    };
    let (found, missing): (Vec<String>, Vec<String>) = (there(true).collect(), there(false).collect());
    let todo = "have your login shell put them on the PATH, remove environment.json in the state directory and restart \
                the scheduler; or set environment.path in config.toml";
    if missing.iter().any(|name| name == "bash") {
        all.push(fail("tools", "no bash in the PATH of jobs: `run` as a text cannot start", todo));
    }
    let found = if found.is_empty() { "none of the usual ones".to_owned() } else { found.join(", ") };
    all.push(match missing.as_slice() {
        [] => ok("tools", format!("jobs find {found}")),
        missing => ok("tools", format!("jobs find {found}; not found: {}", missing.join(", "))),
    });
}

/// Whether the scheduler comes back.
pub(super) fn boot(boot: &Boot, user: &str) -> Finding {
    if let Some(unit) = &boot.system_unit {
        return ok("boot", format!("started by systemd: {}", unit.display()));
    }
    match &boot.user_unit {
        Some(unit) if boot.lingers => return ok("boot", format!("started by systemd: {}", unit.display())),
        Some(unit) => {
            return warn(
                "boot",
                format!(
                    "{} starts it when you log in, and ends it, jobs too, when you log out",
                    unit.display()
                ),
                format!("loginctl enable-linger {user}"),
            );
        }
        None => {}
    }
    if boot.cron {
        return ok("boot", "started by a line of the crontab");
    }
    let by = if boot.systemd { "systemd" } else { "cron" };
    warn(
        "boot",
        "nothing starts the scheduler when the machine does",
        format!("overnight service install (by {by})"),
    )
}
