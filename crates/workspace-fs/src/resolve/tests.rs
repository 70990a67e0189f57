use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use super::*;
use crate::{AccessTime, RootsSpec, Special};

/// Two writable roots `one` and `two`, a read-only root `fixed` and a folder `outside`, with a
/// secret in the last.
struct Story {
    workspace: Workspace,
    base: PathBuf,
    _keep: tempfile::TempDir,
}

impl Story {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let base = keep.path().canonicalize().unwrap();
        for folder in ["one/in/deep", "two", "fixed/open", "outside"] {
            std::fs::create_dir_all(base.join(folder)).unwrap();
        }
        std::fs::write(base.join("outside/secret"), "S").unwrap();
        std::fs::write(base.join("one/a"), "a in one").unwrap();
        std::fs::write(base.join("one/in/b"), "b in one").unwrap();
        std::fs::write(base.join("two/a"), "a in two").unwrap();
        std::fs::write(base.join("fixed/a"), "a in fixed").unwrap();
        let name = |folder: &str| base.join(folder).display().to_string();
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
                let place = walked.unwrap();
                let Target::Found { stat, .. } = place.target else { panic!("{path} is missing") };
                assert_eq!((file.path(), file.stat().id), (&*place.path, stat.id), "{path}");
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
}

const OUTSIDE: &str = "outside the roots [/one, /two, /fixed/open, /fixed]";

#[test]
fn relative_paths_start_from_the_working_directory_or_the_first_root() {
    let story = Story::new();
    assert_eq!(story.read("a").unwrap(), "a in one");
    assert_eq!(story.read("./in//../a").unwrap(), "a in one");
    assert_eq!(story.read(&story.path("two/a")).unwrap(), "a in two");
    let two = story.path("two");
    assert_eq!(story.read_from("a", Some(&two)).unwrap(), "a in two");
    assert_eq!(story.read_from("../one/in/b", Some(&two)).unwrap(), "b in one");
    assert_eq!(story.read_from("b", Some(&story.path("one/in"))).unwrap(), "b in one");
    let outside = story.path("outside");
    let refused = story.read_from("secret", Some(&outside)).unwrap_err();
    assert_eq!(
        refused,
        "cannot read secret: the working directory /outside is outside the roots [/one, /two, \
         /fixed/open, /fixed]"
    );
    let absolute = story.path("one/a");
    assert_eq!(story.read_from(&absolute, Some(&outside)).unwrap(), "a in one", "not used");
    assert!(story.read_from("a", Some("one")).unwrap_err().contains("not an absolute path"));
}

#[test]
fn dots_may_leave_a_root_for_another_one_only() {
    let story = Story::new();
    assert_eq!(story.read("../two/a").unwrap(), "a in two");
    assert_eq!(story.read("in/../../two/../one/a").unwrap(), "a in one");
    assert_eq!(story.read(&story.path("outside/../one/a")).unwrap(), "a in one");
    assert_eq!(
        story.refusal("../outside/secret"),
        format!("cannot read ../outside/secret: {OUTSIDE}")
    );
    assert_eq!(story.refusal("../outside/none"), format!("cannot read ../outside/none: {OUTSIDE}"));
    assert_eq!(story.refusal(".."), format!("cannot read ..: {OUTSIDE}"));
    assert!(story.refusal("../one-beside/a").ends_with(OUTSIDE));
    assert!(story.refusal("/etc/passwd").ends_with(OUTSIDE));
    assert!(story.refusal("none/../a").contains("/one/none does not exist"));
    assert!(story.refusal("a/../a").contains("/one/a is not a folder"));
}

#[test]
fn links_inside_the_roots_work_whatever_they_look_like() {
    let story = Story::new();
    story.link("one/relative", "in/b");
    story.link("one/absolute", story.base.join("one/in"));
    story.link("one/across", story.base.join("two"));
    story.link("one/up", "../two/a");
    story.link("one/chain", "absolute/../relative");
    assert_eq!(story.read("relative").unwrap(), "b in one");
    assert_eq!(story.read("absolute/b").unwrap(), "b in one");
    assert_eq!(story.read("across/a").unwrap(), "a in two");
    assert_eq!(story.read("across/../one/a").unwrap(), "a in one");
    assert_eq!(story.read("up").unwrap(), "a in two");
    assert_eq!(story.read("chain").unwrap(), "b in one");
}

