//! The NVML backend against the fake driver: real `dlopen`, real calls, real processes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, helpers too")]

#[path = "support/fake_nvml.rs"]
mod fake_nvml;

use fake_nvml::{FakeDevice, FakeNvml, FakeState};
use overnight::gpu::{
    FaultWatch, GpuBackend, GpuChoice, GpuError, Nvml, NvmlConfig, OpenOptions, SamplerNews, locks, nvml,
    open, spawn, watch_faults,
};
use overnight::model::{
    Bytes, FaultKind, FaultNews, GpuReading, Health, LockHolder, ProcessKind, Span, Token, Unreadable, Uuid,
};
use rustix::fs::{FlockOperation, flock};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longer than anything here takes; reaching it is a failure.
const PATIENCE: Duration = Duration::from_secs(20);

fn three() -> FakeState {
    let devices = [("GPU-a", 0x17), ("GPU-b", 0x65), ("GPU-c", 0xca)];
    FakeState {
        devices: devices.map(|(uuid, bus)| FakeDevice::idle(uuid, bus)).to_vec(),
        ..FakeState::default()
    }
}

fn backend(fake: &FakeNvml, locks: &Path) -> Nvml {
    Nvml::new(NvmlConfig {
        library: Some(fake.library()),
        ignore: OpenOptions::default().ignore,
        lock_dir: locks.to_owned(),
    })
}

/// A backend that has listed what the fake driver has.
fn listed(state: &FakeState) -> (FakeNvml, Nvml, tempfile::TempDir) {
    let fake = FakeNvml::new(state);
    let locks = tempfile::tempdir().unwrap();
    let mut backend = backend(&fake, locks.path());
    backend.list().unwrap();
    (fake, backend, locks)
}

fn uuids(backend: &mut Nvml) -> Vec<String> {
    backend.list().unwrap().into_iter().map(|gpu| gpu.uuid.0).collect()
}

/// A process that lives until it is dropped.
struct Sleeper(Child);

