//! A HOME that is kept from one jail to the next: what stays, for whom, and what a command that wrote there
//! earlier can and cannot do with it.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sandbox::{Cleared, Command, Homes, Jail, Level, Lifetime, Network, Policy, Sharing};

use crate::case::{Case, stories};
use crate::fixture::{Directories, Fixture, SECRET};

pub(crate) fn stories() -> Vec<Case> {
    stories!["kept_home":
        what_a_command_writes_is_there_for_the_next_jail_of_the_same_rights,
        a_jail_of_other_rights_has_another_home,
        two_jails_at_once_share_it_and_only_one_is_the_first,
        planted_entries_are_neither_followed_nor_in_the_way,
        what_another_jail_does_meanwhile_costs_this_one_nothing,
        a_planted_directory_that_nobody_may_enter_is_opened_up,
        the_operators_things_are_shown_as_they_are_now,
        it_is_discarded_where_the_policy_says_so,
        it_is_discarded_where_commands_reach_the_others,
        one_that_is_in_use_is_not_removed,
        its_neighbours_are_out_of_reach,
    ]
}

/// Directories with a place for HOMEs, and a home of the operator's with settings and a toolchain.
struct Kept {
    dirs: Directories,
    level: Level,
}

impl Kept {
    fn new(level: Level) -> Self {
        let dirs = Directories::new();
        fs::create_dir_all(homes(&dirs)).unwrap();
        fs::set_permissions(homes(&dirs), PermissionsExt::from_mode(0o700)).unwrap();
        fs::write(dirs.home().join(".gitconfig"), "[user]\n\tname = Operator\n").unwrap();
        fs::create_dir_all(dirs.home().join(".cargo/bin")).unwrap();
        fs::write(dirs.home().join(".cargo/bin/tool"), "tool").unwrap();
        Self { dirs, level }
    }

    fn policy(&self) -> Policy {
        Policy {
            homes: Some(homes(&self.dirs)),
            home: Some(self.dirs.home().to_owned()),
            ..self.dirs.policy(self.level)
        }
    }

    /// The story goes on with a jail, and gives the directories back afterwards.
    fn with<T>(self, policy: &Policy, story: impl FnOnce(&Fixture) -> T) -> (Self, T) {
        let level = self.level;
        let fixture = Fixture::of(self.dirs, policy, level);
        let told = story(&fixture);
        let Fixture { dirs, jail, .. } = fixture;
        drop(jail);
        (Self { dirs, level }, told)
    }

    /// Runs a script in a jail of the usual policy and returns where HOME lies.
    fn run(self, script: &str) -> (Self, PathBuf) {
        let policy = self.policy();
        self.with(&policy, |fixture| {
            fixture.succeeds(script);
            home(&fixture.jail)
        })
    }
}

fn homes(dirs: &Directories) -> PathBuf {
    dirs.home().with_file_name("homes")
}

/// Where a jail's HOME lies.
fn home(jail: &Jail) -> PathBuf {
    assert_eq!(jail.home_problem(), None);
    let home = jail.private().home.as_ref().unwrap();
    assert_eq!(home.lifetime, Lifetime::Kept);
    home.at.clone()
}

/// Where HOME lies for a policy, once a command has used it.
fn home_of(policy: &Policy) -> PathBuf {
    let jail = Jail::build(policy).unwrap();
    let null = || File::options().read(true).write(true).open("/dev/null").unwrap().into();
    let command = Command {
        program: "/bin/true".into(),
        argv: vec!["true".into()],
        env: Vec::new(),
        cwd: policy.roots[0].clone(),
        stdin: null(),
        input: sandbox::Input::Fixed,
        stdout: null(),
        stderr: null(),
        limits: None,
    };
    jail.start(command).unwrap().wait().unwrap();
    home(&jail)
}

