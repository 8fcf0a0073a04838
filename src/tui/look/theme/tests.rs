//! Themes as files: what is inherited, what is refused and where, and the bundled ones against the check.

use super::check::{Rank, check};
use super::*;
use crate::tui::look::colour::colour_name;
use crate::tui::look::vision::Sight;
use proptest::prelude::*;
use ratatui::style::{Color, Modifier};
use std::path::PathBuf;

/// Themes in a user's directory.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(format!("{name}.toml")), text).unwrap();
    }
    dir
}

fn parse(files: &[(&str, &str)]) -> Result<Theme, ThemeError> {
    load(files[0].0, Some(folder(files).path()), Depth::True)
}

/// The message, without the directory's name.
fn said(files: &[(&str, &str)]) -> String {
    let dir = folder(files);
    let error = load(files[0].0, Some(dir.path()), Depth::True).unwrap_err().to_string();
    error.replace(&format!("{}/", dir.path().display()), "")
}

fn measured(name: &str, dir: Option<&Path>) -> check::Report {
    let themes: Vec<Theme> =
        [Depth::True, Depth::C256, Depth::C16].iter().map(|depth| load(name, dir, *depth).unwrap()).collect();
    check(&themes)
}

#[test]
fn the_bundled_themes_are_the_files() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("themes");
    let mut files: Vec<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut bundled: Vec<String> = BUNDLED.iter().map(|(name, _)| format!("{name}.toml")).collect();
    files.sort();
    bundled.sort();
    assert_eq!(files, bundled);
    for (name, text) in BUNDLED {
        let theme = load(name, None, Depth::True).unwrap();
        assert!(text.starts_with("# "), "{name} has no header");
        assert!(!theme.about.is_empty() && !theme.license.is_empty(), "{name}");
        assert!(text.contains(&format!("name = \"{name}\"\n")), "{name}");
    }
}

#[test]
fn every_bundled_theme_sets_every_role_at_every_depth() {
    for (name, _) in BUNDLED {
        for depth in Depth::ALL {
            let theme = load(name, None, depth).unwrap();
            assert_eq!(theme.warnings, Vec::<String>::new(), "{name}");
            assert!(theme.style(Role::CursorRow).add_modifier.contains(Modifier::REVERSED), "{name}");
            for role in Role::ALL {
                assert!(theme.place(*role).is_some(), "{name} does not set {role:?}");
            }
        }
    }
}

#[test]
fn every_depth_has_only_its_own_colours() {
    for (name, _) in BUNDLED {
        for depth in Depth::ALL {
            let theme = load(name, None, depth).unwrap();
            for role in Role::ALL {
                let style = theme.style(*role);
                for colour in [style.fg, style.bg].into_iter().flatten() {
                    let fits = match depth {
                        Depth::Mono => false,
                        Depth::C16 => !matches!(colour, Color::Rgb(..) | Color::Indexed(_)),
                        Depth::C256 => !matches!(colour, Color::Rgb(..)),
                        Depth::True => true,
                    };
                    assert!(fits, "{name} {role:?} at {depth:?}: {colour:?}");
                }
                assert!(style.bg.is_none() || depth >= Depth::C256, "{name} {role:?}: a background");
            }
        }
    }
}

#[test]
fn every_bundled_theme_passes_its_check() {
    for (name, _) in BUNDLED {
        let report = measured(name, None);
        assert_eq!(report.faults, Vec::<String>::new(), "{name}");
        assert_eq!(report.hints, Vec::<String>::new(), "{name}: at 16 colours, in an xterm");
        let names_only = name.starts_with("ansi16") || name.starts_with("mono");
        assert_eq!(report.distances.is_empty(), names_only, "{name}: what was measured?");
    }
}

