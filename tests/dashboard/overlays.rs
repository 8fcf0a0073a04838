//! What lies over the screen, and the keys that texts name.

use super::fixtures::{busy, empty, gpu};
use super::{Action, Keymap, Overlay, Person, Screen};
use overnight::model::{DeviceState, JobId, Span};
use overnight::protocol::{Connection, InboxState};
use overnight::tui::Level;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Somebody whose keys are others: an action and its key; an empty key is none.
fn rebound(mut person: Person, keys: &[(&str, &str)]) -> Person {
    let own = |(id, key): &(&str, &str)| {
        let keys = if key.is_empty() { Vec::new() } else { vec![(*key).to_owned()] };
        ((*id).to_owned(), keys)
    };
    let (map, faults) = Keymap::with(&keys.iter().map(own).collect::<BTreeMap<_, _>>());
    assert_eq!(faults, Vec::<String>::new());
    person.ui.keys = Arc::new(map);
    person
}

#[track_caller]
fn sees(person: &Person, text: &str) {
    assert!(person.sees().contains(text), "{text}:\n{}", person.sees());
}

#[test]
fn what_is_said_names_the_keys_that_are_bound() {
    let own = [("cancel", "F12"), ("pause", ""), ("search", "F11"), ("edit-file", "W"), ("fix", "V")];
    let own = [&own[..], &[("inbox", "F5"), ("group", "F3"), ("edit", "Y"), ("open", "L")]].concat();
    let mut person = rebound(Person::at(busy(), (120, 40)), &own);
    let pause = |person: &mut Person| person.does(Action::Pause);
    pause(person.on(142));
    assert_eq!(person.message(), "running jobs cannot be paused; F12 cancels");
    person.on(148).press("t");
    assert_eq!(person.message(), "cannot move #148: paused jobs have no place in line; :pause resumes");
    person.does(Action::Fix);
    assert_eq!(person.message(), "F5 shows the files of the inbox; V mends one");
    person.does(Action::EditFile);
    assert_eq!(person.message(), "F5 shows the files of the inbox; W edits one");
    person.press("l n");
    assert_eq!(person.message(), "nothing is searched for: F11 searches");
    person.press("Esc q F5");
    sees(&person, "V mends it in place");
    sees(&person, "[F5]Inbox");
    person.press("L");
    assert!(person.message().starts_with("W edits the file"), "{}", person.message());
    if let InboxState::Refused { diagnostics } = &mut person.snap.inbox[0].state {
        diagnostics[0].fix = None;
    }
    person.press("V");
    assert!(person.message().ends_with("W edits the file where it lies"), "{}", person.message());
    person.press("Down W");
    assert!(person.message().contains("Y in the queue edits"), "{}", person.message());
    sees(&person, "L opens");
}

#[test]
fn where_there_is_nothing_to_show_the_keys_are_those_that_are_bound() {
    let own =
        [("help", "F12"), ("settings", ""), ("back", "Q"), ("new", "N"), ("mine", "F11"), ("open", "L")];
    let own = [&own[..], &[("history", "F9"), ("cancel", "X"), ("start-scheduler", "V")]].concat();
    let person = rebound(Person::at(empty(), (80, 24)), &own);
    sees(&person, "press  N  to start");
    sees(&person, "F12 help    :settings settings (theme)    Q quit");
    let mut person = rebound(Person::at(busy(), (80, 24)), &own);
    let history = std::mem::take(&mut person.snap.history);
    person.snap.jobs.retain(|row| row.user != "me");
    (person.ui.me, person.ui.mine) = ("me".into(), true);
    sees(&person, "F11 shows all.");
    (person.snap.history, person.ui.mine) = (history, false);
    person.snap.jobs.clear();
    sees(&person, "F9 shows what has run.");
    person.ui.can_start = true;
    person.ui.connection = Connection::Lost { why: "no scheduler".into(), retry_in: Span(0) };
    sees(&person, "V: start it");
    (person.ui.known, person.ui.retry_at) = (false, 1);
    sees(&person, "L starts it.  It is tried again by itself.  Q quits.");
}

#[test]
fn the_message_row_offers_only_a_key_that_follows_it() {
    let mut person = rebound(Person::at(busy(), (120, 40)), &[("open", "L")]);
    person.ui.say(Level::Error, "#144 failed", Some(JobId(144)));
    sees(&person, "L: open");
    person.press("1 l");
    person.ui.say(Level::Error, "#144 failed", Some(JobId(144)));
    assert!(!person.sees().contains("L: open"), "no key opens anything in a log: {}", person.sees());
    assert_eq!(person.ui.screen, Screen::Queue);
}