#[test]
fn a_link_that_leads_outside_is_named_and_says_nothing_of_its_target() {
    let story = Story::new();
    story.link("one/s", story.base.join("outside/secret"));
    story.link("one/none", story.base.join("outside/nothing"));
    story.link("one/d", story.base.join("outside"));
    story.link("one/out", "../outside/secret");
    story.link("one/twice", "d/secret");
    assert_eq!(
        story.refusal("s"),
        format!("cannot read s: the link /one/s leads to /outside/secret, {OUTSIDE}")
    );
    assert_eq!(
        story.refusal("none"),
        format!("cannot read none: the link /one/none leads to /outside/nothing, {OUTSIDE}")
    );
    for path in ["d/secret", "d/nothing", "twice", "d/../one/a"] {
        assert!(
            story.refusal(path).contains("the link /one/d leads to /outside, outside"),
            "{path}"
        );
    }
    assert!(story.refusal("out").contains("the link /one/out leads to ../outside/secret, outside"));
}

#[test]
fn links_in_a_circle_and_dangling_ones_are_told() {
    let story = Story::new();
    story.link("one/loop", "loop");
    story.link("one/dangling", "in/none");
    assert_eq!(
        story.refusal("loop"),
        "cannot read loop: too many symbolic links, /one/loop among them"
    );
    assert_eq!(
        story.refusal("dangling"),
        "cannot read dangling: the link /one/dangling leads to in/none, but /one/in/none does not exist"
    );
    story.link("one/40", "a");
    for number in (1..40).rev() {
        story.link(&format!("one/{number}"), format!("{}", number + 1));
    }
    assert_eq!(story.read("1").unwrap(), "a in one");
    story.link("one/0", "1");
    assert!(story.refusal("0").contains("too many symbolic links"));
}

#[test]
fn a_root_behind_a_link_works_under_both_spellings() {
    let story = Story::new();
    story.link("outside/alias", story.base.join("one"));
    let alias = story.path("outside/alias");
    let spec = RootsSpec { roots: vec![alias.clone()], ..RootsSpec::default() };
    let workspace = Workspace::open(&spec).unwrap();
    let story = Story { workspace, ..story };
    assert_eq!(story.read(&format!("{alias}/in/b")).unwrap(), "b in one");
    assert_eq!(story.read(&story.path("one/in/b")).unwrap(), "b in one");
    story.link("one/self", format!("{alias}/a"));
    assert_eq!(story.read("self").unwrap(), "a in one");
    assert!(
        story.refusal(&format!("{alias}/../secret")).contains("outside the roots [/outside/alias]")
    );
    assert_eq!(story.read_from("b", Some(&format!("{alias}/in"))).unwrap(), "b in one");
}

#[test]
fn the_innermost_root_decides_what_may_be_written() {
    let story = Story::new();
    story.link("one/into", story.base.join("fixed/open/new"));
    story.link("one/fixed", story.base.join("fixed/new"));
    let check = |path: &str| {
        let argument = PathArgument { text: path, working_directory: None };
        let place = story.workspace.locate(argument, Action::Write).unwrap();
        place
            .check_writable(&story.workspace, path)
            .map_err(|error| error.fault.to_string().replace(&story.base.display().to_string(), ""))
    };
    let refusal = "outside the writable roots [/one, /two, /fixed/open] (it is under read_only_roots: /fixed)";
    assert_eq!(check("new"), Ok(()));
    assert_eq!(check("into"), Ok(()));
    assert_eq!(check(&story.path("fixed/open/new")), Ok(()));
    assert_eq!(check(&story.path("fixed/open/../open/new")), Ok(()));
    assert_eq!(check(&story.path("fixed/new")), Err(refusal.to_owned()));
    assert_eq!(check("fixed"), Err(refusal.to_owned()));
}

