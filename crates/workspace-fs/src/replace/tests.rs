use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::fs::XattrFlags;

use super::*;
use crate::{
    AccessTime, Journal, Mode as LockMode, PathArgument, RootsSpec, StateDirectory, Version, Wait,
};

/// A root to write in.
struct Fixture {
    workspace: Workspace,
    root: PathBuf,
    _keep: Option<tempfile::TempDir>,
}

const WAIT: Wait<'static> = Wait { limit: Duration::from_secs(60), should_stop: &|| false };

impl Fixture {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = keep.path().canonicalize().unwrap();
        Self { _keep: Some(keep), ..Self::at(&root) }
    }

    fn at(root: &Path) -> Self {
        let roots = vec![root.display().to_string()];
        let workspace = Workspace::open(&RootsSpec { roots, ..RootsSpec::default() }).unwrap();
        Self { workspace, root: root.to_owned(), _keep: None }
    }

    /// Writes as a tool does: lock, read, stage, commit.
    fn write(&self, text: &str, content: impl AsRef<[u8]>) -> Result<Written, WorkspaceError> {
        self.change(text, |_| content.as_ref().to_vec())
    }

    fn change(
        &self,
        text: &str,
        change: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Result<Written, WorkspaceError> {
        let path = PathArgument { text, working_directory: None };
        let (resolved, _lock) =
            self.workspace.lock_path(path, Action::Write, LockMode::Exclusive, WAIT)?;
        let base = match &resolved.target {
            Target::Found { .. } => Some(resolved.open(text, Action::Write, AccessTime::Touch)?),
            Target::Missing { .. } => None,
        };
        let mut old = Vec::new();
        if let Some(base) = &base {
            old.resize(usize::try_from(base.stat().size).unwrap(), 0);
            base.fill(&mut old)?;
        }
        let new = change(&old);
        let replacement =
            Replacement { text, base: base.as_ref(), content: &[&new], should_stop: &|| false };
        self.workspace.stage(resolved, replacement)?.commit()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap()
    }

    fn names(&self) -> Vec<String> {
        names(&self.root)
    }

    /// With a journal in this directory.
    fn with_journal(self, state: &Path) -> Self {
        let state = StateDirectory::at(state.to_owned()).unwrap();
        let journal = Journal::begin(state).unwrap();
        Self { workspace: self.workspace.with_journal(journal), ..self }
    }

    /// As on a file system that makes no files without a name.
    fn with_names(mut self) -> Self {
        self.workspace.linking = Linking::Never;
        self
    }

    fn refusal(&self, text: &str) -> String {
        let error = self.write(text, "new").unwrap_err();
        error.to_string().replace(&self.root.display().to_string(), "")
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_new_file_is_made_with_its_directories() {
    let fixture = Fixture::new();
    let written = fixture.write("a/b/c", "new\n").unwrap();
    assert_eq!(written.how, How::Created);
    assert_eq!(fixture.read("a/b/c"), "new\n");
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:\t")).unwrap();
    let umask = u32::from_str_radix(umask, 8).unwrap();
    let mode = |name: &str| fs::metadata(fixture.root.join(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("a/b/c"), mode("a/b")), (0o666 & !umask, 0o777 & !umask));
    assert_eq!(written.stat.stamp(), fixture.stat("a/b/c").stamp());
}

impl Fixture {
    fn stat(&self, text: &str) -> FileStat {
        let path = PathArgument { text, working_directory: None };
        let resolved = self.workspace.locate_existing(path, Action::Read).unwrap();
        let Target::Found { stat, .. } = resolved.target else { panic!("{text} is missing") };
        stat
    }
}

#[test]
fn a_replaced_file_keeps_mode_owner_and_attributes() {
    let fixture = Fixture::new();
    let path = fixture.root.join("s.sh");
    fs::write(&path, "echo 1").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4751)).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        std::os::unix::fs::chown(&path, Some(1000), Some(1000)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4751)).unwrap();
    } else {
        eprintln!("SKIPPED in part: a foreign owner needs root");
    }
    // user::rwx, user:1000:rw-, group::r-x, mask::r-x, other::--x
    let acl: &[u8] = b"\x02\0\0\0\x01\0\x07\0\xFF\xFF\xFF\xFF\x02\0\x06\0\xE8\x03\0\0\
        \x04\0\x05\0\xFF\xFF\xFF\xFF\x10\0\x05\0\xFF\xFF\xFF\xFF\x20\0\x01\0\xFF\xFF\xFF\xFF";
    let attributes: [(&str, &[u8]); 2] = [("user.k", b"v"), ("system.posix_acl_access", acl)];
    let file = fs::File::open(&path).unwrap();
    for (name, value) in attributes {
        if let Err(errno) = rustix::fs::fsetxattr(&file, name, value, XattrFlags::empty()) {
            eprintln!("SKIPPED in part: {name} cannot be set here: {errno}");
        }
    }
    let before = fixture.stat("s.sh");
    let written = fixture.write("s.sh", "echo 2").unwrap();
    assert_eq!(written.how, How::Replaced { parted_names: 0 });
    let after = fixture.stat("s.sh");
    assert_eq!((after.mode, after.uid, after.gid), (before.mode, before.uid, before.gid));
    assert_ne!(after.id, before.id);
    let new = fs::File::open(&path).unwrap();
    for (name, _) in attributes {
        let value = |file: &fs::File| {
            let mut buffer = [0; 100];
            rustix::fs::fgetxattr(file, name, &mut buffer[..])
                .map(|length| buffer[..length].to_vec())
        };
        assert_eq!(value(&new), value(&file), "{name}");
    }
    assert_eq!(fixture.names(), ["s.sh"]);
}

