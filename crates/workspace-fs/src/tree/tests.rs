use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::{Action, FileKind, PathArgument, RootsSpec, Workspace};

/// Finds every file, or every file whose content holds an x.
struct Collect {
    kinds: fn(FileKind) -> bool,
    is_quick: bool,
}

impl Visit for Collect {
    type Local = ();
    type Found = ();

    fn local(&self) {}

    fn wants(&self, kind: FileKind) -> bool {
        (self.kinds)(kind)
    }

    fn is_quick(&self) -> bool {
        self.is_quick
    }

    fn visit(&self, (): &mut (), _: &Entry<'_>, _: &Stop) -> VisitResult<()> {
        VisitResult { found: Some(()), hits: 1, weight: 0, skip: None }
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
    directory: tempfile::TempDir,
    workspace: Workspace,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let roots = vec![directory.path().to_str().unwrap().to_owned()];
        let workspace = Workspace::open(&RootsSpec { roots, ..RootsSpec::default() }).unwrap();
        Self { directory, workspace }
    }

    fn path(&self) -> &Path {
        self.directory.path()
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
        let resolved = self.workspace.locate_existing(argument, Action::List).unwrap();
        let start = resolved.start(at, selection.ignore_rules()).unwrap();
        // With the calling thread's help and without it.
        let [alone, found] = [true, false].map(|is_quick| {
            let mut paths = Paths::default();
            let options = Options { want, threads: NonZero::new(3) };
            let until = StopCondition { cancelled: &|| false, deadline: None };
            let visitor = Collect { kinds, is_quick };
            let summary = walk(&start, selection, &visitor, options, until, &mut paths).unwrap();
            (paths.0, summary)
        });
        assert_eq!(alone, found);
        found
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
        (paths, summary.stop_reason, summary.counts.searched),
        (vec!["a/b/c".to_owned(), "a/z".to_owned()], StopReason::Enough, 2)
    );
    assert_eq!(tree.files("a", &all()), ["b/c", "z"]);
    assert_eq!(tree.files("a/z", &all()), [""]);
}

