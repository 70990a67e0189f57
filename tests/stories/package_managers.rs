//! Package managers work: offline with what the operator has, and with a network beside it. Each story runs
//! the real program as the operator would first, and then in the jail, at each of its levels.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::geteuid;
use serde_json::{Value, json};

use crate::cli::text;
use crate::harness::names;
use crate::levels::{Machine, machines};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        cargo needs [Need::Program("cargo"), Need::Registry("cargo info itoa")],
        npm needs [Need::Program("npm"), Need::Registry("npm view is-number version")],
        pnpm needs [Need::Rare("pnpm"), Need::Registry("npm view is-number version")],
        yarn needs [Need::Rare("yarn"), Need::Registry("npm view is-number version")],
        pip needs [Need::Program("pip"), Need::Registry("pip index versions colorama")],
        uv needs [Need::Rare("uv"), Need::Registry("pip index versions colorama")],
        poetry needs [Need::Rare("poetry"), Need::Registry("pip index versions colorama")],
        go needs [Need::Program("go"), Need::Registry("go list -m golang.org/x/exp@latest")],
        maven needs [Need::Program("mvn"), Need::Registry(MAVEN)],
        gem needs [Need::Rare("gem")],
        composer needs [Need::Rare("composer")],
        gradle needs [Need::Rare("gradle")],
    ]
}

/// Gets a plugin that needs no others.
const MAVEN: &str =
    "mvn -q -B -Dmaven.repo.local=. org.apache.maven.plugins:maven-clean-plugin:3.2.0:help";

/// What tells these programs where their registries are and whom they trust, where a machine has it in its
/// environment. An operator names it.
const SETTINGS: [&str; 14] = [
    "CARGO_HTTP_CAINFO",
    "GOPROXY",
    "GOSUMDB",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "PIP_CERT",
    "PIP_INDEX_URL",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
    "UV_DEFAULT_INDEX",
    "npm_config_cafile",
    "npm_config_registry",
];

/// The variable that names the file for what came of each call.
const RECORD: &str = "TOOLCHAINS_RECORD";

/// A home that the story's operator has, with the version managers of the machine.
struct Operator {
    directory: tempfile::TempDir,
    /// The tool of the story, and its version.
    tool: &'static str,
    version: String,
}

impl Operator {
    fn new(tool: &'static str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut operator = Self { directory, tool, version: String::new() };
        fs::create_dir_all(operator.at("home")).unwrap();
        fs::create_dir(operator.at("project")).unwrap();
        let real = std::env::var_os("HOME").map(PathBuf::from).unwrap();
        for manager in [".rustup", ".pyenv", ".nvm", ".cargo/config.toml"] {
            if real.join(manager).exists() {
                let link = operator.at("home").join(manager);
                fs::create_dir_all(link.parent().unwrap()).unwrap();
                std::os::unix::fs::symlink(real.join(manager), link).unwrap();
            }
        }
        if std::env::var_os(RECORD).is_some() {
            operator.version = operator.version();
        }
        operator
    }

    /// The version that the tool says it has.
    fn version(&self) -> String {
        let argument = if self.tool == "go" { "version" } else { "--version" };
        let output = self.command(self.tool, &[argument]).output().unwrap();
        let text = all(&output);
        let is_version = |word: &&str| {
            let word = word.trim_start_matches("go");
            word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')
        };
        let found = text.split_whitespace().map(|word| word.trim_end_matches([',', ')']));
        let found = found.map(|word| word.split('\x1b').next().unwrap_or(word)).find(is_version);
        found.unwrap_or_default().trim_start_matches("go").to_owned()
    }

