//! What a call finds at the places when it begins.

use std::collections::{BTreeMap, BTreeSet};

use super::places::{Kind, Place};
use super::providers::Company;
use super::{MOST_MOUNTED, Mounts, Protection, Seen, State, views};
use crate::git_places::{self, GitDirectory, Part};
use crate::{FileId, FileStat};

impl Protection {
    /// The repositories among git directories that are there.
    pub(super) fn repositories(&self, known: &BTreeSet<GitDirectory>) -> Vec<FileId> {
        let views = views(&self.tops);
        let whole = known.iter().filter(|directory| directory.part == Part::Whole);
        let id = |directory: &GitDirectory| {
            let handle = git_places::open(&views[directory.top], &directory.path).ok()?;
            Some(FileStat::of(&handle).ok()?.id)
        };
        whole.filter_map(id).collect()
    }

    /// Looks at every place, and has those mounted that are not and could be.
    pub(super) fn remember(
        &self,
        state: &mut State,
        known: &BTreeSet<GitDirectory>,
        company: Company,
        mounts: &dyn Mounts,
    ) {
        let views = views(&self.tops);
        let mut before = BTreeMap::new();
        let (mut mounted, mut unmounted) = (Vec::new(), Vec::new());
        let mut last = None;
        for place in self.places(known) {
            let path = self.path(&place);
            let earlier = state.before.get(&path);
            let within = (place.top, place.within.clone());
            let is_there = match &last {
                Some((known, is_there)) if *known == within => *is_there,
                _ => git_places::open(&views[place.top], &place.within).is_ok(),
            };
            last = Some((within, is_there));
            let seen = match earlier {
                // What comes back there later is compared with what was.
                Some(earlier) if !is_there => earlier.clone(),
                _ => self.see(&place, earlier, mounts).in_company(company, &place, earlier),
            };
            if mounted.len() + unmounted.len() < MOST_MOUNTED && place.may_be_mounted() {
                match &seen {
                    Seen::Mounted => mounted.push(place.clone()),
                    Seen::Found(item) if item.is_mountable() && is_there => {
                        unmounted.push(place.clone());
                    }
                    Seen::Found(_) | Seen::Unsure { .. } | Seen::Refused { .. } => {}
                }
            }
            before.insert(path, seen);
        }
        let paths = || mounted.iter().chain(&unmounted).map(|place| self.path(place)).collect();
        if !unmounted.is_empty() && mounts.renew(&paths) {
            // Those for which there is no room any more are compared from now on.
            for place in self.places(known) {
                let path = self.path(&place);
                let was_mounted = matches!(before.get(&path), Some(Seen::Mounted));
                if was_mounted || unmounted.contains(&place) {
                    let seen = self.see(&place, None, mounts);
                    let seen = seen.in_company(company, &place, before.get(&path));
                    before.insert(path, seen);
                }
            }
        }
        state.before = before;
    }

    /// While other calls run: looks at what nobody has looked at, and compares from now on what something
    /// outside took the mount of. A running call can write there, with new mounts too.
    pub(super) fn remember_more(
        &self,
        state: &mut State,
        known: &BTreeSet<GitDirectory>,
        company: Company,
        mounts: &dyn Mounts,
    ) {
        let mut replaced = Vec::new();
        for place in self.places(known) {
            let path = self.path(&place);
            match state.before.get(&path) {
                None => {
                    let seen = self.see(&place, None, mounts).in_company(company, &place, None);
                    state.before.insert(path, seen);
                }
                Some(Seen::Mounted) if !mounts.stands(&path) => {
                    state.before.insert(path.clone(), Seen::Found(self.look(&place)));
                    replaced.push(path);
                }
                Some(_) => {}
            }
        }
        if !replaced.is_empty() {
            if mounts.renew(&|| self.to_mount()) {
                for place in self.places(known) {
                    let path = self.path(&place);
                    let seen = state.before.get_mut(&path);
                    if let Some(seen @ Seen::Mounted) = seen
                        && !mounts.stands(&path)
                    {
                        *seen = Seen::Found(self.look(&place));
                    }
                }
            }
            state.replaced.append(&mut replaced);
        }
    }
}

impl Seen {
    /// What was seen of `place` while commands of other providers may run. A directory on the way is compared
    /// by what it is, which nobody would put back.
    fn in_company(self, company: Company, place: &Place, earlier: Option<&Seen>) -> Self {
        let Seen::Found(now) = self else { return self };
        let earlier = match earlier {
            Some(Seen::Found(item)) => Some(item),
            Some(Seen::Unsure { earlier, .. }) => earlier.as_ref(),
            Some(Seen::Mounted | Seen::Refused { .. }) | None => None,
        };
        let is_known = earlier.is_some_and(|earlier| earlier.is_same(&now));
        if company == Company::Alone || is_known || place.kind == Kind::Way {
            return Seen::Found(now);
        }
        Seen::Unsure { now, earlier: earlier.cloned() }
    }
}
