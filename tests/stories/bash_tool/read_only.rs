//! shell_read in this process: what it gives and what it discards, at both levels.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sandbox::{Level, Namespaces, Network};
use serde_json::{Value, json};
use tool_provider::view::View;
use tool_provider::{CancelToken, Category, Payload, Tool};
use workspace_tools::BashSettings;
use workspace_tools::process::{Environment, Requested};

use super::fixture::{Collector, Fixture};
use crate::environment::member_of;
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        git_gives_what_bash_gives needs [Need::Program("git")],
        looking_with_git_is_no_change needs [Need::Program("git")],
        searches_give_what_bash_gives needs [Need::Program("rg"), Need::Program("make")],
        cargo_test_gives_what_bash_gives needs [Need::Program("cargo")],
        pytest_gives_what_bash_gives needs [Need::Program("pytest")],
        go_test_gives_what_bash_gives needs [Need::Program("go")],
        npm_test_gives_what_bash_gives needs [Need::Program("npm")],
        what_would_have_changed_is_in_the_result,
        a_failed_write_says_why_at_the_kernel_level,
        nothing_of_the_operators_own_environment_is_passed_on,
        no_network_is_open_and_the_notice_says_so,
        four_run_at_once_and_others_wait_in_order,
        a_cancel_ends_the_wait,
        without_a_jail_nothing_runs,
        a_preview_is_one_line,
        files_of_others_and_directories_are_explained needs [Need::Program("git")],
        files_of_a_further_group_are_explained needs [Need::Root, Need::FullJail, Need::Program("setpriv")],
    ]
}

fn at(level: Level) -> impl FnOnce(&mut BashSettings) {
    move |settings| {
        settings.policy.namespaces =
            if level == Level::Full { Namespaces::Auto } else { Namespaces::Never };
    }
}

/// Whether the machine grants namespaces.
fn is_full(fixture: &Fixture) -> bool {
    fixture.jail.enforcement().level == Level::Full
}

fn output(payload: &Payload) -> &str {
    payload["output"].as_str().unwrap()
}

/// Without what differs from run to run: times, and the order of what runs side by side.
fn plain(payload: &Payload) -> (Vec<String>, Value) {
    let is_time =
        |word: &str| word.contains(|c: char| c.is_ascii_digit()) && word.contains(['.', 's']);
    let mut lines: Vec<String> = output(payload)
        .lines()
        .map(|line| {
            let words =
                line.split_whitespace().map(|word| if is_time(word) { "TIME" } else { word });
            words.collect::<Vec<_>>().join(" ").trim_matches(['=', ' ']).to_owned()
        })
        .collect();
    lines.retain(|line| !line.contains("duration_ms") && !line.contains("Compiling"));
    lines.sort();
    (lines, payload["exit_code"].clone())
}

/// Runs it with shell_read, and then with bash: the other way round bash would have made the caches.
fn compare(fixture: &Fixture, command: &str) {
    let before = fs::read_dir(&fixture.root).unwrap().count();
    let read = fixture.read_result(command);
    assert_eq!(fs::read_dir(&fixture.root).unwrap().count(), before, "{command}");
    let bash = fixture.result(command);
    assert_eq!(plain(&read), plain(&bash), "{command}\n{read:#?}\n{bash:#?}");
}

fn git_gives_what_bash_gives() {
    let fixture = Fixture::new();
    fixture.result(
        "git init -qb main . && git config user.email a@b && git config user.name n && echo 1 > a && \
         git add a && git commit -qm one && echo 2 > a && git stash -q && echo 3 >> a && echo n > new",
    );
    for command in [
        "git status",
        "git status --short",
        "git diff",
        "git log --oneline --stat",
        "git stash list",
        "git show HEAD:a",
        "git branch -a; git rev-parse HEAD; git blame -s a",
        "git log -1 --no-such-option",
    ] {
        compare(&fixture, command);
    }
}