fn what_a_command_writes_is_there_for_the_next_jail_of_the_same_rights(level: Level) {
    let script = "mkdir -p ~/.cache/go ~/.m2 && echo kept > ~/.cache/go/x && echo kept > ~/.m2/x &&
        echo kept > ~/note && echo gone > \"$TMPDIR/x\"";
    let (kept, first) = Kept::new(level).run(script);
    let script = "cat ~/.cache/go/x ~/.m2/x ~/note && test \"$XDG_CACHE_HOME\" = ~/.cache &&
        ! test -e \"$TMPDIR/x\"";
    let (kept, second) = kept.run(script);
    assert_eq!(first, second);
    assert!(!kept.dirs.home().join("note").exists(), "the operator's own home");
}

fn a_jail_of_other_rights_has_another_home(level: Level) {
    let kept = Kept::new(level);
    let policy = kept.policy();
    let usual = home_of(&policy);
    let other_root = kept.dirs.root.with_file_name("other");
    fs::create_dir(&other_root).unwrap();
    let others = [
        Policy { roots: vec![other_root.clone()], ..policy.clone() },
        Policy { read_only_roots: vec![other_root.clone()], ..policy.clone() },
        Policy { command_write: vec![other_root], ..policy.clone() },
        Policy { network: Network::Allow, ..policy.clone() },
        Policy { rights_besides: vec!["variable TOKEN".to_owned()], ..policy.clone() },
    ];
    let mut found: Vec<PathBuf> = others.iter().map(home_of).collect();
    found.push(usual.clone());
    found.sort();
    found.dedup();
    assert_eq!(found.len(), others.len() + 1, "{found:#?}");
    assert_eq!(home_of(&policy), usual);
}

fn two_jails_at_once_share_it_and_only_one_is_the_first(level: Level) {
    let kept = Kept::new(level);
    let policy = kept.policy();
    let (_kept, ()) = kept.with(&policy, |fixture| {
        let other = Jail::build(&policy).unwrap();
        assert_eq!(home(&fixture.jail), home(&other));
        let sharing = |jail: &Jail| jail.private().home.as_ref().unwrap().sharing;
        assert_eq!((sharing(&fixture.jail), sharing(&other)), (Sharing::First, Sharing::Later));
        fs::write(home(&other).join("from-the-other"), "x").unwrap();
        fixture.succeeds("cat ~/from-the-other && git config user.name | grep -q Operator");
    });
}

/// What stands where the operator's settings and toolchain are to be shown.
const PLANTED: [&str; 4] = [
    // Links to what lies outside.
    "rm -rf ~/.gitconfig ~/.cargo ~/.cache; ln -s OUTSIDE/secret ~/.gitconfig; ln -s OUTSIDE ~/.cargo
        ln -s OUTSIDE ~/.cache; ln -s OUTSIDE ~/.config",
    // What would block whoever opens it.
    "rm -rf ~/.gitconfig ~/.cargo ~/.cache; mkfifo ~/.gitconfig ~/.cargo ~/.cache",
    // The wrong kinds.
    "rm -rf ~/.gitconfig ~/.cargo ~/.cache; mkdir ~/.gitconfig; touch ~/.cargo ~/.cache",
    // Links within.
    "rm -rf ~/.cargo; mkdir ~/.cargo ~/mine; ln -s ../mine ~/.cargo/bin; ln -s loop ~/loop",
];

