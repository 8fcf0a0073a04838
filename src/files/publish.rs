//! `output_to`: a second home for what came back, where nothing of others is ever overwritten.

use super::collect::{hash, parent};
use super::copy::Copier;
use super::error::FilesError;
use super::progress::Progress;
use super::search::shown;
use super::tree::{self, Dir};
use crate::model::{Collect, ReturnedFile};
use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Numbered names that are tried.
const NAMES: usize = 1000;

/// Copies what came back to `place`. What cannot be copied is a note: it is home already, this is only a copy.
pub(super) fn publish(
    (order, output, place): (&Collect, &Dir, &Path),
    files: &[ReturnedFile],
    notes: &mut Vec<String>,
    progress: &mut Progress<'_>,
) -> Result<(), FilesError> {
    let result = tree::make_root(place).and_then(|dir| {
        let mut publisher = Publisher { order, output, place, dir: &dir, notes, progress };
        for file in files {
            if let Err(error) = publisher.file(file) {
                publisher.survive(error)?;
            }
        }
        Ok(())
    });
    match result {
        Err(error) if error.is_worth_another_try() => Err(error),
        Err(error) => {
            notes.push(format!("not copied to {}: {error}: {}", shown(place), error.source));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

struct Publisher<'a, 'p> {
    order: &'a Collect,
    output: &'a Dir,
    place: &'a Path,
    dir: &'a Dir,
    notes: &'a mut Vec<String>,
    progress: &'a mut Progress<'p>,
}

impl Publisher<'_, '_> {
    fn survive(&mut self, error: FilesError) -> Result<(), FilesError> {
        if error.is_worth_another_try() {
            return Err(error);
        }
        self.notes.push(format!("not copied to {}: {error}: {}", shown(self.place), error.source));
        Ok(())
    }

    fn file(&mut self, file: &ReturnedFile) -> Result<(), FilesError> {
        let source = self.order.output_dir.join(&file.path);
        let found = parent(self.output, &file.path).map_err(FilesError::errno("open", &source))?;
        let Some((from, name)) = found else { return Ok(()) };
        let Some((open, stat)) = tree::optional(tree::open_file(&from, name), &source)? else {
            return Ok(());
        };
        let above = file.path.parent().unwrap_or(Path::new(""));
        let target = tree::make_below(self.dir, self.place, above)?;
        let partial = OsString::from(format!(".overnight-partial-{}", self.order.job));
        let target_path = self.place.join(&file.path);
        let mut copied = false;
        for n in 0..NAMES {
            let candidate = numbered(name, &self.order.job, n);
            match self.taken(&target, &candidate, file)? {
                Taken::BySame => {}
                Taken::ByAnother => continue,
                Taken::No => {
                    if !copied {
                        remove(&target, &partial, &target_path)?;
                        let mut tell = |bytes| self.progress.did(bytes);
                        Copier::telling(&mut tell).file(&open, &stat, (&target, &partial, &target_path))?;
                        sync_file(&target, &partial, &target_path)?;
                        copied = true;
                    }
                    if !put(&target, &partial, &candidate, &target_path)? {
                        continue;
                    }
                    copied = false;
                }
            }
            if n > 0 {
                let (was, is) = (shown(&target_path), shown(Path::new(&candidate)));
                self.notes.push(format!("{was} is another file: copied as {is}"));
            }
            break;
        }
        if copied {
            remove(&target, &partial, &target_path)?;
        }
        Ok(())
    }

    fn taken(&self, dir: &Dir, name: &OsStr, file: &ReturnedFile) -> Result<Taken, FilesError> {
        let path = self.place.join(name);
        match tree::stat(dir, name) {
            Err(Errno::NOENT) => return Ok(Taken::No),
            Err(errno) => return Err(FilesError::errno("look at", path)(errno)),
            Ok(stat) if u64::try_from(stat.st_size).ok() != Some(file.bytes.0) => {
                return Ok(Taken::ByAnother);
            }
            Ok(_) => {}
        }
        let Ok((open, _)) = tree::open_file(dir, name) else { return Ok(Taken::ByAnother) };
        let (_, blake3) = hash(&open, &mut |_| {}).map_err(FilesError::new("read", path))?;
        Ok(if blake3 == file.blake3 { Taken::BySame } else { Taken::ByAnother })
    }
}

enum Taken {
    No,
    BySame,
    ByAnother,
}

/// Others' files may lie beside it, so it alone is made durable.
fn sync_file(dir: &Dir, name: &OsStr, path: &Path) -> Result<(), FilesError> {
    let (file, _) = tree::open_file(dir, name).map_err(FilesError::errno("open", path))?;
    file.sync_all().map_err(FilesError::new("sync", path))
}

/// Gives a whole copy its name. `false` if that was taken meanwhile.
fn put(dir: &Dir, partial: &OsStr, name: &OsStr, path: &Path) -> Result<bool, FilesError> {
    match rustix::fs::renameat_with(dir, partial, dir, name, RenameFlags::NOREPLACE) {
        Ok(()) => return Ok(true),
        Err(Errno::EXIST) => return Ok(false),
        // A file system without the flag: a link does not replace anything either.
        Err(Errno::INVAL) => {}
        Err(errno) => return Err(FilesError::errno("write", path)(errno)),
    }
    match rustix::fs::linkat(dir, partial, dir, name, AtFlags::empty()) {
        Ok(()) => remove(dir, partial, path).map(|()| true),
        Err(Errno::EXIST) => Ok(false),
        Err(errno) => Err(FilesError::errno("write", path)(errno)),
    }
}

fn remove(dir: &Dir, name: &OsStr, path: &Path) -> Result<(), FilesError> {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(FilesError::errno("remove a partial copy of", path)(errno)),
    }
}

/// `best.pt`, `best.17.pt`, `best.17-2.pt`, …
fn numbered(name: &OsStr, job: &str, n: usize) -> OsString {
    if n == 0 {
        return name.to_owned();
    }
    let path = Path::new(name);
    let mut numbered = path.file_stem().unwrap_or(name).to_owned();
    numbered.push(format!(".{job}"));
    if n > 1 {
        numbered.push(format!("-{n}"));
    }
    if let Some(extension) = path.extension() {
        numbered.push(".");
        numbered.push(extension);
    }
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numbered_name_keeps_its_extension() {
        let name = |name: &str, n| numbered(OsStr::new(name), "17", n).into_string().unwrap();
        assert_eq!(name("best.pt", 0), "best.pt");
        assert_eq!(name("best.pt", 1), "best.17.pt");
        assert_eq!(name("best.pt", 2), "best.17-2.pt");
        assert_eq!(name("README", 1), "README.17");
        assert_eq!(name(".env", 1), ".env.17");
    }
}
