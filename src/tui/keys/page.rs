//! `docs/keys.md`, written from the table.

use super::table::BASE;
use super::{Action, Binding, Mode, TABLE};
use std::fmt::Write as _;

/// The page.
pub fn page() -> String {
    let mut out = String::from(HEAD);
    let named = TABLE.iter().filter(|row| !row.id.is_empty() && row.action != Action::Panic);
    out.push_str("| action | keys | where | what it does |\n|---|---|---|---|\n");
    for row in named {
        let _ = writeln!(out, "| `{}` | {} | {} | {} |", row.id, keys(row), places(row), row.about);
    }
    out.push_str(FIXED);
    for row in TABLE.iter().filter(|row| row.id.is_empty()) {
        let _ = writeln!(out, "| {} | {} | {} |", keys(row), places(row), row.about);
    }
    out.push_str(FILTERS);
    out
}

fn keys(row: &Binding) -> String {
    let keys: Vec<String> =
        row.keys.split_whitespace().map(|key| format!("`{}`", key.replace('|', "\\|"))).collect();
    keys.join(" ")
}

fn places(row: &Binding) -> String {
    if Mode::ALL.iter().all(|mode| row.modes.has(*mode)) {
        return "always".to_owned();
    }
    if row.modes == BASE {
        return "all screens".to_owned();
    }
    let mut names: Vec<&str> =
        Mode::ALL.iter().filter(|mode| row.modes.has(**mode)).map(|mode| mode.name()).collect();
    names.dedup();
    names.join(", ")
}

const HEAD: &str = "\
# Keys

Generated from the table in `src/tui/keys/table.rs`; a test keeps it so. `?` shows the keys of a screen, `:` finds any action by its name.

An action's keys are set in `config.toml`; they take the place of the ones below:

```toml
[keys]
cancel = [\"x\", \"F9\"]
first  = [\"gg\", \"Home\"]
```

A key is a character, `F1` to `F12`, `Ctrl-D`, or one of `Enter Tab Shift-Tab Space Up Down Left Right Home End PgUp PgDn`; two letters are one key after
the other. Keys that terminals, tmux, screen or zellij take, Alt, Backspace and Delete cannot be bound, nor can `Esc`, `Ctrl-C` and `Ctrl-Z`, which mean the
same for everybody. An action without keys (`[]`) is still in the palette.

";

const FIXED: &str = "
In questions, lists, menus and text fields keys are the same for everybody:

| keys | where | what it does |
|---|---|---|
";

const FILTERS: &str = "
## Filters

`/` narrows the queue and the history while it is typed; `overnight ls --filter` takes the same. All words must match; `!` or `-` before one turns it round.

| written | lets through |
|---|---|
| `vit` `\"two words\"` `/re/` | id, name, user or state: a part of it, a beginning of the id, the whole state |
| `u:ana` `n:sweep` `p:vision` | user, name, project: a part, whatever the case; or `/re/`, a regular expression, in which capitals mean themselves |
| `s:run` | state, by its beginning: wait paus edit rent run stop out free done fail limit canc lost |
| `g:2` `g:>2` `g:<=4` `g:2..4` | GPUs asked for |
| `gpu:4` | holds the device of this index; comparisons too |
| `id:151` `id:>150` | number |
";

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_page_of_keys_is_what_the_table_says() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/keys.md");
        let text = page();
        if std::fs::read_to_string(&file).ok().as_ref() != Some(&text) {
            std::fs::write(&file, text).unwrap();
            panic!("docs/keys.md was out of date; it has been written anew: look at it and commit it");
        }
    }
}
