//! What the dashboard costs the line it is seen through: bytes for each thing that changes, bytes a second, and what it
//! does where the line is slow, full or torn. And what a crowd costs: ten thousand jobs, 64 devices.
//!
//! The tests that need a terminal run this very program again inside a PTY, as one of the ignored tests at the end.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/crowd.rs"]
mod crowd;
#[path = "support/double.rs"]
#[expect(dead_code, reason = "others answer more")]
mod double;
#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "support/terminal.rs"]
#[expect(dead_code, reason = "shared with the tests of the terminal")]
mod terminal;

use double::Double;
use overnight::clock;
use overnight::model::{Bytes, Cursor, Generation, JobId, Outcome, Revision, Span};
use overnight::protocol::{Connection, GpuRow, JobRow, Reply, ServerMessage, Snapshot, Update};
use overnight::supervisor::marks::{Mark, Stream};
use overnight::tui::{
    Action, Asked, Confirm, Depth, Exit, FeedEvent, Glyphs, LogFound, LogLine, Options, Overlay, Pattern,
    Screen, Screenful, Theme, Ui, UiCommand, load, next_deadline, paint, receive, run, settle, update,
};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use terminal::Terminal;

// ---- bytes ----

#[derive(Default)]
struct Counter(Vec<u8>);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A screen whose bytes are counted.
struct Counted {
    ui: Ui,
    snap: Snapshot,
    out: Screenful<Counter>,
    theme: Theme,
}

impl Counted {
    fn new(size: (u16, u16), depth: Depth) -> Self {
        let mut snap = fixtures::busy();
        snap.notices.clear();
        // Six young jobs: their seconds run on the screen.
        for (n, row) in snap.jobs.iter_mut().enumerate().take(6) {
            let (id, user) = (row.id.0, row.user.clone());
            *row =
                Arc::new(fixtures::running(fixtures::job(id, &user, "young", 1), 30 + n as u64, &[n as u32]));
        }
        let mut ui = fixtures::ui(&snap, size, Glyphs::Unicode);
        let log = snap.jobs.iter().find(|row| row.id == JobId(144)).unwrap().log.clone();
        (ui.log.path, ui.log.window.path) = (log.clone(), log);
        let theme = load("auto", None, depth).unwrap();
        Self { ui, snap, out: Screenful::new(Counter::default(), size), theme }
    }

    /// What a frame costs.
    fn cost(&mut self) -> usize {
        let before = self.out.out().0.len();
        self.out.draw(&self.ui, &self.snap, &self.theme).unwrap();
        self.out.out().0.len() - before
    }

    fn key(&mut self, action: Action) -> usize {
        let now = self.ui.now;
        let asks = action == Action::Cancel;
        let out = update(&mut self.ui, action, &self.snap, now);
        // Only how a job would be stopped and what it has made is asked for, while the question is there already.
        let allowed = |one: &UiCommand| asks && matches!(one, UiCommand::Detail(_) | UiCommand::Errand(_));
        assert!(out.iter().all(allowed), "no request: {out:?}");
        self.cost()
    }
}

fn sample(gpus: &mut [GpuRow], n: u32) {
    for gpu in gpus {
        let wobble = (n * 7 + gpu.index * 13) % 19;
        gpu.utilisation = Some((20 + gpu.index * 8 + wobble) as u8);
        gpu.memory_used = Some(Bytes::gib(u64::from(30 + wobble)));
        gpu.temperature_c = Some(60 + wobble as i32);
        gpu.power_w = Some(400 + wobble * 11);
    }
}

/// First paint, timers, a digit, a sample, a line of the log, the cursor, a popup: bytes at a size, for each depth.
type Budget = [[usize; 7]; 4];

/// Measured with ratatui's own backend; this program may take a fifth more.
const BUDGETS: [((u16, u16), Budget); 3] = [
    (
        (80, 24),
        [
            [5306, 187, 74, 649, 3240, 397, 898],
            [4000, 136, 55, 478, 2062, 301, 842],
            [3842, 108, 41, 444, 1814, 259, 795],
            [3394, 97, 41, 376, 1473, 203, 663],
        ],
    ),
    (
        (120, 40),
        [
            [13564, 187, 74, 2396, 2180, 381, 899],
            [9864, 136, 55, 2054, 1268, 285, 843],
            [10517, 108, 41, 1986, 1076, 243, 916],
            [9974, 97, 41, 1826, 812, 187, 791],
        ],
    ),
    (
        (200, 50),
        [
            [22074, 193, 74, 3895, 3240, 477, 899],
            [17234, 142, 55, 3553, 2062, 381, 843],
            [15890, 114, 41, 3485, 1814, 339, 910],
            [15866, 103, 41, 3325, 1473, 283, 792],
        ],
    ),
];