/// The commands of the jail see the operator's parts as mounts or links, so the story plants what an
/// earlier command left when these parts were not there.
fn planted_entries_are_neither_followed_nor_in_the_way(level: Level) {
    for planted in PLANTED {
        let kept = Kept::new(level);
        let policy = kept.policy();
        let at = home_of(&policy);
        let script = planted
            .replace("OUTSIDE", kept.dirs.outside.to_str().unwrap())
            .replace('~', at.to_str().unwrap());
        let mut shell = std::process::Command::new("/bin/sh");
        assert!(shell.args(["-ec", &script]).status().unwrap().success(), "{script}");
        let before = kept.dirs.outside_as_it_is();
        let (kept, ()) = kept.with(&policy, |fixture| {
            let script = "grep -q Operator ~/.gitconfig && cat ~/.cargo/bin/tool &&
                mkdir -p ~/.cache/new && echo x > ~/.cache/new/x";
            assert_eq!(fixture.succeeds(script), "tool", "{planted}");
            let secret = fixture.dirs.secret();
            let script = format!(
                "for f in ~/.cargo/secret ~/.cache/secret ~/.config/secret ~/.*.aside-* {}; do
                    test -f $f && cat $f; done",
                secret.display()
            );
            assert!(!fixture.bash(&script).stdout.contains(SECRET), "{planted}");
        });
        assert_eq!(kept.dirs.outside_as_it_is(), before, "{planted}");
        assert_eq!(
            fs::read_to_string(kept.dirs.home().join(".gitconfig")).unwrap(),
            "[user]\n\tname = Operator\n"
        );
    }
}

fn what_another_jail_does_meanwhile_costs_this_one_nothing(level: Level) {
    let kept = Kept::new(level);
    let policy = kept.policy();
    let before = kept.dirs.outside_as_it_is();
    let (kept, ()) = kept.with(&policy, |fixture| {
        let script = format!(
            "cd ~ && echo begun && while :; do
                mv .cargo .x$i; ln -s .cargo .cargo; rm .cargo; ln -s {outside} .cargo; rm .cargo
                mkfifo .cargo; rm .cargo; mkdir .cargo; chmod 000 .cargo; rm -rf .cargo; i=$((i+1))
            done 2>/dev/null",
            outside = fixture.dirs.outside.display()
        );
        let mut busy = fixture.start_bash(&script);
        assert_eq!(busy.line(), "begun");
        for _ in 0..20 {
            let jail = Jail::build(&policy).unwrap();
            assert_eq!(jail.enforcement().level, level, "{:#?}", jail.enforcement());
        }
        busy.killed();
    });
    assert_eq!(kept.dirs.outside_as_it_is(), before);
}

fn a_planted_directory_that_nobody_may_enter_is_opened_up(level: Level) {
    let script = "mkdir -p ~/.config ~/.cache/in; chmod 000 ~/.cache ~/.config ~";
    let kept = Kept::new(level);
    fs::create_dir_all(kept.dirs.home().join(".config/git")).unwrap();
    fs::write(kept.dirs.home().join(".config/git/config"), "x").unwrap();
    let (kept, _) = kept.run(script);
    let (_kept, at) = kept.run("ls ~/.cache/in ~/.config/git/config ~");
    assert_eq!(at.symlink_metadata().unwrap().mode() & 0o700, 0o700);
}

fn the_operators_things_are_shown_as_they_are_now(level: Level) {
    let (kept, at) = Kept::new(level).run("test -e ~/.cargo/bin/tool");
    fs::remove_dir_all(kept.dirs.home().join(".cargo")).unwrap();
    fs::remove_file(kept.dirs.home().join(".gitconfig")).unwrap();
    // What is no longer shown is the commands' own.
    let (kept, _) =
        kept.run("mkdir -p ~/.cargo/bin && echo own > ~/.cargo/bin/own && echo > ~/.gitconfig");
    fs::create_dir_all(kept.dirs.home().join(".cargo/bin")).unwrap();
    fs::write(kept.dirs.home().join(".cargo/bin/new"), "new").unwrap();
    let script = "test $(cat ~/.cargo/bin/new) = new && ! test -e ~/.cargo/bin/own";
    let (_kept, same) = kept.run(script);
    assert_eq!(at, same);
}

