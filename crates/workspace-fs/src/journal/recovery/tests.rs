use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt, symlink};

use super::*;
use crate::RootsSpec;
use crate::journal::fresh_number;

/// A root, and the journals of dead processes.
struct Fixture {
    keep: tempfile::TempDir,
    root: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = keep.path().canonicalize().unwrap().join("root");
        fs::create_dir_all(root.join("deep/er")).unwrap();
        Self { keep, root }
    }

    fn state(&self) -> StateDirectory {
        StateDirectory::at(self.keep.path().join("state")).unwrap()
    }

    /// The names of what is in the state directory.
    fn kept(&self) -> Vec<String> {
        self.state().names().unwrap()
    }

    fn recover(&self) -> Recovered {
        let roots = vec![self.root.display().to_string()];
        self.recover_with(&RootsSpec { roots, ..RootsSpec::default() })
    }

    fn recover_with(&self, spec: &RootsSpec) -> Recovered {
        let workspace = Workspace::open(spec).unwrap();
        workspace.with_journal(Journal::begin(self.state()).unwrap()).recover()
    }

    fn record(&self, directory: &str, written: Written) -> Record {
        let path = self.root.join(directory);
        Record { directory: id(&path), path, written }
    }

    /// A temporary file that is listed, and its path.
    fn temporary(&self, directory: &str, content: &str) -> (PathBuf, Record) {
        let number = fresh_number();
        let path = self.root.join(directory).join(temporary_name(number));
        fs::write(&path, content).unwrap();
        let file = Some(id(&path));
        (path, self.record(directory, Written::Temporary { number, file }))
    }

    /// The journal of a process that is dead.
    fn dead(&self, slots: &[Option<&Record>]) -> String {
        let id = format!("{:016x}", fresh_number());
        let file = self.state().create(&format!("{id}{JOURNAL}")).unwrap();
        for (index, record) in slots.iter().enumerate() {
            if let Some(record) = record {
                write_at(&file, &record.encode().unwrap(), offset(index)).unwrap();
            }
        }
        id
    }

    /// The journal of a process that died while it wrote `cfg` in place, whose content is `torn` now.
    fn dead_in_place(&self, old: &str, new: &str, torn: &str) -> Record {
        fs::write(self.root.join("cfg"), torn).unwrap();
        let file = id(&self.root.join("cfg"));
        let record = self.record("", Written::InPlace { name: "cfg".into(), file });
        let id = self.dead(&[None, Some(&record)]);
        for (ending, content) in [(OLD, old), (NEW, new)] {
            let copy = self.state().create(&copy_name(&id, 1, ending)).unwrap();
            write_at(&copy, content.as_bytes(), 0).unwrap();
        }
        record
    }

    fn cfg(&self) -> String {
        fs::read_to_string(self.root.join("cfg")).unwrap()
    }
}

fn id(path: &Path) -> FileId {
    let stat = fs::symlink_metadata(path).unwrap();
    FileId { device: stat.dev(), inode: stat.ino() }
}

#[test]
fn what_is_listed_goes_and_nothing_else_does() {
    let fixture = Fixture::new();
    let (top, first) = fixture.temporary("", "half");
    let (deep, second) = fixture.temporary("deep/er", "half");
    let (unlisted, _) = fixture.temporary("deep/er", "a user's");
    let others = [".f.pw00112233445566aa.tmp", ".f.pw00112233445566aa.old", ".x.tmp"];
    others.iter().for_each(|name| fs::write(fixture.root.join(name), "a user's").unwrap());
    fixture.dead(&[Some(&first), None, Some(&second)]);
    let done = fixture.recover();
    assert_eq!((done.removed, done.waiting), (2, 0));
    assert!(!top.exists() && !deep.exists() && unlisted.exists());
    assert!(others.iter().all(|name| fixture.root.join(name).exists()));
    assert_eq!(fixture.kept(), [""; 0], "neither the dead journal nor the new one stays");
}

