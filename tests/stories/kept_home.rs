//! A HOME that is kept, as a host and an operator find it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::cli::{Shell, text};
use crate::harness::{Fixture, PROGRAM, names};
use crate::trials::{Need, Trial};
use tool_provider::Payload;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        caches_and_files_are_there_in_the_next_session,
        a_session_with_other_variables_has_another_home,
        what_a_command_makes_in_home_is_named_with_its_place needs [Need::Program("git")],
        a_home_is_discarded_where_the_operator_or_the_machine_says_so,
        what_an_earlier_command_left_is_not_run_before_a_later_one,
        a_person_lists_and_clears_them,
        builds_find_their_home needs [Need::Program("mvn")],
    ]
}

/// A provider with a home of the operator's own.
struct Kept {
    fixture: Fixture,
    home: tempfile::TempDir,
}

impl Kept {
    async fn configured(config: Value) -> Self {
        let home = tempfile::tempdir().unwrap();
        let launched = Fixture::launched_with(|launch| {
            launch.env("HOME", home.path()).env("TOKEN", "a-value-of-some-length")
        });
        let mut fixture = launched.await;
        fixture.configure(config).await.unwrap();
        Self { fixture, home }
    }

    /// The next session in the same place.
    async fn again(&mut self, config: Value) {
        let home = self.home.path();
        let change = |launch: goplugin::host::Launch| {
            launch.env("HOME", home).env("TOKEN", "a-value-of-some-length")
        };
        self.fixture.relaunch_with(change).await;
        self.fixture.configure(config).await.unwrap();
    }

    async fn result(&mut self, command: &str) -> Payload {
        let (_, outcome) = self.fixture.call("bash", json!({ "command": command })).await;
        outcome.unwrap()
    }

    /// The exit code and the notice of a command.
    async fn run(&mut self, command: &str) -> (i64, String) {
        let result = self.result(command).await;
        let notice = result.get("notice").and_then(Value::as_str).unwrap_or_default();
        (result["exit_code"].as_i64().unwrap(), notice.to_owned())
    }

    async fn succeeds(&mut self, command: &str) {
        let result = self.result(command).await;
        assert_eq!(result["exit_code"], 0, "{command}: {result:#?}");
    }

    fn state(&self) -> PathBuf {
        self.fixture.path("").with_file_name("state").join("provider-workspace/homes")
    }

    /// The HOMEs that are kept.
    fn homes(&self) -> Vec<PathBuf> {
        let keys = names(&self.state()).into_iter().filter(|name| name.len() == 32);
        keys.map(|key| self.state().join(key).join("home")).collect()
    }
}

async fn caches_and_files_are_there_in_the_next_session() {
    let mut kept = Kept::configured(json!({})).await;
    kept.succeeds("mkdir -p $XDG_CACHE_HOME/pip && echo kept > $XDG_CACHE_HOME/pip/x").await;
    kept.succeeds("mkdir -p ~/.m2 && echo kept > ~/.m2/x && echo gone > $TMPDIR/x").await;
    kept.again(json!({})).await;
    kept.succeeds("cat ~/.cache/pip/x ~/.m2/x && ! test -e $TMPDIR/x").await;
    assert_eq!(names(kept.home.path()), [""; 0], "the operator's own home");
    assert_eq!(kept.homes().len(), 1);
    kept.fixture.end().await;
}

async fn a_session_with_other_variables_has_another_home() {
    let mut kept = Kept::configured(json!({})).await;
    kept.succeeds("echo 'token=${TOKEN}' > ~/.npmrc").await;
    for rights in [
        json!({"secret_env": ["TOKEN"]}),
        json!({"network": "allow"}),
        json!({"protect": "none"}),
        json!({"bash_write": [kept.state().with_file_name("writes")]}),
    ] {
        kept.again(rights).await;
        kept.succeeds("! test -e ~/.npmrc").await;
    }
    kept.again(json!({"bash_output_bytes": 2000})).await;
    kept.succeeds("test -e ~/.npmrc").await;
    kept.fixture.end().await;
}

async fn what_a_command_makes_in_home_is_named_with_its_place() {
    let mut kept = Kept::configured(json!({})).await;
    let (_, notice) = kept.run("echo x > ~/report.txt; mkdir ~/.hidden").await;
    let at = kept.homes()[0].join("report.txt").canonicalize().unwrap();
    assert!(notice.contains(at.to_str().unwrap()), "{notice}");
    assert!(notice.contains("kept") && !notice.contains("hidden"), "{notice}");
    let (_, notice) = kept.run("cat ~/report.txt; echo y >> ~/report.txt").await;
    assert_eq!(notice, "", "it is there already");
    let (_, notice) = kept.run("for i in 1 2 3 4 5 6 7; do touch ~/f$i; done").await;
    assert!(notice.contains("f4") && notice.contains("and 3 more"), "{notice}");
    let worktree =
        "git init -q . && git -c user.name=n -c user.email=e commit -q --allow-empty -m m &&
        git worktree add -q ~/wt";
    let (_, notice) = kept.run(worktree).await;
    let shown_elsewhere = notice.contains("outside the jail");
    assert_eq!(notice.contains("a worktree, which"), shown_elsewhere, "{notice}");
    assert!(notice.contains("wt"), "{notice}");
    kept.again(json!({"home": "discard"})).await;
    let (_, notice) = kept.run("touch ~/report.txt").await;
    assert!(notice.contains("discarded when the provider ends"), "{notice}");
    kept.fixture.end().await;
}

