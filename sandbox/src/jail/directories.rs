//! The private directories of a jail that is being built, with the HOME that is kept for it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::grants::Grants;
use crate::home::TopOfHome;
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
}

impl OwnHome {
    /// Makes the overlays of the HOME that is in `private`.
    pub(super) fn add_overlays(&self, private: &mut Private, grants: &Grants) {
        if let (Some(home), Some(top)) = (&mut private.home, &self.top) {
            home.add_overlays(grants, top);
        }
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
