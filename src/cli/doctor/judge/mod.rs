//! From facts to findings. Pure: every threshold and every remedy is here.

mod machine;
mod place;

use super::facts::{Answers, Facts, Holder, Program, Scheduler, Store};
use super::finding::{Finding, Level, fail, ok, warn};
use std::path::Path;

/// What there is to say, in the order of the subjects.
pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut all = vec![program(facts)];
    all.extend(keys(facts));
    all.extend(
        facts
            .program
            .theme
            .as_ref()
            .map(|why| warn("theme", why.as_str(), "the dashboard starts all the same")),
    );
    scheduler(&facts.scheduler, facts, &mut all);
    all.push(store(&facts.store));
    place::folders(facts, &mut all);
    all.extend(refused(&facts.refused));
    place::work(&facts.work, matches!(facts.scheduler, Scheduler::Answers(_)), &mut all);
    all.push(place::boot(&facts.boot, &facts.account.user));
    machine::gpus(&facts.gpus, &mut all);
    machine::inotify(&facts.inotify, &mut all);
    all.push(machine::cgroup(&facts.cgroup));
    all.push(machine::landlock(&facts.landlock));
    machine::clock(&facts.clock, &mut all);
    machine::limits(&facts.account, &mut all);
    all
}

fn program(facts: &Facts) -> Finding {
    let config = match &facts.program.config {
        Some(path) => format!("config {}", path.display()),
        None => "no config file: everything as it comes".to_owned(),
    };
    ok("program", format!("{} {}, {config}", facts.program.path.display(), facts.program.version))
}

/// Keys of one's own that the dashboard leaves out.
fn keys(facts: &Facts) -> Option<Finding> {
    let Program { config, keys, .. } = &facts.program;
    let file = config.as_ref().map_or_else(|| "config.toml".to_owned(), |path| path.display().to_string());
    let todo = format!("mend [keys] in {file}; docs/keys.md has every action and key");
    (!keys.is_empty()).then(|| warn("keys", keys.join("; "), todo))
}

/// Files in the inbox that are no jobs.
fn refused(files: &[String]) -> Option<Finding> {
    let found = format!("refused: {}", files.join(" "));
    let todo = "each has a file NAME.why.txt beside it that says why; a file that is mended is read again";
    (!files.is_empty()).then(|| warn("inbox", found, todo))
}

fn scheduler(scheduler: &Scheduler, facts: &Facts, all: &mut Vec<Finding>) {
    let at = |holder: &Option<Holder>| match holder {
        Some(Holder { pid, since: Some(since) }) => format!("process {pid}, since {since},"),
        Some(Holder { pid, since: None }) => format!("process {pid}"),
        None => "a process that the system does not name".to_owned(),
    };
    match scheduler {
        Scheduler::None => {
            all.push(ok("scheduler", "none runs: `overnight` or `overnight serve` starts one"));
        }
        Scheduler::Answers(answers) => running(answers, facts, all),
        Scheduler::Silent { holder } => all.push(fail(
            "scheduler",
            format!("{} holds the lock and does not answer", at(holder)),
            "if it is stopped, kill -CONT it; if it hangs, look at scheduler.log and end it; jobs go on",
        )),
        Scheduler::Other { protocol, ours, holder } => all.push(fail(
            "scheduler",
            format!("{} speaks protocol {protocol}, this program {ours}", at(holder)),
            "`overnight stop`, then start it again: jobs go on",
        )),
        Scheduler::NotOurs { uid } => all.push(
            fail(
                "scheduler",
                format!("the socket of this state is served by another account (uid {uid})"),
                "use a state of your own: --state DIR, or remove the socket if you did not let them in",
            )
            .unusable(),
        ),
        Scheduler::Failed(words) => all.push(fail(
            "scheduler",
            format!("it cannot be asked: {words}"),
            "look at the socket in the state directory: it must be yours, mode 0600",
        )),
    }
}

fn running(answers: &Answers, facts: &Facts, all: &mut Vec<Finding>) {
    let Answers { pid, version, since, root, .. } = answers;
    all.push(ok(
        "scheduler",
        format!("process {pid}, version {version}, since {since}, over {}", root.display()),
    ));
    let ours = facts.program.version;
    if version != ours {
        all.push(warn(
            "version",
            format!("the scheduler is {version}, this program {ours}"),
            "`overnight stop`, then start it again with this program: jobs go on",
        ));
    } else if answers.replaced {
        all.push(warn(
            "version",
            "the scheduler's program was replaced since it started",
            "`overnight stop`, then start it again to run the new one: jobs go on",
        ));
    }
    if let Some(folder) = facts.folders.iter().find(|folder| folder.what == super::facts::Part::Root)
        && folder.path != *root
    {
        all.push(fail(
            "scheduler",
            format!("it watches {}, and you ask about {}", root.display(), folder.path.display()),
            "give the same --root to both, or another --state to one of them",
        ));
    }
    for (error, text) in &answers.notices {
        let level = if *error { Level::Fail } else { Level::Warn };
        all.push(Finding::new(level, "notice", text, None));
    }
}

fn store(store: &Store) -> Finding {
    match store {
        Store::InUse => ok("store", "in use by the scheduler"),
        Store::None => ok("store", "none yet: made at the first start"),
        Store::Fine => ok("store", "readable, and this machine's"),
        Store::Refused(words) => {
            let (what, todo) = match words.split_once("; ") {
                Some((what, todo)) => (what.to_owned(), todo.to_owned()),
                None => (words.clone(), "the scheduler would refuse it and leave it as it is".to_owned()),
            };
            fail("store", what, todo).unusable()
        }
    }
}

/// A path that a command can be given.
fn shell(path: &Path) -> String {
    crate::cli::service::shell_word(&path.to_string_lossy())
}

#[cfg(test)]
mod tests;
