//! `completions` and `man`: made from the command line itself.

use super::args::command;
use super::{CliError, Exit, Io, Shown};
use clap_complete::Shell;

pub(super) fn completions(shell: Shell, io: &mut Io<'_>) -> Result<Exit, CliError> {
    // Into memory first: the generator panics where it cannot write, and a closed pipe is no failure.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command(), "overnight", &mut text);
    io.show(&Shown::text(&String::from_utf8_lossy(&text)))?;
    Ok(Exit::Ok)
}

pub(super) fn man(verb: Option<&str>, io: &mut Io<'_>) -> Result<Exit, CliError> {
    let mut command = command();
    command.build();
    if let Some(verb) = verb {
        let Some(found) = command.find_subcommand(verb).filter(|found| !found.is_hide_set()) else {
            let why = "there is no such verb; `overnight help` lists them".to_owned();
            return Err(CliError::Usage { what: verb.to_owned(), why });
        };
        command = found.clone();
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).map_err(|source| CliError::Output { source })?;
    io.show(&Shown::text(&String::from_utf8_lossy(&page)))?;
    Ok(Exit::Ok)
}
