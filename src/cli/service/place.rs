//! Puts a unit where it belongs: over nothing that somebody else wrote, and not without saying what changes.

use super::{Kind, Service, unit};
use crate::beneath::{self, Links};
use crate::cli::{CliError, Io};
use rustix::fs::{FileType, Mode};
use rustix::io::Errno;
use std::io::Read;
use std::path::Path;

/// A unit is shorter.
const MOST_BYTES: u64 = 1 << 20;

/// What lies where the unit belongs.
enum There {
    Nothing,
    /// A file: its text.
    File(String),
    /// Anything else, in words.
    Strange(&'static str),
}

/// Installs it; says what was done.
pub(super) fn unit(service: &Service, text: &str, force: bool, io: &mut Io<'_>) -> Result<String, CliError> {
    let Some(dir_path) = unit::dir(service) else {
        return Err(CliError::Config(crate::config::ConfigError::NoHome));
    };
    let name = unit::file_name(service);
    let path = dir_path.join(&name);
    let failed = |doing, errno: Errno| refused_or_failed(doing, &path, errno.into(), service);
    let dir = match service.kind {
        // Where it is missing there is no systemd to read it.
        Kind::System => beneath::named(&dir_path),
        Kind::User | Kind::Cron => beneath::make_named(&dir_path),
    };
    let dir = dir.map_err(|errno| failed("reach the folder of", errno))?;
    let there = look(&dir, &name).map_err(|errno| failed("look at", errno))?;
    let who = format!("the scheduler of {} over {}", service.environment.user, service.paths.root.display());
    let shown = path.display();
    let before = match there {
        There::Nothing => None,
        There::File(old) if old == text => return Ok(format!("{shown} is there already: {who}")),
        There::File(old) => {
            let same_root = unit::root_of(&old) == unit::root_of(text);
            let why = match (unit::is_untouched(&old), same_root) {
                (true, true) => None,
                (true, false) => {
                    Some("starts the scheduler of another folder; `--name NAME` makes a second unit")
                }
                (false, _) => Some("was written, or edited, by somebody else"),
            };
            Some((old, why))
        }
        There::Strange(what) => Some((String::new(), Some(what))),
    };
    if let Some((old, why)) = &before {
        difference(old, text, io)?;
        if let Some(why) = why.filter(|_| !force) {
            let message = format!("{shown} {why}; it was left as it is: `--force` replaces it");
            return Err(CliError::Refused { message });
        }
    }
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    beneath::replace(&dir, name.as_ref(), text.as_bytes(), mode)
        .map_err(|source| refused_or_failed("write", &path, source, service))?;
    let did = if before.is_some() { "replaced" } else { "wrote" };
    Ok(format!("{did} {shown}: {who}"))
}

/// Where systemd links what is enabled.
const WANTED_BY: [&str; 2] = ["default.target.wants", "multi-user.target.wants"];

/// Takes a unit of ours away; says what was done. One that is enabled is left: systemd would go on looking for it.
pub(super) fn remove(service: &Service, force: bool) -> Result<String, CliError> {
    let Some(dir_path) = unit::dir(service) else {
        return Err(CliError::Config(crate::config::ConfigError::NoHome));
    };
    let name = unit::file_name(service);
    let path = dir_path.join(&name);
    let shown = path.display();
    let nothing = || format!("there is no {shown}");
    let failed = |doing, errno: Errno| refused_or_failed(doing, &path, errno.into(), service);
    let dir = match beneath::named(&dir_path) {
        Err(Errno::NOENT) => return Ok(nothing()),
        dir => dir.map_err(|errno| failed("reach the folder of", errno))?,
    };
    let strange = match look(&dir, &name).map_err(|errno| failed("look at", errno))? {
        There::Nothing => return Ok(nothing()),
        There::File(text) if unit::is_untouched(&text) => None,
        There::File(_) => Some("was written, or edited, by somebody else"),
        There::Strange(what) => Some(what),
    };
    if let Some(why) = strange.filter(|_| !force) {
        let message = format!("{shown} {why}; it was left as it is: `--force` removes it");
        return Err(CliError::Refused { message });
    }
    let (how, system) = if service.kind == Kind::System {
        (if service.environment.uid == 0 { "systemctl" } else { "sudo systemctl" }, true)
    } else {
        ("systemctl --user", false)
    };
    let is_enabled = |wants: &str| std::fs::symlink_metadata(dir_path.join(wants).join(&name)).is_ok();
    if WANTED_BY.into_iter().any(is_enabled) {
        let message = format!(
            "{shown} is enabled: `{how} disable --now {}` first, jobs go on without it",
            service.name
        );
        return Err(CliError::Refused { message });
    }
    rustix::fs::unlinkat(&dir, name.as_str(), rustix::fs::AtFlags::empty())
        .map_err(|errno| failed("remove", errno))?;
    let whose = if system { "the machine's" } else { "this account's" };
    Ok(format!("removed {shown}; next: `{how} daemon-reload`, so that {whose} systemd knows"))
}

fn look(dir: &beneath::Dir, name: &str) -> Result<There, Errno> {
    let (seen, stat) = match beneath::look(dir, Path::new(name), Links::Refused) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(There::Nothing),
        Err(beneath::IS_LINK) => return Ok(There::Strange("is a link, as of a unit that is masked")),
        Err(errno) => return Err(errno),
    };
    if beneath::kind(&stat) != FileType::RegularFile {
        return Ok(There::Strange("is no file"));
    }
    let mut bytes = Vec::new();
    let read = beneath::reopen(&seen)?.take(MOST_BYTES).read_to_end(&mut bytes);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(There::File(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The lines that go and the lines that come.
pub(super) fn difference(old: &str, new: &str, io: &mut Io<'_>) -> Result<(), CliError> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let begin = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let end = old[begin..].iter().rev().zip(new[begin..].iter().rev()).take_while(|(a, b)| a == b).count();
    for (sign, lines) in [("-", &old[begin..old.len() - end]), ("+", &new[begin..new.len() - end])] {
        for line in lines {
            io.line(&format!("{sign} {line}"))?;
        }
    }
    Ok(())
}

fn refused_or_failed(
    doing: &'static str,
    path: &Path,
    source: std::io::Error,
    service: &Service,
) -> CliError {
    if service.kind == Kind::System && source.kind() == std::io::ErrorKind::PermissionDenied {
        let shown = path.display();
        let message = format!(
            "{shown}: {source}; this writes it as root: overnight service print --system | sudo tee {shown} > /dev/null"
        );
        return CliError::Refused { message };
    }
    CliError::File { doing, path: path.to_owned(), source }
}
