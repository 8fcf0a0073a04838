use super::count::LineCount;
use super::finder::Finder;
use super::looking::{KEPT_MS, Looking};
use super::sieve::Sieve;
use super::*;
use crate::supervisor::log::LogFile;
use crate::supervisor::marks;
use crate::supervisor::marks::Stream;
use crate::tui::shell::feed::FeedEvent;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender};

fn file(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.txt");
    std::fs::write(&path, content).unwrap();
    (dir, path)
}

fn numbered(lines: usize) -> Vec<u8> {
    (0..lines).flat_map(|n| format!("line {n:07}\n").into_bytes()).collect()
}

#[test]
fn the_tail_of_a_large_file_is_whole_lines_only() {
    let (_dir, path) = file(&numbered(100_000));
    let window = read_window(&path, LogFrom::Tail).unwrap();
    assert_eq!(window.lines.last().unwrap().text, "line 0099999");
    assert!(window.lines.iter().all(|line| line.text.len() == 12), "{:?}", window.lines.first());
    assert!(window.lines.len() < 6000);
    assert_eq!(window.end, window.size);
}

#[test]
fn a_place_is_the_byte_its_line_begins_at() {
    let (_dir, path) = file(&numbered(100_000));
    let window = read_window(&path, LogFrom::Around(13 * 50_000)).unwrap();
    let line = window.lines.iter().find(|line| line.at == 13 * 50_000).unwrap();
    assert_eq!(line.text, "line 0050000");
    assert!(window.begin < line.at && window.end > line.at);
    let first = read_window(&path, LogFrom::Around(0)).unwrap();
    assert_eq!((first.begin, first.lines[0].text.as_str()), (0, "line 0000000"));
}

#[test]
fn an_unfinished_line_is_shown_and_a_progress_bar_is_one_line() {
    let (_dir, path) = file(b"one\n10%\r20%\r30%");
    let lines: Vec<String> =
        read_window(&path, LogFrom::Tail).unwrap().lines.into_iter().map(|l| l.text).collect();
    assert_eq!(lines, ["one", "30%"]);
    let bar: Vec<u8> = (0..200_000).flat_map(|n| format!("{n:06}\r").into_bytes()).collect();
    let (_dir, path) = file(&bar);
    let window = read_window(&path, LogFrom::Tail).unwrap();
    assert_eq!(window.lines.len(), 1);
    assert_eq!(window.lines[0].text, "199999");
}

const PATIENCE: Duration = Duration::from_secs(20);

fn reader() -> (Sender<LogMessage>, Receiver<FeedEvent>, std::thread::JoinHandle<()>) {
    let (send, wants) = std::sync::mpsc::channel();
    let (events, arrives) = std::sync::mpsc::channel();
    let reader = LogReader { wants, wake: send.clone(), events, pause: Duration::from_millis(10) };
    (send, arrives, std::thread::spawn(move || reader.run()))
}

fn want(path: &Path, from: LogFrom) -> LogWant {
    LogWant { path: path.to_owned(), from, only: None, since: None }
}

/// The next window that is as it should be.
fn until(arrives: &Receiver<FeedEvent>, is: impl Fn(&LogWindow) -> bool) -> LogWindow {
    loop {
        match arrives.recv_timeout(PATIENCE).unwrap() {
            FeedEvent::Log(window) if is(&window) => return *window,
            _ => {}
        }
    }
}

fn last(window: &LogWindow) -> &str {
    window.lines.last().map_or("", |line| &line.text)
}

