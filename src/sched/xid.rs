//! What each Xid means for the device it comes from. Data, and nothing else.
//!
//! Source: NVIDIA's catalog of Xids for Ampere and newer
//! (<https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html>, column "immediate action"; older cards:
//! <https://docs.nvidia.com/deploy/xid-errors/>), read in this way:
//!
//! | immediate action | class |
//! |---|---|
//! | restart the application; ignore, where a program is to blame | [`Class::Program`] |
//! | ignore, where nothing is to be done | [`Class::Notice`] |
//! | reset the GPU, check the hardware or its links, contact support | [`Class::Device`] |
//! | restart the machine: it fell off the bus | [`Class::Lost`] |
//!
//! Some are stricter than the catalog, because the card's memory is wearing out and only a reset replaces what is bad: 63,
//! 92, 94, 157, 160 and 161. 154 says that a recovery action is due and not which. What the catalog does not know is a
//! device's: unknown is not free.

/// What is done about an Xid. All of them are told to the job that has the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A program did something wrong: the device is well.
    Program,
    /// Nothing is wrong.
    Notice,
    /// The device, its memory or its links are not well: quarantine after the run, until it is cleared or reset.
    Device,
    /// It fell off the bus: likewise, and the run on it is ended.
    Lost,
}

/// Some Xids that mean the same.
#[derive(Debug)]
pub(super) struct Entry {
    first: u64,
    last: u64,
    /// What is done about them.
    pub(super) class: Class,
    /// In words.
    pub(super) words: &'static str,
}

const fn one(code: u64, class: Class, words: &'static str) -> Entry {
    Entry { first: code, last: code, class, words }
}

const fn some(first: u64, last: u64, class: Class, words: &'static str) -> Entry {
    Entry { first, last, class, words }
}

/// By number, without overlaps.
const CATALOG: &[Entry] = {
    use Class::{Device, Lost, Notice, Program};
    &[
        one(8, Program, "the GPU stopped processing"),
        one(11, Program, "invalid push buffer stream"),
        one(13, Program, "graphics engine exception"),
        one(14, Notice, "a test"),
        one(25, Program, "illegal push buffer stream"),
        one(31, Program, "GPU memory page fault"),
        one(32, Program, "corrupted push buffer stream"),
        some(37, 38, Program, "firmware error"),
        some(39, 41, Program, "copy engine exception"),
        one(43, Program, "the GPU stopped processing for this program"),
        one(44, Program, "graphics engine fault during a context switch"),
        one(45, Program, "cleaned up after an earlier error"),
        one(46, Device, "the GPU stopped processing"),
        one(48, Device, "double-bit ECC error"),
        one(54, Device, "auxiliary power is not connected"),
        one(60, Program, "video processor exception"),
        one(62, Device, "internal micro-controller halt"),
        one(63, Device, "a bad memory row is to be replaced"),
        one(64, Device, "a bad memory row could not be replaced"),
        some(66, 67, Program, "illegal access by the driver"),
        one(68, Program, "video decoder exception"),
        one(69, Program, "graphics engine class error"),
        some(70, 72, Program, "copy engine exception"),
        one(74, Device, "NVLink error"),
        some(75, 77, Program, "copy engine exception"),
        one(78, Device, "vGPU start error"),
        one(79, Lost, "fell off the bus"),
        one(80, Program, "corrupted data sent to the GPU"),
        one(82, Program, "image decoder exception"),
        some(83, 84, Program, "video decoder exception"),
        one(85, Program, "copy engine exception"),
        one(86, Program, "optical flow exception"),
        some(88, 89, Program, "video decoder exception"),
        one(92, Device, "many single-bit ECC errors"),
        one(93, Notice, "wear limit of the InfoROM"),
        one(94, Device, "contained memory error"),
        one(95, Device, "uncontained memory error"),
        some(96, 98, Program, "video decoder exception"),
        some(99, 105, Program, "image decoder exception"),
        some(106, 107, Notice, "a test"),
        one(109, Device, "context switch timeout"),
        one(110, Device, "security fault"),
        one(119, Device, "the GPU's system processor does not answer"),
        one(120, Device, "error of the GPU's system processor"),
        one(121, Notice, "chip-to-chip link was retrained"),
        some(126, 135, Program, "copy engine exception"),
        one(136, Device, "link training failed"),
        one(137, Program, "NVLink privilege error"),
        one(139, Program, "optical flow exception"),
        one(140, Device, "ECC error that was not recovered"),
        one(141, Program, "CUDA fast path error"),
        one(142, Device, "video encoder exception"),
        one(143, Device, "the GPU could not be initialised"),
        some(144, 150, Device, "NVLink error"),
        one(151, Device, "key rotation error"),
        some(152, 153, Program, "deep learning accelerator error"),
        one(154, Device, "a recovery action is due"),
        one(155, Device, "NVLink error"),
        some(156, 157, Device, "memory was retired"),
        one(158, Device, "fatal timeout"),
        one(159, Device, "chip-to-chip link error"),
        some(160, 161, Device, "a memory channel was retired"),
        some(162, 165, Notice, "power smoothing"),
        one(166, Device, "NVLink encryption error"),
        one(167, Device, "fatal PCIe timeout"),
        some(168, 169, Device, "internal memory or micro-controller error"),
        one(170, Device, "NVLink encryption error"),
        some(171, 172, Device, "memory error that ECC could not correct"),
    ]
};

/// For everything else.
const UNKNOWN: Entry = some(0, u64::MAX, Class::Device, "not in the catalog");

/// What an Xid means.
pub(super) fn entry(code: u64) -> &'static Entry {
    CATALOG.iter().find(|entry| (entry.first..=entry.last).contains(&code)).unwrap_or(&UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalog_is_in_order_and_names_nothing_twice() {
        for pair in CATALOG.windows(2) {
            assert!(pair[0].last < pair[1].first, "{pair:?}");
        }
        assert!(CATALOG.iter().all(|entry| entry.first <= entry.last && !entry.words.is_empty()));
    }

    #[test]
    fn errors_of_programs_are_told_from_errors_of_devices() {
        let class = |code| entry(code).class;
        for code in [8, 13, 31, 32, 43, 45, 68, 69] {
            assert_eq!(class(code), Class::Program, "{code}");
        }
        for code in [46, 48, 62, 63, 64, 74, 92, 94, 95, 109, 119, 120, 140, 143, 154, 0, 999, u64::MAX] {
            assert_eq!(class(code), Class::Device, "{code}");
        }
        assert_eq!(class(79), Class::Lost);
        assert_eq!(class(93), Class::Notice);
    }
}
