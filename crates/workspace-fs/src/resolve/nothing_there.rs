//! The error of a path where nothing is, with paths that may have been meant.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::{PathArgument, ResolvedPath, Target};
use crate::look_alike::{self, is_look_alike};
use crate::text::name;
use crate::tree::IgnoreRules;
use crate::{Action, Fault, Workspace, WorkspaceError, near_names, same_tail};

/// How many paths are offered in place of one that is not there.
const MOST_NEAR: usize = 3;

impl Workspace {
    /// The error of a path where nothing is, with paths that may have been meant: similar names in the
    /// same directory, and paths elsewhere that end alike.
    #[must_use]
    pub fn not_found(
        &self,
        resolved: &ResolvedPath<'_>,
        path: PathArgument<'_>,
        action: Action,
    ) -> WorkspaceError {
        self.nothing_at(resolved, path).of(action, path.text)
    }

    /// Paths that end as the missing one does, beneath the directory that it is relative to.
    fn same_tail(&self, resolved: &ResolvedPath<'_>, path: PathArgument<'_>) -> Vec<PathBuf> {
        let is_absolute = name::decode(path.text).starts_with(b"/");
        let top = match path.working_directory {
            Some(directory) if !is_absolute => Path::new(directory),
            _ => resolved.root.path(),
        };
        let Ok(wanted) = resolved.path.strip_prefix(top) else { return Vec::new() };
        let text = name::of(top);
        let top_argument = PathArgument { text: &text, working_directory: None };
        let start = self.locate_fault(top_argument).ok().and_then(|found| {
            let start = found.start(&text, IgnoreRules::Honour).ok()?;
            Some((found.path, start))
        });
        let Some((top, start)) = start else { return Vec::new() };
        let same = same_tail::with_same_tail(&start, wanted.as_os_str().as_bytes());
        same.into_iter().map(|path| top.join(path)).collect()
    }

    fn nothing_at(&self, resolved: &ResolvedPath<'_>, path: PathArgument<'_>) -> Fault {
        let Some(directory) = resolved.directory() else { return Errno::NOENT.into() };
        let (missing, name) = resolved.first_missing();
        let parent = missing.parent().unwrap_or(Path::new("/"));
        // What the caller could write instead, in the caller's own style.
        let base = match path.working_directory {
            _ if name::decode(path.text).starts_with(b"/") => None,
            Some(directory) => Some(Path::new(directory)),
            None => Some(self.roots[0].path()),
        };
        let rest = resolved.path.strip_prefix(&missing).unwrap_or(Path::new(""));
        let mut near = near_names::near_paths(directory, parent, name, rest);
        let reads_the_same = |near: &PathBuf| {
            let first = near.iter().next().unwrap_or_default();
            is_look_alike(&name.to_string_lossy(), &first.to_string_lossy())
        };
        let mut alike = None;
        if near.iter().filter(|near| reads_the_same(near)).count() == 1 {
            near.retain(reads_the_same);
            let there = near[0].iter().next().unwrap_or_default();
            alike = Some(look_alike::difference(name, there));
        }
        let text = match alike {
            Some(_) => look_alike::spelled_out,
            None => |near: &[u8]| name::encode(near).into_owned(),
        };
        let mut near: Vec<PathBuf> = near.into_iter().map(|near| parent.join(near)).collect();
        let has_rest = rest != Path::new("");
        let is_whole = has_rest && near.iter().any(|near| near.ends_with(rest));
        if alike.is_none() && !is_whole {
            let elsewhere = self.same_tail(resolved, path);
            // A directory with a like name is a poor guess beside the very path.
            if has_rest && !elsewhere.is_empty() {
                near.clear();
            }
            near.extend(elsewhere);
            near.truncate(MOST_NEAR);
        }
        let in_callers_style = |full: &PathBuf, text: fn(&[u8]) -> String| {
            let short = base.and_then(|base| full.strip_prefix(base).ok());
            text(short.unwrap_or(full).as_os_str().as_bytes())
        };
        let near = near.iter().map(|near| in_callers_style(near, text)).collect();
        let link = match &resolved.target {
            Target::Missing { link, .. } => link.clone(),
            Target::Found { .. } => None,
        };
        Fault::NotFound { near, alike, missing, link }
    }
}
