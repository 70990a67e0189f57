//! What a write keeps of a file, where it may write, and what it leaves behind.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use rustix::fs::XattrFlags;
use serde_json::{Value, json};
use tool_provider::Payload;

use crate::environment::{hand_over, unprivileged};
use crate::harness::{Fixture, call, names};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        what_is_most_likely_no_path_makes_nothing,
        mode_attributes_and_access_list_stay needs [Need::Attributes],
        a_foreign_owner_stays_too needs [Need::Root, Need::Attributes],
        new_files_and_directories_have_what_the_umask_leaves,
        links_stay_links_and_their_target_is_written,
        nothing_outside_is_written_made_or_confirmed_to_exist,
        directories_are_made_and_go_again_if_the_write_fails,
        permissions_of_an_ordinary_user_are_respected,
        a_write_at_another_version_is_refused_with_the_present_one,
        a_name_makes_no_file_ours,
        no_journal_is_kept_where_commands_reach_it,
        nothing_but_writes_reaches_the_state_directory,
        what_git_outside_runs_is_the_operators_until_they_say_otherwise,
    ]
}

async fn write(fixture: &mut Fixture, path: &str, content: &str) -> Payload {
    fixture.result("write_file", json!({"path": path, "content": content})).await
}

async fn edit(fixture: &mut Fixture, path: &str, old: &str, new: &str) -> Payload {
    let edit = json!({"path": path, "old_string": old, "new_string": new});
    fixture.result("edit_file", edit).await
}

