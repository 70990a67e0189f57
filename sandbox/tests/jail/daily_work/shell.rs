//! The shell, files, terminals and interpreters.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use sandbox::Level;

use crate::case::{Case, Need, stories};
use crate::fixture::Fixture;

pub(crate) fn stories() -> Vec<Case> {
    stories!["daily_work":
        here_document,
        process_substitution,
        devices,
        temporary_files,
        tmp_itself_is_private_at_the_full_level,
        sort_with_temporary_files needs [Need::Program("sort"), Need::Program("seq")],
        rename_and_hard_link_across_directories,
        a_script_that_writes_to_the_cache,
        a_project_in_the_home_directory,
        a_root_reached_by_a_link,
        grants_written_through_links,
        directories_with_unusual_names,
        a_terminal needs [Need::Program("script"), Need::Program("python3")],
        jobs_and_signals needs [Need::Program("timeout")],
        small_programs,
        python_multiprocessing needs [Need::Program("python3")],
        localhost_server_and_client needs [Need::Program("python3")],
        node needs [Need::Program("node")],
    ]
}

/// 70 kB exceed what a pipe holds, so that the shell takes a temporary file.
fn here_document(level: Level) {
    let line = "x".repeat(99);
    let text = format!("{line}\n").repeat(700);
    let script = format!("cat <<'END' | wc -c\n{text}END\n");
    assert_eq!(Fixture::new(level).succeeds(&script).trim(), "70000");
}

fn process_substitution(level: Level) {
    let script = r#"
        diff <(printf 'b\na\n' | sort) <(printf 'a\nb\n') || exit 1
        exec 3> >(cat > copy); reader=$!
        echo substituted >&3; exec 3>&-; wait $reader
        cat copy"#;
    assert_eq!(Fixture::new(level).succeeds(script), "substituted\n");
}

fn devices(level: Level) {
    let script = r#"
        set -e
        echo gone > /dev/null; echo gone >> /dev/null; cat /dev/null
        [ $(head -c 16 /dev/urandom | wc -c) = 16 ]
        [ $(head -c 4 /dev/random | wc -c) = 4 ]
        [ "$(head -c 2 /dev/zero | od -An -tx1)" = ' 00 00' ]
        if echo x 2> full > /dev/full; then exit 1; fi; grep -q 'No space' full
        echo piped | cat /dev/stdin > /dev/stdout
        echo noted > /dev/fd/2"#;
    let outcome = Fixture::new(level).bash(script);
    assert_eq!(outcome.stderr, "noted\n");
    assert_eq!(outcome.succeeded(script), "piped\n");
}

