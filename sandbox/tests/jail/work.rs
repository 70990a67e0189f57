//! Ordinary work of a developer passes in the jail, by the real programs.

use sandbox::{Namespaces, Policy};

use crate::support::{Story, at_each_level, installed, skip, with_policy};

/// Tells that a script passes at each level, if its programs are there.
fn passes(programs: &[&str], script: &str) {
    if installed(programs) {
        at_each_level(|story| {
            story.succeeds(script);
        });
    }
}

#[test]
fn here_documents_of_any_size_and_process_substitution() {
    passes(
        &[],
        r#"text=$(head -c 70000 /dev/zero | tr '\0' a)
           [ "$(cat <<< "$text" | wc -c)" = 70001 ] && [ "$(cat <(echo x))" = x ] &&
           echo y > >(cat > /dev/null)"#,
    );
}

#[test]
fn the_usual_devices() {
    passes(
        &[],
        "echo a > /dev/null && [ $(head -c 4 /dev/urandom | wc -c) = 4 ] &&
         [ $(head -c 4 /dev/random | wc -c) = 4 ] && head -c 4 /dev/zero > /dev/null &&
         ! echo full > /dev/full && cat /dev/fd/0 < $ROOT/../root/. 2> /dev/null;
         echo x | cat /dev/stdin > /dev/stdout",
    );
}

#[test]
fn a_terminal_of_ones_own() {
    passes(
        &["script"],
        "[ \"$(script -qec 'test -t 0 && echo tty' /dev/null | tr -d '\\r')\" = tty ]",
    );
}

#[test]
fn temporary_files_wherever_programs_put_them() {
    passes(
        &["sort"],
        "f=$(mktemp) && d=$(mktemp -d) && echo x > $f && rm -r $f $d &&
         seq 300000 | sort -R -S 1M > sorted && [ $(wc -l < sorted) = 300000 ] &&
         mkdir -p ~/.cache/tool && echo x > ~/.cache/tool/file && cat ~/.cache/tool/file &&
         echo x > $XDG_CACHE_HOME/file",
    );
}

#[test]
fn tmp_itself_is_private_at_the_full_level() {
    at_each_level(|story| {
        let outcome = story.run("echo x > /tmp/jail-story-private && cat /tmp/jail-story-private");
        assert_eq!(outcome.code() == 0, story.level == sandbox::Level::Full);
        assert!(!std::path::Path::new("/tmp/jail-story-private").exists());
    });
}

const REPOSITORY: &str = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
    GIT_COMMITTER_EMAIL=a@b; git init -q -b main repo && cd repo && echo 1 > f && git add f && \
    git commit -qm one && ";

#[test]
fn git_from_init_to_gc() {
    passes(
        &["git"],
        &format!(
            "{REPOSITORY} echo 2 > f && git commit -qam two && git diff HEAD~1 > /dev/null &&
             [ $(git log --oneline | wc -l) = 2 ] && git worktree add -q ../tree && cd ../tree &&
             echo 3 > g && git add g && git commit -qm three && cd ../repo && git gc -q &&
             git clone -q . ../clone && git -C ../clone status > /dev/null"
        ),
    );
}

#[test]
fn a_worktree_works_when_its_git_folder_is_granted_and_a_forged_pointer_widens_nothing() {
    if !installed(&["git"]) {
        return;
    }
    let work = "echo 1 > f && git add -A && git -c user.name=a -c user.email=a@b commit -qm t && \
                git log --oneline | wc -l";
    let with_worktree = |story: &Story, write: bool| {
        let main = story.outside.join("main");
        let policy_root = story.root.join("tree");
        if !main.exists() {
            let set_up = format!(
                "cd {} && git init -q -b main main && git -C main -c user.name=a \
                 -c user.email=a@b commit -q --allow-empty -m x && \
                 git -C main worktree add -q {}",
                story.outside.display(),
                policy_root.display()
            );
            let done = std::process::Command::new("bash").args(["-c", &set_up]).status().unwrap();
            assert!(done.success());
        }
        let mut policy = Policy {
            roots: vec![policy_root],
            private_in: Some(story.root.parent().unwrap().join("private")),
            spawner_program: Some(crate::support::spawner()),
            ..Policy::default()
        };
        if write {
            policy.command_write.push(main.join(".git"));
        }
        policy
    };
    for namespaces in [Namespaces::Auto, Namespaces::Never] {
        let plain = Story::begin(namespaces, |_, _| {});
        let mut refused = with_worktree(&plain, false);
        refused.namespaces = namespaces;
        let (root, outside) = (plain.root.join("tree"), plain.outside.clone());
        let mut story = plain;
        story.root = root.clone();
        story.jail = sandbox::Jail::build(&refused).unwrap();
        let outcome = story.run(work);
        assert_ne!(outcome.code(), 0, "{outcome:?}");
        let git = outside.join("main/.git");
        let why = story.jail.explain(sandbox::Subject::Command, sandbox::Access::Write, &git);
        assert_eq!(why.map(|why| why.setting.key()), Some("bash_write"));

        story.root = root.parent().unwrap().to_owned();
        let mut granted = with_worktree(&story, true);
        granted.namespaces = namespaces;
        story.root = root.clone();
        story.jail = sandbox::Jail::build(&granted).unwrap();
        assert_eq!(story.succeeds(work).trim(), "2");

        story.succeeds(&format!("echo 'gitdir: {}' > .git", outside.display()));
        story.jail = sandbox::Jail::build(&granted).unwrap();
        assert_ne!(story.run("cat $OUTSIDE/secret").code(), 0);
    }
}