/// The category and the message of a write that is refused.
async fn refused(fixture: &mut Fixture, path: &str) -> (String, String) {
    let failure = fixture.failure("write_file", json!({"path": path, "content": "x"})).await;
    (failure.category, failure.message)
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// All names below a directory, those in directories with the directory's.
fn tree(directory: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for name in names(directory) {
        let inner = directory.join(&name);
        if fs::symlink_metadata(&inner).unwrap().is_dir() {
            all.extend(tree(&inner).into_iter().map(|below| format!("{name}/{below}")));
        }
        all.push(name);
    }
    all.sort();
    all
}

/// An attribute, and an access list: user::rwx, user:1000:rw-, group::r-x, mask::r-x, other::--x.
pub(crate) const ATTRIBUTES: [(&str, &[u8]); 2] = [
    ("user.k", b"v"),
    (
        "system.posix_acl_access",
        b"\x02\0\0\0\x01\0\x07\0\xFF\xFF\xFF\xFF\x02\0\x06\0\xE8\x03\0\0\
        \x04\0\x05\0\xFF\xFF\xFF\xFF\x10\0\x05\0\xFF\xFF\xFF\xFF\x20\0\x01\0\xFF\xFF\xFF\xFF",
    ),
];

/// E10
async fn mode_attributes_and_access_list_stay() {
    all_stays(|_| {}).await;
}

/// E10
async fn a_foreign_owner_stays_too() {
    all_stays(|path| chown(path, Some(1000), Some(1001)).unwrap()).await;
}

async fn all_stays(give_away: impl FnOnce(&Path)) {
    let mut fixture = Fixture::configured().await;
    fixture.write("s.sh", "echo 1\n");
    let path = fixture.path("s.sh");
    give_away(&path);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    for (name, value) in ATTRIBUTES {
        rustix::fs::setxattr(&path, name, value, XattrFlags::empty()).unwrap();
    }
    let facts = |path: &Path| {
        let stat = fs::metadata(path).unwrap();
        let values = ATTRIBUTES.map(|(name, _)| {
            let mut buffer = [0; 200];
            let length = rustix::fs::getxattr(path, name, &mut buffer[..]);
            length.map(|length| buffer[..length].to_vec())
        });
        (stat.mode(), stat.uid(), stat.gid(), values)
    };
    let before = facts(&path);
    edit(&mut fixture, "s.sh", "1", "2").await;
    assert_eq!(facts(&path), before);
    write(&mut fixture, "s.sh", "echo 3\n").await;
    assert_eq!(facts(&path), before);
    assert_eq!(fs::read(&path).unwrap(), b"echo 3\n");
    assert_eq!(names(&fixture.path("")), ["s.sh"]);
    fixture.end().await;
}

async fn new_files_and_directories_have_what_the_umask_leaves() {
    for (umask, file, directory) in
        [("027", 0o640, 0o750), ("077", 0o600, 0o700), ("0", 0o666, 0o777)]
    {
        let script = format!("umask {umask}; exec \"$0\"");
        let arguments = ["-c", &script, crate::harness::PROGRAM];
        let mut fixture = Fixture::launched_by("/bin/sh", &arguments, |_| {}).await;
        fixture.configure(json!({})).await.unwrap();
        write(&mut fixture, "new.txt", "x").await;
        write(&mut fixture, "a/b/new.txt", "x").await;
        assert_eq!(mode(fixture.path("new.txt")), file, "umask {umask}");
        assert_eq!((mode(fixture.path("a")), mode(fixture.path("a/b"))), (directory, directory));
        // Only new ones.
        fs::set_permissions(fixture.path("new.txt"), fs::Permissions::from_mode(0o604)).unwrap();
        write(&mut fixture, "new.txt", "y").await;
        assert_eq!(mode(fixture.path("new.txt")), 0o604);
        fixture.end().await;
    }
}

/// E09
async fn links_stay_links_and_their_target_is_written() {
    let mut fixture = Fixture::configured().await;
    fs::create_dir(fixture.path("real")).unwrap();
    fixture.write("real/t", "v1\n");
    let absolute = fixture.path("real/t").display().to_string();
    let links = [
        ("link", "real/t"),
        ("link2", "link"),
        ("absolute", &absolute),
        ("directory", "real"),
        ("up", "directory/../real/t"),
        ("dangling", "real/none"),
        ("dangling2", "real/not/yet"),
        ("loop", "loop"),
        ("ring", "ring2"),
        ("ring2", "ring"),
    ];
    for (link, target) in links {
        symlink(target, fixture.path(link)).unwrap();
    }
    let mut version = 1;
    for path in ["link", "link2", "absolute", "directory/t", "up"] {
        let next = version + 1;
        edit(&mut fixture, path, &format!("v{version}\n"), "edited\n").await;
        assert_eq!(fs::read(fixture.path("real/t")).unwrap(), b"edited\n", "{path}");
        write(&mut fixture, path, &format!("v{next}\n")).await;
        let written = fs::read_to_string(fixture.path("real/t")).unwrap();
        assert_eq!(written, format!("v{next}\n"), "{path}");
        version = next;
    }
    for (path, target) in [("dangling", "real/none"), ("dangling2", "real/not/yet")] {
        assert_eq!(write(&mut fixture, path, "made\n").await["created"], true);
        assert_eq!(fs::read_to_string(fixture.path(target)).unwrap(), "made\n");
    }
    for path in ["loop", "ring"] {
        let (category, message) = refused(&mut fixture, path).await;
        assert_eq!(category, "execution_failed");
        assert!(message.contains("too many symbolic links"), "{message}");
    }
    for (link, target) in links {
        assert_eq!(fs::read_link(fixture.path(link)).unwrap(), Path::new(target), "{link}");
    }
    fixture.end().await;
}

/// S01, W03: not even a directory is made where a link leads outside.
async fn nothing_outside_is_written_made_or_confirmed_to_exist() {
    let mut fixture = Fixture::configured().await;
    let outside = fixture.path("").parent().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "S\n").unwrap();
    symlink(&outside, fixture.path("out")).unwrap();
    symlink(outside.join("secret"), fixture.path("s")).unwrap();
    symlink("../outside/secret", fixture.path("relative")).unwrap();
    symlink(outside.join("none"), fixture.path("dangling")).unwrap();
    let direct = outside.join("secret").display().to_string();
    for path in [
        "out/secret",
        "out/new",
        "out/new/dir/f",
        "s",
        "relative",
        "dangling",
        "../outside/secret",
        "../outside/none",
        &direct,
        "/proc/self/root/etc/hosts",
    ] {
        let (category, message) = refused(&mut fixture, path).await;
        assert_eq!(category, "permission_denied", "{path}: {message}");
        assert!(message.contains("outside the roots"), "{message}");
        let edit = json!({"path": path, "old_string": "S", "new_string": "X"});
        assert_eq!(
            fixture.failure("edit_file", edit).await.category,
            "permission_denied",
            "{path}"
        );
    }
    assert_eq!(names(&outside), ["secret"]);
    assert_eq!(fs::read(outside.join("secret")).unwrap(), b"S\n");
    // The twin that is allowed.
    fs::create_dir(fixture.path("inside")).unwrap();
    symlink(fixture.path("inside"), fixture.path("in")).unwrap();
    write(&mut fixture, "in/new/dir/f", "x").await;
    assert_eq!(fs::read(fixture.path("inside/new/dir/f")).unwrap(), b"x");
    fixture.end().await;
}

