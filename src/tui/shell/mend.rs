//! A job file of the inbox, mended as the person at the screen: read, and replaced as a whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// No job file is larger.
const LARGEST: u64 = 4 << 20;

/// The file and what it says; of a folder, its job file.
pub(super) fn read(path: &Path) -> Result<(PathBuf, Vec<u8>), String> {
    let path = if path.is_dir() { path.join("job.yaml") } else { path.to_owned() };
    content(&path).map(|text| (path.clone(), text)).map_err(|error| format!("cannot be read: {error}"))
}

fn content(path: &Path) -> io::Result<Vec<u8>> {
    let about = fs::symlink_metadata(path)?;
    if about.is_symlink() {
        return Err(io::Error::other("it is a link: mend the file that it points to"));
    }
    if !about.is_file() || about.len() > LARGEST {
        return Err(io::Error::other("it is no job file"));
    }
    let mut text = Vec::new();
    File::open(path)?.take(LARGEST).read_to_end(&mut text)?;
    Ok(text)
}

/// Puts `new` in the place of `was`, with the same mode; refuses if anything else is there.
pub(super) fn write(path: &Path, was: &[u8], new: &[u8]) -> Result<(), String> {
    replace(path, was, new).map_err(|error| format!("nothing was changed: {error}"))
}

fn replace(path: &Path, was: &[u8], new: &[u8]) -> io::Result<()> {
    let about = fs::symlink_metadata(path)?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::other("it has no name"));
    };
    // Such names are not looked at in the inbox.
    let beside = folder.join(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(new)?;
        file.set_permissions(fs::Permissions::from_mode(about.mode() & 0o7777))?;
        file.sync_all()?;
        if content(path)? != was {
            return Err(io::Error::other("the file has changed meanwhile; look again"));
        }
        fs::rename(&beside, path)
    })();
    if written.is_err() {
        // Nothing of the try is left; if even that fails, the name is one that nobody looks at.
        let _left = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_keeps_its_mode_and_is_left_alone_if_it_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sweep.yaml");
        fs::write(&path, "gpu_count: 2\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let (read_path, was) = read(&path).unwrap();
        assert_eq!(read_path, path);
        write(&path, &was, b"gpus: 2\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"gpus: 2\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        let refused = write(&path, &was, b"gpus: 3\n").unwrap_err();
        assert!(refused.contains("changed meanwhile"), "{refused}");
        assert_eq!(fs::read(&path).unwrap(), b"gpus: 2\n");
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["sweep.yaml"]);
        let link = folder.path().join("link.yaml");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(read(&link).unwrap_err().contains("link"));
    }
}