#[test]
fn q_closes_like_esc_wherever_no_text_is_typed() {
    for open in ["s", "y", "U", ",", "C", "x", "r", "v s"] {
        let at = || {
            let mut person = Person::at(busy(), (80, 24));
            person.on(151).press(if open == "r" { "4" } else { "1" });
            person
        };
        let (mut with_q, mut with_esc) = (at(), at());
        for (person, key) in [(&mut with_q, "q"), (&mut with_esc, "Esc")] {
            person.press(open);
            assert!(person.ui.overlay.is_some(), "{open}");
            assert_eq!(person.press(key), [], "{open} {key}");
            assert!(person.ui.overlay.is_none(), "{open} {key}");
        }
        assert_eq!(with_q.sees(), with_esc.sees(), "{open}");
    }
    // What is typed has it as a letter.
    for open in ["?", ":", "n", "E", "/"] {
        let mut person = Person::at(busy(), (80, 24));
        person.on(147).press(open);
        person.press("q");
        assert!(person.ui.overlay.is_some() || person.ui.typing, "{open}");
    }
}

/// An order or something to copy that is called by `q` could not be chosen.
#[test]
fn no_menu_has_a_choice_that_its_closing_key_takes() {
    let mut person = Person::at(busy(), (80, 24));
    for screen in ["1 s", "4 s"] {
        person.press(screen);
        let Some(Overlay::Menu(menu)) = &person.ui.overlay else { panic!("{screen}") };
        assert!(menu.items.iter().all(|item| item.letter != 'q'), "{screen}");
        person.press("Esc");
    }
}

/// A terminal that loses colours and reversal still shows where one is.
#[test]
fn the_row_under_the_cursor_and_the_button_with_the_focus_have_a_sign() {
    let mut person = Person::at(busy(), (80, 24));
    let places = [
        (", j", ">characters"),
        ("C j", ">[x] NAME"),
        ("s Down", ">i  id"),
        ("y Down", ">o  output path"),
        ("x", ">[ Keep it ]"),
        ("x Tab", ">[y] Cancel job"),
        ("x Tab Tab", ">[!] now"),
    ];
    for (keys, sign) in places {
        person.on(151).press(keys);
        let lines = person.lines();
        let boxed: Vec<Vec<char>> = lines.iter().map(|line| line.chars().collect()).collect();
        let (left, row) = lines
            .iter()
            .enumerate()
            .find_map(|(row, line)| Some((line[..line.find(sign)?].rfind('|')?, row)))
            .unwrap_or_else(|| panic!("{keys}: no {sign}\n{}", person.sees()));
        let left = lines[row][..left].chars().count();
        let right = left + 1 + boxed[row][left + 1..].iter().position(|c| *c == '|').unwrap();
        let inside = |row: usize| boxed[row][left] == '|' && boxed[row][right] == '|';
        assert!(inside(row - 1) || boxed[row - 1][left] == '+', "{keys}:\n{}", person.sees());
        assert!(inside(row + 1) || boxed[row + 1][left] == '+', "{keys}:\n{}", person.sees());
        let signs = boxed.iter().filter(|line| line[left..left + 2] == ['|', '>']).count();
        assert_eq!(signs, usize::from(!keys.starts_with('x')), "{keys}:\n{}", person.sees());
        person.press("Esc");
    }
}

#[test]
fn the_map_of_many_devices_tells_which_one_the_cursor_is_on() {
    let mut snap = busy();
    snap.gpus = (0..40).map(|index| gpu(index, DeviceState::Free, Some(0), &[])).collect();
    let mut person = Person::at(snap, (120, 40));
    person.press("Tab g g j j");
    let map = |person: &Person, text: &str| person.lines().iter().any(|line| line.starts_with(text));
    assert!(map(&person, "|  2>") && map(&person, "| 32 "), "{}", person.sees());
    person.press("G");
    assert!(map(&person, "|  0 ") && map(&person, "| 39>"), "{}", person.sees());
}

#[test]
fn the_focus_of_a_question_goes_both_ways() {
    let mut person = Person::at(busy(), (80, 24));
    person.on(151).press("x");
    for (key, focus) in [
        ("Left", ">[!] now"),
        ("Left", ">[y] Cancel"),
        ("Tab", ">[!] now"),
        ("Right", ">[ Keep"),
        ("Shift-Tab", ">[!] now"),
        ("Shift-Tab", ">[y] Cancel"),
        ("Shift-Tab", ">[ Keep"),
    ] {
        person.press(key);
        sees(&person, focus);
    }
}

