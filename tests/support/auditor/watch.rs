//! Beside a running scheduler: ten looks a second at processes, journals, locks and what the devices are made to say.
//!
//! A look only collects what is certain: "this process lived at that moment". Two facts make a finding only where the
//! same moment is proven for both; everything else is compared at the end, with the store.

use super::devices::{Truth, TruthSeen};
use super::journal::{Journal, NoJournal};
use super::procfs::{self, Pidt, Stat};
use super::{Findings, Place};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::time::Timespec;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two looks.
const EVERY_MS: u64 = 100;
/// A process may become another program for this long after it was made; then its environment is read no more.
const YOUNG_MS: u64 = 1_000;
/// A journal without a name is read for the last time after this long.
const FINAL_MS: u64 = 2_000;

/// A process of some work, recognised by its environment.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) token: String,
    pub(crate) job: u64,
    pub(crate) task: u32,
    pub(crate) attempt: u32,
    pub(crate) uuids: Vec<String>,
    /// Its arguments when it was first seen, for people.
    pub(crate) command: String,
    pub(crate) parent: i32,
    /// When it was first known to be this work, at the latest.
    pub(crate) known_ms: u64,
    /// The last moment at which it certainly lived.
    pub(crate) alive_ms: u64,
}

/// When a process was seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) first_ms: u64,
    pub(crate) last_ms: u64,
}

/// All that was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) work: HashMap<Pidt, Work>,
    pub(crate) supervisors: HashMap<Pidt, Span>,
    pub(crate) schedulers: HashMap<Pidt, Span>,
    /// By token.
    pub(crate) journals: BTreeMap<String, Journal>,
    pub(crate) truths: Vec<TruthSeen>,
    /// The index of each device, by UUID.
    pub(crate) indices: HashMap<String, String>,
    pub(crate) findings: Findings,
    pub(crate) looks: u64,
    /// When the last look began.
    pub(crate) looked_ms: u64,
}

/// The thread that looks.
#[derive(Debug)]
pub(crate) struct Watch {
    seen: Arc<Mutex<Seen>>,
    quit: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(crate) fn start(place: Place) -> Self {
        let (seen, quit) = (Arc::new(Mutex::new(Seen::default())), Arc::new(AtomicBool::new(false)));
        let (its_seen, its_quit) = (Arc::clone(&seen), Arc::clone(&quit));
        let thread = std::thread::Builder::new()
            .name("auditor".to_owned())
            .spawn(move || Looker::new(place, its_seen).run(&its_quit))
            .unwrap();
        Self { seen, quit, thread: Some(thread) }
    }

    /// What has been seen so far.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the looks, after one more.
    pub(crate) fn stop(&mut self) {
        self.quit.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.quit.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A journal that is held open: readable for as long as we like, whatever becomes of its name.
struct HeldJournal {
    file: File,
    /// It has begun, and whose it is is known.
    begun: bool,
    nameless_since: Option<u64>,
}

/// What a process was found to be.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Stranger,
    /// Below a supervisor, not the work yet.
    Waits,
    Work,
    Supervisor,
    Scheduler,
}

struct Looker {
    place: Place,
    seen: Arc<Mutex<Seen>>,
    hints: Option<OwnedFd>,
    kinds: HashMap<Pidt, Kind>,
    journals: HashMap<(u64, u64), HeldJournal>,
    /// Whose each token is: job, task, attempt.
    tokens: HashMap<String, (u64, u32, u32)>,
    truth: Option<Truth>,
}

impl Looker {
    fn new(place: Place, seen: Arc<Mutex<Seen>>) -> Self {
        let hints = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok();
        let truth = place.truth.clone();
        Self {
            place,
            seen,
            hints,
            kinds: HashMap::new(),
            journals: HashMap::new(),
            tokens: HashMap::new(),
            truth,
        }
    }

