//! Which entries of a tree are looked at.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use ignore::Match;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};

use super::rules::{Rules, as_path};
use crate::FileKind;

/// Whether ignore files count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IgnoreRules {
    /// They do.
    #[default]
    Honour,
    /// They do not.
    Disregard,
}

/// Which entries of a tree are looked at. All that is asked for must hold.
///
/// Never among them: `.git`, and what a write of this program left behind.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    glob: Option<PathGlob>,
    types: Option<Types>,
    rules: IgnoreRules,
}

/// A glob is no glob.
#[derive(Clone, Debug, thiserror::Error)]
pub enum GlobError {
    /// It cannot be parsed.
    #[error("{0}")]
    Syntax(String),
    /// It has a part that no path has.
    #[error("a glob cannot step up with ..")]
    StepsUp,
    /// It is empty.
    #[error("the glob is empty")]
    Empty,
    /// It is too long to be compiled for what it may be worth.
    #[error("the glob has {0} bytes, and the most is {MOST_GLOB}")]
    TooLong(usize),
    /// It has more parts than a path that is walked to.
    #[error("the glob has {0} parts, and the most is {MOST_PARTS}")]
    TooDeep(usize),
}

/// The longest glob, in bytes: alternatives of many paths fit, and it is compiled in no time.
const MOST_GLOB: usize = 16 * 1024;
/// The most parts between slashes, each of which is compiled by itself.
const MOST_PARTS: usize = 512;

impl Selection {
    /// Everything that the ignore rules leave.
    #[must_use]
    pub fn new(rules: IgnoreRules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Only files whose path matches, and directories that may contain such files.
    #[must_use]
    pub fn with_glob(mut self, glob: PathGlob) -> Self {
        self.glob = Some(glob);
        self
    }

    /// Only files of the types that ripgrep knows by these names.
    ///
    /// # Errors
    /// The index of one that it does not know.
    pub fn with_types<T: AsRef<str>>(mut self, names: &[T]) -> Result<Self, usize> {
        let mut builder = TypesBuilder::new();
        builder.add_defaults();
        // A name that is selected again costs as much as the first time.
        let different: BTreeSet<&str> = names.iter().map(AsRef::as_ref).collect();
        for name in different {
            builder.select(name);
        }
        let types = builder.build().map_err(|error| {
            let is_it = |name: &T| {
                matches!(&error, ignore::Error::UnrecognizedFileType(other) if other == name.as_ref())
            };
            names.iter().position(is_it).unwrap_or_default()
        })?;
        self.types = Some(types);
        Ok(self)
    }

    /// Whether ignore files count.
    #[must_use]
    pub fn ignore_rules(&self) -> IgnoreRules {
        self.rules
    }

    /// The names of the file types whose files have names that end like this.
    #[must_use]
    pub fn types_of_ending(ending: &str) -> Vec<String> {
        let glob = format!("*.{ending}");
        let definitions = TypesBuilder::new().add_defaults().definitions();
        let fitting = definitions.iter().filter(|definition| definition.globs().contains(&glob));
        fitting.map(|definition| definition.name().to_owned()).collect()
    }

    /// The names of all file types.
    #[must_use]
    pub fn type_names() -> Vec<String> {
        let definitions = TypesBuilder::new().add_defaults().definitions();
        definitions.iter().map(|definition| definition.name().to_owned()).collect()
    }
}

/// A glob over paths, with the meaning that a line of a `.gitignore` has: without a slash it is
/// about names in any directory, with one about paths from the walk's start. A leading `!` leaves out
/// what matches.
///
/// A glob can name what an ignore rule leaves out: a file by more than wildcards in its last part
/// (`*.log`), a directory by spelling its name (`dist/**`). What is named so is looked at all the
/// same.
#[derive(Clone)]
pub struct PathGlob {
    matcher: Override,
    /// The directories that it spells out, from the start.
    directories: GlobSet,
    /// What the directories on the way must match, where the glob is about paths from the start.
    way: Option<Vec<Part>>,
    last: LastPart,
}

/// A glob as a line of a `.gitignore`, in its two parts.
struct Line<'a> {
    negation: &'static str,
    plain: Cow<'a, str>,
}

impl<'a> Line<'a> {
    fn of(text: &'a str) -> Result<Self, GlobError> {
        let (negation, plain) = match text.strip_prefix('!') {
            Some(plain) => ("!", plain),
            None => ("", text),
        };
        let plain = plain.strip_prefix("./").unwrap_or(plain);
        if plain.is_empty() {
            return Err(GlobError::Empty);
        }
        let plain = match plain.ends_with('/') && negation.is_empty() {
            // A directory is asked for what is in it.
            true => Cow::Owned(format!("{plain}**")),
            false => Cow::Borrowed(plain),
        };
        Ok(Self { negation, plain })
    }
}

