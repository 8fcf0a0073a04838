//! Themes on the screen and on the command line: every theme at every depth over whole screens, and `overnight theme`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/fixtures.rs"]
mod fixtures;

use fixtures::{busy, empty, many};
use overnight::cli::{self, Exit, Invocation, Io, Setup};
use overnight::config::{Config, Environment, Paths, ThemeSetting};
use overnight::protocol::Snapshot;
use overnight::tui::{BUNDLED, Depth, Glyphs, Role, Screen, Screenful, Theme, Ui, load, paint};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use std::path::Path;
use unicode_width::UnicodeWidthChar;

const DEPTHS: [Depth; 4] = [Depth::Mono, Depth::C16, Depth::C256, Depth::True];

fn screen(ui: &Ui, snap: &Snapshot, theme: &Theme) -> Buffer {
    let mut buf = Buffer::empty(Rect::new(0, 0, ui.size.0, ui.size.1));
    paint(&mut buf, ui, snap, theme);
    buf
}

fn rows(buf: &Buffer) -> Vec<String> {
    let area = *buf.area();
    (0..area.height).map(|y| (0..area.width).map(|x| buf[(x, y)].symbol()).collect()).collect()
}

#[test]
fn a_theme_changes_looks_and_never_words() {
    for size in [(60, 12), (80, 24), (120, 40), (200, 50)] {
        for snap in [busy(), empty(), many()] {
            let ui = fixtures::ui(&snap, size, Glyphs::Ascii);
            for depth in DEPTHS {
                // Where colours are few the level of a bar is told by its fill.
                let words = rows(&screen(&ui, &snap, &Theme::auto(depth)));
                for (name, _) in BUNDLED {
                    let theme = load(name, None, depth).unwrap();
                    // The header says the theme's name; the view was made with another one.
                    assert_eq!(rows(&screen(&ui, &snap, &theme)), words, "{name} {depth:?} {size:?}");
                }
            }
        }
    }
}

#[test]
fn every_cell_has_a_look_that_the_theme_gives() {
    let snap = busy();
    let ui = fixtures::ui(&snap, (200, 50), Glyphs::Unicode);
    for (name, _) in BUNDLED {
        for depth in DEPTHS {
            let theme = load(name, None, depth).unwrap();
            let known: Vec<Color> = Role::ALL
                .iter()
                .flat_map(|role| [theme.style(*role).fg, theme.style(*role).bg])
                .flatten()
                .chain([Color::Reset])
                .collect();
            for cell in &screen(&ui, &snap, &theme).content {
                assert!(known.contains(&cell.fg) && known.contains(&cell.bg), "{name} {depth:?}: {cell:?}");
            }
        }
    }
}

/// The bytes of a first frame.
fn bytes(theme: &Theme) -> String {
    let snap = busy();
    let ui = fixtures::ui(&snap, (80, 24), Glyphs::Unicode);
    let mut out = Screenful::new(Vec::new(), (80, 24));
    out.draw(&ui, &snap, theme).unwrap();
    String::from_utf8(out.out().clone()).unwrap()
}

/// The numbers of every sequence that sets a look.
fn looks(bytes: &str) -> Vec<Vec<u32>> {
    let sequences = bytes.split("\x1b[").skip(1).filter_map(|sequence| sequence.split_once('m'));
    sequences
        .filter(|(codes, _)| codes.chars().all(|c| c.is_ascii_digit() || c == ';'))
        .map(|(codes, _)| codes.split(';').map(|code| code.parse().unwrap_or(0)).collect())
        .collect()
}