fn it_is_discarded_where_the_policy_says_so(level: Level) {
    let kept = Kept::new(level);
    let policy = Policy { homes: None, ..kept.policy() };
    let (kept, at) = kept.with(&policy, |fixture| {
        fixture.succeeds("echo x > ~/note");
        let home = fixture.jail.private().home.clone().unwrap();
        assert_eq!((home.lifetime, fixture.jail.home_problem()), (Lifetime::Jail, None));
        home.at
    });
    assert!(!at.exists() && fs::read_dir(homes(&kept.dirs)).unwrap().next().is_none());
}

fn it_is_discarded_where_commands_reach_the_others(level: Level) {
    let above = |kept: &Kept| kept.dirs.home().with_file_name("");
    type Change = fn(&Path, Policy) -> Policy;
    let changes: [Change; 3] = [
        |above, policy| Policy { roots: vec![above.join("state")], ..policy },
        |above, policy| Policy { read_only_roots: vec![above.join("state")], ..policy },
        |above, policy| Policy { command_read: vec![above.join("state")], ..policy },
    ];
    for change in changes {
        let kept = Kept::new(level);
        let inside = above(&kept).join("state/homes");
        fs::create_dir_all(&inside).unwrap();
        fs::set_permissions(&inside, PermissionsExt::from_mode(0o700)).unwrap();
        let policy = Policy { homes: Some(inside.clone()), ..kept.policy() };
        let policy = change(&above(&kept), policy);
        let jail = Jail::build(&policy).unwrap();
        let problem = jail.home_problem().unwrap();
        assert!(problem.starts_with("commands reach"), "{problem}");
        assert_eq!(jail.private().home.as_ref().unwrap().lifetime, Lifetime::Jail);
        assert!(fs::read_dir(&inside).unwrap().next().is_none());
    }
    let kept = Kept::new(level);
    let unusable = kept.dirs.root.join("own");
    let jail = Jail::build(&Policy { homes: Some(unusable), ..kept.policy() }).unwrap();
    assert!(jail.home_problem().is_some());
}

fn one_that_is_in_use_is_not_removed(level: Level) {
    let kept = Kept::new(level);
    let policy = kept.policy();
    let store = Homes::open(&homes(&kept.dirs)).unwrap();
    let (kept, key) = kept.with(&policy, |fixture| {
        fixture.succeeds("echo x > ~/note && ln -s / ~/all");
        let [entry] = &store.list().unwrap()[..] else { panic!("one is kept") };
        assert!(entry.in_use);
        assert_eq!(entry.roots, std::slice::from_ref(&fixture.dirs.root));
        assert_eq!(store.clear(&entry.key).unwrap(), Cleared::InUse);
        fixture.succeeds("cat ~/note");
        entry.key.clone()
    });
    assert_eq!(store.clear(&key).unwrap(), Cleared::Removed);
    let (_kept, at) = kept.run("! test -e ~/note");
    assert!(at.exists());
}

/// What lies beside a HOME says for whom it is, and belongs to the provider.
fn its_neighbours_are_out_of_reach(level: Level) {
    let kept = Kept::new(level);
    let policy = kept.policy();
    let network = Policy { network: Network::Allow, ..policy.clone() };
    let other = home_of(&network);
    fs::write(other.join("token"), SECRET).unwrap();
    symlink(&other, home_of(&policy).join("other")).unwrap();
    kept.with(&policy, |fixture| {
        let own = home(&fixture.jail);
        let script = format!(
            "cat ~/other/token {other}/token {key}/rights; echo x > {key}/rights; echo x > ~/other/x
            mv {own} {own}.away; rm -f {key}/lock; ls {homes}",
            other = other.display(),
            key = own.parent().unwrap().display(),
            own = own.display(),
            homes = homes(&fixture.dirs).display(),
        );
        let outcome = fixture.bash(&script);
        assert_eq!(outcome.stdout, "", "{outcome:?}");
        assert!(own.is_dir() && own.parent().unwrap().join("lock").is_file());
        fixture.succeeds("echo x > ~/x && cat ~/x");
    });
    assert!(!other.join("x").exists());
}
