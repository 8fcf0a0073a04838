//! Pictures of a theme: a small dashboard, and every role beside its name. Pure; drawn as everything is.

use super::canvas::{Canvas, Glyphs, Piece};
use super::colour::{colour_name, modifier_names};
use super::theme::{Role as R, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The width of the small dashboard.
const WIDTH: u16 = 78;
/// The columns before what a role is for.
const BEFORE: u16 = 56;

/// Every role: its name, a sample, what it is made of, what it is for.
pub fn roles(theme: &Theme, glyphs: Glyphs, width: u16) -> Buffer {
    let about = R::ALL.iter().map(|role| role.about().len()).max().unwrap_or(0) as u16;
    let area = Rect::new(0, 0, width.min(BEFORE + about), R::ALL.len() as u16);
    let mut buf = Buffer::empty(area);
    let mut c = Canvas::new(&mut buf, theme, theme.glyphs(glyphs));
    c.over(area, R::Base);
    for (row, role) in (0..).zip(R::ALL) {
        let (section, name) = role.name();
        let base = theme.style(R::Base);
        c.put(0, row, 22, &format!("[{section}] {name}"), base);
        c.put(22, row, 8, " sample ", theme.style(*role));
        c.put(31, row, 24, &made_of(theme, *role), base);
        c.put(BEFORE, row, about, role.about(), base);
    }
    c.finish();
    buf
}

/// `#167cb5 bold`; `on #..` is what is behind.
fn made_of(theme: &Theme, role: R) -> String {
    let style = theme.style(role);
    let fg = style.fg.map(colour_name);
    let bg = style.bg.map(|colour| format!("on {}", colour_name(colour)));
    let words = modifier_names(style.add_modifier).into_iter().map(str::to_owned);
    let all: Vec<String> = fg.into_iter().chain(bg).chain(words).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(" ") }
}

/// A small dashboard in a theme, with everything on it that has a look of its own.
pub fn dashboard(theme: &Theme, glyphs: Glyphs) -> Buffer {
    let area = Rect::new(0, 0, WIDTH, 22);
    let mut buf = Buffer::empty(area);
    let mut c = Canvas::new(&mut buf, theme, theme.glyphs(glyphs));
    c.over(area, R::Base);
    let counts: [Piece<'_>; 6] = [
        ("overnight lab1  ", R::Title),
        ("RUN 2  ", R::Run),
        ("RENT 1  ", R::Rent),
        ("WAIT 2  ", R::Wait),
        ("PAUS 1  ", R::Paused),
        ("2 fail", R::Fail),
    ];
    c.pieces(area, 0, &counts);
    c.pieces_right(area, 0, &[("STALE 9s", R::Stale), (" ", R::Text), ("FROZEN", R::Frozen)]);
    devices(&mut c, Rect::new(0, 1, WIDTH, 5));
    jobs(&mut c, Rect::new(0, 6, WIDTH, 10));
    log(&mut c, Rect::new(0, 16, WIDTH, 3));
    c.pieces(
        area,
        19,
        &[
            ("#139 failed: exit 1", R::ToastError),
            ("  2 GPUs are warm", R::ToastWarn),
            ("  #151 queued, place 2", R::ToastInfo),
        ],
    );
    c.pieces(
        area,
        20,
        &[
            ("Cancel #144?  ", R::Dialog),
            ("[Keep]", R::Input),
            ("  [Cancel it]", R::DialogDanger),
            ("   ", R::Text),
            ("/u:ana", R::Input),
        ],
    );
    let keys = [
        ("Enter", " open  "),
        ("n", " new  "),
        ("x", " cancel  "),
        ("/", " filter  "),
        ("?", " help  "),
        ("q", " quit"),
    ];
    let keys: Vec<Piece<'_>> =
        keys.iter().flat_map(|(key, text)| [(*key, R::KeyHint), (*text, R::KeyText)]).collect();
    c.pieces(area, 21, &keys);
    c.finish();
    buf
}

fn devices(c: &mut Canvas<'_>, area: Rect) {
    let inside = c.frame(area, &[("GPUs", R::Title), ("  3/4 held", R::Dim)], &[], false);
    for (row, percent, temperature, who) in
        [(0, 93, "82C", "#142 ana"), (1, 71, "74C", "#142 ana"), (2, 21, "48C", "#144 bo")]
    {
        let y = inside.y + row;
        let x = c.put(inside.x, y, 2, &format!("{row} "), c.theme.style(R::Text));
        let x = c.bar(x, y, 22, percent);
        let rest = Rect::new(x, y, inside.right() - x, 1);
        let text = format!(" {percent}%  {temperature}  {who}   ");
        c.pieces(rest, 0, &[(&text, R::Text), ("..:-=+*##*+=", R::Spark)]);
    }
}

