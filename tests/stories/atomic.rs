//! Whatever happens to a write, the file has its old content or its new one, and nothing is left
//! beside it.

use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::environment::mount;
use crate::harness::{Fixture, PROGRAM, call, names};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_killed_write_leaves_the_old_or_the_new_content needs [Need::Time],
        a_killed_write_in_place_is_restored needs [Need::OrdinaryUser],
        a_reader_never_sees_half_a_file,
        a_full_disk_leaves_the_old_content needs [Need::MountNamespace],
        a_limit_on_the_size_of_files_leaves_the_old_content,
        a_mounted_file_is_written_in_place needs [Need::MountNamespace],
        a_mounted_file_on_a_full_disk_keeps_its_content needs [Need::MountNamespace],
    ]
}

/// How much a killed write writes.
const LARGE: usize = 50_000_000;
const ROUNDS: usize = 100;

/// A provider is killed again and again while it writes 50 MB, at another moment of that each time.
///
/// The new content is not to be seen anywhere before it takes its place. So the moments are parts of
/// the time that a whole write takes; which stage each one hits does not matter to what must hold.
async fn a_killed_write_leaves_the_old_or_the_new_content() {
    let [even, odd] = [0, 1].map(|first| tokio::spawn(kill_rounds(first)));
    let kept = even.await.unwrap() + odd.await.unwrap();
    eprintln!("of {ROUNDS} writes {kept} came to nothing");
    assert!(kept > 0 && kept < ROUNDS);
}

/// Every second round. Returns how many writes came to nothing.
async fn kill_rounds(first: usize) -> usize {
    let mut fixture = Fixture::configured().await;
    let mut kept = 0;
    let (grown, rewritten) = (grown(), file("new"));
    let piece = "z".repeat(LARGE / 1000);
    let all = json!({"old_string": "y", "new_string": piece, "replace_all": true});
    let growing = json!({"path": "f", "edits": [all]});
    let small = b"^y$".repeat(1000);
    fixture.write("f", &small);
    let start = Instant::now();
    fixture.result("edit_file", growing.clone()).await;
    let whole = start.elapsed();
    for round in (first..ROUNDS).step_by(2) {
        // Mostly a small file becomes a large one, which costs the least before the writing; now and
        // then a large one becomes another.
        let (old, new, edit) = if round % 25 == 24 {
            let edits = json!([
                {"old_string": "old begins\n", "new_string": "new begins\n"},
                {"old_string": "old ends\n", "new_string": "new ends\n"},
            ]);
            (file("old"), &rewritten, json!({"path": "f", "edits": edits}))
        } else {
            (small.clone(), &grown, growing.clone())
        };
        fixture.write("f", &old);
        let mut client = fixture.client.clone();
        let edit = call("edit_file", edit);
        let writing = tokio::spawn(async move { client.invoke_to_end(edit).await });
        // From "it has begun" to "it has taken its place".
        let last = round >= ROUNDS - 12;
        let moment = (!last).then(|| Instant::now() + whole.mul_f64(round as f64 / 88.0));
        let (directory, pid) = (fixture.path(""), fixture.pid());
        let killed = tokio::task::spawn_blocking(move || kill_at(moment, &directory, pid));
        let killed = killed.await.unwrap();
        fixture.plugin.wait().await.unwrap();
        let _ = writing.await.unwrap();

        let content = fs::read(fixture.path("f")).unwrap();
        assert!(content == old || content == *new, "round {round}: killed {killed}");
        kept += usize::from(content == old);
        fixture.clear_tmp();
        fixture.relaunch().await;
        fixture.configure(json!({})).await.unwrap();
        assert_eq!(names(&fixture.path("")), ["f"], "round {round}: killed {killed}");
        assert_eq!(fixture.journals().len(), 1, "round {round}: {:?}", fixture.journals());
    }
    fixture.end().await;
    kept
}

fn file(word: &str) -> Vec<u8> {
    let mut content = format!("{word} begins\n").into_bytes();
    let line = [vec![b'x'; 99], vec![b'\n']].concat();
    content.extend(line.repeat((LARGE - 32) / 100));
    content.extend(format!("{word} ends\n").into_bytes());
    content
}

