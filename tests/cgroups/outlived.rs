//! Processes that no kill ends (they hang on a frozen file system): the run ends without them, and their end is told when
//! it comes, whoever has died meanwhile.

use super::skipped;
use crate::rig::{Frozen, Scheduler, shell, wait_for};
use overnight::engine::Engine;
use overnight::model::{EndedBy, LeaseId, RunEnd, Token};
use overnight::sched::{EngineReport, StopKind};
use overnight::supervisor::{process, record};
use rustix::process::Signal;

/// A run with a process that hangs.
struct Hung {
    it: Scheduler,
    disk: Frozen,
    token: Token,
}

fn hung() -> Option<Hung> {
    let mut it = Scheduler::new();
    let Some(disk) = Frozen::make(it.dir.path()) else {
        skipped("freezing a loop mount needs root, mkfs.ext4 and fsfreeze");
        return None;
    };
    let at = disk.at.display();
    let launch = shell(&format!(
        "(while [ ! -e $OVERNIGHT_OUTPUT/go ]; do sleep 0.02; done; exec dd if=/dev/zero of={at}/file bs=4k count=1) &
         sleep 600"
    ));
    it.launch(&launch);
    it.until_started();
    disk.freeze();
    std::fs::write(it.output("go"), "").unwrap();
    let main = record::read(&it.run_dir(1).join(record::NAME)).unwrap().main().unwrap();
    let stuck = |seen: &process::Seen| seen.session == main.pid && seen.state == b'D';
    wait_for(|| process::all().iter().any(stuck).then_some(()));
    Some(Hung { it, disk, token: launch.token })
}

impl Hung {
    fn until_outlived(&self) -> String {
        self.it.until(|news| match news {
            EngineReport::Outlived { who, .. } => Some(who.clone()),
            EngineReport::Gone { .. } => panic!("gone before it was there"),
            _ => None,
        })
    }

    fn thaw_and_see_it_go(&self) {
        self.disk.thaw();
        self.it.until(|news| matches!(news, EngineReport::Gone { lease: LeaseId(1) }).then_some(()));
    }
}

#[test]
fn it_is_named_the_run_ends_without_it_and_its_end_is_told_when_it_comes() {
    let Some(mut hung) = hung() else { return };
    hung.it.stop(1, &StopKind::CancelNow { by: "ana".to_owned() });
    let who = hung.until_outlived();
    assert!(who.contains("(dd)"), "{who}");
    let end = hung.it.until_ended();
    assert_eq!((end.how, end.by), (RunEnd::Cancelled { by: "ana".to_owned() }, EndedBy::AfterKill));
    hung.it.until_collected().unwrap();
    // Also without a scheduler it stays: somebody has to see the end.
    let supervisor = hung.it.supervisor(1);
    hung.it.drop_engine();
    hung.it.start_engine();
    assert!(process::is_running(supervisor));
    hung.it.engine().survey(&[(LeaseId(1), hung.token.clone())]).unwrap();
    assert_eq!(hung.until_outlived(), who);
    hung.thaw_and_see_it_go();
    let state = record::read(&hung.it.run_dir(1).join(record::NAME)).unwrap();
    assert!(!state.is_outlived());
    hung.it.engine().dismiss(LeaseId(1)).unwrap();
    wait_for(|| (!process::is_running(supervisor)).then_some(()));
}

#[test]
fn it_is_told_too_when_the_supervisor_dies_first() {
    let Some(hung) = hung() else { return };
    assert!(process::signal(hung.it.supervisor(1), Signal::KILL));
    assert!(hung.until_outlived().contains("(dd)"));
    let why = hung.it.until(|news| match news {
        EngineReport::Missing { gone, why, .. } => Some((*gone, why.clone())),
        _ => None,
    });
    assert!(!why.0 && why.1.contains("(dd)"), "{why:?}");
    hung.thaw_and_see_it_go();
}

#[test]
fn it_is_told_too_when_supervisor_and_scheduler_die_after_the_end_of_the_run() {
    let Some(mut hung) = hung() else { return };
    hung.it.stop(1, &StopKind::CancelNow { by: "ana".to_owned() });
    hung.until_outlived();
    assert_eq!(hung.it.until_ended().by, EndedBy::AfterKill);
    hung.it.until_collected().unwrap();
    let supervisor = hung.it.supervisor(1);
    hung.it.drop_engine();
    assert!(process::signal(supervisor, Signal::KILL));
    wait_for(|| (!process::is_running(supervisor)).then_some(()));
    hung.it.start_engine();
    hung.it.engine().survey(&[(LeaseId(1), hung.token.clone())]).unwrap();
    assert!(hung.until_outlived().contains("(dd)"));
    hung.thaw_and_see_it_go();
}
