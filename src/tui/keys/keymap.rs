//! The keys as they are for this person: the table's, and what the configuration says instead.

use super::{Action, BASE, Binding, Chord, Mode, TABLE};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// An action and the keys it has here.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The table's row.
    pub binding: &'static Binding,
    /// Its keys.
    pub keys: &'a [Chord],
}

impl Row<'_> {
    /// The keys as help shows them.
    pub fn shown(&self) -> String {
        let keys: Vec<String> = self.keys.iter().map(ToString::to_string).collect();
        keys.join(" ")
    }

    /// The key of the key line; empty if there is none.
    pub fn first(&self) -> String {
        self.keys.first().map(ToString::to_string).unwrap_or_default()
    }
}

/// Which keys do what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keymap {
    /// One for each row of the table.
    keys: Vec<Vec<Chord>>,
}

impl Default for Keymap {
    fn default() -> Self {
        Self { keys: TABLE.iter().map(|binding| given(binding).collect()).collect() }
    }
}

impl Keymap {
    /// The table's keys, and what the configuration says instead: an action's name and its keys.
    ///
    /// What cannot be is left out and told, in words; the other keys stay as they are.
    pub fn with(overrides: &BTreeMap<String, Vec<String>>) -> (Self, Vec<String>) {
        let mut map = Self::default();
        let mut faults = Vec::new();
        for (id, keys) in overrides {
            let at = TABLE.iter().position(|binding| !id.is_empty() && binding.id == id);
            let Some(at) = at else {
                let meant = nearest(id).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                faults.push(format!("[keys] {id}: no such action{meant} docs/keys.md has them all"));
                continue;
            };
            let mut chords: Vec<Chord> = Vec::new();
            for key in keys {
                let chord = key.parse::<Chord>();
                let own = chord.as_ref().is_ok_and(|chord| given(&TABLE[at]).any(|given| given == *chord));
                let why = chord.as_ref().ok().filter(|_| !own).and_then(Chord::reserved);
                match (chord, why) {
                    (Ok(_), Some(why)) => {
                        let text = format!("[keys] {id}: `{key}` cannot be bound: {why}; choose another key");
                        faults.push(text);
                    }
                    (Ok(chord), None) => chords.push(chord),
                    (Err(error), _) => faults.push(format!("[keys] {id}: {error}")),
                }
            }
            // None of them can be had: then better the table's than none. `[]` is meant.
            if !chords.is_empty() || keys.is_empty() {
                map.keys[at] = chords;
            } else if let Some(fault) = faults.last_mut() {
                let stays = if TABLE[at].keys.is_empty() { "none" } else { TABLE[at].keys };
                let _ = write!(fault, "; until then: {stays}");
            }
        }
        faults.extend(map.conflicts());
        (map, faults)
    }

    /// Keys that would mean two things in one place; the row that comes first has them.
    pub fn conflicts(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (at, (one, keys)) in TABLE.iter().zip(&self.keys).enumerate() {
            for (other, others) in TABLE.iter().zip(&self.keys).skip(at + 1) {
                if !one.modes.meets(other.modes) {
                    continue;
                }
                for key in keys.iter().filter(|key| others.contains(key)) {
                    found.push(format!("[keys] {key} is both {} and {}", name(one), name(other)));
                }
            }
        }
        found
    }

    /// The rows of the table, with their keys.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        TABLE.iter().zip(&self.keys).map(|(binding, keys)| Row { binding, keys })
    }

    /// The rows of a mode.
    pub fn of(&self, mode: Mode) -> impl Iterator<Item = Row<'_>> {
        self.rows().filter(move |row| row.binding.modes.has(mode))
    }

    /// The first key of an action in a mode, for texts that name it.
    pub fn key(&self, mode: Mode, action: &Action) -> String {
        self.of(mode).find(|row| row.binding.action == *action).map(|row| row.first()).unwrap_or_default()
    }

    /// How an action is reached, for texts that name it: its first key, or its name in the palette where it has none.
    pub fn way(&self, action: &Action) -> String {
        let named = self.rows().find(|row| !row.binding.id.is_empty() && row.binding.action == *action);
        named.map_or_else(String::new, |row| match row.keys.first() {
            Some(key) => key.to_string(),
            None => format!(":{}", row.binding.id),
        })
    }

    /// Where a key that was pressed in vain does something, and what; places where something is typed do not count.
    pub fn elsewhere(&self, key: &str) -> Option<(&'static str, &'static str)> {
        let key = key.parse::<Chord>().ok()?;
        let row = self.rows().find(|row| row.binding.modes.meets(BASE) && row.keys.contains(&key))?;
        let place = Mode::ALL.iter().find(|mode| row.binding.modes.has(**mode))?;
        Some((place.name(), row.binding.about))
    }

    /// What a key means. Releases and repeats of modifiers mean nothing.
    pub fn action(&self, mode: Mode, prefix: Option<char>, event: KeyEvent) -> Option<Action> {
        if event.kind == KeyEventKind::Release || event.modifiers.contains(KeyModifiers::ALT) {
            return None;
        }
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        let find = |prefix| {
            let pressed = |row: &Row<'_>| row.keys.iter().any(|key: &Chord| key.is_pressed(prefix, &event));
            self.of(mode).find(pressed).map(|row| row.binding.action.clone())
        };
        let after = prefix.and_then(|first| find(Some(first)));
        if let Some(action) = after.or_else(|| find(None)) {
            return Some(action);
        }
        let KeyCode::Char(c) = event.code else { return None };
        if !control && self.of(mode).any(|row| row.keys.iter().any(|key| key.first == Some(c))) {
            return Some(Action::Prefix(c));
        }
        match (mode.is_text(), control) {
            (true, false) if !c.is_control() => Some(Action::Insert(c)),
            (true, _) => None,
            (false, true) => Some(Action::Unknown(format!("Ctrl-{}", c.to_uppercase()))),
            (false, false) => Some(Action::Unknown(c.to_string())),
        }
    }
}