/// The colours that the design gives, and the distances that go with them.
#[test]
fn the_computed_themes_are_as_they_were_computed() {
    for (name, colours, eyes, distance) in [
        ("auto", "#167cb5 #af7102 #9749fa #167cb5 #e93d62", &Sight::ALL[..], 31.9),
        ("harbor-dark", "#43da88 #feda4b #aa66e8 #c6d8e7 #e2502b", &Sight::ALL[..3], 34.2),
        ("harbor-light", "#078177 #876612 #a41fbe #123361 #78131d", &Sight::ALL[..], 27.1),
        ("okabe-dark", "#367cf8 #fef89a #c55f96 #fcfcfc #c86b07", &Sight::ALL[..3], 42.2),
        ("okabe-light", "#013bb8 #47330a #6b2c6a #111112 #c45402", &Sight::ALL[..3], 30.9),
        ("tritan-dark", "#12c4d3 #f473ad #897d86 #fefefe #fe0912", &[Sight::Normal, Sight::Tritan][..], 46.2),
    ] {
        let theme = load(name, None, Depth::True).unwrap();
        let states = [Role::Run, Role::Wait, Role::Paused, Role::Rent, Role::Fail];
        let found: Vec<String> = states.map(|role| colour_name(theme.style(role).fg.unwrap())).to_vec();
        assert_eq!(found.join(" "), colours, "{name}");
        let report = check(&[theme]);
        let of = report.distances.iter().filter(|one| eyes.contains(&one.sight));
        let least = of.map(|one| one.distance).min_by(f64::total_cmp).unwrap();
        assert!((least - distance).abs() < 0.06, "{name}: {least}");
    }
}

#[test]
fn a_theme_that_cannot_be_read_or_told_apart_fails_and_says_where() {
    let dir = folder(&[(
        "bad",
        "variant = 'dark'\nsafe_for = ['deutan']\n[palette]\nbg = '#101010'\nfg = '#3a3a3a'\nrun = '#b8bb26'\n\
         wait = '#fed830'\nrent = '#d3869b'\npaused = '#d3869b'\nedge = '#161616'\n[state]\nrent = 'rent'\n",
    )]);
    let faults = measured("bad", Some(dir.path())).faults;
    for part in [
        "bad.toml:5:6: [ui] base has 1.67:1 in true, and needs 4.5:1 (so do ",
        "bad.toml:10:8: [ui] border has 1.05:1 in true, and needs 2:1 (so do 2 more roles)",
        "bad.toml:7:8: [state] run and wait are 19.3 apart for deutan eyes in true, and need 20",
        "bad.toml:8:8: [state] paused and rent look the same in true",
    ] {
        assert!(faults.iter().any(|fault| fault.contains(part)), "{part}\n{}", faults.join("\n"));
    }
}

#[test]
fn low_vision_asks_for_more() {
    let text = "variant = 'dark'\nsafe_for = ['low-vision']\ninherits = 'harbor-dark'\n";
    let faults = measured("few", Some(folder(&[("few", text)]).path())).faults.join("\n");
    assert!(faults.contains("and needs 7:1"), "{faults}");
    assert!(
        measured("high-contrast", None)
            .contrasts
            .iter()
            .all(|one| one.rank == Rank::Edge || one.ratio >= 7.0)
    );
}

#[test]
fn a_child_overrides_its_parents_palette_and_roles() {
    let theme = parse(&[
        ("child", "inherits = 'parent'\n[palette]\nink = '#010203'\n"),
        (
            "parent",
            "variant = 'dark'\nsafe_for = ['protan']\n[palette]\nink = '#ffffff'\n[ui]\ntext = 'ink'\n",
        ),
    ])
    .unwrap();
    assert_eq!(theme.style(Role::Text).fg, Some(Color::Rgb(1, 2, 3)));
    assert_eq!(theme.variant, Variant::Dark);
    assert!(theme.safe_for.is_empty(), "a promise about colours is not handed down");
}