    fn run(mut self, quit: &AtomicBool) {
        loop {
            let last = quit.load(Ordering::Relaxed);
            let began = procfs::boottime_ms();
            self.hint_at_run_dir();
            self.look(began);
            if last {
                self.read_journals(true);
                return;
            }
            while procfs::boottime_ms() < began + EVERY_MS && !quit.load(Ordering::Relaxed) {
                self.wait_for_hints(began + EVERY_MS);
            }
        }
    }

    /// New journals are made in the run directory: told of at once, so that short lives are seen too.
    fn hint_at_run_dir(&self) {
        self.hint_at(&self.place.run());
    }

    fn hint_at(&self, dir: &Path) {
        if let Some(hints) = &self.hints {
            // Again each time: the folder may be a new one.
            let _ = inotify::add_watch(
                hints,
                dir,
                WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR,
            );
        }
    }

    fn wait_for_hints(&mut self, until: u64) {
        let left = until.saturating_sub(procfs::boottime_ms()).max(1);
        let timeout = Timespec { tv_sec: 0, tv_nsec: (left.min(EVERY_MS) * 1_000_000) as i64 };
        let Some(hints) = &self.hints else {
            let _ = poll(&mut [], Some(&timeout));
            return;
        };
        let _ = poll(&mut [PollFd::new(hints, PollFlags::IN)], Some(&timeout));
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(hints, &mut buffer);
        let mut any = false;
        while reader.next().is_ok() {
            any = true;
        }
        if any {
            self.find_journals();
        }
    }

    /// Keeps every journal open that has a name now: of leases, and those made ahead of one.
    fn find_journals(&mut self) {
        for entry in fs::read_dir(self.place.run()).into_iter().flatten().flatten() {
            let dir = entry.path();
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                self.hint_at(&dir);
            }
            self.hold(&dir.join("journal"));
        }
    }

    /// Keeps a journal open.
    fn hold(&mut self, path: &Path) {
        let Ok(file) = File::open(path) else { return };
        let Ok(meta) = file.metadata() else { return };
        if meta.is_file() {
            self.journals.entry((meta.dev(), meta.ino())).or_insert(HeldJournal {
                file,
                begun: false,
                nameless_since: None,
            });
        }
    }

    fn look(&mut self, began: u64) {
        self.find_journals();
        self.learn_tokens();
        self.read_journals(false);
        if let Some(truth) = &mut self.truth {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            truth.look(&mut seen.truths);
        }
        self.processes();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.looks += 1;
        seen.looked_ms = began;
    }

    /// Learns whose tokens are whose, from the beginnings of journals.
    fn learn_tokens(&mut self) {
        for held in self.journals.values_mut().filter(|held| !held.begun) {
            let mut bytes = vec![0; 16 << 10];
            let Ok(read) = held.file.read_at(&mut bytes, 0) else { continue };
            let Ok(journal) = Journal::parse(&bytes[..read]) else { continue };
            if let (Some(token), Some(job), Some(part)) = (journal.token, journal.job, journal.parts.last()) {
                self.tokens.insert(token, (job, part.task, part.attempt));
                held.begun = true;
            }
        }
    }

    /// Reads journals that have lost their names, or all of them at the end.
    fn read_journals(&mut self, all: bool) {
        let now = procfs::boottime_ms();
        let mut done = Vec::new();
        for (key, held) in &mut self.journals {
            let Ok(meta) = held.file.metadata() else { continue };
            if meta.nlink() > 0 && !all {
                held.nameless_since = None;
                continue;
            }
            let since = *held.nameless_since.get_or_insert(now);
            if now < since + FINAL_MS && !all {
                continue;
            }
            let mut bytes = vec![0; meta.size() as usize];
            let read = held.file.read_exact_at(&mut bytes, 0);
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            match read.map(|()| Journal::parse(&bytes)) {
                Ok(Ok(journal)) => {
                    if let Some(token) = journal.token.clone() {
                        seen.journals.insert(token, journal);
                    }
                }
                Ok(Err(NoJournal::Blank)) => {}
                Ok(Err(NoJournal::Foreign(why))) => seen.findings.add("I14", format!("a journal: {why}")),
                Err(error) => seen.findings.add("I14", format!("a journal cannot be read: {error}")),
            }
            done.push(*key);
        }
        for key in done {
            self.journals.remove(&key);
        }
    }