/// W03
async fn directories_are_made_and_go_again_if_the_write_fails() {
    let mut fixture = Fixture::configured().await;
    fixture.write("file", "x");
    write(&mut fixture, "a/b/c/f", "x").await;
    assert_eq!(fs::read(fixture.path("a/b/c/f")).unwrap(), b"x");
    let before = tree(&fixture.path(""));
    let long = "n".repeat(256);
    for (path, reason) in [
        ("file/x", "is not a directory"),
        ("file/x/y", "is not a directory"),
        ("new/", "ends in a slash"),
        (&format!("new/directories/{long}"), "file name too long"),
        (&format!("new/{long}/f"), "file name too long"),
        (&format!("a/new/{long}"), "file name too long"),
        ("a/b", "it is a directory"),
        ("", "path is empty: name a file"),
        ("x\0y", "NUL"),
    ] {
        let (_, message) = refused(&mut fixture, path).await;
        assert!(message.contains(reason), "{path:?}: {message}");
    }
    assert_eq!(tree(&fixture.path("")), before);
    // A name of the greatest length has no room for a longer one beside it.
    for content in ["1", "2"] {
        write(&mut fixture, &"n".repeat(255), content).await;
    }
    assert_eq!(names(&fixture.path("")).len(), 3);
    fixture.end().await;
}