#[test]
fn every_change_costs_no_more_bytes_than_it_may() {
    let names = ["first paint", "timers", "a digit", "a sample", "a log line", "cursor", "popup"];
    let mut over = Vec::new();
    for (size, budget) in BUDGETS {
        for (depth, budget) in [Depth::True, Depth::C256, Depth::C16, Depth::Mono].into_iter().zip(budget) {
            let mut screen = Counted::new(size, depth);
            // The next job's owner: a cancel of somebody else's asks more.
            let next = screen.snap.jobs.iter().skip_while(|row| Some(row.id) != screen.ui.queue_job).nth(1);
            screen.ui.me = next.unwrap().user.clone();
            let first = screen.cost();
            screen.ui.now = screen.ui.now.plus(Span::secs(1));
            let timers = screen.cost();
            screen.snap.gpus[0].utilisation = Some(94);
            let digit = screen.cost();
            sample(&mut screen.snap.gpus, 3);
            let all = screen.cost();
            let window = &mut screen.ui.log.window;
            let at = window.end;
            let text = "09:24:00 step 1800/5000 acc 0.740".into();
            window.lines.push(LogLine { at, text, ..LogLine::default() });
            let line = screen.cost();
            let with_its_job = screen.key(Action::Down);
            let popup = screen.key(Action::Cancel);
            assert!(matches!(screen.ui.overlay, Some(Overlay::Confirm(Confirm { .. }))));
            screen.key(Action::Escape);
            screen.key(Action::Show(Screen::History));
            let cursor = screen.key(Action::Down);
            let costs = [first, timers, digit, all, line, cursor, popup];
            println!("{size:?} {depth:?}: {costs:?} of {budget:?}; in the queue the cursor {with_its_job}");
            // The queue's cursor takes the job beside it along: its life, its pane and its log.
            assert!(with_its_job < 2 * first / 5, "{size:?} {depth:?}: {with_its_job}");
            assert!(costs.iter().all(|cost| *cost > 0), "everything is seen: {costs:?}");
            for ((cost, budget), name) in costs.iter().zip(budget).zip(names) {
                let more = match name {
                    // The key line changes with it.
                    "popup" => 120,
                    // The list is as wide as the screen, and two rows of it change their look.
                    "cursor" => (usize::from(size.0) * 2).saturating_sub(160),
                    _ => 0,
                };
                if *cost * 5 > budget * 6 + more * 5 {
                    over.push(format!("{size:?} {depth:?} {name}: {cost} of {budget}"));
                }
            }
        }
    }
    assert!(over.is_empty(), "{over:#?}");
}

#[test]
fn marks_around_frames_can_be_left_out() {
    let screen = Counted::new((80, 24), Depth::C256);
    let mut out = Screenful::new(Counter::default(), (80, 24)).marked(false);
    out.draw(&screen.ui, &screen.snap, &screen.theme).unwrap();
    assert!(!String::from_utf8_lossy(&out.out().0).contains("?2026"));
}

// ---- low bandwidth ----

fn figures(snap: &Snapshot, revision: u64, gpus: Vec<GpuRow>) -> FeedEvent {
    FeedEvent::Update(Box::new(Update {
        revision: Revision(revision),
        since: Some(snap.revision),
        at: snap.at,
        gpus,
        ..Update::default()
    }))
}

fn shown(screen: &Counted) -> String {
    let mut buf = Buffer::empty(Rect::new(0, 0, screen.ui.size.0, screen.ui.size.1));
    paint(&mut buf, &screen.ui, &screen.snap, &screen.theme);
    buf.content.iter().map(ratatui::buffer::Cell::symbol).collect()
}