#[test]
fn an_access_list_that_the_directory_hands_down_does_not_reach_an_old_file() {
    let fixture = Fixture::new();
    fs::write(fixture.root.join("f"), "1").unwrap();
    let acl: &[u8] = b"\x02\0\0\0\x01\0\x07\0\xFF\xFF\xFF\xFF\x02\0\x07\0\xE8\x03\0\0\
        \x04\0\x05\0\xFF\xFF\xFF\xFF\x10\0\x07\0\xFF\xFF\xFF\xFF\x20\0\x05\0\xFF\xFF\xFF\xFF";
    let directory = fs::File::open(&fixture.root).unwrap();
    let name = "system.posix_acl_default";
    if let Err(errno) = rustix::fs::fsetxattr(&directory, name, acl, XattrFlags::empty()) {
        eprintln!("SKIPPED an_access_list_that_the_directory_hands_down: {errno}");
        return;
    }
    let has_list = |name: &str| {
        let file = fs::File::open(fixture.root.join(name)).unwrap();
        rustix::fs::fgetxattr(&file, "system.posix_acl_access", &mut [0u8; 100][..]).is_ok()
    };
    fixture.write("f", "2").unwrap();
    fixture.write("new", "2").unwrap();
    assert!(!has_list("f") && has_list("new"));
}

#[test]
fn links_stay_links() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.root.join("real")).unwrap();
    fs::write(fixture.root.join("real/t"), "v1").unwrap();
    for (link, target) in
        [("link", "real/t"), ("link2", "link"), ("loop", "loop"), ("dangling", "real/none")]
    {
        symlink(target, fixture.root.join(link)).unwrap();
    }
    fixture.write("link2", "v2").unwrap();
    assert_eq!(fixture.read("real/t"), "v2");
    fixture.write("dangling", "x").unwrap();
    assert_eq!(fixture.read("real/none"), "x");
    assert_eq!(
        fixture.refusal("loop"),
        "cannot write loop: too many symbolic links, /loop among them"
    );
    for link in ["link", "link2", "dangling"] {
        assert!(fs::symlink_metadata(fixture.root.join(link)).unwrap().is_symlink(), "{link}");
    }
}

