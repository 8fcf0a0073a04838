//! Where there is no systemd: an `@reboot` line in this account's crontab.

use super::place::difference;
use super::{Service, shell_word};
use crate::cli::{CliError, Io};
use crate::model::is_unsafe;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What cron takes of a command.
const LONGEST: usize = 990;
/// Ends a line of ours; behind it the folder.
const MARK: &str = " # overnight service: ";

/// The line. Or why there can be none.
pub(super) fn line(service: &Service) -> Result<String, String> {
    let mut words = vec![word(&service.program)?];
    for argument in service.arguments() {
        words.push(word(Path::new(argument))?);
    }
    let (root, state) = (word(&service.paths.root)?, word(&service.paths.state)?);
    let log = word(&service.paths.log())?;
    let path = service.environment.path.as_ref().map(|path| word(Path::new(path))).transpose()?;
    let with = |path: Option<&String>| {
        let path = path.map(|path| format!("env PATH={path} ")).unwrap_or_default();
        format!(
            "umask 077; mkdir -p {state} && exec {path}{} < /dev/null >> {log} 2>&1{MARK}{root}",
            words.join(" ")
        )
    };
    // The scheduler itself needs no PATH, and the work has the login shell's.
    let command = [with(path.as_ref()), with(None)].into_iter().find(|command| command.len() <= LONGEST);
    match command {
        Some(command) => Ok(format!("@reboot {}", command.replace('%', "\\%"))),
        None => Err(format!(
            "a crontab has no room for paths as long as {root}: start the scheduler by other means"
        )),
    }
}

/// A path as a shell reads it, in a line of a crontab.
fn word(path: &Path) -> Result<String, String> {
    match path.to_str() {
        Some(text) if !text.chars().any(is_unsafe) => Ok(shell_word(text)),
        _ => Err(format!(
            "{} cannot be written in a crontab: it has characters that are no text",
            path.display()
        )),
    }
}

/// What becomes of a crontab.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    /// The line is there.
    Same,
    /// This is the new text. Ours was there, and was another one.
    New { text: String, replaced: bool },
    /// A line that is none of ours starts a scheduler.
    Foreign(String),
}

fn change(old: &str, line: &str) -> Change {
    if old.lines().any(|there| there == line) {
        return Change::Same;
    }
    let ours = is_ours(line);
    let replaced = old.lines().any(&ours);
    let foreign = |there: &&str| {
        let there = there.trim_start();
        !there.starts_with('#')
            && !there.contains(MARK)
            && there.contains("overnight")
            && there.contains(" serve")
    };
    if !replaced && let Some(foreign) = old.lines().find(foreign) {
        return Change::Foreign(foreign.to_owned());
    }
    Change::New { text: with(old, line, ours), replaced }
}

/// The crontab with the line, in the place of those that it replaces.
fn with(old: &str, line: &str, replaced: impl Fn(&str) -> bool) -> String {
    let kept = old.lines().filter(|there| !replaced(there));
    kept.chain([line]).fold(String::new(), |text, line| text + line + "\n")
}

/// Puts the line into the crontab; says what was done.
pub(super) fn install(
    line: &str,
    service: &Service,
    force: bool,
    io: &mut Io<'_>,
) -> Result<String, CliError> {
    let user = &service.environment.user;
    let old = read()?;
    let (text, did) = match change(&old, line) {
        Change::Same => return Ok(format!("the crontab of {user} has it already")),
        Change::New { text, replaced } => (text, if replaced { "replaced in" } else { "added to" }),
        Change::Foreign(there) if !force => {
            let message = format!(
                "the crontab of {user} starts a scheduler already, by a line that is not ours; `--force` adds ours: {there}"
            );
            return Err(CliError::Refused { message });
        }
        Change::Foreign(_) => (with(&old, line, |_| false), "added to"),
    };
    difference(&old, &text, io)?;
    write(&text)?;
    Ok(format!("{did} the crontab of {user}"))
}

