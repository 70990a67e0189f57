use std::ffi::OsStr;
use std::path::PathBuf;

use sandbox::Setting;

use super::*;

/// A jail with one root /w, one read-only root /ro, and no network.
struct Jail;

impl Reasons for Jail {
    fn explain(&self, access: Access, path: &Path) -> Option<Explanation> {
        let within = path.starts_with("/ro").then(|| PathBuf::from("/ro"));
        let granted = path.starts_with("/w") || (within.is_some() && access != Access::Write);
        (!granted).then(|| Explanation {
            missing: access.name(),
            setting: if access == Access::Write { Setting::BashWrite } else { Setting::BashRead },
            value: path.to_owned(),
            within,
        })
    }

    fn outside(&self, path: &Path) -> Outside {
        match path.to_str() {
            Some("/" | "/etc" | "/root/.ssh/id_rsa" | "/run/docker.sock") => Outside::Guarded,
            Some(
                "/etc/secret"
                | "/etc/x y"
                | "/etc/passwd"
                | "/other"
                | "/opt/x"
                | "/ro"
                | "/ro/f"
                | "/usr/bin/x"
                | "/srv"
                | "/srv/f"
                | "/srv/tool"
                | "/srv/python"
                | "/srv/python/lib"
                | "/srv/python/bin/python3.12",
            ) => Outside::Grantable,
            _ => Outside::Missing,
        }
    }

    fn link(&self, path: &Path) -> Option<PathBuf> {
        let target = match path.to_str()? {
            "/w/app/.venv/bin/python" => "python3",
            "/w/app/.venv/bin/python3" => "/w/python",
            "/w/python" => "../srv/python/bin/python3.12",
            "/w/bin/tool" => "/srv/tool",
            "/w/bin/keys" => "/root/.ssh/id_rsa",
            "/w/bin/gone" => "/srv/gone",
            "/w/bin/text" => "/srv/f",
            "/w/loop" => "loop",
            _ => return None,
        };
        Some(target.into())
    }

    fn is_program(&self, path: &Path) -> bool {
        let path = path.to_str();
        path.is_some_and(|path| path.contains("bin/") || path == "/srv/tool")
    }

    fn is_git_directory(&self, path: &Path) -> bool {
        path.ends_with(".git")
    }

    fn device(&self, path: &Path) -> Option<u64> {
        Some(u64::from(path == Path::new("/disk")))
    }

    fn explain_network(&self) -> Option<Explanation> {
        Some(Explanation {
            missing: "network",
            setting: Setting::Network,
            value: "allow".into(),
            within: None,
        })
    }

    fn has_unix_sockets(&self) -> bool {
        true
    }
}

fn failed(output: &str) -> Facts<'_> {
    Facts {
        status: ExitStatus::Exited(1),
        limit: None,
        max_rss_bytes: 0,
        command: "./run",
        output,
        cwd: Path::new("/w/app"),
        search_path: Some(OsStr::new("/w/none:/w/bin:relative")),
        reasons: &Jail,
        limits: Limits::default(),
        read_only_roots: &[],
        mounts: &[],
        home: Some(Path::new("/home/me")),
        git_directory: None,
        sought_network: None,
    }
}

#[test]
fn a_rename_between_two_mounts_is_explained_and_no_other() {
    let mounts = ["/w", "/w/sub", "/other", "/disk", "/tmp"].map(PathBuf::from);
    let said = |command, output| of_end(&Facts { command, mounts: &mounts, ..failed(output) });
    for (command, line, two) in [
        (
            "ln a /other/a",
            "ln: failed to create hard link '/other/a' => 'a': Invalid cross-device link",
            "between /other and /w:",
        ),
        (
            "./x.py",
            "OSError: [Errno 18] Invalid cross-device link: '../sub/a' -> 'b'",
            "between /w/sub and /w:",
        ),
        (
            "node x",
            "Error: EXDEV: cross-device link not permitted, rename '/w/a' -> '/tmp/a'",
            "between /w and /tmp:",
        ),
        ("./x", "rename /w/a /other/a: invalid cross-device link", "between /w and /other:"),
        ("./x /w/a /other/a", "Error: Cross-device link (os error 18)", "between /w and /other:"),
    ] {
        let notices = said(command, line);
        assert!(notices.len() == 1 && notices[0].contains(two), "{line}: {notices:?}");
    }
    for (command, line) in [
        // One file system, one that is another outside too, none of ours, and text that only says so.
        ("./x", "rename /w/a /w/b: invalid cross-device link"),
        ("./x", "rename /w/a /disk/b: invalid cross-device link"),
        ("./x", "rename /a /b: invalid cross-device link"),
        ("grep -r EXDEV /w /other; false", "/w/a.c: EXDEV '/other/a'"),
        ("./x /w/a /other/a", "error: something else"),
    ] {
        assert_eq!(said(command, line), [""; 0], "{line}");
    }
    let line = "rename /w/a /other/a: invalid cross-device link";
    assert_eq!(of_end(&failed(line)), [""; 0], "nothing is mounted");
}

