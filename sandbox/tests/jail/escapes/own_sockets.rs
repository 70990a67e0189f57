//! The directory in which the provider itself listens, within what commands may use.

use std::fs;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use sandbox::{Jail, JailError, Level};

use crate::case::{Case, stories};
use crate::fixture::{Directories, Fixture};

pub(crate) fn stories() -> Vec<Case> {
    stories!["escapes::own_sockets":
        the_providers_own_socket_is_not_taken_over,
        a_directory_that_cannot_be_hidden_is_refused,
    ]
}

/// A socket two directories below a root, in a directory for sockets, and such a directory elsewhere.
fn directories() -> (Directories, PathBuf, UnixListener) {
    let dirs = Directories::new();
    let sockets = dirs.root.join("tmp/sockets");
    for directory in [&sockets, &dirs.outside.join("sockets")] {
        fs::create_dir_all(directory).unwrap();
    }
    let listener = UnixListener::bind(sockets.join("0")).unwrap();
    (dirs, sockets, listener)
}

fn the_providers_own_socket_is_not_taken_over(level: Level) {
    let (dirs, sockets, listener) = directories();
    let mut policy = dirs.policy(level);
    policy.sockets = Some(sockets.clone());
    if level != Level::Full {
        // Nothing hides it there.
        let refused = Jail::build(&policy).unwrap_err();
        assert!(matches!(refused, JailError::SocketsInReach { .. }), "{refused}");
        let said = refused.to_string();
        assert!(said.contains("PLUGIN_UNIX_SOCKET_DIR") && said.contains("TMPDIR"), "{said}");
        policy.sockets = Some(dirs.outside.join("sockets"));
        Fixture::of(dirs, &policy, level).succeeds("mv tmp/sockets tmp/others && mv tmp others");
        return;
    }
    let fixture = Fixture::of(dirs, &policy, level);
    assert_eq!(fixture.succeeds("ls -A tmp/sockets"), "");
    for (attempt, said) in [
        ("mv tmp/sockets tmp/others", "Device or resource busy"),
        ("mv tmp others", "Device or resource busy"),
        ("mv -T --exchange tmp other || mv tmp other/", "Device or resource busy"),
        ("rm -r tmp/sockets", "Device or resource busy"),
        ("touch tmp/sockets/0", "Read-only file system"),
        ("ln -s /nowhere tmp/sockets/0", "Read-only file system"),
    ] {
        let outcome = fixture.bash(&format!("mkdir -p other; {attempt}"));
        assert!(outcome.stderr.contains(said), "{attempt}: {outcome:?}");
        assert_ne!(outcome.report.status.shell_code(), 0, "{attempt}");
    }
    // What leads there is as good to work in as the rest of the root.
    fixture
        .succeeds("mkdir -p tmp/more/deep && echo x > tmp/more/deep/file && mv tmp/more tmp/moved");
    UnixStream::connect(sockets.join("0")).unwrap();
    drop(listener);
}

fn a_directory_that_cannot_be_hidden_is_refused(level: Level) {
    let (dirs, _, _listener) = directories();
    let mut policy = dirs.policy(level);
    policy.sockets = Some(dirs.root.clone());
    let refused = Jail::build(&policy).unwrap_err();
    assert!(matches!(refused, JailError::SocketsInReach { .. }), "{refused}");
    // What holds the roots, and no command reaches, needs no hiding.
    policy.sockets = dirs.root.parent().map(Into::into);
    Fixture::of(dirs, &policy, level).succeeds("true");
}