/// Takes our line out of the crontab; says what was done.
pub(super) fn remove(line: &str, service: &Service, io: &mut Io<'_>) -> Result<String, CliError> {
    let user = &service.environment.user;
    let old = read()?;
    let Some(text) = without(&old, line) else {
        return Ok(format!("the crontab of {user} has no line of `overnight service` for this folder"));
    };
    difference(&old, &text, io)?;
    write(&text)?;
    Ok(format!("removed from the crontab of {user}"))
}

/// The crontab without the line that starts this scheduler; `None` if there is none.
fn without(old: &str, line: &str) -> Option<String> {
    let ours = is_ours(line);
    let kept = || old.lines().filter(|there| !ours(there));
    (kept().count() < old.lines().count())
        .then(|| kept().fold(String::new(), |text, line| text + line + "\n"))
}

/// Lines of ours over the same folder, also those of another version.
fn is_ours(line: &str) -> impl Fn(&str) -> bool {
    let mark = line.find(MARK).map_or("", |at| &line[at..]);
    move |there: &str| there.starts_with('@') && there.ends_with(mark)
}

fn no_crontab(source: &std::io::Error) -> CliError {
    let message = format!(
        "neither systemd nor `crontab` is here ({source}): have whatever starts your programs at boot run what `overnight service print` shows"
    );
    CliError::Refused { message }
}

/// The crontab as it is; of an account without one nothing.
fn read() -> Result<String, CliError> {
    let output = Command::new("crontab")
        .arg("-l")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|source| no_crontab(&source))?;
    if output.status.success() {
        return String::from_utf8(output.stdout).map_err(|_| CliError::Refused {
            message:
                "the crontab is not UTF-8 text: add the line of `overnight service print --cron` by hand"
                    .to_owned(),
        });
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.stdout.is_empty() && ["no crontab", "No such file"].iter().any(|words| said.contains(words)) {
        return Ok(String::new());
    }
    Err(CliError::Refused { message: format!("`crontab -l` failed: {}", said.trim()) })
}

fn write(text: &str) -> Result<(), CliError> {
    let mut child = Command::new("crontab")
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| no_crontab(&source))?;
    // A program that does not read to the end says why by its exit.
    let written = child.stdin.take().map(|mut input| input.write_all(text.as_bytes()));
    let output = child.wait_with_output().map_err(|source| no_crontab(&source))?;
    if output.status.success() && matches!(written, Some(Ok(()))) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(CliError::Refused { message: format!("`crontab -` did not take it: {}", said.trim()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crontab_keeps_its_other_lines_and_has_ours_once() {
        let line = "@reboot new # overnight service: /root/a";
        let new = |text: &str, replaced| Change::New { text: text.to_owned(), replaced };
        assert_eq!(change("", line), new(&format!("{line}\n"), false));
        assert_eq!(change("0 3 * * * backup", line), new(&format!("0 3 * * * backup\n{line}\n"), false));
        assert_eq!(change(&format!("x\n{line}\n"), line), Change::Same);
        let old = "@reboot old # overnight service: /root/a\nx\n@reboot other # overnight service: /root/b\n";
        let expected = format!("x\n@reboot other # overnight service: /root/b\n{line}\n");
        assert_eq!(change(old, line), new(&expected, true));
        let theirs = "@reboot /usr/bin/overnight serve";
        assert_eq!(change(&format!("{theirs}\n"), line), Change::Foreign(theirs.to_owned()));
        assert!(matches!(change(&format!("# {theirs}\n"), line), Change::New { .. }));
    }

    #[test]
    fn words_are_quoted_as_a_shell_reads_them() {
        assert_eq!(shell_word("/home/ana/x-1"), "/home/ana/x-1");
        assert_eq!(shell_word("/my data/it's $5"), "'/my data/it'\\''s $5'");
        assert_eq!(shell_word(""), "''");
    }
}
