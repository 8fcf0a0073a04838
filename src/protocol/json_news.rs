//! A line of `watch --json`.

use super::json::At;
use super::{GpuRow, JobRow, NoticeLevel};
use jiff::tz::TimeZone;
use serde::Serialize;

/// What a line tells of.
#[derive(Debug, Clone, Copy)]
pub enum About<'a> {
    /// The state of a job.
    Job(&'a JobRow),
    /// The state of a device.
    Gpu(&'a GpuRow),
    /// A file that was refused, or is no more.
    Inbox {
        /// Its name.
        name: &'a str,
        /// What became of it: `refused`, `accepted`, `removed`.
        state: &'static str,
    },
    /// What an operator must know; `None`: does not have to any more.
    Notice {
        /// How bad.
        level: Option<NoticeLevel>,
    },
    /// The connection to the scheduler.
    Connection {
        /// Whether it is there.
        live: bool,
    },
}

/// A line of `watch --json`.
#[derive(Debug, Serialize)]
pub struct News<'a> {
    schema: u32,
    at: At<'a>,
    about: &'static str,
    job: Option<u64>,
    name: Option<&'a str>,
    user: Option<&'a str>,
    gpu: Option<u32>,
    state: Option<&'static str>,
    outcome: Option<&'static str>,
    why: Option<&'a str>,
    text: &'a str,
}

impl<'a> News<'a> {
    /// The line, with what is said of it to people.
    pub fn new(about: &'a About<'a>, text: &'a str, at: i64, zone: &'a TimeZone) -> Self {
        let mut news = Self {
            schema: 1,
            at: At(at, zone),
            about: "connection",
            job: None,
            name: None,
            user: None,
            gpu: None,
            state: None,
            outcome: None,
            why: None,
            text,
        };
        match about {
            About::Job(row) => {
                (news.about, news.job) = ("job", Some(row.id.0));
                (news.name, news.user) = (Some(row.name.as_str()), Some(row.user.as_str()));
                (news.state, news.why) = (Some(row.state.word()), row.why.as_deref());
                news.outcome = row.outcome.as_ref().map(crate::model::Outcome::word);
            }
            About::Gpu(row) => {
                (news.about, news.gpu) = ("gpu", Some(row.index));
                (news.state, news.why) = (Some(row.state.word()), row.detail.as_deref());
            }
            About::Inbox { name, state } => {
                (news.about, news.name, news.state) = ("inbox", Some(*name), Some(*state));
            }
            About::Notice { level } => {
                news.about = "notice";
                news.state = Some(match level {
                    Some(NoticeLevel::Error) => "error",
                    Some(NoticeLevel::Warning) => "warning",
                    Some(NoticeLevel::Info) => "info",
                    None => "over",
                });
            }
            About::Connection { live } => news.state = Some(if *live { "live" } else { "lost" }),
        }
        news
    }
}