    /// Notes what came of a call, for the table of toolchains.
    fn record(&self, machine: Machine, network: &str, result: &str) {
        let Some(path) = std::env::var_os(RECORD) else { return };
        let is_full = machine == Machine::Plain && machines().len() > 1;
        let level = if is_full { "full" } else { "kernel" };
        let user = if geteuid().is_root() { "root" } else { "user" };
        let line = [self.tool, &self.version, network, level, user, result].join("\t") + "\n";
        let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), content).unwrap();
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.at("project")).stdin(Stdio::null());
        command.env("HOME", self.at("home")).env("XDG_STATE_HOME", self.at("state"));
        // Java does not ask the environment.
        command.env("MAVEN_OPTS", format!("-Duser.home={}", self.at("home").display()));
        let own = ["CARGO_HOME", "CARGO_TARGET_DIR", "PNPM_HOME", "RUSTUP_TOOLCHAIN"];
        for name in own.into_iter().chain(["UV_CACHE_DIR", "XDG_CACHE_HOME", "YARN_CACHE_FOLDER"]) {
            command.env_remove(name);
        }
        command
    }

    /// What the operator runs in the project, outside the jail.
    fn runs(&self, script: &str) {
        let output = self.command("sh", &["-ec", script]).output().unwrap();
        assert!(output.status.success(), "{script}: {}", all(&output));
    }

    /// What a command in a new project prints, which must be a success.
    fn call(&self, machine: Machine, network: &str, script: &str) -> String {
        let project = self.at(&format!("{network}-{machine:?}"));
        if !project.exists() {
            copy(&self.at("project"), &project);
        }
        let arguments = json!({"command": format!("set -e\n{script}")}).to_string();
        let config = json!({"network": network, "env_passthrough": SETTINGS}).to_string();
        let root = project.to_str().unwrap();
        let call = ["call", "bash", &arguments, "--json", "--root", root, "--config", &config];
        let mut command = self.command(machine.words()[0], &machine.words()[1..]);
        let output = command.args(call).current_dir(&project).output().unwrap();
        let result = if output.status.success() { "works" } else { "fails" };
        self.record(machine, network, result);
        assert!(output.status.success(), "{machine:?} {network}: {script}: {}", all(&output));
        let events = text(&output.stdout);
        let result: Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
        result["payload"]["output"].as_str().unwrap_or_default().to_owned()
    }
}