#[test]
fn another_file_at_a_listed_name_stays() {
    let fixture = Fixture::new();
    let outside = fixture.keep.path().join("outside");
    fs::write(&outside, "theirs").unwrap();
    type Plant<'a> = (&'a str, &'a dyn Fn(&Path));
    let plant: [Plant<'_>; 5] = [
        ("another file", &|path| {
            // The first one stays somewhere, so that its inode is not given to the second.
            fs::rename(path, path.with_extension("moved")).unwrap();
            fs::write(path, "theirs").unwrap();
        }),
        ("a link to it", &|path| {
            fs::rename(path, path.with_extension("moved")).unwrap();
            symlink(path.with_extension("moved"), path).unwrap();
        }),
        ("a link outside", &|path| {
            fs::remove_file(path).unwrap();
            symlink(&outside, path).unwrap();
        }),
        ("a hard link to a file outside", &|path| {
            fs::rename(path, path.with_extension("moved")).unwrap();
            fs::hard_link(&outside, path).unwrap();
        }),
        ("a directory", &|path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }),
    ];
    for (what, plant) in plant {
        let (path, record) = fixture.temporary("deep", "half");
        plant(&path);
        let planted = id(&path);
        fixture.dead(&[Some(&record)]);
        assert_eq!(fixture.recover().removed, 0, "{what}");
        assert_eq!(id(&path), planted, "{what}");
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "theirs");
    assert_eq!(fixture.kept(), [""; 0]);
}

#[test]
fn a_second_name_of_a_listed_file_stays() {
    let fixture = Fixture::new();
    let (path, record) = fixture.temporary("deep", "whole");
    fs::hard_link(&path, fixture.root.join("deep/f")).unwrap();
    fixture.dead(&[Some(&record)]);
    assert_eq!(fixture.recover().removed, 1);
    assert!(!path.exists());
    assert_eq!(fs::read_to_string(fixture.root.join("deep/f")).unwrap(), "whole");
}

#[test]
fn a_file_that_was_about_to_be_made_goes_only_if_it_is_empty() {
    let fixture = Fixture::new();
    for (content, removed) in [("", 1), ("a user's", 0)] {
        let (path, mut record) = fixture.temporary("deep", content);
        let Written::Temporary { file, .. } = &mut record.written else { unreachable!() };
        *file = None;
        fixture.dead(&[Some(&record)]);
        assert_eq!(fixture.recover().removed, removed, "{content:?}");
        assert_eq!(path.exists(), removed == 0);
    }
}

#[test]
fn another_directory_at_a_listed_path_is_left_alone() {
    let fixture = Fixture::new();
    let (path, record) = fixture.temporary("deep/er", "half");
    let moved = fixture.root.join("moved");
    for another in [true, false] {
        fixture.dead(&[Some(&record)]);
        fs::rename(fixture.root.join("deep/er"), &moved).unwrap();
        match another {
            true => {
                fs::create_dir(fixture.root.join("deep/er")).unwrap();
                fs::hard_link(moved.join(path.file_name().unwrap()), &path).unwrap();
            }
            false => symlink(&moved, fixture.root.join("deep/er")).unwrap(),
        }
        assert_eq!(fixture.recover().removed, 0);
        assert!(path.exists());
        match another {
            true => fs::remove_dir_all(fixture.root.join("deep/er")).unwrap(),
            false => fs::remove_file(fixture.root.join("deep/er")).unwrap(),
        }
        fs::rename(&moved, fixture.root.join("deep/er")).unwrap();
    }
    fixture.dead(&[Some(&record)]);
    assert_eq!(fixture.recover().removed, 1, "the allowed twin");
}

#[test]
fn what_lies_in_no_writable_root_waits_for_one() {
    let fixture = Fixture::new();
    let (path, record) = fixture.temporary("deep/er", "half");
    let (beside, other) = fixture.temporary("", "half");
    fixture.dead(&[Some(&record), Some(&other)]);
    let spec = |writable: &str, read_only: &str| {
        let text = |name: &str| vec![fixture.root.join(name).display().to_string()];
        RootsSpec {
            roots: if writable == "-" { Vec::new() } else { text(writable) },
            read_only_roots: if read_only == "-" { Vec::new() } else { text(read_only) },
            ..RootsSpec::default()
        }
    };
    let done = fixture.recover_with(&spec("-", ""));
    assert_eq!((done.removed, done.waiting), (0, 2));
    let done = fixture.recover_with(&spec("deep", ""));
    assert_eq!((done.removed, done.waiting), (1, 1));
    assert!(!path.exists() && beside.exists());
    assert_eq!(fixture.kept().len(), 1);
    let done = fixture.recover_with(&spec("", "-"));
    assert_eq!((done.removed, done.waiting), (1, 0));
    assert!(!beside.exists());
    assert_eq!(fixture.kept(), [""; 0]);
}

