//! The rules about shell text: one function for each kind of trap. `lint` says which text they look at.

use super::findings::{Finding, error, warning};
use super::reader::{Reader, visible};
use super::shell::{Command, Word};
use super::tree::{Kind, Mark, Node, Style};
use crate::model::Setup;

/// Shell text and where it stands.
pub(super) struct Script<'s> {
    pub(super) node: Option<&'s Node>,
    /// Where it is, if it is not in the job file.
    pub(super) file: Option<String>,
    pub(super) text: &'s str,
}

impl Script<'_> {
    /// A finding about `width` characters at `at`.
    fn place(&self, r: &mut Reader<'_, '_>, make: impl Fn(Mark) -> Finding, at: usize, width: usize) {
        let before: String = self.text.chars().take(at).collect();
        let line = before.matches('\n').count() as u32;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() as u32;
        if let Some(file) = &self.file {
            let source = self.text.lines().nth(line as usize).unwrap_or("");
            let mark = Mark { line: line + 1, column: column + 1, width: width as u32 };
            r.add(make(mark).in_file(file.clone(), source));
            return;
        }
        let Some(node) = self.node else { return };
        let word: String = self.text.chars().skip(at).take(width).collect();
        let (line, column) = match &node.kind {
            Kind::Text { style: Style::Literal, .. } => (node.mark.line + line, node.mark.column + column),
            Kind::Text { style: Style::Single | Style::Double, .. } => {
                (node.mark.line, node.mark.column + 1 + column)
            }
            Kind::Text { .. } | Kind::Nothing | Kind::List { .. } | Kind::Map { .. } | Kind::Alias(_) => {
                (node.mark.line, node.mark.column + column)
            }
        };
        let exact = Mark { line, column, width: width as u32 };
        let there = !word.is_empty() && r.written(exact).is_some_and(|written| written == word);
        let item = match &node.kind {
            Kind::List { items, .. } => items.first(),
            Kind::Nothing | Kind::Text { .. } | Kind::Map { .. } | Kind::Alias(_) => None,
        };
        let whole = visible(item.map_or(node.mark, |item| item.mark));
        r.add(make(if there { exact } else { whole }));
    }

    fn word(&self, r: &mut Reader<'_, '_>, word: &Word, make: impl Fn(Mark) -> Finding) {
        self.place(r, make, word.at, word.text.chars().count());
    }
}

/// How the whole text ends.
pub(super) fn ends(r: &mut Reader<'_, '_>, text: &Script<'_>, list: &[Command]) {
    let waits = |from: usize| list.iter().skip(from).find(|command| command.name() == "wait");
    if let Some(last) = list.last().filter(|command| command.background)
        && let Some(word) = last.words.first()
    {
        text.word(r, word, |mark| {
            error(64, mark, "run ends at once; what is left in the background is killed")
                .hint("take off `nohup … &`: Overnight runs it with nobody watching")
        });
    }
    let first = list.iter().position(|command| command.background);
    if let Some(first) = first
        && let Some(wait) = waits(first).filter(|command| command.program().len() == 1)
        && let Some(word) = wait.program().first()
    {
        text.word(r, word, |mark| {
            warning(66, mark, "plain `wait` hides failures")
                .hint("one GPU each: a job for each; or `wait -n` once for each")
        });
    }
}

/// `CUDA_VISIBLE_DEVICES=…`
pub(super) fn visible_devices(r: &mut Reader<'_, '_>, text: &Script<'_>, command: &Command) {
    if let Some(word) = command.words.iter().find(|word| word.text.starts_with("CUDA_VISIBLE_DEVICES=")) {
        text.word(r, word, |mark| {
            warning(67, mark, "Overnight sets CUDA_VISIBLE_DEVICES to your GPUs; ids inside a job start at 0")
                .hint("delete it, ask for the number: `gpus:`")
        });
    }
}

/// What the rules know of the job.
pub(super) struct Rules<'j> {
    pub(super) gpus: Option<u32>,
    pub(super) setup: &'j Setup,
}

const PROCESSES: &[&str] = &[
    "--nproc_per_node",
    "--nproc-per-node",
    "--num_gpus",
    "--num-gpus",
    "--num_processes",
    "--num-processes",
    "--tensor-parallel-size",
    "--tensor_parallel_size",
];
const PORTS: &[&str] = &[
    "--master_port",
    "--master-port",
    "--main_process_port",
    "--main-process-port",
    "--port",
    "--rdzv_endpoint",
    "--rdzv-endpoint",
    "--http-port",
];

