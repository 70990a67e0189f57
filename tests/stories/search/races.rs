//! A directory is swapped for a link that leads out, again and again, while it is searched.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use super::{glob, grep};
use crate::harness::Fixture;
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_swapped_directory_never_leads_outside_behind_the_jail,
        a_swapped_directory_never_leads_outside_without_the_jail,
    ]
}

/// How many searches and how many swaps there are at least.
const SEARCHES: usize = 40;
const SWAPS: usize = 400;

async fn a_swapped_directory_never_leads_outside_behind_the_jail() {
    searched_under_attack("enforce").await;
}

/// The walk holds by itself, too.
async fn a_swapped_directory_never_leads_outside_without_the_jail() {
    searched_under_attack("off").await;
}

async fn searched_under_attack(sandbox: &str) {
    let mut fixture = Fixture::launched().await;
    let outside = fixture.path("../outside");
    for directory in [outside.join("deep"), fixture.path("a/b/deep"), fixture.path("still")] {
        fs::create_dir_all(directory).unwrap();
    }
    for number in 0..30 {
        fs::write(outside.join(format!("deep/secret{number}")), "TOP secret\n").unwrap();
        fixture.write(&format!("a/b/deep/plain{number}"), "TOP of a file\n");
    }
    fixture.write("still/x", "TOP of the rest\n");
    symlink(&outside, fixture.path("a/link")).unwrap();
    fixture.configure(json!({ "sandbox": sandbox })).await.unwrap();

    let attack = Attack::default();
    let (directory, link) = (fixture.path("a/b"), fixture.path("a/link"));
    thread::scope(|scope| {
        scope.spawn(|| attack.swap(&directory, &link));
        // The attack ends with the story, also where that fails.
        let _set = SetOnDrop(&attack.is_over);
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(searches(&mut fixture, &attack));
        });
    });
    fixture.end().await;
}

async fn searches(fixture: &mut Fixture, attack: &Attack) {
    let mut seen = 0;
    let mut count = 0;
    while count < SEARCHES || attack.swaps.load(Ordering::Relaxed) < SWAPS {
        count += 1;
        let found = [
            grep(fixture, json!({"pattern": "TOP", "mode": "content"})).await,
            glob(fixture, json!({"pattern": "**"})).await,
            glob(fixture, json!({"pattern": "a/b/**"})).await,
            glob(fixture, json!({"pattern": "*", "sort": "modified"})).await,
        ];
        for paths in &found {
            assert!(paths.iter().all(|path| !path.contains("secret")), "{paths:?}");
        }
        for paths in &found[..2] {
            assert!(paths.contains(&"still/x".to_owned()), "{paths:?}");
        }
        seen += found.iter().flatten().filter(|path| path.contains("plain")).count();
    }
    assert!(seen > 0, "the directory was there some of the time");
}

#[derive(Default)]
struct Attack {
    is_over: AtomicBool,
    swaps: AtomicUsize,
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Attack {
    /// Swaps a directory and a link, both ways, until it is over.
    fn swap(&self, directory: &Path, link: &Path) {
        while !self.is_over.load(Ordering::Relaxed) {
            renameat_with(CWD, directory, CWD, link, RenameFlags::EXCHANGE).unwrap();
            self.swaps.fetch_add(1, Ordering::Relaxed);
            thread::yield_now();
        }
    }
}