fn temporary_files(level: Level) {
    let script = r#"
        set -e
        file=$(mktemp); echo x > "$file"
        directory=$(mktemp -d); mv "$file" "$directory/in"; mv "$directory/in" here; mv here "$directory"
        case $directory in "$TMPDIR"/*) ;; *) echo "$directory is not in TMPDIR"; exit 1;; esac
        rm -r "$directory""#;
    Fixture::new(level).succeeds(script);
}

/// Programs that name /tmp themselves get a private one, where mounts can do that.
fn tmp_itself_is_private_at_the_full_level(level: Level) {
    let fixture = Fixture::new(level);
    let name = format!("/tmp/story-{}-{level}", std::process::id());
    let outcome = fixture.bash(&format!("echo x > {name} && cat {name}"));
    assert_eq!(outcome.report.status.shell_code(), i32::from(level != Level::Full), "{outcome:?}");
    assert!(!Path::new(&name).exists());
}

fn sort_with_temporary_files(level: Level) {
    // 1.3 MB in a buffer of 100 kB.
    let script = "seq 200000 -1 1 | sort -n -S 100k | tail -n 1";
    assert_eq!(Fixture::new(level).succeeds(script), "200000\n");
    let unusable =
        "seq 200000 -1 1 | sort -n -S 100k -T /nowhere | tail -n 1; exit ${PIPESTATUS[1]}";
    let outcome = Fixture::new(level).bash(unusable);
    assert_eq!(outcome.report.status.shell_code(), 2, "it did need a temporary file: {outcome:?}");
}

fn rename_and_hard_link_across_directories(level: Level) {
    let fixture = Fixture::new(level);
    fixture.succeeds("mkdir -p a/b c && mv own a/b/moved && ln a/b/moved c/linked && mv a/b c/b");
    let [moved, linked] =
        ["c/b/moved", "c/linked"].map(|name| fs::metadata(fixture.dirs.root.join(name)).unwrap());
    assert_eq!(moved.ino(), linked.ino());
}

fn a_script_that_writes_to_the_cache(level: Level) {
    let fixture = Fixture::with(level, |dirs, policy| {
        policy.home = Some(dirs.home().to_owned());
    });
    let writes = r#"mkdir -p ~/.cache/tool "$XDG_CACHE_HOME/tool" &&
        echo kept > ~/.cache/tool/a && echo kept > "$XDG_CACHE_HOME/tool/b""#;
    fixture.succeeds(writes);
    let kept = fixture.succeeds(r#"cat ~/.cache/tool/a "$XDG_CACHE_HOME/tool/b""#);
    assert_eq!(kept, "kept\nkept\n");
    assert_eq!(fs::read_dir(fixture.dirs.home()).unwrap().count(), 0, "the operator's own home");
}

/// The usual case: the root lies in the home directory, most of which is hidden.
fn a_project_in_the_home_directory(level: Level) {
    let fixture = Fixture::with(level, |dirs, policy| {
        let project = dirs.home().join("code/project");
        fs::create_dir_all(&project).unwrap();
        fs::write(dirs.home().join("code/private"), "hidden").unwrap();
        policy.home = Some(dirs.home().to_owned());
        policy.roots = vec![project];
    });
    let home = fixture.dirs.home();
    let project = home.join("code/project");
    let script = "echo kept > file; ! cat ../private 2>&1; pwd; echo x > ~/note; cat ~/note";
    let text = fixture.bash_in(&project, script).succeeded(script);
    assert!(text.ends_with(&format!("{}\nx\n", project.display())), "{text}");
    assert_eq!(fs::read_to_string(project.join("file")).unwrap(), "kept\n");
    assert!(!home.join("note").exists(), "the operator's own home");
}

fn a_root_reached_by_a_link(level: Level) {
    let fixture = Fixture::with(level, |dirs, policy| {
        symlink(&dirs.root, dirs.outside.join("link")).unwrap();
        policy.roots = vec![dirs.outside.join("link")];
    });
    let (link, real) = (fixture.dirs.outside.join("link"), &fixture.dirs.root);
    for cwd in [&link, real] {
        let script = format!(
            "cat own {link}/own {real}/own && echo x >> {link}/new && cat {real}/new && rm {link}/new",
            link = link.display(),
            real = real.display(),
        );
        assert_eq!(fixture.bash_in(cwd, &script).succeeded(&script), "ownownownx\n");
    }
}

/// What the operator wrote through links works under the link and under the real path, for every kind of
/// grant, also as the directory to start in.
fn grants_written_through_links(level: Level) {
    let mut links = PathBuf::new();
    let fixture = Fixture::with(level, |dirs, policy| {
        let base = dirs.root.parent().unwrap();
        links = base.join("links/deep");
        fs::create_dir_all(&links).unwrap();
        for kind in ["root", "fixed", "read", "write", "spelled"] {
            fs::create_dir_all(base.join("real").join(kind).join("sub")).unwrap();
            fs::write(base.join("real").join(kind).join("sub/file"), kind).unwrap();
        }
        // One that is absolute, and a chain of relative ones.
        symlink(base.join("real"), links.join("absolute")).unwrap();
        symlink("deep/relative", base.join("links/chain")).unwrap();
        symlink("../../real", links.join("relative")).unwrap();
        let chain = base.join("links/chain");
        policy.roots = vec![links.join("absolute/root"), base.join("real/spelled")];
        policy.spellings = vec![chain.join("spelled"), chain.join("elsewhere"), dirs.secret()];
        policy.read_only_roots = vec![chain.join("fixed")];
        policy.command_read.push(links.join("relative/read"));
        policy.command_write.push(links.join("absolute/write"));
    });
    let base = fixture.dirs.root.parent().unwrap().to_owned();
    let spellings = [
        ("root", links.join("absolute/root"), true),
        ("spelled", base.join("links/chain/spelled"), true),
        ("fixed", base.join("links/chain/fixed"), false),
        ("read", links.join("relative/read"), false),
        ("write", links.join("absolute/write"), true),
    ];
    for (kind, link, writable) in spellings {
        for path in [link, base.join("real").join(kind)] {
            for cwd in [&path, &path.join("sub"), &base.join("real/root")] {
                let script = format!("cat {0}/sub/file && ls {0} && pwd -P", path.display());
                let text = fixture.bash_in(cwd, &script).succeeded(&script);
                assert!(text.starts_with(&format!("{kind}sub\n")), "{text}");
            }
            let write = format!("echo x > {0}/new && rm {0}/new", path.display());
            let code = fixture.bash_in(&base.join("real/root"), &write).report.status.shell_code();
            assert_eq!(code == 0, writable, "{path:?}");
        }
    }
    let script =
        format!("cat {} {}/links/chain/elsewhere", fixture.dirs.secret().display(), base.display());
    assert_eq!(fixture.bash_in(&base.join("real/root"), &script).report.status.shell_code(), 1);
}

fn directories_with_unusual_names(level: Level) {
    let names: [&[u8]; 5] = [b"with space", b"new\nline", b"quo'te\"", b"not-\xff-text", b"\\040"];
    let fixture = Fixture::with(level, |dirs, policy| {
        policy.roots = names.map(|name| dirs.root.join(OsStr::from_bytes(name))).to_vec();
        for root in &policy.roots {
            fs::create_dir(root).unwrap();
        }
    });
    for name in names {
        let root = fixture.dirs.root.join(OsStr::from_bytes(name));
        fixture.bash_in(&root, "echo x > file").succeeded("writes");
        assert_eq!(fs::read_to_string(root.join("file")).unwrap(), "x\n");
    }
}

/// Only the full level has terminals of its own; below it the shell learns that there are none.
fn a_terminal(level: Level) {
    let inner = "test -t 0 && test -t 1 && stty size >/dev/null && tty >/dev/null && echo typed";
    let script = format!("script -qec '{inner}' /dev/null");
    let spawn = "python3 -c 'import pty; raise SystemExit(pty.spawn([\"true\"]))'";
    let fixture = Fixture::new(level);
    if level == Level::Full {
        assert_eq!(fixture.succeeds(&script).trim_end(), "typed");
        fixture.succeeds(spawn);
    } else {
        for (program, said) in [(script.as_str(), "pseudo-terminal"), (spawn, "pty devices")] {
            let outcome = fixture.bash(program);
            assert_eq!(outcome.report.status.shell_code(), 1, "{outcome:?}");
            assert!(outcome.stderr.contains(said), "{outcome:?}");
        }
    }
}

fn jobs_and_signals(level: Level) {
    let script = r#"
        sleep 1000 & kill $!; wait $!; echo $?
        timeout 0.05 sleep 1000; echo $?
        set -m; (sleep 1000; true) & kill -- -$!; wait $!; echo $?
        trap 'echo trapped' USR1; kill -USR1 $$
        (exec -a a-name-of-its-own sleep 1000) & until pkill -f ^a-name-of-its-own; do :; done
        wait $!; echo $?"#;
    assert_eq!(Fixture::new(level).succeeds(script), "143\n124\n143\ntrapped\n143\n");
}

/// Scripts that need no story of their own. A program that is not there fails none of them.
fn small_programs(level: Level) {
    const SCRIPTS: &[&str] = &[
        "tar cf - own | tar xf - -C $TMPDIR && cmp own $TMPDIR/own",
        "mkfifo pipe && { echo x > pipe & cat pipe; }",
        "echo x > m && chmod 700 m && touch -d yesterday m && cp -a m n && chown $(id -u) n",
        "ln -s own link && cat link && readlink -f link",
        "ps -e && ps -o pid,ppid,args -p $$",
        "cat /proc/self/status /proc/self/maps /proc/cpuinfo /proc/meminfo && ls /proc/self/fd",
        "df . && cat /proc/mounts",
        "nproc && nice -n 5 true && ulimit -a",
        "flock lock true",
        "setsid -w true",
        "date && TZ=Europe/Berlin date && locale",
        "id && whoami && getent passwd $(id -u)",
        "ldd /bin/bash",
        "find . -name own -exec grep own {} + && ls -la && du -s . && stat own && file own",
        "printf 'a\nb\n' > old && printf 'a\nc\n' > new; { diff -u old new || true; } | patch old",
        "sed -i s/own/new/ own && sed -i s/new/own/ own",
        "gzip -k own && zcat own.gz && xz -k own && xzcat own.xz",
        "dd if=/dev/zero of=blocks bs=4096 count=4 && truncate -s 1M blocks && sync blocks",
        "perl -e 'print 1'",
        "ssh-keygen -q -t ed25519 -N '' -f key",
        "openssl rand -hex 8",
        "xargs -n 1 -P 4 echo <<<'a b c d'",
        "python3 -c 'import tempfile; tempfile.TemporaryFile().write(b\"x\")'",
        "python3 -m venv --without-pip venv && venv/bin/python -c 1",
        "python3 -c 'import mmap, os; os.memfd_create(\"m\"); mmap.mmap(-1, 4096)'",
        "sqlite3 db 'create table t(a); insert into t values(1); select * from t'",
        "npm --version",
        "java -version",
        "go version",
    ];
    let fixture = Fixture::new(level);
    let mut failures = String::new();
    for script in SCRIPTS {
        // A script is passed over where one of the programs that it starts is not there.
        let outcome = fixture.bash(&format!("set -o pipefail; {script}"));
        let code = outcome.report.status.shell_code();
        let absent = outcome.stderr.contains("command not found");
        if code != 0 && !absent {
            failures += &format!("{script}: {code}\n{}\n", outcome.stderr);
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

fn python_multiprocessing(level: Level) {
    let script = r#"cat > pool.py <<'END'
import multiprocessing as m
from multiprocessing import shared_memory
def count(n, lock, total):
    for _ in range(n):
        with lock:
            total.value += 1
if __name__ == "__main__":
    with m.Pool(2) as pool:
        assert pool.map(abs, range(-50, 0)) == list(range(50, 0, -1))
    lock, total = m.Lock(), m.Value("i", 0, lock=False)
    workers = [m.Process(target=count, args=(100, lock, total)) for _ in range(3)]
    for w in workers: w.start()
    for w in workers: w.join()
    queue = m.Queue(); queue.put("queued")
    block = shared_memory.SharedMemory(create=True, size=10); block.close(); block.unlink()
    print(total.value, queue.get())
END
python3 pool.py"#;
    assert_eq!(Fixture::new(level).succeeds(script), "300 queued\n");
}

/// Only the full level has a network of its own; below it the shell learns that there is none.
fn localhost_server_and_client(level: Level) {
    let script = r#"cat > localhost.py <<'END'
import http.server, os, threading, urllib.request, socket, errno
try:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
except PermissionError as e:
    print(errno.errorcode[e.errno]); raise SystemExit
server.RequestHandlerClass.log_message = lambda *a: None
threading.Thread(target=server.serve_forever, daemon=True).start()
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(opener.open("http://localhost:%d/own" % server.server_port).read().decode())
a = socket.socket(socket.AF_UNIX); a.bind("own.sock"); a.listen()
b = socket.socket(socket.AF_UNIX); b.connect("own.sock"); b.send(b"x")
END
python3 localhost.py"#;
    let expected = if level == Level::Full { "own\n" } else { "EPERM\n" };
    assert_eq!(Fixture::new(level).succeeds(script), expected);
}

fn node(level: Level) {
    let script = r#"cat > main.js <<'END'
const fs = require("fs"), { execFileSync } = require("child_process");
const { Worker } = require("worker_threads");
fs.writeFileSync("written", "by node");
fs.watch(".").close();
const out = execFileSync("cat", ["written"]).toString();
new Worker("require('worker_threads').parentPort.postMessage(6 * 7)", { eval: true })
  .on("message", n => console.log(out, n));
END
node main.js"#;
    assert_eq!(Fixture::new(level).succeeds(script), "by node 42\n");
}