#[test]
fn the_journal_of_a_living_process_is_left_alone() {
    let fixture = Fixture::new();
    let (path, record) = fixture.temporary("", "half");
    let journal = Arc::new(Journal::begin(fixture.state()).unwrap());
    let mut slot = journal.slot().unwrap();
    slot.write(&record).unwrap();
    assert_eq!(fixture.recover().removed, 0);
    assert!(path.exists());
    slot.leave();
    drop(journal);
    assert_eq!(fixture.recover().removed, 1, "it is dead now, and had left this to the next");
    assert!(!path.exists());
}

#[test]
fn starts_at_the_same_moment_share_the_work() {
    let fixture = Fixture::new();
    let records: Vec<_> = (0..20).map(|_| fixture.temporary("deep", "half").1).collect();
    records.iter().for_each(|record| drop(fixture.dead(&[Some(record)])));
    let removed: usize = std::thread::scope(|scope| {
        let starts = [(); 4].map(|()| scope.spawn(|| fixture.recover().removed));
        starts.into_iter().map(|start| start.join().unwrap()).sum()
    });
    assert_eq!(removed, 20);
    assert_eq!(fixture.kept(), [""; 0]);
    assert_eq!(fs::read_dir(fixture.root.join("deep")).unwrap().count(), 1);
}

const PAGES: usize = 4096;

/// An old content, a new one, and the old one with the first page of the new one laid over it.
fn contents() -> [String; 3] {
    let (old, new) = ("o".repeat(3 * PAGES), "n".repeat(2 * PAGES + 10));
    let torn = format!("{}{}", &new[..PAGES], &old[PAGES..]);
    [old, new, torn]
}

#[test]
fn a_torn_file_gets_its_old_content_back() {
    let fixture = Fixture::new();
    let [old, new, torn] = contents();
    fixture.dead_in_place(&old, &new, &torn);
    let done = fixture.recover();
    assert_eq!(done.restored, [fixture.root.join("cfg")]);
    assert!(done.kept.is_empty() && fixture.cfg() == old);
    assert_eq!(fixture.kept(), [""; 0]);
    // One that has all of either content stays as it is.
    for whole in [&old, &new] {
        fixture.dead_in_place(&old, &new, whole);
        let done = fixture.recover();
        assert!(done.restored.is_empty() && done.kept.is_empty() && fixture.cfg() == *whole);
        assert_eq!(fixture.kept(), [""; 0]);
    }
}

#[test]
fn a_file_that_changed_since_is_not_overwritten() {
    let fixture = Fixture::new();
    let [old, new, torn] = contents();
    let cfg = fixture.root.join("cfg");
    let change: [(&str, &dyn Fn()); 5] = [
        ("the file was changed since", &|| {
            let file = fs::OpenOptions::new().write(true).open(&cfg).unwrap();
            file.write_all_at(b"!", 7).unwrap();
        }),
        ("another file, or none, is there now", &|| {
            fs::rename(&cfg, fixture.root.join("before")).unwrap();
            fs::write(&cfg, &torn).unwrap();
        }),
        ("another file, or none, is there now", &|| {
            fs::rename(&cfg, fixture.root.join("before")).unwrap();
            symlink("before", &cfg).unwrap();
        }),
        ("another file, or none, is there now", &|| fs::remove_file(&cfg).unwrap()),
        ("the file has 2 names", &|| {
            fs::hard_link(&cfg, fixture.root.join("deep/other")).unwrap();
        }),
    ];
    for (reason, change) in change {
        let _ = fs::remove_file(&cfg);
        fixture.dead_in_place(&old, &new, &torn);
        change();
        let before = fs::read(&cfg).ok();
        let done = fixture.recover();
        assert!(done.restored.is_empty(), "{reason}");
        assert_eq!(done.kept.len(), 1, "{reason}");
        assert_eq!(done.kept[0].reason.to_string(), reason);
        assert_eq!(done.kept[0].file, cfg);
        assert_eq!(fs::read_to_string(&done.kept[0].copy).unwrap(), old);
        assert_eq!(fs::read(&cfg).ok(), before, "{reason}");
        let name = done.kept[0].copy.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("cfg.") && fixture.kept() == [name], "{:?}", fixture.kept());
        // The next start leaves it alone.
        assert!(fixture.recover().kept.is_empty() && fixture.kept() == [name]);
        fs::remove_file(&done.kept[0].copy).unwrap();
    }
}

