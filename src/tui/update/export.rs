//! The history as a table for other programs.

use crate::protocol::{JobRow, Snapshot};
use crate::tui::UiCommand;
use crate::tui::look::text::{between, state};
use crate::tui::rows;
use crate::tui::ui::{Level, Ui};
use jiff::Timestamp;

const HEAD: &str = "id,name,user,project,result,gpus,priority,submitted,started,ended,waited_s,ran_s,gpu_hours,\
                    peak_memory_bytes,mean_utilisation_percent\n";

/// The history as it is shown, its filter and its order included, for a new file in the current directory.
pub(super) fn history(ui: &mut Ui, snap: &Snapshot) -> Vec<UiCommand> {
    let rows = rows::history(ui, ui.shown(snap));
    let count = rows.len();
    if count == 0 {
        ui.say(Level::Warning, "no history is shown: nothing to write", None);
        return Vec::new();
    }
    let mut text = HEAD.to_owned();
    for row in rows {
        text.push_str(&line(ui, row));
    }
    let at = Timestamp::from_millisecond(ui.now.wall_ms).unwrap_or_default().to_zoned_datetime(ui.tz.clone());
    let file = format!("overnight-history-{}.csv", at.strftime("%Y-%m-%d-%H%M%S"));
    vec![UiCommand::Write { file, text, what: format!("{count} jobs of the history") }]
}

fn line(ui: &Ui, row: &JobRow) -> String {
    let time = |at: Option<i64>| {
        at.and_then(|ms| Timestamp::from_millisecond(ms).ok()).map_or_else(String::new, |at| at.to_string())
    };
    let rented = row.rented_at.or(row.done_at);
    let waited = rented.map_or_else(String::new, |at| between(row.submitted_at, at).as_secs().to_string());
    let ran = row
        .started_at
        .map_or_else(String::new, |from| between(from, row.ended_at.unwrap_or(from)).as_secs().to_string());
    let cells = [
        row.id.0.to_string(),
        quoted(&row.name),
        quoted(&row.user),
        quoted(row.project.as_deref().unwrap_or_default()),
        state(row).0.to_owned(),
        row.gpus.to_string(),
        row.priority.to_string(),
        time(Some(row.submitted_at)),
        time(row.started_at),
        // What never held anything ended when it was done.
        time(row.ended_at.or(row.done_at)),
        waited,
        ran,
        format!("{:.4}", row.gpu_ms(&ui.now) as f64 / 3_600_000.0),
        row.peak_memory.map_or_else(String::new, |bytes| bytes.0.to_string()),
        row.mean_utilisation.map_or_else(String::new, |percent| percent.to_string()),
    ];
    cells.join(",") + "\n"
}

/// As RFC 4180 has it, wherever a text could be taken for more than one cell.
fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) || text.starts_with(' ') {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
