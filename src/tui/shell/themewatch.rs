//! Notices that a theme was saved. A thread watches the directory that themes are read from and says so once the editor has
//! come to rest, whether it writes in place or renames a new file over the old one.

use crate::clock;
use crate::tui::look::canvas::Glyphs;
use crate::tui::look::colour::Depth;
use crate::tui::look::theme::{self, Theme, ThemeError};
use crate::tui::shell::feed::FeedEvent;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Silence after which a save is over.
const QUIET: Duration = Duration::from_millis(100);
/// A directory that never comes to rest is looked at all the same.
const PATIENCE_MS: u64 = 1_000;

/// The theme that is wished for, however often its file is broken in between.
#[derive(Debug, Clone)]
pub(in crate::tui) struct Wanted {
    /// Its name, or its path.
    pub(in crate::tui) name: String,
    /// The user's own themes.
    pub(in crate::tui) dir: Option<PathBuf>,
    /// How many colours.
    pub(in crate::tui) depth: Depth,
    /// The characters, unless the theme wants others.
    pub(in crate::tui) glyphs: Glyphs,
    /// It could not be used when it was read last.
    pub(in crate::tui) broken: bool,
}

impl Wanted {
    /// Reads it.
    pub(in crate::tui) fn load(&self) -> Result<Theme, ThemeError> {
        theme::load(&self.name, self.dir.as_deref(), self.depth)
    }

    /// Where its file may lie: of a theme named by its path, beside it; else among the user's own.
    fn home(&self) -> Option<PathBuf> {
        if !theme::is_path(&self.name) {
            return self.dir.clone();
        }
        let parent = Path::new(&self.name).parent()?;
        Some(if parent.as_os_str().is_empty() { PathBuf::from(".") } else { parent.to_owned() })
    }

    /// Starts the thread. Without it themes stay as they are, and nothing else is lost: that it cannot watch is no failure.
    pub(in crate::tui) fn watch(&self, events: &Sender<FeedEvent>) -> std::io::Result<()> {
        // Events come with absolute paths.
        let Some(Ok(home)) = self.home().map(std::path::absolute) else { return Ok(()) };
        let (hints, hinted) = channel();
        let Some(watch) = Watch::start(home, &hints) else { return Ok(()) };
        let events = events.clone();
        std::thread::Builder::new().name("themes".into()).spawn(move || watch.run(&hinted, &events))?;
        Ok(())
    }
}

/// The directory, and the one it is in: it may be made, moved and made again while the dashboard is open.
struct Watch {
    home: PathBuf,
    watcher: RecommendedWatcher,
}

/// What a change means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hint {
    /// A theme's file is another now.
    Theme,
    /// The directory itself came or went.
    Home,
}