#[test]
fn links_are_not_followed_and_git_is_no_part_of_a_tree() {
    let tree = Tree::new(&[("in/x", ""), (".git/config", ""), (".hidden/y", "")]);
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
fn rules_that_do_not_count_are_counted_wherever_they_lie() {
    let many = "x\n".repeat(5000);
    let long = format!("{}\ny\n", "z".repeat(200 * 1024));
    let tree = Tree::new(&[
        (".gitignore", &many),
        ("a/.ignore", &long),
        ("a/.rgignore", "b\n"),
        ("a/b", ""),
        ("c/.gitignore", "d\n"),
        ("c/d", ""),
    ]);
    let cut = |path: &str| tree.walk(path, &all(), usize::MAX).1.counts.cut_rules;
    assert_eq!([cut("."), cut("a"), cut("c")], [2, 2, 1]);
    assert_eq!(
        tree.walk(".", &Selection::new(IgnoreRules::Disregard), usize::MAX).1.counts.cut_rules,
        0
    );
    fs::write(tree.path().join(".gitignore"), "x\n".repeat(4096)).unwrap();
    assert_eq!(cut("c"), 0);
}

#[test]
fn directories_beside_directories_are_walked_in_order() {
    let mut files = vec![("f5".to_owned(), String::new())];
    for directory in 0..40 {
        files.push((format!("d{directory:02}/a/b"), String::new()));
        files.push((format!("d{directory:02}/c"), String::new()));
    }
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let tree = Tree::new(&files);
    let mut expected: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
    expected.sort();
    assert_eq!(tree.files(".", &all()), expected);
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
fn directories_that_are_looked_for_are_found_and_not_walked_through_for_nothing() {
    let tree = Tree::new(&[
        (".gitignore", "dist/\n"),
        ("src/deep/a", ""),
        ("src/b", ""),
        ("dist/dist/c", ""),
        ("d", ""),
    ]);
    // A directory that is not walked through cannot be found unreadable.
    let closed = tree.path().join("closed/x");
    fs::create_dir_all(&closed).unwrap();
    let found = |text: &str| {
        let glob_of = PathGlob::new(text).unwrap();
        let (paths, summary) = tree.walk_kinds(".", &glob(text), usize::MAX, |_| true);
        let is_meant = |path: &String| {
            let is_directory = tree.path().join(path).is_dir();
            glob_of.is_match(format!("{path}{}", if is_directory { "/" } else { "" }).as_bytes())
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

/// Finds files with hits: as many as the file has bytes.
struct Weigh {
    want: usize,
}

impl Visit for Weigh {
    type Local = Vec<u8>;
    type Found = usize;

    fn local(&self) -> Vec<u8> {
        vec![0; 64]
    }

    fn wants(&self, kind: FileKind) -> bool {
        kind == FileKind::Regular
    }

    fn visit(&self, buffer: &mut Vec<u8>, entry: &Entry<'_>, _: &Stop) -> VisitResult<usize> {
        let content = entry.open().unwrap();
        let hits = content.read(buffer).unwrap().min(self.want);
        let skip = entry.name().ends_with(b"b").then_some(Skip::Binary);
        VisitResult { found: (hits > 0).then_some(hits), hits, weight: 10, skip }
    }
}

#[derive(Default)]
struct Weighed(Vec<(String, usize, Counts)>);

impl Report<usize> for Weighed {
    fn found(&mut self, batch: Vec<Found<usize>>) -> ControlFlow<()> {
        let recorded = |found: Found<usize>| {
            (String::from_utf8(found.path).unwrap(), found.found, found.so_far)
        };
        self.0.extend(batch.into_iter().map(recorded));
        ControlFlow::Continue(())
    }

    fn progress(&mut self, _: u64) {}
}

/// The first hits in a sequential walk over a list of paths: what every parallel one must find.
fn naive(
    files: &BTreeMap<Vec<String>, usize>,
    want: usize,
) -> (Vec<(String, usize, Counts)>, Counts) {
    let (mut found, mut counts, mut hits) = (Vec::new(), Counts::default(), 0);
    for (path, size) in files {
        let path = path.join("/");
        let size = (*size).min(want);
        counts.searched += 1;
        counts.skipped[Skip::Binary as usize] += u64::from(path.ends_with('b'));
        hits += size;
        if size > 0 {
            found.push((path, size, counts));
        }
        if hits >= want {
            break;
        }
    }
    (found, counts)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_number_of_threads_finds_what_one_after_the_other_would(
        paths in proptest::collection::vec(
            (proptest::collection::vec("[ab.-]{1,2}x", 0..4), "[ab.]{1,2}[ab]", 0usize..4), 0..60),
        want in prop_oneof![1usize..30, Just(usize::MAX)],
        threads in 1usize..6,
    ) {
        let mut files = BTreeMap::new();
        for (directories, name, size) in paths {
            let path: Vec<String> = directories.into_iter().chain([name]).collect();
            files.insert(path, size);
        }
        let texts: Vec<(String, String)> =
            files.iter().map(|(path, size)| (path.join("/"), "x".repeat(*size))).collect();
        let tree = Tree::new(
            &texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>());
        let argument = PathArgument { text: ".", working_directory: None };
        let resolved = tree.workspace.locate_existing(argument, Action::List).unwrap();
        let start = resolved.start(".", IgnoreRules::Honour).unwrap();
        let options = Options { want, threads: NonZero::new(threads) };
        let until = StopCondition { cancelled: &|| false, deadline: None };
        let mut found = Weighed::default();
        let visitor = Weigh { want };
        let summary = walk(&start, &all(), &visitor, options, until, &mut found).unwrap();
        let (expected, counts) = naive(&files, want);
        prop_assert_eq!(found.0, expected);
        prop_assert_eq!(summary.counts, counts);
    }
}

#[test]
fn a_directory_that_becomes_a_link_in_the_middle_of_a_walk_leads_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "").unwrap();
    let tree = Tree::new(&[("a/x", ""), ("z/y", "")]);
    /// Swaps `z` for a link when it comes by the first file.
    struct Swap<'a>(&'a Path, &'a Path);
    impl Visit for Swap<'_> {
        type Local = ();
        type Found = ();
        fn local(&self) {}
        fn wants(&self, kind: FileKind) -> bool {
            kind == FileKind::Regular
        }
        fn visit(&self, (): &mut (), entry: &Entry<'_>, _: &Stop) -> VisitResult<()> {
            if entry.name() == b"x" {
                fs::rename(self.0.join("z"), self.0.join("was-z")).unwrap();
                symlink(self.1, self.0.join("z")).unwrap();
            }
            VisitResult { found: Some(()), hits: 1, weight: 0, skip: None }
        }
    }
    let argument = PathArgument { text: ".", working_directory: None };
    let resolved = tree.workspace.locate_existing(argument, Action::List).unwrap();
    let start = resolved.start(".", IgnoreRules::Honour).unwrap();
    let options = Options { want: usize::MAX, threads: NonZero::new(1) };
    let until = StopCondition { cancelled: &|| false, deadline: None };
    let visitor = Swap(tree.path(), outside.path());
    let mut paths = Paths::default();
    walk(&start, &all(), &visitor, options, until, &mut paths).unwrap();
    assert_eq!(paths.0, ["a/x"]);
}

#[test]
fn what_is_swapped_for_a_link_or_a_pipe_is_not_opened() {
    let tree = Tree::new(&[("a", "")]);
    struct Swap<'a>(&'a Path);
    impl Visit for Swap<'_> {
        type Local = ();
        type Found = Option<rustix::io::Errno>;
        fn local(&self) {}
        fn wants(&self, kind: FileKind) -> bool {
            kind == FileKind::Regular
        }
        fn visit(&self, (): &mut (), entry: &Entry<'_>, _: &Stop) -> VisitResult<Self::Found> {
            let path = self.0.join("a");
            fs::remove_file(&path).unwrap();
            symlink("/etc/passwd", &path).unwrap();
            assert_eq!(entry.open().err(), Some(rustix::io::Errno::LOOP));
            fs::remove_file(&path).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
            assert_eq!(entry.open().err(), Some(rustix::io::Errno::LOOP));
            fs::remove_file(&path).unwrap();
            fs::write(&path, "").unwrap();
            VisitResult { found: Some(entry.open().err()), hits: 1, weight: 0, skip: None }
        }
    }
    struct First(Option<Option<rustix::io::Errno>>);
    impl Report<Option<rustix::io::Errno>> for First {
        fn found(&mut self, batch: Vec<Found<Option<rustix::io::Errno>>>) -> ControlFlow<()> {
            self.0 = batch.into_iter().next().map(|found| found.found);
            ControlFlow::Continue(())
        }
        fn progress(&mut self, _: u64) {}
    }
    let argument = PathArgument { text: ".", working_directory: None };
    let resolved = tree.workspace.locate_existing(argument, Action::List).unwrap();
    let start = resolved.start(".", IgnoreRules::Honour).unwrap();
    let options = Options { want: usize::MAX, threads: None };
    let until = StopCondition { cancelled: &|| false, deadline: None };
    let mut first = First(None);
    walk(&start, &all(), &Swap(tree.path()), options, until, &mut first).unwrap();
    assert_eq!(first.0, Some(None), "its open twin");
}

