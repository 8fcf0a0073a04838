//! The dashboard of a picture: the real one in a terminal, over a scheduler that says what the fixtures say, at one moment.

use crate::double::Double;
use crate::{fixtures, looks};
use overnight::model::JobId;
use overnight::protocol::{Query, Reply, Request, Snapshot};
use overnight::tui::{Depth, Exit, Glyphs, Options, run};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Shows it until `q`. The log is in the directory it was started in.
pub(crate) fn show(theme: &str) {
    let mut snap = fixtures::busy();
    let log = Path::new("log.txt");
    let mut file = std::fs::File::create(log).unwrap();
    for line in &fixtures::log().window.lines {
        writeln!(file, "{}", line.text).unwrap();
    }
    for row in snap.jobs.iter_mut().filter(|row| row.id == JobId(144)) {
        log.clone_into(&mut Arc::make_mut(row).log);
    }
    let options = Options {
        theme: theme.to_owned(),
        theme_dir: None,
        depth: if theme == "mono" { Depth::Mono } else { Depth::True },
        glyphs: Glyphs::Unicode,
        clock: fixtures::now,
        tz: jiff::tz::TimeZone::UTC,
        me: "me".to_owned(),
        ..Options::from_lookup(&|_| None)
    };
    assert_eq!(run(options, Double::new(snap).answering(answer)).unwrap(), Exit::Quit);
}

/// What the screens ask for besides the snapshot.
fn answer(snap: &Snapshot, request: &Request) -> Option<Reply> {
    let Request::Query(query) = request else { return None };
    Some(match query {
        Query::GpuHistory { span_ms, .. } => {
            Reply::GpuHistory(Box::new(looks::telemetry(snap, span_ms.unwrap_or(1_200_000))))
        }
        Query::Timeline { from_ms, until_ms } => {
            let of = |at: &Option<i64>| at.map_or(0, |at| at - fixtures::WALL_MS);
            Reply::Timeline(Box::new(looks::timeline(of(from_ms), of(until_ms))))
        }
        Query::Meter { by, since_ms, .. } => Reply::Meter(looks::ledger(*by, *since_ms)),
        _ => return None,
    })
}
