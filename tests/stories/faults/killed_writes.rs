//! A provider that is killed while it writes, at every system call that the write makes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::injected::Strace;
use crate::environment::mount;
use crate::harness::{Fixture, call, names};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_write_that_is_killed_leaves_nothing_and_touches_nothing
            needs [STRACE, Need::TracingOfAnyone, Need::Time],
        a_write_in_place_that_is_killed_is_restored
            needs [STRACE, Need::TracingOfAnyone, Need::MountNamespace, Need::Time],
    ]
}

/// What kills a process at a system call.
const STRACE: Need = Need::Program("strace");

/// What a write does to files and to the journal. Each is made to kill the process the first time that
/// it is called, the second time, and so on, until a write gets to its end.
const CALLS: [&str; 10] = [
    "openat",
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "ftruncate",
    "fallocate",
    "linkat",
    "/^renameat",
    "unlinkat",
];

/// More calls of one kind than any write here makes.
const MOST: usize = 40;

/// A write, and the contents that its file may have when it was killed.
struct Case<'a> {
    name: &'a str,
    arguments: (&'static str, Value),
    old: Option<&'a str>,
    new: &'a str,
}

/// Files of the user's that look like ours, and links and directories of such names.
fn plant(root: &Path) {
    let named = |name: &str| root.join(name);
    for name in [
        ".f.pw0123456789abcdef.tmp",
        ".f.pw0123456789abcdef.old",
        ".provider-workspace-0123456789abcdef.tmp",
        ".f.0123456789abcdef.old",
        "0123456789abcdef.journal",
        ".f.tmp",
    ] {
        fs::write(named(name), name).unwrap();
    }
    fs::hard_link(named(".f.tmp"), named(".provider-workspace-1123456789abcdef.tmp")).unwrap();
    symlink(".f.tmp", named(".provider-workspace-2123456789abcdef.tmp")).unwrap();
    symlink("missing", named(".f.pw2123456789abcdef.old")).unwrap();
    for name in [".provider-workspace-3123456789abcdef.tmp", ".f.pw3123456789abcdef.old"] {
        fs::create_dir(named(name)).unwrap();
        fs::write(named(name).join(".provider-workspace-0123456789abcdef.tmp"), "inner").unwrap();
    }
}

/// Everything below a directory but the file that is written: which file it is, and its content.
fn census(directory: &Path, written: &str) -> BTreeMap<PathBuf, (u64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for name in names(directory).iter().filter(|name| *name != written) {
        let path = directory.join(name);
        let stat = fs::symlink_metadata(&path).unwrap();
        if stat.is_dir() {
            found.extend(census(&path, ""));
        }
        let content = if stat.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        found.insert(path, (stat.ino(), content));
    }
    found
}

/// Runs a write as often as it takes to have killed it at each of its system calls.
async fn kill_everywhere(fixture: &mut Fixture, case: &Case<'_>) -> usize {
    let before = census(&fixture.path(""), case.name);
    let mut killed = 0;
    for kind in CALLS {
        for nth in 1..=MOST {
            match case.old {
                Some(old) => fixture.write(case.name, old),
                None => drop(fs::remove_file(fixture.path(case.name))),
            }
            fixture.configure(json!({})).await.unwrap();
            // Something for the workers to have been started for.
            let (other, _) = before.iter().find(|(_, (_, content))| !content.is_empty()).unwrap();
            fixture.result("read_file", json!({"path": other})).await;
            let trace = tempfile::NamedTempFile::new().unwrap();
            let effect = (kind, "signal=KILL");
            let mut strace = Strace::attach(fixture.pid(), effect, &nth.to_string(), trace.path());
            let (tool, arguments) = case.arguments.clone();
            // Of a session that knows nothing of the file yet: it may overwrite it.
            let session_id = format!("{kind}-{nth}");
            let call = tool_provider::Call { session_id, ..call(tool, arguments) };
            let outcome = fixture.client.invoke_to_end(call).await;
            strace.detach();
            let what = format!("{}: {kind} {nth}: {outcome:?}", case.name);
            if let Ok((_, ended)) = outcome {
                assert!(ended.is_ok(), "{what}");
                assert_eq!(
                    fs::read_to_string(fixture.path(case.name)).unwrap(),
                    case.new,
                    "{what}"
                );
                break;
            }
            assert!(nth < MOST, "{what}");
            killed += 1;
            fixture.plugin.wait().await.unwrap();
            fixture.clear_tmp();
            fixture.relaunch().await;
            fixture.configure(json!({})).await.unwrap();
            let content = fs::read_to_string(fixture.path(case.name)).ok();
            let is_whole = content.as_deref() == case.old || content.as_deref() == Some(case.new);
            assert!(is_whole, "{what}: {} bytes", content.unwrap_or_default().len());
            let after = census(&fixture.path(""), case.name);
            let is_same = after == before;
            assert!(is_same, "{what}: {:?}, not {:?}", after.keys(), before.keys());
            assert_eq!(fixture.journals().len(), 1, "{what}: {:?}", fixture.journals());
        }
    }
    killed
}

async fn a_write_that_is_killed_leaves_nothing_and_touches_nothing() {
    let mut fixture = Fixture::launched().await;
    plant(&fixture.path(""));
    let edit = json!({"path": "f", "old_string": "old", "new_string": "new"});
    let write = json!({"path": "made", "content": "new\n"});
    for case in [
        Case { name: "f", arguments: ("edit_file", edit), old: Some("old\n"), new: "new\n" },
        Case { name: "made", arguments: ("write_file", write), old: None, new: "new\n" },
    ] {
        let killed = kill_everywhere(&mut fixture, &case).await;
        eprintln!("{}: killed at {killed} system calls", case.name);
        assert!(killed >= 5);
        fs::remove_file(fixture.path(case.name)).unwrap();
    }
    fixture.end().await;
}

async fn a_write_in_place_that_is_killed_is_restored() {
    // Large enough for several system calls.
    let old = format!("old begins\n{}old ends\n", "x".repeat(99).repeat(7000));
    let new = format!("new begins\n{}new ends\n", "y".repeat(99).repeat(6000));
    let mut fixture = Fixture::launched().await;
    plant(&fixture.path(""));
    let real = fixture.path("").parent().unwrap().join("real");
    fs::write(&real, &old).unwrap();
    fixture.write("cfg", "");
    mount(&["--bind", real.to_str().unwrap()], &fixture.path("cfg"));
    let arguments = ("write_file", json!({"path": "cfg", "content": new}));
    let case = Case { name: "cfg", arguments, old: Some(&old), new: &new };
    let killed = kill_everywhere(&mut fixture, &case).await;
    eprintln!("killed at {killed} system calls");
    assert!(killed >= 15);
    fixture.end().await;
}