#[test]
fn what_nothing_sets_comes_from_the_default() {
    let theme = parse(&[("mine", "[ui]\ntext = '#010203'\n")]).unwrap();
    assert_eq!(theme.style(Role::Text).fg, Some(Color::Rgb(1, 2, 3)));
    assert_eq!(theme.style(Role::Fail), Theme::auto(Depth::True).style(Role::Fail));
    assert_eq!(theme.warnings, Vec::<String>::new());
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_how_to_put_it_right() {
    for (text, message) in [
        ("[ui\n", "mine.toml:1:4: "),
        ("[ui]\ntext = 'pink'\n", "mine.toml:2:8: `pink` is not in [palette], and no colour by itself"),
        (
            "[palette]\nink = '#fff'\n",
            "mine.toml:2:7: `#fff` is no colour; write default, #rrggbb or one of the sixteen names",
        ),
        ("[palette]\ninkk = '#ffffff'\n[ui]\ntext = 'ink'\n", "did you mean `inkk`?"),
        ("[palette]\nink = { c256 = 3 }\n", "mine.toml:2:7: a colour needs its rgb"),
        ("[palette]\nink = { rgb = '#ffffff', c256 = 256 }\n", "mine.toml:2:33: a number from 0 to 255"),
        (
            "[palette]\nink = { rgb = '#ffffff', c16 = 'pink' }\n",
            "mine.toml:2:32: this is not one of the sixteen",
        ),
        (
            "[ui]\ntext = { mod = ['loud'] }\n",
            "mine.toml:2:17: write bold, dim, italic, underlined or reverse",
        ),
        ("[gauge]\nat = [90, 10]\n", "mine.toml:2:6: the first is not above the second"),
        ("[gauge]\nat = [1]\n", "mine.toml:2:6: two numbers"),
        ("variant = 'night'\n", "mine.toml:1:11: one of dark, light, any"),
        ("safe_for = ['cats']\n", "mine.toml:1:13: one of protan, deutan, tritan, low-vision"),
        ("[glyphs]\nset = 'emoji'\n", "mine.toml:2:7: one of unicode, blocks, ascii"),
        ("[log]\nansi = 'yes'\n", "mine.toml:2:8: one of pass, strip"),
        ("about = 3\n", "mine.toml:1:9: text in quotes, not integer"),
        ("ui = 3\n", "mine.toml:1:6: a table, not integer"),
        ("inherits = 'nrd'\n", "mine.toml:1:12: no theme `nrd`: did you mean `nord`?"),
        ("inherits = '../auto'\n", "mine.toml:1:12: no theme `../auto`"),
    ] {
        let found = said(&[("mine", text)]);
        assert!(found.contains(message), "{text}\n{found}");
    }
}

#[test]
fn a_circle_is_an_error_and_a_theme_on_top_of_its_namesake_is_not() {
    let files =
        [("a", "about = 'x'\ninherits = 'b'\n"), ("b", "inherits = 'c'\n"), ("c", "inherits = 'a'\n")];
    assert_eq!(said(&files), "c.toml:1:12: the theme inherits itself: a > b > c > a");
    assert!(matches!(parse(&[("a", "inherits = 'a'")]), Err(ThemeError::Unknown { .. })));
    let dir = folder(&[("auto", "inherits = 'auto'\n[ui]\ntext = '#102030'\n")]);
    let theme = load("auto", Some(dir.path()), Depth::True).unwrap();
    assert_eq!(theme.style(Role::Text).fg, Some(Color::Rgb(0x10, 0x20, 0x30)));
    assert_eq!(theme.origin, Origin::File(dir.path().join("auto.toml")));
    let circle = folder(&[("nord", "inherits = 'x'\n"), ("x", "inherits = 'nord'\n")]);
    assert!(matches!(load("nord", Some(circle.path()), Depth::True), Err(ThemeError::Cycle { .. })));
}

#[test]
fn what_is_unknown_is_a_warning_with_the_nearest_name() {
    let dir = folder(&[(
        "mine",
        "name = 'other'\nabuot = 'x'\n[ui]\ntxt = 'default'\ntext = { fgg = 'fg' }\n[states]\n[log]\nzebra = 'fg'\n\
         [palette]\nink = { rgb = '#ffffff', c88 = 3 }\n[glyphs]\nsets = 'ascii'\n",
    )]);
    let theme = load("mine", Some(dir.path()), Depth::True).unwrap();
    let warnings = theme.warnings.join("\n").replace(&format!("{}/", dir.path().display()), "");
    for part in [
        "mine.toml:1:8: it goes by its file's name `mine`, not `other`",
        "mine.toml:2:1: no key `abuot`: did you mean `about`?",
        "mine.toml:4:1: no role in [ui] `txt`: did you mean `text`?",
        "mine.toml:5:10: no key of a role `fgg`: did you mean `fg`?",
        "mine.toml:6:2: no key `states`: did you mean `state`?",
        "mine.toml:8:1: no role in [log] `zebra`",
        "no key of a colour `c88`",
        "no key in [glyphs] `sets`: did you mean `set`?",
    ] {
        assert!(warnings.contains(part), "{part}\n{warnings}");
    }
}

#[test]
fn the_users_directory_goes_first_and_names_stay_inside_it() {
    let dir = folder(&[("nord", "about = 'mine'\n[ui]\ntext = '#102030'\n"), ("broken", "[ui\n")]);
    let theme = load("nord", Some(dir.path()), Depth::True).unwrap();
    assert_eq!(theme.style(Role::Text).fg, Some(Color::Rgb(0x10, 0x20, 0x30)));
    assert!(matches!(load("..", Some(dir.path()), Depth::True), Err(ThemeError::Unknown { .. })));
    let by_path = dir.path().join("nord.toml");
    assert_eq!(load(by_path.to_str().unwrap(), None, Depth::True).unwrap().name, "nord");
    let all = list(Some(dir.path()));
    assert_eq!(all.len(), BUNDLED.len() + 1);
    assert_eq!((all[0].name.as_str(), all[1].name.as_str()), ("broken", "nord"));
    assert!(all[0].problem.as_ref().unwrap().contains("broken.toml:1:4: "), "{all:?}");
    assert_eq!((all[1].about.as_str(), &all[1].problem), ("mine", &None));
    assert_eq!(all.iter().filter(|theme| theme.origin == Origin::Bundled).count(), BUNDLED.len() - 1);
    assert_eq!(list(None).len(), BUNDLED.len());
}

#[test]
fn what_is_no_text_file_is_refused_and_never_waited_for() {
    let dir = folder(&[]);
    let path = dir.path().join("mine.toml");
    let refused = |part: &str| {
        let error = load("mine", Some(dir.path()), Depth::True).unwrap_err().to_string();
        assert!(error.contains("mine.toml") && error.contains(part), "{error}");
    };
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    refused("not a file");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, vec![b'#'; 300 * 1024]).unwrap();
    refused("too large");
    std::fs::write(&path, [b'#', 0xff]).unwrap();
    refused("not UTF-8");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    refused("not a file");
}