#[test]
fn under_low_bandwidth_figures_go_every_five_seconds_and_states_at_once() {
    let mut screen = Counted::new((80, 24), Depth::C16);
    screen.ui.thrift = true;
    let arrives = |screen: &mut Counted, after_ms: u64, load: u8, cleared: bool| {
        let now = fixtures::now().plus(Span(after_ms));
        let mut row = screen.snap.gpus[0].clone();
        row.utilisation = Some(load);
        if cleared {
            row.jobs.clear();
        }
        let revision = screen.snap.revision.0 + 1;
        let event = figures(&screen.snap, revision, vec![row]);
        receive(&mut screen.ui, &mut screen.snap, event, now);
        screen.snap.gpus[0].utilisation
    };
    assert_eq!(arrives(&mut screen, 60_000, 11, false), Some(11), "the first at once");
    assert_eq!(arrives(&mut screen, 61_000, 12, false), Some(11));
    assert_eq!(arrives(&mut screen, 64_000, 13, false), Some(11));
    let wakes = next_deadline(&screen.ui, &screen.snap, &screen.ui.now, 60_000).unwrap();
    assert!(wakes <= 1_000, "it is shown when its time comes: {wakes}");
    assert_eq!(arrives(&mut screen, 65_000, 14, false), Some(14));
    assert_eq!(arrives(&mut screen, 66_000, 15, true), Some(15), "another state is shown at once");
    screen.ui.thrift = false;
    assert_eq!(arrives(&mut screen, 66_100, 16, false), Some(16));
}

#[test]
fn under_low_bandwidth_timers_go_in_minutes_and_countdowns_in_seconds() {
    let mut screen = Counted::new((80, 24), Depth::C16);
    screen.ui.thrift = true;
    let minute = screen.ui.now.wall_ms.rem_euclid(60_000).unsigned_abs();
    screen.ui.now = screen.ui.now.plus(Span(60_000 - minute));
    screen.cost();
    for second in 1..59 {
        screen.ui.now = screen.ui.now.plus(Span(1_000));
        assert_eq!(screen.cost(), 0, "second {second}");
    }
    screen.ui.now = screen.ui.now.plus(Span(2_000));
    assert!(screen.cost() > 0, "a minute");
    let at = screen.ui.now.wall_ms + 4_000;
    Arc::make_mut(&mut screen.snap.jobs[0]).cancel_at = Some(at);
    assert!(shown(&screen).contains("in 4 s"), "{}", shown(&screen));
    screen.ui.now = screen.ui.now.plus(Span(1_000));
    assert!(shown(&screen).contains("in 3 s"));
}

#[test]
fn low_bandwidth_is_switched_by_a_key() {
    let mut screen = Counted::new((80, 24), Depth::C256);
    screen.key(Action::Thrift);
    assert!(screen.ui.thrift && shown(&screen).contains("low bandwidth"));
    screen.key(Action::Thrift);
    assert!(!screen.ui.thrift);
}

// ---- the log ----

/// The log on the whole screen.
fn log_screen() -> Counted {
    let mut screen = Counted::new((80, 24), Depth::C256);
    screen.ui.queue_job = Some(JobId(144));
    screen.key(Action::Log);
    screen
}

#[test]
fn a_search_is_asked_of_the_reader_shown_and_given_up() {
    let mut screen = log_screen();
    screen.key(Action::Search);
    for c in "step 17".chars() {
        screen.key(Action::Insert(c));
    }
    assert!(shown(&screen).contains("/step 17"));
    screen.key(Action::Accept);
    let find = screen.ui.log.find.clone().unwrap();
    let end = screen.ui.log.window.size;
    assert_eq!((find.from, find.forward), (end, false), "from the end back while it is followed");
    let mut buf = Buffer::empty(Rect::new(0, 0, 80, 24));
    paint(&mut buf, &screen.ui, &screen.snap, &screen.theme);
    let found = screen.theme.style(overnight::tui::Role::Search);
    let marked = buf.content.iter().filter(|cell| cell.style().patch(found) == cell.style()).count();
    assert!(marked >= 7, "every match is seen: {marked}");
    let (now, id) = (screen.ui.now, find.id);
    let told = |screen: &mut Counted, id, found| {
        receive(&mut screen.ui, &mut screen.snap, FeedEvent::Found(id, found), now)
    };
    told(&mut screen, id + 7, LogFound::Nothing);
    assert!(screen.ui.log.find.is_some(), "an answer to another search");
    told(&mut screen, id, LogFound::Searching(41));
    assert!(shown(&screen).contains("/step 17 41%"), "{}", shown(&screen));
    let line = screen.ui.log.window.lines[7].at;
    told(&mut screen, id, LogFound::Line(line, true));
    assert_eq!((screen.ui.log.stopped_at, screen.ui.log.found), (Some(line), Some(line)));
    assert!(shown(&screen).contains("AT LINE 8") && shown(&screen).contains("went on at the end"));
    screen.key(Action::NextMatch);
    let next = screen.ui.log.find.clone().unwrap();
    assert_eq!((next.from, next.forward, next.inclusive), (line, true, false));
    assert!(screen.ui.message.is_none(), "what was said of the last match went with the key");
    for _ in 0..2 {
        screen.key(Action::Escape);
    }
    assert!(screen.ui.log.find.is_none() && screen.ui.log.search.is_none() && screen.ui.opened.is_some());
    screen.key(Action::NextMatch);
    assert!(shown(&screen).contains("nothing is searched for"));
}

