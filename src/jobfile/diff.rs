//! What differs between two specs, in the job file's words.

use super::show::to_json;
use crate::model::JobSpec;
use crate::protocol::FieldChange;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The fields in which two specs differ, secrets masked, by section and name.
pub fn changes(old: &JobSpec, new: &JobSpec) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    let (before, after) = (to_json(old), to_json(new));
    between("", Some(&before), Some(&after), &mut changes);
    // What is masked looks the same.
    for (name, value) in &new.work.env {
        let masked = super::is_secret_name(name);
        if masked && old.work.env.get(name).is_some_and(|old| old != value) {
            let (old, new) = (Some("•••".to_owned()), Some("another •••".to_owned()));
            changes.push(FieldChange { field: format!("work.env.{name}"), old, new });
        }
    }
    changes
}

fn between(path: &str, old: Option<&Value>, new: Option<&Value>, changes: &mut Vec<FieldChange>) {
    if old == new {
        return;
    }
    let empty = Map::new();
    let maps = match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => Some((old, new)),
        (Some(Value::Object(old)), None) => Some((old, &empty)),
        (None, Some(Value::Object(new))) => Some((&empty, new)),
        _ => None,
    };
    let Some((old, new)) = maps else {
        changes.push(FieldChange { field: path.to_owned(), old: old.map(text), new: new.map(text) });
        return;
    };
    let mut seen = BTreeSet::new();
    for name in new.keys().chain(old.keys()).filter(|name| seen.insert(name.as_str())) {
        let field = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        between(&field, old.get(name), new.get(name), changes);
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