#[test]
fn a_hard_link_is_parted_and_reported() {
    let fixture = Fixture::new();
    fs::write(fixture.root.join("a"), "t").unwrap();
    let outside = tempfile::tempdir_in(fixture.root.parent().unwrap()).unwrap();
    fs::hard_link(fixture.root.join("a"), outside.path().join("b")).unwrap();
    let written = fixture.write("a", "u").unwrap();
    assert_eq!(written.how, How::Replaced { parted_names: 1 });
    assert_eq!(fs::read(outside.path().join("b")).unwrap(), b"t");
    assert_eq!(fixture.read("a"), "u");
}

#[test]
fn what_cannot_be_written_leaves_nothing_behind() {
    let fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(fixture.root.join("file"), "x").unwrap();
    symlink(outside.path(), fixture.root.join("out")).unwrap();
    assert!(fixture.refusal("out/new/dir/f").contains("the link /out leads to"));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(fixture.refusal("file/x"), "cannot write file/x: /file is not a directory");
    assert_eq!(fixture.refusal("."), "cannot write .: it is a directory");
    assert!(fixture.refusal("new/").contains("ends in a slash"));
    let long = format!("a/b/{}", "n".repeat(256));
    assert!(fixture.refusal(&long).ends_with("file name too long"));
    assert_eq!(fixture.names(), ["file", "out"]);
}

#[test]
fn a_name_of_the_greatest_length_can_be_written() {
    for fixture in [Fixture::new(), Fixture::new().with_names()] {
        let long = "n".repeat(255);
        fixture.write(&long, "1").unwrap();
        fixture.write(&long, "2").unwrap();
        assert_eq!((fixture.read(&long), fixture.names().len()), ("2".to_owned(), 1));
    }
}

#[test]
fn giving_up_removes_the_file_and_the_directories() {
    let fixture = Fixture::new();
    let stage = |should_stop: &dyn Fn() -> bool| {
        let path = PathArgument { text: "a/b/f", working_directory: None };
        let resolved = fixture.workspace.locate(path, Action::Write).unwrap();
        let content: &[&[u8]] = &[b"x"];
        let new = Replacement { text: "a/b/f", base: None, content, should_stop };
        fixture.workspace.stage(resolved, new).map(drop)
    };
    assert!(matches!(*stage(&|| true).unwrap_err().fault, Fault::Stopped));
    assert!(stage(&|| false).is_ok(), "staged, and dropped");
    assert_eq!(fixture.names(), [""; 0]);
}

#[test]
fn a_change_by_another_program_is_not_overwritten() {
    let fixture = Fixture::new();
    fs::write(fixture.root.join("f"), "1").unwrap();
    let error = fixture
        .change("f", |_| {
            fs::write(fixture.root.join("f"), "theirs").unwrap();
            b"ours".to_vec()
        })
        .unwrap_err();
    assert!(matches!(*error.fault, Fault::Changed), "{error}");
    assert_eq!((fixture.read("f"), fixture.names()), ("theirs".to_owned(), vec!["f".to_owned()]));
    let error = fixture
        .change("new", |_| {
            fs::write(fixture.root.join("new"), "theirs").unwrap();
            b"ours".to_vec()
        })
        .unwrap_err();
    assert!(matches!(*error.fault, Fault::Changed), "{error}");
    assert_eq!(fixture.read("new"), "theirs");
}

#[test]
fn parallel_changes_through_two_spellings_lose_nothing() {
    let fixture = Fixture::new();
    fs::write(fixture.root.join("n"), "0").unwrap();
    symlink("n", fixture.root.join("link")).unwrap();
    let add = |old: &[u8]| {
        let number: u32 = std::str::from_utf8(old).unwrap().parse().unwrap();
        (number + 1).to_string().into_bytes()
    };
    std::thread::scope(|scope| {
        for name in ["n", "link", "./n", "link"] {
            let fixture = &fixture;
            scope.spawn(move || {
                for _ in 0..25 {
                    fixture.change(name, add).unwrap();
                }
            });
        }
    });
    assert_eq!((fixture.read("n"), fixture.names().len()), ("100".to_owned(), 2));
}