#[test]
fn a_walk_on_a_jailed_thread_is_jailed_on_all_of_its_threads() {
    let jailed = Tree::new(&[("in/x", "x"), ("y", "x")]);
    let outside = Tree::new(&[("in/x", "x"), ("y", "x")]);
    let policy = sandbox::Policy {
        roots: vec![jailed.path().to_owned()],
        mode: sandbox::Mode::Enforce,
        commands: sandbox::Commands::Never,
        ..sandbox::Policy::default()
    };
    let jail = match sandbox::Jail::build(&policy) {
        Ok(jail) => jail,
        Err(error) if std::env::var_os("CI").is_none() => {
            #[expect(clippy::print_stderr, reason = "a skipped test says so")]
            {
                eprintln!("skipped: {error}");
            }
            return;
        }
        Err(error) => panic!("{error}"),
    };
    // Both starts are opened here, where nothing is in the way.
    let starts = [&jailed, &outside].map(|tree| {
        let argument = PathArgument { text: ".", working_directory: None };
        let resolved = tree.workspace.locate_existing(argument, Action::List).unwrap();
        resolved.start(".", IgnoreRules::Honour).unwrap()
    });
    let count = |start: &Start| {
        let options = Options { want: usize::MAX, threads: NonZero::new(3) };
        let until = StopCondition { cancelled: &|| false, deadline: None };
        let mut found = Weighed::default();
        let summary = walk(start, &all(), &Weigh { want: 9 }, options, until, &mut found).unwrap();
        (found.0.len(), summary.counts.skipped(Skip::Unreadable))
    };
    assert_eq!(starts.each_ref().map(count), [(2, 0), (2, 0)]);
    let (say, hear) = std::sync::mpsc::channel::<[(usize, u64); 2]>();
    jail.submit(Box::new(move || say.send(starts.each_ref().map(count)).unwrap())).unwrap();
    assert_eq!(hear.recv().unwrap(), [(2, 0), (0, 1)]);
}

#[test]
fn no_more_than_so_much_is_taken_of_ignore_files() {
    // Long rules, so that there are few to compile.
    let line = "q".repeat(1023) + "\n";
    let lines = |bytes: usize| line.repeat(bytes / line.len());
    let (half, most) = (lines(64 * 1024), lines(128 * 1024));
    let tree = Tree::new(&[
        ("a/.ignore", &format!("x\n{most}")),
        ("a/x", ""),
        ("b/.ignore", &format!("{most}x\n")),
        ("b/x", ""),
        ("c/.ignore", &most),
        ("c/c/.ignore", &half),
        ("c/c/c/.ignore", &format!("x\n{most}")),
        ("c/c/c/c/.ignore", &format!("{line}y\n")),
        ("c/c/c/c/x", ""),
        ("c/c/c/c/y", ""),
        ("d/.ignore", "y\n"),
        ("e/.ignore", &("#\n\nx\n".repeat(4096) + "z\n")),
        ("e/x", ""),
        ("e/z", ""),
        ("d/y", ""),
    ]);
    let files = tree.files(".", &all());
    let named: Vec<_> = files.iter().filter(|path| !path.ends_with(".ignore")).collect();
    assert_eq!(named, ["b/x", "c/c/c/c/y", "e/z"], "what is behind the limits is not seen");
}
