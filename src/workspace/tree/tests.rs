use std::fs;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;
use crate::workspace::{Action, FileKind, PathArgument, RootsSpec, Workspace};

/// Finds every file, or every file whose content holds an x.
struct Collect {
    kinds: fn(FileKind) -> bool,
}

impl Visit for Collect {
    type Local = ();
    type Found = ();

    fn local(&self) {}

    fn wants(&self, kind: FileKind) -> bool {
        (self.kinds)(kind)
    }

    fn visit(&self, (): &mut (), _: &Entry<'_>, _: &Stop) -> Seen<()> {
        Seen { found: Some(()), hits: 1, weight: 0, skip: None }
    }
}

#[derive(Default)]
struct Paths(Vec<String>);

impl<F> Report<F> for Paths {
    fn found(&mut self, batch: Vec<Found<F>>) -> ControlFlow<()> {
        self.0.extend(batch.into_iter().map(|found| String::from_utf8(found.path).unwrap()));
        ControlFlow::Continue(())
    }

    fn progress(&mut self, _: u64) {}
}

struct Tree {
    folder: tempfile::TempDir,
    workspace: Workspace,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let roots = vec![folder.path().to_str().unwrap().to_owned()];
        let workspace = Workspace::open(&RootsSpec { roots, ..RootsSpec::default() }).unwrap();
        Self { folder, workspace }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn walk(&self, at: &str, selection: &Selection, want: usize) -> (Vec<String>, Summary) {
        self.walk_kinds(at, selection, want, |kind| kind == FileKind::Regular)
    }

    fn walk_kinds(
        &self,
        at: &str,
        selection: &Selection,
        want: usize,
        kinds: fn(FileKind) -> bool,
    ) -> (Vec<String>, Summary) {
        let argument = PathArgument { text: at, working_directory: None };
        let place = self.workspace.locate_existing(argument, Action::List).unwrap();
        let start = place.start(at, selection.ignore_rules()).unwrap();
        let mut paths = Paths::default();
        let options = Options { want, threads: NonZero::new(3) };
        let pace = Pace { cancelled: &|| false, deadline: None };
        let visitor = Collect { kinds };
        let summary = walk(&start, selection, &visitor, options, pace, &mut paths).unwrap();
        (paths.0, summary)
    }

    fn files(&self, at: &str, selection: &Selection) -> Vec<String> {
        self.walk(at, selection, usize::MAX).0
    }
}

fn all() -> Selection {
    Selection::new(IgnoreRules::Honour)
}

fn glob(text: &str) -> Selection {
    all().with_glob(PathGlob::new(text).unwrap())
}

#[test]
fn files_come_in_the_order_of_paths_and_no_more_than_wanted() {
    let tree = Tree::new(&[("a/b/c", ""), ("a.txt", ""), ("a/z", ""), ("a-b", ""), ("b/x", "")]);
    assert_eq!(tree.files(".", &all()), ["a/b/c", "a/z", "a-b", "a.txt", "b/x"]);
    let (paths, summary) = tree.walk(".", &all(), 2);
    assert_eq!(
        (paths, summary.ended, summary.counts.searched),
        (vec!["a/b/c".to_owned(), "a/z".to_owned()], Ended::Enough, 2)
    );
    assert_eq!(tree.files("a", &all()), ["b/c", "z"]);
    assert_eq!(tree.files("a/z", &all()), [""]);
}

#[test]
fn links_are_not_followed_and_git_and_leftovers_are_no_part_of_a_tree() {
    let tree = Tree::new(&[
        ("in/x", ""),
        (".git/config", ""),
        (".hidden/y", ""),
        (".x.pw0123456789abcdef.tmp", ""),
    ]);
    symlink(".", tree.path().join("self")).unwrap();
    symlink("in", tree.path().join("inlink")).unwrap();
    symlink("/etc/passwd", tree.path().join("out")).unwrap();
    assert_eq!(tree.files(".", &all()), [".hidden/y", "in/x"]);
    let (paths, _) = tree.walk_kinds(".", &all(), usize::MAX, |_| true);
    assert_eq!(paths, [".hidden", ".hidden/y", "in", "in/x", "inlink", "out", "self"]);
    assert_eq!(tree.files("inlink", &all()), ["x"], "a link that is named is the start");
}

