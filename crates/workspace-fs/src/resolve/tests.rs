use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use super::*;
use crate::{AccessTime, RootsSpec, Special};

/// Two writable roots `one` and `two`, a read-only root `fixed` and a directory `outside`, with a
/// secret in the last.
struct Fixture {
    workspace: Workspace,
    base: PathBuf,
    _keep: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let base = keep.path().canonicalize().unwrap();
        for directory in ["one/in/deep", "two", "fixed/open", "outside"] {
            std::fs::create_dir_all(base.join(directory)).unwrap();
        }
        std::fs::write(base.join("outside/secret"), "S").unwrap();
        std::fs::write(base.join("one/a"), "a in one").unwrap();
        std::fs::write(base.join("one/in/b"), "b in one").unwrap();
        std::fs::write(base.join("two/a"), "a in two").unwrap();
        std::fs::write(base.join("fixed/a"), "a in fixed").unwrap();
        let name = |directory: &str| base.join(directory).display().to_string();
        let spec = RootsSpec {
            roots: vec![name("one"), name("two"), name("fixed/open")],
            read_only_roots: vec![name("fixed")],
            ..RootsSpec::default()
        };
        let workspace = Workspace::open(&spec).unwrap();
        Self { workspace, base, _keep: keep }
    }

    fn link(&self, at: &str, target: impl AsRef<Path>) {
        symlink(target, self.base.join(at)).unwrap();
    }

    fn path(&self, relative: &str) -> String {
        self.base.join(relative).display().to_string()
    }

    /// The content of the file at `path`, or the message. Both ways of resolving must agree.
    fn read(&self, path: &str) -> Result<String, String> {
        self.read_from(path, None)
    }

    fn read_from(&self, path: &str, from: Option<&str>) -> Result<String, String> {
        let argument = PathArgument { text: path, working_directory: from };
        let opened = self.workspace.open_file(argument, AccessTime::Touch);
        let walked = self.workspace.locate_existing(argument, Action::Read);
        match opened {
            Ok(file) => {
                let resolved = walked.unwrap();
                let Target::Found { stat, .. } = resolved.target else {
                    panic!("{path} is missing")
                };
                assert_eq!((file.path(), file.stat().id), (&*resolved.path, stat.id), "{path}");
                let mut content = vec![0; 100];
                let length = file.fill(&mut content).unwrap();
                Ok(String::from_utf8(content[..length].to_vec()).unwrap())
            }
            Err(error) => Err(error.to_string().replace(&self.base.display().to_string(), "")),
        }
    }

    fn refusal(&self, path: &str) -> String {
        self.read(path).unwrap_err()
    }

    fn hint(&self, text: &str) -> String {
        let path = PathArgument { text, working_directory: None };
        let error = self.workspace.locate_existing(path, Action::Read).unwrap_err();
        error.hint().unwrap().replace(&self.base.display().to_string(), "")
    }
}

const OUTSIDE: &str = "outside the roots [/one, /two, /fixed/open, /fixed]";

#[test]
fn relative_paths_start_from_the_working_directory_or_the_first_root() {
    let fixture = Fixture::new();
    assert_eq!(fixture.read("a").unwrap(), "a in one");
    assert_eq!(fixture.read("./in//../a").unwrap(), "a in one");
    assert_eq!(fixture.read(&fixture.path("two/a")).unwrap(), "a in two");
    let two = fixture.path("two");
    assert_eq!(fixture.read_from("a", Some(&two)).unwrap(), "a in two");
    assert_eq!(fixture.read_from("../one/in/b", Some(&two)).unwrap(), "b in one");
    assert_eq!(fixture.read_from("b", Some(&fixture.path("one/in"))).unwrap(), "b in one");
    let outside = fixture.path("outside");
    let refused = fixture.read_from("secret", Some(&outside)).unwrap_err();
    assert_eq!(
        refused,
        "cannot read secret: the working directory /outside is outside the roots [/one, /two, \
         /fixed/open, /fixed]"
    );
    let absolute = fixture.path("one/a");
    assert_eq!(fixture.read_from(&absolute, Some(&outside)).unwrap(), "a in one", "not used");
    assert!(fixture.read_from("a", Some("one")).unwrap_err().contains("not an absolute path"));
}