/// W03, E14: what the system forbids stays forbidden, and what it allows in an odd way works.
async fn permissions_of_an_ordinary_user_are_respected() {
    let mut fixture = unprivileged().await;
    fs::create_dir(fixture.path("ro")).unwrap();
    for name in ["ro/f", "ro/shared", "protected", "plain"] {
        fixture.write(name, "old\n");
    }
    fs::hard_link(fixture.path("ro/shared"), fixture.path("other-name")).unwrap();
    hand_over(&fixture, &["ro", "ro/f", "ro/shared", "protected", "plain"]);
    fs::set_permissions(fixture.path("protected"), fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(fixture.path("ro"), fs::Permissions::from_mode(0o555)).unwrap();
    fixture.configure(json!({})).await.unwrap();

    for path in ["ro/x", "ro/a/b/x", "protected"] {
        let (category, message) = refused(&mut fixture, path).await;
        assert_eq!(category, "permission_denied");
        let reason = format!("cannot write {path}: permission denied");
        assert!(message.starts_with(&reason), "{message}");
    }
    assert_eq!(fs::read(fixture.path("protected")).unwrap(), b"old\n");

    // The directory takes no new file, but the file can be written.
    let before = fs::metadata(fixture.path("ro/f")).unwrap().ino();
    let result = edit(&mut fixture, "ro/f", "old", "new, and longer").await;
    let notice = result["notice"].as_str().unwrap();
    assert!(notice.contains("in place") && notice.contains("takes no new file"), "{notice}");
    assert_eq!(fs::read(fixture.path("ro/f")).unwrap(), b"new, and longer\n");
    write(&mut fixture, "ro/f", "short\n").await;
    assert_eq!(fs::read(fixture.path("ro/f")).unwrap(), b"short\n");
    assert_eq!(fs::metadata(fixture.path("ro/f")).unwrap().ino(), before, "in place");

    // In place would reach the other name.
    let (category, message) = refused(&mut fixture, "ro/shared").await;
    assert_eq!(category, "execution_failed");
    assert!(message.contains("its 1 other name"), "{message}");
    assert_eq!(fs::read(fixture.path("other-name")).unwrap(), b"old\n");
    assert_eq!(names(&fixture.path("ro")).len(), 2);

    // The twin that is allowed is replaced.
    let before = fs::metadata(fixture.path("plain")).unwrap().ino();
    assert!(!edit(&mut fixture, "plain", "old", "new").await.contains_key("notice"));
    assert_ne!(fs::metadata(fixture.path("plain")).unwrap().ino(), before);
    fs::set_permissions(fixture.path("ro"), fs::Permissions::from_mode(0o755)).unwrap();
    fixture.end().await;
}

/// A version makes a write a compare-and-swap, also for a file that is not there.
async fn a_write_at_another_version_is_refused_with_the_present_one() {
    let mut fixture = Fixture::configured().await;
    let first = write(&mut fixture, "f", "1\n").await["version"].clone();
    let second = write(&mut fixture, "f", "2\n").await["version"].clone();
    assert_ne!(first, second);
    let over =
        |version: &Value| json!({"path": "f", "content": "3\n", "expected_version": version});
    let failure = fixture.failure("write_file", over(&first)).await;
    assert_eq!((failure.category.as_str(), failure.retryable), ("concurrency_conflict", false));
    let second_digits = second.as_str().unwrap();
    assert!(failure.details["current_version"].as_str().unwrap().starts_with(second_digits));
    assert!(failure.message.contains(second_digits), "{}", failure.message);
    assert_eq!(fs::read(fixture.path("f")).unwrap(), b"2\n");
    fixture.result("write_file", over(&second)).await;
    // Equal contents have equal versions, whatever wrote them.
    fixture.write("f", "1\n");
    fixture.result("write_file", over(&first)).await;
    fs::remove_file(fixture.path("f")).unwrap();
    let failure = fixture.failure("write_file", over(&first)).await;
    assert_eq!(failure.category, "concurrency_conflict");
    assert_eq!(failure.details["current_version"], Value::Null);
    assert!(!fixture.path("f").exists());
    fixture.end().await;
}

/// A file is the user's whatever it is called: it is neither removed, nor put in another's place, nor
/// hidden.
async fn a_name_makes_no_file_ours() {
    let mut fixture = Fixture::launched().await;
    fs::create_dir_all(fixture.path("deep/er")).unwrap();
    fixture.write("cfg", "the newest\n");
    let inode = fs::metadata(fixture.path("cfg")).unwrap().ino();
    let theirs = [
        "cfg".to_owned(),
        format!(".cfg.pw{inode:016x}.old"),
        ".cfg.pw0123456789abcdef.tmp".to_owned(),
        ".cfg.0123456789abcdef.old".to_owned(),
        ".provider-workspace-0123456789abcdef.tmp".to_owned(),
        "deep/er/.f.pw00112233445566aa.tmp".to_owned(),
        "deep/er/.provider-workspace-0123456789abcdef.tmp".to_owned(),
    ];
    for name in &theirs[1..] {
        fixture.write(name, "theirs, older\n");
    }
    fixture.configure(json!({})).await.unwrap();
    fixture.result("write_file", json!({"path": "deep/new", "content": "x\n"})).await;
    assert_eq!(fs::read(fixture.path("cfg")).unwrap(), b"the newest\n");
    let (_, found) = fixture.call("grep", json!({"pattern": "theirs", "mode": "files"})).await;
    let found = serde_json::to_string(&found.unwrap()).unwrap();
    let (_, listed) = fixture.call("glob", json!({"pattern": "**/*"})).await;
    let listed = serde_json::to_string(&listed.unwrap()).unwrap();
    for name in &theirs {
        assert!(fixture.path(name).exists() && listed.contains(name.as_str()), "{name}: {listed}");
        assert_eq!(found.contains(&format!("\"{name}\"")), name != "cfg", "{name}: {found}");
    }
    fixture.end().await;
}

/// A state directory that commands reach is not used: what they wrote there would be believed.
async fn no_journal_is_kept_where_commands_reach_it() {
    let mut fixture = Fixture::launched().await;
    fixture.configure(json!({})).await.unwrap();
    assert_eq!(fixture.journals().len(), 1);
    for reached in [
        json!({"roots": ["root", "state"]}),
        json!({"read_only_roots": ["state"]}),
        json!({"bash_read": ["state"]}),
        json!({"bash_write": ["state/provider-workspace/writes"]}),
    ] {
        fixture.configure(reached.clone()).await.unwrap();
        assert_eq!(fixture.journals(), [""; 0], "{reached}");
        fixture.result("write_file", json!({"path": "f", "content": reached.to_string()})).await;
    }
    fixture.configure(json!({})).await.unwrap();
    assert_eq!(fixture.journals().len(), 1);
    fixture.end().await;
}

/// Neither commands nor paths of tools lead to the state directory.
async fn nothing_but_writes_reaches_the_state_directory() {
    let mut fixture = Fixture::configured().await;
    let state = fixture.path("").parent().unwrap().join("state/provider-workspace/writes");
    let journal = state.join(&fixture.journals()[0]);
    for (directory, may) in [(state.clone(), false), (fixture.path(""), true)] {
        let directory = directory.display();
        let command = format!("cd {directory} && echo x > planted && rm planted && echo reached");
        let (_, outcome) = fixture.call("bash", json!({"command": command})).await;
        let output = outcome.unwrap()["output"].to_string();
        assert_eq!(output.contains("reached\\n"), may, "{directory}: {output}");
    }
    for (tool, arguments) in [
        ("read_file", json!({"path": journal})),
        ("write_file", json!({"path": journal, "content": "x"})),
        ("write_file", json!({"path": state.join("new"), "content": "x"})),
        ("grep", json!({"pattern": "x", "path": state})),
        ("glob", json!({"pattern": "*", "path": state})),
    ] {
        let failure = fixture.failure(tool, arguments).await;
        assert!(failure.message.contains("outside the roots"), "{tool}: {}", failure.message);
    }
    assert_eq!(fixture.journals().len(), 1);
    fixture.end().await;
}

/// A directory called `~` is one that somebody removes with `rm -rf ~`.
async fn what_is_most_likely_no_path_makes_nothing() {
    let mut fixture = Fixture::configured().await;
    for path in
        ["~/notes.md", "file:///x/a.txt", "$HOME/x", "`a.txt`", "a.txt\n", " a.txt", "C:\\x"]
    {
        let arguments = json!({"path": path, "content": "x"});
        let failure = fixture.failure("write_file", arguments.clone()).await;
        assert_eq!(failure.category, "invalid_arguments", "{path:?}: {failure:?}");
        let preview = fixture.client.preview(call("write_file", arguments)).await.unwrap();
        assert!(format!("{preview:?}").contains("would fail"), "{path:?}: {preview:?}");
    }
    assert!(names(&fixture.path("")).is_empty());
    for path in ["@src/q.md", "a b/c d.txt", "backup~", "\" a.txt\""] {
        fixture.result("write_file", json!({"path": path, "content": "x"})).await;
    }
    std::fs::create_dir(fixture.path("~")).unwrap();
    fixture.result("write_file", json!({"path": "~/notes.md", "content": "x"})).await;
    assert!(fixture.path("~/notes.md").exists() && fixture.path(" a.txt").exists());
    fixture.end().await;
}

async fn what_git_outside_runs_is_the_operators_until_they_say_otherwise() {
    let mut fixture = Fixture::configured().await;
    fs::create_dir_all(fixture.path(".git/hooks")).unwrap();
    fixture.write(".git/config", "[core]\n");
    // The repository came after the jail: its mounts are made before the first command.
    let trap = json!({"command": "echo '[alias]' >> .git/config; echo > .git/hooks/x; echo end"});
    fixture.call("bash", trap.clone()).await.1.unwrap();
    assert_eq!(fs::read_to_string(fixture.path(".git/config")).unwrap(), "[core]\n");
    assert_eq!(names(&fixture.path(".git/hooks")), [""; 0]);
    for path in [".git/config", ".git/hooks/x"] {
        let (category, message) = refused(&mut fixture, path).await;
        assert_eq!(category, "permission_denied");
        assert!(message.contains("protect"), "{message}");
        let preview = json!({"path": path, "content": "x"});
        let view = fixture.client.preview(call("write_file", preview)).await.unwrap();
        assert!(format!("{view:?}").contains("protect"), "{view:?}");
    }
    write(&mut fixture, ".git/info/exclude", "x").await;

    fixture.configure(json!({"protect": "none"})).await.unwrap();
    fixture.call("bash", trap).await.1.unwrap();
    write(&mut fixture, ".git/config", "[user]\n").await;
    assert_eq!(names(&fixture.path(".git/hooks")), ["x"]);
    fixture.end().await;
}
