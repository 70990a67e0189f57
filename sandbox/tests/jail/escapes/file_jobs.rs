//! File jobs: threads of the provider that are confined, while the provider is not.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};

use sandbox::Level;

use crate::case::{Case, stories};
use crate::fixture::{Fixture, SECRET};

pub(crate) fn stories() -> Vec<Case> {
    stories!["escapes::file_jobs":
        every_worker_is_confined_and_the_provider_is_not,
        a_job_starts_nothing_and_reaches_nobody,
        a_jobs_child_would_be_confined_too,
    ]
}

const WORKERS: usize = 8;

fn every_worker_is_confined_and_the_provider_is_not(level: Level) {
    let fixture = Fixture::with(level, |dirs, policy| {
        policy.file_workers = WORKERS;
        fs::create_dir(dirs.root.with_file_name("fixed")).unwrap();
        fs::write(dirs.root.with_file_name("fixed").join("file"), "fixed").unwrap();
        policy.read_only_roots = vec![dirs.root.with_file_name("fixed")];
    });
    let before = fixture.dirs.outside_as_it_is();
    let together = Arc::new(Barrier::new(WORKERS));
    let (say, hear) = channel();
    for number in 0..WORKERS {
        let (together, say) = (together.clone(), say.clone());
        let (root, outside) = (fixture.dirs.root.clone(), fixture.dirs.outside.clone());
        let fixed = root.with_file_name("fixed");
        let spool = fixture.jail.private().spool.clone();
        let job = move || {
            // Nobody goes on before all workers have a job.
            together.wait();
            let denied = [
                fs::read(outside.join("secret")).map(|_| ()),
                fs::read_dir(&outside).map(|_| ()),
                fs::write(outside.join("new"), ""),
                fs::remove_file(outside.join("secret")),
                fs::hard_link(outside.join("secret"), root.join(format!("linked{number}"))),
                fs::write(fixed.join("new"), ""),
                fs::read("/etc/hostname").map(|_| ()),
                fs::read("/proc/self/environ").map(|_| ()),
                fs::read_dir("/proc/self/fd").map(|_| ()),
            ];
            let own = root.join(format!("file{number}"));
            let allowed = [
                fs::write(&own, "own"),
                fs::read(&own).map(|_| ()),
                fs::read_dir(&root).map(|_| ()),
                fs::read(fixed.join("file")).map(|_| ()),
                fs::write(spool.join(format!("kept{number}")), "kept"),
                fs::remove_file(&own),
            ];
            say.send((denied.map(errno), allowed.map(errno))).unwrap();
        };
        fixture.jail.submit(Box::new(job)).unwrap();
    }
    for _ in 0..WORKERS {
        let (denied, allowed) = hear.recv().unwrap();
        let mut expected = [Some(libc::EACCES); 9];
        expected[4] = Some(libc::EXDEV);
        assert_eq!(denied, expected);
        assert_eq!(allowed, [None; 6]);
    }
    assert_eq!(fs::read_to_string(fixture.dirs.secret()).unwrap(), SECRET);
    assert_eq!(fixture.dirs.outside_as_it_is(), before);
    // What file jobs keep, commands may read.
    assert_eq!(
        fixture.succeeds(&format!("cat {}/kept*", fixture.jail.private().spool.display())).len(),
        4 * WORKERS
    );
}

fn a_job_starts_nothing_and_reaches_nobody(level: Level) {
    let fixture = Fixture::new(level);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    fs::copy("/bin/true", fixture.dirs.root.join("program")).unwrap();
    let program = fixture.dirs.root.join("program");
    let refused = job(&fixture, move || {
        [
            std::process::Command::new("/bin/true").status().map(|_| ()),
            std::process::Command::new(program).status().map(|_| ()),
            TcpStream::connect(address).map(|_| ()),
        ]
        .map(errno)
    });
    assert_eq!(refused, [Some(libc::EACCES); 3]);
    TcpStream::connect(address).unwrap();
}

/// The domain is inherited, whatever the child is.
fn a_jobs_child_would_be_confined_too(level: Level) {
    let fixture = Fixture::new(level);
    let (inner, free) = (fixture.dirs.secret(), fixture.dirs.secret());
    let denied = job(&fixture, move || {
        std::thread::spawn(move || errno(fs::read(inner).map(|_| ()))).join().unwrap()
    });
    assert_eq!(denied, Some(libc::EACCES));
    let allowed = std::thread::spawn(move || errno(fs::read(free).map(|_| ()))).join().unwrap();
    assert_eq!(allowed, None);
}

pub(super) fn job<T: Send + 'static>(
    fixture: &Fixture,
    job: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (say, hear) = channel();
    fixture.jail.submit(Box::new(move || say.send(job()).unwrap())).unwrap();
    hear.recv().unwrap()
}

fn errno(result: io::Result<()>) -> Option<i32> {
    result.err().map(|error| error.raw_os_error().unwrap_or(-1))
}