#[test]
fn dots_may_leave_a_root_for_another_one_only() {
    let fixture = Fixture::new();
    assert_eq!(fixture.read("../two/a").unwrap(), "a in two");
    assert_eq!(fixture.read("in/../../two/../one/a").unwrap(), "a in one");
    assert_eq!(fixture.read(&fixture.path("outside/../one/a")).unwrap(), "a in one");
    assert_eq!(
        fixture.refusal("../outside/secret"),
        format!("cannot read ../outside/secret: {OUTSIDE}")
    );
    assert_eq!(
        fixture.refusal("../outside/none"),
        format!("cannot read ../outside/none: {OUTSIDE}")
    );
    assert_eq!(fixture.refusal(".."), format!("cannot read ..: {OUTSIDE}"));
    assert!(fixture.refusal("../one-beside/a").ends_with(OUTSIDE));
    assert!(fixture.refusal("/etc/passwd").ends_with(OUTSIDE));
    assert!(fixture.refusal("none/../a").contains("/one/none does not exist"));
    assert!(fixture.refusal("a/../a").contains("/one/a is not a directory"));
}

#[test]
fn links_inside_the_roots_work_whatever_they_look_like() {
    let fixture = Fixture::new();
    fixture.link("one/relative", "in/b");
    fixture.link("one/absolute", fixture.base.join("one/in"));
    fixture.link("one/across", fixture.base.join("two"));
    fixture.link("one/up", "../two/a");
    fixture.link("one/chain", "absolute/../relative");
    assert_eq!(fixture.read("relative").unwrap(), "b in one");
    assert_eq!(fixture.read("absolute/b").unwrap(), "b in one");
    assert_eq!(fixture.read("across/a").unwrap(), "a in two");
    assert_eq!(fixture.read("across/../one/a").unwrap(), "a in one");
    assert_eq!(fixture.read("up").unwrap(), "a in two");
    assert_eq!(fixture.read("chain").unwrap(), "b in one");
}

#[test]
fn a_link_that_leads_outside_is_named_and_says_nothing_of_its_target() {
    let fixture = Fixture::new();
    fixture.link("one/s", fixture.base.join("outside/secret"));
    fixture.link("one/none", fixture.base.join("outside/nothing"));
    fixture.link("one/d", fixture.base.join("outside"));
    fixture.link("one/out", "../outside/secret");
    fixture.link("one/twice", "d/secret");
    assert_eq!(
        fixture.refusal("s"),
        format!("cannot read s: the link /one/s leads to /outside/secret, {OUTSIDE}")
    );
    assert_eq!(
        fixture.refusal("none"),
        format!("cannot read none: the link /one/none leads to /outside/nothing, {OUTSIDE}")
    );
    for path in ["d/secret", "d/nothing", "twice", "d/../one/a"] {
        assert!(
            fixture.refusal(path).contains("the link /one/d leads to /outside, outside"),
            "{path}"
        );
    }
    assert!(
        fixture.refusal("out").contains("the link /one/out leads to ../outside/secret, outside")
    );
}

#[test]
fn links_in_a_circle_and_dangling_ones_are_reported() {
    let fixture = Fixture::new();
    fixture.link("one/loop", "loop");
    fixture.link("one/dangling", "in/none");
    assert_eq!(
        fixture.refusal("loop"),
        "cannot read loop: too many symbolic links, /one/loop among them"
    );
    assert_eq!(
        fixture.refusal("dangling"),
        "cannot read dangling: the link /one/dangling leads to in/none, but /one/in/none does not exist"
    );
    fixture.link("one/40", "a");
    for number in (1..40).rev() {
        fixture.link(&format!("one/{number}"), format!("{}", number + 1));
    }
    assert_eq!(fixture.read("1").unwrap(), "a in one");
    fixture.link("one/0", "1");
    assert!(fixture.refusal("0").contains("too many symbolic links"));
}