#[test]
fn a_terminal_gets_no_more_colours_than_it_has() {
    for (name, _) in BUNDLED {
        let codes = |depth| looks(&bytes(&load(name, None, depth).unwrap()));
        let mono = codes(Depth::Mono);
        assert!(mono.iter().flatten().all(|code| *code < 30), "{name}: a colour where there is none");
        assert!(mono.iter().any(|codes| codes.contains(&7)), "{name}: the cursor's row is not reversed");
        let few = codes(Depth::C16);
        assert!(
            few.iter().flatten().all(|code| !matches!(code, 38 | 48 | 40..=47 | 100..=107)),
            "{name}: {few:?}"
        );
        assert!(few.iter().any(|codes| codes.contains(&7)), "{name}: the cursor's row is not reversed");
        let many = codes(Depth::C256);
        let true_colour = |codes: &Vec<u32>| codes.windows(2).any(|pair| matches!(pair, [38 | 48, 2]));
        assert!(!many.iter().any(true_colour), "{name}: 24 bits where there are 256 colours");
    }
}

#[test]
fn states_are_words_so_that_greys_tell_them_apart() {
    let snap = busy();
    let ui = fixtures::ui(&snap, (80, 24), Glyphs::Unicode);
    let seen = rows(&screen(&ui, &snap, &Theme::auto(Depth::Mono)));
    for (id, word) in
        [("142", "RUN"), ("145", "OUT"), ("146", "RENT"), ("147", "WAIT"), ("148", "PAUS"), ("144", "RUN")]
    {
        let row = seen.iter().find(|row| row.contains(&format!(" {id} "))).unwrap();
        assert!(row.split_whitespace().any(|part| part == word), "{id} {word}: {row}");
    }
}

/// A character that a terminal set for Chinese, Japanese or Korean makes two columns wide, or that stands for an emoji.
fn shears(c: char) -> bool {
    c == '\u{FE0F}' || c.width() != c.width_cjk() || ('\u{1F000}'..='\u{1FAFF}').contains(&c)
}

#[test]
fn no_character_in_a_table_shears_its_columns() {
    for (name, size) in [("auto", (80, 24)), ("mono", (120, 40))] {
        let theme = load(name, None, Depth::C256).unwrap();
        let snap = busy();
        for which in [Screen::Queue, Screen::History, Screen::Inbox] {
            let mut ui = fixtures::ui(&snap, size, Glyphs::Unicode);
            ui.screen = which;
            let ids = [" 142 ", " 144 ", " 147 ", " 148 ", " 139 "];
            for row in rows(&screen(&ui, &snap, &theme)) {
                // Bars and the lines of boxes are drawings; rows of tables are what lies between.
                for cell in row.split('│').filter(|cell| ids.iter().any(|id| cell.contains(id))) {
                    let table = !cell.contains('[');
                    assert!(!table || !cell.chars().any(shears), "{which:?}: {cell}");
                }
            }
        }
    }
}

#[test]
fn the_blocks_set_is_what_old_fonts_have() {
    let snap = busy();
    let theme = load("auto", None, Depth::C256).unwrap();
    let count = |glyphs| {
        let buf = screen(&fixtures::ui(&snap, (200, 50), glyphs), &snap, &theme);
        let symbols: Vec<char> = buf.content.iter().filter_map(|cell| cell.symbol().chars().next()).collect();
        let eighths = symbols.iter().filter(|c| matches!(c, '▏' | '▎' | '▍' | '▋' | '▊' | '▉')).count();
        (eighths, symbols.iter().filter(|c| **c == '█').count())
    };
    let (eighths, whole) = count(Glyphs::Blocks);
    assert!(eighths == 0 && whole > 0, "{eighths} {whole}");
    assert!(count(Glyphs::Unicode).0 > 0);
    assert_eq!(count(Glyphs::Ascii), (0, 0));
}

#[test]
fn where_colours_are_few_a_bar_tells_its_level_by_its_fill() {
    let fills = |depth, glyphs| {
        let snap = busy();
        let theme = load("auto", None, depth).unwrap();
        let rows = rows(&screen(&fixtures::ui(&snap, (80, 24), glyphs), &snap, &theme));
        let fill = |n: &str| {
            let row = rows.iter().find_map(|row| row.split_once(&format!("{n} ["))).unwrap();
            row.1.chars().next().unwrap()
        };
        [fill("0"), fill("2"), fill("4")]
    };
    for glyphs in Glyphs::ALL {
        for depth in [Depth::Mono, Depth::C16] {
            assert_eq!(fills(depth, glyphs), ['#', '=', '-'], "93%, 66%, 21%");
        }
    }
    assert_eq!(fills(Depth::C256, Glyphs::Ascii), ['#'; 3]);
    assert_eq!(fills(Depth::True, Glyphs::Unicode), ['█'; 3]);
}

