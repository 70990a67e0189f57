//! Which paths a policy grants, and which never.

use std::os::unix::fs::symlink;

use super::*;

#[test]
fn a_path_is_resolved_and_its_links_are_kept() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    fs::create_dir_all(base.join("real/deep")).unwrap();
    symlink("real", base.join("link")).unwrap();
    symlink(base.join("link/deep/.."), base.join("far")).unwrap();
    let mut links = Vec::new();
    assert_eq!(resolve(&base.join("far/./deep"), &mut links).unwrap(), base.join("real/deep"));
    let found: Vec<_> = links.into_iter().map(|(link, _)| link).collect();
    assert_eq!(found, [base.join("far"), base.join("link")]);
    symlink("loop", base.join("loop")).unwrap();
    let looped = resolve(&base.join("loop"), &mut Vec::new()).unwrap_err();
    assert_eq!(looped.raw_os_error(), Some(libc::ELOOP));
}

pub(super) fn policy(base: &Path) -> Policy {
    Policy {
        roots: vec![base.join("root")],
        home: Some(base.join("home")),
        search_path: Some("".into()),
        ..Policy::default()
    }
}

pub(super) fn rights(grants: &Grants, path: &Path) -> Option<Rights> {
    grants.commands.iter().find(|grant| grant.path == path).map(|grant| grant.rights)
}

#[test]
fn toolchains_are_granted_and_the_tokens_in_them_are_not() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    for dir in ["root", "home/.cargo/bin", "home/.ssh", "home/.rustup"] {
        fs::create_dir_all(base.join(dir)).unwrap();
    }
    fs::write(base.join("home/.cargo/credentials.toml"), "token").unwrap();
    let grants = Grants::of(&policy(&base)).unwrap();
    assert_eq!(rights(&grants, &base.join("home/.cargo")), Some(Rights::List));
    assert_eq!(rights(&grants, &base.join("home/.cargo/bin")), Some(Rights::ReadExecute));
    assert_eq!(rights(&grants, &base.join("home/.cargo/credentials.toml")), None);
    assert_eq!(rights(&grants, &base.join("home/.rustup")), Some(Rights::ReadExecute));
    assert_eq!(rights(&grants, &base.join("home/.ssh")), None);
    assert_eq!(grants.home, Some(base.join("home")));
}

/// What a command left in a root chooses nothing for the next jail.
#[test]
fn no_link_that_commands_may_change_becomes_a_grant() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    for dir in ["root/.venv", "root/dot", "root/tools", "home/.ssh", "elsewhere/bin"] {
        fs::create_dir_all(base.join(dir)).unwrap();
    }
    fs::write(base.join("home/.ssh/id"), "key").unwrap();
    symlink("../../home/.ssh", base.join("root/.venv/bin")).unwrap();
    symlink("../tools", base.join("root/.venv/inner")).unwrap();
    symlink(base.join("home/.ssh/id"), base.join("root/dot/gitconfig")).unwrap();
    symlink(base.join("root/dot/gitconfig"), base.join("home/.gitconfig")).unwrap();
    symlink("elsewhere/bin", base.join("bin")).unwrap();
    let mut policy = policy(&base);
    let dirs = ["root/.venv/bin", "root/.venv/inner", "bin"].map(|dir| base.join(dir));
    policy.search_path = Some(std::env::join_paths(dirs).unwrap());
    let grants = Grants::of(&policy).unwrap();
    assert_eq!(rights(&grants, &base.join("home/.ssh")), None);
    assert_eq!(rights(&grants, &base.join("home/.ssh/id")), None);
    assert_eq!(grants.skipped.len(), 2, "{:?}", grants.skipped);
    assert_eq!(rights(&grants, &base.join("root/tools")), Some(Rights::ReadExecute));
    assert_eq!(rights(&grants, &base.join("elsewhere/bin")), Some(Rights::ReadExecute));
    for change in [
        |policy: &mut Policy, path| policy.command_read.push(path),
        |policy: &mut Policy, path| policy.command_write.push(path),
        |policy: &mut Policy, path| policy.read_only_roots.push(path),
        |policy: &mut Policy, path| policy.roots.push(path),
    ] {
        let mut policy = policy.clone();
        change(&mut policy, base.join("root/.venv/bin"));
        let refused = Grants::of(&policy).map(|_| ()).unwrap_err();
        assert!(matches!(refused, GrantError::ThroughWritable { .. }), "{refused}");
    }
}