#[test]
fn a_broken_expression_stays_to_be_mended_and_a_filter_is_in_the_title() {
    let mut screen = log_screen();
    screen.key(Action::Only);
    for c in "re:(".chars() {
        screen.key(Action::Insert(c));
    }
    screen.key(Action::Accept);
    assert!(matches!(screen.ui.overlay, Some(Overlay::Find(_))) && screen.ui.log.only.is_none());
    screen.key(Action::Insert('x'));
    screen.key(Action::Insert(')'));
    screen.key(Action::Accept);
    assert!(screen.ui.log.only.is_some() && shown(&screen).contains("&re:(x)"));
    screen.ui.log.window.lines.clear();
    assert!(shown(&screen).contains("No line has \"re:(x)\""), "{}", shown(&screen));
}

/// How many rows of the screen begin so.
fn rows_with(screen: &Counted, begin: &str) -> usize {
    let text: Vec<char> = shown(screen).chars().collect();
    let rows = text.chunks(usize::from(screen.ui.size.0)).map(|row| row.iter().collect::<String>());
    rows.filter(|row| row.starts_with(begin)).count()
}

#[test]
fn times_of_lines_are_shown_three_ways_or_said_to_be_unknown() {
    let mut screen = log_screen();
    for begin in
        ["09:23:42 step 1740", "+6s    09:23:42 step 1740", "09:23:42 09:23:42 step", "09:23:42 step 1740"]
    {
        assert_eq!(rows_with(&screen, begin), 1, "{begin}: {}", shown(&screen));
        screen.key(Action::Times);
    }
    for line in &mut screen.ui.log.window.lines {
        line.mark = Mark::default();
    }
    // Times that are on can be turned off.
    assert_eq!(rows_with(&screen, "       09:23:42 step 1740"), 1, "{}", shown(&screen));
    screen.key(Action::Times);
    screen.key(Action::Times);
    assert_eq!(rows_with(&screen, "09:23:42 step 1740"), 1, "{}", shown(&screen));
    screen.key(Action::Times);
    assert!(shown(&screen).contains("nothing is known of when the lines of this log came"));
}

#[test]
fn lines_of_stderr_begin_with_a_mark_that_neither_wrapping_nor_scrolling_hides() {
    let mut screen = log_screen();
    let lines = &mut screen.ui.log.window.lines;
    let last = lines.len() - 1;
    lines[last].mark.stream = Some(Stream::Err);
    lines[last].text = format!("warning {}", "very ".repeat(60));
    assert_eq!(rows_with(&screen, "! warning very"), 1, "{}", shown(&screen));
    assert_eq!(rows_with(&screen, "09:23:42 step 1740"), 1, "the others do not: {}", shown(&screen));
    screen.key(Action::Wrap);
    assert_eq!(rows_with(&screen, "! "), 1, "{}", shown(&screen));
    let below = rows_with(&screen, "  very ") + rows_with(&screen, "  ery ") + rows_with(&screen, "  ry ");
    assert!(below > 0, "what goes on stands under the text: {}", shown(&screen));
    screen.key(Action::Wrap);
    screen.key(Action::Right);
    assert_eq!(rows_with(&screen, "! ") - rows_with(&screen, "! warning"), 1, "{}", shown(&screen));
}

#[test]
fn what_came_since_it_stopped_is_told_in_lines() {
    let mut screen = log_screen();
    screen.key(Action::Up);
    screen.ui.log.window.number = Some(1_601);
    screen.ui.log.window.fresh = Some(214);
    assert!(
        shown(&screen).contains(", 214 new") && shown(&screen).contains("AT LINE 16"),
        "{}",
        shown(&screen)
    );
    screen.ui.log.window.number = None;
    screen.ui.log.window.begin = 1 << 30;
    assert!(shown(&screen).contains("AT LINE ~"));
    screen.ui.log.only = Some(Pattern::new("step").unwrap());
    screen.ui.log.stopped_at = Some(43 << 30);
    screen.ui.log.window.size = 100 << 30;
    assert!(shown(&screen).contains("AT 43%, 214 new  &step"), "{}", shown(&screen));
    screen.ui.log.only = None;
    screen.key(Action::Follow);
    assert!(shown(&screen).contains("FOLLOW"));
}

// ---- how one stands with the scheduler ----

