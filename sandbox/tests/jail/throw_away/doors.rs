//! No effect by other doors than files: networks, sockets, pipes, signals, shared memory, terminals.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;

use sandbox::{Level, Network};

use crate::case::{Case, Need, stories};
use crate::fixture::Fixture;

pub(crate) fn stories() -> Vec<Case> {
    stories!["throw_away::doors":
        no_network_is_open_whatever_the_policy_says needs [Need::Program("python3")],
        a_loopback_is_the_calls_own needs [Need::Program("python3")],
        no_socket_of_others_is_reached_by_its_path needs [Need::Program("python3")],
        named_pipes_lead_to_nobody_at_the_full_level,
        no_signal_leaves_the_call,
        no_other_process_gets_other_processors needs [Need::Program("taskset")],
        shared_memory_ends_with_the_call,
        terminals_of_their_own_are_closed_to_other_calls needs [Need::Program("python3")],
        no_process_of_the_jail_is_in_reach,
    ]
}

const CONNECT: &str = "python3 -c 'import socket,sys; s=socket.socket(socket.AF_UNIX); \
     s.connect(sys.argv[1]); print(\"connected\")'";

fn no_network_is_open_whatever_the_policy_says(level: Level) {
    let fixture = Fixture::with(level, |_, policy| policy.network = Network::Allow);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
    assert_eq!(fixture.succeeds(&script), "connected\n");
    let outcome = fixture.run(&fixture.thrown_away(&script));
    assert!(!outcome.stdout.contains("connected"), "{outcome:#?}");
    let udp = format!(
        "python3 -c 'import socket; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
         s.sendto(b\"x\", (\"127.0.0.1\", {port})); print(s.connect((\"192.0.2.1\", 9)))'"
    );
    let outcome = fixture.run(&fixture.thrown_away(&udp));
    assert!(!outcome.stdout.contains("None"), "{outcome:#?}");
}

fn a_loopback_is_the_calls_own(level: Level) {
    if level != Level::Full {
        return;
    }
    let fixture = Fixture::new(level);
    let serve = "python3 -c 'import socket,sys; s=socket.create_server((\"127.0.0.1\", 4321)); \
         print(\"up\", flush=True); s.accept(); print(\"reached\", flush=True)'";
    let connect = "(exec 3<>/dev/tcp/127.0.0.1/4321) && echo connected";
    let both = format!("{serve} & while ! {connect} 2>/dev/null; do :; done; wait");
    let own = fixture.run(&fixture.thrown_away(&both));
    assert!(own.stdout.contains("connected") && own.stdout.contains("reached"), "{own:#?}");
    let mut other = fixture.start(&fixture.thrown_away(serve));
    assert_eq!(other.line(), "up");
    assert!(!fixture.run(&fixture.thrown_away(connect)).stdout.contains("connected"));
    assert!(!fixture.bash(connect).stdout.contains("connected"));
    other.killed();
}

fn no_socket_of_others_is_reached_by_its_path(level: Level) {
    let fixture = Fixture::with(level, |dirs, policy| {
        fs::create_dir(dirs.root.with_file_name("fixed")).unwrap();
        policy.read_only_roots.push(dirs.root.with_file_name("fixed"));
    });
    for place in [fixture.dirs.root.clone(), fixture.dirs.root.with_file_name("fixed")] {
        let path = place.join("socket");
        let _listener = UnixListener::bind(&path).unwrap();
        let script = format!("{CONNECT} {}", path.display());
        if level == Level::Full {
            assert_eq!(fixture.succeeds(&script), "connected\n");
        }
        let outcome = fixture.run(&fixture.thrown_away(&script));
        assert!(!outcome.stdout.contains("connected"), "{outcome:#?}");
    }
    if level == Level::Full {
        let own = "python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.bind(\"mine\"); \
             s.listen(); c=socket.socket(socket.AF_UNIX); c.connect(\"mine\"); print(\"connected\")'";
        assert_eq!(fixture.run(&fixture.thrown_away(own)).succeeded(own), "connected\n");
    }
}

/// At the kernel level what somebody else writes into a pipe can be taken out: Landlock has a right to read
/// it, which reading files needs too.
fn named_pipes_lead_to_nobody_at_the_full_level(level: Level) {
    let fixture = Fixture::with(level, |dirs, policy| {
        fs::create_dir(dirs.root.with_file_name("fixed")).unwrap();
        policy.read_only_roots.push(dirs.root.with_file_name("fixed"));
    });
    for place in [fixture.dirs.root.clone(), fixture.dirs.root.with_file_name("fixed")] {
        let path = place.join("pipe");
        let named = path.to_str().unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let mut pipe = fs::File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path)
            .unwrap();
        let mut text = [0; 16];
        let write = format!("exec 3<>{named} && echo written >&3");
        fixture.run(&fixture.thrown_away(&write));
        assert_eq!(pipe.read(&mut text).unwrap_err().kind(), ErrorKind::WouldBlock);
        pipe.write_all(b"words").unwrap();
        let take = format!("exec 3< <(exec dd if={named} iflag=nonblock status=none); cat <&3");
        let taken = fixture.run(&fixture.thrown_away(&take)).stdout;
        let left = pipe.read(&mut text).map_or(0, |count| count);
        match level {
            Level::Full => assert_eq!((taken.as_str(), left), ("", 5)),
            _ => assert_eq!((taken.as_str(), left), ("words", 0)),
        }
    }
    // Those of the call itself work where it may make them.
    if level == Level::Full {
        let own = "mkfifo mine && (echo through > mine & cat mine; wait)";
        assert_eq!(fixture.run(&fixture.thrown_away(own)).succeeded(own), "through\n");
    }
}