#[test]
fn a_growing_file_is_shown_as_it_grows_and_nothing_is_read_when_nothing_is_wanted() {
    let (_dir, path) = file(b"one\n");
    let (send, arrives, thread) = reader();
    send.send(LogMessage::Want(Some(want(&path, LogFrom::Tail)))).unwrap();
    until(&arrives, |window| last(window) == "one");
    let mut log = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    for n in 0..3 {
        writeln!(log, "more {n}").unwrap();
        until(&arrives, |window| last(window) == format!("more {n}"));
    }
    send.send(LogMessage::Want(None)).unwrap();
    writeln!(log, "unseen").unwrap();
    send.send(LogMessage::Changed).unwrap();
    drop(arrives);
    // The thread has nobody to tell: the next window ends it.
    send.send(LogMessage::Want(Some(want(&path, LogFrom::Tail)))).unwrap();
    thread.join().unwrap();
}

#[test]
fn each_line_is_told_by_the_mark_that_holds_at_its_end_also_behind_a_link() {
    let (dir, path) = file(b"out\nerr\n10%\r20%\nlast");
    let marks = [(0_u128, 1_u128, 1_u128), (4, 2, 1), (12, 2, 5), (16, 1, 5)];
    let records: Vec<u8> = marks
        .iter()
        .flat_map(|(at, stream, second)| (at | stream << 56 | second << 58).to_le_bytes()[..12].to_vec())
        .collect();
    std::fs::write(dir.path().join(marks::NAME), records).unwrap();
    let jobs = tempfile::tempdir().unwrap();
    let link = jobs.path().join("log.txt");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let seen = |want: LogWant| {
        let mut looking = Looking::new(want);
        looking.look();
        while let Some(sieve) = looking.sieve.as_mut().filter(|sieve| !sieve.is_done()) {
            sieve.step(looking.file.as_mut().unwrap()).unwrap();
        }
        let lines = looking.window().lines.into_iter();
        lines.map(|line| (line.text, line.mark.stream, line.mark.second)).collect::<Vec<_>>()
    };
    let line = |text: &str, stream, second| (text.to_owned(), Some(stream), Some(second));
    let all = [
        line("out", Stream::Out, 1),
        line("err", Stream::Err, 1),
        line("20%", Stream::Err, 5),
        line("last", Stream::Out, 5),
    ];
    assert_eq!(seen(want(&link, LogFrom::Tail)), all);
    let only = Some(Pattern::new("re:[0t]").unwrap());
    let sifted = [all[0].clone(), all[2].clone(), all[3].clone()];
    assert_eq!(seen(LogWant { only, ..want(&link, LogFrom::Tail) }), sifted);
    std::fs::remove_file(dir.path().join(marks::NAME)).unwrap();
    assert!(
        seen(want(&link, LogFrom::Tail))
            .iter()
            .all(|(_, stream, second)| stream.is_none() && second.is_none())
    );
}

#[test]
fn a_filtered_log_keeps_its_lines_however_often_its_last_one_grows() {
    let (_dir, path) = file(b"one it/s\ntwo it/s\n");
    let mut log = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    let mut opened = LogFile::open(&path).unwrap();
    let mut sieve = Sieve::new(Pattern::new("it/s").unwrap(), LogFrom::Tail, opened.size());
    for n in 0..600 {
        write!(log, "{n:>500} it/s\r").unwrap();
        opened.look().unwrap();
        sieve.grown();
        while !sieve.is_done() {
            sieve.step(&mut opened).unwrap();
        }
    }
    let lines: Vec<String> = sieve.found(opened.size()).0.into_iter().map(|line| line.text).collect();
    assert_eq!(lines[..2], ["one it/s", "two it/s"]);
    assert_eq!(lines[2].trim(), "599 it/s");
}

#[test]
fn a_filter_shows_where_lines_are_missing() {
    let mark = "--- overnight: 3.0 MiB of the log were cut here; it may have 8.0 MiB ---";
    let (_dir, path) = file(format!("a 1\nb\n\n{mark}\nc\na 2\n").as_bytes());
    for (typed, wanted) in
        [("re:^a", vec!["a 1", mark, "a 2"]), ("overnight", vec![mark]), ("c", vec![mark, "c"])]
    {
        let mut opened = LogFile::open(&path).unwrap();
        let mut sieve = Sieve::new(Pattern::new(typed).unwrap(), LogFrom::Tail, opened.size());
        while !sieve.is_done() {
            sieve.step(&mut opened).unwrap();
        }
        let lines: Vec<String> = sieve.found(opened.size()).0.into_iter().map(|line| line.text).collect();
        assert_eq!(lines, wanted, "{typed}");
    }
}

