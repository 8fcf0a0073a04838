//! Simulated devices: steady when idle, alive when busy, wrong when told to be.

use super::*;
use std::collections::BTreeSet;

fn at(seconds: u64) -> Now {
    Now { boottime_ms: seconds * 1000, ..Now::default() }
}

fn work(device: &Gpu, lease: u64) -> Running {
    Running { uuid: device.uuid.clone(), lease: LeaseId(lease), token: Token(format!("token-{lease}")) }
}

fn four(seed: u64, control: Option<PathBuf>) -> (Simulated, Vec<Gpu>) {
    let mut backend =
        Simulated::new(SimulatedConfig { gpus: 4, seed, control, ..SimulatedConfig::default() });
    let gpus = backend.list().unwrap();
    (backend, gpus)
}

/// The figures of a reading without its moment.
fn figures(reading: &GpuReading) -> (Option<Bytes>, Option<u8>, Option<i32>, Option<u32>) {
    (reading.memory_used, reading.utilisation, reading.temperature_c, reading.power_w)
}

#[test]
fn uuids_are_distinct_and_the_same_for_the_same_seed() {
    let (_, first) = four(7, None);
    let (_, again) = four(7, None);
    let (_, other) = four(8, None);
    assert_eq!(first, again);
    assert_ne!(first, other);
    let distinct: BTreeSet<_> = first.iter().chain(&other).map(|gpu| &gpu.uuid).collect();
    assert_eq!(distinct.len(), 8);
    assert!(first.iter().all(|gpu| gpu.uuid.0.len() == "GPU-".len() + 36 && !gpu.real));
}

#[test]
fn idle_devices_read_constant_values() {
    let (mut backend, _) = four(1, None);
    let first: Vec<_> = backend.sample_at(&[], at(100)).iter().map(figures).collect();
    for second in [101, 150, 100_000] {
        let later: Vec<_> = backend.sample_at(&[], at(second)).iter().map(figures).collect();
        assert_eq!(first, later);
    }
    assert!(first.iter().all(|figures| figures.1 == Some(0)));
}

#[test]
fn a_lease_loads_its_device_and_only_that_and_memory_is_gone_when_it_ended() {
    let (mut backend, gpus) = four(1, None);
    let idle: Vec<_> = backend.sample_at(&[], at(100)).iter().map(figures).collect();
    let running = [work(&gpus[2], 9)];
    backend.sample_at(&running, at(100));
    let busy = backend.sample_at(&running, at(110));
    assert!(busy[2].utilisation >= Some(70), "{:?}", busy[2]);
    assert!(busy[2].memory_used > Some(Bytes::gib(20)));
    assert!(busy[2].temperature_c > idle[2].2 && busy[2].power_w > idle[2].3);
    assert_eq!(figures(&busy[1]), idle[1]);

    let ended = backend.sample_at(&[], at(110));
    assert_eq!((ended[2].memory_used, ended[2].utilisation), (idle[2].0, Some(0)));
    assert!(ended[2].power_w > idle[2].3, "power falls slowly");
    assert_eq!(ended[2].processes.as_deref(), Some(&[][..]));
    let cooled: Vec<_> = backend.sample_at(&[], at(121)).iter().map(figures).collect();
    assert_eq!(cooled, idle);
}

#[test]
fn the_same_moment_gives_the_same_reading() {
    let read = || {
        let (mut backend, gpus) = four(3, None);
        let running = [work(&gpus[0], 5)];
        backend.sample_at(&running, at(10));
        backend.sample_at(&running, at(20))
    };
    assert_eq!(read(), read());
}

#[test]
fn a_control_file_makes_one_device_fail_vanish_hang_and_be_used_from_outside() {
    let dir = tempfile::tempdir().unwrap();
    let control = dir.path().join("control.toml");
    let (mut backend, _) = four(1, Some(control.clone()));
    assert!(backend.sample_at(&[], at(1)).iter().all(|reading| reading.unreadable.is_none()));
    std::fs::write(
        &control,
        "[gpu.0]\nfault = \"fail\"\ndetail = \"Xid 48\"\n[gpu.1]\nfault = \"gone\"\n[gpu.2]\nfault = \"hang\"\n\
         [gpu.3.outside]\npid = 777\nname = \"py\\u001Bthon\"\nuid = 1001\nmemory = \"21GiB\"\n",
    )
    .unwrap();
    let readings = backend.sample_at(&[], at(2));
    assert_eq!(readings[0].unreadable, Some(Unreadable::Failed { detail: "Xid 48".into() }));
    assert_eq!(readings[0].memory_used, None, "unknown is not zero");
    assert!(matches!(&readings[1].unreadable, Some(Unreadable::Gone { .. })));
    assert_eq!(readings[2].unreadable, Some(Unreadable::Failed { detail: "did not answer in time".into() }));
    let outside = &readings[3].processes.as_deref().unwrap()[0];
    assert_eq!((outside.pid, outside.uid, outside.token.clone()), (777, Some(1001), None));
    assert_eq!(outside.name, "py\u{FFFD}thon");
    assert!(readings[3].memory_used > Some(Bytes::gib(21)));
    assert_eq!(backend.list().unwrap().len(), 3, "a device that is gone is not listed");

    std::fs::remove_file(&control).unwrap();
    assert!(backend.sample_at(&[], at(3)).iter().all(|reading| reading.unreadable.is_none()));
}

#[test]
fn a_dirty_device_keeps_its_memory_and_names_what_was_left_behind() {
    let dir = tempfile::tempdir().unwrap();
    let control = dir.path().join("control.toml");
    std::fs::write(&control, "[gpu.1.dirty]\nmemory = \"40GiB\"\npid = 4242\nname = \"python\"\n").unwrap();
    let (mut backend, gpus) = four(1, Some(control.clone()));
    let clean = backend.sample_at(&[], at(1));
    assert_eq!(clean[1].processes.as_deref(), Some(&[][..]), "nothing ran yet");
    backend.sample_at(&[work(&gpus[1], 5)], at(2));
    let dirty = backend.sample_at(&[], at(3));
    let left = &dirty[1].processes.as_deref().unwrap()[0];
    assert_eq!((left.pid, left.name.as_str()), (4242, "python"));
    assert_eq!(left.token, Some(Token("token-5".into())));
    assert_eq!(dirty[1].memory_used, Some(Bytes(Bytes::gib(40).0 + IDLE_MEMORY.0)));
    std::fs::remove_file(&control).unwrap();
    let again = backend.sample_at(&[], at(30));
    assert_eq!(again[1].memory_used, clean[1].memory_used);
}

#[test]
fn a_control_file_that_cannot_be_read_makes_every_device_unreadable_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let control = dir.path().join("control.toml");
    std::fs::write(&control, "[gpu.0]\nfautl = \"fail\"\n").unwrap();
    let (mut backend, _) = four(1, Some(control));
    for reading in backend.sample_at(&[], at(1)) {
        let Some(Unreadable::Failed { detail }) = &reading.unreadable else { panic!("{reading:?}") };
        assert!(detail.contains("fautl"), "{detail}");
    }
}
