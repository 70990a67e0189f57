//! Two hundred commands that change all they can, and nothing of it stays.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sandbox::Level;

use crate::case::{Case, Need, stories};
use crate::fixture::Fixture;

pub(crate) fn stories() -> Vec<Case> {
    stories!["throw_away::storm": nothing_changes_whatever_a_command_does needs [Need::Time]]
}

/// What is done to each target, which stands for `@`.
const TO_EACH: [&str; 30] = [
    "rm -rf @",
    "truncate -s 0 @ || truncate -s 0 @/*",
    "echo x > @ || echo x > @/new",
    "echo x >> @ || echo x >> @/new",
    "mv @ @.moved; mv @.moved elsewhere",
    "cp /etc/passwd other && mv -f other @",
    "chmod 0777 @; chmod -R u+s,a+w @",
    "chown -R 12345:12345 @; chgrp nogroup @",
    "touch -d 2001-01-01 @; touch -h -d 2002-02-02 @",
    "touch -a -d 2003-03-03 @; touch -m @",
    "ln -f @ hard; ln -f hard @.hard; echo x > hard",
    "ln -sfn /etc/passwd @",
    "sed -i s/./y/g @ || find @ -type f -exec sed -i s/./y/g {} +",
    "dd if=/dev/zero of=@ bs=1 count=1 conv=notrunc",
    "dd if=/dev/urandom of=@/f bs=4k count=4 oflag=append conv=notrunc",
    "mkdir -p @/a/b/c @.d; rmdir @",
    "mkfifo @.fifo @/fifo; mknod @.node p",
    "setfattr -n user.x -v y @; setfattr -x user.keep @; chattr +i @; chattr +A @",
    "tar cf t.tar @ && tar xf t.tar -C / ; tar xpf t.tar --overwrite",
    "install -m 4755 /bin/true @; install -d -m 2777 @.dir",
    "exec 3<>@ && printf zzz >&3",
    "find @ -delete; find . -newer @ -exec rm -rf {} +",
    "python3 -c 'import os,sys; os.utime(sys.argv[1], (1,1)); os.chmod(sys.argv[1], 0)' @",
    "python3 -c 'import mmap,sys; f=open(sys.argv[1],\"r+b\"); m=mmap.mmap(f.fileno(),0); m[0:1]=b\"!\"; m.flush()' @",
    "python3 -c 'import os,sys; fd=os.open(sys.argv[1],os.O_RDONLY); os.fchmod(fd,0o7777); os.utime(fd,(5,5)); os.fchown(fd,1,1)' @",
    "python3 -c 'import os,sys; os.setxattr(sys.argv[1],b\"user.y\",b\"z\"); os.rename(sys.argv[1], sys.argv[1]+\"~\")' @",
    "perl -e 'unlink $ARGV[0]; open F, q(>), $ARGV[0]; print F 1; utime 1,1,$ARGV[0]; chmod 0, $ARGV[0]' @",
    "perl -pi -e 's/./q/g' @; perl -e 'rename $ARGV[0], q(r); truncate $ARGV[0], 1' @",
    "setsid sh -c 'sleep 0; echo late > @; rm -rf @' & (trap '' TERM HUP; while :; do echo w >> @; done) & sleep 0.02",
    "(for i in $(seq 50); do ln -f @ r$i; mv -f r$i @; done) & (for i in $(seq 50); do mv @ q; mv q @; done); wait",
];

/// What is done once.
const ONCE: [&str; 26] = [
    "rm -rf -- * .[!.]* ~/* ~/.[!.]* /tmp/* $TMPDIR/*",
    "git reset --hard HEAD~1; git clean -fdx; git checkout -f HEAD~1",
    "git gc --aggressive --prune=now; git repack -adf; git prune",
    "git commit --allow-empty -m x; git tag t; git branch -m other; git stash -u; git stash drop",
    "git rebase -f --root; git filter-branch -f --env-filter 'GIT_AUTHOR_NAME=x' HEAD",
    "git config user.name x; git config core.fsmonitor 'touch evil'; git status; echo x > .git/hooks/pre-commit",
    "git update-index --refresh; git update-ref -d HEAD; git worktree add ../w; git rm -rf .",
    "git mv dir moved; git add -A; git commit -m moved; git push --force . HEAD:refs/heads/x",
    "sqlite3 db.sqlite 'delete from t; vacuum; pragma journal_mode=wal; create table u(x)'",
    "python3 -c 'import sqlite3; c=sqlite3.connect(\"db.sqlite\"); c.execute(\"drop table if exists t\"); c.commit()'",
    "npm init -y; npm install --offline left-pad; npm config set x y; npm cache clean --force",
    "cargo init --name storm .; cargo build --offline; cargo test --offline; cargo clean",
    "printf 'install:\\n\\tinstall -m 755 own $(DESTDIR)/usr/bin/storm\\n\\tcp own ~/installed\\n' > Makefile; make install",
    "printf 'all:\\n\\trm -rf *\\n' | make -f -",
    "echo 'alias ls=evil' >> ~/.bashrc; echo x > ~/.profile; mkdir -p ~/.ssh; echo key > ~/.ssh/authorized_keys",
    "crontab -l; echo '* * * * * evil' | crontab -; at now < /dev/null",
    "exec -a innocent sh -c 'rm -rf own dir; kill -9 $PPID'",
    "exec 9>>own; flock 9; (sleep 0; echo more >&9) & disown; (sleep 0.05; kill -CONT $$) & kill -STOP $$",
    "bash -c 'bash -c \"setsid nohup sh -c \\\"while :; do echo x > own; done\\\" >/dev/null 2>&1 &\"'",
    "trap 'rm -rf dir own; echo x > trapped' EXIT TERM INT; kill -TERM $$",
    "for i in $(seq 30); do (echo $i > f$i; mv f$i own) & done; wait",
    "umask 0; mkdir -m 7777 d; chmod -R 0 .; chmod 0 ~ /tmp; chown -hR nobody .",
    "unshare -Urm sh -c 'mount --bind /tmp .; rm -rf *'; mount -o remount,rw /; umount -l .",
    "mount -t tmpfs none .; chroot . /bin/true; nsenter -t 1 -m rm -rf /",
    "cat /proc/self/mountinfo; rm -rf /.layers /proc/self/root/$PWD; cd /proc/self/cwd && rm -rf *",
    "cp --reflink=auto -a . /tmp/copy; rsync -a --delete /var/empty/ ./; rm -rf /dev/shm/* /var/tmp/*",
];