#[test]
fn a_file_that_shrinks_is_replaced_or_goes_keeps_its_last_lines() {
    let (dir, path) = file(b"one\ntwo\n");
    let none = dir.path().join("none");
    let mut looking = Looking::new(want(&none, LogFrom::Tail));
    looking.look();
    assert_eq!(looking.window().state, LogState::NotYet);
    let mut looking = Looking::new(want(&path, LogFrom::Tail));
    let see = |looking: &mut Looking| {
        looking.look();
        looking.told = looking.window();
        (looking.told.state.clone(), looking.told.lines.len())
    };
    let is_over = |looking: &mut Looking| looking.lost_ms -= KEPT_MS.min(looking.lost_ms);
    assert_eq!(see(&mut looking), (LogState::There, 2));
    std::fs::write(&path, "x\n").unwrap();
    let append = |text: &[u8]| {
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(text).unwrap();
    };
    for after in [b"y\n" as &[u8], b"", b"z\n", b""] {
        let seen = see(&mut looking);
        assert!(matches!(seen, (LogState::Truncated(_), 2)), "kept though the job goes on: {seen:?}");
        append(after);
    }
    is_over(&mut looking);
    assert_eq!(see(&mut looking), (LogState::There, 3), "what came meanwhile is shown");
    std::fs::write(&path, "").unwrap();
    assert!(matches!(see(&mut looking), (LogState::Truncated(_), 3)));
    is_over(&mut looking);
    assert!(matches!(see(&mut looking), (LogState::Truncated(_), 3)), "until there is something else");
    append(b"z\n");
    assert_eq!(see(&mut looking), (LogState::There, 1));
    std::fs::write(&none, "another\nattempt\n").unwrap();
    std::fs::rename(&none, &path).unwrap();
    for _ in 0..2 {
        let seen = see(&mut looking);
        assert!(matches!(seen, (LogState::Replaced(_), 2)), "its end, and that it is another: {seen:?}");
    }
    is_over(&mut looking);
    assert_eq!(see(&mut looking), (LogState::There, 2));
    let other = dir.path().join("other");
    std::fs::write(&other, "back\n").unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(see(&mut looking), (LogState::Gone, 2));
    assert_eq!(see(&mut looking), (LogState::Gone, 2));
    std::fs::rename(&other, &path).unwrap();
    assert!(matches!(see(&mut looking), (LogState::Replaced(_), 1)), "not the one that went");
}