#[test]
fn a_title_in_a_line_is_not_dimmed_by_the_line() {
    let snap = busy();
    let theme = load("mono", None, Depth::Mono).unwrap();
    let buf = screen(&fixtures::ui(&snap, (80, 24), Glyphs::Ascii), &snap, &theme);
    let y = rows(&buf).iter().rposition(|row| row.starts_with("--")).unwrap() as u16;
    let title = &buf[(5, y)];
    assert!(title.modifier.contains(Modifier::BOLD) && !title.modifier.contains(Modifier::DIM), "{title:?}");
}

#[test]
fn no_panel_names_a_colour() {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tui");
    let mut folders = vec![base.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let below = path.strip_prefix(&base).unwrap();
            if path.is_dir() {
                folders.push(path);
            } else if !below.starts_with("look") && below != Path::new("shell/screen.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap();
                for word in ["Color::", "Color,", "style::Color", ".fg(", ".bg("] {
                    assert!(!code.contains(word), "{}: {word} belongs into a theme", below.display());
                }
            }
        }
    }
}

#[test]
fn the_cursors_row_stays_readable_in_every_theme() {
    let snap = busy();
    let ui = fixtures::ui(&snap, (80, 24), Glyphs::Unicode);
    for (name, _) in BUNDLED {
        for depth in DEPTHS {
            let theme = load(name, None, depth).unwrap();
            let buf = screen(&ui, &snap, &theme);
            let row = rows(&buf).iter().position(|row| row.starts_with('>')).unwrap() as u16;
            let text = theme.style(Role::Text).fg.unwrap_or(Color::Reset);
            for x in 0..80 {
                let cell = &buf[(x, row)];
                assert!(cell.modifier.contains(Modifier::REVERSED), "{name} {depth:?} {x}");
                assert_eq!(cell.fg, text, "{name} {depth:?} {x}");
            }
        }
    }
}

// The command line.

struct Said {
    exit: Exit,
    out: String,
    err: String,
}

/// An account with these themes of its own.
struct Account {
    setup: Setup,
    home: tempfile::TempDir,
}

impl Account {
    fn new(themes: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join(".config/overnight/themes");
        std::fs::create_dir_all(&dir).unwrap();
        for (name, text) in themes {
            std::fs::write(dir.join(format!("{name}.toml")), text).unwrap();
        }
        let setup = Setup {
            paths: Paths::below(home.path()),
            config: Config::default(),
            environment: Environment { home: Some(home.path().to_owned()), ..Environment::default() },
            zone: jiff::tz::TimeZone::UTC,
        };
        Self { setup, home }
    }

    fn run(&self, arguments: &[&str], terminal: bool) -> Said {
        let all = ["overnight", "theme"].iter().chain(arguments).map(Into::into);
        let Ok((_, Invocation::Verb(verb))) = cli::parse(all) else { panic!("{arguments:?}") };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let width = terminal.then_some(100);
        let done = cli::run_on(&verb, &self.setup, &mut Io::new(&mut out, &mut err, width, terminal));
        let (exit, failure) = match done {
            Ok(exit) => (exit, String::new()),
            Err(error) => (cli::exit::of(&error), cli::exit::message(&error).unwrap_or_default()),
        };
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).unwrap();
            text.replace(&format!("{}/", self.home.path().display()), "~/")
        };
        Said {
            exit,
            out: text(out),
            err: text(err) + &failure.replace(&format!("{}/", self.home.path().display()), "~/"),
        }
    }
}