async fn a_home_is_discarded_where_the_operator_or_the_machine_says_so() {
    let mut kept = Kept::configured(json!({"home": "discard"})).await;
    kept.succeeds("echo x > ~/.x").await;
    kept.again(json!({"home": "discard"})).await;
    kept.succeeds("! test -e ~/.x").await;
    assert!(!kept.state().exists());
    for reached in [json!({"roots": ["root", "state"]}), json!({"bash_read": ["state"]})] {
        kept.again(reached.clone()).await;
        kept.succeeds("! test -e ~/.x && echo x > ~/.x").await;
        assert_eq!(kept.homes(), [""; 0].map(PathBuf::from), "{reached}");
    }
    let doctor = json!({"roots": ["root", "state"]}).to_string();
    let output = Command::new(PROGRAM)
        .args(["doctor", "--json", "--config", &doctor])
        .env("HOME", kept.home.path())
        .env("XDG_STATE_HOME", kept.fixture.path("").with_file_name("state"))
        .current_dir(kept.fixture.path("").parent().unwrap())
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["notices"].to_string().contains("HOME is not kept"), "{report}");
    // Others may enter it.
    let state = kept.state().parent().unwrap().to_owned();
    fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    kept.again(json!({})).await;
    kept.succeeds("! test -e ~/.x").await;
    assert_eq!(kept.homes(), [""; 0].map(PathBuf::from));
    fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    kept.fixture.end().await;
}

async fn what_an_earlier_command_left_is_not_run_before_a_later_one() {
    let mut kept = Kept::configured(json!({})).await;
    let plant = "for f in .bashrc .profile .bash_profile .bash_login .shrc .zshenv; do
            echo 'touch ~/.ran' > ~/$f
        done
        for d in .local/bin go/bin .cargo/bin; do
            mkdir -p ~/$d && printf '#!/bin/sh\\necho own' > ~/$d/ls
            cp ~/$d/ls ~/$d/own-$(basename ~/${d%/bin}) && chmod +x ~/$d/*
        done";
    kept.succeeds(plant).await;
    for shell in ["/bin/bash", "/bin/sh"] {
        kept.again(json!({ "shell": shell })).await;
        kept.succeeds("test \"$(ls -d /)\" = / && ! test -e ~/.ran").await;
        // What is found nowhere else is found there.
        kept.succeeds(
            "test $(own-go) = own && test $(own-.local) = own && test $(own-.cargo) = own",
        )
        .await;
    }
    kept.fixture.end().await;
}

fn a_person_lists_and_clears_them() {
    let shell = Shell::new();
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = shell.command(arguments).env("HOME", home.path()).output().unwrap();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let json = |arguments: &[&str]| -> Value { serde_json::from_str(&run(arguments).1).unwrap() };
    assert!(run(&["home"]).1.starts_with("No HOME is kept"));
    // Nothing is kept of a session without a command.
    assert_eq!(run(&["call", "read_file", "a.txt"]).0, 0);
    assert_eq!(json(&["home", "--json"])["homes"], json!([]));
    let write = "head -c 3000000 /dev/zero > ~/.large; ln -s / ~/.all";
    assert_eq!(run(&["call", "bash", write]).0, 0);
    let network = r#"{"network": "allow"}"#;
    assert_eq!(run(&["call", "bash", "true", "--config", network]).0, 0);
    let listed = json(&["home", "--json"]);
    let homes = listed["homes"].as_array().unwrap();
    assert_eq!(homes.len(), 2, "{listed}");
    let root = shell.path().canonicalize().unwrap();
    for home in homes {
        assert_eq!(home["roots"], json!([root.to_str().unwrap()]), "{listed}");
        assert_eq!(home["in_use"], json!(false), "{listed}");
    }
    let large = homes.iter().find(|home| home["bytes"].as_u64().unwrap() > 2_000_000).unwrap();
    assert!(large["rights"].to_string().contains("network deny"), "{listed}");
    let (_, page, _) = run(&["home"]);
    assert!(page.contains(root.to_str().unwrap()) && page.contains("2 MiB"), "{page}");
    let key = large["key"].as_str().unwrap();
    for wrong in [
        vec!["home", "--clear"],
        vec!["home", "--clear", key, "--all"],
        vec!["home", "--clear", "x"],
    ] {
        assert_eq!(run(&wrong).0, 2, "{wrong:?}");
    }
    assert_eq!(
        run(&["home", "--clear", &key[..8]]),
        (0, format!("removed {key}\n"), String::new())
    );
    assert_eq!(json(&["home", "--json"])["homes"].as_array().unwrap().len(), 1);
    assert_eq!(run(&["home", "--clear", "--all"]).0, 0);
    assert_eq!(json(&["home", "--json"])["homes"], json!([]));
    assert!(root.join("a.txt").is_file());
}

/// Java does not ask the environment where the home is.
async fn builds_find_their_home() {
    let mut kept = Kept::configured(json!({})).await;
    let pom = "<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId>\
         <artifactId>a</artifactId><version>1</version><packaging>pom</packaging></project>";
    kept.fixture.write("pom.xml", pom);
    kept.succeeds("mvn -q -o validate && test -d ~/.m2").await;
    kept.fixture.end().await;
}