impl Rules<'_> {
    pub(super) fn all(&self, r: &mut Reader<'_, '_>, text: &Script<'_>, list: &[Command]) {
        for command in list {
            visible_devices(r, text, command);
            pointless(r, text, command);
            self.options(r, text, command);
            self.environment(r, text, command);
            container(r, text, command);
            slurm(r, text, command);
            waits_for_people(r, text, command);
        }
    }

    /// Numbers of processes and ports, `~` behind `=`.
    fn options(&self, r: &mut Reader<'_, '_>, text: &Script<'_>, command: &Command) {
        for (at, word) in command.words.iter().enumerate() {
            let (name, value, offset) = match word.text.split_once('=') {
                Some((name, value)) => (name, value.to_owned(), word.at + name.chars().count() + 1),
                None => match command.words.get(at + 1) {
                    Some(next) if word.text.starts_with("--") => {
                        (word.text.as_str(), next.text.clone(), next.at)
                    }
                    Some(_) | None => continue,
                },
            };
            let digits = !value.is_empty() && value.len() < 6 && value.bytes().all(|b| b.is_ascii_digit());
            if PROCESSES.contains(&name)
                && digits
                && let (Ok(n), Some(gpus)) = (value.parse::<u32>(), self.gpus)
                && gpus > 0
                && n != gpus
            {
                let (of, with) = (plural(n, "process", "processes"), plural(gpus, "GPU", "GPUs"));
                let make = |mark| {
                    warning(68, mark, format!("run uses {of}, request has {with}"))
                        .hint(format!("{name}=\"$OVERNIGHT_GPU_COUNT\" follows the request"))
                };
                text.place(r, make, offset, value.chars().count());
            }
            let port = value.rsplit(':').next().unwrap_or("");
            let is_port = port.len() >= 4 && port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
            if (PORTS.contains(&name) || name == "MASTER_PORT") && is_port {
                let ours = if name == "--port" || name == "--http-port" {
                    "$OVERNIGHT_PORT"
                } else {
                    "$MASTER_PORT"
                };
                let make = |mark| {
                    warning(74, mark, format!("port {port} is fixed: two jobs on this host would clash"))
                        .hint(format!("`{ours}` is the job's own"))
                };
                text.place(r, make, offset + value.chars().count() - port.len(), port.len());
            }
            if name.starts_with('-')
                && word.text.contains("=~")
                && (value == "~" || value.starts_with("~/"))
                && !word.quoted
            {
                let rest = value.trim_start_matches('~').to_owned();
                text.word(r, word, |mark| {
                    warning(72, mark, "bash does not expand `~` after `=`")
                        .hint(format!("`{name}=\"$HOME{rest}\"`"))
                });
            }
        }
    }

    /// `conda activate` and `module load` in a batch shell.
    fn environment(&self, r: &mut Reader<'_, '_>, text: &Script<'_>, command: &Command) {
        let program = command.program();
        let Some(first) = program.first().filter(|_| self.setup.is_empty()) else { return };
        let word = |at: usize| program.get(at).map_or("", |word| word.text.as_str());
        let hint = match (command.name(), word(1)) {
            ("conda" | "mamba" | "micromamba", "activate") => {
                format!("`setup: {{conda: {}}}`", if word(2).is_empty() { "base" } else { word(2) })
            }
            ("module" | "ml", "load" | "add") => format!("`setup: {{modules: [{}]}}`", word(2)),
            _ => return,
        };
        let what = command.name().to_owned();
        text.word(r, first, |mark| {
            warning(69, mark, format!("`{what}` is not available in a batch shell")).hint(hint.clone())
        });
    }
}

