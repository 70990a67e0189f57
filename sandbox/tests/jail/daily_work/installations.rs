//! Programs that are links to an installation elsewhere run, and no link leads to anything else.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use sandbox::Level;

use crate::case::{Case, stories};
use crate::fixture::{CommandLine, Directories, Fixture, SECRET};

pub(crate) fn stories() -> Vec<Case> {
    stories!["daily_work::installations":
        a_virtual_environment_in_a_root_runs_the_python_of_a_version_manager,
        a_program_on_path_that_is_a_link_runs_with_its_installation,
        a_link_to_keys_stays_closed,
    ]
}

fn program(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn link(path: &Path, target: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(target, path).unwrap();
}

/// A jail with the story's home, and its `bin` first on PATH.
fn fixture(level: Level, prepare: impl FnOnce(&Directories)) -> Fixture {
    Fixture::with(level, |dirs, policy| {
        let bin = dirs.home().join("bin");
        fs::create_dir(&bin).unwrap();
        prepare(dirs);
        policy.home = Some(dirs.home().to_owned());
        policy.search_path = Some(path_with(&bin));
    })
}

fn path_with(bin: &Path) -> std::ffi::OsString {
    std::env::join_paths([bin, Path::new("/usr/bin"), Path::new("/bin")]).unwrap()
}

fn on_path(fixture: &Fixture, script: &str) -> CommandLine {
    let mut line = fixture.command(&fixture.dirs.root, &["/bin/bash", "-c", script]);
    line.env.retain(|(name, _)| name != "PATH");
    line.env.push(("PATH".into(), path_with(&fixture.dirs.home().join("bin"))));
    line
}

fn a_virtual_environment_in_a_root_runs_the_python_of_a_version_manager(level: Level) {
    let fixture = fixture(level, |dirs| {
        let uv = dirs.home().join(".local/share/uv/python");
        let python = uv.join("cpython-3.12.4/bin/python3.12");
        program(&python, r#"cat "$(dirname "$(readlink -f "$0")")/../lib/module""#);
        fs::create_dir(uv.join("cpython-3.12.4/lib")).unwrap();
        fs::write(uv.join("cpython-3.12.4/lib/module"), "of uv").unwrap();
        symlink("cpython-3.12.4", uv.join("cpython-3.12")).unwrap();
        let venv = dirs.root.join(".venv/bin");
        link(&venv.join("python"), &uv.join("cpython-3.12/bin/python3.12"));
        // Its target is in no known place, and a command could have made the link.
        program(&dirs.outside.join("python/bin/python3"), "echo chosen by a command");
        link(&venv.join("other"), &dirs.outside.join("python/bin/python3"));
    });
    assert_eq!(fixture.succeeds(".venv/bin/python"), "of uv");
    let refused = fixture.bash(".venv/bin/other");
    assert!([126, 127].contains(&refused.report.status.shell_code()), "{refused:?}");
    assert_eq!(refused.stdout, "");
    let read_only = "echo x >.venv/bin/python";
    assert_ne!(fixture.bash(read_only).report.status.shell_code(), 0);
}

fn a_program_on_path_that_is_a_link_runs_with_its_installation(level: Level) {
    let fixture = fixture(level, |dirs| {
        let tool = dirs.outside.join("apps/tool-2");
        program(&tool.join("bin/tool"), r#"cat "$(dirname "$(readlink -f "$0")")/../lib/data""#);
        fs::create_dir(tool.join("lib")).unwrap();
        fs::write(tool.join("lib/data"), "of the tool").unwrap();
        fs::write(tool.join("notes"), SECRET).unwrap();
        symlink("tool-2", dirs.outside.join("apps/tool")).unwrap();
        link(&dirs.home().join("bin/tool"), &dirs.outside.join("apps/tool/bin/tool"));
    });
    let ran = fixture.run(&on_path(&fixture, "tool"));
    assert_eq!(ran.succeeded("tool"), "of the tool");
    let notes = fixture.dirs.outside.join("apps/tool-2/notes");
    let refused =
        fixture.bash(&format!("cat {} {}", notes.display(), fixture.dirs.secret().display()));
    assert_eq!((refused.report.status.shell_code(), refused.stdout.as_str()), (1, ""));
}

fn a_link_to_keys_stays_closed(level: Level) {
    let fixture = fixture(level, |dirs| {
        program(&dirs.home().join(".ssh/bin/agent"), &format!("echo {SECRET}"));
        fs::create_dir(dirs.home().join(".ssh/lib")).unwrap();
        fs::write(dirs.home().join(".ssh/lib/id"), SECRET).unwrap();
        program(&dirs.home().join("tools/agent"), "echo allowed");
        link(&dirs.home().join("bin/agent"), &dirs.home().join(".ssh/bin/agent"));
        link(&dirs.home().join("bin/twin"), &dirs.home().join("tools/agent"));
        fs::write(dirs.home().join("letter"), SECRET).unwrap();
    });
    let home = fixture.dirs.home().display();
    let refused = format!("agent; cat {home}/.ssh/lib/id {home}/.ssh/bin/agent {home}/letter");
    let refused = fixture.run(&on_path(&fixture, &refused));
    assert_eq!((refused.report.status.shell_code(), refused.stdout.as_str()), (1, ""));
    assert_eq!(fixture.run(&on_path(&fixture, "twin")).succeeded("twin"), "allowed\n");
}