#[test]
fn a_root_behind_a_link_works_under_both_spellings() {
    let fixture = Fixture::new();
    fixture.link("outside/alias", fixture.base.join("one"));
    let alias = fixture.path("outside/alias");
    let spec = RootsSpec { roots: vec![alias.clone()], ..RootsSpec::default() };
    let workspace = Workspace::open(&spec).unwrap();
    let fixture = Fixture { workspace, ..fixture };
    assert_eq!(fixture.read(&format!("{alias}/in/b")).unwrap(), "b in one");
    assert_eq!(fixture.read(&fixture.path("one/in/b")).unwrap(), "b in one");
    fixture.link("one/self", format!("{alias}/a"));
    assert_eq!(fixture.read("self").unwrap(), "a in one");
    assert!(
        fixture
            .refusal(&format!("{alias}/../secret"))
            .contains("outside the roots [/outside/alias]")
    );
    assert_eq!(fixture.read_from("b", Some(&format!("{alias}/in"))).unwrap(), "b in one");
}

#[test]
fn the_innermost_root_decides_what_may_be_written() {
    let fixture = Fixture::new();
    fixture.link("one/into", fixture.base.join("fixed/open/new"));
    fixture.link("one/fixed", fixture.base.join("fixed/new"));
    let check = |path: &str| {
        let argument = PathArgument { text: path, working_directory: None };
        let resolved = fixture.workspace.locate(argument, Action::Write).unwrap();
        resolved.check_writable(&fixture.workspace, path).map_err(|error| {
            error.fault.to_string().replace(&fixture.base.display().to_string(), "")
        })
    };
    let refusal = "outside the writable roots [/one, /two, /fixed/open] (it is under read_only_roots: /fixed)";
    assert_eq!(check("new"), Ok(()));
    assert_eq!(check("into"), Ok(()));
    assert_eq!(check(&fixture.path("fixed/open/new")), Ok(()));
    assert_eq!(check(&fixture.path("fixed/open/../open/new")), Ok(()));
    assert_eq!(check(&fixture.path("fixed/new")), Err(refusal.to_owned()));
    assert_eq!(check("fixed"), Err(refusal.to_owned()));
}

/// What the quick way finds is what a walk finds, the root included.
#[test]
fn the_quick_way_to_a_place_agrees_with_the_walk() {
    let fixture = Fixture::new();
    fixture.link("one/link", "in/b");
    fixture.link("one/directory", "in");
    fixture.link("alias", "one");
    std::fs::create_dir(fixture.base.join("one/in/own")).unwrap();
    let roots = ["alias", "two", "one/in/deep"].map(|name| fixture.path(name)).to_vec();
    let workspace = Workspace::open(&RootsSpec { roots, ..RootsSpec::default() }).unwrap();
    let workspace = workspace.with_own_directory(&fixture.base.join("one/in/own")).unwrap();
    let shape = |resolved: ResolvedPath<'_>| {
        let (found, missing) = match &resolved.target {
            Target::Found { stat, .. } => (Some(stat.id), None),
            Target::Missing { directories, ends_in_slash, .. } => {
                (None, Some((directories.clone(), *ends_in_slash)))
            }
        };
        let directory = resolved.directory().map(|directory| FileStat::of(directory).unwrap().id);
        (resolved.path.clone(), resolved.root.id(), found, missing, directory)
    };
    let compare = |text: &str| {
        let (root, rest) = workspace.enter(text.as_bytes()).unwrap();
        let walked = Walk::new(&workspace, root, rest).run();
        let found = workspace.find_directly(root, rest).unwrap();
        found
            .map(|resolved| assert_eq!(shape(resolved), shape(walked.unwrap()), "{text}"))
            .is_some()
    };
    for text in [
        "one/a",
        "alias/a",
        "one/new",
        "one//in/./b",
        "one/in/../a",
        "one/in",
        "two/a",
        "one/in/deep/new",
        "alias/in/deep/new",
        "alias/in/../in/deep/new",
        "one/in/own/new",
    ] {
        assert!(compare(&fixture.path(text)), "{text} is walked");
    }
    for text in [
        "one",
        "one/in/",
        "one/a/",
        "one/in/..",
        "one/link",
        "one/directory/b",
        "one/a/b",
        "one/x/y",
    ] {
        assert!(!compare(&fixture.path(text)), "{text} is not walked");
    }
}