#[test]
fn java_is_told_where_its_files_can_be() {
    let trace = "Exception in thread \"main\" java.io.IOException: Permission denied\n\
        \tat java.base/java.io.UnixFileSystem.createFileExclusively(Native Method)";
    for output in [
        trace,
        "java.nio.file.AccessDeniedException: /tmp/x123.tmp",
        "java.io.FileNotFoundException: /home/me/.app/state (Permission denied)",
        "[ERROR] Could not create local repository at /home/me/.m2/repository -> [Help 1]",
    ] {
        let notices = of_end(&Facts { command: "java -jar a.jar", ..failed(output) });
        assert!(
            notices.iter().any(|notice| notice.contains("-Djava.io.tmpdir=$TMPDIR")),
            "{output}"
        );
        let forked = of_end(&Facts { command: "./mvnw test", ..failed(output) });
        assert!(forked.iter().any(|notice| notice.contains("-DargLine=\"-D")), "{output}");
        let shown = of_end(&Facts { command: "cat log; false", ..failed(output) });
        assert!(!shown.concat().contains("java.io.tmpdir"), "{shown:?}");
    }
    for output in [
        "java.nio.file.AccessDeniedException: /w/locked",
        "java.io.IOException: Permission denied",
        "java.nio.file.NoSuchFileException: /tmp/x",
    ] {
        let notices = of_end(&Facts { command: "java -jar a.jar", ..failed(output) });
        assert!(!notices.concat().contains("java.io.tmpdir"), "{output}: {notices:?}");
    }
}

#[test]
fn packages_of_the_system_are_not_for_commands_to_install() {
    for line in [
        "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)",
        "E: Could not open lock file /var/lib/apt/lists/lock - open (30: Read-only file system)",
        "E: List directory /var/lib/apt/lists/partial is missing. - Acquire (2: No such file or directory)",
        "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?",
        "dpkg: error: unable to access the dpkg database directory /var/lib/dpkg: No such file or directory",
        "error: can't create transaction lock on /var/lib/rpm/.rpm.lock (Permission denied)",
        "ERROR: Unable to lock database: Permission denied",
    ] {
        let command = "apt-get install -y jq";
        let notices = of_end(&Facts { command, ..failed(line) });
        assert!(
            notices.len() == 1 && notices[0].contains("packages of the system"),
            "{line}: {notices:?}"
        );
        let shown = of_end(&Facts { command: "cat log; false", ..failed(line) });
        assert!(!shown.concat().contains("packages of the system"), "{shown:?}");
    }
    let busy = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt)";
    assert_eq!(of_end(&Facts { command: "apt-get install jq", ..failed(busy) }), [""; 0]);
}

