//! Whether commands of other providers work in the same repositories.
//!
//! What is at a place meanwhile may be what one of them wrote, and what that provider is about to set back.
//! A provider that took it for the operator's would put it there again. So each holds a lock for each
//! repository in which its commands run, in the state directory, where no command reaches it.

use std::collections::BTreeMap;
use std::sync::Arc;

use cap_std::fs::File;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::{FileId, StateDirectory};

/// The locks of the repositories in which commands of this provider run, or ran.
#[derive(Debug, Default)]
pub(super) struct Locks(BTreeMap<FileId, Lock>);

#[derive(Debug)]
struct Lock {
    file: File,
    name: String,
    directory: Arc<StateDirectory>,
    is_held: bool,
}

/// Whether other providers' commands run in a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Company {
    Alone,
    Others,
}

impl Locks {
    /// Holds the lock of each of `repositories`. Until [`settle`](Self::settle) no other provider's command
    /// begins in those where there is none.
    pub(super) fn hold(
        &mut self,
        directory: &Arc<StateDirectory>,
        mut repositories: Vec<FileId>,
    ) -> Company {
        // In one order, so that providers do not wait for one another in a circle.
        repositories.sort_unstable();
        let mut company = Company::Alone;
        for id in repositories {
            if self.0.get(&id).is_some_and(|lock| lock.is_held) {
                continue;
            }
            // Where no lock can be had, there is nothing that tells providers apart.
            let Ok(lock) = self.0.remove(&id).map_or_else(|| Lock::open(directory, id), Ok) else {
                continue;
            };
            let (lock, found) = lock.hold(id);
            if found == Company::Others {
                company = found;
            }
            self.0.insert(id, lock);
        }
        company
    }

    /// Lets other providers' commands begin, which then see that these are not alone.
    pub(super) fn settle(&self) {
        for lock in self.0.values().filter(|lock| lock.is_held) {
            let _ = flock(&lock.file, FlockOperation::LockShared);
        }
    }

    /// Gives the locks back.
    pub(super) fn release(&mut self) {
        for lock in self.0.values_mut() {
            lock.is_held = flock(&lock.file, FlockOperation::Unlock).is_err();
        }
    }
}

impl Lock {
    fn open(directory: &Arc<StateDirectory>, id: FileId) -> std::io::Result<Self> {
        let name = format!("{:x}-{:x}.running", id.device, id.inode);
        let file = directory.create_or_open(&name)?;
        Ok(Self { file, name, directory: directory.clone(), is_held: false })
    }

    fn hold(mut self, id: FileId) -> (Self, Company) {
        loop {
            let company = match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => {
                    let _ = flock(&self.file, FlockOperation::LockShared);
                    Company::Others
                }
                _ => Company::Alone,
            };
            self.is_held = true;
            // The last one to use it may have removed it before this one had the lock.
            let is_gone = rustix::fs::fstat(&self.file).is_ok_and(|stat| stat.st_nlink == 0);
            match is_gone.then(|| Self::open(&self.directory, id)) {
                Some(Ok(again)) => self = again,
                Some(Err(_)) | None => return (self, company),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok()
            && rustix::fs::fstat(&self.file).is_ok_and(|stat| stat.st_nlink == 1)
        {
            let _ = self.directory.remove(&self.name);
        }
    }
}