#[derive(Clone)]
enum Part {
    One(Arc<GlobMatcher>),
    Any,
}

/// What a glob's last part says of a name.
#[derive(Clone, Copy, PartialEq)]
enum LastPart {
    /// Something of it.
    Names,
    /// Nothing.
    Anything,
}

impl PathGlob {
    /// Understands a glob.
    ///
    /// # Errors
    /// Where it is none.
    pub fn new(text: &str) -> Result<Self, GlobError> {
        Self::any(&[text])
    }

    /// What at least one of these globs is about. Of those with a leading `!` and those without, the
    /// last one that matches decides.
    ///
    /// # Errors
    /// Where one of them is none.
    pub fn any<T: AsRef<str>>(texts: &[T]) -> Result<Self, GlobError> {
        let bytes = texts.iter().map(|text| text.as_ref().len()).sum();
        if bytes > MOST_GLOB {
            return Err(GlobError::TooLong(bytes));
        }
        let mut builder = OverrideBuilder::new("");
        let mut directories = GlobSetBuilder::new();
        let mut all_parts = 0;
        let (mut ways, mut last) = (Vec::new(), LastPart::Names);
        for text in texts {
            let Line { negation, plain } = Line::of(text.as_ref())?;
            let parts: Vec<&str> = plain.split('/').collect();
            all_parts += parts.len();
            if all_parts > MOST_PARTS {
                return Err(GlobError::TooDeep(all_parts));
            }
            if parts.contains(&"..") {
                return Err(GlobError::StepsUp);
            }
            // Otherwise it would be read as a comment.
            let escape = if negation.is_empty() && plain.starts_with('#') { "\\" } else { "" };
            let added = builder.add(&format!("{negation}{escape}{plain}"));
            added.map_err(|error| GlobError::Syntax(reason(&error)))?;
            if !parts.last().is_some_and(|last| last.chars().any(char::is_alphanumeric)) {
                last = LastPart::Anything;
            }
            // A brace can hold slashes of its own; then parts are no parts.
            let is_split =
                parts.len() > 1 && negation.is_empty() && parts.iter().all(|p| is_whole(p));
            let parts: &[&str] = match parts.split_first() {
                Some((&"", rest)) => rest,
                _ => &parts,
            };
            ways.push(if is_split { Some(way(parts)?) } else { None });
            if is_split {
                add_spelt(&mut directories, parts)?;
            }
        }
        let syntax = |error: globset::Error| GlobError::Syntax(error.kind().to_string());
        // Of several, each may lead elsewhere.
        let way = if let [way] = ways.as_mut_slice() { way.take() } else { None };
        Ok(Self {
            matcher: builder.build().map_err(|error| GlobError::Syntax(reason(&error)))?,
            directories: directories.build().map_err(syntax)?,
            way,
            last,
        })
    }

    /// Whether the glob is about the file at this path from the walk's start, or, with a slash at the
    /// path's end, about the directory there.
    #[must_use]
    pub fn is_match(&self, path: &[u8]) -> bool {
        let (path, is_directory) = match path.strip_suffix(b"/") {
            Some(directory) => (directory, true),
            None => (path, false),
        };
        self.matcher.matched(as_path(path), is_directory).is_whitelist()
    }

    fn verdict(&self, path: &[u8], is_directory: bool) -> Named {
        let path = as_path(path);
        match (self.matcher.matched(path, is_directory), is_directory) {
            (Match::Ignore(_), _) => Named::Excluded,
            (_, true) if !self.may_contain(path) => Named::Excluded,
            (_, true) if self.directories.is_match(path) => Named::Yes,
            (Match::Whitelist(_), false) if self.last == LastPart::Names => Named::Yes,
            (Match::Whitelist(_) | Match::None, _) => Named::No,
        }
    }

    /// Whether a directory may contain what the glob is about.
    fn may_contain(&self, directory: &std::path::Path) -> bool {
        let Some(way) = &self.way else { return true };
        let mut names = directory.iter();
        for part in way {
            match (part, names.next()) {
                (Part::Any, _) | (_, None) => return true,
                (Part::One(glob), Some(name)) if glob.is_match(name) => {}
                (Part::One(_), Some(_)) => return false,
            }
        }
        // All of its directories are on the way; one deeper is not.
        names.next().is_none()
    }
}

impl fmt::Debug for PathGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PathGlob").field("matcher", &self.matcher).finish_non_exhaustive()
    }
}

/// What a glob says of an entry.
#[derive(PartialEq)]
enum Named {
    /// It is not looked at.
    Excluded,
    /// It is looked at, even where an ignore rule leaves it out.
    Yes,
    /// It is looked at unless an ignore rule leaves it out.
    No,
}

fn is_whole(part: &str) -> bool {
    part.matches('{').count() == part.matches('}').count()
        && part.matches('[').count() == part.matches(']').count()
}

