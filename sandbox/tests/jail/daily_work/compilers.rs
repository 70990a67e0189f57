//! Compilers, build tools and debuggers.

use std::path::PathBuf;

use sandbox::Level;

use crate::case::{Case, Need, stories, version_in_registry};
use crate::fixture::Fixture;

pub(crate) fn stories() -> Vec<Case> {
    stories!["daily_work":
        make_and_cc needs [Need::Program("make"), Need::Program("cc")],
        posix_semaphores needs [Need::Program("cc")],
        gdb_of_an_own_child needs [Need::Program("gdb"), Need::Program("cc")],
        strace_of_an_own_child needs [Need::Program("strace")],
        cargo_offline_with_a_registry_dependency needs [Need::Program("cargo"), Need::Program("cc"), Need::Crate("bitflags")],
    ]
}

fn make_and_cc(level: Level) {
    let script = r#"
        printf 'int twice(int n) { return 2 * n; }\n' > twice.c
        printf '#include <stdio.h>\nint twice(int);\nint main(void) { printf("%%d\\n", twice(21)); }\n' > main.c
        printf 'all: main\n\t@./main\nmain: main.o twice.o\n' > Makefile
        make -s -j2"#;
    assert_eq!(Fixture::new(level).succeeds(script), "42\n");
}

fn posix_semaphores(level: Level) {
    let script = r#"cat > semaphore.c <<'END'
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    char name[32];
    snprintf(name, sizeof name, "/story-%d", getpid());
    sem_t *sem = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
    if (sem == SEM_FAILED) { perror("sem_open"); return 1; }
    if (fork() == 0) { sem_post(sem); _exit(0); }
    sem_wait(sem);
    wait(NULL);
    return sem_unlink(name);
}
END
cc -o semaphore semaphore.c -pthread && ./semaphore"#;
    Fixture::new(level).succeeds(script);
}

fn gdb_of_an_own_child(level: Level) {
    let script = r#"
        printf 'int main(void) { return 7; }\n' > seven.c && cc -g -o seven seven.c
        gdb -nx -batch -ex 'break main' -ex run -ex 'print 6 * 7' -ex continue ./seven 2>&1"#;
    let text = Fixture::new(level).succeeds(script);
    assert!(text.contains("$1 = 42") && text.contains("exited with code 07"), "{text}");
}

fn strace_of_an_own_child(level: Level) {
    let script = "strace -f -o trace sh -c 'cat own >/dev/null; true' && cat trace";
    let text = Fixture::new(level).succeeds(script);
    assert!(text.contains(r#""own""#) && text.contains("exited with 0"), "{text}");
}

/// Two crates, the second of which uses the first and a crate of the registry.
fn cargo_offline_with_a_registry_dependency(level: Level) {
    let version = version_in_registry("bitflags").unwrap();
    let fixture = Fixture::with(level, |_, policy| policy.command_read.extend(toolchain()));
    let script = format!(
        r#"
        set -e
        mkdir -p lib/src app/src
        printf '[workspace]\nresolver = "3"\nmembers = ["lib", "app"]\n' > Cargo.toml
        printf '[package]\nname = "lib"\nversion = "0.1.0"\nedition = "2021"\n' > lib/Cargo.toml
        echo 'pub fn answer() -> u32 {{ 42 }}' > lib/src/lib.rs
        mkdir lib/tests
        echo '#[test] fn it_answers() {{ assert_eq!(lib::answer(), 42); }}' > lib/tests/answers.rs
        printf '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nlib = {{ path = "../lib" }}\nbitflags = "={version}"\n' > app/Cargo.toml
        cat > app/src/main.rs <<'END'
bitflags::bitflags! {{ struct Flags: u32 {{ const ALL = 42; }} }}
fn main() {{ println!("{{}}", lib::answer() & Flags::ALL.bits()); }}
END
        cargo build -q --offline
        cargo test -q --offline > tested
        grep -q '1 passed' tested
        cargo run -q --offline"#
    );
    let mut line = fixture.command(&fixture.dirs.root, &["/bin/bash", "-c", &script]);
    for name in ["CARGO_HOME", "RUSTUP_HOME"] {
        line.env.extend(std::env::var_os(name).map(|value| (name.into(), value)));
    }
    assert_eq!(fixture.run(&line).succeeded(&script), "42\n");
}

/// Where the toolchain lies when the environment says so, and not below the home directory.
fn toolchain() -> impl Iterator<Item = PathBuf> {
    ["CARGO_HOME", "RUSTUP_HOME"].into_iter().filter_map(std::env::var_os).map(PathBuf::from)
}
