//! `docs/configuration.md`, made from the types of [`super::Config`]. A test compares.

use super::Config;
use serde_json::Value;
use std::fmt::Write;

/// The page.
pub fn markdown() -> String {
    let schema = schemars::schema_for!(Config).to_value();
    let defaults = serde_json::to_value(Config::default()).unwrap_or_default();
    let mut page = String::from(
        "# Configuration\n\n\
         `$XDG_CONFIG_HOME/overnight/config.toml` (usually `~/.config/overnight/config.toml`), or the file named by `--config`.\n\
         Every key is optional. An unknown key is an error that names its line and the nearest known key.\n\
         This page is made from the program's own types.\n\n\
         Folders: `--root` or `OVERNIGHT_ROOT`, else `root`, else `~/overnight`; `--state` or `OVERNIGHT_STATE`, else \
         `$XDG_STATE_HOME/overnight/<hostname>`. A root given by flag or variable alone implies its `.state`.\n\n\
         | key | default | what it does |\n|---|---|---|\n",
    );
    rows(&mut page, "", &schema, &schema, &defaults);
    page
}

fn rows(page: &mut String, prefix: &str, root: &Value, schema: &Value, defaults: &Value) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        let key = format!("{prefix}{name}");
        let target = resolve(root, property);
        let default = &defaults[name];
        if target.get("properties").is_some() {
            rows(page, &format!("{key}."), root, target, default);
            continue;
        }
        let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
        let default = match default {
            Value::Null => "none".to_owned(),
            Value::Object(map) if map.is_empty() => "none".to_owned(),
            other => format!("`{other}`"),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| `{key}` | {default} | {text} |");
    }
}

/// What a `$ref`, alone or in an `allOf`, points to.
fn resolve<'a>(root: &'a Value, property: &'a Value) -> &'a Value {
    property
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| root.pointer(reference.trim_start_matches('#')))
        .unwrap_or(property)
}