#[test]
fn messages_are_paged_and_tell_how_many_there_are_at_most() {
    let mut person = Person::at(busy(), (80, 24));
    for n in 0..250 {
        person.ui.say(Level::Info, format!("message {n}."), None);
    }
    person.does(Action::Messages);
    sees(&person, "the newest 200 are kept");
    let notices = person.snap.notices.len();
    // Twenty rows, less two of the box.
    let top = |person: &Person| {
        let line = person.lines().into_iter().find(|line| line.contains("message "));
        let line = line.unwrap_or_else(|| panic!("{}", person.sees()));
        line.split("message ").nth(1).unwrap().split('.').next().unwrap().parse::<usize>().unwrap()
    };
    person.press("g g");
    let newest = if notices < 18 { 249 } else { 0 };
    assert_eq!(top(&person), newest);
    person.press("G");
    assert_eq!(top(&person), 50 + 17, "the oldest is at the bottom: {}", person.sees());
    person.press("k");
    assert_eq!(top(&person), 50 + 18);
    for (key, by) in [("PgUp", 18), ("C-u", 9), ("C-d", -9), ("PgDn", -18)] {
        let before = top(&person);
        person.press(key);
        assert_eq!(top(&person) as isize, before as isize + by, "{key}");
    }
    person.press("Home");
    assert_eq!(top(&person), newest);
    person.press("End");
    assert_eq!(top(&person), 50 + 17);
    person.press("q");
    assert!(person.ui.overlay.is_none());
}

#[test]
fn the_keys_that_page_do_so_in_every_list_of_settings() {
    let mut person = Person::at(busy(), (80, 24));
    person.press(", G");
    sees(&person, ">mouse");
    person.press("g g");
    sees(&person, ">theme");
    person.press("Esc C End");
    let last = person.ui.tables.queue.columns.len() - 1;
    assert!(matches!(&person.ui.overlay, Some(Overlay::Columns(columns)) if columns.at == last));
    person.press("Home");
    assert!(matches!(&person.ui.overlay, Some(Overlay::Columns(columns)) if columns.at == 0));
}

#[test]
fn settings_name_all_that_config_toml_keeps_and_what_it_does_not() {
    let mut person = Person::at(busy(), (80, 24));
    person.press(",");
    // The names are those of the file.
    let kept = overnight::config::UiConfig { ascii: Some(true), ..overnight::config::UiConfig::default() };
    let kept = toml::to_string(&kept).unwrap();
    for name in ["ascii", "low_bandwidth", "mouse"] {
        assert!(kept.contains(&format!("{name} = ")), "{kept}");
        sees(&person, name);
    }
    sees(&person, "config.toml: theme");
    sees(&person, "Refresh is not kept.");
}

/// Nothing has a cursor on the meter's screen: there Enter is for the message row.
#[test]
fn enter_follows_the_message_where_no_row_can_be_opened() {
    let mut person = Person::at(busy(), (80, 24));
    person.press("3 Enter");
    assert!(person.ui.opened.is_none());
    person.ui.say(Level::Error, "#144 failed", Some(JobId(144)));
    sees(&person, "Enter: open");
    person.press("Enter");
    assert_eq!(person.ui.opened.map(|opened| opened.job), Some(JobId(144)));
}

#[test]
fn something_turns_while_a_log_is_searched_only_if_that_is_wanted() {
    let mut person = Person::at(busy(), (120, 40));
    person.on(144).press("l / s t e p Enter");
    assert!(person.ui.log.find.is_some(), "it is being searched");
    let title = |person: &Person| person.lines().into_iter().find(|line| line.contains("/step 0%")).unwrap();
    let still = title(&person);
    assert!(still.contains("/step 0%  wrap off"), "{still}");
    person.ui.spinner = true;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let title = title(&person);
        let sign = title.split("/step 0% ").nth(1).unwrap().chars().next().unwrap();
        seen.push(sign);
        person.later(1000);
    }
    seen.sort_unstable();
    assert_eq!(seen, ['-', '/', '\\', '|']);
    // Nothing turns, and the screen is not looked at, once it is found.
    person.ui.log.find = None;
    assert!(!person.sees().contains("0%"));
}

#[test]
fn what_turns_is_looked_at_once_a_second_and_not_at_all_without_a_search() {
    let mut person = Person::at(empty(), (120, 40));
    let due = |person: &Person| super::next_deadline(&person.ui, &person.snap, &person.ui.now, 1000);
    let quiet = due(&person);
    assert!(quiet.is_none_or(|ms| ms > 1000), "{quiet:?}");
    person.ui.spinner = true;
    assert_eq!(due(&person), quiet);
    person.ui.log.only = Some(overnight::tui::Pattern::new("step").unwrap());
    person.ui.log.window.sifting = true;
    assert!(due(&person).is_some_and(|ms| ms <= 1000));
    // Few bytes: nothing turns.
    person.ui.thrift = true;
    assert_eq!(due(&person), quiet);
    (person.ui.thrift, person.ui.spinner) = (false, false);
    assert_eq!(due(&person), quiet);
}
