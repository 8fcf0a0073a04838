//! A look at a store that nobody has open: changes nothing and takes no lock.

use super::create::{earlier_start, is_another, read_marker};
use super::error::StoreError;
use super::{FileStorage, Identity, StoreOptions, open};
use std::path::Path;
use std::sync::Arc;

/// Whether a scheduler could open the store, or why not; `false` if there is none and this would be its first start.
///
/// Only for a store that no scheduler has: one that is written meanwhile looks damaged.
pub fn examine(path: &Path, identity: &Identity, options: &StoreOptions) -> Result<bool, StoreError> {
    let marker = &options.first_start_marker;
    let owner = read_marker(marker)?;
    if let Some(owner) = owner.as_deref().filter(|owner| is_another(owner, path)) {
        return Err(StoreError::OtherState { marker: marker.clone(), owner: owner.to_owned() });
    }
    let io = |source| StoreError::Io { doing: "open", path: path.to_owned(), source };
    let file = match crate::beneath::named_file(path) {
        Ok((file, _)) => file,
        Err(rustix::io::Errno::NOENT) => {
            return match earlier_start(owner.as_deref(), options) {
                Some(sign) => {
                    Err(StoreError::Emptied { path: path.to_owned(), sign, marker: marker.clone() })
                }
                None => Ok(false),
            };
        }
        Err(crate::beneath::NOT_A_FILE) => {
            let detail = "it is not a regular file".to_owned();
            return Err(StoreError::NotOurs { path: path.to_owned(), detail });
        }
        Err(errno) => return Err(io(errno.into())),
    };
    open::check(path, &FileStorage::new(Arc::new(file)), identity)?;
    Ok(true)
}