fn nothing_changes_whatever_a_command_does(level: Level) {
    let fixture = Fixture::new(level);
    let root = furnish(&fixture);
    let private = fixture.jail.private();
    let home = private.home.as_ref().unwrap();
    let home_file = home.path.join("kept/file").display().to_string();
    let scratch_file = private.tmp.join("kept/file").display().to_string();
    let targets = ["own", "dir", "dir/inner/file", ".git/index", "link", &home_file, &scratch_file];
    let mut scripts: Vec<String> = ONCE.map(str::to_owned).to_vec();
    for script in TO_EACH {
        scripts.extend(targets.map(|target| script.replace('@', target)));
    }
    assert!(scripts.len() >= 200, "{}", scripts.len());
    // Spares make directories of their own beside these while others run.
    let jails = home.at.ancestors().find(|at| at.ends_with("private")).unwrap_or(&home.at);
    let places = [&root, &fixture.dirs.outside, &home.at, &jails.join("none")];
    let before = state(&places, &fixture);
    for script in scripts {
        fixture.run(&fixture.thrown_away(&format!("{script}\n:")));
        let after = state(&places, &fixture);
        let changed: Vec<_> = before
            .keys()
            .chain(after.keys())
            .filter(|path| before.get(*path) != after.get(*path))
            .map(|path| (path, before.get(path), after.get(path)))
            .collect();
        assert!(changed.is_empty(), "at level {level}: {script}\n{changed:#?}");
    }
    // The same commands do something where they may.
    fixture.bash("echo x >> own; chmod 600 dir/inner/file; touch -d 2001-01-01 link; rm -rf .git");
    let after = state(&places, &fixture);
    assert!(after.len() + 3 < before.len(), "{} {}", after.len(), before.len());
}

/// Fills the root, HOME and the scratch directory. Returns the root.
fn furnish(fixture: &Fixture) -> PathBuf {
    let root = fixture.dirs.root.clone();
    fs::create_dir_all(root.join("dir/inner")).unwrap();
    fs::write(root.join("dir/inner/file"), "inner content").unwrap();
    fs::write(root.join("dir/tool"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(root.join("dir/tool"), PermissionsExt::from_mode(0o755)).unwrap();
    symlink("dir/inner/file", root.join("link")).unwrap();
    fixture.succeeds(
        "git init -q . 2>/dev/null; git config user.email a@b; git config user.name n; \
         git add -A; git commit -qm one; echo two > two; git add two; git commit -qm two; \
         sqlite3 db.sqlite 'create table t(x); insert into t values(1)'; \
         mkdir -p ~/kept $TMPDIR/kept; echo home > ~/kept/file; echo tmp > $TMPDIR/kept/file; true",
    );
    root
}

/// Content, kind, mode, owner, links, size and times but that of access, of everything in some places and
/// in the scratch directory as other commands see it.
fn state(places: &[&PathBuf], fixture: &Fixture) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut rest: Vec<PathBuf> = places.iter().map(|place| (*place).clone()).collect();
    while let Some(path) = rest.pop() {
        let Ok(data) = path.symlink_metadata() else { continue };
        let mut state = format!("{:o} {} {}", data.mode(), data.uid(), data.gid());
        state += &format!(" {} {} {}", data.nlink(), data.ino(), data.size());
        state += &format!(" {}.{:09}", data.mtime(), data.mtime_nsec());
        state += &format!(" {}.{:09}", data.ctime(), data.ctime_nsec());
        if data.is_dir() {
            rest.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if data.is_symlink() {
            state += &fs::read_link(&path).unwrap().display().to_string();
        } else if data.is_file() {
            state += &format!(" {:?}", fs::read(&path).unwrap());
        }
        found.insert(path, state);
    }
    let list = "find $TMPDIR ! -name sess -printf '%p %y %m %U %G %n %i %s %T@ %C@\\n' | sort; \
         find $TMPDIR -type f -exec cat {} +";
    found.insert(Path::new("scratch").to_owned(), fixture.succeeds(list));
    found
}
