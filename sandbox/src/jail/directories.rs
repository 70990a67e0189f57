//! The private directories of a jail that is being built, with the HOME that is kept for it.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::grants::Grants;
use crate::home::{Linking, TopOfHome};
use crate::kept_home::{self, Means};
use crate::policy::Policy;
use crate::private::{Private, PrivateDirs, PrivateError};

/// The private directories, and what is known of HOME.
pub(super) struct Directories {
    pub(super) dirs: PrivateDirs,
    pub(super) home: OwnHome,
}

/// What a jail knows of its own HOME.
#[derive(Debug, Default)]
pub(super) struct OwnHome {
    pub(super) top: Option<TopOfHome>,
    /// Why it is not kept although the policy wants it.
    pub(super) problem: Option<String>,
    /// Set by the first command.
    pub(super) used: Arc<AtomicBool>,
    /// The first command waits for it.
    linking: Mutex<Option<Linking>>,
}

impl OwnHome {
    /// Makes the overlays of the HOME that is in `private`.
    pub(super) fn add_overlays(&self, private: &mut Private, grants: &Grants) {
        if let (Some(home), Some(top)) = (&mut private.home, &self.top) {
            *self.linking() = home.add_overlays(grants, top);
        }
    }

    /// Waits until the overlays are whole.
    pub(super) fn complete(&self) {
        // Others wait meanwhile for the same.
        let mut linking = self.linking();
        if let Some(linking) = linking.take() {
            linking.wait();
        }
    }

    /// Leaves the overlays as they are.
    pub(super) fn stop(&self) {
        drop(self.linking().take());
    }

    fn linking(&self) -> MutexGuard<'_, Option<Linking>> {
        self.linking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Directories {
    /// Makes them in `base`, with a HOME for jails that keep commands apart by `means`; `None` keeps none.
    pub(super) fn make(
        base: &Path,
        policy: &Policy,
        grants: &Grants,
        means: Option<Means>,
    ) -> Result<Self, PrivateError> {
        let mut dirs = PrivateDirs::make(base)?;
        let mut home = OwnHome::default();
        match means.and_then(|means| kept_home::of(policy, grants, means)) {
            None => {}
            Some(Ok(kept)) => {
                home.used = kept.used.clone();
                dirs.use_home(kept);
            }
            Some(Err(problem)) => home.problem = Some(problem.to_string()),
        }
        if grants.home.is_some() {
            home.top = Some(TopOfHome::new(dirs.home_handle()?));
        }
        Ok(Self { dirs, home })
    }
}
