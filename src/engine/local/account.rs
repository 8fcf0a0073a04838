//! The account the work runs as, from the system's user database.

use std::collections::BTreeMap;
use std::ffi::CStr;

const BUFFER: usize = 16 << 10;

/// `HOME USER LOGNAME SHELL` of a user; what the database does not know is left out.
#[expect(unsafe_code, reason = "the user database may be on the network; only the C library knows where")]
pub(super) fn variables(uid: u32) -> BTreeMap<String, String> {
    let mut buffer = vec![0; BUFFER];
    let mut record = std::mem::MaybeUninit::<libc::passwd>::zeroed();
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are to live memory of the sizes given; the call writes nothing beyond them.
    let code = unsafe {
        libc::getpwuid_r(uid, record.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &raw mut found)
    };
    if code != 0 || found.is_null() {
        return BTreeMap::new();
    }
    // SAFETY: the call succeeded, so the record is filled in and its texts are in `buffer`, which lives.
    let (name, home, shell) = unsafe {
        let record = record.assume_init();
        (text(record.pw_name), text(record.pw_dir), text(record.pw_shell))
    };
    let shell = Some(shell.filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".to_owned()));
    [("HOME", home), ("USER", name.clone()), ("LOGNAME", name), ("SHELL", shell)]
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
}

/// # Safety
/// Null, or the start of a text that ends in NUL and lives for the call.
#[expect(unsafe_code, reason = "reads what the C library returned")]
unsafe fn text(start: *const libc::c_char) -> Option<String> {
    if start.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    Some(unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_and_a_stranger_is_not() {
        let root = variables(0);
        assert_eq!(root["USER"], "root");
        assert!(root["HOME"].starts_with('/') && root["SHELL"].starts_with('/'));
        assert!(variables(4_000_000_123).is_empty());
    }
}
