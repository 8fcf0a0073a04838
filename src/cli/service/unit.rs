//! The text of a systemd unit. Pure.
//!
//! Its first line says that it is ours and has the sum of the rest: a file that nobody has edited since may be replaced.

use super::{Kind, Service};
use crate::model::is_unsafe;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How the first line begins.
const MARK: &str = "# overnight service, sum ";

/// Where it belongs: the directory.
pub(super) fn dir(service: &Service) -> Option<PathBuf> {
    match service.kind {
        Kind::System => Some(PathBuf::from(super::SYSTEM_UNITS)),
        Kind::User | Kind::Cron => super::user_units(&service.environment),
    }
}

/// Its file's name.
pub(super) fn file_name(service: &Service) -> String {
    format!("{}.service", service.name)
}

/// The whole text.
pub(super) fn text(service: &Service) -> String {
    let body = body(service);
    format!("{MARK}{}\n{body}", sum(&body))
}

fn sum(body: &str) -> String {
    blake3::hash(body.as_bytes()).to_hex()[..16].to_owned()
}

/// Whether a file is as `service install` left it.
pub(super) fn is_untouched(text: &str) -> bool {
    text.strip_prefix(MARK)
        .and_then(|rest| rest.split_once('\n'))
        .is_some_and(|(written, body)| written == sum(body))
}

/// The folder that a unit of ours starts the scheduler over, as it is written there.
pub(super) fn root_of(text: &str) -> Option<&str> {
    let start = text.lines().find(|line| line.starts_with("ExecStart="))?;
    let from = start.split_once(" --root ")?.1;
    Some(from.split_once(" --state ").map_or(from, |(root, _)| root))
}

fn body(service: &Service) -> String {
    let Service { environment, paths, kind, name, .. } = service;
    let system = *kind == Kind::System;
    let user = quoted(environment.user.as_ref(), Escape::Value);
    let edit = if system { "sudo systemctl edit" } else { "systemctl --user edit" };
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    line(&format!("# As written by `overnight service install`. Changes of yours: `{edit} {name}`."));
    line("");
    line("[Unit]");
    line(&format!("Description=Overnight, the GPU job scheduler of {user}"));
    if system {
        line("After=local-fs.target remote-fs.target nss-user-lookup.target nvidia-persistenced.service");
        let mounts = [&paths.root, &paths.state].map(|path| quoted(path.as_ref(), Escape::Value));
        line(&format!("RequiresMountsFor={}", mounts.join(" ")));
    }
    line("");
    line("[Service]");
    line("Type=exec");
    if system {
        line(&format!("User={user}"));
    }
    line(&format!("ExecStart={}", command(service)));
    line("WorkingDirectory=/");
    for (name, value) in variables(service) {
        let mut pair = std::ffi::OsString::from(format!("{name}="));
        pair.push(value);
        line(&format!("Environment={}", quoted(&pair, Escape::Value)));
    }
    line("UMask=0077");
    line("Restart=on-failure");
    line("RestartSec=5");
    line("# A wrong setting, another scheduler, a state that cannot be read: trying again does not help.");
    line("RestartPreventExitStatus=2 3 4");
    line(
        "# Jobs go on when the scheduler is stopped or started anew, and when one of them runs out of memory.",
    );
    line("KillMode=process");
    line("OOMPolicy=continue");
    line("# Jobs get control groups of their own below this one, and as many processes as the machine has.");
    line("Delegate=yes");
    line("TasksMax=infinity");
    line("TimeoutStopSec=30");
    if system {
        line("# Jobs go first when the machine runs out of memory.");
        line("OOMScoreAdjust=-500");
    }
    line("");
    line("[Install]");
    line(if system { "WantedBy=multi-user.target" } else { "WantedBy=default.target" });
    out
}

fn command(service: &Service) -> String {
    let program = service.program.as_os_str();
    // A program's own name may have no such characters, however they are quoted; an argument may.
    let special = |byte: &u8| byte.is_ascii_control() || matches!(byte, b'"' | b'\'' | b'\\');
    let mut line = if program.as_bytes().iter().any(special) || program.to_str().is_none() {
        format!("/bin/sh -c \"exec \\\"$$0\\\" \\\"$$@\\\"\" {}", quoted(program, Escape::Argument))
    } else {
        quoted(program, Escape::Program)
    };
    for word in service.arguments() {
        line.push(' ');
        line.push_str(&quoted(word, Escape::Argument));
    }
    line
}

/// What the scheduler must find in its environment. The work's own is captured from the login shell.
fn variables(service: &Service) -> Vec<(&'static str, &OsStr)> {
    let environment = &service.environment;
    let mut all: Vec<(&'static str, &OsStr)> = Vec::new();
    all.extend(environment.path.as_ref().map(|path| ("PATH", path.as_ref())));
    all.extend(environment.library_path.as_ref().map(|path| ("LD_LIBRARY_PATH", path.as_ref())));
    let usual = environment.home.as_ref().map(|home| home.join(".config"));
    let set = environment.config_home.as_ref().filter(|set| Some(*set) != usual.as_ref());
    all.extend(set.map(|dir: &PathBuf| ("XDG_CONFIG_HOME", Path::as_os_str(dir))));
    all
}

/// Where a word stands decides what systemd would replace in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    /// The program: specifiers.
    Program,
    /// A further word of a command: specifiers and variables.
    Argument,
    /// Any other value: specifiers.
    Value,
}

/// A word as systemd reads it back.
fn quoted(word: &OsStr, escape: Escape) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=+,-@".contains(c);
    let mut out = String::new();
    for chunk in word.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '%' => out.push_str("%%"),
                '$' if escape == Escape::Argument => out.push_str("$$"),
                '"' | '\\' => {
                    out.push('\\');
                    out.push(c);
                }
                c if is_unsafe(c) => hex(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => out.push(c),
            }
        }
        hex(&mut out, chunk.invalid());
    }
    if !out.is_empty() && out.chars().all(plain) { out } else { format!("\"{out}\"") }
}

fn hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(out, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_systemd_reads_them() {
        let argument = |word: &[u8]| quoted(OsStr::from_bytes(word), Escape::Argument);
        assert_eq!(argument(b"/home/ana/overnight"), "/home/ana/overnight");
        assert_eq!(argument(b"/my data/100%/$HOME"), "\"/my data/100%%/$$HOME\"");
        assert_eq!(argument(b"a\"b\\c'd"), "\"a\\\"b\\\\c'd\"");
        assert_eq!(argument("n\u{e4}me\n\u{202e}".as_bytes()), "\"n\u{e4}me\\x0a\\xe2\\x80\\xae\"");
        assert_eq!(argument(b"\xff"), "\"\\xff\"");
        assert_eq!(argument(b""), "\"\"");
        assert_eq!(quoted("a$b".as_ref(), Escape::Program), "\"a$b\"");
    }
}