#[test]
fn refused_paths_are_found_in_what_programs_print() {
    for (line, path, setting) in [
        ("cat: /etc/secret: Permission denied", "/etc/secret", "bash_read"),
        ("cat: ../../other: No such file or directory", "/other", "bash_read"),
        ("bash: line 1: /opt/x: Permission denied", "/opt/x", "bash_read"),
        ("PermissionError: [Errno 13] Permission denied: '/etc/x y'", "/etc/x y", "bash_read"),
        ("touch: cannot touch '/ro/f': Read-only file system", "/ro/f", "bash_write"),
        ("touch: cannot touch ‘/ro/f’: Permission denied", "/ro/f", "bash_write"),
        ("open /etc/secret: permission denied", "/etc/secret", "bash_read"),
        ("open /etc/secret: no such file or directory", "/etc/secret", "bash_read"),
        ("Error: EACCES: permission denied, open '/srv/f'", "/srv/f", "bash_read"),
        ("Error: EROFS: read-only file system, mkdir '/srv/d'", "/srv", "bash_write"),
        (
            "Error: unable to open database \"/srv/f\": unable to open database file",
            "/srv/f",
            "bash_read",
        ),
        (
            "Error: unable to open database \"/srv/x.db\": unable to open database file",
            "/srv",
            "bash_write",
        ),
    ] {
        let notices = of_end(&failed(line));
        assert_eq!(notices.len(), 1, "{line}: {notices:?}");
        assert!(notices[0].contains(path) && notices[0].contains(setting), "{line}: {notices:?}");
    }
}

#[test]
fn what_is_not_there_was_to_be_made() {
    let go = "copying /w/a.out: open /etc/new: permission denied";
    assert_eq!(
        of_end(&failed(go)),
        ["/etc/new lies outside what commands may write; write inside a root"]
    );
    for line in [
        "open /etc/new: no such file or directory",
        "GET /login: permission denied",
        "POST /api/v1/users: permission denied",
        "open /etc/passwd: permission denied; GET /x",
    ] {
        assert!(!of_end(&failed(line)).concat().contains("lies outside"), "{line}");
    }
}

#[test]
fn a_database_that_no_line_names_is_looked_for_in_the_command() {
    let said = |command, line| of_end(&Facts { command, ..failed(line) });
    let python = "sqlite3.OperationalError: unable to open database file";
    let readonly = "sqlite3.OperationalError: attempt to write a readonly database";
    let script =
        "python3 -c \"import sqlite3; sqlite3.connect('/ro/f.db').execute('create table t(a)')\"";
    for (command, line, wanted) in [
        (script, readonly, "/ro"),
        ("python3 a.py --db=/srv/new.db", python, "`bash_write` with \"/srv\""),
        ("sqlite3 /etc/a.db 'select 1'", python, "/etc/a.db lies outside"),
    ] {
        let notices = said(command, line);
        assert!(notices.len() == 1 && notices[0].contains(wanted), "{command}: {notices:?}");
    }
    for command in ["/srv/python/bin/python3.12 a.py", "./a.py /w/x.db", "cat /etc/log.db"] {
        assert_eq!(said(command, python), [""; 0], "{command}");
    }
}

#[test]
fn a_write_is_reported_as_one_and_what_can_be_granted_is_named() {
    for (command, line, remedy) in [
        ("touch /srv/new", "touch: cannot touch '/srv/new': Permission denied", "\"/srv\""),
        (
            "mkdir -p /srv/a/b",
            "mkdir: cannot create directory ‘/srv/a/b’: No such file or directory",
            "\"/srv\"",
        ),
        ("echo x > /srv/a/b", "bash: line 1: /srv/a/b: Permission denied", "\"/srv\""),
        ("echo x >>'/srv/f'", "bash: line 1: /srv/f: Permission denied", "\"/srv/f\""),
    ] {
        let notices = of_end(&Facts { command, ..failed(line) });
        let wanted = format!("right to write; `bash_write` with {remedy} would");
        assert!(notices.len() == 1 && notices[0].contains(&wanted), "{line}: {notices:?}");
    }
    let read = Facts { command: "cat /srv/f", ..failed("cat: /srv/f: Permission denied") };
    assert!(of_end(&read)[0].contains("right to read; `bash_read` with \"/srv/f\""));
}