#[test]
fn a_log_whose_middle_is_cut_is_shown_where_it_has_lines_and_to_its_end_when_it_is_put_together() {
    let (_dir, path) = file(&numbered(300_000));
    let log = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let (from, to) = (1_u64 << 20, 3_u64 << 20);
    let hole = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    if rustix::fs::fallocate(&log, hole, from, to - from).is_err() {
        println!("SKIPPED: the file system makes no holes");
        return;
    }
    let beside = read_window(&path, LogFrom::Around(2 << 20)).unwrap();
    let gap = beside.lines.iter().position(|line| line.at >= to).unwrap();
    assert!(gap > 1000 && beside.lines[gap - 1].end == from && beside.lines[gap].at == to);
    // Up from the end, as far as each window reaches.
    let (mut at, mut seen) = (300_000 * 13, Vec::new());
    while at > 0 {
        let window = read_window(&path, LogFrom::Around(at)).unwrap();
        let above = window.lines.iter().take_while(|line| line.at < at);
        seen.splice(0..0, above.map(|line| line.text.clone()));
        assert!(window.begin < at, "it goes on upwards");
        at = window.begin;
    }
    let (head, tail) = (from / 13, (300_000 * 13 - to) / 13);
    assert_eq!(seen.len() as u64, head + 1 + tail + 1, "each line once, half of one on either side");
    assert!(seen.iter().all(|line| !line.is_empty() && !line.contains('\0')));
    // Searches, filters and counts do without the hole too.
    let mut opened = LogFile::open(&path).unwrap();
    let mut find = |from, forward| {
        let pattern = Pattern::new("re:line 0(080000|250000)").unwrap();
        let ask = LogFind { id: 1, pattern, only: None, from, inclusive: false, forward };
        let mut finder = Finder::new(ask);
        let mut pieces = 0;
        loop {
            pieces += 1;
            match finder.step(&mut opened).unwrap() {
                LogFound::Searching(_) => {}
                found => return (found, pieces),
            }
        }
    };
    assert_eq!(find(13 * 250_000, false), (LogFound::Line(13 * 80_000, false), 2));
    assert_eq!(find(13 * 80_000, true), (LogFound::Line(13 * 250_000, false), 2));
    let mut sieve =
        Sieve::new(Pattern::new("re:(9999|0000)$").unwrap(), LogFrom::Around(2 << 20), opened.size());
    while !sieve.is_done() {
        sieve.step(&mut opened).unwrap();
    }
    let sifted: Vec<u64> = sieve.found(opened.size()).0.iter().map(|line| line.at / 13).collect();
    assert!(
        sifted.starts_with(&[0, 9_999, 10_000]) && sifted.ends_with(&[289_999, 290_000, 299_999]),
        "{sifted:?}"
    );
    let mut count = LineCount::default();
    while count.step(&mut opened).unwrap() {}
    assert_eq!(count.lines(), head + tail + 1, "the half line at the end of the head has no line feed");
    assert_eq!(count.number(&mut opened, 13 * 299_999).unwrap(), Some(count.lines()));
    let mut looking = Looking::new(want(&path, LogFrom::Tail));
    looking.look();
    looking.told = looking.window();
    let mut rest = vec![0; (300_000 * 13 - to) as usize];
    log.read_exact_at(&mut rest, to).unwrap();
    rest.extend(b"the end\n");
    log.write_all_at(&rest, from).unwrap();
    log.set_len(from + rest.len() as u64).unwrap();
    looking.look();
    let window = looking.window();
    assert_eq!((window.state.clone(), last(&window)), (LogState::There, "the end"));
}

#[test]
fn line_numbers_and_what_came_since_are_counted_beside() {
    let (_dir, path) = file(&numbered(300_000));
    let (send, arrives, _thread) = reader();
    let since = Some(13 * 300_000);
    let around = LogWant { since, ..want(&path, LogFrom::Around(13 * 200_000)) };
    send.send(LogMessage::Want(Some(around))).unwrap();
    let window = until(&arrives, |window| window.number.is_some() && window.fresh.is_some());
    assert_eq!(window.number, Some(window.begin / 13 + 1));
    assert_eq!(window.fresh, Some(0));
    let mut log = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    log.write_all(b"one\ntwo\nthree\n").unwrap();
    let window = until(&arrives, |window| window.fresh != Some(0) && window.fresh.is_some());
    assert_eq!(window.fresh, Some(3));
}

fn found(arrives: &Receiver<FeedEvent>, wanted: u64) -> LogFound {
    loop {
        match arrives.recv_timeout(PATIENCE).unwrap() {
            FeedEvent::Found(id, found) if id == wanted && !matches!(found, LogFound::Searching(_)) => {
                return found;
            }
            _ => {}
        }
    }
}

