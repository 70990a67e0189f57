//! Says of new entries in HOME where they lie: nobody outside the jail finds them by the path that the
//! command used.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use sandbox::{Jail, Lifetime};
use workspace_fs::text::name;

/// The most entries that are named.
const MOST_NAMED: usize = 4;

/// The top of HOME before a command ran.
pub(super) struct Before<'a> {
    jail: &'a Jail,
    names: Option<BTreeSet<OsString>>,
}

impl<'a> Before<'a> {
    pub(super) fn look(jail: &'a Jail) -> Self {
        Self { jail, names: jail.home_names() }
    }

    /// What is there now and was not, in one sentence. Of calls that run side by side each may say so.
    pub(super) fn notice(self) -> Option<String> {
        let (before, now) = (self.names?, self.jail.home_names()?);
        let home = self.jail.private().home.as_ref()?;
        let new: Vec<&OsString> = now.difference(&before).collect();
        if new.is_empty() {
            return None;
        }
        let named = new.iter().take(MOST_NAMED).map(|entry| {
            let place = place(&home.path, &home.at, entry);
            match home.path != home.at && self.jail.is_worktree_in_home(entry) {
                true => format!("{place} (a worktree, which git outside looks for elsewhere)"),
                false => place,
            }
        });
        let mut named = named.collect::<Vec<_>>().join("; ");
        if new.len() > MOST_NAMED {
            named = format!("{named}; and {} more", new.len() - MOST_NAMED);
        }
        let fate = match home.lifetime {
            Lifetime::Kept => "it is kept for later sessions with the same rights",
            Lifetime::Jail => "it is discarded when the provider ends",
        };
        Some(format!(
            "HOME is the jail's own directory, not the operator's: {fate}. New in it: {named}. For \
             files that others are to find, write inside a root"
        ))
    }
}

/// An entry as the command names it, and where it lies.
fn place(home: &Path, at: &Path, entry: &OsString) -> String {
    let seen = home.join(entry);
    match home == at {
        true => name::of(&seen).into_owned(),
        false => format!("{}, outside the jail {}", name::of(&seen), name::of(&at.join(entry))),
    }
}
