//! Lifting the quarantine of a device: whether that can be, the question, and the command. Pure.

use crate::model::{DeviceState, Now, Uuid};
use crate::protocol::{Command, GpuRow, GpuSelect, Snapshot};
use crate::tui::UiCommand;
use crate::tui::overlay::{Button, Clear, Overlay};
use crate::tui::ui::{Level, Ui};

/// The device under the cursor.
fn selected<'a>(ui: &Ui, snap: &'a Snapshot) -> Option<&'a GpuRow> {
    let gpu = ui.gpu.as_ref()?;
    snap.gpus.iter().find(|row| row.uuid == *gpu)
}

/// Why the quarantine of the device under the cursor cannot be lifted; `None` if it can.
pub(in crate::tui) fn refusal(ui: &Ui, snap: &Snapshot) -> Option<String> {
    if let Some(why) = ui.unable("clear") {
        return Some(why);
    }
    match selected(ui, snap) {
        None => Some("no GPU is selected".to_owned()),
        Some(GpuRow { state: DeviceState::Quarantined(_), .. }) => None,
        Some(row) => {
            Some(format!("cannot clear GPU {}: it is {}, not in quarantine", row.index, row.state.word()))
        }
    }
}

/// Asks whether the quarantine of the device under the cursor is to be lifted.
pub(in crate::tui) fn ask(ui: &mut Ui, snap: &Snapshot) {
    if let Some(reason) = refusal(ui, ui.shown(snap)) {
        ui.say(Level::Warning, reason, None);
        return;
    }
    if let Some(GpuRow { uuid, state: DeviceState::Quarantined(quarantine), .. }) =
        selected(ui, ui.shown(snap))
    {
        let (gpu, since, button) = (uuid.clone(), quarantine.since, Button::Keep);
        ui.overlay = Some(Overlay::Clear(Clear { gpu, since, button }));
    }
}

/// Lifts a quarantine, if it is still the one that was asked about.
pub(in crate::tui) fn clear(ui: &mut Ui, snap: &Snapshot, gpu: &Uuid, since: &Now) -> Vec<UiCommand> {
    let Some(row) = snap.gpus.iter().find(|row| row.uuid == *gpu) else {
        ui.say(Level::Warning, "that GPU is no longer there: nothing was cleared", None);
        return Vec::new();
    };
    let same = matches!(&row.state, DeviceState::Quarantined(quarantine) if quarantine.since == *since);
    if !same {
        let text = format!(
            "GPU {} changed meanwhile, it is {} now: nothing was cleared",
            row.index,
            row.state.word()
        );
        ui.say(Level::Warning, text, None);
        return Vec::new();
    }
    if let Some(why) = ui.unable("clear") {
        ui.say(Level::Warning, why, None);
        return Vec::new();
    }
    vec![UiCommand::Send { job: None, command: Command::Clear { gpu: GpuSelect::Uuid(gpu.clone()) } }]
}
