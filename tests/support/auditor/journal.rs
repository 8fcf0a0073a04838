//! A supervisor's journal, taken apart byte by byte as its format is documented: a header, two heartbeat slots, records.

use super::evidence::Moment;
use serde::Deserialize;
use serde_json::Value;

const MAGIC: &[u8] = b"OVNJRNL\n";
const VERSION: u32 = 1;
const SLOTS: [usize; 2] = [512, 1024];
const SLOT_LEN: usize = 512;
/// Length and checksum before a payload.
const HEAD: usize = 12;

/// What one attempt's part of a journal says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Part {
    pub(crate) task: u32,
    pub(crate) attempt: u32,
    pub(crate) intent: Option<Moment>,
    /// The main process: number and start time in ticks.
    pub(crate) main: Option<(i32, u64)>,
    pub(crate) started: Option<Moment>,
    pub(crate) ended: Option<End>,
    pub(crate) collected: bool,
}

/// How a run ended, as its supervisor wrote it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct End {
    pub(crate) at: Moment,
    #[serde(rename = "end")]
    pub(crate) how: Value,
    pub(crate) by: String,
    pub(crate) suspended_ms: u64,
}

/// A journal.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Journal {
    pub(crate) lease: Option<u64>,
    pub(crate) token: Option<String>,
    pub(crate) job: Option<u64>,
    /// The supervisor: number and start time in ticks.
    pub(crate) supervisor: Option<(i32, u64)>,
    pub(crate) parts: Vec<Part>,
    /// Taken by a scheduler in place of a supervisor that never came.
    pub(crate) void: bool,
    /// The supervisor refused: why.
    pub(crate) not_launched: Option<String>,
    pub(crate) returned: bool,
    /// The newest sign of life of any kind.
    pub(crate) last_sign: Option<Moment>,
    /// The records end in bytes that are none.
    pub(crate) torn: bool,
}

/// Why bytes are no journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoJournal {
    /// Made ahead of a lease and not begun.
    Blank,
    /// Something else.
    Foreign(String),
}

impl Journal {
    /// Reads a journal's bytes.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, NoJournal> {
        if bytes.iter().take(16).all(|byte| *byte == 0) {
            return Err(NoJournal::Blank);
        }
        if bytes.get(..8) != Some(MAGIC) {
            return Err(NoJournal::Foreign("it does not begin like a journal".to_owned()));
        }
        let (version, records) = (number(bytes, 8), number(bytes, 12));
        if version != Some(VERSION) {
            return Err(NoJournal::Foreign(format!("its version is {version:?}")));
        }
        let mut journal = Self::default();
        let mut at = records.unwrap_or(4096) as usize;
        while let Some(payload) = framed(bytes, at, bytes.len()) {
            let record: Value =
                serde_json::from_slice(payload).map_err(|error| NoJournal::Foreign(error.to_string()))?;
            journal.take(&record).map_err(NoJournal::Foreign)?;
            at += (HEAD + payload.len()).next_multiple_of(8);
        }
        journal.torn = bytes.get(at..).is_some_and(|rest| rest.iter().any(|byte| *byte != 0));
        let beats = SLOTS.iter().filter_map(|slot| framed(bytes, *slot, slot + SLOT_LEN));
        for (_, beat) in beats.filter_map(|beat| serde_json::from_slice::<(u64, Value)>(beat).ok()) {
            journal.sign(moment(&beat["at"]).ok());
        }
        Ok(journal)
    }

    fn take(&mut self, record: &Value) -> Result<(), String> {
        if record == "unknown" {
            return Ok(());
        }
        let (kind, body) = record
            .as_object()
            .and_then(|fields| fields.iter().next())
            .ok_or_else(|| format!("a record is no object: {record}"))?;
        let at = moment(&body["at"])?;
        match kind.as_str() {
            "intent" => self.intent(body, &at)?,
            "started" => {
                let part = self.part(body)?;
                part.main = process(&body["main"]);
                part.started = Some(at.clone());
            }
            "ended" => {
                let end = serde_json::from_value(body.clone()).map_err(|error| error.to_string())?;
                // An attempt that was told to end before it began has no intent.
                match self.part(body) {
                    Ok(part) if part.ended.is_some() => return Err(format!("it ends twice: {body}")),
                    Ok(part) => part.ended = Some(end),
                    Err(_) => {}
                }
            }
            "collected" => {
                if let Ok(part) = self.part(body) {
                    part.collected = true;
                }
            }
            "not_launched" => self.not_launched = Some(body["why"].to_string()),
            "returned" => self.returned = true,
            "void" => {
                self.void = true;
                return Ok(());
            }
            // What was told, and what became of processes that did not answer their kill, changes no end.
            "told" | "outlived" | "gone" => {}
            other => return Err(format!("a record of kind {other}")),
        }
        self.sign(Some(at));
        Ok(())
    }

    fn intent(&mut self, body: &Value, at: &Moment) -> Result<(), String> {
        let number = |name: &str| body[name].as_u64().ok_or_else(|| format!("an intent without {name}"));
        let token = body["token"].as_str().map(str::to_owned);
        if self.lease.is_some_and(|lease| Some(lease) != body["lease"].as_u64()) || self.void {
            return Err("intents of different leases".to_owned());
        }
        (self.lease, self.job, self.token) = (Some(number("lease")?), Some(number("job")?), token);
        self.supervisor = process(&body["supervisor"]);
        self.parts.push(Part {
            task: number("task")? as u32,
            attempt: number("attempt")? as u32,
            intent: Some(at.clone()),
            ..Part::default()
        });
        Ok(())
    }

    fn part(&mut self, body: &Value) -> Result<&mut Part, String> {
        self.parts
            .iter_mut()
            .find(|part| body["task"] == part.task && body["attempt"] == part.attempt)
            .ok_or_else(|| format!("a record of an attempt without an intent: {body}"))
    }

    fn sign(&mut self, at: Option<Moment>) {
        let Some(at) = at else { return };
        let newer = self
            .last_sign
            .as_ref()
            .is_none_or(|last| last.boot != at.boot || last.boottime_ms <= at.boottime_ms);
        if newer {
            self.last_sign = Some(at);
        }
    }
}

fn moment(value: &Value) -> Result<Moment, String> {
    serde_json::from_value(value.clone()).map_err(|error| format!("no moment in {value}: {error}"))
}

fn process(value: &Value) -> Option<(i32, u64)> {
    Some((i32::try_from(value["pid"].as_i64()?).ok()?, value["starttime"].as_u64()?))
}

/// The payload at a place, if it is whole: length, the first eight bytes of its BLAKE3, bytes.
fn framed(bytes: &[u8], at: usize, until: usize) -> Option<&[u8]> {
    let len = number(bytes, at)? as usize;
    let end = at + HEAD + len;
    if len == 0 || end > until {
        return None;
    }
    let payload = bytes.get(at + HEAD..end)?;
    (bytes.get(at + 4..at + HEAD)? == &blake3::hash(payload).as_bytes()[..8]).then_some(payload)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}