impl Sleeper {
    fn start(token: Option<&str>) -> Self {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(token) = token {
            command.env("OVERNIGHT_TOKEN", token);
        }
        let mut child = command.spawn().unwrap();
        // It answers once it runs with its own name and environment.
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        child.stdin = Some(pipe);
        Self(child)
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn devices_are_listed_in_pci_order_whatever_the_drivers_order_is() {
    let mut state = three();
    state.devices.reverse();
    let (_fake, mut backend, _locks) = listed(&state);
    let gpus = backend.list().unwrap();
    let listed: Vec<_> = gpus.iter().map(|gpu| (gpu.uuid.0.as_str(), gpu.index)).collect();
    assert_eq!(listed, [("GPU-a", 0), ("GPU-b", 1), ("GPU-c", 2)]);
    assert!(gpus.iter().all(|gpu| gpu.real && gpu.memory == Bytes::gib(80)));
    assert_eq!(gpus[0].name, "NVIDIA A100 80GB PCIe");
}

#[test]
fn readings_are_what_the_driver_says() {
    let mut state = three();
    state.devices[1].memory_used = 21 << 30;
    state.devices[1].utilisation = 97;
    state.devices[1].temperature_c = 71;
    state.devices[1].power_mw = 299_500;
    let (_fake, mut backend, _locks) = listed(&state);
    let readings = backend.sample(&[]);
    let read = &readings[1];
    assert_eq!(read.uuid, Uuid("GPU-b".into()));
    assert_eq!(read.memory_used, Some(Bytes::gib(21)));
    assert_eq!((read.utilisation, read.temperature_c, read.power_w), (Some(97), Some(71), Some(300)));
    assert_eq!(read.processes.as_deref(), Some(&[][..]));
    assert_eq!((&read.unreadable, &read.lock), (&None, &None));
    assert_eq!(readings[0].utilisation, Some(0));
}

#[test]
fn what_could_not_be_read_is_unknown_and_never_zero() {
    let mut state = three();
    state.devices[0] = FakeDevice::idle("GPU-a", 0x17)
        .with("error.memory = 999")
        .with("error.utilisation = 3")
        .with("error.temperature = 3")
        .with("error.power = 3");
    state.devices[1] = FakeDevice::idle("GPU-b", 0x65).with("error.compute = 999");
    state.devices[2] = FakeDevice::idle("GPU-c", 0xca).with("error.graphics = 3").with("error.mps = 3");
    let fake = FakeNvml::new(&three());
    let locks = tempfile::tempdir().unwrap();
    let mut backend = backend(&fake, locks.path());
    backend.list().unwrap();
    fake.set(&state);
    let readings = backend.sample(&[]);
    let first = &readings[0];
    assert_eq!(first.unreadable, None);
    assert_eq!(
        (first.memory_used, first.utilisation, first.temperature_c, first.power_w),
        (None, None, None, None)
    );
    assert_eq!(readings[1].processes, None, "an unread list is not an empty one");
    assert!(readings[1].memory_used.is_some());
    assert_eq!(readings[2].processes.as_deref(), Some(&[][..]), "a list the device does not have is empty");
}

#[test]
fn the_health_of_the_memory_is_read_where_a_device_tells_it() {
    let mut state = three();
    state.devices[0] = FakeDevice::idle("GPU-a", 0x17).with("ecc = 3").with("remap = pending");
    state.devices[1] = FakeDevice::idle("GPU-b", 0x65).with("error.ecc = 3").with("error.remap = 3");
    state.devices[2] = FakeDevice::idle("GPU-c", 0xca).with("remap = failed").with("mig = MIG-1 10737418240");
    let (_fake, mut backend, _locks) = listed(&state);
    let health: Vec<Health> = backend.sample(&[]).iter().map(|reading| reading.health).collect();
    let told = |uncorrected, pending, failed| Health {
        uncorrected: Some(uncorrected),
        remap_pending: Some(pending),
        remap_failed: Some(failed),
    };
    assert_eq!(health, [told(3, true, false), Health::default(), Health::default()]);
    assert!(
        backend.sample(&[]).iter().all(|reading| reading.processes.is_some()),
        "a silent card is no sick one"
    );
}

#[test]
fn a_lost_gpu_leaves_its_neighbours_readable_and_heals() {
    let (fake, mut backend, _locks) = listed(&three());
    let mut state = three();
    state.devices[1] = FakeDevice::idle("GPU-b", 0x65).with("error = 15").with("error.handle = 15");
    fake.set(&state);
    let readings = backend.sample(&[]);
    assert!(matches!(&readings[1].unreadable, Some(Unreadable::Gone { detail }) if detail.contains("bus")));
    assert_eq!(readings[1].memory_used, None);
    assert!(readings[0].unreadable.is_none() && readings[2].unreadable.is_none());
    assert_eq!(readings[2].memory_used, Some(Bytes::mib(4)));
    assert_eq!(uuids(&mut backend), ["GPU-a", "GPU-c"], "and the others keep being listed");
    fake.set(&three());
    assert!(backend.sample(&[]).iter().all(|reading| reading.unreadable.is_none()));
}

#[test]
fn a_device_that_is_no_longer_listed_is_gone() {
    let (fake, mut backend, _locks) = listed(&three());
    let mut state = three();
    state.devices.remove(0);
    fake.set(&state);
    let readings = backend.sample(&[]);
    assert_eq!(readings.len(), 3);
    assert!(matches!(&readings[0].unreadable, Some(Unreadable::Gone { .. })));
    assert!(readings[1].unreadable.is_none());
}

#[test]
fn readings_follow_the_uuid_when_the_driver_renumbers() {
    let (fake, mut backend, _locks) = listed(&three());
    let mut state = three();
    state.devices[2].memory_used = 7 << 30;
    state.devices.reverse();
    fake.set(&state);
    assert_eq!(backend.sample(&[])[2].memory_used, Some(Bytes::gib(7)));
}

#[test]
fn processes_of_all_kinds_are_merged_by_pid_and_carry_name_owner_and_token() {
    let ours = Sleeper::start(Some("00c0ffee"));
    let other = Sleeper::start(None);
    let drawing = std::process::id();
    let mut state = three();
    state.devices[0] = FakeDevice::idle("GPU-a", 0x17)
        .with(format!("process = compute {} 1000", ours.0.id()))
        .with(format!("process = graphics {} 1000", ours.0.id()))
        .with(format!("process = mps {} -", other.0.id()))
        .with(format!("process = graphics {drawing} 7"));
    let (_fake, mut nvml, _locks) = listed(&state);
    let processes = nvml.sample(&[])[0].processes.clone().unwrap();
    assert_eq!(processes.len(), 3);
    let find = |pid: u32| processes.iter().find(|process| process.pid == pid).unwrap();
    let mine = find(ours.0.id());
    assert_eq!(
        (mine.name.as_str(), mine.kind, mine.memory),
        ("cat", ProcessKind::Compute, Some(Bytes(1000)))
    );
    assert_eq!(mine.token, Some(Token("00c0ffee".into())));
    assert_eq!(mine.uid, Some(rustix::process::getuid().as_raw()));
    assert!(!mine.ignored);
    let mps = find(other.0.id());
    assert_eq!((mps.kind, mps.memory, &mps.token), (ProcessKind::Compute, None, &None));
    let display = find(drawing);
    assert!(
        display.ignored && display.kind == ProcessKind::Graphics,
        "one that only draws is the baseline's"
    );
}

#[test]
fn a_process_on_the_ignore_list_is_marked() {
    let sleeper = Sleeper::start(None);
    let mut state = three();
    state.devices[0] =
        FakeDevice::idle("GPU-a", 0x17).with(format!("process = compute {} 1000", sleeper.0.id()));
    let fake = FakeNvml::new(&state);
    let locks = tempfile::tempdir().unwrap();
    for (ignore, expected) in [("ca*", true), ("dog", false)] {
        let mut nvml = Nvml::new(NvmlConfig {
            library: Some(fake.library()),
            ignore: vec![ignore.to_owned()],
            lock_dir: locks.path().to_owned(),
        });
        nvml.list().unwrap();
        assert_eq!(nvml.sample(&[])[0].processes.as_ref().unwrap()[0].ignored, expected, "{ignore}");
    }
}

#[test]
fn a_process_that_is_gone_or_in_another_pid_namespace_is_still_on_the_device() {
    let mut state = three();
    state.devices[0] = FakeDevice::idle("GPU-a", 0x17).with("process = compute 4194300 1000");
    let (_fake, mut backend, _locks) = listed(&state);
    let processes = backend.sample(&[])[0].processes.clone().unwrap();
    assert_eq!((processes[0].pid, processes[0].name.as_str(), processes[0].uid), (4_194_300, "", None));
    assert!(!processes[0].ignored);
}

#[test]
fn a_list_that_grew_under_the_question_is_asked_for_again() {
    let mut state = three();
    state.burst = 3;
    state.devices[0] = FakeDevice::idle("GPU-a", 0x17).with("process = compute 4194300 1000");
    let (_fake, mut backend, _locks) = listed(&state);
    assert_eq!(backend.sample(&[])[0].processes.as_ref().map(Vec::len), Some(1));
}

#[test]
fn mig_instances_are_listed_instead_of_their_device() {
    let mut state = three();
    state.devices[1] =
        FakeDevice::idle("GPU-b", 0x65).with("mig = MIG-1 10737418240").with("mig = MIG-2 10737418240");
    let (fake, mut backend, _locks) = listed(&state);
    assert_eq!(uuids(&mut backend), ["GPU-a", "MIG-1", "MIG-2", "GPU-c"]);
    let readings = backend.sample(&[]);
    assert_eq!(readings[1].uuid, Uuid("MIG-1".into()));
    assert_eq!(readings[1].utilisation, None);
    assert_eq!(readings[1].memory_used, Some(Bytes::mib(4)));
    let library = fake.library();
    let refused = nvml::indices(Some(&library), &[Uuid("MIG-1".into())]);
    assert!(matches!(refused, Err(GpuError::NoIndex(_))), "{refused:?}");
}

#[test]
fn indices_are_those_of_now_in_the_order_asked() {
    let mut state = three();
    state.devices.swap(0, 2);
    let fake = FakeNvml::new(&state);
    let library = fake.library();
    let ask = |uuids: &[&str]| {
        let uuids: Vec<_> = uuids.iter().map(|uuid| Uuid((*uuid).to_owned())).collect();
        nvml::indices(Some(&library), &uuids)
    };
    assert_eq!(ask(&["GPU-c", "GPU-a"]).unwrap(), [2, 0]);
    assert!(matches!(ask(&["GPU-x"]), Err(GpuError::NotListed(_))));
}

#[test]
fn each_refusal_of_the_driver_says_what_to_do() {
    for (code, word, hint) in [
        (9, "not loaded", "modprobe"),
        (4, "permission", "group"),
        (18, "different versions", "reboot"),
        (999, "internal driver error", "nvidia-smi"),
    ] {
        let fake = FakeNvml::new(&FakeState { init: code, ..three() });
        let locks = tempfile::tempdir().unwrap();
        let error = backend(&fake, locks.path()).connect().unwrap_err();
        assert!(error.to_string().contains(word), "{code}: {error}");
        assert!(error.hint().unwrap().contains(hint), "{code}: {:?}", error.hint());
    }
    let missing = NvmlConfig {
        library: Some("/nonexistent/libnvidia-ml.so.1".into()),
        ignore: vec![],
        lock_dir: "/nonexistent".into(),
    };
    let error = Nvml::new(missing).connect().unwrap_err();
    assert!(nvml::is_absent(&error), "{error}");
}

#[test]
fn a_driver_that_comes_back_is_found_without_a_restart() {
    let fake = FakeNvml::new(&FakeState { init: 18, ..three() });
    let locks = tempfile::tempdir().unwrap();
    let mut backend = backend(&fake, locks.path());
    assert!(backend.list().is_err());
    assert_eq!(backend.sample(&[]), []);
    fake.set(&three());
    assert_eq!(uuids(&mut backend), ["GPU-a", "GPU-b", "GPU-c"]);
    let mut mismatch = three();
    mismatch.init = 18;
    for device in &mut mismatch.devices {
        device.lines = vec!["error = 18".into()];
    }
    fake.set(&mismatch);
    for _ in 0..2 {
        let readings = backend.sample(&[]);
        let failed = |reading: &GpuReading| matches!(&reading.unreadable, Some(Unreadable::Failed { detail }) if detail.contains("reboot"));
        assert!(readings.len() == 3 && readings.iter().all(failed), "{readings:?}");
    }
    fake.set(&three());
    backend.sample(&[]);
    assert!(backend.sample(&[]).iter().all(|reading| reading.unreadable.is_none()));
}

/// A sampler over the fake driver and what it says.
fn sampler(
    fake: &FakeNvml,
    locks: &Path,
    deadline: Span,
) -> (overnight::gpu::SamplerHandle, Receiver<SamplerNews>) {
    let mut backend = backend(fake, locks);
    let known: Vec<_> = backend.list().unwrap().into_iter().map(|gpu| gpu.uuid).collect();
    let (sender, receiver) = channel();
    let sender = Mutex::new(sender);
    let deliver = Arc::new(move |news| drop(sender.lock().unwrap().send(news)));
    (spawn(Box::new(backend), &known, deadline, deliver).unwrap(), receiver)
}

fn readings(receiver: &Receiver<SamplerNews>) -> Vec<GpuReading> {
    match receiver.recv_timeout(PATIENCE).unwrap() {
        SamplerNews::Readings(readings) => readings,
        SamplerNews::Devices(_) => panic!("readings were asked for"),
    }
}

#[test]
fn a_driver_that_hangs_past_the_deadline_reads_failed_and_its_late_answer_heals() {
    let fake = FakeNvml::new(&three());
    let locks = tempfile::tempdir().unwrap();
    let (sampler, receiver) = sampler(&fake, locks.path(), Span(200));
    sampler.request(vec![]);
    assert!(readings(&receiver).iter().all(|reading| reading.unreadable.is_none()));
    fake.set(&FakeState { hang_ms: 600_000, ..three() });
    sampler.request(vec![]);
    let hung = readings(&receiver);
    assert_eq!(hung.len(), 3);
    for reading in &hung {
        let Some(Unreadable::Failed { detail }) = &reading.unreadable else { panic!("{reading:?}") };
        assert_eq!(detail, "the driver did not answer within 0.2 s");
        assert_eq!(reading.memory_used, None);
    }
    fake.set(&three());
    assert!(readings(&receiver).iter().all(|reading| reading.unreadable.is_none()));
}

#[test]
fn requests_that_come_while_the_driver_is_busy_become_one() {
    let fake = FakeNvml::new(&FakeState { hang_ms: 0, ..three() });
    let locks = tempfile::tempdir().unwrap();
    let (sampler, receiver) = sampler(&fake, locks.path(), Span(200));
    fake.set(&FakeState { hang_ms: 600_000, ..three() });
    sampler.request(vec![]);
    readings(&receiver);
    for _ in 0..50 {
        sampler.request(vec![]);
    }
    sampler.relist();
    fake.set(&three());
    readings(&receiver);
    let mut answers = 0;
    let mut lists = 0;
    while answers + lists < 2 {
        match receiver.recv_timeout(PATIENCE).unwrap() {
            SamplerNews::Readings(_) => answers += 1,
            SamplerNews::Devices(gpus) => {
                assert_eq!(gpus.unwrap().len(), 3);
                lists += 1;
            }
        }
    }
    assert_eq!((answers, lists), (1, 1));
    assert!(receiver.try_recv().is_err());
}

#[test]
fn a_device_locked_by_another_scheduler_says_by_whom() {
    let (_fake, mut backend, locks) = listed(&three());
    let holder = LockHolder { uid: 1001, job: "12 sweep".into(), token: None, since_ms: Some(5) };
    let path = locks::lock_path(locks.path(), &Uuid("GPU-b".into()));
    std::fs::write(&path, serde_json::to_string(&holder).unwrap() + "\n").unwrap();
    let file = std::fs::File::open(&path).unwrap();
    flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    let readings = backend.sample(&[]);
    assert_eq!(readings[1].lock, Some(holder));
    assert_eq!(readings[0].lock, None);
    drop(file);
    assert_eq!(backend.sample(&[])[1].lock, None);
}

#[test]
fn sources_of_devices_are_chosen_by_word() {
    assert_eq!("auto".parse::<GpuChoice>().unwrap(), GpuChoice::Auto);
    assert_eq!("simulated:4".parse::<GpuChoice>().unwrap(), GpuChoice::Simulated(4));
    for word in ["simulated:0", "simulated:", "simulated:99999", "4", "cuda\u{1b}[2J"] {
        let error = word.parse::<GpuChoice>().unwrap_err().to_string();
        assert!(error.contains("simulated:N") && !error.contains('\u{1b}'), "{error}");
    }
    let mut simulated = open(GpuChoice::Simulated(2), OpenOptions::default());
    assert_eq!((simulated.list().unwrap().len(), simulated.name()), (2, "simulated"));
    let mut none = open(GpuChoice::None, OpenOptions::default());
    assert_eq!((none.list().unwrap().len(), none.name()), (0, "none"));
}

/// Not a test of its own: what the next one runs in a process whose loader finds the fake driver by name.
#[test]
#[ignore = "run by the_installed_library_is_found_by_its_name"]
fn child_that_opens_the_installed_library() {
    let mut backend = open(GpuChoice::Auto, OpenOptions::default());
    match backend.list() {
        Err(error) => println!("<{error}; {}>", error.hint().unwrap_or_default()),
        Ok(gpus) => println!("<{} {}>", backend.name(), gpus.len()),
    }
}

#[test]
fn the_installed_library_is_found_by_its_name() {
    let run = |fake: &FakeNvml| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child_that_opens_the_installed_library", "--ignored", "--nocapture"]);
        fake.env(&mut command);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let fake = FakeNvml::new(&three());
    let output = run(&fake);
    assert!(output.contains("<nvml 3>"), "{output}");
    fake.set(&FakeState { init: 18, ..three() });
    let output = run(&fake);
    assert!(output.contains("different versions") && output.contains("reboot"), "{output}");
}

/// A watch over the fake driver's devices, and what it tells.
fn watched(fake: &FakeNvml, uuids: &[&str]) -> (FaultWatch, Receiver<Vec<FaultNews>>) {
    let (sender, receiver) = channel();
    let sender = Mutex::new(sender);
    let tell = Arc::new(move |news| drop(sender.lock().unwrap().send(news)));
    let watch = watch_faults(Some(fake.library()), tell).unwrap();
    watch.devices(uuids.iter().map(|uuid| Uuid((*uuid).to_owned())).collect());
    (watch, receiver)
}

/// Adds Xids until one is told: nobody is told of what happened before the driver was asked.
fn first_news(fake: &FakeNvml, state: &mut FakeState, receiver: &Receiver<Vec<FaultNews>>) -> Vec<FaultNews> {
    for _ in 0..400 {
        state.devices[0].xids.push(13);
        fake.set(state);
        if let Ok(news) = receiver.recv_timeout(Duration::from_millis(50)) {
            return news;
        }
    }
    panic!("nothing was told");
}

fn xid(uuid: &str, code: u64) -> FaultNews {
    FaultNews { uuid: Uuid(uuid.to_owned()), kind: FaultKind::Xid(code) }
}

/// What is told until this comes.
fn until_told(receiver: &Receiver<Vec<FaultNews>>, wanted: &FaultNews) -> Vec<FaultNews> {
    let mut told = Vec::new();
    while !told.contains(wanted) {
        told.extend(receiver.recv_timeout(PATIENCE).unwrap());
    }
    told
}

#[test]
fn xids_are_told_as_they_happen_by_name_and_once() {
    let mut state = three();
    state.devices.reverse();
    // What is in the driver's memory from before is not news.
    state.devices[0].xids.push(48);
    let fake = FakeNvml::new(&state);
    let (_watch, receiver) = watched(&fake, &["GPU-a", "GPU-b", "GPU-c"]);
    assert_eq!(first_news(&fake, &mut state, &receiver), [xid("GPU-c", 13)]);
    state.devices[1].xids.push(79);
    state.devices[2].lines.push("dbe = 1".into());
    fake.set(&state);
    let double_bit = FaultNews { uuid: Uuid("GPU-a".into()), kind: FaultKind::DoubleBit };
    let mut told = until_told(&receiver, &double_bit);
    if !told.contains(&xid("GPU-b", 79)) {
        told.extend(until_told(&receiver, &xid("GPU-b", 79)));
    }
    assert!(!told.contains(&xid("GPU-c", 48)), "{told:?}");
    // The driver numbers its devices anew.
    state.devices.swap(0, 1);
    state.devices[1].xids.push(31);
    fake.set(&state);
    assert_eq!(
        until_told(&receiver, &xid("GPU-c", 31)).iter().filter(|news| **news == xid("GPU-c", 31)).count(),
        1
    );
}

#[test]
fn a_fault_of_a_device_in_mig_mode_is_one_of_all_its_instances() {
    let mut state = three();
    state.devices[0] =
        FakeDevice::idle("GPU-a", 0x17).with("mig = MIG-1 10737418240").with("mig = MIG-2 10737418240");
    let fake = FakeNvml::new(&state);
    let (_watch, receiver) = watched(&fake, &["MIG-1", "MIG-2", "GPU-b", "GPU-c"]);
    assert_eq!(first_news(&fake, &mut state, &receiver), [xid("MIG-1", 13), xid("MIG-2", 13)]);
}

#[test]
fn devices_that_tell_nothing_do_not_keep_the_others_from_telling() {
    let mut state = three();
    state.devices[1].lines.push("error.events = 3".into());
    state.devices[2].lines.push("error.handle = 15".into());
    let fake = FakeNvml::new(&state);
    let (_watch, receiver) = watched(&fake, &["GPU-a", "GPU-b", "GPU-c"]);
    assert_eq!(first_news(&fake, &mut state, &receiver), [xid("GPU-a", 13)]);
}

#[test]
fn a_watch_that_lost_its_driver_asks_for_a_look_and_watches_again_when_the_driver_is_back() {
    let mut state = three();
    let fake = FakeNvml::new(&state);
    let (watch, receiver) = watched(&fake, &["GPU-a", "GPU-b", "GPU-c"]);
    first_news(&fake, &mut state, &receiver);
    state.init = 18;
    fake.set(&state);
    while !receiver.recv_timeout(PATIENCE).unwrap().is_empty() {}
    state.init = 0;
    fake.set(&state);
    watch.devices(vec![Uuid("GPU-a".into())]);
    first_news(&fake, &mut state, &receiver);
}