#[test]
fn a_search_goes_both_ways_and_round_over_pieces_of_any_size() {
    // Three pieces, a match at both ends and one in the middle.
    let mut log = numbered(200_000);
    log[13 * 100_000..13 * 100_000 + 4].copy_from_slice(b"MARK");
    let (_dir, path) = file(&log);
    let (send, arrives, _thread) = reader();
    send.send(LogMessage::Want(Some(want(&path, LogFrom::Tail)))).unwrap();
    let mut id = 0;
    let mut find_in = |only: Option<&str>, typed: &str, from: u64, inclusive: bool, forward: bool| {
        id += 1;
        let pattern = Pattern::new(typed).unwrap();
        let only = only.map(|only: &str| Pattern::new(only).unwrap());
        let find = LogFind { id, pattern, only, from, inclusive, forward };
        send.send(LogMessage::Find(Some(find))).unwrap();
        found(&arrives, id)
    };
    // Among the lines that are shown, whatever is between them.
    assert_eq!(find_in(Some("re:3$"), "0001", 0, true, true), LogFound::Line(13 * 13, false));
    assert_eq!(
        find_in(Some("re:3$"), "00015", 13 * 199_999, false, false),
        LogFound::Line(13 * 1_593, false)
    );
    let mut find = |typed: &str, from, inclusive, forward| find_in(None, typed, from, inclusive, forward);
    let middle = 13 * 100_000;
    for (from, forward, wraps) in
        [(0, true, false), (middle, true, true), (middle + 13, true, true), (13 * 199_999, false, false)]
    {
        assert_eq!(find("mark", from, false, forward), LogFound::Line(middle, wraps), "{from} {forward}");
    }
    assert_eq!(find("mark", middle, true, true), LogFound::Line(middle, false));
    assert_eq!(find("mark", middle, false, false), LogFound::Line(middle, true));
    assert_eq!(find("0000000", 13 * 5, false, false), LogFound::Line(0, false));
    assert_eq!(find("0199999", 0, false, false), LogFound::Line(13 * 199_999, true));
    assert_eq!(find("re:line 0000001$", 13 * 7, false, true), LogFound::Line(13, true));
    for forward in [true, false] {
        assert_eq!(find("nowhere", middle, false, forward), LogFound::Nothing);
    }
}

#[test]
fn a_filter_shows_matching_lines_only_around_any_place_and_as_the_file_grows() {
    let (_dir, path) = file(&numbered(300_000));
    let (send, arrives, _thread) = reader();
    let mut wish = want(&path, LogFrom::Tail);
    wish.only = Some(Pattern::new("re:00$").unwrap());
    send.send(LogMessage::Want(Some(wish.clone()))).unwrap();
    let window = until(&arrives, |window| !window.sifting);
    assert!(window.lines.len() > 900 && window.lines.iter().all(|line| line.text.ends_with("00")));
    assert_eq!(last(&window), "line 0299900");
    let mut log = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    log.write_all(b"line 03").unwrap();
    log.write_all(b"00000\nnot this\nand 00").unwrap();
    let window = until(&arrives, |window| !window.sifting && last(window) == "and 00");
    assert_eq!(window.lines[window.lines.len() - 2].text, "line 0300000");
    log.write_all(b"1\n").unwrap();
    until(&arrives, |window| !window.sifting && last(window) == "line 0300000");
    wish.from = LogFrom::Around(13 * 150_000);
    send.send(LogMessage::Want(Some(wish.clone()))).unwrap();
    let window = until(&arrives, |window| !window.sifting && window.begin < 13 * 150_000);
    assert!(window.lines.iter().any(|line| line.text == "line 0149900"));
    assert!(window.lines.iter().any(|line| line.text == "line 0150000"));
    // One line in the whole file, far from the place.
    wish.only = Some(Pattern::new("line 0000007").unwrap());
    send.send(LogMessage::Want(Some(wish))).unwrap();
    let window = until(&arrives, |window| !window.sifting && window.lines.len() == 1);
    assert_eq!((last(&window), window.begin), ("line 0000007", 0));
}