    fn processes(&mut self) {
        let mut work = Vec::new();
        let mut there = BTreeSet::new();
        for pid in procfs::pids() {
            // The clock first: what is seen alive after it lived at that moment or later.
            let now = procfs::boottime_ms();
            let Some(stat) = procfs::stat(pid) else { continue };
            there.insert(stat.id);
            if !stat.lives() {
                continue;
            }
            let kind = self.kind(&stat, now);
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            match kind {
                Kind::Stranger | Kind::Waits => {}
                Kind::Work => {
                    if let Some(known) = seen.work.get_mut(&stat.id) {
                        known.alive_ms = now;
                        known.parent = stat.parent;
                        work.push((stat.id, known.clone()));
                    }
                }
                Kind::Supervisor => note(&mut seen.supervisors, stat.id, now),
                Kind::Scheduler => note(&mut seen.schedulers, stat.id, now),
            }
        }
        self.kinds.retain(|id, _| there.contains(id));
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        one_attempt_lives(&work, &mut seen.findings);
        one_holder_lives(&work, &mut seen.findings);
        if self.truth.as_ref().is_some_and(Truth::is_driver) {
            locks_are_held(&work, &mut seen.findings);
        }
    }

    fn kind(&mut self, stat: &Stat, now: u64) -> Kind {
        let young = now < procfs::started_ms(stat.id) + YOUNG_MS;
        // Whoever looks like a supervisor may wait to be something else, for however long.
        let settled = |kind: &&Kind| !young && !matches!(kind, Kind::Waits | Kind::Supervisor);
        if let Some(kind) = self.kinds.get(&stat.id).filter(settled) {
            return *kind;
        }
        let kind = self.recognise(stat, now);
        self.kinds.insert(stat.id, kind);
        kind
    }