#[test]
fn what_is_the_operators_is_named_with_the_way_that_works() {
    let corepack =
        "Internal Error: EROFS: read-only file system, symlink '../lib/x.js' -> '/usr/bin/pnpm'";
    let rustup = "error: could not create component directory: '/h/.prefix/rustup/toolchains/stable-x86_64/lib': \
                  Read-only file system (os error 30)";
    let offline = "error: component download failed for rust-src: error opening file for download: cleaning \
                   up cached downloads: Read-only file system (os error 30)";
    let in_place = "error: component download failed for rust-src: error opening file for download: cleaning \
                    up cached downloads: No such file or directory (os error 2)";
    let go = "main.go:5:2: open /h/go/pkg/mod/cache/download/github.com/!burnt!sushi/toml/@v/v1.4.0.lock: \
              read-only file system";
    let git = "error: could not write config file /home/me/.gitconfig: Device or resource busy";
    let locked = "error: could not lock config file /state/home/.gitconfig: Permission denied";
    for (command, line, way) in [
        ("corepack enable", corepack, "--install-directory ~/.prefix/bin"),
        ("rustup target add wasm32", rustup, "the toolchain stable-x86_64 is the operator's"),
        ("rustup target add wasm32", offline, "with `network = \"allow\"`"),
        ("rustup target add wasm32", in_place, "with `network = \"allow\"`"),
        ("go test ./...", go, "lacks github.com/BurntSushi/toml v1.4.0, and the network is closed"),
        ("git config --global user.name x", git, "git -c NAME=VALUE"),
        ("./setup", locked, "git -c NAME=VALUE"),
    ] {
        for status in [0, 1].map(ExitStatus::Exited) {
            let notices = of_end(&Facts { command, status, ..failed(line) });
            assert!(notices.len() == 1 && notices[0].contains(way), "{line}: {notices:?}");
            let shown = of_end(&Facts { command: "cat log; true", status, ..failed(line) });
            assert_eq!(shown, [""; 0], "{line}");
        }
    }
    for (command, line) in [
        ("corepack enable", "Usage Error: EACCES"),
        ("rustup show", "error: could not find toolchains/x: Permission denied"),
        ("git config a.b c", "error: could not lock config file .git/config: File exists"),
    ] {
        let status = ExitStatus::Exited(0);
        assert_eq!(of_end(&Facts { command, status, ..failed(line) }), [""; 0], "{line}");
    }
}

#[test]
fn what_only_shows_text_is_believed_of_its_own_errors_alone() {
    let limits = Limits { open_files: Some(4), ..Limits::default() };
    for (command, line) in [
        ("cat log; false", "bash2: /opt/x: Permission denied"),
        ("cat log; false", "touch: cannot touch '/srv/f': Permission denied"),
        ("cat log; false", "error: could not open /etc/secret: Permission denied"),
        ("grep -rn EMFILE . nosuch", "a.log:3:OSError: [Errno 24] Too many open files"),
    ] {
        assert_eq!(of_end(&Facts { command, limits, ..failed(line) }), [""; 0], "{line}");
    }
    for (command, line) in [
        ("cat /etc/secret", "cat: /etc/secret: Permission denied"),
        ("echo x >/srv/f", "bash: line 1: /srv/f: Permission denied"),
    ] {
        assert_eq!(of_end(&Facts { command, limits, ..failed(line) }).len(), 1, "{line}");
    }
}

/// The path in an error is whatever the command printed.
#[test]
fn nothing_is_advised_that_is_missing_holds_keys_or_is_the_system_s() {
    for line in [
        "cat: /nosuch/file: No such file or directory",
        "ls: cannot access '/tmp/build': No such file or directory",
        "cat: /root/.ssh/id_rsa: Permission denied",
        "ls: cannot open directory '/etc': Permission denied",
    ] {
        assert_eq!(of_end(&failed(line)), [""; 0], "{line}");
    }
    let write = Facts { command: "echo x >/etc/a", ..failed("bash: /etc/a: Permission denied") };
    let notices = of_end(&write);
    assert!(notices[0].contains("write inside a root"), "{notices:?}");
    assert!(!notices[0].contains("bash_write"), "{notices:?}");
    let mode = failed("chmod: changing permissions of '/usr/bin/x': Operation not permitted");
    assert!(of_end(&mode)[0].contains("write inside a root"), "{:?}", of_end(&mode));
    let forged = Facts {
        git_directory: Some(Path::new("/root/.ssh")),
        ..failed("fatal: not a git repository: /root/.ssh")
    };
    assert_eq!(of_end(&forged), [""; 0]);
}