#[test]
fn a_root_is_known_wherever_it_was_moved_where_another_permits_more() {
    let fixture = Fixture::new();
    std::fs::rename(fixture.base.join("fixed"), fixture.base.join("one/moved")).unwrap();
    let argument = PathArgument { text: "moved/a", working_directory: None };
    let resolved = fixture.workspace.locate(argument, Action::Write).unwrap();
    assert!(resolved.check_writable(&fixture.workspace, "moved/a").is_err());
    let argument = PathArgument { text: "moved/open/a", working_directory: None };
    let resolved = fixture.workspace.locate(argument, Action::Write).unwrap();
    assert!(resolved.check_writable(&fixture.workspace, "moved/open/a").is_ok());
}

#[test]
fn a_place_opens_the_file_that_was_found_or_none() {
    let fixture = Fixture::new();
    let locate = || {
        let argument = PathArgument { text: "a", working_directory: None };
        fixture.workspace.locate(argument, Action::Write).unwrap()
    };
    let open = |resolved: &ResolvedPath<'_>| {
        let opened = resolved.open("a", Action::Write, AccessTime::Keep);
        opened.map(drop).map_err(|error| matches!(*error.fault, Fault::Changed))
    };
    let (file, next) = (fixture.base.join("one/a"), fixture.base.join("one/next"));
    let resolved = locate();
    assert_eq!(open(&resolved), Ok(()));
    assert!(resolved.is_as_found());
    std::fs::write(&next, "another").unwrap();
    std::fs::rename(&next, &file).unwrap();
    assert_eq!(open(&resolved), Err(true), "replaced");
    assert!(!resolved.is_as_found());
    let resolved = locate();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(open(&resolved), Err(true), "removed");
    let missing = locate();
    assert!(!resolved.is_as_found() && missing.is_as_found());
    fixture.link("one/a", "in/b");
    assert_eq!(open(&resolved), Err(true), "replaced by a link");
    assert!(!resolved.is_as_found() && !missing.is_as_found());
    assert_eq!(open(&locate()), Ok(()));
}

#[test]
fn what_does_not_exist_is_described_for_whoever_makes_it() {
    let fixture = Fixture::new();
    let locate = |text: &str| {
        let argument = PathArgument { text, working_directory: None };
        let resolved = fixture.workspace.locate(argument, Action::Write).unwrap();
        let Target::Missing { directories, ends_in_slash, .. } = resolved.target else {
            panic!("{text}")
        };
        let path = resolved.path.strip_prefix(&fixture.base).unwrap().display().to_string();
        (path, directories.len(), ends_in_slash)
    };
    assert_eq!(locate("new"), ("one/new".to_owned(), 0, false));
    assert_eq!(locate("in/x/./y/z"), ("one/in/x/y/z".to_owned(), 2, false));
    assert_eq!(locate("x/"), ("one/x".to_owned(), 0, true));
    fixture.link("one/dangling", "in/new");
    assert_eq!(locate("dangling"), ("one/in/new".to_owned(), 0, false));
}

#[test]
fn near_names_are_offered_in_the_callers_style() {
    let fixture = Fixture::new();
    std::fs::write(fixture.base.join("one/in/main.rs"), "").unwrap();
    assert_eq!(
        fixture.refusal("in/mian.rs"),
        "cannot read in/mian.rs: /one/in/mian.rs does not exist"
    );
    assert_eq!(fixture.hint("in/mian.rs"), "did you mean in/main.rs?");
    assert!(fixture.refusal("in/depe/x").ends_with("/one/in/depe does not exist"));
    assert_eq!(fixture.hint("in/depe/x"), "did you mean in/deep?");
    assert_eq!(fixture.hint(&fixture.path("one/in/Main.rs")), "did you mean /one/in/main.rs?");
    assert!(fixture.refusal("~/x").contains("/one/~ does not exist"));
}

#[test]
fn a_name_that_reads_the_same_is_offered_so_that_it_can_be_given_back() {
    let fixture = Fixture::new();
    std::fs::write(fixture.base.join("one/in/Shot 3.04\u{202f}PM.txt"), "").unwrap();
    assert_eq!(
        fixture.hint("in/Shot 3.04 PM.txt"),
        r#"did you mean "in/Shot 3.04\342\200\257PM.txt"? It reads the same, but that name has U+202F where this one has a space: give it as it stands here, quotes and escapes included"#
    );
    assert!(fixture.refusal("in/Shot 3.04 PM.txt").ends_with("does not exist"));
    // Where there are several, nobody knows which is meant.
    std::fs::write(fixture.base.join("one/in/Shot 3.04\u{a0}PM.txt"), "").unwrap();
    assert!(fixture.hint("in/Shot 3.04 PM.txt").contains(" or "));
    let quoted = r#""in/Shot 3.04\342\200\257PM.txt""#;
    assert!(fixture.read(quoted).is_ok());
}