fn grown() -> Vec<u8> {
    let piece = [vec![b'^'], vec![b'z'; LARGE / 1000], vec![b'$']].concat();
    piece.repeat(1000)
}

/// Kills the process at a moment, or when the new content is in its place.
fn kill_at(moment: Option<Instant>, directory: &Path, pid: u32) -> &'static str {
    let target = directory.join("f");
    let before = fs::metadata(&target).unwrap().ino();
    loop {
        let replaced = fs::metadata(&target).unwrap().ino() != before;
        if replaced || moment.is_some_and(|moment| Instant::now() >= moment) {
            kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL)
                .unwrap();
            return if replaced { "when it was replaced" } else { "before it was replaced" };
        }
        std::thread::yield_now();
    }
}

/// A file that is written in place is torn when the provider is killed, and has its old content back
/// after the next start. As an ordinary user, whom a directory can refuse new files; what root has
/// instead is in `faults::killed_writes`.
async fn a_killed_write_in_place_is_restored() {
    const SIZE: usize = 30_000_000;
    const ROUNDS: usize = 30;
    let mut fixture = Fixture::configured().await;
    let directory = fixture.path("ro");
    fs::create_dir(&directory).unwrap();
    let contents = ["a", "b"].map(|letter| letter.repeat(SIZE));
    fixture.write("ro/f", &contents[0]);
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o555)).unwrap();
    let mut torn = 0;
    for round in 0..ROUNDS {
        let [old, new] = [round % 2, (round + 1) % 2].map(|index| &contents[index]);
        let write = json!({"path": "ro/f", "content": new});
        let mut client = fixture.client.clone();
        let writing =
            tokio::spawn(async move { client.invoke_to_end(call("write_file", write)).await });
        // Until it has begun, and then a different moment each round.
        let path = fixture.path("ro/f");
        let first = new.as_bytes()[0];
        let begun = move || {
            let mut byte = [0];
            fs::File::open(&path).unwrap().read_exact_at(&mut byte, 0).unwrap();
            byte[0] == first
        };
        while !begun() {
            tokio::task::yield_now().await;
        }
        for _ in 0..round * 20 {
            tokio::task::yield_now().await;
        }
        let pid = Pid::from_raw(i32::try_from(fixture.pid()).unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        fixture.plugin.wait().await.unwrap();
        let _ = writing.await.unwrap();
        let is_whole = |content: &[u8]| contents.iter().any(|whole| whole.as_bytes() == content);
        torn += usize::from(!is_whole(&fs::read(fixture.path("ro/f")).unwrap()));
        fixture.clear_tmp();
        fixture.relaunch().await;
        fixture.configure(json!({})).await.unwrap();
        assert_eq!(names(&directory), ["f"]);
        assert_eq!(fixture.journals().len(), 1, "round {round}: {:?}", fixture.journals());
        let content = fs::read(fixture.path("ro/f")).unwrap();
        assert!(is_whole(&content), "round {round}");
        // The next round starts from here, whichever it is.
        if content == new.as_bytes() {
            continue;
        }
        assert_eq!(content, old.as_bytes(), "round {round}");
        fixture.write("ro/f", new);
    }
    eprintln!("{torn} of {ROUNDS} writes left a torn file");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    fixture.end().await;
}

/// Whoever reads meanwhile sees one content or the other, whole.
async fn a_reader_never_sees_half_a_file() {
    let mut fixture = Fixture::configured().await;
    let contents = ["a".repeat(300_000), "b".repeat(200_000)];
    fixture.write("f", &contents[0]);
    let (path, done) = (fixture.path("f"), AtomicBool::new(false));
    let whole = |found: &str| contents.iter().any(|content| content == found);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !done.load(Ordering::Acquire) {
                assert!(whole(&fs::read_to_string(&path).unwrap()));
                reads += 1;
            }
            reads
        });
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                for round in 1..=40 {
                    let write = json!({"path": "f", "content": contents[round % 2]});
                    fixture.result("write_file", write).await;
                }
            });
        });
        done.store(true, Ordering::Release);
        assert!(reader.join().unwrap() > 0);
    });
    fixture.end().await;
}

