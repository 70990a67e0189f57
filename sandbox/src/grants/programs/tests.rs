//! What programs on PATH bring with them, and what no link and no neighbour does.

use std::os::unix::fs::symlink;

use super::super::tests::{policy, rights};
use super::*;

/// A home, a root and what lies beside them.
struct Machine {
    base: PathBuf,
    _directory: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let machine = Self { base, _directory: directory };
        for directory in ["root", "home/bin"] {
            machine.directory(directory);
        }
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    fn directory(&self, name: &str) {
        fs::create_dir_all(self.path(name)).unwrap();
    }

    fn file(&self, name: &str, mode: u32) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn program(&self, name: &str) {
        self.file(name, 0o755);
    }

    fn link(&self, name: &str, target: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(self.path(target), path).unwrap();
    }

    fn grants(&self, search_path: &[&str]) -> Grants {
        self.with(search_path, |_| ())
    }

    fn with(&self, search_path: &[&str], change: impl Fn(&mut Policy)) -> Grants {
        let mut policy = policy(&self.base);
        let directories = search_path.iter().map(|name| self.path(name));
        policy.search_path = Some(std::env::join_paths(directories).unwrap());
        change(&mut policy);
        Grants::of(&policy).unwrap()
    }

    /// Whether commands may execute what is there.
    fn is_granted(&self, grants: &Grants, name: &str) -> bool {
        let path = self.path(name);
        path.ancestors().any(|path| rights(grants, path) == Some(Rights::ReadExecute))
    }
}

#[test]
fn a_program_and_the_installation_that_a_link_leads_to_are_granted() {
    let machine = Machine::new();
    machine.program("apps/tool/bin/tool");
    machine.program("apps/tool/bin/other");
    machine.directory("apps/tool/lib");
    machine.directory("apps/tool/share");
    machine.directory("apps/tool/secrets");
    machine.program("apps/single/run");
    machine.directory("apps/single/data");
    machine.link("apps/current", "apps/tool");
    machine.link("home/bin/tool", "apps/current/bin/tool");
    machine.link("home/bin/run", "apps/single/run");
    let grants = machine.grants(&["home/bin"]);
    for granted in ["bin/tool", "bin/other", "lib", "share"] {
        assert!(machine.is_granted(&grants, &format!("apps/tool/{granted}")), "{granted}");
    }
    assert!(machine.is_granted(&grants, "apps/single/run"));
    for closed in ["apps/tool/secrets", "apps/tool", "apps/single/data", "apps"] {
        assert!(!machine.is_granted(&grants, closed), "{closed}");
    }
    assert!(grants.links.contains_key(&machine.path("apps/current")), "{:?}", grants.links);
}

#[test]
fn an_installation_on_the_search_path_is_granted_and_what_is_beside_it_is_not() {
    let machine = Machine::new();
    machine.program("env/bin/tool");
    machine.directory("env/lib/python3.12");
    machine.directory("env/src");
    machine.program("python/3.12/bin/python3");
    machine.directory("python/3.12/lib");
    let home = machine.path("python/3.12/bin");
    fs::write(machine.path("env/pyvenv.cfg"), format!("home = {}\n", home.display())).unwrap();
    machine.program("go/sdk/bin/go");
    machine.directory("go/sdk/pkg/tool");
    machine.directory("go/sdk/src/fmt");
    machine.program("loose/bin/tool");
    machine.directory("loose/share");
    let grants = machine.grants(&["env/bin", "go/sdk/bin", "loose/bin"]);
    for granted in [
        "env/lib",
        "env/pyvenv.cfg",
        "python/3.12/bin/python3",
        "python/3.12/lib",
        "go/sdk/src/fmt",
    ] {
        assert!(machine.is_granted(&grants, granted), "{granted}");
    }
    for closed in ["env/src", "env", "python/3.12", "loose/share", "loose"] {
        assert!(!machine.is_granted(&grants, closed), "{closed}");
    }
}

#[test]
fn the_usual_homes_of_version_managers_are_granted_without_their_tokens() {
    let machine = Machine::new();
    machine.program("home/.local/share/uv/python/cpython-3.12/bin/python3");
    machine.directory("home/.local/share/uv/credentials");
    machine.directory("home/.local/share/keyrings");
    machine.directory("home/.local/lib/python3.12");
    machine.directory("home/.local/lib/private");
    machine.program("home/.local/share/app/run");
    machine.link("home/.local/bin/app", "home/.local/share/app/run");
    machine.program("home/.sdkman/candidates/java/current/bin/java");
    machine.file("home/.sdkman/token", 0o600);
    machine.directory("home/go/pkg/mod/x");
    machine.directory("home/go/src");
    let grants = machine.grants(&[]);
    for granted in [
        ".local/share/uv/python/cpython-3.12/bin/python3",
        ".local/lib/python3.12",
        ".local/share/app/run",
        ".local/bin/app",
        ".sdkman/candidates/java/current/bin/java",
        "go/pkg/mod/x",
    ] {
        assert!(machine.is_granted(&grants, &format!("home/{granted}")), "{granted}");
    }
    for closed in [
        ".local/share/uv/credentials",
        ".local/share/keyrings",
        ".local/share",
        ".local/lib/private",
        ".sdkman/token",
        "go/src",
    ] {
        assert!(!machine.is_granted(&grants, &format!("home/{closed}")), "{closed}");
    }
    let open = machine.with(&[], |policy| policy.network = crate::Network::Allow);
    assert!(!machine.is_granted(&open, "home/go/pkg/mod/x"), "where go downloads to");
}

