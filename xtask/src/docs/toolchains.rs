//! `docs/toolchains.md`: what the stories of package managers found, which run the real programs.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;

use workspace_tools::process::package_managers::described;

use super::MADE;
use super::markdown::{code, table};
use crate::root;

/// What was recorded: tool, version, network, level, user and result, parted by tabs.
const STORED: &str = "docs/toolchains.tsv";
const COLUMNS: [(&str, &str); 4] =
    [("full", "root"), ("full", "user"), ("kernel", "root"), ("kernel", "user")];
const NOT_TRIED: &str = "–";

/// One cell: tool, version, network, level, user and result.
type Cell = [String; 6];

/// Adds what the stories recorded to what is stored, and writes the pages.
pub(crate) fn store(files: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut stored: BTreeMap<_, Cell> = cells(&read(STORED)).map(keyed).collect();
    for file in files {
        stored.extend(cells(&fs::read_to_string(file)?).map(keyed));
    }
    let lines: String = stored.values().map(|cell| cell.join("\t") + "\n").collect();
    fs::write(root().join(STORED), lines)?;
    super::write()
}

/// A cell behind what distinguishes it: a newer version replaces an older one.
fn keyed(cell: Cell) -> ([String; 4], Cell) {
    let [tool, _, network, level, user, _] = cell.clone();
    ([tool, network, level, user], cell)
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_default()
}

fn cells(text: &str) -> impl Iterator<Item = Cell> + '_ {
    text.lines().filter_map(|line| {
        let fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        fields.try_into().ok()
    })
}

pub(super) fn page() -> String {
    let variables: Vec<_> = described()
        .into_iter()
        .map(|variable| vec![code(variable.name), code(&variable.value), variable.set])
        .collect();
    format!(
        "# Toolchains and package managers\n{MADE}\n{}\n{}\n## What was tried\n\n{}\n{}\n\
         ## Variables\n\n{}\n{}",
        INTRODUCTION,
        LIMITS,
        TRIED,
        results(&cells(&read(STORED)).collect::<Vec<_>>()),
        VARIABLES,
        table(&["variable", "value", "set"], &variables),
    )
}

const INTRODUCTION: &str = "\
Commands use the toolchains of the operator, read-only: those of `PATH` with their installations, and what version managers keep in the
home directory ([the list](../sandbox/README.md#what-commands-get-besides-the-roots)). What a command gets from a network or installs goes
to its own HOME, which is kept for later sessions with the same rights. What the operator has got already is used where a package manager
can work with that: crates and rustup's toolchains with a network and without; without one Go's modules, Maven's repository, and the caches
of npm, pnpm, Yarn 1 and uv in their usual places.

Registries, mirrors and certificates that are named in the environment or in the home directory (`.npmrc`, `pip.conf`, `settings.xml`,
`go env -w`) are the operator's alone: such files hold tokens. Name them for commands with `env`, `env_passthrough` or `secret_env`
(`npm_config_registry`, `PIP_INDEX_URL`, `GOPROXY`, `SSL_CERT_FILE`), or put a file without tokens into the project.
";

const LIMITS: &str = "\
## What does not work

- **Packages of the system** (`apt-get install` and the like) are not for commands to install.
- **Two roots are two file systems** at the level `full`, and so are a root, HOME and `/tmp`: `rename` and `link` between them fail with
  EXDEV (\"Invalid cross-device link\"). `mv` and most package managers copy instead; `ln`, `cp -l` and Python's `os.rename` do not.
- **As root at the level `kernel`** `pip install` outside of a virtual environment does not see that it cannot write beside the interpreter,
  and fails; it names `--user`, which works.
- **Java** takes the home from the system. Maven, Gradle and Ant are told where HOME is; any other Java program that wants `~` needs
  `-Duser.home=$HOME -Djava.io.tmpdir=$TMPDIR` at the level `kernel`; a notice says so.
- **Gradle** talks to itself over the loopback, which a jail at the level `kernel` has only with `network = \"allow\"`.
- **Unix sockets** cannot be made at the level `kernel`, whatever `network` says: gpg (so signed commits), ssh-agent, tmux and databases by
  a socket need the level `full`; a notice says so.
- **nvm** refuses to work where npm is told a prefix. Where the operator has it, `npm install -g` needs `--prefix ~/.prefix`.
- **rustup** cannot change a toolchain of the operator's (`rustup target add`); one that it installs itself it can: `rustup toolchain install
  VERSION --target TARGET`, and then `cargo +VERSION`. A notice says so.
- **corepack** cannot put programs beside the operator's node; `corepack enable --install-directory ~/.prefix/bin` puts them on PATH.
- **Poetry** asks the registry about each package that it installs, also where its cache has it: without a network `poetry install` fails,
  outside of a jail too (2.5.1, with a lock file and all packages in the cache: `/pypi/colorama/0.4.6/json` cannot be resolved).
- **pnpm 12** at the level `kernel` has a lock in `/tmp` whatever `TMPDIR` says, which commands may not write there; 9 and 10 work.
- **Gradle's cache** that the operator has is not used: it needs Gradle 6.1, which reads a second one (`GRADLE_RO_DEP_CACHE`).
- **Large caches** without a network: a start of the provider links 20 000 files. Of uv's the newest packages are there first, the others from
  a later start on; pnpm's store is then there to read, but a package of a local file cannot be put beside it.
- **What Maven forks for tests** is not told where HOME is: at the level `kernel` a test that makes a temporary file needs
  `-DargLine=\"-Djava.io.tmpdir=$TMPDIR -Duser.home=$HOME\"`; a notice says so.
- **pyenv** installs no Pythons, and `pip install` makes no new shims: programs are in `~/.prefix/bin` or `~/.local/bin`.
";

const TRIED: &str = "\
The stories of `tests/stories/package_managers.rs` run each program in the jail and record here what came of it
(`TOOLCHAINS_RECORD=FILE cargo test --test stories package_managers::`, then `cargo run -p xtask -- toolchains FILE`).
";

const VARIABLES: &str = "\
`env` replaces each of them. The usual places are left as they are where they belong to commands.
";

fn results(cells: &[Cell]) -> String {
    let rows: BTreeSet<(&str, &str)> =
        cells.iter().map(|[tool, _, network, ..]| (tool.as_str(), network.as_str())).collect();
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(tool, network)| {
            let of_row = || cells.iter().filter(move |cell| cell[0] == tool && cell[2] == network);
            let versions: BTreeSet<&str> = of_row().map(|cell| cell[1].as_str()).collect();
            let result = |(level, user): (&str, &str)| {
                let mut cells = of_row().filter(|cell| cell[3] == level && cell[4] == user);
                cells.next().map_or_else(|| NOT_TRIED.to_owned(), |cell| cell[5].clone())
            };
            let way = if network == "deny" { "offline" } else { "network" };
            let versions = versions.into_iter().collect::<Vec<_>>().join(", ");
            let mut row = vec![format!("{tool} {versions}"), way.to_owned()];
            row.extend(COLUMNS.map(result));
            row
        })
        .collect();
    let headers = ["tool", "", "full, root", "full, user", "kernel, root", "kernel, user"];
    table(&headers, &rows)
}