/// Fails to write to `f`, by a write and by an edit, and to make a new file in a new directory.
async fn nothing_fits(fixture: &mut Fixture, reason: &str) {
    let large = "x".repeat(200_000);
    for (tool, arguments) in [
        ("write_file", json!({"path": "f", "content": large})),
        ("edit_file", json!({"path": "f", "old_string": "original", "new_string": large})),
        ("write_file", json!({"path": "new/directory/f", "content": large})),
    ] {
        let failure = fixture.failure(tool, arguments).await;
        assert_eq!((failure.category.as_str(), failure.retryable), ("execution_failed", false));
        assert!(failure.message.ends_with(reason), "{}", failure.message);
        assert_eq!(failure.details["kind"], "quota");
        assert_eq!(fs::read(fixture.path("f")).unwrap(), b"original\n");
        assert_eq!(names(&fixture.path("")), ["f"]);
    }
    fixture.result("write_file", json!({"path": "f", "content": "small\n"})).await;
    assert_eq!(fs::read(fixture.path("f")).unwrap(), b"small\n");
}

/// W01
async fn a_full_disk_leaves_the_old_content() {
    let mut fixture = Fixture::launched().await;
    mount(&["-t", "tmpfs", "-o", "size=64k", "tmpfs"], &fixture.path(""));
    fixture.write("f", "original\n");
    fixture.configure(json!({})).await.unwrap();
    nothing_fits(&mut fixture, "no space left on device").await;
    fixture.end().await;
}

/// W01: SIGXFSZ does not end the provider.
async fn a_limit_on_the_size_of_files_leaves_the_old_content() {
    // POSIX counts in units of 512 bytes, some shells in 1024.
    let arguments = ["-c", "ulimit -f 128; exec \"$0\"", PROGRAM];
    let mut fixture = Fixture::launched_by("/bin/sh", &arguments, |_| {}).await;
    fixture.configure(json!({})).await.unwrap();
    fixture.write("f", "original\n");
    let pid = fixture.pid();
    nothing_fits(&mut fixture, "file too large").await;
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    fixture.end().await;
}

/// E14
async fn a_mounted_file_is_written_in_place() {
    let mut fixture = Fixture::launched().await;
    let real = fixture.path("").parent().unwrap().join("real");
    fs::write(&real, "a\n").unwrap();
    fixture.write("cfg", "");
    mount(&["--bind", real.to_str().unwrap()], &fixture.path("cfg"));
    fixture.configure(json!({})).await.unwrap();
    let edit = json!({"path": "cfg", "old_string": "a", "new_string": "b, and longer"});
    let result = fixture.result("edit_file", edit).await;
    assert!(result["notice"].as_str().unwrap().contains("mounted by itself"));
    assert_eq!(fs::read(&real).unwrap(), b"b, and longer\n");
    let write = json!({"path": "cfg", "content": "c\n", "expected_version": result["version"]});
    let result: Value = fixture.result("write_file", write).await.into();
    assert_eq!(fs::read(&real).unwrap(), b"c\n");
    let read = fixture.result("read_file", json!({"path": "cfg"})).await;
    assert_eq!(read["version"], result["version"]);
    assert_eq!(names(&fixture.path("")), ["cfg"]);
    assert!(Command::new("umount").arg(fixture.path("cfg")).status().unwrap().success());
    fixture.end().await;
}

/// E14 on a full disk: what is written in place is restored, or not begun.
async fn a_mounted_file_on_a_full_disk_keeps_its_content() {
    let mut fixture = Fixture::launched().await;
    let small = fixture.path("").parent().unwrap().join("small");
    fs::create_dir(&small).unwrap();
    mount(&["-t", "tmpfs", "-o", "size=64k", "tmpfs"], &small);
    fs::write(small.join("real"), "original\n").unwrap();
    fixture.write("f", "");
    mount(&["--bind", small.join("real").to_str().unwrap()], &fixture.path("f"));
    fixture.configure(json!({})).await.unwrap();
    let write = json!({"path": "f", "content": "x".repeat(200_000)});
    let failure = fixture.failure("write_file", write).await;
    assert!(failure.message.ends_with("no space left on device"), "{}", failure.message);
    assert_eq!(fs::read(small.join("real")).unwrap(), b"original\n");
    assert_eq!(names(&fixture.path("")), ["f"]);
    assert!(Command::new("umount").arg(fixture.path("f")).status().unwrap().success());
    fixture.end().await;
}
