//! A state disk without room: admission stops and says so, what runs goes on, and all goes on by itself.

use super::small_disk::SmallDisk;
use super::{nothing_is_left_behind, one_gpu, wait_for_gate};
use crate::support::auditor::Auditor;
use crate::support::sandbox::{Sandbox, eventually};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;

#[test]
fn a_full_state_disk_stops_admission_and_nothing_else_and_all_goes_on_by_itself() {
    let Some(disk) = SmallDisk::new("a_full_state_disk_stops_admission", 3 << 10) else { return };
    let mut sandbox = Sandbox::new("simulated:2");
    fs::create_dir_all(sandbox.root()).unwrap();
    symlink(&disk.0, sandbox.root().join(".state")).unwrap();
    sandbox.serve();
    let audit = Auditor::watch(&sandbox);
    let gate = wait_for_gate(&sandbox.gate("go"));
    sandbox.drop_file("before.yaml", &one_gpu(&gate, ""));
    sandbox.wait_for_state("before", "running");

    let ballast = disk.0.join("ballast");
    let mut file = File::create(&ballast).unwrap();
    // Block by block, then byte by byte: until nothing fits any more.
    while file.write_all(&[1; 4096]).is_ok() {}
    while file.write_all(&[1]).is_ok() {}
    let more = sandbox.dir().join("asked.yaml");
    fs::write(&more, one_gpu("true", "")).unwrap();
    let more = more.to_str().unwrap().to_owned();
    // Pages of the file that are free already may still take a submission or two.
    eventually("an answer that says that the disk is full", || {
        let run = sandbox.run(&["submit", &more]);
        (run.code != 0 && run.stderr.contains("full")).then_some(())
    });
    let refused = sandbox.run(&["submit", &more, "--name", "refused"]);
    assert!(refused.code != 0 && refused.stderr.contains("nothing is changed"), "{}", refused.stderr);
    sandbox.drop_file("meanwhile.yaml", &one_gpu("true", ""));
    assert_eq!(sandbox.wait_for_state("before", "running")["outcome"], serde_json::Value::Null);
    sandbox.open_gate("go");

    drop(file);
    fs::remove_file(&ballast).unwrap();
    assert_eq!(sandbox.wait_for_end("before"), "succeeded");
    assert_eq!(sandbox.wait_for_end("meanwhile"), "succeeded");
    assert_eq!(sandbox.wait_for_end("asked"), "succeeded", "what was asked first is done when there is room");
    assert!(sandbox.jobs().iter().all(|job| job["name"] != "refused"), "what was refused is not there");
    nothing_is_left_behind(&sandbox);
    audit.finish();
}