/// What the quick way finds is what a walk finds, the root included.
#[test]
fn the_quick_way_to_a_place_agrees_with_the_walk() {
    let story = Story::new();
    story.link("one/link", "in/b");
    story.link("one/folder", "in");
    story.link("alias", "one");
    std::fs::create_dir(story.base.join("one/in/own")).unwrap();
    let roots = ["alias", "two", "one/in/deep"].map(|name| story.path(name)).to_vec();
    let workspace = Workspace::open(&RootsSpec { roots, ..RootsSpec::default() }).unwrap();
    let workspace = workspace.with_own_folder(&story.base.join("one/in/own")).unwrap();
    let shape = |place: Place<'_>| {
        let (found, missing) = match &place.target {
            Target::Found { stat, .. } => (Some(stat.id), None),
            Target::Missing { folders, ends_in_slash, .. } => {
                (None, Some((folders.clone(), *ends_in_slash)))
            }
        };
        let folder = place.folder().map(|folder| FileStat::of(folder).unwrap().id);
        (place.path.clone(), place.root.id(), found, missing, folder)
    };
    let compare = |text: &str| {
        let (root, rest) = workspace.enter(text.as_bytes()).unwrap();
        let walked = Walk::new(&workspace, root, rest).run();
        let found = workspace.find_directly(root, rest).unwrap();
        found.map(|place| assert_eq!(shape(place), shape(walked.unwrap()), "{text}")).is_some()
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
        assert!(compare(&story.path(text)), "{text} is walked");
    }
    for text in
        ["one", "one/in/", "one/a/", "one/in/..", "one/link", "one/folder/b", "one/a/b", "one/x/y"]
    {
        assert!(!compare(&story.path(text)), "{text} is not walked");
    }
}

#[test]
fn a_root_is_known_wherever_it_was_moved_where_another_permits_more() {
    let story = Story::new();
    std::fs::rename(story.base.join("fixed"), story.base.join("one/moved")).unwrap();
    let argument = PathArgument { text: "moved/a", working_directory: None };
    let place = story.workspace.locate(argument, Action::Write).unwrap();
    assert!(place.check_writable(&story.workspace, "moved/a").is_err());
    let argument = PathArgument { text: "moved/open/a", working_directory: None };
    let place = story.workspace.locate(argument, Action::Write).unwrap();
    assert!(place.check_writable(&story.workspace, "moved/open/a").is_ok());
}

#[test]
fn a_place_opens_the_file_that_was_found_or_none() {
    let story = Story::new();
    let locate = || {
        let argument = PathArgument { text: "a", working_directory: None };
        story.workspace.locate(argument, Action::Write).unwrap()
    };
    let open = |place: &Place<'_>| {
        let opened = place.open("a", Action::Write, AccessTime::Keep);
        opened.map(drop).map_err(|error| matches!(*error.fault, Fault::Changed))
    };
    let (file, next) = (story.base.join("one/a"), story.base.join("one/next"));
    let place = locate();
    assert_eq!(open(&place), Ok(()));
    assert!(place.is_as_found());
    std::fs::write(&next, "another").unwrap();
    std::fs::rename(&next, &file).unwrap();
    assert_eq!(open(&place), Err(true), "replaced");
    assert!(!place.is_as_found());
    let place = locate();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(open(&place), Err(true), "removed");
    let missing = locate();
    assert!(!place.is_as_found() && missing.is_as_found());
    story.link("one/a", "in/b");
    assert_eq!(open(&place), Err(true), "replaced by a link");
    assert!(!place.is_as_found() && !missing.is_as_found());
    assert_eq!(open(&locate()), Ok(()));
}

#[test]
fn what_does_not_exist_is_described_for_whoever_makes_it() {
    let story = Story::new();
    let locate = |text: &str| {
        let argument = PathArgument { text, working_directory: None };
        let place = story.workspace.locate(argument, Action::Write).unwrap();
        let Target::Missing { folders, ends_in_slash, .. } = place.target else { panic!("{text}") };
        let path = place.path.strip_prefix(&story.base).unwrap().display().to_string();
        (path, folders.len(), ends_in_slash)
    };
    assert_eq!(locate("new"), ("one/new".to_owned(), 0, false));
    assert_eq!(locate("in/x/./y/z"), ("one/in/x/y/z".to_owned(), 2, false));
    assert_eq!(locate("x/"), ("one/x".to_owned(), 0, true));
    story.link("one/dangling", "in/new");
    assert_eq!(locate("dangling"), ("one/in/new".to_owned(), 0, false));
}

#[test]
fn near_names_are_offered_in_the_callers_style() {
    let story = Story::new();
    std::fs::write(story.base.join("one/in/main.rs"), "").unwrap();
    assert_eq!(
        story.refusal("in/mian.rs"),
        "cannot read in/mian.rs: /one/in/mian.rs does not exist; similar: in/main.rs"
    );
    assert!(story.refusal("in/depe/x").contains("/one/in/depe does not exist; similar: in/deep"));
    let absolute = story.path("one/in/Main.rs");
    assert!(story.refusal(&absolute).ends_with("similar: /one/in/main.rs"));
    assert!(story.refusal("~/x").contains("/one/~ does not exist"));
}