#[test]
fn a_search_path_never_grants_the_home_directory() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    for dir in ["root", "home/bin"] {
        fs::create_dir_all(base.join(dir)).unwrap();
    }
    let mut policy = policy(&base);
    let dirs = [base.join("home"), base.clone(), base.join("home/bin"), "bin".into()];
    policy.search_path = Some(std::env::join_paths(dirs).unwrap());
    let grants = Grants::of(&policy).unwrap();
    assert_eq!(rights(&grants, &base.join("home/bin")), Some(Rights::ReadExecute));
    assert_eq!(rights(&grants, &base.join("home")), None);
    assert_eq!(rights(&grants, &base), None);
}

#[test]
fn what_commands_reach_is_known_by_every_name() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    for directory in ["root", "read", "home/.cargo/bin", "home/.local/state"] {
        fs::create_dir_all(base.join(directory)).unwrap();
    }
    let reachable = |change: &dyn Fn(&mut Policy), path: &str| {
        let mut policy = policy(&base);
        change(&mut policy);
        let grants = Grants::of(&policy).unwrap();
        grants.reachable(&base.join(path)).map(Path::to_owned)
    };
    let plain = |path| reachable(&|_| (), path);
    assert_eq!(plain("home/.local/state"), None);
    assert_eq!(plain("root/state"), Some(base.join("root")));
    assert_eq!(plain("home/.cargo/bin/x"), Some(base.join("home/.cargo/bin")));
    assert_eq!(plain("home/.cargo/credentials.toml"), None);
    assert_eq!(reachable(&|_| (), "/dev/shm/x"), Some(SHARED_MEMORY.into()));
    let read = |policy: &mut Policy| policy.command_read.push(base.join("read"));
    assert_eq!(reachable(&read, "read/x"), Some(base.join("read")));
    let link = |policy: &mut Policy| {
        let _ = symlink("home", base.join("link"));
        policy.command_write.push(base.join("link"));
    };
    assert_eq!(reachable(&link, "home/.local/state"), Some(base.join("home")));
    let all = |policy: &mut Policy| policy.roots = vec!["/".into()];
    assert_eq!(reachable(&all, "home/.local/state"), Some("/".into()));
}

#[test]
fn what_cannot_be_granted_as_written_is_an_error() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    fs::create_dir_all(base.join("root/inner")).unwrap();
    fs::create_dir_all(base.join("home")).unwrap();
    fs::write(base.join("file"), "").unwrap();
    let with = |change: &dyn Fn(&mut Policy)| {
        let mut policy = policy(&base);
        change(&mut policy);
        Grants::of(&policy).map(|_| ()).unwrap_err()
    };
    let missing = with(&|policy| policy.roots.push(base.join("missing")));
    assert!(matches!(missing, GrantError::Unusable { setting: "roots", .. }), "{missing}");
    let file = with(&|policy| policy.read_only_roots.push(base.join("file")));
    assert!(matches!(file, GrantError::NotADirectory { .. }), "{file}");
    let relative = with(&|policy| policy.command_read.push("x".into()));
    assert!(matches!(relative, GrantError::Relative { .. }), "{relative}");
    let inner = with(&|policy| policy.read_only_roots.push(base.join("root/inner")));
    assert!(matches!(inner, GrantError::ReadOnlyInRoot { .. }), "{inner}");
}