fn plural(n: u32, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// What Overnight does itself, and what never ends.
fn pointless(r: &mut Reader<'_, '_>, text: &Script<'_>, command: &Command) {
    let program = command.program();
    let Some(first) = program.first() else { return };
    let follows = program.iter().skip(1).any(|word| matches!(word.text.as_str(), "-f" | "-F" | "--follow"));
    let (message, hint) = match command.name() {
        name @ ("nohup" | "tmux" | "screen" | "disown" | "setsid") => (
            format!("`{name}`: Overnight runs it with nobody watching"),
            "take it off; `overnight log -f` follows the log",
        ),
        "tail" if follows => ("`tail -f` never ends".to_owned(), "`overnight log -f` follows the log"),
        "watch" => ("`watch` never ends".to_owned(), "take it out"),
        _ => return,
    };
    text.word(r, first, |mark| warning(65, mark, message.clone()).hint(hint));
}

/// Containers that see every GPU, want a terminal or outlive the job.
fn container(r: &mut Reader<'_, '_>, text: &Script<'_>, command: &Command) {
    let program = command.program();
    let is_run = program.get(1).is_some_and(|word| matches!(word.text.as_str(), "run" | "exec"));
    if !matches!(command.name(), "docker" | "podman" | "nerdctl") || !is_run {
        return;
    }
    let hint = "`docker run --gpus \"\\\"device=$OVERNIGHT_GPU_UUIDS\\\"\" --rm --init …`";
    let alone = |word: &Word| {
        let text = word.text.as_str();
        matches!(
            text,
            "--rm" | "--init" | "--tty" | "--detach" | "--interactive" | "--privileged" | "--read-only"
        ) || text.contains('=')
            || (text.starts_with('-') && text.bytes().skip(1).all(|b| matches!(b, b'i' | b't' | b'd')))
    };
    for (at, word) in program.iter().enumerate().skip(2) {
        let value_of_option = at > 2 && program[at - 1].text.starts_with('-') && !alone(&program[at - 1]);
        if !word.text.starts_with('-') && !value_of_option {
            // The image: what follows belongs to the program inside.
            break;
        }
        let next = program.get(at + 1).map_or("", |word| word.text.as_str());
        let short = word.text.strip_prefix('-').filter(|rest| {
            (1..=3).contains(&rest.len()) && rest.bytes().all(|b| matches!(b, b'i' | b't' | b'd'))
        });
        let all = word.text == "--gpus=all" || (word.text == "--gpus" && next == "all");
        if all {
            text.word(r, word, |mark| warning(70, mark, "the container sees every GPU").hint(hint));
        } else if short.is_some_and(|rest| rest.contains('t')) || word.text == "--tty" {
            let severe = text.file.is_none();
            text.word(r, word, |mark| {
                let message = "the container wants a terminal; a job has none";
                if severe {
                    error(70, mark, message).hint(hint)
                } else {
                    warning(70, mark, message).hint(hint)
                }
            });
        } else if short.is_some_and(|rest| rest.contains('d')) || word.text == "--detach" {
            text.word(r, word, |mark| {
                warning(70, mark, "the container is not ended with the job").hint(hint)
            });
        }
    }
}

/// Words of Slurm.
fn slurm(r: &mut Reader<'_, '_>, text: &Script<'_>, command: &Command) {
    let hint =
        "`overnight import` translates Slurm scripts in a later version; here each is one plain command";
    if let Some(first) = command.program().first()
        && matches!(command.name(), "srun" | "sbatch" | "scontrol" | "salloc" | "scancel" | "squeue")
    {
        let what = command.name().to_owned();
        text.word(r, first, |mark| {
            warning(71, mark, format!("`{what}`: this is not a Slurm job")).hint(hint)
        });
    }
    let variable =
        command.words.iter().find(|word| word.text.contains("$SLURM_") || word.text.contains("${SLURM_"));
    if let Some(word) = variable {
        text.word(r, word, |mark| {
            warning(71, mark, "`SLURM_…` is not set: this is not a Slurm job")
                .hint("`$OVERNIGHT_GPU_COUNT`, `$OVERNIGHT_CPUS`, `$OVERNIGHT_JOB`, `$TMPDIR`")
        });
    }
}

/// Programs that wait for a person until the limit.
fn waits_for_people(r: &mut Reader<'_, '_>, text: &Script<'_>, command: &Command) {
    let program = command.program();
    let Some(first) = program.first() else { return };
    let has = |wanted: &str| program.iter().any(|word| word.text == wanted);
    let says = |wanted: &str| program.iter().any(|word| word.text.contains(wanted));
    let second = program.get(1).map_or("", |word| word.text.as_str());
    let hint = match command.name() {
        "jupyter" if matches!(second, "lab" | "notebook" | "server") => "`papermill in.ipynb out.ipynb`",
        "jupyter-lab" | "jupyter-notebook" => "`papermill in.ipynb out.ipynb`",
        "tensorboard" => "take it out; start it beside the job",
        "bash" | "sh" | "zsh" if has("-i") => {
            "take off `-i`; `setup: {conda: x}` or `setup: {shell: …}` sets up"
        }
        name if name.starts_with("python") && has("-i") => "take off `-i`",
        "ipython" if program.len() == 1 => "`python script.py`",
        "matlab" if has("-r") && !says("exit") && !says("quit") => "`matlab -batch \"…\"`",
        "ns-train" if !says("quit-on") => "`--viewer.quit-on-train-completion True`",
        _ => return,
    };
    let what = command.name().to_owned();
    text.word(r, first, |mark| {
        warning(73, mark, format!("`{what}` waits for a person until the limit")).hint(hint)
    });
}
