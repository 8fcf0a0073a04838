//! Looks where the file system does not tell whether somebody writes. Time is a number here.

use super::*;
use std::fs;

fn desk() -> (Desk, tempfile::TempDir) {
    let root = tempfile::tempdir().unwrap();
    let config = InboxConfig::new(root.path().to_owned(), root.path(), rustix::process::getuid().as_raw());
    let mut desk = Desk::new(config);
    desk.leases = false;
    (desk, root)
}

/// Looks at whatever is due until nothing is, and says what came of it and when it was over.
fn settle(desk: &mut Desk, mut now_ms: u64) -> (Vec<InboxEvent>, u64) {
    let mut events = Vec::new();
    while let Some(due) = desk.next_due() {
        now_ms = now_ms.max(due);
        let name = desk.pop_due(now_ms).unwrap();
        events.extend(desk.look(&name, now_ms).event);
    }
    (events, now_ms)
}

#[test]
fn a_file_is_whole_when_it_stayed_the_same_for_a_while() {
    let (mut desk, root) = desk();
    let name = OsString::from("a.yaml");
    fs::write(root.path().join(&name), "half").unwrap();
    desk.hint(&Hint::Written(name.clone()), 1000);
    assert_eq!(desk.next_due(), Some(1150));
    assert_eq!(desk.pop_due(1150), Some(name.clone()));
    assert_eq!(desk.look(&name, 1150).event, None);
    // It grew meanwhile: the wait begins again.
    fs::write(root.path().join(&name), "half and half").unwrap();
    assert_eq!(desk.pop_due(3150), Some(name.clone()));
    assert_eq!(desk.look(&name, 3150).event, None);
    let (events, over) = settle(&mut desk, 3150);
    let [InboxEvent::Dropped(drop)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(drop.bytes, b"half and half");
    assert_eq!(over, 5150);
    desk.scanned(vec![name], 40_000);
    assert_eq!(settle(&mut desk, 40_000).0, [], "and it is one drop however often it is seen");
}

#[test]
fn a_folder_is_whole_when_it_and_its_job_file_stayed_the_same() {
    let (mut desk, root) = desk();
    let folder = root.path().join("sweep");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("job.yaml"), "job").unwrap();
    desk.scanned(vec!["sweep".into()], 1000);
    let (events, _) = settle(&mut desk, 1000);
    let [InboxEvent::Dropped(drop)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((drop.bytes.as_slice(), &drop.folder), (&b"job"[..], &Some(folder)));
}

#[test]
fn writes_push_a_look_out_and_a_rename_makes_it_due() {
    let (mut desk, root) = desk();
    let name = OsString::from("a.yaml");
    fs::write(root.path().join(&name), "job").unwrap();
    for now in [1000, 1100, 1200] {
        desk.hint(&Hint::Touched(name.clone()), now);
        assert_eq!(desk.next_due(), Some(now + 150));
    }
    desk.hint(&Hint::MovedIn(name), 1250);
    assert_eq!(desk.next_due(), Some(1250));
}

#[test]
fn a_name_that_nobody_spoke_of_can_go_without_a_word() {
    let (mut desk, _root) = desk();
    desk.hint(&Hint::Written("a.yaml".into()), 1000);
    desk.hint(&Hint::Removed("a.yaml".into()), 1001);
    assert_eq!(settle(&mut desk, 1001).0, []);
    assert_eq!(desk.next_due(), None);
}

#[test]
fn what_is_judged_anew_and_is_no_longer_there_is_told_to_be_gone() {
    let (mut desk, root) = desk();
    let name = OsString::from("a.txt");
    fs::write(root.path().join(&name), "no job").unwrap();
    desk.hint(&Hint::Written(name.clone()), 1000);
    let (events, now) = settle(&mut desk, 1000);
    assert!(matches!(events.as_slice(), [InboxEvent::Refused { .. }]), "{events:?}");
    fs::remove_file(root.path().join(&name)).unwrap();
    desk.forget(&name, now);
    let (events, _) = settle(&mut desk, now);
    assert_eq!(events, [InboxEvent::Gone { name: "a.txt".to_owned() }]);
}