#[test]
fn a_path_that_lacks_its_first_directories_is_found_by_its_end() {
    let fixture = Fixture::new();
    let write = |path: &str| {
        let path = fixture.base.join("one").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    };
    write("internal/agent/tools/x.go");
    write("other/x.go");
    assert_eq!(fixture.hint("agent/tools/x.go"), "did you mean internal/agent/tools/x.go?");
    assert_eq!(fixture.hint("lib/tools/x.go"), "did you mean internal/agent/tools/x.go?");
    assert_eq!(fixture.hint("tools"), "did you mean internal/agent/tools?");
    let absolute = fixture.path("one/agent/tools/x.go");
    assert_eq!(fixture.hint(&absolute), "did you mean /one/internal/agent/tools/x.go?");
    assert_eq!(fixture.hint("x.go"), "did you mean internal/agent/tools/x.go or other/x.go?");
    // The same name alone says too little of a path with several.
    assert!(fixture.hint("none/x.go").starts_with("glob finds it"));
    // So many that none is likely.
    for number in 0..5 {
        write(&format!("many/{number}/mod.rs"));
    }
    assert!(fixture.hint("mod.rs").starts_with("glob finds it"));
}

#[test]
fn pipes_sockets_devices_and_directories_answer_at_once() {
    let fixture = Fixture::new();
    let fifo = fixture.base.join("one/p");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let _socket = UnixListener::bind(fixture.base.join("one/s.sock")).unwrap();
    fixture.link("one/to-p", "p");
    assert_eq!(fixture.refusal("p"), "cannot read p: it is a FIFO (named pipe)");
    assert_eq!(fixture.refusal("to-p"), "cannot read to-p: it is a FIFO (named pipe)");
    assert_eq!(fixture.refusal("s.sock"), "cannot read s.sock: it is a socket");
    assert_eq!(fixture.refusal("in"), "cannot read in: it is a directory");
    assert_eq!(fixture.refusal("."), "cannot read .: it is a directory");
    assert_eq!(fixture.refusal("in/deep/.."), "cannot read in/deep/..: it is a directory");
    let devices = RootsSpec { roots: vec!["/dev".to_owned()], ..RootsSpec::default() };
    let workspace = Workspace::open(&devices).unwrap();
    let path = PathArgument { text: "/dev/zero", working_directory: None };
    let error = workspace.open_file(path, AccessTime::Touch).unwrap_err();
    assert!(matches!(*error.fault, Fault::Special(Special::CharacterDevice)), "{error}");
}

#[test]
fn odd_texts_are_refused_clearly() {
    let fixture = Fixture::new();
    assert_eq!(fixture.refusal(""), "cannot read : the path is empty");
    assert!(fixture.refusal("a\0b").ends_with("the path contains a NUL byte"));
    assert!(fixture.refusal(&"x/".repeat(2100)).ends_with("file name too long"));
    assert!(fixture.refusal(&"x".repeat(256)).ends_with("file name too long"));
    assert!(fixture.refusal("a/").ends_with("/one/a is not a directory"));
    assert!(fixture.refusal("a/b").ends_with("/one/a is not a directory"));
}

/// A quoted text in which every byte is an escape.
fn octal(path: &[u8]) -> String {
    let escapes: String = path.iter().map(|byte| format!("\\{byte:03o}")).collect();
    format!("\"{escapes}\"")
}