#[test]
fn without_a_scheduler_numbers_are_dim_ages_grow_and_it_can_be_started() {
    let mut screen = Counted::new((80, 24), Depth::C256);
    let live = shown(&screen);
    let lost = Connection::Lost { why: "the scheduler has ended".into(), retry_in: Span(4_000) };
    let now = screen.ui.now;
    let told = receive(&mut screen.ui, &mut screen.snap, FeedEvent::Connection(lost), now);
    assert_eq!(told, Vec::new());
    assert!(shown(&screen).contains("NO DAEMON retry in 4 s"), "{}", shown(&screen));
    let nobody = Reply::Unavailable { message: "no scheduler: nothing was changed".into() };
    let refused = FeedEvent::Reply { asked: Asked::Command(None), reply: Box::new(nobody) };
    receive(&mut screen.ui, &mut screen.snap, refused, now);
    assert!(shown(&screen).contains("NO DAEMON"), "nobody has answered: {}", shown(&screen));
    (screen.ui.message, screen.ui.behind) = (None, None);
    let mut buf = Buffer::empty(Rect::new(0, 0, 80, 24));
    paint(&mut buf, &screen.ui, &screen.snap, &screen.theme);
    let stale = screen.theme.style(overnight::tui::Role::Stale);
    assert!(buf[(20, 8)].style().patch(stale) == buf[(20, 8)].style(), "dim");
    screen.ui.now = screen.ui.now.plus(Span::secs(65));
    assert_ne!(shown(&screen), live, "ages grow");
    assert_eq!(update(&mut screen.ui, Action::Start, &screen.snap, now), Vec::new());
    screen.ui.can_start = true;
    assert_eq!(update(&mut screen.ui, Action::Start, &screen.snap, now), vec![UiCommand::Start]);
    screen.ui.known = false;
    assert_eq!(update(&mut screen.ui, Action::Open, &screen.snap, now), vec![UiCommand::Start]);
    // Selection and filter are what they were when it is back.
    screen.ui.known = true;
    screen.ui.filters.jobs = "young".into();
    settle(&mut screen.ui, &screen.snap);
    let (job, top) = (screen.ui.queue_job, screen.ui.tops.clone());
    let again = FeedEvent::Snapshot(Box::new(screen.snap.clone()));
    receive(&mut screen.ui, &mut screen.snap, again, now);
    assert!(screen.ui.connected());
    assert_eq!((screen.ui.queue_job, &screen.ui.tops, screen.ui.filters.jobs.text()), (job, &top, "young"));
    assert_eq!(update(&mut screen.ui, Action::Start, &screen.snap, now), Vec::new(), "it runs");
}

#[test]
fn a_job_that_ended_is_told_to_whoever_does_not_look() {
    let mut screen = Counted::new((80, 24), Depth::C256);
    let mut next = screen.snap.clone();
    let row = next.jobs.remove(0);
    let ended = fixtures::done((*row).clone(), 0, 60, Outcome::Succeeded);
    next.history.insert(0, Arc::new(JobRow { state: Cursor::Done, generation: Generation(9), ..ended }));
    let now = screen.ui.now;
    let told = receive(&mut screen.ui, &mut screen.snap, FeedEvent::Snapshot(Box::new(next)), now);
    let text = format!("overnight: #{} young", row.id);
    assert!(matches!(told.as_slice(), [UiCommand::Notify(said)] if said.starts_with(&text)), "{told:?}");
}

// ---- in a terminal ----

fn dashboard(child: &str, size: (u16, u16)) -> Terminal {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", child, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("TERM", "xterm-256color");
    Terminal::run(command, size)
}

fn now_ms() -> u64 {
    clock::monotonic().0
}

/// Bytes that come within a time.
fn bytes_within(terminal: &mut Terminal, ms: u64) -> usize {
    let (before, until) = (terminal.bytes.len(), now_ms() + ms);
    while now_ms() < until {
        terminal.read(50);
    }
    terminal.bytes.len() - before
}