fn jobs(c: &mut Canvas<'_>, area: Rect) {
    let inside = c.frame(area, &[("Queue", R::Title), ("  all users", R::Dim)], &[("8 jobs", R::Dim)], true);
    let rows: [(&str, &str, R, &str, R); 8] = [
        ("142", "RUN ", R::Run, "llama-ft-8b     gpu 0,1", R::Text),
        ("144", "RUN ", R::Run, "eval-nightly    gpu 2", R::Text),
        ("145", "OUT ", R::Out, "render-frames   copying 71%", R::Text),
        ("146", "RENT", R::Rent, "llama-ft-8b-b   locking 3", R::Text),
        ("147", "WAIT", R::Wait, "llama-ft-70b    needs 8 free", R::MarkedRow),
        ("151", "WAIT", R::Wait, "tokenise-wiki   moving to the top", R::Pending),
        ("148", "PAUS", R::Paused, "big-eval        paused by me", R::Dim),
        ("139", "FAIL", R::Fail, "vit-sweep-01    exit 1", R::Text),
    ];
    for (row, (id, word, state, text, look)) in (0..).zip(rows) {
        let at = format!("  {id} ");
        c.pieces(inside, row, &[(&at, R::Text), (word, state), ("  ", R::Text), (text, look)]);
    }
    let ends = [
        ("DONE ", R::Done),
        ("STOP ", R::Stop),
        ("LOST ", R::Lost),
        ("FREE", R::Rel),
        (" ", R::Text),
        ("|", R::Scrollbar),
    ];
    c.pieces_right(inside, 0, &ends);
    c.cursor_row(inside, 1);
    c.put(inside.x, inside.y + 1, 1, ">", c.theme.style(R::Text).patch(c.theme.style(R::CursorRow)));
}

fn log(c: &mut Canvas<'_>, area: Rect) {
    c.rule(area, 0, &[("Log", R::Title), ("  FOLLOW", R::Dim)], &[]);
    c.pieces(
        area,
        1,
        &[
            ("09:26:40 ", R::Timestamp),
            ("step 1840/5000 ", R::Text),
            ("acc", R::Search),
            (" 0.713  ", R::Text),
            ("eta", R::Match),
            (" 20m", R::Text),
        ],
    );
    c.pieces(area, 2, &[("09:26:46 ", R::Timestamp), ("warning: the loader is slow", R::Stderr)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::look::colour::Depth;
    use crate::tui::look::theme::{BUNDLED, load};

    fn text(buf: &Buffer) -> String {
        buf.content.chunks(usize::from(buf.area.width)).fold(String::new(), |mut text, row| {
            text.extend(row.iter().map(ratatui::buffer::Cell::symbol));
            text.trim_end().to_owned() + "\n"
        })
    }

    #[test]
    fn the_small_dashboard_says_every_state_in_words() {
        let seen = text(&dashboard(&Theme::auto(Depth::C256), Glyphs::Unicode));
        for word in ["RUN", "WAIT", "PAUS", "RENT", "OUT", "FREE", "DONE", "FAIL", "STOP", "LOST", "> 144"] {
            assert!(seen.contains(word), "{word}\n{seen}");
        }
    }

    #[test]
    fn the_small_dashboard_has_every_role_on_it() {
        // A theme in which no two roles look alike says which ones were drawn.
        let look = |(at, role): (usize, &R)| {
            let (section, name) = role.name();
            (section, format!("{name} = \"#{:02x}0000\"\n", at + 1))
        };
        let mut file = String::new();
        for section in ["ui", "state", "gauge", "log"] {
            file.extend(["[", section, "]\n"]);
            let lines = R::ALL.iter().enumerate().map(look).filter(|(of, _)| *of == section);
            lines.for_each(|(_, line)| file.push_str(&line));
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("each.toml"), file).unwrap();
        let theme = load("each", Some(dir.path()), Depth::True).unwrap();
        let buf = dashboard(&theme, Glyphs::Unicode);
        let missing = R::ALL
            .iter()
            .filter(|role| !buf.content.iter().any(|cell| Some(cell.fg) == theme.style(**role).fg));
        let missing: Vec<_> = missing.filter(|role| **role != R::Base).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn ascii_pictures_are_ascii() {
        for (name, _) in BUNDLED {
            let theme = load(name, None, Depth::C256).unwrap();
            for buf in [dashboard(&theme, Glyphs::Ascii), roles(&theme, Glyphs::Ascii, 80)] {
                assert!(buf.content.iter().all(|cell| cell.symbol().is_ascii()), "{name}");
            }
        }
    }
}