#[test]
fn list_names_every_theme_and_where_it_is_from() {
    let account = Account::new(&[("mine", "about = 'My own'\nvariant = 'dark'\n"), ("broken", "about = \n")]);
    let said = account.run(&["list"], false);
    assert_eq!(said.exit, Exit::Ok);
    for (name, _) in BUNDLED {
        assert!(
            said.out.lines().any(|line| line.split_whitespace().next() == Some(name)),
            "{name}\n{}",
            said.out
        );
    }
    let line = |name: &str| said.out.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("mine").contains("own") && line("mine").ends_with("My own"), "{}", said.out);
    assert!(line("auto *").contains("protan deutan tritan"), "{}", said.out);
    assert!(line("broken").contains("broken.toml:1:9: "), "{}", said.out);
    let json: serde_json::Value = serde_json::from_str(&account.run(&["list", "--json"], false).out).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 18);
    assert_eq!(json[1]["name"], "mine");
    assert_eq!(json[1]["variant"], "dark");
    assert!(json[0]["problem"].as_str().unwrap().contains(":1:9: "));
}

#[test]
fn show_has_every_role_in_words_and_in_its_own_look() {
    let mut account = Account::new(&[]);
    account.setup.environment.term = Some("xterm-256color".into());
    let plain = account.run(&["show", "okabe-dark"], false);
    assert!(!plain.out.contains('\x1b'), "{}", plain.out);
    for role in Role::ALL {
        let (section, name) = role.name();
        assert!(plain.out.contains(&format!("[{section}] {name}")), "{name}");
        assert!(plain.out.contains(role.about()), "{name}");
    }
    assert!(plain.out.contains("#367cf8 bold"), "{}", plain.out);
    let coloured = account.run(&["show", "okabe-dark"], true);
    assert!(coloured.out.contains("38;5;69") && !coloured.out.contains("38;2;"), "{}", coloured.out);
    account.setup.environment.no_color = true;
    let looks = looks(&account.run(&["show", "okabe-dark"], true).out);
    assert!(!looks.is_empty() && looks.iter().flatten().all(|code| *code < 30), "{looks:?}");
    let json: serde_json::Value =
        serde_json::from_str(&account.run(&["show", "okabe-dark", "--json"], false).out).unwrap();
    assert_eq!(json["roles"].as_array().unwrap().len(), Role::ALL.len());
    assert_eq!(json["depth"], "true");
    let run = json["roles"].as_array().unwrap().iter().find(|role| role["role"] == "run").unwrap();
    assert_eq!(
        (run["fg"].as_str(), run["at"].as_str()),
        (Some("#367cf8"), Some("themes/okabe-dark.toml:12:7"))
    );
}