#[test]
fn no_link_leads_to_keys_to_the_home_directory_or_to_what_is_no_program() {
    let machine = Machine::new();
    machine.program("home/.ssh/bin/agent");
    machine.directory("home/.ssh/lib");
    machine.program("home/run");
    machine.directory("home/lib");
    machine.directory("home/share");
    machine.file("notes/diary", 0o644);
    machine.directory("documents");
    machine.program("apps/tool/bin/tool");
    machine.link("apps/tool/lib", "home/.ssh/lib");
    machine.link("apps/tool/libexec", "home");
    for (name, target) in [
        ("agent", "home/.ssh/bin/agent"),
        ("diary", "notes/diary"),
        ("documents", "documents"),
        ("run", "home/run"),
        ("tool", "apps/tool/bin/tool"),
    ] {
        machine.link(&format!("home/bin/{name}"), target);
    }
    let grants = machine.grants(&["home/bin"]);
    assert!(machine.is_granted(&grants, "home/run"), "only the file");
    assert!(machine.is_granted(&grants, "apps/tool/bin/tool"));
    for closed in [
        "home",
        "home/.ssh",
        "home/.ssh/bin/agent",
        "home/.ssh/lib",
        "home/lib",
        "home/share",
        "notes/diary",
        "documents",
    ] {
        assert!(!machine.is_granted(&grants, closed), "{closed}");
    }
}

/// A command, or the author of a project, may have made what lies in a root.
#[test]
fn nothing_in_a_root_chooses_what_is_granted() {
    let machine = Machine::new();
    machine.program("apps/tool/bin/tool");
    machine.directory("apps/tool/lib");
    machine.link("root/bin/tool", "apps/tool/bin/tool");
    machine.link("read/bin/tool", "apps/tool/bin/tool");
    machine.link("root/way", "apps");
    machine.link("home/bin/tool", "root/way/tool/bin/tool");
    machine.directory("env/bin");
    machine.link("env/pyvenv.cfg", "root/pyvenv.cfg");
    let home = machine.path("apps/tool/bin");
    fs::write(machine.path("root/pyvenv.cfg"), format!("home = {}\n", home.display())).unwrap();
    let read = |policy: &mut Policy| policy.read_only_roots.push(machine.path("read"));
    let by_roots = ["root/bin", "read/bin", "home/bin", "env/bin"];
    let grants = machine.with(&by_roots, read);
    assert!(!machine.is_granted(&grants, "apps/tool/bin/tool"));
    assert!(!machine.is_granted(&grants, "apps/tool/lib"));
    assert_eq!(grants.skipped.len(), 1, "{:?}", grants.skipped);
    machine.link("home/bin/own", "apps/tool/bin/tool");
    assert!(machine.is_granted(&machine.with(&by_roots, read), "apps/tool/lib"), "the twin");
}

#[test]
fn what_holds_a_root_or_the_program_s_own_directories_is_not_granted_beside_a_program() {
    let machine = Machine::new();
    machine.program("apps/a/bin/tool");
    machine.directory("apps/a/lib/root");
    machine.directory("apps/a/libexec/state");
    machine.directory("apps/a/include");
    let grants = machine.with(&["apps/a/bin"], |policy| {
        policy.roots.push(machine.path("apps/a/lib/root"));
        policy.file_private = Some(machine.path("apps/a/libexec/state"));
    });
    assert!(machine.is_granted(&grants, "apps/a/include"));
    assert!(!machine.is_granted(&grants, "apps/a/lib"));
    assert!(!machine.is_granted(&grants, "apps/a/libexec"));
}

#[test]
fn a_directory_with_thousands_of_links_brings_a_bounded_number_of_grants() {
    let machine = Machine::new();
    machine.program("elsewhere/program");
    for number in 0..2 * MOST_LINKS {
        machine.program(&format!("elsewhere/{number}/run"));
        machine.link(&format!("home/bin/{number}"), &format!("elsewhere/{number}/run"));
    }
    let granted = machine.grants(&["home/bin"]).commands;
    let beside = granted.iter().filter(|grant| grant.path.starts_with(machine.path("elsewhere")));
    assert_eq!(beside.count(), MOST_GRANTS);
}