#[test]
fn a_name_is_taken_as_it_is_shown() {
    let fixture = Fixture::new();
    let names =
        [b"gr\xfc\xdfe".as_slice(), b"two\nlines\x1b[2J", b"\"quoted\"", "\u{202e}x".as_bytes()];
    for odd in names {
        let path = fixture.base.join("one").join(OsStr::from_bytes(odd));
        std::fs::write(&path, name::encode(odd).as_bytes()).unwrap();
        for shown in [name::encode(odd), name::of(&path)] {
            assert_eq!(fixture.read(&shown).unwrap(), name::encode(odd));
            assert_eq!(fixture.read(&octal(&name::decode(&shown))).unwrap(), name::encode(odd));
        }
    }
    // Escapes are no way around what a plain text is held to.
    assert_eq!(fixture.read(&octal(b"../two/a")).unwrap(), "a in two");
    assert!(fixture.refusal(&octal(b"../outside/secret")).ends_with(OUTSIDE));
    assert!(fixture.refusal(&octal(b"a\0b")).ends_with("the path contains a NUL byte"));
    assert!(fixture.refusal("\"\"").ends_with("the path is empty"));
    // What is offered instead, and what is in the way, is reported in the same form.
    std::fs::write(fixture.base.join("one").join(OsStr::from_bytes(b"caf\xe9.txt")), "").unwrap();
    assert_eq!(fixture.hint("cafe.txt"), "did you mean \"caf\\351.txt\"?");
    let message = fixture.refusal("a/\n");
    assert_eq!(message, "cannot read \"a/\\n\": /one/a is not a directory");
}

#[test]
fn magic_links_are_refused_and_ordinary_ones_in_proc_are_not() {
    let spec =
        RootsSpec { roots: vec!["/proc".to_owned(), "/".to_owned()], ..RootsSpec::default() };
    let workspace = Workspace::open(&spec).unwrap();
    let read = |text: &str| {
        workspace.open_file(PathArgument { text, working_directory: None }, AccessTime::Touch)
    };
    assert!(read("/proc/self/status").is_ok());
    for path in ["/proc/self/root/etc/passwd", "/proc/self/exe", "/proc/self/fd/0", "self/cwd/x"] {
        let error = read(path).unwrap_err();
        assert!(matches!(*error.fault, Fault::MagicLink(_)), "{path}: {error}");
    }
}

#[test]
fn the_root_of_all_can_be_a_root() {
    let fixture = Fixture::new();
    let spec = RootsSpec { roots: vec!["/".to_owned()], ..RootsSpec::default() };
    let workspace = Workspace::open(&spec).unwrap();
    let fixture = Fixture { workspace, ..fixture };
    assert_eq!(fixture.read(&fixture.path("one/a")).unwrap(), "a in one");
    assert_eq!(fixture.read(&format!("/../..{}", fixture.path("one/a"))).unwrap(), "a in one");
    assert_eq!(fixture.read(&fixture.path("one/a")[1..]).unwrap(), "a in one");
}