fn is_spelt(part: &str) -> bool {
    !part.is_empty() && !part.contains(['*', '?', '[', '{', '\\'])
}

/// Adds the directories that a glob spells out, each with what leads to it.
fn add_spelt(set: &mut GlobSetBuilder, parts: &[&str]) -> Result<(), GlobError> {
    for end in 1..parts.len() {
        if is_spelt(parts[end - 1]) {
            set.add(glob(&parts[..end].join("/"))?);
        }
    }
    Ok(())
}

fn way(parts: &[&str]) -> Result<Vec<Part>, GlobError> {
    let directories = &parts[..parts.len().saturating_sub(1)];
    let mut way = Vec::with_capacity(directories.len());
    for part in directories {
        if *part == "**" {
            way.push(Part::Any);
            break;
        }
        way.push(Part::One(Arc::new(glob(part)?.compile_matcher())));
    }
    if parts.last() == Some(&"**") {
        way.push(Part::Any);
    }
    Ok(way)
}

fn glob(text: &str) -> Result<globset::Glob, GlobError> {
    let mut builder = GlobBuilder::new(text);
    builder.literal_separator(true).backslash_escape(true);
    builder.build().map_err(|error| GlobError::Syntax(error.kind().to_string()))
}

fn reason(error: &ignore::Error) -> String {
    match error {
        ignore::Error::Glob { err, .. } => err.clone(),
        other => other.to_string(),
    }
}

/// What is said of an entry.
#[derive(PartialEq)]
pub(super) enum Verdict {
    /// It is looked at, and so is what is in it.
    Take,
    /// It is a directory that is itself looked for, and nothing in it is.
    TakeAlone,
    /// Nobody asked for it.
    Leave,
    /// It was asked for, but an ignore rule leaves it out.
    Ignored,
}

/// A selection as a walk uses it.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) selection: &'a Selection,
    /// The kinds of entries, beside directories, that the walk is about.
    pub(super) wants: &'a (dyn Fn(FileKind) -> bool + Sync),
}

impl Scope<'_> {
    pub(super) fn rules(&self) -> IgnoreRules {
        self.selection.rules
    }

    /// What to do with the entry at `path`, whose part from `from` on leads there from the start.
    pub(super) fn verdict(
        &self,
        path: &[u8],
        from: usize,
        kind: FileKind,
        rules: Option<&Rules>,
    ) -> Verdict {
        let is_directory = kind == FileKind::Directory;
        if !is_directory && !(self.wants)(kind) {
            return Verdict::Leave;
        }
        match self.verdict_on_way(path, from, is_directory, rules) {
            Verdict::Take => Verdict::Take,
            other if is_directory && (self.wants)(FileKind::Directory) => {
                self.verdict_alone(path, from, rules).unwrap_or(other)
            }
            other => other,
        }
    }

    /// What is said of a directory as an entry like any other, where the glob is about it.
    fn verdict_alone(&self, path: &[u8], from: usize, rules: Option<&Rules>) -> Option<Verdict> {
        let glob = self.selection.glob.as_ref()?;
        if !glob.matcher.matched(as_path(&path[from..]), true).is_whitelist() {
            return None;
        }
        let is_ignored =
            glob.last == LastPart::Anything && rules.is_some_and(|rules| rules.ignore(path, true));
        Some(if is_ignored { Verdict::Ignored } else { Verdict::TakeAlone })
    }

    /// What is said of a file, or of a directory that is walked through.
    fn verdict_on_way(
        &self,
        path: &[u8],
        from: usize,
        is_directory: bool,
        rules: Option<&Rules>,
    ) -> Verdict {
        let named = match &self.selection.glob {
            None => Named::No,
            Some(glob) => glob.verdict(&path[from..], is_directory),
        };
        if named == Named::Excluded {
            return Verdict::Leave;
        }
        if let Some(types) = &self.selection.types
            && !is_directory
            && types.matched(as_path(&path[from..]), false).is_ignore()
        {
            return Verdict::Leave;
        }
        match rules {
            Some(rules) if named == Named::No && rules.ignore(path, is_directory) => {
                Verdict::Ignored
            }
            _ => Verdict::Take,
        }
    }

    /// The rules that hold within a directory. Where it is looked at although they leave it out, those
    /// above it have had their say.
    pub(super) fn rules_within(
        &self,
        path: &[u8],
        from: usize,
        rules: Option<&Arc<Rules>>,
    ) -> Option<Arc<Rules>> {
        let rules = rules?;
        let is_named = self.selection.glob.as_ref().is_some_and(|glob| {
            !glob.directories.is_empty() && glob.verdict(&path[from..], true) == Named::Yes
        });
        if is_named && rules.ignore(path, true) { None } else { Some(rules.clone()) }
    }
}
