//! The shell script of an attempt whose `run` is text. Pure.
//!
//! It is run by `bash -eo pipefail`; without `-u`, which breaks ordinary lines and every activation file. Its first line
//! keeps bash alive through a warning signal, so that the program gets the signal and its exit code survives.

use crate::model::Setup;
use std::fmt::Write as _;
use std::path::Path;

const TRAP: &str = "trap : TERM INT HUP USR1 USR2\n";

/// Where conda's shell functions usually are.
const CONDA: &str = r#"for _overnight_f in "$HOME"/{miniconda3,miniforge3,anaconda3,mambaforge,miniconda,conda}/etc/profile.d/conda.sh \
  /opt/{conda,miniconda3,miniforge3,anaconda3,miniconda}/etc/profile.d/conda.sh \
  /usr/local/{conda,miniconda3,miniforge3,anaconda3}/etc/profile.d/conda.sh /usr/share/{miniconda3,miniconda}/etc/profile.d/conda.sh; do
  if [ -r "$_overnight_f" ]; then . "$_overnight_f"; break; fi
done
if ! type conda >/dev/null 2>&1; then echo "overnight: setup: no conda found" >&2; exit 1; fi
if [ "$(type -t conda)" != function ]; then eval "$(conda shell.bash hook)"; fi
"#;

/// Where the module command usually is.
const MODULES: &str = r#"if ! type module >/dev/null 2>&1; then
  for _overnight_f in /etc/profile.d/{z00_lmod,lmod,00-modulepath,modules}.sh /usr/share/lmod/lmod/init/bash \
    /usr/share/modules/init/bash /usr/share/Modules/init/bash /opt/lmod/lmod/init/bash; do
    if [ -r "$_overnight_f" ]; then . "$_overnight_f"; if type module >/dev/null 2>&1; then break; fi; fi
  done
fi
if ! type module >/dev/null 2>&1; then echo "overnight: setup: no module command found" >&2; exit 1; fi
"#;

/// The whole script.
pub(super) fn script(setup: &Setup, run: &str) -> String {
    let mut text = TRAP.to_owned();
    if !setup.is_empty() {
        text.push_str(&setup_lines(setup));
    }
    text.push_str(run);
    if !run.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// A script that sets up and then becomes a program with its arguments: list-form `run` with a `setup`.
pub(super) fn exec_script(setup: &Setup) -> String {
    format!("{}exec \"$@\"\n", setup_lines(setup))
}

fn setup_lines(setup: &Setup) -> String {
    let mut text = "set +e +o pipefail\n".to_owned();
    if !setup.modules.is_empty() {
        text.push_str(MODULES);
        for module in &setup.modules {
            text.push_str(&checked(&format!("module load {}", quote(module)), &format!("module {module}")));
        }
    }
    if let Some(conda) = &setup.conda {
        text.push_str(CONDA);
        text.push_str(&checked(&format!("conda activate {}", quote(conda)), &format!("conda {conda}")));
    }
    if let Some(venv) = &setup.venv {
        let activate = Path::new(venv).join("bin/activate");
        let line = format!(". {}", quote(&activate.to_string_lossy()));
        text.push_str(&checked(&line, &format!("venv {}", venv.display())));
    }
    if let Some(shell) = &setup.shell {
        text.push_str(shell);
        text.push('\n');
    }
    text.push_str("set -eo pipefail\n");
    text
}

/// What is named must work: the work is not started in another environment than the one asked for.
fn checked(line: &str, what: &str) -> String {
    let mut text = String::new();
    let said = quote(&format!("overnight: setup: {what} failed"));
    let _ = writeln!(text, "{line} || {{ echo {said} >&2; exit 1; }}");
    text
}

/// In single quotes: nothing in it means anything to a shell.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_trap_and_the_text_stays_as_it_is() {
        assert_eq!(script(&Setup::default(), "echo 1"), "trap : TERM INT HUP USR1 USR2\necho 1\n");
    }

    #[test]
    fn names_reach_the_shell_as_names() {
        let setup = Setup { conda: Some("a'; rm -rf /; '".to_owned()), ..Setup::default() };
        assert!(script(&setup, "true").contains(r"conda activate 'a'\''; rm -rf /; '\'''"));
    }

    #[test]
    fn set_up_runs_without_errexit_and_the_work_with_it() {
        let setup = Setup { shell: Some("false\nX=5".to_owned()), ..Setup::default() };
        let text = script(&setup, "echo $X\nfalse\necho never");
        let output =
            std::process::Command::new("bash").args(["-eo", "pipefail", "-c", &text]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(output.stdout, b"5\n");
    }

    #[test]
    fn a_venv_that_cannot_be_activated_stops_the_work() {
        let setup = Setup { venv: Some("/nowhere/venv".into()), ..Setup::default() };
        let text = script(&setup, "echo ran");
        let output =
            std::process::Command::new("bash").args(["-eo", "pipefail", "-c", &text]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("overnight: setup: venv /nowhere/venv failed")
        );
    }
}