#[test]
fn pipes_sockets_devices_and_folders_answer_at_once() {
    let story = Story::new();
    let fifo = story.base.join("one/p");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let _socket = UnixListener::bind(story.base.join("one/s.sock")).unwrap();
    story.link("one/to-p", "p");
    assert_eq!(story.refusal("p"), "cannot read p: it is a FIFO (named pipe)");
    assert_eq!(story.refusal("to-p"), "cannot read to-p: it is a FIFO (named pipe)");
    assert_eq!(story.refusal("s.sock"), "cannot read s.sock: it is a socket");
    assert_eq!(story.refusal("in"), "cannot read in: it is a folder");
    assert_eq!(story.refusal("."), "cannot read .: it is a folder");
    assert_eq!(story.refusal("in/deep/.."), "cannot read in/deep/..: it is a folder");
    let devices = RootsSpec { roots: vec!["/dev".to_owned()], ..RootsSpec::default() };
    let workspace = Workspace::open(&devices).unwrap();
    let path = PathArgument { text: "/dev/zero", working_directory: None };
    let error = workspace.open_file(path, AccessTime::Touch).unwrap_err();
    assert!(matches!(*error.fault, Fault::Special(Special::CharacterDevice)), "{error}");
}

#[test]
fn odd_texts_are_refused_clearly() {
    let story = Story::new();
    assert_eq!(story.refusal(""), "cannot read : the path is empty");
    assert!(story.refusal("a\0b").ends_with("the path contains a NUL byte"));
    assert!(story.refusal(&"x/".repeat(2100)).ends_with("file name too long"));
    assert!(story.refusal(&"x".repeat(256)).ends_with("file name too long"));
    assert!(story.refusal("a/").ends_with("/one/a is not a folder"));
    assert!(story.refusal("a/b").ends_with("/one/a is not a folder"));
}

/// A quoted text in which every byte is an escape.
fn octal(path: &[u8]) -> String {
    let escapes: String = path.iter().map(|byte| format!("\\{byte:03o}")).collect();
    format!("\"{escapes}\"")
}

#[test]
fn a_name_is_taken_as_it_is_shown() {
    let story = Story::new();
    let names =
        [b"gr\xfc\xdfe".as_slice(), b"two\nlines\x1b[2J", b"\"quoted\"", "\u{202e}x".as_bytes()];
    for odd in names {
        let path = story.base.join("one").join(OsStr::from_bytes(odd));
        std::fs::write(&path, name::encode(odd).as_bytes()).unwrap();
        for shown in [name::encode(odd), name::of(&path)] {
            assert_eq!(story.read(&shown).unwrap(), name::encode(odd));
            assert_eq!(story.read(&octal(&name::decode(&shown))).unwrap(), name::encode(odd));
        }
    }
    // Escapes are no way around what a plain text is held to.
    assert_eq!(story.read(&octal(b"../two/a")).unwrap(), "a in two");
    assert!(story.refusal(&octal(b"../outside/secret")).ends_with(OUTSIDE));
    assert!(story.refusal(&octal(b"a\0b")).ends_with("the path contains a NUL byte"));
    assert!(story.refusal("\"\"").ends_with("the path is empty"));
    // What is offered instead, and what is in the way, is told in the same form.
    std::fs::write(story.base.join("one").join(OsStr::from_bytes(b"caf\xe9.txt")), "").unwrap();
    let message = story.refusal("cafe.txt");
    assert!(message.ends_with("similar: \"caf\\351.txt\""), "{message}");
    let message = story.refusal("a/\n");
    assert_eq!(message, "cannot read \"a/\\n\": /one/a is not a folder");
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
    let story = Story::new();
    let spec = RootsSpec { roots: vec!["/".to_owned()], ..RootsSpec::default() };
    let workspace = Workspace::open(&spec).unwrap();
    let story = Story { workspace, ..story };
    assert_eq!(story.read(&story.path("one/a")).unwrap(), "a in one");
    assert_eq!(story.read(&format!("/../..{}", story.path("one/a"))).unwrap(), "a in one");
    assert_eq!(story.read(&story.path("one/a")[1..]).unwrap(), "a in one");
}