#[test]
fn ignore_rules_hold_with_and_without_a_repository() {
    let files = [
        (".gitignore", "dist/\n*.log\n!keep.log\n"),
        ("dist/o.js", ""),
        ("dist/.gitignore", "*.map\n"),
        ("dist/o.map", ""),
        ("x.log", ""),
        ("keep.log", ""),
        ("src/y.log", ""),
        ("src/.ignore", "!y.log\n"),
        ("src/.rgignore", "secret\n"),
        ("src/secret", ""),
        ("src/a.js", ""),
    ];
    let tree = Tree::new(&files);
    for repository in [false, true] {
        if repository {
            fs::create_dir_all(tree.path().join(".git/info")).unwrap();
        }
        let plain = |paths: Vec<String>| -> Vec<String> {
            paths
                .into_iter()
                .filter(|path| !path.contains("/.") && !path.starts_with('.'))
                .collect()
        };
        let (paths, summary) = tree.walk(".", &all(), usize::MAX);
        assert_eq!(plain(paths), ["keep.log", "src/a.js", "src/y.log"]);
        assert_eq!(summary.counts.ignored, 3);
        assert_eq!(plain(tree.files("dist", &all())), ["o.js"], "named by its path");
        assert_eq!(tree.files("dist/o.map", &all()), [""]);
        assert_eq!(tree.files(".", &glob("dist/*.js")), ["dist/o.js"], "named by a glob");
        assert_eq!(tree.files(".", &glob("*.js")), ["src/a.js"]);
        assert_eq!(plain(tree.files(".", &glob("dist/**"))), ["dist/o.js"]);
        assert_eq!(tree.files(".", &glob("*.log")), ["keep.log", "src/y.log", "x.log"]);
        assert_eq!(plain(tree.files(".", &glob("**"))), ["keep.log", "src/a.js", "src/y.log"]);
        let everything = Selection::new(IgnoreRules::Disregard);
        assert_eq!(plain(tree.files(".", &everything)).len(), 7);
    }
    fs::write(tree.path().join(".git/info/exclude"), "a.js\n").unwrap();
    assert!(!tree.files(".", &all()).contains(&"src/a.js".to_owned()));
    fs::create_dir(tree.path().join("src/.git")).unwrap();
    let inner = tree.files(".", &all());
    assert!(inner.contains(&"src/a.js".to_owned()), "a repository of its own: {inner:?}");
}

#[test]
fn a_glob_with_a_slash_is_about_paths_from_the_start() {
    let tree =
        Tree::new(&[("src/a.rs", ""), ("x/src/b.rs", ""), ("src/deep/c.rs", ""), ("d.rs", "")]);
    assert_eq!(tree.files(".", &glob("*.rs")).len(), 4);
    assert_eq!(tree.files(".", &glob("/*.rs")), ["d.rs"]);
    assert_eq!(tree.files(".", &glob("src/*.rs")), ["src/a.rs"]);
    assert_eq!(tree.files(".", &glob("./src/**/*.rs")), ["src/a.rs", "src/deep/c.rs"]);
    assert_eq!(tree.files(".", &glob("**/src/*.rs")), ["src/a.rs", "x/src/b.rs"]);
    assert_eq!(tree.files(".", &glob("src/")), ["src/a.rs", "src/deep/c.rs"]);
    assert_eq!(tree.files(".", &glob("{src,x/src}/*.rs")), ["src/a.rs", "x/src/b.rs"]);
    assert_eq!(tree.files(".", &glob("!src")), ["d.rs"]);
    assert_eq!(tree.files("src", &glob("deep/*")), ["deep/c.rs"]);
    assert!(PathGlob::new("../*").is_err() && PathGlob::new("").is_err());
    assert!(PathGlob::new("[").is_err());
}

#[test]
fn folders_that_are_looked_for_are_found_and_not_walked_through_for_nothing() {
    let tree = Tree::new(&[
        (".gitignore", "dist/\n"),
        ("src/deep/a", ""),
        ("src/b", ""),
        ("dist/dist/c", ""),
        ("d", ""),
    ]);
    // A folder that is not walked through cannot be found unreadable.
    let closed = tree.path().join("closed/x");
    fs::create_dir_all(&closed).unwrap();
    let found = |text: &str| {
        let glob_of = PathGlob::new(text).unwrap();
        let (paths, summary) = tree.walk_kinds(".", &glob(text), usize::MAX, |_| true);
        let is_meant = |path: &String| {
            let is_folder = tree.path().join(path).is_dir();
            glob_of.is_match(format!("{path}{}", if is_folder { "/" } else { "" }).as_bytes())
        };
        (
            paths.into_iter().filter(is_meant).collect::<Vec<_>>(),
            summary.counts.searched,
            summary.counts.ignored,
        )
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(found("/*"), (names(&[".gitignore", "closed", "d", "src"]), 4, 1));
    assert_eq!(found("src/*"), (names(&["src/b", "src/deep"]), 3, 0));
    assert_eq!(found("/*/*"), (names(&["closed/x", "src/b", "src/deep"]), 5, 1));
    assert_eq!(found("dist").0, ["dist"], "it is named, and so is nothing in it");
    assert_eq!(found("deep").0, ["src/deep"]);
    assert_eq!(found("**").0.len(), 8);
}