#[test]
fn a_pipeline_does_not_hide_that_the_network_was_missing() {
    let output = "npm error network request failed, reason: getaddrinfo EAI_AGAIN a.org";
    let piped = Facts {
        status: ExitStatus::Exited(0),
        command: "npm install x 2>&1 | tail -20",
        ..failed(output)
    };
    assert!(of_end(&piped)[0].contains("network"));
    assert!(of_end(&Facts { command: "npm install x; echo $?", ..piped })[0].contains("ask for"));
    assert_eq!(of_end(&Facts { command: "cat npm.log", ..piped }), [""; 0]);
}

#[test]
fn a_read_only_root_is_the_operators_decision() {
    let roots = [PathBuf::from("/ro")];
    let facts = Facts {
        read_only_roots: &roots,
        ..failed("touch: cannot touch '/ro/f': Read-only file system")
    };
    let notices = of_end(&facts);
    assert!(notices[0].contains("the operator made /ro read-only"), "{notices:?}");
    assert!(!notices[0].contains("bash_write"), "{notices:?}");
}

#[test]
fn what_is_granted_or_went_well_is_not_explained() {
    for line in [
        "cat: missing.txt: No such file or directory",
        "bash: ./noexec: Permission denied",
        "bash: nosuch: command not found",
        "error: socket hang up",
    ] {
        let notices = of_end(&failed(line));
        assert!(notices.is_empty(), "{line}: {notices:?}");
    }
    let fine =
        Facts { status: ExitStatus::Exited(0), ..failed("cat: /etc/secret: Permission denied") };
    assert!(of_end(&fine).is_empty());
}

#[test]
fn a_missing_network_is_named_with_its_setting() {
    for line in [
        "curl: (6) Could not resolve host: example.org",
        "connect: Network is unreachable",
        "socket: Operation not permitted",
    ] {
        let notices = of_end(&failed(line));
        assert!(notices[0].contains("network"), "{line}: {notices:?}");
    }
}

#[test]
fn the_limit_that_was_hit_is_named() {
    let limits = Limits {
        memory_bytes: Some(1),
        processes: Some(2),
        file_size_bytes: Some(3),
        open_files: Some(4),
    };
    for (line, name) in [
        ("cc1: out of memory allocating 65536 bytes", "memory_bytes"),
        ("bash: fork: retry: Resource temporarily unavailable", "processes"),
        ("dd: error writing 'x': File too large", "file_size_bytes"),
        ("OSError: [Errno 24] Too many open files", "open_files"),
    ] {
        let notices = of_end(&Facts { limits, ..failed(line) });
        assert!(notices[0].contains(name), "{line}: {notices:?}");
    }
    let killed = Facts {
        limit: Some(LimitHit::FileSize),
        status: ExitStatus::Signaled(25),
        limits,
        ..failed("")
    };
    assert!(of_end(&killed)[0].contains("file_size_bytes (3)"));
}

#[test]
fn a_socket_of_the_machine_is_not_one_of_a_program_that_does_not_run() {
    for line in [
        "Cannot connect to the Docker daemon at unix:///run/docker.sock. Is the docker daemon running?",
        "failed to connect to the docker API at unix:///run/docker.sock; check if the path is correct",
        "permission denied while trying to connect to unix:///run/docker.sock: Get \"http://x\"",
        "Get \"http://x/v1.24\": dial unix /run/docker.sock: connect: no such file or directory",
    ] {
        let notices = of_end(&failed(line));
        assert!(notices[0].starts_with("/run/docker.sock is there"), "{line}: {notices:?}");
        assert!(!notices[0].contains("bash_read"), "{notices:?}");
    }
    let grantable = "Can't connect to local MySQL server through socket '/opt/x' (2)";
    assert!(of_end(&failed(grantable))[0].contains("`bash_read` with \"/opt/x\""));
    for line in [
        "Can't connect to local MySQL server through socket '/opt/gone.sock' (2)",
        "Cannot connect to the Docker daemon at unix:///w/docker.sock. Is the docker daemon running?",
        "Cannot connect to the Docker daemon at tcp://127.0.0.1:2375.",
    ] {
        assert_eq!(of_end(&failed(line)), [""; 0], "{line}");
    }
}

#[test]
fn a_git_directory_outside_is_named_for_bash_write() {
    let facts = Facts {
        git_directory: Some(Path::new("/main/.git")),
        ..failed("fatal: not a git repository: /main/.git/worktrees/wt")
    };
    let notices = of_end(&facts);
    assert!(notices.iter().any(|notice| notice.contains("/main/.git into bash_write")));
}

