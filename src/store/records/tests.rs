//! That shapes cannot change unnoticed, and that all of the model comes back out of them.

use super::upgrade::{Step, climb};
use super::*;
use crate::model::*;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The shapes of each version. A changed record needs a new [`RECORD_VERSION`], a step in [`upgrade`] and a line here.
const FINGERPRINTS: &[(u32, &str)] =
    &[(1, "07febe30f0aaa51f"), (2, "43cab8a6eed53e99"), (3, "a5981f3504bc4b3b")];

/// All stored shapes.
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Everything {
    event: LoggedEvent,
    job: JobRecord,
    lease: LeaseRecord,
    device: StandingRecord,
    submission: SubmissionRecord,
    drop: DropRecord,
}

#[test]
fn the_shapes_of_a_version_never_change() {
    fn without_prose(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|key, value| !(key == "description" && value.is_string()));
                map.values_mut().for_each(without_prose);
            }
            Value::Array(values) => values.iter_mut().for_each(without_prose),
            _ => {}
        }
    }
    let mut schema = schemars::schema_for!(Everything).to_value();
    without_prose(&mut schema);
    let fingerprint = blake3::hash(schema.to_string().as_bytes()).to_hex()[..16].to_owned();
    assert_eq!(
        FINGERPRINTS.last(),
        Some(&(RECORD_VERSION, fingerprint.as_str())),
        "a stored shape has changed: count RECORD_VERSION up, add a step to upgrade::STEPS and a line to FINGERPRINTS"
    );
    assert_eq!(FINGERPRINTS.len(), RECORD_VERSION as usize);
}

#[test]
fn every_step_of_a_chain_is_taken_once_and_in_order() {
    let steps: &[Step] = &[
        |table, mut value| {
            value["two"] = json!(table);
            Ok(value)
        },
        |_, mut value| {
            value["three"] = value["two"].take();
            Ok(value)
        },
    ];
    let up = |from, to| climb(steps, (from, to), "jobs", br#"{"one":1}"#);
    let value = |bytes: Vec<u8>| serde_json::from_slice::<Value>(&bytes).unwrap();
    assert_eq!(value(up(1, 3).unwrap()), json!({"one": 1, "two": null, "three": "jobs"}));
    assert_eq!(value(up(2, 3).unwrap()), json!({"one": 1, "two": null, "three": null}));
    assert_eq!(value(up(3, 3).unwrap()), json!({"one": 1}));
    assert!(matches!(up(3, 4), Err(RecordError::NoStep { from: 3 })));
    assert!(matches!(up(0, 1), Err(RecordError::NoStep { from: 0 })));
}

#[test]
fn an_attempt_of_the_second_version_knows_nothing_of_device_memory() {
    let done =
        br#"{"number":1,"state":{"renting":{"lease":3}},"outputs":[],"peak_memory":7,"mean_utilisation":50,
        "enforcement":null,"notes":[]}"#;
    let new = upgrade::upgrade(2, "jobs", done).unwrap();
    let attempt: Attempt = decode::<Attempt, super::job::AttemptRecord>(&new).unwrap();
    assert_eq!((attempt.peak_memory, attempt.mean_utilisation), (Some(Bytes(7)), Some(50)));
    assert_eq!(attempt.peak_gpu_memory, None);
}