/// Not even where the index is old, so that git would write a new one.
fn looking_with_git_is_no_change() {
    let fixture = Fixture::new();
    fixture.result("git init -q . && echo 1 > a && echo 2 > b && git add a b");
    fixture.result("touch -d 2001-01-01 a");
    let result = fixture.read_result("git status --short");
    assert_eq!(
        (output(&result), result.get("would_change")),
        ("A  a\nA  b\n", None),
        "{result:#?}"
    );
    if is_full(&fixture) {
        let result = fixture.read_result("git rm -q --cached a");
        assert_eq!(result["would_change"]["changed"], json!([".git/index"]), "{result:#?}");
    }
}

fn searches_give_what_bash_gives() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.root.join("src/deep")).unwrap();
    for name in ["src/a.rs", "src/deep/b.rs", "Makefile"] {
        fs::write(fixture.root.join(name), "all: a\n\techo needle > a\n").unwrap();
    }
    for command in [
        "make -n",
        "find . -name '*.rs' | sort",
        "rg -n needle | sort",
        "cat src/a.rs; wc -l src/*.rs; ls -la src | wc -l",
        "cat none",
    ] {
        compare(&fixture, command);
    }
}

fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// Builds and tests write, so they are promised with layers only.
fn builds(files: &[(&str, &str)], command: &str, passes: &str) {
    let fixture = Fixture::new();
    if !is_full(&fixture) {
        return;
    }
    write(&fixture.root, files);
    let read = fixture.read_result(command);
    assert!(output(&read).contains(passes), "{read:#?}");
    compare(&fixture, command);
}

fn cargo_test_gives_what_bash_gives() {
    let manifest = "[package]\nname = \"one\"\nedition = \"2021\"\n";
    let code = "#[test]\nfn works() {}\n#[test]\n#[should_panic]\nfn panics() { panic!() }\n";
    let files = [("Cargo.toml", manifest), ("src/lib.rs", code)];
    builds(&files, "cargo test --offline --quiet -- --test-threads 1", "2 passed");
}

fn pytest_gives_what_bash_gives() {
    let files = [("test_one.py", "def test_works():\n    assert True\n")];
    builds(&files, "pytest -q test_one.py", "1 passed");
}

fn go_test_gives_what_bash_gives() {
    let code = "package one\nimport \"testing\"\nfunc TestOne(t *testing.T) {}\n";
    let files = [("go.mod", "module one\n"), ("one_test.go", code)];
    builds(&files, "go test -vet=off -count 1 ./...", "ok");
}

fn npm_test_gives_what_bash_gives() {
    let package = r#"{"name":"one","version":"1.0.0","scripts":{"test":"node test.js"}}"#;
    let files = [("package.json", package), ("test.js", "console.log('all passed')")];
    builds(&files, "npm test --silent", "all passed");
}