#[test]
fn a_theme_may_choose_characters_and_the_locale_wins() {
    let theme = |set: &str| parse(&[("mine", &format!("[glyphs]\nset = '{set}'\n"))]).unwrap();
    assert_eq!(theme("ascii").glyphs(Glyphs::Unicode), Glyphs::Ascii);
    assert_eq!(theme("blocks").glyphs(Glyphs::Unicode), Glyphs::Blocks);
    assert_eq!(theme("unicode").glyphs(Glyphs::Ascii), Glyphs::Ascii);
    assert_eq!(Theme::auto(Depth::True).glyphs(Glyphs::Unicode), Glyphs::Unicode);
    assert_eq!(load("mono-ascii", None, Depth::True).unwrap().glyphs(Glyphs::Unicode), Glyphs::Ascii);
}

#[test]
fn the_page_about_themes_names_every_role() {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/themes.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows: Vec<String> = Role::ALL
        .iter()
        .map(|role| {
            let (section, name) = role.name();
            format!("| `[{section}]` | `{name}` | {} |", role.about())
        })
        .collect();
    let table: Vec<&str> = page.lines().filter(|line| line.starts_with("| `[")).collect();
    assert_eq!(table, rows, "the table in docs/themes.md");
    for (name, _) in BUNDLED {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

proptest! {
    /// Whatever is in the file: a theme or an error, and a place that is in the file.
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,200}") {
        either(&text)?;
    }

    /// Closer to a theme: its words in any order.
    #[test]
    fn no_heap_of_words_makes_the_reader_panic(
        words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..60)
    ) {
        either(&words.concat())?;
    }

    /// A bundled theme with a piece of it replaced.
    #[test]
    fn no_edit_of_a_theme_makes_the_reader_panic(
        theme in 0..BUNDLED.len(), at in 0..4000_usize, length in 0..40_usize, piece in "\\PC{0,8}"
    ) {
        let text: Vec<char> = BUNDLED[theme].1.chars().collect();
        let at = at.min(text.len());
        let end = (at + length).min(text.len());
        let text: String = text[..at].iter().copied().chain(piece.chars()).chain(text[end..].iter().copied()).collect();
        either(&text)?;
    }
}

const WORDS: [&str; 26] = [
    "[palette]\n",
    "[ui]\n",
    "[state]\n",
    "[gauge]\n",
    "[log]\n",
    "[glyphs]\n",
    "text",
    "run",
    "at",
    "set",
    "ink",
    " = ",
    "'ink'",
    "'#ffffff'",
    "'default'",
    "{ rgb = ",
    " }",
    ", c256 = ",
    "300",
    "7",
    "[60, 85]",
    "\n",
    "inherits",
    "'auto'",
    "safe_for = ['deutan']\n",
    "{ fg = 'ink', mod = ['bold'] }",
];

fn either(text: &str) -> Result<(), TestCaseError> {
    let dir = folder(&[("mine", text)]);
    for depth in Depth::ALL {
        match load("mine", Some(dir.path()), depth) {
            Ok(theme) => {
                check(&[theme]);
            }
            Err(ThemeError::Invalid { at, .. }) => {
                let lines = text.split('\n').count();
                prop_assert!((1..=lines).contains(&at.line), "{at}");
            }
            Err(_) => {}
        }
    }
    Ok(())
}
