//! What people are told: receipts, returned files and the meter's tables, held against what the leases come to.

use super::evidence::{Evidence, LeaseRow, word};
use super::lives::{JobLife, Lives};
use super::{Findings, Place};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

/// Of what is larger than this only the size is compared.
const LARGE: u64 = 64 << 20;

/// Every job that is done has one receipt, and it says what the store says.
pub(crate) fn receipts(place: &Place, evidence: &Evidence, lives: &Lives, findings: &mut Findings) {
    for (id, job) in &lives.jobs {
        let Some((_, outcome)) = &job.done else { continue };
        let folder = place.root.join("jobs").join(format!("{id}-{}", job.name));
        let text = match fs::read_to_string(folder.join("receipt.json")) {
            Ok(text) => text,
            Err(error) => {
                findings.add("I3", format!("job {id} is done and has no receipt: {error}"));
                continue;
            }
        };
        let Ok(receipt) = serde_json::from_str::<Value>(&text) else {
            findings.add("I3", format!("job {id}: its receipt is no JSON"));
            continue;
        };
        let leases: Vec<&LeaseRow> = evidence.leases.values().filter(|lease| lease.job == *id).collect();
        let gpu_ms: u64 = leases.iter().map(|lease| lease.gpu_ms()).sum();
        let waived: u64 = leases.iter().map(|lease| lease.waived_gpu_ms()).sum();
        let mut claim = |invariant, what: &str, said: &Value, is: Value| {
            if *said != is {
                findings.add(invariant, format!("job {id}: its receipt says {what} {said}, the store {is}"));
            }
        };
        claim("I3", "id", &receipt["id"], (*id).into());
        claim("I3", "outcome", &receipt["outcome"]["kind"], word(outcome).into());
        claim("I9", "gpu_ms", &receipt["gpu_ms"], gpu_ms.into());
        claim("I9", "waived_gpu_ms", &receipt["waived_gpu_ms"], waived.into());
        claim(
            "I3",
            "attempts",
            &receipt["attempts"].as_array().map_or(0, Vec::len).into(),
            job.attempts.len().into(),
        );
        for lease in &leases {
            let attempts = receipt["attempts"].as_array().into_iter().flatten();
            let held: Vec<&Value> = attempts
                .filter(|attempt| attempt["lease"] == lease.id)
                .map(|attempt| &attempt["held_ms"])
                .collect();
            claim("I9", "held_ms", held.first().copied().unwrap_or(&Value::Null), lease.held_ms().into());
        }
        outputs(&folder, *id, job, findings);
    }
}

/// What is said to have come back is there, byte for byte.
fn outputs(folder: &std::path::Path, id: u64, job: &JobLife, findings: &mut Findings) {
    let home = folder.join("attempts").join(job.outputs_of.to_string()).join("output");
    for output in &job.outputs {
        let Some(path) = output.path.as_str() else { continue };
        let len = fs::metadata(home.join(path)).map_or(0, |meta| meta.len());
        if len == output.bytes && len > LARGE {
            continue;
        }
        match fs::read(home.join(path)) {
            Ok(bytes) if bytes.len() as u64 != output.bytes => {
                findings
                    .add("I3", format!("job {id}: {path} has {} bytes, not {}", bytes.len(), output.bytes));
            }
            Ok(bytes) if blake3::hash(&bytes).to_hex().as_str() != output.blake3 => {
                findings.add("I3", format!("job {id}: {path} is not what came back"));
            }
            Ok(_) => {}
            Err(error) => {
                findings.add("I3", format!("job {id}: {path} came back and cannot be read: {error}"));
            }
        }
    }
}

/// The meter's tables, cut in every way, are the sums over the leases; asked of a scheduler that runs.
pub(crate) fn meter(place: &Place, evidence: &Evidence, findings: &mut Findings) -> bool {
    if evidence.leases.values().any(|lease| lease.ended.is_none()) {
        return false;
    }
    let mut asked = false;
    for by in ["user", "project", "job", "gpu", "day"] {
        let Some(table) = place.ask(&["meter", "--by", by, "--json"]) else { return asked };
        asked = true;
        let mut ours: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for lease in evidence.leases.values() {
            for (key, gpu_ms, core_ms) in cut(lease, by) {
                let row = ours.entry(key).or_default();
                row[0] += gpu_ms;
                row[1] += core_ms;
            }
        }
        let rows = table["rows"].as_array().cloned().unwrap_or_default();
        let theirs: BTreeMap<String, [u64; 2]> = rows
            .iter()
            .map(|row| {
                let figure = |name: &str| row[name].as_u64().unwrap_or(u64::MAX);
                let core_ms = if by == "gpu" { 0 } else { figure("core_ms") };
                (row["key"].as_str().unwrap_or("?").to_owned(), [figure("gpu_ms"), core_ms])
            })
            .collect();
        if theirs != ours {
            findings.add("I9", format!("the meter by {by} says {theirs:?}, the leases come to {ours:?}"));
        }
        let waived: u64 = rows.iter().filter_map(|row| row["waived_gpu_ms"].as_u64()).sum();
        let ours: u64 = evidence.leases.values().map(LeaseRow::waived_gpu_ms).sum();
        if waived != ours {
            findings.add("I9", format!("the meter by {by} waives {waived} ms, the leases {ours} ms"));
        }
        if table["held_now"]["gpus"] != 0 {
            findings.add("I7", format!("nothing is held, and the meter says {}", table["held_now"]));
        }
    }
    asked
}

/// A lease's part of each row: key, GPU and core milliseconds.
fn cut(lease: &LeaseRow, by: &str) -> Vec<(String, u64, u64)> {
    let held = lease.held_ms().unwrap_or_default();
    let gpus = lease.held.devices.len() as u64;
    let whole = |key: String| vec![(key, held * gpus, held * lease.held.cores)];
    match by {
        "user" => whole(lease.owner.name.clone()),
        "project" => whole(lease.project.clone().unwrap_or_else(|| "-".to_owned())),
        "job" => whole(format!("{} {}", lease.job, lease.job_name)),
        "gpu" => lease.held.devices.iter().map(|device| (device.uuid.clone(), held, 0)).collect(),
        _ => days(lease.granted.wall_ms, held)
            .into_iter()
            .map(|(day, ms)| (day, ms * gpus, ms * lease.held.cores))
            .collect(),
    }
}

/// A stretch of wall time, split at local midnights.
fn days(from: i64, ms: u64) -> Vec<(String, u64)> {
    let zone = jiff::tz::TimeZone::system();
    let until = from + ms as i64;
    let mut days = Vec::new();
    let mut at = from;
    loop {
        let day = zone.to_datetime(jiff::Timestamp::from_millisecond(at).unwrap()).date();
        let next = day.tomorrow().unwrap();
        let midnight = zone.to_timestamp(next.into()).unwrap().as_millisecond();
        let end = midnight.min(until);
        days.push((day.to_string(), (end - at).unsigned_abs()));
        if end >= until {
            return days;
        }
        at = end;
    }
}