/// The keys that the table gives an action.
fn given(binding: &Binding) -> impl Iterator<Item = Chord> {
    binding.keys.split_whitespace().filter_map(|key| key.parse().ok())
}

/// The action that was meant, if a few letters make the difference.
fn nearest(id: &str) -> Option<&'static str> {
    let known = TABLE.iter().map(|row| row.id).filter(|known| !known.is_empty());
    crate::jobfile::nearest(id, known)
}

fn name(binding: &Binding) -> String {
    if binding.id.is_empty() { format!("`{}`", binding.about) } else { binding.id.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_key_of_the_table_is_one_and_means_one_thing() {
        for binding in TABLE {
            for key in binding.keys.split_whitespace() {
                key.parse::<Chord>().unwrap();
            }
        }
        assert_eq!(Keymap::default().conflicts(), Vec::<String>::new());
    }

    #[test]
    fn every_name_is_given_once_and_every_row_has_words() {
        let named: Vec<&str> = TABLE.iter().map(|row| row.id).filter(|id| !id.is_empty()).collect();
        assert_eq!(named.iter().collect::<BTreeSet<_>>().len(), named.len());
        assert!(TABLE.iter().all(|row| !row.about.is_empty()));
    }

    #[test]
    fn keys_of_ones_own_take_the_place_of_the_tables() {
        let own = BTreeMap::from([("cancel".to_owned(), vec!["X".to_owned(), "F9".to_owned()])]);
        let (map, faults) = Keymap::with(&own);
        assert_eq!(faults, Vec::<String>::new());
        let press = |c| map.action(Mode::Queue, None, KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
        assert_eq!(press('X'), Some(Action::Cancel));
        assert_eq!(press('x'), Some(Action::Unknown("x".into())));
        assert_eq!(map.key(Mode::Queue, &Action::Cancel), "X");
    }

    #[test]
    fn the_keys_that_close_quit_and_suspend_are_nobodys() {
        let own = [("back", "Esc"), ("cancel", "Ctrl-C"), ("raise", "ctrl-z"), ("suspend", "Ctrl-Z")];
        let own = own.map(|(id, key)| (id.to_owned(), vec![key.to_owned()])).into();
        let (map, faults) = Keymap::with(&own);
        let told = [
            "[keys] back: `Esc` cannot be bound: it closes what is open, and does nothing else; \
             choose another key; until then: q F10",
            "[keys] cancel: `Ctrl-C` cannot be bound: it closes what is open or quits, and never touches a job; \
             choose another key; until then: x F9",
            "[keys] raise: `ctrl-z` cannot be bound: it suspends, as everywhere; \
             choose another key; until then: + = F7",
        ];
        assert_eq!(faults, told);
        let press = |code, modifiers| map.action(Mode::Queue, None, KeyEvent::new(code, modifiers));
        assert_eq!(press(KeyCode::Esc, KeyModifiers::NONE), Some(Action::Escape));
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Action::Interrupt));
        assert_eq!(press(KeyCode::Char('z'), KeyModifiers::CONTROL), Some(Action::Suspend));
        assert_eq!(press(KeyCode::Char('x'), KeyModifiers::NONE), Some(Action::Cancel));
    }

    #[test]
    fn what_cannot_be_bound_is_told() {
        let own = BTreeMap::from([
            ("cancle".to_owned(), vec!["X".to_owned()]),
            ("raise".to_owned(), vec!["Ctrl-B".to_owned(), "Hyper-x".to_owned()]),
            ("top".to_owned(), vec!["b".to_owned()]),
        ]);
        let (_, faults) = Keymap::with(&own);
        assert_eq!(faults.len(), 4, "{faults:#?}");
        assert!(faults[0].contains("cancle") && faults[3].contains("both top and bottom"), "{faults:#?}");
    }
}