#[test]
fn parallel_creations_of_one_file_agree() {
    let fixture = Fixture::new();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let fixture = &fixture;
            let append = move |old: &[u8]| [old, &[b'a' + number]].concat();
            scope.spawn(move || fixture.change("x/y/new", append).unwrap());
        }
    });
    let mut letters: Vec<char> = fixture.read("x/y/new").chars().collect();
    letters.sort_unstable();
    assert_eq!(letters, ('a'..='h').collect::<Vec<_>>());
}

#[test]
fn content_in_many_pieces_is_written_in_order() {
    let fixture = Fixture::new();
    let large = vec![b'L'; GATHER + 1];
    let mut pieces: Vec<&[u8]> = Vec::new();
    for number in 0..2000 {
        pieces.push(b"small piece ");
        if number % 700 == 0 {
            pieces.push(&large);
        }
    }
    let path = PathArgument { text: "f", working_directory: None };
    let resolved = fixture.workspace.locate(path, Action::Write).unwrap();
    let new = Replacement { text: "f", base: None, content: &pieces, should_stop: &|| false };
    let _ = fixture.workspace.stage(resolved, new).unwrap().commit().unwrap();
    assert_eq!(
        Version::of(&fs::read(fixture.root.join("f")).unwrap()),
        Version::of(&pieces.concat())
    );
}

/// Writing in place, straight: as root every directory is writable, so nothing leads there by itself.
fn in_place(fixture: &Fixture, content: &[u8]) -> Result<(), Fault> {
    let new = Temp::in_memory().unwrap();
    rustix::io::write(&new, content).unwrap();
    in_place_from(fixture, new.as_fd())
}

fn in_place_from(fixture: &Fixture, new: BorrowedFd<'_>) -> Result<(), Fault> {
    let path = PathArgument { text: "f", working_directory: None };
    let resolved = fixture.workspace.locate(path, Action::Write).unwrap();
    let base = fixture.stat("f");
    let directories = Directories::make(resolved.directory().unwrap(), &[]).unwrap();
    let site = fixture.workspace.site(&directories, &resolved);
    in_place::overwrite(&resolved, site, &base, new, InPlace::Mounted)
}

#[test]
fn in_place_keeps_the_file_and_leaves_no_copy() {
    let fixture = Fixture::new();
    fs::write(fixture.root.join("f"), "the old content").unwrap();
    let before = fixture.stat("f").id;
    for content in ["short", "much longer than it was before"] {
        in_place(&fixture, content.as_bytes()).unwrap();
        assert_eq!(fixture.read("f"), content);
    }
    assert_eq!((fixture.stat("f").id, fixture.names()), (before, vec!["f".to_owned()]));
}

#[test]
fn in_place_never_reaches_another_name() {
    let fixture = Fixture::new();
    fs::write(fixture.root.join("f"), "old").unwrap();
    fs::hard_link(fixture.root.join("f"), fixture.root.join("g")).unwrap();
    let fault = in_place(&fixture, b"new").unwrap_err();
    assert_eq!(
        fault.to_string(),
        "it is mounted by itself, and writing in place would reach its 1 other name(s) too"
    );
    assert_eq!(fixture.read("g"), "old");
}

/// Runs one of the ignored tests below by itself, in a shell that prepares its environment.
/// `None`, said loudly, where this machine cannot do that.
fn run_inner(test: &str, prepare: &str, root: &Path) -> Option<()> {
    let executable = std::env::current_exe().unwrap();
    let script = format!(
        "set -e; {prepare}; exec {:?} --exact replace::tests::{test} --ignored --nocapture",
        executable.display().to_string()
    );
    let needs_mounts = prepare.contains("mount");
    let mut command = if needs_mounts {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", &script]);
        command
    } else {
        let mut command = Command::new("bash");
        command.args(["-c", &script]);
        command
    };
    let output = command.env("INNER_ROOT", root).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    if needs_mounts && !text.contains("running 1 test") {
        eprintln!("SKIPPED {test}: no mount namespace here: {text}");
        assert!(std::env::var_os("CI").is_none(), "CI must run this");
        return None;
    }
    assert!(output.status.success(), "{text}");
    Some(())
}