#[test]
fn what_is_looked_at_is_bounded_however_much_a_command_says() {
    /// Counts how often it is asked.
    struct Asked(std::cell::Cell<usize>);
    impl Reasons for Asked {
        fn explain(&self, _: Access, _: &Path) -> Option<Explanation> {
            self.0.set(self.0.get() + 1);
            None
        }
        fn outside(&self, _: &Path) -> Outside {
            Outside::Missing
        }
        fn link(&self, _: &Path) -> Option<PathBuf> {
            None
        }
        fn is_program(&self, _: &Path) -> bool {
            false
        }
        fn is_git_directory(&self, _: &Path) -> bool {
            false
        }
        fn device(&self, path: &Path) -> Option<u64> {
            Jail.device(path)
        }

        fn explain_network(&self) -> Option<Explanation> {
            None
        }
        fn has_unix_sockets(&self) -> bool {
            true
        }
    }
    // Each text is looked for in the command, which takes minutes where neither has a bound.
    let command = "a".repeat(1 << 20);
    for line in ["a: Permission denied\n".to_owned(), "/a ".repeat(50) + ": Permission denied\n"] {
        let asked = Asked(std::cell::Cell::new(0));
        let output = line.repeat(2000);
        let facts = Facts { command: &command, reasons: &asked, ..failed(&output) };
        assert_eq!(of_end(&facts), [""; 0]);
        assert!(
            asked.0.get() <= 3 * MOST_CANDIDATES + program::MOST_LOOKS,
            "asked {} times",
            asked.0.get()
        );
    }
    let far = "#".repeat(100_000);
    let command = format!("echo x >'/srv/f' {far}");
    let line = "bash: line 1: /srv/f: Permission denied";
    let notices = of_end(&Facts { command: &command, ..failed(line) });
    assert!(notices[0].contains("bash_write"), "{notices:?}");
}

#[test]
fn a_program_that_is_a_link_to_what_is_not_granted_is_named_with_what_would_grant_it() {
    let python = "/w/python is a link to /srv/python/bin/python3.12: the jail does not grant the right to \
                  execute; `bash_read` with \"/srv/python\" would; the operator sets it: ask if this is \
                  needed";
    let tool = "/w/bin/tool is a link to /srv/tool: the jail does not grant the right to execute; \
                `bash_read` with \"/srv/tool\" would; the operator sets it: ask if this is needed";
    for (code, line, wanted) in [
        (127, "bash: line 1: .venv/bin/python: No such file or directory", python),
        (126, "bash: line 1: .venv/bin/python: Permission denied", python),
        (127, "bash: line 1: .venv/bin/pip: cannot execute: required file not found", python),
        (
            126,
            "bash: ./x: /w/app/.venv/bin/python: bad interpreter: No such file or directory",
            python,
        ),
        (127, "sh: 1: .venv/bin/pip: not found", python),
        (2, "make: .venv/bin/python: No such file or directory", python),
        (127, "bash: line 1: tool: command not found", tool),
        (127, "sh: 1: tool: not found", tool),
        (127, "env: ‘tool’: No such file or directory", tool),
        (126, "bash: line 1: /w/bin/tool: Permission denied", tool),
    ] {
        let notices = of_end(&Facts { status: ExitStatus::Exited(code), ..failed(line) });
        assert_eq!(notices, [wanted], "{line}");
    }
}

#[test]
fn nothing_is_said_of_links_to_keys_to_nothing_or_to_what_is_no_program() {
    for line in [
        "bash: line 1: keys: command not found",
        "bash: line 1: /w/bin/keys: Permission denied",
        "bash: line 1: gone: command not found",
        "bash: line 1: text: command not found",
        "bash: line 1: missing: command not found",
        "bash: line 1: /w/loop: Too many levels of symbolic links",
        "bash: line 1: /w/loop: No such file or directory",
    ] {
        let ended = Facts { status: ExitStatus::Exited(127), ..failed(line) };
        assert_eq!(of_end(&ended), [""; 0], "{line}");
    }
    // A name alone is looked for on PATH only where the shell did not find it.
    assert_eq!(of_end(&failed("cat: tool: No such file or directory")), [""; 0]);
}
