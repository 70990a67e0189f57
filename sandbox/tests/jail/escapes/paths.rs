//! Ways to name a file outside.

use std::fs;

use sandbox::Level;

use crate::arena::Arena;
use crate::attack::{Allowed, Attempts, Denied, Fate, Named, assert_all};
use crate::story::{Story, stories};

pub(crate) fn stories() -> Vec<Story> {
    stories!["escapes::paths": reading_by_its_plain_path]
}

pub(crate) const ATTACKS: &[Named] = &[("read", read)];

/// What an outside path looks like: at the full level it is not there at all.
fn out_of_reach(level: Level) -> Fate {
    Denied(if level == Level::Full { libc::ENOENT } else { libc::EACCES })
}

fn reading_by_its_plain_path(level: Level) {
    let arena = Arena::new(level);
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let secret = path(&arena.place.secret());
    assert_all(&arena.attack("read", &[&secret]), out_of_reach(level));
    let own = path(&arena.place.root.join("own"));
    assert_all(&arena.attack("read", &[&own]), Allowed);
}

fn read(attempts: &mut Attempts, paths: &[String]) {
    for path in paths {
        attempts.make(path, || fs::read(path));
    }
}