/// One thread keeps turning a link between a folder inside and one outside; reads through it either
/// see the inside or are refused, and never see the outside.
#[test]
fn a_swapped_link_never_leads_outside() {
    let story = Story::new();
    std::fs::write(story.base.join("outside/b"), "OUTSIDE").unwrap();
    let done = AtomicBool::new(false);
    let (mut seen, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (link, next) = (story.base.join("one/w"), story.base.join("one/next"));
            let targets = [story.base.join("outside"), PathBuf::from("in")];
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
            match story.workspace.open_file(path, AccessTime::Touch) {
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
        static STORY: LazyLock<Story> = LazyLock::new(Story::new);
        let story = &*STORY;
        let mut text = parts.join("/");
        if absolute {
            text = format!("{}/{text}", story.base.display());
        }
        let written = if quoted { octal(text.as_bytes()) } else { text.clone() };
        let argument = PathArgument { text: &written, working_directory: None };
        if let Ok(place) = story.workspace.locate(argument, Action::Read) {
            let roots = ["one", "two", "fixed"];
            prop_assert!(roots.iter().any(|root| place.path.starts_with(story.base.join(root))), "{}", text);
            prop_assert_eq!(&place.path, &model(&story.base, &story.base.join("one"), &text));
        }
        if let Ok(file) = story.workspace.open_file(argument, AccessTime::Keep) {
            let place = story.workspace.locate(argument, Action::Read).unwrap();
            prop_assert_eq!(file.path(), place.path.as_path());
        }
    }
}

#[test]
fn a_deep_path_is_walked_and_left_again() {
    let story = Story::new();
    let deep = "d/".repeat(400);
    std::fs::create_dir_all(story.base.join("one").join(&deep)).unwrap();
    story.link("one/into", &deep);
    std::fs::write(story.base.join("one").join(&deep).join("f"), "deep").unwrap();
    assert_eq!(story.read("into/f").unwrap(), "deep");
    assert_eq!(story.read("into/../d/f").unwrap(), "deep");
    let path = format!("{deep}{}a", "../".repeat(400));
    assert_eq!(story.read(&path).unwrap(), "a in one");
}

#[test]
fn one_lock_for_every_spelling_of_a_file() {
    let story = Story::new();
    story.link("one/link", "in/b");
    std::fs::hard_link(story.base.join("one/in/b"), story.base.join("two/hard")).unwrap();
    let wait = Wait { limit: std::time::Duration::from_millis(1), should_stop: &|| false };
    let lock = |text: &str, mode| {
        let argument = PathArgument { text, working_directory: None };
        story.workspace.lock_place(argument, Action::Write, mode, wait)
    };
    let held = lock("in/b", LockMode::Exclusive).unwrap();
    for text in ["link", "./in/../in/b", &story.path("two/hard"), "../two/hard"] {
        let error = lock(text, LockMode::Shared).unwrap_err();
        assert!(matches!(*error.fault, Fault::Locked(_)), "{text}: {error}");
    }
    assert!(lock("a", LockMode::Exclusive).is_ok());
    drop(held);
    assert!(lock("link", LockMode::Shared).is_ok());
    let _new = lock("x/y/new", LockMode::Exclusive).unwrap();
    assert!(lock("in/../x/y/new", LockMode::Exclusive).is_err());
    std::fs::create_dir_all(story.base.join("one/x/y")).unwrap();
    assert!(lock("x/y/new", LockMode::Exclusive).is_err(), "also once its folders exist");
}

#[test]
fn a_lock_follows_the_file_that_replaced_the_one_waited_for() {
    let story = Story::new();
    let argument = PathArgument { text: "a", working_directory: None };
    let lock = || {
        let wait = Wait { limit: std::time::Duration::from_secs(60), should_stop: &|| false };
        story.workspace.lock_place(argument, Action::Write, LockMode::Exclusive, wait)
    };
    let (before, guard) = lock().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| lock().unwrap().0.lock_key());
        std::fs::write(story.base.join("one/next"), "").unwrap();
        std::fs::rename(story.base.join("one/next"), story.base.join("one/a")).unwrap();
        drop(guard);
        let after = waiting.join().unwrap();
        assert_ne!(after, before.lock_key());
        assert_eq!(after, story.workspace.locate(argument, Action::Read).unwrap().lock_key());
    });
}
