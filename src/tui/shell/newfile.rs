//! Writes a file that is not there yet.

use crate::tui::ui::Level;
use std::io::Write as _;
use std::path::PathBuf;

/// Writes it in the current directory; says where it is, or why it is not. One that is there stays as it is.
pub(super) fn write(file: &str, text: &str, what: &str) -> (Level, String) {
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).open(file);
    let place = std::env::current_dir().map_or_else(|_| PathBuf::from(file), |dir| dir.join(file));
    let place = place.display();
    match opened.and_then(|mut out| out.write_all(text.as_bytes())) {
        Ok(()) => (Level::Info, format!("{file}: {what}, written to {place}")),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            (Level::Error, format!("{file} is there already: nothing was written; move it away ({place})"))
        }
        Err(error) => (Level::Error, format!("{place} cannot be written: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays_and_what_cannot_be_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.csv");
        let name = file.to_str().unwrap();
        assert_eq!(write(name, "1\n", "one").0, Level::Info);
        let (level, why) = write(name, "2\n", "two");
        assert!(level == Level::Error && why.contains("nothing was written"), "{why}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "1\n");
        let (level, why) = write(dir.path().join("none/a.csv").to_str().unwrap(), "", "three");
        assert!(level == Level::Error && why.contains("cannot be written"), "{why}");
    }
}