fn no_signal_leaves_the_call(level: Level) {
    let fixture = Fixture::new(level);
    let mut victim = fixture.start(&fixture.thrown_away("echo $$; exec sleep 1000"));
    let pid = victim.line();
    let kill = format!("kill -9 {pid}; kill -9 $PPID; kill -9 -1; kill -0 $$ && echo own");
    let outcome = fixture.run(&fixture.thrown_away(&kill));
    assert!(!outcome.stderr.is_empty(), "{outcome:#?}");
    let stopped = victim.killed();
    assert_eq!(stopped.report.processes_killed, 1, "it ran until now: {stopped:#?}");
    let own = "sleep 1000 & kill $!; wait $!; echo $?";
    assert_eq!(fixture.run(&fixture.thrown_away(own)).succeeded(own), "143\n");
    assert_eq!(fixture.run(&fixture.thrown_away("echo served")).stdout, "served\n");
}

/// What bash may is in `escapes::processes`.
fn no_other_process_gets_other_processors(level: Level) {
    let fixture = Fixture::new(level);
    let mut beside = fixture.start(&fixture.thrown_away("echo $$; exec sleep 1000"));
    let theirs = beside.line();
    let set = format!("taskset -cp 0 {theirs}");
    let outcome = fixture.run(&fixture.thrown_away(&set));
    // At the full level, of the calls of shell_read alone.
    assert_eq!(
        outcome.stderr.contains("Operation not permitted"),
        level != Level::Full,
        "{outcome:#?}"
    );
    let outside = std::process::id();
    let outcome = fixture.run(&fixture.thrown_away(&format!("taskset -cp 0 {outside}")));
    assert!(outcome.stderr.contains("failed to set") || level == Level::Full, "{outcome:#?}");
    let own = "taskset -c 0 nproc";
    assert_eq!(fixture.run(&fixture.thrown_away(own)).succeeded(own), "1\n");
    beside.killed();
}

fn shared_memory_ends_with_the_call(level: Level) {
    let fixture = Fixture::new(level);
    let make =
        "echo x > /dev/shm/of-a-call && cat /dev/shm/of-a-call; ipcmk -M 4096; ipcs -m | wc -l";
    let outcome = fixture.run(&fixture.thrown_away(make));
    assert_eq!(outcome.stdout.contains('x'), level == Level::Full, "{outcome:#?}");
    let look = "ls /dev/shm; ipcs -m | grep -c 4096";
    let after = fixture.run(&fixture.thrown_away(look));
    assert!(!after.stdout.contains("of-a-call") && after.stdout.ends_with("0\n"), "{after:#?}");
    assert!(!fs::exists("/dev/shm/of-a-call").unwrap());
}

/// Of other commands the twin is in `escapes::terminals`.
fn terminals_of_their_own_are_closed_to_other_calls(level: Level) {
    if level != Level::Full {
        return;
    }
    let fixture = Fixture::new(level);
    let keep = "python3 -c 'import os,sys; m,s=os.openpty(); print(os.ttyname(s), flush=True); \
         sys.stdin.close(); os.read(m, 1)'";
    let mut keeper = fixture.start(&fixture.thrown_away(keep));
    let terminal = keeper.line();
    assert!(terminal.starts_with("/dev/pts/"), "{terminal}");
    let open = format!("ls /dev/pts; exec 3<>{terminal} && echo opened");
    for outcome in [fixture.run(&fixture.thrown_away(&open)), fixture.bash(&open)] {
        assert_eq!(outcome.stdout, "ptmx\n", "{outcome:#?}");
    }
    keeper.killed();
}

/// The processes that keep a call's layers have rights that no command has.
fn no_process_of_the_jail_is_in_reach(level: Level) {
    let fixture = Fixture::new(level);
    let script = "for p in /proc/[0-9]*; do n=${p#/proc/}; [ $n = $$ ] && continue; \
         cat $p/environ $p/maps >/dev/null 2>&1 && echo read $p $(cat $p/comm); \
         readlink $p/fd/0 $p/exe >/dev/null 2>&1 && echo followed $p $(cat $p/comm); \
         ls $p/root/ >/dev/null 2>&1 && echo entered $p $(cat $p/comm); \
         (echo x > $p/mem) 2>/dev/null && echo written $p; done; echo done";
    let outcome = fixture.run(&fixture.thrown_away(script));
    let found: Vec<_> = outcome.stdout.lines().filter(|line| !line.ends_with("bash")).collect();
    assert_eq!(found, ["done"], "{outcome:#?}");
}