#[test]
fn a_scheduler_that_never_answers_does_not_hold_up_the_cursor() {
    let mut terminal = dashboard("child_silent", (80, 24));
    terminal.wait_for(">   142");
    let begun = now_ms();
    terminal.press("jj");
    terminal.wait_for(">   144");
    terminal.press("k");
    terminal.wait_for(">   143");
    assert!(now_ms() - begun < 5_000);
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_full_terminal_is_left_out_keys_are_heard_and_the_newest_is_drawn() {
    let mut terminal = dashboard("child_lively", (200, 50));
    terminal.wait_for("LIVE");
    // Nobody reads: screen after screen is asked for until nothing more goes in.
    for _ in 0..60 {
        terminal.press("\x0c2\x0c1");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    terminal.press("MMMMMM1:");
    std::thread::park_timeout(Duration::from_millis(500));
    let before = terminal.bytes.len();
    terminal.wait_for("Actions");
    let came = terminal.bytes.len() - before;
    assert!(came < 400_000, "frames were queued: {came}");
    let asked = String::from_utf8_lossy(&terminal.bytes).matches("\x1b[?1000h").count();
    assert!(asked <= 1, "six times on and off, and what is true in the end is off: {asked}");
    terminal.press("\x1b");
    terminal.wait_for("sends fewer bytes");
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
}

/// A key is held until low bandwidth is offered: what comes is no more than a link of 64 kbit/s carries, however fast this
/// one is. It is late on no link then.
#[test]
fn a_key_held_over_a_network_asks_for_no_more_than_a_slow_link_carries() {
    for size in [(80, 24), (200, 50)] {
        let mut terminal = dashboard("child_remote", size);
        terminal.wait_for("LIVE");
        let (before, begun, mut pressed) = (terminal.bytes.len(), now_ms(), 0);
        while !terminal.screen().contains("sends fewer bytes") {
            assert!(now_ms() - begun < 30_000, "nothing was offered:\n{}", terminal.screen());
            terminal.press("j");
            pressed += 1;
            let until = now_ms() + 33;
            while now_ms() < until {
                terminal.read(until - now_ms());
            }
        }
        let (spent, came) = (now_ms() - begun, terminal.bytes.len() - before);
        // A frame that was under way before, one that is drawn whatever it takes, and the purse.
        let most = 3 * 8_000 + 6 * spent as usize;
        println!("{size:?}: {pressed} keys in {spent} ms, {came} bytes");
        assert!(came <= most, "{size:?}: {came} bytes in {spent} ms");
        terminal.press(":");
        terminal.wait_for("Actions");
        terminal.press("\x1b");
        terminal.press("q");
        assert_eq!(terminal.end(), 0);
    }
}

#[test]
fn a_full_terminal_does_not_keep_the_dashboard() {
    let mut terminal = dashboard("child_stuck", (200, 50));
    terminal.wait_for("LIVE");
    for _ in 0..60 {
        terminal.press("\x0c2\x0c1");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    terminal.press("q");
    let begun = now_ms();
    while std::path::Path::new(&format!("/proc/{}/exe", terminal.pid())).exists() {
        assert!(now_ms() - begun < 10_000, "it hangs in the full terminal");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

#[test]
fn a_thousand_lines_a_second_cost_ten_kilobytes_and_keys_answer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.txt");
    std::fs::write(&path, "begun\n").unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child_log", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("TERM", "xterm-256color").current_dir(dir.path());
    let mut terminal = Terminal::run(command, (200, 50));
    terminal.wait_for("begun");
    let (stop, stopped) = channel::<()>();
    let printer = std::thread::spawn(move || {
        let mut log = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        let mut n = 0;
        while stopped.recv_timeout(Duration::from_millis(20)).is_err() {
            let mut lines = Vec::new();
            for n in n..n + 20 {
                writeln!(lines, "step {n}/900000 loss 0.{:04} acc 0.713", n * 37 % 9973).unwrap();
            }
            log.write_all(&lines).unwrap();
            n += 20;
        }
    });
    terminal.wait_for("step ");
    let rate = bytes_within(&mut terminal, 5_000) / 5;
    println!("{rate} B/s");
    assert!((500..10_000).contains(&rate), "{rate} B/s");
    let begun = now_ms();
    terminal.press("?");
    terminal.wait_for("Keys");
    assert!(now_ms() - begun < 3_000);
    stop.send(()).unwrap();
    printer.join().unwrap();
    terminal.press("\x1bq");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn sizes_that_change_all_the_time_leave_no_fragments() {
    let mut terminal = dashboard("child_quiet", (80, 24));
    terminal.wait_for("LIVE");
    let mut seed = 4711_u32;
    for _ in 0..60 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (width, height) = (20 + (seed >> 8) % 200, 5 + (seed >> 20) % 50);
        terminal.resize((width as u16, height as u16));
        terminal.read(u64::from(seed >> 28));
    }
    terminal.resize((120, 40));
    terminal.wait_for("Meter  61.02 GPU-h today");
    while terminal.read(500) {}
    let after_storm = terminal.screen();
    terminal.bytes.clear();
    terminal.press("\x0c");
    terminal.wait_for("Meter  61.02 GPU-h today");
    while terminal.read(500) {}
    assert!(terminal.bytes.windows(4).any(|bytes| bytes == b"\x1b[2J"), "drawn anew");
    assert_eq!(terminal.screen(), after_storm);
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
}

fn status_kib(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Milliseconds from a key to its frame.
fn key_to_frame(terminal: &mut Terminal, key: &str) -> u64 {
    while terminal.read(100) {}
    let begun = now_ms();
    terminal.press(key);
    assert!(terminal.read(5_000), "nothing was drawn");
    now_ms() - begun
}

#[test]
fn ten_thousand_jobs_fit_into_forty_mebibytes_and_a_key_is_seen_at_once() {
    let mut terminal = dashboard("child_crowd", (200, 50));
    terminal.wait_for("10000 jobs");
    let mut times: Vec<u64> =
        (0..20).map(|n| key_to_frame(&mut terminal, if n % 3 == 2 { "k" } else { "j" })).collect();
    times.sort_unstable();
    let (median, worst) = (times[10], times[19]);
    let rss = status_kib(terminal.pid(), "VmRSS:");
    println!("a key among 10,000 jobs: median {median} ms, worst {worst} ms; {rss} KiB resident");
    assert!(rss < 40 * 1024, "{rss} KiB");
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
}

/// Half a gigabyte takes minutes where the disk is slow: `LOG_MIB=500 cargo test --release --test dashboard_wire -- large`.
#[test]
#[expect(clippy::disallowed_methods, reason = "how large a log is tried is handed over in the environment")]
fn a_large_log_opens_at_its_end_and_is_searched_in_little_memory() {
    let mib: usize = std::env::var("LOG_MIB").ok().and_then(|mib| mib.parse().ok()).unwrap_or(64);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.txt");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let lines = mib * 1024 * 1024 / 64;
    for n in 0..lines {
        let mark = if n == lines / 3 { "MARK" } else { "loss" };
        writeln!(file, "{n:09} step of a job that prints and prints {mark} 0.12345").unwrap();
    }
    drop(file);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child_log", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("TERM", "xterm-256color").current_dir(dir.path());
    let begun = now_ms();
    let mut terminal = Terminal::run(command, (80, 24));
    terminal.wait_for(&format!("log| {:09}", lines - 1));
    let opened = now_ms() - begun;
    terminal.press("l");
    terminal.wait_for("FOLLOW");
    let begun = now_ms();
    terminal.press("/MARK\r");
    terminal.wait_for(&format!("AT LINE {}", lines / 3 + 1));
    let searched = now_ms() - begun;
    terminal.press("gg");
    terminal.wait_for("\n000000000 step");
    terminal.press("&re:^[0-9]*0{4} \r");
    terminal.wait_for("\n000010000 step");
    terminal.press("G");
    terminal.wait_for(&format!("\n{:09} step", (lines - 1) / 10_000 * 10_000));
    let peak = status_kib(terminal.pid(), "VmHWM:");
    println!("{mib} MiB: opened in {opened} ms, searched in {searched} ms, at most {peak} KiB resident");
    assert!(peak < 60 * 1024, "{peak} KiB");
    // The start of the program, its first snapshot and a debug build are in it.
    assert!(opened < 2_000, "{opened} ms");
    terminal.press("qq");
    assert_eq!(terminal.end(), 0);
}

// ---- what runs inside the terminal ----

/// News every two seconds: the figures of the devices.
fn figures_every_two_seconds(mut snap: Snapshot, say: &Sender<ServerMessage>) {
    for n in 1.. {
        std::thread::park_timeout(Duration::from_secs(2));
        sample(&mut snap.gpus, n);
        let FeedEvent::Update(update) = figures(&snap, snap.revision.0 + 1, snap.gpus.clone()) else {
            return;
        };
        snap.revision = update.revision;
        if say.send(ServerMessage::Update(update)).is_err() {
            return;
        }
    }
}

fn show(double: Double) {
    show_to(double, false);
}

fn show_to(double: Double, remote: bool) {
    let options = Options {
        remote,
        depth: Depth::C256,
        glyphs: Glyphs::Unicode,
        tz: jiff::tz::TimeZone::UTC,
        theme_dir: None,
        ..Options::from_lookup(&|_| None)
    };
    assert_eq!(run(options, double).unwrap(), Exit::Quit);
}

/// Now, not the fixtures' day: timers run on.
fn brought_to_now(snap: &mut Snapshot) {
    let by = clock::now().wall_ms - fixtures::now().wall_ms;
    snap.meter.today_began += by;
    for row in &mut snap.jobs {
        let row = Arc::make_mut(row);
        row.submitted_at += by;
        for at in [&mut row.rented_at, &mut row.started_at] {
            *at = at.map(|at| at + by);
        }
    }
}

/// Young jobs and eight devices whose figures change.
#[test]
#[ignore = "runs inside the terminal of another test"]
fn child_lively() {
    let mut snap = Counted::new((80, 24), Depth::C256).snap;
    brought_to_now(&mut snap);
    show(Double::new(snap).telling(figures_every_two_seconds));
}

/// Like `child_lively`, and says nothing after it: the terminal may be full.
#[test]
#[expect(clippy::disallowed_methods, reason = "the end of the program in the terminal")]
#[ignore = "runs inside the terminal of another test"]
fn child_stuck() {
    child_lively();
    std::process::exit(0);
}

/// Nothing moves by itself: jobs wait, none runs, and each has waited whole minutes, so that no
/// age changes for the next one.
#[test]
#[ignore = "runs inside the terminal of another test"]
fn child_quiet() {
    const MINUTE_MS: i64 = 60_000;
    let mut snap = fixtures::busy();
    snap.jobs.retain(|row| row.state == Cursor::Queued);
    brought_to_now(&mut snap);
    for row in &mut snap.jobs {
        let row = Arc::make_mut(row);
        row.submitted_at += (clock::now().wall_ms - row.submitted_at) % MINUTE_MS;
    }
    show(Double::new(snap));
}

#[test]
#[ignore = "runs inside the terminal of another test"]
fn child_silent() {
    show(Double::new(fixtures::busy()).silent());
}

/// Ten thousand jobs wait, at the other end of a network.
#[test]
#[ignore = "runs inside the terminal of another test"]
fn child_remote() {
    show_to(Double::new(ten_thousand()), true);
}

#[test]
#[ignore = "runs inside the terminal of another test"]
fn child_crowd() {
    show(Double::new(ten_thousand()));
}

fn ten_thousand() -> Snapshot {
    let mut snap = crowd::crowd(10_000);
    snap.jobs.retain(|row| row.state == Cursor::Queued);
    let missing = 10_000 - snap.jobs.len() as u64;
    for n in 0..missing {
        snap.jobs.push(Arc::new(fixtures::waiting(
            fixtures::job(90_000 + n, "me", "last", 1),
            9_999,
            1,
            "behind others",
        )));
    }
    snap
}

/// The job under the cursor logs into the current directory.
#[test]
#[ignore = "runs inside the terminal of another test"]
fn child_log() {
    let mut snap = fixtures::busy();
    snap.jobs.retain(|row| row.id == JobId(142));
    Arc::make_mut(&mut snap.jobs[0]).log = "log.txt".into();
    show(Double::new(snap));
}

/// What waits for long: `.ci/run` has them, and `cargo test --test NAME -- --ignored long::`.
mod long {
    use super::*;

    #[test]
    #[ignore = "long"]
    fn eight_busy_devices_stay_within_the_rate_through_a_terminal() {
        let stays_within = |size: (u16, u16), most: usize| {
            let mut terminal = dashboard("child_lively", size);
            terminal.wait_for("LIVE");
            bytes_within(&mut terminal, 1_500);
            let rate = bytes_within(&mut terminal, 10_000) / 10;
            println!("{size:?}: {rate} B/s");
            assert!(rate <= most, "{size:?}: {rate} B/s");
            assert!(rate > 20, "{size:?}: something moves: {rate} B/s");
            // Nobody looks: one frame in ten seconds.
            terminal.press("\x1b[O");
            bytes_within(&mut terminal, 300);
            let unseen = bytes_within(&mut terminal, 8_000);
            assert!(unseen < 8_000, "{unseen}");
            let frames = String::from_utf8_lossy(&terminal.bytes[terminal.bytes.len() - unseen..])
                .matches("\x1b[?2026h")
                .count();
            assert!(frames <= 1, "{frames}");
            terminal.press("\x1b[I");
            // News comes every two seconds, and now it is drawn.
            assert!(bytes_within(&mut terminal, 3_000) > 0, "looked at, it is drawn");
            terminal.press("q");
            assert_eq!(terminal.end(), 0);
        };
        // Both spend their time waiting.
        std::thread::scope(|scope| {
            for (size, most) in [((80, 24), 600), ((200, 50), 2_200)] {
                scope.spawn(move || stays_within(size, most));
            }
        });
    }
}