#[test]
fn check_passes_all_that_are_bundled_and_fails_a_broken_one_with_its_place() {
    let account = Account::new(&[]);
    let said = account.run(&["check"], false);
    assert_eq!((said.exit, said.out.lines().count()), (Exit::Ok, BUNDLED.len() + 1), "{}", said.out);
    assert!(said.out.lines().skip(1).all(|line| line.ends_with("ok")), "{}", said.out);
    let one = account.run(&["check", "nord"], false);
    assert_eq!(one.exit, Exit::Ok);
    assert!(one.out.contains("distance, deutan eyes") && one.out.contains("no promise"), "{}", one.out);

    let account = Account::new(&[
        ("faint", "inherits = 'harbor-dark'\n[palette]\nfg = '#303030'\n"),
        ("broken", "[ui]\ntext = 'pink'\n"),
    ]);
    let said = account.run(&["check", "faint"], false);
    assert_eq!(said.exit, Exit::Failed);
    let fault = "faint: ~/.config/overnight/themes/faint.toml:3:6: [ui] base has 1.35:1 in true, and needs 4.5:1 (so do ";
    assert!(said.out.lines().any(|line| line.starts_with(fault)), "{}", said.out);
    let path = account.home.path().join(".config/overnight/themes/broken.toml");
    for name in ["broken", path.to_str().unwrap()] {
        let said = account.run(&["check", name], false);
        assert_eq!(said.exit, Exit::Failed);
        assert!(said.out.contains("broken.toml:2:8: `pink` is not in [palette]"), "{}", said.out);
    }
    assert_eq!(account.run(&["check"], false).exit, Exit::Failed);
    // All that is wrong at once; and what is no fault, but hard to read with an xterm's sixteen.
    let account = Account::new(&[
        (
            "wrong",
            "variant = 'blue'\n[palette]\na = '#12'\nb = 7\n[ui]\ntext = {mod = ['fat']}\n[glyphs]\nset = 'emoji'\n",
        ),
        ("names", "[ui]\ntext = 'pink'\ndim = 'mauve'\n"),
        (
            "pale",
            "inherits = 'harbor-light'\n[palette]\nwait = {rgb = '#876612', c256 = 94, c16 = 'yellow'}\n",
        ),
        ("faint", "inherits = 'harbor-dark'\n[palette]\nfg = '#303030'\n"),
    ]);
    let said = account.run(&["check", "wrong"], false);
    for place in [
        "1:11: one of",
        "3:5: `#12` is no colour",
        "4:5: a table, not integer",
        "6:16: write bold",
        "8:7: one of",
    ] {
        assert!(said.out.contains(&format!("wrong.toml:{place}")), "{place}: {}", said.out);
    }
    let said = account.run(&["check", "names"], false);
    assert!(said.out.contains("names.toml:2:8: `pink`") && said.out.contains("3:7: `mauve`"), "{}", said.out);
    let said = account.run(&["check", "pale"], false);
    assert!(
        said.exit == Exit::Ok && said.err.contains("is yellow, in an xterm 1.7:1"),
        "{} {}",
        said.out,
        said.err
    );
    let json: serde_json::Value =
        serde_json::from_str(&account.run(&["check", "faint", "--json"], false).out).unwrap();
    assert_eq!(json[0]["ok"], false);
    assert!(json[0]["faults"][0].as_str().unwrap().contains("faint.toml:3:6"));
}

#[test]
fn a_name_that_is_none_is_told_the_nearest() {
    let said = Account::new(&[]).run(&["preview", "okabe-drak"], false);
    assert_eq!(said.exit, Exit::Failed);
    assert!(said.err.contains("no theme `okabe-drak`: did you mean `okabe-dark`?"), "{}", said.err);
}

#[test]
fn preview_is_a_small_dashboard_and_ascii_where_the_locale_is() {
    let mut account = Account::new(&[]);
    let said = account.run(&["preview", "nord"], false);
    assert!(said.out.is_ascii() && said.out.contains("> 144 RUN"), "{}", said.out);
    account.setup.environment.locale.insert("LANG".into(), "C.UTF-8".into());
    assert!(account.run(&["preview", "nord"], false).out.contains('│'));
    assert!(account.run(&["preview", "mono-ascii"], false).out.is_ascii());
    let coloured = account.run(&["preview", "nord", "--color", "true"], false).out;
    assert!(coloured.contains("38;2;163;190;140"), "{coloured}");
    assert!(coloured.lines().all(|line| line.ends_with("\x1b[0m")), "a background goes on after its line");
}

#[test]
fn the_theme_that_is_wished_for_is_marked() {
    let mut account = Account::new(&[]);
    account.setup.config.theme = Some(ThemeSetting::One("nord".into()));
    assert!(account.run(&["list"], false).out.contains("nord *"));
    account.setup.environment.theme = Some("gruvbox-dark".into());
    assert!(account.run(&["list"], false).out.contains("gruvbox-dark *"));
    assert_eq!(account.setup.theme(Some("mono"), || None), "mono");
    account.setup.environment.theme = Some("~/mine.toml".into());
    assert_eq!(
        account.setup.theme(None, || None),
        account.home.path().join("mine.toml").display().to_string()
    );
}
