//! Sockets of both kinds, and what becomes of their files.

use rustix::fs::{Dir, OFlags};

use super::*;

fn unix_rules(directory: &Path) -> SocketRules {
    SocketRules::Unix {
        directory: directory.to_path_buf(),
        naming: Naming::Full,
        group: None,
        peers: Peers::Hosts,
    }
}

fn of_group(directory: &Path, group: Option<String>) -> SocketRules {
    let (directory, naming) = (directory.to_path_buf(), Naming::Full);
    SocketRules::Unix { directory, naming, group, peers: Peers::Anyone }
}

fn mode(path: &Path) -> u32 {
    rustix::fs::stat(path).unwrap().st_mode & 0o777
}

fn files(directory: &Path) -> usize {
    let handle = rustix::fs::open(directory, OFlags::RDONLY, Mode::empty()).unwrap();
    let names = Dir::read_from(&handle).unwrap().map(|entry| entry.unwrap());
    names.filter(|entry| !entry.file_name().to_bytes().starts_with(b".")).count()
}

fn path_of(listener: &Listener) -> PathBuf {
    match listener.address() {
        Address::Unix(path) => path.clone(),
        Address::Tcp(_) => panic!("a unix socket was asked for"),
    }
}

#[tokio::test]
async fn a_socket_is_for_its_owner_alone_and_goes_with_its_listener() {
    let directory = tempfile::tempdir().unwrap();
    let listener = unix_rules(directory.path()).bind().unwrap();
    let path = path_of(&listener);
    assert_eq!(mode(&path), 0o600);
    let (mut incoming, file) = listener.incoming();
    connect(&Address::Unix(path)).await.unwrap();
    assert!(incoming.recv().await.is_some());
    drop(file);
    assert_eq!(files(directory.path()), 0);
}

#[tokio::test]
async fn a_group_may_connect_when_the_host_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let gid = rustix::process::getegid().as_raw();
    let group = Some(gid.to_string());
    let rules = of_group(directory.path(), group);
    let listener = rules.bind().unwrap();
    let path = path_of(&listener);
    assert_eq!(mode(&path), 0o660);
    assert_eq!(rustix::fs::stat(&path).unwrap().st_gid, gid);
    let (rules, own) =
        of_group(directory.path(), Some(gid.to_string())).in_own_directory().unwrap();
    let own = own.unwrap();
    assert_eq!(mode(own.path()), 0o710, "it may enter the directory of the sockets, too");
    assert_eq!(rustix::fs::stat(own.path()).unwrap().st_gid, gid);
    assert_eq!(mode(&path_of(&rules.bind().unwrap())), 0o660);
}

#[tokio::test]
async fn a_directory_of_its_own_goes_with_whatever_is_left_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let (rules, own) = unix_rules(directory.path()).in_own_directory().unwrap();
    let own = own.unwrap();
    assert_eq!(mode(own.path()), 0o700);
    let [first, second] = [rules.bind().unwrap(), rules.bind().unwrap()];
    assert_ne!(path_of(&first), path_of(&second));
    assert_eq!(path_of(&first).parent(), Some(own.path()));
    assert!(path_of(&first).as_os_str().len() < directory.path().as_os_str().len() + 36);
    drop(own);
    assert_eq!(files(directory.path()), 0);
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let refused = unix_rules(&missing).in_own_directory().map(drop).unwrap_err();
    assert!(matches!(refused, ListenError::Directory { .. }));
    assert!(refused.to_string().contains("TMPDIR"), "{refused}");
    let barred = directory.path().join("a|b");
    let refused = unix_rules(&barred).in_own_directory().map(drop).unwrap_err();
    assert!(matches!(refused, ListenError::PathUnwritable { .. }));
    let group = Some("no such group".to_owned());
    let refused = of_group(directory.path(), group).in_own_directory().map(drop).unwrap_err();
    assert!(matches!(refused, ListenError::Group { .. }));
    assert_eq!(files(directory.path()), 0);
}

#[tokio::test]
async fn an_unknown_group_leaves_no_socket_behind() {
    let directory = tempfile::tempdir().unwrap();
    let group = Some("no such group".to_owned());
    let rules = of_group(directory.path(), group);
    assert!(matches!(rules.bind(), Err(ListenError::Group { .. })));
    assert_eq!(files(directory.path()), 0);
}

#[test]
fn names_of_groups_come_from_the_system_table() {
    assert_eq!(group_id("root").unwrap(), Some(0));
    assert_eq!(group_id("no such group").unwrap(), None);
}

#[tokio::test]
async fn a_directory_that_no_handshake_line_can_carry_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let long = directory.path().join("x".repeat(100));
    assert!(matches!(unix_rules(&long).bind(), Err(ListenError::PathTooLong { .. })));
    let barred = directory.path().join("a|b");
    assert!(matches!(unix_rules(&barred).bind(), Err(ListenError::PathUnwritable { .. })));
}

#[tokio::test]
async fn ports_are_tried_in_order_within_the_range() {
    let any = SocketRules::Tcp { ports: PortRange::default() }.bind().unwrap();
    let Address::Tcp(taken) = any.address() else { panic!("TCP was asked for") };
    let min = taken.port();
    let only_taken = SocketRules::Tcp { ports: PortRange { min, max: min } };
    assert!(matches!(only_taken.bind(), Err(ListenError::NoPort { .. })));
    let reversed = SocketRules::Tcp { ports: PortRange { min: 2, max: 1 } };
    assert!(matches!(reversed.bind(), Err(ListenError::EmptyRange { .. })));
}

#[tokio::test]
async fn only_dead_sockets_of_our_own_kind_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let living = unix_rules(directory.path()).bind().unwrap();
    // No process has the highest number that a pid can take.
    let dead = directory.path().join(format!("{SOCKET_PREFIX}{}-0", i32::MAX));
    let of_others = directory.path().join("plugin123456789");
    for path in [&dead, &of_others] {
        drop(std::os::unix::net::UnixListener::bind(path).unwrap());
    }
    let (rules, own) = unix_rules(directory.path()).in_own_directory().unwrap();
    let _in_own = rules.bind().unwrap();
    // Of processes that are gone: one with a dead socket, one where somebody listens, and a new one.
    let named =
        |number: u32| directory.path().join(format!("{SOCKET_PREFIX}{}-{number}", i32::MAX));
    let [left, listening, new] = [1, 2, 3].map(named);
    for path in [&left, &listening, &new] {
        std::fs::create_dir(path).unwrap();
    }
    drop(std::os::unix::net::UnixListener::bind(left.join("0")).unwrap());
    let _other = std::os::unix::net::UnixListener::bind(listening.join("0")).unwrap();
    remove_stale_sockets(directory.path());
    assert_eq!(files(directory.path()), 5);
    assert!(!left.exists() && listening.join("0").exists() && new.exists());
    assert!(own.is_some_and(|own| own.path().exists()));
    assert!(rustix::fs::stat(&dead).is_err());
    assert!(rustix::fs::stat(path_of(&living)).is_ok());
}