fn all(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

fn cargo() {
    let operator = Operator::new("cargo");
    operator.runs("cargo init -q --name demo --vcs none && cargo add -q itoa && cargo fetch -q");
    for &machine in machines() {
        operator.call(machine, "deny", "cargo build -q && cargo run -q");
        // The operator's crates are used, and new ones come beside them.
        let used = "cargo fetch -q --offline && find $CARGO_HOME/registry/cache/ -type l | wc -l";
        assert_eq!(operator.call(machine, "allow", used).trim(), "1");
        let more = "cargo add -q either && cargo fetch -q && cargo build -q --offline
            cargo install -q --path . && demo";
        assert_eq!(operator.call(machine, "allow", more), "Hello, world!\n");
        let again = "cargo build -q --offline && demo";
        assert_eq!(operator.call(machine, "allow", again), "Hello, world!\n");
    }
    let registry = operator.at("home/.cargo/registry/cache");
    let crates = names(&registry.join(&names(&registry)[0]));
    assert!(crates.len() == 1 && crates[0].starts_with("itoa-"), "{crates:?}");
}

fn npm() {
    let operator = Operator::new("npm");
    operator.write("project/package.json", r#"{"name": "demo", "version": "1.0.0"}"#);
    operator.runs("npm install --silent is-number@7 && rm -r node_modules");
    for &machine in machines() {
        let offline = "npm ci --silent --offline && node -p 'require(\"is-number\")(7)'";
        assert_eq!(operator.call(machine, "deny", offline), "true\n");
        let more = "npm install --silent left-pad@1.3.0 && node -p 'require(\"left-pad\")(7, 2, 0)'
            npm install --silent -g semver@7 && semver 1.2.3";
        assert_eq!(operator.call(machine, "allow", more), "07\n1.2.3\n");
    }
}

fn pnpm() {
    node("pnpm", "pnpm add --silent is-number@7.0.0", "pnpm add --silent -g semver@7");
}

fn yarn() {
    node("yarn", "yarn add --silent is-number@7.0.0", "yarn global add --silent semver@7");
}

fn node(tool: &'static str, add: &str, add_for_all: &str) {
    let operator = Operator::new(tool);
    operator.write("project/package.json", r#"{"name": "demo", "private": true}"#);
    // Root's Yarn would not ask for HOME.
    let folder = "export YARN_CACHE_FOLDER=$HOME/.cache/yarn";
    operator.runs(&format!("{folder}; {tool} add --silent semver@7.6.0 && rm -r node_modules"));
    operator.write("project/part/package.json", r#"{"name": "part", "version": "1.0.0"}"#);
    operator.runs("cd part && npm pack --silent && rm package.json");
    for &machine in machines() {
        // What is installed is the project's own, and what the operator does not have comes beside.
        let offline = format!(
            "{tool} install --silent --offline --frozen-lockfile >&2 && node_modules/.bin/semver 1.2.3
             echo >>node_modules/semver/index.js
             test -z \"$(find node_modules/semver/ -type l)\"
             {tool} add --silent --offline ./part/part-1.0.0.tgz >&2 && test -d node_modules/part
             mkdir -p other/one && cd other/one && echo '{{\"private\": true}}' >package.json
             {tool} add --silent --offline semver@7.6.0 >&2 && test -d node_modules/semver"
        );
        assert_eq!(operator.call(machine, "deny", &offline), "1.2.3\n");
        let script = format!(
            "{add} >&2 && node -p 'require(\"is-number\")(7)'
             {add_for_all} >&2 && semver 1.2.3"
        );
        let output = operator.call(machine, "allow", &script);
        assert!(output.contains("true\n") && output.ends_with("1.2.3\n"), "{output}");
    }
}

/// Distributions have their own Python's packages installed by themselves alone, unless told so.
const PIP: &str = "export PIP_BREAK_SYSTEM_PACKAGES=1 PIP_DISABLE_PIP_VERSION_CHECK=1";

fn pip() {
    let operator = Operator::new("pip");
    operator.runs(&format!(
        "{PIP}; mkdir wheels && pip wheel -q --no-deps -w wheels toolz==0.11.1
         pip install -q --user --no-index --find-links wheels toolz
         mkdir -p ~/.local/bin && touch ~/.local/bin/of-the-operator"
    ));
    for &machine in machines() {
        let offline = format!("{PIP}; python3 -c 'import toolz; print(toolz.__version__)'");
        assert_eq!(operator.call(machine, "deny", &offline), "0.11.1\n");
        let local = format!("{PIP}; pip install -q --no-index --find-links wheels -t t toolz");
        operator.call(machine, "deny", &local);
        let more = format!(
            "{PIP}; pip install -q --user --no-warn-script-location pyjokes==0.6.0
             python3 -c 'import toolz, pyjokes' && pyjoke >/dev/null
             python3 -m venv --without-pip v && pip --python v/bin/python install -q colorama
             v/bin/python -c 'import colorama; print(1)'"
        );
        assert!(operator.call(machine, "allow", &more).ends_with("1\n"));
    }
    assert_eq!(names(&operator.at("home/.local/bin")), ["of-the-operator"]);
}

fn uv() {
    let operator = Operator::new("uv");
    operator.runs("mkdir -p ~/.local/bin ~/.local/share/uv/tools");
    let project = "[project]\nname = 'demo'\nversion = '1'\nrequires-python = '>=3.8'\n\
        description = 'Demo'\ndependencies = ['colorama', 'tokenize-rt']\n\
        [build-system]\nrequires = ['flit-core']\nbuild-backend = 'flit_core.buildapi'\n";
    operator.write("project/pyproject.toml", project);
    operator.write("project/demo.py", "");
    operator.runs("uv sync -q && rm -r .venv");
    for &machine in machines() {
        // The project is built in the jail, with what the operator has.
        let offline = "uv sync -q --offline && .venv/bin/python -c 'import colorama, tokenize_rt, demo'
            test -z \"$(find .venv/lib/ -name '*.py' -type l)\" && uv lock -q --offline && echo done";
        assert_eq!(operator.call(machine, "deny", offline), "done\n");
        let script = "uv venv -q v && uv pip install -q --python v/bin/python colorama
            v/bin/python -c 'import colorama'
            uv tool install -q pyjokes==0.6.0 && pyjoke >/dev/null && echo done";
        assert!(operator.call(machine, "allow", script).ends_with("done\n"));
    }
}

fn poetry() {
    let operator = Operator::new("poetry");
    operator.runs("poetry init -q -n --name demo");
    for &machine in machines() {
        let script =
            "poetry add -q colorama && poetry run python -c 'import colorama; print(\"done\")'";
        assert!(operator.call(machine, "allow", script).ends_with("done\n"));
    }
}

fn go() {
    let operator = Operator::new("go");
    operator.write("project/x.go", "package x\n\nimport _ \"golang.org/x/exp/constraints\"\n");
    operator.runs("go mod init x && go mod tidy && mkdir -p ~/go/bin && touch ~/go/bin/of-mine");
    for &machine in machines() {
        operator.call(machine, "deny", "go build ./... && go mod verify");
        let more = "go mod download golang.org/x/sync@latest && go build ./...
            touch \"$(go env GOBIN)/made\" && command -v made";
        let more =
            format!("mkdir -p \"$(go env GOBIN)\"; {more}").replace("command -v made", "true");
        operator.call(machine, "allow", &more);
    }
    assert_eq!(names(&operator.at("home/go/bin")), ["of-mine"]);
}

fn maven() {
    let operator = Operator::new("mvn");
    let pom = "<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId>\
        <artifactId>a</artifactId><version>1</version><packaging>pom</packaging></project>";
    operator.write("project/pom.xml", pom);
    operator.runs("mvn -q -B clean");
    for &machine in machines() {
        operator.call(machine, "deny", "mvn -q -B -o clean");
        operator.call(machine, "allow", "mvn -q -B clean && test -d ~/.m2/repository");
    }
}

fn gem() {
    let operator = Operator::new("gem");
    let specification = "Gem::Specification.new { |s| s.name = 'demo'; s.version = '0.1'\n\
        s.summary = s.name; s.authors = ['a']; s.files = ['bin/demo']\n\
        s.bindir = 'bin'; s.executables = ['demo'] }\n";
    operator.write("project/demo.gemspec", specification);
    operator.write("project/bin/demo", "puts 'done'\n");
    operator.runs("chmod +x bin/demo");
    for &machine in machines() {
        let script =
            "gem build -q demo.gemspec && gem install -q --local --no-document demo-0.1.gem";
        let output = operator.call(machine, "deny", &format!("{script} && demo"));
        assert!(output.ends_with("done\n"), "{output}");
    }
}

fn composer() {
    let operator = Operator::new("composer");
    operator.write("project/part/composer.json", r#"{"name": "demo/part", "version": "1.0.0"}"#);
    let packages = json!({
        "name": "demo/demo",
        "repositories": [{"type": "path", "url": "part"}, {"packagist.org": false}],
        "require": {"demo/part": "1.0.0"}
    });
    operator.write("project/composer.json", &packages.to_string());
    for &machine in machines() {
        operator.call(machine, "deny", "composer install -q && test -d vendor/demo/part");
    }
}

fn gradle() {
    let operator = Operator::new("gradle");
    operator.write("project/build.gradle", "task demo { doLast { println 'done' } }\n");
    for &machine in machines() {
        // Where namespaces are refused, a jail without a network has no loopback either.
        let script = "gradle --offline --no-daemon -q demo";
        assert!(operator.call(machine, "allow", script).ends_with("done\n"));
    }
}
