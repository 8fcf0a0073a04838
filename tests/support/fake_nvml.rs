//! The fake driver of `tests/fake_nvml`, for a test or for the shipped binary.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The library, built where it is missing or old: with `--test NAME` cargo does not build examples.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let exe = std::env::current_exe().unwrap();
        // target/<profile>/deps/<test> → target/<profile>
        let profile = exe.parent().unwrap().parent().unwrap();
        let library = profile.join("examples/libfake_nvml.so");
        let sources = ["lib.rs", "state.rs", "events.rs"]
            .map(|name| changed(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_nvml").join(name)));
        if sources.iter().any(|source| *source > changed(&library)) {
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--example", "fake_nvml", "--manifest-path"]);
            build.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
            build.arg("--target-dir").arg(profile.parent().unwrap());
            if profile.ends_with("release") {
                build.arg("--release");
            }
            assert!(build.status().unwrap().success(), "the fake library could not be built");
        }
        library
    })
}

/// When a file was last changed; `None`, the earliest, if it is not there.
fn changed(path: &Path) -> Option<std::time::SystemTime> {
    std::fs::metadata(path).and_then(|meta| meta.modified()).ok()
}

/// One device of the fake driver.
#[derive(Debug, Clone)]
pub(crate) struct FakeDevice {
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) bus: u8,
    pub(crate) memory_total: u64,
    pub(crate) memory_used: u64,
    pub(crate) utilisation: u32,
    pub(crate) temperature_c: u32,
    pub(crate) power_mw: u32,
    /// Xids, in the order in which they happened.
    pub(crate) xids: Vec<u64>,
    /// Further lines, such as `process = compute 4242 1048576` or `error.memory = 999`.
    pub(crate) lines: Vec<String>,
}

impl FakeDevice {
    /// An idle device on this PCI bus.
    pub(crate) fn idle(uuid: &str, bus: u8) -> Self {
        Self {
            uuid: uuid.to_owned(),
            name: "NVIDIA A100 80GB PCIe".to_owned(),
            bus,
            memory_total: 80 << 30,
            memory_used: 4 << 20,
            utilisation: 0,
            temperature_c: 33,
            power_mw: 52_000,
            xids: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// With one more line.
    pub(crate) fn with(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }
}

/// What the fake driver answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct FakeState {
    pub(crate) init: u32,
    pub(crate) hang_ms: u64,
    pub(crate) burst: u32,
    pub(crate) devices: Vec<FakeDevice>,
}

impl FakeState {
    fn text(&self) -> String {
        let mut text = format!("init = {}\nhang_ms = {}\nburst = {}\n", self.init, self.hang_ms, self.burst);
        for device in &self.devices {
            let FakeDevice { uuid, name, bus, memory_total, memory_used, .. } = device;
            let FakeDevice { utilisation, temperature_c, power_mw, xids, lines, .. } = device;
            write!(
                text,
                "[device]\nuuid = {uuid}\nname = {name}\npci = 00000000:{bus:02x}:00.0\n\
                 memory_total = {memory_total}\nmemory_used = {memory_used}\nutilisation = {utilisation}\n\
                 temperature_c = {temperature_c}\npower_mw = {power_mw}\n{}\n",
                lines.join("\n")
            )
            .unwrap();
            for (number, xid) in (1..).zip(xids) {
                writeln!(text, "xid = {number} {xid}").unwrap();
            }
        }
        text
    }
}

/// A folder with the library under the driver's name and the file that it reads.
#[derive(Debug)]
pub(crate) struct FakeNvml {
    dir: tempfile::TempDir,
}

impl FakeNvml {
    /// Installs the library beside this state.
    pub(crate) fn new(state: &FakeState) -> Self {
        let fake = Self { dir: tempfile::tempdir().unwrap() };
        // A copy, not a link: the loader knows a library by its inode, and each copy is a driver of its own.
        std::fs::copy(library(), fake.library()).unwrap();
        fake.set(state);
        fake
    }

    /// The library in this folder.
    pub(crate) fn library(&self) -> PathBuf {
        self.dir.path().join("libnvidia-ml.so.1")
    }

    /// Changes what the driver answers, in one step.
    pub(crate) fn set(&self, state: &FakeState) {
        let next = self.dir.path().join("state.next");
        std::fs::write(&next, state.text()).unwrap();
        std::fs::rename(next, self.state_file()).unwrap();
    }

    /// For `$FAKE_NVML_STATE`.
    pub(crate) fn state_file(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// For `$LD_LIBRARY_PATH`.
    pub(crate) fn library_dir(&self) -> &Path {
        self.dir.path()
    }

    /// Lets a program find the fake driver.
    pub(crate) fn env(&self, command: &mut Command) {
        command.env("LD_LIBRARY_PATH", self.library_dir()).env("FAKE_NVML_STATE", self.state_file());
    }
}