/// One thread keeps turning a link between a directory inside and one outside; reads through it either
/// see the inside or are refused, and never see the outside.
#[test]
fn a_swapped_link_never_leads_outside() {
    let fixture = Fixture::new();
    std::fs::write(fixture.base.join("outside/b"), "OUTSIDE").unwrap();
    let done = AtomicBool::new(false);
    let (mut seen, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (link, next) = (fixture.base.join("one/w"), fixture.base.join("one/next"));
            let targets = [fixture.base.join("outside"), PathBuf::from("in")];
            for target in targets.iter().cycle() {
                symlink(target, &next).unwrap();
                std::fs::rename(&next, &link).unwrap();
                if done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for _ in 0..20_000 {
            let path = PathArgument { text: "w/b", working_directory: None };
            match fixture.workspace.open_file(path, AccessTime::Touch) {
                Ok(file) => {
                    let mut content = [0; 16];
                    let length = file.fill(&mut content).unwrap();
                    assert_eq!(&content[..length], b"b in one");
                    seen += 1;
                }
                Err(_) => refused += 1,
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(seen > 0 && refused > 0, "{seen} seen, {refused} refused: the race did not happen");
}

/// What a path means when it is taken as text, for trees without links.
fn model(base: &Path, from: &Path, path: &str) -> PathBuf {
    let mut meant = if path.starts_with('/') { PathBuf::from("/") } else { from.to_owned() };
    let _ = base;
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(meant.pop()),
            name => meant.push(name),
        }
    }
    meant
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever the text: the place is beneath a root, and where no link is on the way it is the
    /// one that the text means.
    #[test]
    fn no_text_leads_outside(
        parts in proptest::collection::vec(
            prop_oneof![Just(".."), Just("."), Just(""), Just("in"), Just("one"), Just("two"),
                Just("a"), Just("deep"), Just("outside"), Just("secret"), Just("fixed"), Just("new")],
            1..8),
        absolute: bool,
        quoted: bool,
    ) {
        static FIXTURE: LazyLock<Fixture> = LazyLock::new(Fixture::new);
        let fixture = &*FIXTURE;
        let mut text = parts.join("/");
        if absolute {
            text = format!("{}/{text}", fixture.base.display());
        }
        let written = if quoted { octal(text.as_bytes()) } else { text.clone() };
        let argument = PathArgument { text: &written, working_directory: None };
        if let Ok(resolved) = fixture.workspace.locate(argument, Action::Read) {
            let roots = ["one", "two", "fixed"];
            prop_assert!(roots.iter().any(|root| resolved.path.starts_with(fixture.base.join(root))), "{}", text);
            prop_assert_eq!(&resolved.path, &model(&fixture.base, &fixture.base.join("one"), &text));
        }
        if let Ok(file) = fixture.workspace.open_file(argument, AccessTime::Keep) {
            let resolved = fixture.workspace.locate(argument, Action::Read).unwrap();
            prop_assert_eq!(file.path(), resolved.path.as_path());
        }
    }
}

#[test]
fn a_deep_path_is_walked_and_left_again() {
    let fixture = Fixture::new();
    let deep = "d/".repeat(400);
    std::fs::create_dir_all(fixture.base.join("one").join(&deep)).unwrap();
    fixture.link("one/into", &deep);
    std::fs::write(fixture.base.join("one").join(&deep).join("f"), "deep").unwrap();
    assert_eq!(fixture.read("into/f").unwrap(), "deep");
    assert_eq!(fixture.read("into/../d/f").unwrap(), "deep");
    let path = format!("{deep}{}a", "../".repeat(400));
    assert_eq!(fixture.read(&path).unwrap(), "a in one");
}

#[test]
fn one_lock_for_every_spelling_of_a_file() {
    let fixture = Fixture::new();
    fixture.link("one/link", "in/b");
    std::fs::hard_link(fixture.base.join("one/in/b"), fixture.base.join("two/hard")).unwrap();
    let wait = Wait { limit: std::time::Duration::from_millis(1), should_stop: &|| false };
    let lock = |text: &str, mode| {
        let argument = PathArgument { text, working_directory: None };
        fixture.workspace.lock_path(argument, Action::Write, mode, wait)
    };
    let held = lock("in/b", LockMode::Exclusive).unwrap();
    for text in ["link", "./in/../in/b", &fixture.path("two/hard"), "../two/hard"] {
        let error = lock(text, LockMode::Shared).unwrap_err();
        assert!(matches!(*error.fault, Fault::Locked(_)), "{text}: {error}");
    }
    assert!(lock("a", LockMode::Exclusive).is_ok());
    drop(held);
    assert!(lock("link", LockMode::Shared).is_ok());
    let _new = lock("x/y/new", LockMode::Exclusive).unwrap();
    assert!(lock("in/../x/y/new", LockMode::Exclusive).is_err());
    std::fs::create_dir_all(fixture.base.join("one/x/y")).unwrap();
    assert!(lock("x/y/new", LockMode::Exclusive).is_err(), "also once its directories exist");
}

#[test]
fn a_lock_follows_the_file_that_replaced_the_one_waited_for() {
    let fixture = Fixture::new();
    let argument = PathArgument { text: "a", working_directory: None };
    let lock = || {
        let wait = Wait { limit: std::time::Duration::from_secs(60), should_stop: &|| false };
        fixture.workspace.lock_path(argument, Action::Write, LockMode::Exclusive, wait)
    };
    let (before, guard) = lock().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| lock().unwrap().0.lock_key());
        std::fs::write(fixture.base.join("one/next"), "").unwrap();
        std::fs::rename(fixture.base.join("one/next"), fixture.base.join("one/a")).unwrap();
        drop(guard);
        let after = waiting.join().unwrap();
        assert_ne!(after, before.lock_key());
        assert_eq!(after, fixture.workspace.locate(argument, Action::Read).unwrap().lock_key());
    });
}