#[test]
fn a_damaged_journal_does_no_harm() {
    let fixture = Fixture::new();
    let (path, record) = fixture.temporary("", "half");
    let id = fixture.dead(&[Some(&record)]);
    let file = fixture.state().file(&format!("{id}{JOURNAL}")).unwrap();
    write_at(&file, b"!", 30).unwrap();
    drop(file);
    assert_eq!(fixture.recover().removed, 0);
    assert!(path.exists());

    let [old, new, torn] = contents();
    fixture.dead_in_place(&old, &new, &torn);
    let name = fixture.kept().into_iter().find(|name| name.ends_with(JOURNAL)).unwrap();
    let file = fixture.state().file(&name).unwrap();
    write_at(&file, &[0xFF; 3 * SLOT], 0).unwrap();
    drop(file);
    let done = fixture.recover();
    assert_eq!(done.kept[0].reason.to_string(), "the journal is damaged");
    assert_eq!(fs::read_to_string(&done.kept[0].copy).unwrap(), old);
    assert_eq!(fixture.cfg(), torn);
    assert_eq!(fixture.kept().len(), 1);
}

#[test]
fn copies_that_were_never_listed_go() {
    let fixture = Fixture::new();
    let id = fixture.dead(&[]);
    drop(fixture.state().create(&copy_name(&id, 0, OLD)).unwrap());
    drop(fixture.state().create(&copy_name("another", 0, OLD)).unwrap());
    fixture.recover();
    assert_eq!(fixture.kept(), [copy_name("another", 0, OLD)]);
}

#[test]
fn both_contents_are_saved_and_go_again_unless_they_are_kept() {
    let fixture = Fixture::new();
    let [old, new, _] = contents();
    let (cfg, staged) = (fixture.root.join("cfg"), fixture.root.join("staged"));
    fs::write(&cfg, &old).unwrap();
    fs::write(&staged, &new).unwrap();
    let record = fixture.record("", Written::InPlace { name: "cfg".into(), file: id(&cfg) });
    let journal = Arc::new(Journal::begin(fixture.state()).unwrap());
    let save = || {
        let [from, to] = [&cfg, &staged].map(|path| fs::File::open(path).unwrap());
        journal.slot().unwrap().save(&record, from.as_fd(), to.as_fd()).unwrap()
    };
    let content = |ending| {
        let name = copy_name(&journal.id, 0, ending);
        fs::read_to_string(fixture.state().path().join(name)).unwrap()
    };
    let saved = save();
    assert_eq!((content(OLD), content(NEW)), (old.clone(), new));
    let listed = fs::read(fixture.state().path().join(format!("{}{JOURNAL}", journal.id)));
    assert_eq!(Record::decode(&listed.unwrap()), Ok(Some(record.clone())));
    drop(saved);
    assert_eq!(fixture.kept().len(), 1, "the journal alone");
    let kept = save().keep(OsStr::new("cfg"));
    assert_eq!(fs::read_to_string(&kept).unwrap(), old);
    assert_eq!(fixture.kept().len(), 2);
    drop(journal);
    assert_eq!(fixture.kept(), [kept.file_name().unwrap().to_str().unwrap()]);
}