impl Watch {
    fn start(home: PathBuf, hints: &Sender<Hint>) -> Option<Self> {
        let hints = hints.clone();
        let place = home.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if let Some(hint) = event.ok().and_then(|event| hint(&event, &place)) {
                // The thread is gone only if the dashboard ends.
                let _ended = hints.send(hint);
            }
        });
        let mut watch = Self { home, watcher: watcher.ok()? };
        let parent = watch.home.parent().map(Path::to_owned);
        let above =
            parent.is_some_and(|parent| watch.watcher.watch(&parent, RecursiveMode::NonRecursive).is_ok());
        (watch.arm() || above).then_some(watch)
    }

    fn arm(&mut self) -> bool {
        self.watcher.watch(&self.home, RecursiveMode::NonRecursive).is_ok()
    }

    fn run(mut self, hinted: &Receiver<Hint>, events: &Sender<FeedEvent>) {
        while let Ok(first) = hinted.recv() {
            let since = clock::monotonic().0;
            let mut moved = first == Hint::Home;
            while clock::monotonic().0.saturating_sub(since) < PATIENCE_MS {
                match hinted.recv_timeout(QUIET) {
                    Ok(hint) => moved |= hint == Hint::Home,
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
            if moved {
                // What the old watch stands for may be a directory that has another name by now.
                let _gone = self.watcher.unwatch(&self.home);
                self.arm();
            }
            if events.send(FeedEvent::ThemeChanged).is_err() {
                return;
            }
        }
    }
}

fn hint(event: &notify::Event, home: &Path) -> Option<Hint> {
    if matches!(event.kind, EventKind::Access(_)) {
        return None;
    }
    if event.need_rescan() || event.paths.iter().any(|path| path == home) {
        return Some(Hint::Home);
    }
    let theme =
        |path: &PathBuf| path.parent() == Some(home) && path.extension().is_some_and(|ext| ext == "toml");
    event.paths.iter().any(theme).then_some(Hint::Theme)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long enough for a loaded machine; only reached when something is wrong.
    const TIMEOUT: Duration = Duration::from_secs(20);

    fn wanted(dir: &Path) -> (Wanted, Receiver<FeedEvent>) {
        let wanted = Wanted {
            name: "mine".into(),
            dir: Some(dir.to_owned()),
            depth: Depth::True,
            glyphs: Glyphs::Unicode,
            broken: false,
        };
        let (events, arrives) = channel();
        wanted.watch(&events).unwrap();
        (wanted, arrives)
    }

    fn told(arrives: &Receiver<FeedEvent>) {
        assert!(matches!(arrives.recv_timeout(TIMEOUT).unwrap(), FeedEvent::ThemeChanged));
    }

    /// Waits until the theme is as it was saved last: one save may be told as two.
    fn until(wanted: &Wanted, arrives: &Receiver<FeedEvent>, about: &str) {
        loop {
            told(arrives);
            if wanted.load().is_ok_and(|theme| theme.about == about) {
                return;
            }
        }
    }

    fn text(about: &str) -> String {
        format!("about = \"{about}\"\n")
    }

    #[test]
    fn a_save_in_place_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.toml");
        std::fs::write(&path, text("old")).unwrap();
        let (wanted, arrives) = wanted(dir.path());
        std::fs::write(&path, text("new")).unwrap();
        until(&wanted, &arrives, "new");
    }

    #[test]
    fn an_editor_that_renames_is_told_and_its_own_files_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.toml");
        std::fs::write(&path, text("old")).unwrap();
        let (wanted, arrives) = wanted(dir.path());
        // As vim does: a swap file, the old one out of the way, the new one in its place.
        std::fs::write(dir.path().join(".mine.toml.swp"), "x").unwrap();
        std::fs::write(dir.path().join("4913"), "x").unwrap();
        assert!(arrives.recv_timeout(3 * QUIET).is_err(), "files that are no themes were told of");
        std::fs::write(dir.path().join("mine.toml~new"), text("new")).unwrap();
        std::fs::rename(dir.path().join("mine.toml~new"), &path).unwrap();
        until(&wanted, &arrives, "new");
    }

    #[test]
    fn many_writes_of_one_save_are_told_together() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.toml");
        let (wanted, arrives) = wanted(dir.path());
        for step in 0..200 {
            std::fs::write(&path, text(&step.to_string())).unwrap();
        }
        until(&wanted, &arrives, "199");
        let more = std::iter::from_fn(|| arrives.recv_timeout(3 * QUIET).ok()).count();
        assert!(more < 20, "200 writes were told {more} times and more");
    }

    #[test]
    fn a_directory_that_comes_later_is_watched_too() {
        let dir = tempfile::tempdir().unwrap();
        let themes = dir.path().join("themes");
        let (wanted, arrives) = wanted(&themes);
        std::fs::create_dir(&themes).unwrap();
        told(&arrives);
        std::fs::write(themes.join("mine.toml"), text("first")).unwrap();
        until(&wanted, &arrives, "first");
        std::fs::remove_dir_all(&themes).unwrap();
        told(&arrives);
    }

    #[test]
    fn nothing_to_watch_is_no_failure() {
        let (events, _arrives) = channel();
        let nowhere = Wanted {
            name: "auto".into(),
            dir: None,
            depth: Depth::True,
            glyphs: Glyphs::Unicode,
            broken: false,
        };
        nowhere.watch(&events).unwrap();
        Wanted { dir: Some("/nonexistent/overnight/themes".into()), ..nowhere }.watch(&events).unwrap();
    }

    #[test]
    fn a_theme_by_path_is_watched_where_it_lies() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("other.toml");
        std::fs::write(&path, text("old")).unwrap();
        let wanted = Wanted {
            name: path.display().to_string(),
            dir: None,
            depth: Depth::True,
            glyphs: Glyphs::Unicode,
            broken: false,
        };
        let (events, arrives) = channel();
        wanted.watch(&events).unwrap();
        std::fs::write(&path, text("new")).unwrap();
        until(&wanted, &arrives, "new");
    }
}