#[test]
fn cargo_builds_and_tests_two_crates_offline() {
    if !installed(&["cargo", "cc"]) {
        return;
    }
    let Some((name, version)) = cached_crate() else {
        skip("a dependency from the registry: none of the small ones is in cargo's cache");
        return;
    };
    at_each_level(|story| {
        let set_up = format!(
            r#"mkdir -p app/src lib/src && printf '[workspace]\nmembers = ["app", "lib"]\nresolver = "2"\n' > Cargo.toml
            printf '[package]\nname = "lib"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n{name} = "={version}"\n' > lib/Cargo.toml
            printf '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nlib = {{ path = "../lib" }}\n' > app/Cargo.toml
            echo 'pub use {ident} as dependency; pub fn two() -> u32 {{ 2 }} #[test] fn is_two() {{ assert_eq!(two(), 2) }}' > lib/src/lib.rs
            echo 'fn main() {{ println!("{{}}", lib::two()) }}' > app/src/main.rs
            cargo build -q --offline && cargo test -q --offline && cargo run -q --offline"#,
            ident = name.replace('-', "_"),
        );
        let said = story.succeeds(&set_up);
        assert!(said.ends_with("2\n"), "{said}");
    });
}

/// A small crate without dependencies in cargo's cache.
fn cached_crate() -> Option<(&'static str, String)> {
    let home = std::env::var_os("CARGO_HOME")
        .or_else(|| Some(std::path::Path::new(&std::env::var_os("HOME")?).join(".cargo").into()))?;
    let caches = std::fs::read_dir(std::path::Path::new(&home).join("registry/cache")).ok()?;
    let files: Vec<_> = caches
        .flatten()
        .flat_map(|cache| std::fs::read_dir(cache.path()).into_iter().flatten().flatten())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    ["cfg-if", "fastrand", "itoa", "strsim", "heck"].into_iter().find_map(|name| {
        let version = |file: &String| {
            let version = file.strip_prefix(name)?.strip_prefix('-')?.strip_suffix(".crate")?;
            version.starts_with(|first: char| first.is_ascii_digit()).then(|| version.to_owned())
        };
        files.iter().find_map(version).map(|version| (name, version))
    })
}

#[test]
fn python_with_processes_semaphores_and_shared_memory() {
    passes(
        &["python3"],
        "cat > work.py <<'END'
import multiprocessing as m, tempfile, asyncio
from multiprocessing import shared_memory
def work(n): return n * n
if __name__ == '__main__':
    with m.Pool(2) as pool: assert sum(pool.map(work, [1, 2])) == 5
    s = m.Semaphore(1); s.acquire(); s.release()
    b = shared_memory.SharedMemory(create=True, size=10); b.close(); b.unlink()
    tempfile.TemporaryFile().write(b'x')
    asyncio.run(asyncio.create_subprocess_exec('true'))
END
python3 work.py",
    );
}

#[test]
fn node_with_a_worker_and_a_child() {
    passes(
        &["node"],
        r#"node -e 'const { Worker } = require("worker_threads"); new Worker("0", { eval: true });
           require("child_process").execSync("true"); require("fs").watch(".").close()'"#,
    );
}

#[test]
fn make_and_a_compiler() {
    passes(
        &["make", "cc"],
        r#"echo 'int main(void) { return 0; }' > main.c; printf 'main: main.c\n\tcc -o $@ $<\n' > Makefile
           make -s && ./main"#,
    );
}

#[test]
fn debuggers_of_ones_own_children() {
    passes(&["strace"], "strace -f -o trace bash -c 'true; true' && grep -q exit_group trace");
    passes(
        &["gdb", "cc"],
        r#"echo 'int main(void) { return 0; }' > main.c && cc -g -o main main.c &&
           gdb -batch -ex 'break main' -ex run -ex 'print 6 * 7' -ex continue ./main > said 2>&1
           grep -q '= 42' said && grep -q 'exited normally' said"#,
    );
}

#[test]
fn jobs_signals_and_priorities_of_ones_own() {
    passes(
        &["timeout"],
        "sleep 50 & kill $!; wait $!; [ $? = 143 ] || exit 1
         timeout 0.1 sleep 5; [ $? = 124 ] || exit 2
         nice -n 5 true || exit 3
         set -m; sleep 50 | sleep 50 & kill -- -$(jobs -p); wait; exit 0",
    );
}

#[test]
fn rename_links_pipes_and_modes_within_a_root() {
    passes(
        &[],
        "mkdir a b && echo x > a/f && mv a/f b/f && ln b/f a/g && ln -s ../b/f a/h && cat a/h &&
         chmod 640 a/g && touch -d yesterday a/g && cp -a a c && mkfifo p && (echo x > p & cat p) &&
         mv b/f $TMPDIR/f && mv $TMPDIR/f b/f && rm -r a b c p",
    );
}

#[test]
fn a_root_that_is_reached_through_a_link_has_both_names() {
    with_policy(
        |policy, outside| {
            let link = outside.join("link");
            std::os::unix::fs::symlink(&policy.roots[0], &link).unwrap();
            policy.roots = vec![link];
        },
        |story| {
            let link = story.outside.join("link");
            story.succeeds(&format!("echo x > {0}/f && cat {0}/f $ROOT/f", link.display()));
        },
    );
}
