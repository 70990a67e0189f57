//! What only an owner or a group may read of /etc.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use sandbox::Level;

use crate::attack::{Allowed, Denied, assert_all, assert_denied};
use crate::case::{Case, Need, stories, tests};
use crate::fixture::{Fixture, SECRET, this_program};
use crate::provider::provider_under;

pub(crate) fn stories() -> Vec<Case> {
    let at_each_level = stories!["escapes::settings":
        what_only_root_may_read_is_hidden needs [Need::Root],
        what_the_policy_names_is_granted_though_only_root_may_read_it needs [Need::Root],
        what_others_may_not_read_is_hidden_from_ordinary_users,
    ];
    let once = tests!["escapes::settings":
        where_no_mount_can_hide_it_entries_do needs [Need::Root, Need::Program("unshare")],
    ];
    [at_each_level, once].concat()
}

/// Files of a directory in /etc, where root's commands are to be as good as strangers. Removed in the end.
struct Settings(PathBuf);

impl Settings {
    fn new(level: &str) -> Self {
        let name = format!("jail-story-{level}-{}", std::process::id());
        let settings = Self(Path::new("/etc").join(name));
        fs::create_dir(&settings.0).unwrap();
        settings.furnish("first");
        settings
    }

    fn furnish(&self, when: &str) {
        for (name, mode) in [("shown", 0o644), ("secret", 0o600), ("group", 0o640)] {
            self.write(&format!("{when}-{name}"), mode);
        }
        let directory = self.0.join(format!("{when}-closed"));
        fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
        self.write(&format!("{when}-closed/inner"), 0o644);
        // Not the provider's own, whom modes do not bind. Root of a user namespace has one user only.
        match chown(self.0.join(format!("{when}-group")), Some(1), Some(1)) {
            Err(error) if error.raw_os_error() != Some(libc::EINVAL) => panic!("{error}"),
            _ => {}
        }
    }

    fn write(&self, name: &str, mode: u32) {
        let path = self.0.join(name);
        fs::write(&path, SECRET).unwrap();
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    fn paths(&self, names: &[&str]) -> Vec<String> {
        names.iter().map(|name| self.0.join(name).display().to_string()).collect()
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// By permission, whatever its name: also what is added or replaced while the jail stands.
fn what_only_root_may_read_is_hidden(level: Level) {
    let settings = Settings::new(level.name());
    let fixture = Fixture::new(level);
    let hidden =
        |when: &str| ["secret", "group", "closed/inner"].map(|name| format!("{when}-{name}"));
    let read = |names: &[&str]| fixture.attack("read", &settings.paths(names));
    let refused = [libc::EACCES, libc::ENOENT];
    assert_denied(&read(&hidden("first").each_ref().map(String::as_str)), &refused);
    assert_denied(&fixture.attack("read", &["/etc/shadow", "/etc/gshadow"]), &refused);
    assert_all(&read(&["first-shown"]), Allowed);
    assert!(fixture.succeeds("cat /etc/passwd; ls /etc; ls /etc/passwd").starts_with("root:"));

    settings.furnish("later");
    settings.write("next", 0o600);
    fs::rename(settings.0.join("next"), settings.0.join("first-secret")).unwrap();
    settings.write("next", 0o644);
    fs::rename(settings.0.join("next"), settings.0.join("first-shown")).unwrap();
    for when in ["first", "later"] {
        assert_denied(&read(&hidden(when).each_ref().map(String::as_str)), &refused);
    }
    // Rules on entries keep the rest out of reach until the next jail; a mount does not.
    let owner = fixture.succeeds(&format!("stat -c %u {}", settings.paths(&["first-shown"])[0]));
    let by_mount = owner.trim() == "65534";
    let kept = if by_mount { Allowed } else { Denied(libc::EACCES) };
    assert_all(&read(&["first-shown", "later-shown"]), kept);
    let said = fixture.jail.enforcement().left_open.iter().any(|text| text.contains("/etc"));
    assert_eq!(said, !by_mount);
    drop(fixture);
    let next = Fixture::new(level);
    let shown = settings.paths(&["first-shown", "later-shown"]);
    assert_all(&next.attack("read", &shown), Allowed);
}

/// Root without rights over the file system, as in a container: no owner can be taken from a mount.
fn where_no_mount_can_hide_it_entries_do() {
    let mut unshare = std::process::Command::new("unshare");
    if !unshare.args(["--user", "--map-root-user", "true"]).status().unwrap().success() {
        // No user namespaces here: this pass is about that.
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let settings = Settings::new("container");
    let script = format!(
        "cd {}; for name in first-shown first-secret first-closed/inner; do
         cat $name >/dev/null 2>&1 && echo $name; done; cat /etc/shadow 2>/dev/null
         ls first-closed 2>/dev/null; echo done",
        settings.0.display()
    );
    // Landlock lets all directories of one be listed, or none: names show without mounts.
    for (namespaces, names) in [("auto", ""), ("never", "inner\n")] {
        let this = this_program();
        let arguments = ["--user", "--map-root-user"].map(OsStr::new);
        let arguments = [&arguments[..], &[this.as_os_str()]].concat();
        let mut command = provider_under(OsStr::new("unshare"), &arguments, base.path());
        command.env("JAILED_NAMESPACES", namespaces).args(["/bin/bash", "-c", &script]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(said, format!("first-shown\n{names}done\n"), "{namespaces}: {output:?}");
    }
}

/// An operator who names a path has granted it.
fn what_the_policy_names_is_granted_though_only_root_may_read_it(level: Level) {
    let settings = Settings::new(&format!("named-{level}"));
    let fixture = Fixture::with(level, |_, policy| {
        policy.command_read.push(settings.0.join("first-closed"));
        policy.command_read.push(settings.0.join("first-secret"));
    });
    let read = |names: &[&str]| fixture.attack("read", &settings.paths(names));
    assert_all(&read(&["first-secret", "first-closed/inner", "first-shown"]), Allowed);
    assert_denied(&read(&["first-group"]), &[libc::EACCES]);
}

/// The modes alone keep it from them.
fn what_others_may_not_read_is_hidden_from_ordinary_users(level: Level) {
    let fixture = Fixture::new(level);
    assert_denied(&fixture.attack("read", &["/etc/shadow"]), &[libc::EACCES]);
    assert_all(&fixture.attack("read", &["/etc/passwd"]), Allowed);
}