#[test]
fn a_device_of_the_first_version_has_a_standing() {
    let old = br#"{"quarantined":{"why":"pid 9 python","since":{"boot":"00000000000000000000000000000007","boottime_ms":5,"wall_ms":6},"lease":3}}"#;
    let new = upgrade::upgrade(1, "devices", old).unwrap();
    let since = Now { boot: BootId(7), boottime_ms: 5, wall_ms: 6 };
    let state = DeviceState::Quarantined(Quarantine {
        why: "pid 9 python".to_owned(),
        since,
        lease: Some(LeaseId(3)),
    });
    assert_eq!(decode::<Standing, StandingRecord>(&new).unwrap(), Standing::from(state));
    // Nor were its jobs changed while they waited.
    assert_eq!(upgrade::upgrade(1, "jobs", br#"{"id":1}"#).unwrap(), br#"{"changes":[],"id":1}"#);
    assert_eq!(upgrade::upgrade(1, "leases", br#"{"id":1}"#).unwrap(), br#"{"id":1}"#);
}

fn back<M: PartialEq + std::fmt::Debug, R: Record<M> + serde::Serialize + serde::de::DeserializeOwned>(
    model: &M,
) {
    let bytes = encode::<M, R>(model).unwrap();
    assert_eq!(&decode::<M, R>(&bytes).unwrap(), model, "{}", String::from_utf8_lossy(&bytes));
}

fn at(wall_ms: i64) -> Now {
    Now { boot: BootId(u128::MAX), boottime_ms: u64::MAX, wall_ms }
}

#[test]
fn every_state_end_and_outcome_comes_back() {
    let why = || "why: \u{1b}[31m „ünï“ \0".to_owned();
    let outcomes = [
        Outcome::Succeeded,
        Outcome::Failed(Failure::Code(-1)),
        Outcome::Failed(Failure::Signal(9)),
        Outcome::Failed(Failure::OutOfMemory { certain: true }),
        Outcome::Failed(Failure::OutputMissing { paths: vec![why()] }),
        Outcome::LimitReached,
        Outcome::Cancelled { by: why() },
        Outcome::NeverStarted { why: why() },
        Outcome::Lost { why: why() },
    ];
    let ends = [
        RunEnd::Exited { code: 255 },
        RunEnd::Signalled { signal: 11 },
        RunEnd::OutOfMemory { certain: false },
        RunEnd::LimitReached,
        RunEnd::Cancelled { by: why() },
        RunEnd::NotStarted { why: why() },
        RunEnd::Lost { why: why() },
    ];
    let (lease, ended) = (LeaseId(u64::MAX), at(i64::MIN));
    let mut states = vec![
        AttemptState::Queued { since: at(0), prepared: false },
        AttemptState::Renting { lease },
        AttemptState::Running { lease, started: at(1) },
    ];
    states.extend(ends.map(|end| AttemptState::Returning { lease, started: None, ended, end }));
    for outcome in outcomes {
        states.push(AttemptState::Releasing { lease, started: Some(at(1)), ended, outcome: outcome.clone() });
        states.push(AttemptState::Done {
            lease: None,
            started: None,
            ended: Some(ended),
            outcome,
            at: at(i64::MAX),
        });
    }
    for (n, state) in states.into_iter().enumerate() {
        let mut attempt = Attempt::queued(AttemptNo(1), at(0), true);
        attempt.state = state;
        attempt.outputs = vec![ReturnedFile {
            path: PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(vec![
                b'a',
                0xFF,
                n as u8 + 1,
            ])),
            kind: OutputKind::Report,
            bytes: Bytes(u64::MAX),
            blake3: "0".repeat(64),
            partial: true,
        }];
        back::<_, job::TaskRecord>(&Task { ix: TaskIx(0), attempts: vec![attempt] });
    }
}

#[test]
fn every_device_state_and_verdict_comes_back() {
    let text = || "x".to_owned();
    for state in [
        DeviceState::Free,
        DeviceState::Held { lease: LeaseId(1) },
        DeviceState::Draining { lease: LeaseId(1), since: at(5) },
        DeviceState::Quarantined(Quarantine { why: text(), since: at(5), lease: None }),
        DeviceState::Outside { who: text() },
        DeviceState::Closed { reason: text(), by: text() },
        DeviceState::Gone { detail: text() },
        DeviceState::Unknown { detail: text() },
    ] {
        back::<_, StandingRecord>(&Standing::from(state));
    }
    let health = Health { uncorrected: Some(u64::MAX), remap_pending: Some(true), remap_failed: None };
    back::<_, StandingRecord>(&Standing {
        state: DeviceState::Free,
        close: Some(Close { reason: text(), by: text() }),
        fault: Some(Fault { why: text(), at: at(5), lost: true, health }),
        accepted: Some(Accepted { boot: BootId(u128::MAX), health }),
    });
    back::<_, DropRecord>(&DropIdent { dev: u64::MAX, ino: 0, ctime_ns: -5, hash: text() });
    back::<_, OriginRecord>(&Origin::Submit { file: Some(PathBuf::from("/x")) });
    back::<_, OriginRecord>(&Origin::Retry { of: JobId(3) });
}

#[test]
fn a_record_that_holds_what_it_cannot_is_refused() {
    let refused = |bytes: &[u8]| decode::<Task, job::TaskRecord>(bytes).unwrap_err();
    assert!(matches!(refused(br#"{"ix":0,"attempts":[]}"#), RecordError::Value { .. }));
    assert!(matches!(refused(br#"{"ix":0}"#), RecordError::Json { .. }));
    let priority = Record::<Priority>::restore(101_i16);
    assert!(matches!(priority, Err(RecordError::Value { .. })));
}