fn inner_story() -> Fixture {
    Fixture::at(Path::new(&std::env::var_os("INNER_ROOT").unwrap()))
}

#[test]
fn a_mounted_file_is_written_in_place() {
    let fixture = Fixture::new();
    fs::write(fixture.root.join("real"), "a").unwrap();
    fs::write(fixture.root.join("cfg"), "").unwrap();
    let prepare = "mount --bind \"$INNER_ROOT/real\" \"$INNER_ROOT/cfg\"";
    if run_inner("inner_mounted_file", prepare, &fixture.root).is_some() {
        assert_eq!((fixture.read("real"), fixture.names().len()), ("b".to_owned(), 2));
    }
}

#[test]
#[ignore = "run by a_mounted_file_is_written_in_place"]
fn inner_mounted_file() {
    let fixture = inner_story();
    assert_eq!(fixture.write("cfg", "b").unwrap().how, How::InPlace(InPlace::Mounted));
    assert_eq!(
        (fixture.read("cfg"), fixture.names()),
        ("b".into(), vec!["cfg".into(), "real".into()])
    );
}

#[test]
fn a_full_disk_leaves_the_old_content() {
    let fixture = Fixture::new();
    run_inner("inner_full_disk", "mount -t tmpfs -o size=64k tmpfs \"$INNER_ROOT\"", &fixture.root);
}

#[test]
#[ignore = "run by a_full_disk_leaves_the_old_content"]
fn inner_full_disk() {
    let fixture = inner_story();
    fixture.write("f", "original\n").unwrap();
    let large = vec![b'x'; 200_000];
    let check = |error: String| {
        assert!(error.contains("no space left on device"), "{error}");
        assert_eq!(
            (fixture.read("f"), fixture.names()),
            ("original\n".to_owned(), vec!["f".to_owned()])
        );
    };
    check(fixture.write("f", &large).unwrap_err().to_string());
    check(fixture.write("a/b", &large).unwrap_err().to_string());
    check(in_place(&fixture, &large).unwrap_err().to_string());
    fixture.write("f", "small\n").unwrap();
    assert_eq!(fixture.read("f"), "small\n");
}

#[test]
fn a_limit_on_the_size_of_files_leaves_the_old_content() {
    let fixture = Fixture::new();
    fs::write(fixture.root.join("large"), vec![b'x'; 200_000]).unwrap();
    run_inner("inner_file_size_limit", "trap '' XFSZ; ulimit -f 64", &fixture.root);
}

#[test]
#[ignore = "run by a_limit_on_the_size_of_files_leaves_the_old_content"]
fn inner_file_size_limit() {
    let fixture = inner_story();
    fixture.write("f", "original\n").unwrap();
    let large = fs::File::open(fixture.root.join("large")).unwrap();
    for error in [
        fixture.write("f", fs::read(fixture.root.join("large")).unwrap()).unwrap_err().to_string(),
        // Fails half-way: the old content is put back.
        in_place_from(&fixture, large.as_fd()).unwrap_err().to_string(),
    ] {
        assert!(error.contains("file too large"), "{error}");
        assert_eq!(
            (fixture.read("f"), fixture.names()),
            ("original\n".into(), vec!["f".into(), "large".into()])
        );
    }
}