    fn recognise(&self, stat: &Stat, now: u64) -> Kind {
        let arguments = procfs::arguments(stat.id.pid);
        if self.place.is_supervisor(&arguments) {
            return if self.place.waits_for_work(stat) { Kind::Waits } else { Kind::Supervisor };
        }
        if self.place.is_scheduler(&arguments) {
            return Kind::Scheduler;
        }
        let Some(work) =
            self.by_environment(stat, &arguments, now).or_else(|| self.by_cgroup(stat, &arguments, now))
        else {
            return Kind::Stranger;
        };
        // It was this very process that was read.
        if !procfs::lives(stat.id) {
            return Kind::Stranger;
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let known_ms = seen.work.get(&stat.id).map_or(work.known_ms, |before| before.known_ms);
        seen.work.insert(stat.id, Work { known_ms, ..work });
        Kind::Work
    }

    /// Work that still has the environment it was given.
    fn by_environment(&self, stat: &Stat, arguments: &[String], now: u64) -> Option<Work> {
        let variables = procfs::environment(stat.id.pid);
        let get =
            |name: &str| variables.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
        if !Path::new(get("OVERNIGHT_OUTPUT")?).starts_with(&self.place.root) {
            return None;
        }
        let number = |name: &str| get(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
        let uuids = get("OVERNIGHT_GPU_UUIDS").unwrap_or_default().split(',');
        Some(Work {
            token: get("OVERNIGHT_TOKEN")?.to_owned(),
            job: number("OVERNIGHT_JOB"),
            task: number("OVERNIGHT_TASK") as u32,
            attempt: number("OVERNIGHT_ATTEMPT") as u32,
            uuids: uuids.filter(|uuid| !uuid.is_empty()).map(str::to_owned).collect(),
            command: arguments.join(" ").chars().take(80).collect(),
            parent: stat.parent,
            known_ms: procfs::boottime_ms(),
            alive_ms: now,
        })
    }

    /// Work that has dropped its environment and is in a control group that bears its token.
    fn by_cgroup(&self, stat: &Stat, arguments: &[String], now: u64) -> Option<Work> {
        // Gathers the output when the run is over.
        if arguments.get(1).is_some_and(|verb| verb == "collect") {
            return None;
        }
        let groups = fs::read_to_string(format!("/proc/{}/cgroup", stat.id.pid)).ok()?;
        let (token, (job, task, attempt)) =
            self.tokens.iter().find(|(token, _)| groups.contains(token.as_str()))?;
        Some(Work {
            token: token.clone(),
            job: *job,
            task: *task,
            attempt: *attempt,
            uuids: Vec::new(),
            command: arguments.join(" ").chars().take(80).collect(),
            parent: stat.parent,
            known_ms: procfs::boottime_ms(),
            alive_ms: now,
        })
    }
}

fn note(spans: &mut HashMap<Pidt, Span>, id: Pidt, now: u64) {
    spans.entry(id).or_insert(Span { first_ms: now, last_ms: now }).last_ms = now;
}

/// Both lived at one moment: the first before and after the second.
fn together(one: Pidt, other: Pidt) -> bool {
    procfs::lives(one) && procfs::lives(other) && procfs::lives(one)
}

/// I4: of one task, processes of two attempts never live at the same moment.
fn one_attempt_lives(work: &[(Pidt, Work)], findings: &mut Findings) {
    for (ix, (one, its)) in work.iter().enumerate() {
        for (other, others) in &work[ix + 1..] {
            let same_task = (its.job, its.task) == (others.job, others.task);
            if same_task && its.token != others.token && together(*one, *other) {
                findings.add(
                    "I4",
                    format!(
                        "two attempts of job {} live: {} of attempt {} ({}) and {} of attempt {} ({})",
                        its.job, one.pid, its.attempt, its.command, other.pid, others.attempt, others.command
                    ),
                );
            }
        }
    }
}

/// I5: of one device, processes of two leases never live at the same moment.
fn one_holder_lives(work: &[(Pidt, Work)], findings: &mut Findings) {
    for (ix, (one, its)) in work.iter().enumerate() {
        for (other, others) in &work[ix + 1..] {
            let shared = its.uuids.iter().find(|uuid| others.uuids.contains(uuid));
            if let Some(uuid) = shared
                && its.token != others.token
                && together(*one, *other)
            {
                findings.add(
                    "I5",
                    format!(
                        "{uuid} is used by {} of job {} ({}) and by {} of job {} ({})",
                        one.pid, its.job, its.command, other.pid, others.job, others.command
                    ),
                );
            }
        }
    }
}

fn is_locked(supervisor: i32, uuid: &str) -> bool {
    let locks = procfs::flocked();
    let files = procfs::open_files(supervisor, &format!("{uuid}.lock"));
    files.iter().filter_map(|path| fs::metadata(path).ok()).any(|meta| locks.contains(&meta.ino()))
}

/// I5 across schedulers: while a supervisor and its work live, it has a lock of every device of its lease.
fn locks_are_held(work: &[(Pidt, Work)], findings: &mut Findings) {
    for (id, its) in work {
        let Some(supervisor) = procfs::stat(its.parent).filter(Stat::lives) else { continue };
        let is_supervisor = procfs::arguments(its.parent).get(1).is_some_and(|word| word == "supervise");
        if !is_supervisor {
            continue;
        }
        for uuid in &its.uuids {
            // A supervisor that is just being killed loses its files before it is gone: only one that lives on counts.
            let unlocked =
                || !is_locked(its.parent, uuid) && procfs::lives(*id) && procfs::lives(supervisor.id);
            if !unlocked() {
                continue;
            }
            std::thread::park_timeout(Duration::from_millis(50));
            if unlocked() {
                findings.add(
                    "I5",
                    format!(
                        "job {} runs on {uuid} and its supervisor {} has no lock of it",
                        its.job, its.parent
                    ),
                );
            }
        }
    }
}
