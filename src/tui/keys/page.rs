//! `docs/keys.md`, written from the table.

use super::table::BASE;
use super::{Action, Binding, Mode, TABLE};
use crate::tui::filter;
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
    let filter = TABLE.iter().find(|row| row.action == Action::Filter);
    let (key, places) = filter.map(|row| (keys(row), places(row))).unwrap_or_default();
    let _ = write!(out, "\n## Filters\n\n{key} narrows a list while it is typed: {places}.{FILTERS}");
    out.push_str(&filter::page());
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

const FILTERS: &str = " `overnight ls --filter` takes what is for jobs.

All words must match; `!` or `-` before one turns it round. A word without a field (`vit`, `\"two words\"`, `/re/`) is a part of a name or a user, the beginning
of a number, or a whole state. Texts match in part, whatever the case; `/re/` is a regular expression, in which capitals mean themselves. Numbers take `4`,
`>2`, `>=2`, `<4`, `<=4` and `2..4`.
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