#[test]
fn without_privileges_permissions_are_respected() {
    let fixture = Fixture::new();
    if !rustix::process::geteuid().is_root() {
        return inner_unprivileged_at(&fixture.root);
    }
    fs::set_permissions(&fixture.root, fs::Permissions::from_mode(0o777)).unwrap();
    let executable = std::env::current_exe().unwrap();
    let copy = fixture.root.join("test");
    fs::copy(executable, &copy).unwrap();
    let root = fixture.root.join("root");
    fs::create_dir(&root).unwrap();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o777)).unwrap();
    let script = format!(
        "{:?} --exact replace::tests::inner_unprivileged --ignored --nocapture",
        copy.display().to_string()
    );
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", &script])
        .env("INNER_ROOT", &root)
        .output();
    match output {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(error) => {
            eprintln!("SKIPPED without_privileges_permissions_are_respected: setpriv: {error}");
            assert!(std::env::var_os("CI").is_none(), "CI must run this");
        }
    }
}

#[test]
#[ignore = "run by without_privileges_permissions_are_respected"]
fn inner_unprivileged() {
    inner_unprivileged_at(&inner_story().root);
}

fn inner_unprivileged_at(root: &Path) {
    let fixture = Fixture::at(root);
    let mode = |name: &str, mode| {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    fs::create_dir(root.join("ro")).unwrap();
    fs::write(root.join("ro/f"), "old").unwrap();
    fs::write(root.join("protected"), "old").unwrap();
    fs::create_dir_all(root.join("shut/deep")).unwrap();
    fs::write(root.join("shut/deep/f"), "old").unwrap();
    mode("protected", 0o444);
    mode("ro", 0o555);
    mode("shut", 0o000);
    assert_eq!(fixture.refusal("ro/x"), "cannot write ro/x: permission denied");
    assert_eq!(fixture.refusal("ro/a/b/x"), "cannot write ro/a/b/x: permission denied");
    assert_eq!(fixture.refusal("protected"), "cannot write protected: permission denied");
    for (name, obstacle) in [
        ("ro/x", "ro cannot be written: its mode is 0555 and its owner uid "),
        ("protected", "protected cannot be written: its mode is 0444 and its owner uid "),
        ("shut/deep/f", "shut cannot be searched: its mode is 0000 and its owner uid "),
    ] {
        let hint = fixture.write(name, "new").unwrap_err().hint().unwrap_or_default();
        assert!(hint.contains(obstacle), "{name}: {hint}");
    }
    let written = fixture.write("ro/f", "new").unwrap();
    assert_eq!(written.how, How::InPlace(InPlace::DirectoryNotWritable));
    assert_eq!((fixture.read("ro/f"), fixture.read("protected")), ("new".into(), "old".into()));
    assert_eq!(fs::read_dir(root.join("ro")).unwrap().count(), 1);
    mode("ro", 0o755);
    mode("shut", 0o755);
}

/// A process is killed again and again while it writes: the file is always whole, and the next start
/// finds nothing beside it.
#[test]
fn a_killed_process_leaves_old_or_new_content() {
    for linking in ["unnamed", "named"] {
        // In memory, where a sync takes no time and so the rest takes the more of it.
        let keep = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = keep.path().canonicalize().unwrap();
        fs::create_dir(path.join("root")).unwrap();
        let fixture = Fixture::at(&path.join("root"));
        let executable = std::env::current_exe().unwrap();
        let mut removed = 0;
        for round in 0..12u64 {
            fs::write(fixture.root.join("f"), vec![b'0'; 10_000]).unwrap();
            let mut child = Command::new(&executable)
                .args(["--exact", "replace::tests::inner_writes_for_ever", "--ignored"])
                .env("INNER_ROOT", &path)
                .env("INNER_LINKING", linking)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            while fs::read(fixture.root.join("f")).unwrap()[0] == b'0' {
                std::thread::yield_now();
            }
            // A different moment each round; which one does not matter to what must hold.
            for _ in 0..round * 20 {
                std::thread::yield_now();
            }
            child.kill().unwrap();
            child.wait().unwrap();
            let content = fs::read(fixture.root.join("f")).unwrap();
            let is_whole = content.len().is_multiple_of(10_000);
            assert!(is_whole && content.iter().all(|byte| *byte == content[0]));
            let next = Fixture::at(&fixture.root).with_journal(&path.join("state"));
            let recovered = next.workspace.recover();
            assert_eq!(recovered.waiting, 0);
            removed += recovered.removed;
            assert_eq!((fixture.names(), recovered.kept.len()), (vec!["f".to_owned()], 0));
            drop(next);
            assert_eq!(names(&path.join("state")), [""; 0]);
        }
        eprintln!("{linking}: {removed} of 12 left a temporary file");
    }
}

#[test]
#[ignore = "run by a_killed_process_leaves_old_or_new_content"]
fn inner_writes_for_ever() {
    let path = PathBuf::from(std::env::var_os("INNER_ROOT").unwrap());
    let mut fixture = Fixture::at(&path.join("root")).with_journal(&path.join("state"));
    if std::env::var("INNER_LINKING").unwrap() == "named" {
        fixture = fixture.with_names();
    }
    for letter in (b'a'..=b'z').cycle() {
        let length = 10_000 * (1 + usize::from(letter % 4));
        fixture.write("f", vec![letter; length]).unwrap();
    }
}

/// A file that is staged: what the directory and the journal show of it, and that it goes.
#[test]
fn a_staged_file_has_no_name_where_the_system_can_do_without() {
    let state = tempfile::tempdir().unwrap();
    let listed = |fixture: &Fixture| {
        assert!(fixture.workspace.journal.is_some());
        let journals = names(&state.path().join("s"));
        assert_eq!(journals.len(), 1);
        let content = fs::read(state.path().join("s").join(&journals[0])).unwrap();
        // A slot that is in use begins with a length.
        content.chunks(8192).any(|slot| slot[..4] != [0; 4])
    };
    for has_name in [false, true] {
        let fixture = Fixture::new().with_journal(&state.path().join("s"));
        let fixture = if has_name { fixture.with_names() } else { fixture };
        for commits in [false, true] {
            for name in ["new", "old"] {
                fs::write(fixture.root.join("old"), "1").unwrap();
                let _ = fs::remove_file(fixture.root.join("new"));
                let path = PathArgument { text: name, working_directory: None };
                let resolved = fixture.workspace.locate(path, Action::Write).unwrap();
                let base = resolved.open(name, Action::Write, AccessTime::Touch).ok();
                let (base, content): (_, &[&[u8]]) = (base.as_ref(), &[b"2"]);
                let new = Replacement { text: name, base, content, should_stop: &|| false };
                let staged = fixture.workspace.stage(resolved, new).unwrap();
                let temporary = fixture.names().into_iter().find(|name| name.ends_with(".tmp"));
                assert_eq!(temporary.is_some(), has_name, "{temporary:?}");
                assert!(temporary.is_none_or(|name| name.starts_with(".provider-workspace-")));
                assert_eq!(listed(&fixture), has_name);
                match commits {
                    true => drop(staged.commit().unwrap()),
                    false => drop(staged),
                }
                let left = fixture.names();
                assert_eq!(left.len(), 1 + usize::from(commits && name == "new"), "{left:?}");
                assert!(!listed(&fixture));
                assert_eq!(fixture.read("old"), if commits && name == "old" { "2" } else { "1" });
            }
        }
    }
    assert_eq!(names(&state.path().join("s")), [""; 0]);
}

/// What is written in place is listed meanwhile, with its old content kept aside.
#[test]
fn in_place_keeps_the_old_content_aside() {
    let state = tempfile::tempdir().unwrap();
    let fixture = Fixture::new().with_journal(&state.path().join("s"));
    fs::write(fixture.root.join("f"), "the old content").unwrap();
    in_place(&fixture, b"new").unwrap();
    assert_eq!((fixture.read("f"), fixture.names()), ("new".to_owned(), vec!["f".to_owned()]));
    assert_eq!(names(&state.path().join("s")).len(), 1, "the journal alone");
    drop(fixture);
    assert_eq!(names(&state.path().join("s")), [""; 0]);
}