fn what_would_have_changed_is_in_the_result() {
    let fixture = Fixture::new();
    if !is_full(&fixture) {
        return;
    }
    write(&fixture.root, &[("a", "a"), ("b", "b"), ("sub/c", "c")]);
    let command = "echo x >> a; rm b; mkdir d; echo h > ~/h-of-shell-read; echo x > sub/c";
    let result = fixture.read_result(command);
    let home = fixture.jail.private().home.as_ref().unwrap().path.join("h-of-shell-read");
    assert_eq!(
        result["would_change"],
        json!({"count": 5, "changed": ["a", "sub/c"], "created": ["d", home], "deleted": ["b"]})
    );
    assert_eq!(fs::read_to_string(fixture.root.join("a")).unwrap(), "a");
    assert!(!fixture.read_result("cat a").contains_key("would_change"));
    let View::Collapsible { children, .. } = fixture.shell_read().render_result(&result) else {
        panic!("a result is collapsible");
    };
    let shown = format!("{children:?}");
    for text in ["5 paths would have changed", "~ a", "+ d", "- b"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    // Of one that is ended, too, nothing stays.
    let collector = Arc::new(Collector::default());
    let cancel = CancelToken::new();
    let script = "echo x > late; echo written; exec sleep 1000";
    let answer = fixture.start_reading(script, collector.clone(), &cancel, None);
    collector.wait_for("written");
    cancel.cancel();
    assert_eq!(answer.recv().unwrap().unwrap_err().category(), Category::Cancelled);
    assert!(!fixture.root.join("late").exists());
}

fn a_failed_write_says_why_at_the_kernel_level() {
    let fixture = Fixture::with(at(Level::Kernel));
    write(&fixture.root, &[("a", "a")]);
    for command in ["echo x > a", "rm a", "chmod 600 a", "touch a", "mkdir d", "mv a b", "ln a b"] {
        let result = fixture.read_result(command);
        assert_ne!(result["exit_code"], 0, "{command}: {result:#?}");
        let notice = result["notice"].as_str().unwrap();
        assert!(notice.contains("this is shell_read") && notice.contains("bash"), "{notice}");
        assert!(!notice.contains("bash_write"), "no setting helps: {notice}");
    }
    let result = fixture.read_result("cat a; echo x > $TMPDIR/x; cat $TMPDIR/x");
    assert_eq!((output(&result), result.get("notice")), ("ax\n", None), "{result:#?}");
    assert_eq!(fixture.result("cat a; echo x > b; cat b")["output"], "ax\n");
}

fn nothing_of_the_operators_own_environment_is_passed_on() {
    let own = [("PATH", "/usr/bin:/bin"), ("PASSED", "passed"), ("TOKEN", "the-secret")];
    let fixture = Fixture::with(|settings| {
        settings.environment = Environment::choose(
            own.map(|(name, value)| (name.into(), value.into())),
            Requested {
                env: Some(&[("PLAIN".to_owned(), "plain".to_owned())].into()),
                env_passthrough: &["PASSED".to_owned()],
                secret_env: &["TOKEN".to_owned()],
                ..Requested::default()
            },
        )
        .unwrap();
    });
    let command = "echo \"$PLAIN,$PASSED,${TOKEN:+set}\"";
    assert_eq!(output(&fixture.read_result(command)), "plain,,\n");
    assert_eq!(output(&fixture.result(command)), "plain,passed,set\n");
}

fn no_network_is_open_and_the_notice_says_so() {
    let fixture = Fixture::with(|settings| settings.policy.network = Network::Allow);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let command = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
    assert_eq!(output(&fixture.result(&command)), "connected\n");
    assert!(!output(&fixture.read_result(&command)).contains("connected"));
    let missed = "curl() { echo 'curl: (6) Could not resolve host: example.com'; return 6; }";
    let result = fixture.read_result(&format!("{missed}; curl https://example.com"));
    assert!(result["notice"].as_str().unwrap().contains("no network"), "{result:#?}");
}

fn four_run_at_once_and_others_wait_in_order() {
    let fixture = Fixture::with(|settings| settings.policy.file_workers = 8);
    let begin = |command: &str, deadline| {
        let (collector, cancel) = (Arc::new(Collector::default()), CancelToken::new());
        let answer = fixture.start_reading(command, collector.clone(), &cancel, deadline);
        (collector, cancel, answer)
    };
    let running: Vec<_> = (0..4).map(|_| begin("echo up; exec sleep 1000", None)).collect();
    for (collector, ..) in &running {
        collector.wait_for("up");
    }
    let late = begin("echo late", Some(Instant::now() + Duration::from_millis(300)));
    let error = late.2.recv().unwrap().unwrap_err();
    assert_eq!(error.category(), Category::ConcurrencyConflict, "{error}");
    assert!(error.is_retryable() && error.to_string().contains("nothing was run"), "{error}");
    let next = begin("echo next", None);
    // bash has no part in that.
    assert_eq!(output(&fixture.result("echo beside")), "beside\n");
    running[0].1.cancel();
    assert_eq!(output(&next.2.recv().unwrap().unwrap()), "next\n");
    for (_, cancel, answer) in &running {
        cancel.cancel();
        assert_eq!(answer.recv().unwrap().unwrap_err().category(), Category::Cancelled);
    }
}

fn a_cancel_ends_the_wait() {
    let fixture = Fixture::with(|settings| settings.policy.file_workers = 8);
    let cancels: Vec<CancelToken> = (0..4).map(|_| CancelToken::new()).collect();
    let mut answers = Vec::new();
    for cancel in &cancels {
        let collector = Arc::new(Collector::default());
        let script = "echo up; exec sleep 1000";
        answers.push(fixture.start_reading(script, collector.clone(), cancel, None));
        collector.wait_for("up");
    }
    let cancel = CancelToken::new();
    let answer = fixture.start_reading("echo never", Arc::default(), &cancel, None);
    cancel.cancel();
    assert_eq!(answer.recv().unwrap().unwrap_err().category(), Category::Cancelled);
    cancels.iter().for_each(CancelToken::cancel);
    for answer in answers {
        assert_eq!(answer.recv().unwrap().unwrap_err().category(), Category::Cancelled);
    }
}

/// Its risk is a promise: without what keeps it, nothing runs.
fn without_a_jail_nothing_runs() {
    let fixture = Fixture::with(|settings| settings.policy.mode = sandbox::Mode::Off);
    let error = fixture.read("echo ran").unwrap_err();
    assert_eq!(error.category(), Category::PermissionDenied);
    assert!(error.whole_message().contains("use bash"), "{error}");
    assert_eq!(output(&fixture.result("echo ran")), "ran\n");
}

fn a_preview_is_one_line() {
    let fixture = Fixture::new();
    let Value::Object(arguments) = json!({"command": "cargo test\nls \u{202e}", "cwd": "sub"})
    else {
        unreachable!()
    };
    let shown = fixture.shell_read().render_call(&arguments);
    assert_eq!(shown, View::plain("shell_read: cargo test … in sub"));
}

fn files_of_others_and_directories_are_explained() {
    let fixture = Fixture::new();
    if !is_full(&fixture) || rustix::process::geteuid().is_root() {
        // Root's layers take both.
        let result =
            fixture.read_result("git init -q . ; mkdir d; touch d/f; git add d; git mv d e; ls");
        assert!(result["exit_code"] == 0 || !is_full(&fixture), "{result:#?}");
        return;
    }
    fixture.result("git init -q . ; mkdir d; touch d/f; git add d");
    let result = fixture.read_result("git mv d e");
    let notice = result["notice"].as_str().unwrap_or_else(|| panic!("{result:#?}"));
    assert!(notice.contains("cannot be renamed in shell_read"), "{notice}");
    assert_eq!(output(&fixture.read_result("mv d e && ls")), "e\n");
}

/// An ordinary user's namespace has names for one user and one group only.
async fn files_of_a_further_group_are_explained() {
    const FURTHER: u32 = 4242;
    let mut fixture = member_of(FURTHER).await;
    for (name, group) in [("theirs", FURTHER), ("own", 65534)] {
        fixture.write(name, "old\n");
        std::os::unix::fs::chown(fixture.path(name), Some(65534), Some(group)).unwrap();
    }
    fixture.configure(json!({})).await.unwrap();
    let mut run = async |tool: &str, command: &str| {
        fixture.call(tool, json!({"command": command})).await.1.unwrap()
    };
    let own = run("shell_read", "echo new >> own && cat own").await;
    assert_eq!(output(&own), "old\nnew\n", "{own:#?}");
    let theirs = run("shell_read", "echo new >> theirs").await;
    let notice = theirs["notice"].as_str().unwrap_or_else(|| panic!("{theirs:#?}"));
    assert!(notice.contains("of a supplementary group") && notice.contains("use bash"), "{notice}");
    assert_eq!(output(&run("bash", "echo new >> theirs && cat theirs").await), "old\nnew\n");
    fixture.end().await;
}
