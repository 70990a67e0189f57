use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

use super::*;
use crate::RootsSpec;

/// Mounts that stand until something outside takes them away.
struct Pretended(AtomicBool);

static NONE: Pretended = Pretended(AtomicBool::new(false));

impl Mounts for Pretended {
    fn stands(&self, path: &Path) -> bool {
        self.0.load(Ordering::Relaxed) && path.ends_with("config")
    }

    fn renew(&self, _: &dyn Fn() -> Vec<PathBuf>) -> bool {
        false
    }
}

fn root() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    fs::create_dir_all(path.join(".git/hooks")).unwrap();
    fs::write(path.join(".git/config"), "old").unwrap();
    (directory, path)
}

fn protection(root: &Path, remembered: &Arc<Remembered>) -> Protection {
    let roots = vec![root.to_str().unwrap().to_owned()];
    let workspace = Workspace::open(&RootsSpec { roots, ..RootsSpec::default() }).unwrap();
    Protection::of(&workspace, &[], remembered.clone()).unwrap()
}

fn paths(findings: &[Finding]) -> Vec<&Path> {
    findings.iter().map(|finding| finding.path.as_path()).collect()
}

#[test]
fn a_call_of_a_later_configuration_does_not_take_for_granted_what_an_earlier_one_wrote() {
    let (_keep, root) = root();
    let remembered = Arc::default();
    let trap = root.join(".git/commondir");
    let earlier = protection(&root, &remembered);
    let first = earlier.begin(&root, &NONE);
    fs::write(&trap, "../evil").unwrap();
    fs::write(root.join(".git/config"), "evil").unwrap();
    let later = protection(&root, &remembered);
    let second = later.begin(&root, &NONE);
    let found = earlier.end(first, &NONE);
    assert_eq!(paths(&found), [root.join(".git/config"), root.join(".git/commondir")]);
    assert!(later.end(second, &NONE).is_empty());
    assert!(!trap.exists());
    assert_eq!(fs::read_to_string(root.join(".git/config")).unwrap(), "old");
}

#[test]
fn what_was_mounted_and_replaced_outside_is_left_and_compared_from_then_on() {
    let (_keep, root) = root();
    let config = root.join(".git/config");
    let protection = protection(&root, &Arc::default());
    let mounts = Pretended(AtomicBool::new(true));
    let long = protection.begin(&root, &mounts);
    mounts.0.store(false, Ordering::Relaxed);
    fs::write(&config, "operator's").unwrap();
    // Another call begins after that, and changes it.
    let short = protection.begin(&root, &mounts);
    fs::write(&config, "evil").unwrap();
    let found = protection.end(short, &mounts);
    let outcomes: Vec<_> = found.iter().map(|finding| &finding.outcome).collect();
    assert!(
        matches!(outcomes[..], [Outcome::ReplacedOutside, Outcome::SetBack { .. }]),
        "{outcomes:?}"
    );
    assert_eq!(fs::read_to_string(&config).unwrap(), "operator's");
    assert!(protection.end(long, &mounts).is_empty());
}

#[test]
fn more_directories_than_are_listed_hide_none_that_was_known() {
    let (_keep, root) = root();
    let module = root.join(".git/modules/zz");
    fs::create_dir_all(&module).unwrap();
    fs::write(module.join("config"), "old").unwrap();
    let protection = protection(&root, &Arc::default());
    let first = protection.begin(&root, &NONE);
    for number in 0..1000 {
        fs::create_dir(root.join(format!(".git/modules/a{number}"))).unwrap();
    }
    assert!(protection.end(first, &NONE).is_empty());
    let second = protection.begin(&root, &NONE);
    fs::write(module.join("config"), "evil").unwrap();
    assert_eq!(paths(&protection.end(second, &NONE)), [module.join("config")]);
    assert_eq!(fs::read_to_string(module.join("config")).unwrap(), "old");
}

#[test]
fn a_link_that_leads_to_the_repository_stays_and_its_repository_is_compared() {
    let (_keep, root) = root();
    fs::rename(root.join(".git"), root.join("git")).unwrap();
    std::os::unix::fs::symlink("git", root.join(".git")).unwrap();
    let protection = protection(&root, &Arc::default());
    let call = protection.begin(&root, &NONE);
    fs::write(root.join("git/config"), "evil").unwrap();
    fs::remove_file(root.join(".git")).unwrap();
    std::os::unix::fs::symlink("elsewhere", root.join(".git")).unwrap();
    protection.end(call, &NONE);
    assert_eq!(fs::read_to_string(root.join("git/config")).unwrap(), "old");
    assert_eq!(fs::read_link(root.join(".git")).unwrap(), Path::new("git"));
}

#[test]
fn a_repository_behind_a_second_link_is_compared() {
    let (_keep, root) = root();
    fs::create_dir(root.join("real")).unwrap();
    fs::rename(root.join(".git"), root.join("real/g")).unwrap();
    std::os::unix::fs::symlink("real", root.join("alias")).unwrap();
    std::os::unix::fs::symlink("alias/g", root.join(".git")).unwrap();
    let protection = protection(&root, &Arc::default());
    let call = protection.begin(&root, &NONE);
    fs::write(root.join("real/g/config"), "evil").unwrap();
    assert_eq!(paths(&protection.end(call, &NONE)), [root.join("real/g/config")]);
    assert_eq!(fs::read_to_string(root.join("real/g/config")).unwrap(), "old");
}

/// Two providers on one repository, which share the state directory alone.
fn two_providers(root: &Path) -> (TempDir, [Protection; 2]) {
    let keep = tempfile::tempdir().unwrap();
    let path = keep.path().join("state");
    let provider = || {
        let state = StateDirectory::at(path.clone()).unwrap();
        protection(root, &Arc::default()).keeping_in(Some(state))
    };
    let providers = [provider(), provider()];
    (keep, providers)
}

#[test]
fn what_a_command_of_another_provider_wrote_is_not_put_back_after_that_one_removed_it() {
    let (_keep, root) = root();
    let (_state, [ours, others]) = two_providers(&root);
    let config = root.join(".git/config");
    let first = others.begin(&root, &NONE);
    fs::write(&config, "evil").unwrap();
    let second = ours.begin(&root, &NONE);
    assert_eq!(paths(&others.end(first, &NONE)), [config.as_path()]);
    let told = ours.end(second, &NONE);
    assert!(matches!(told[..], [Finding { outcome: Outcome::NotSetBack { .. }, .. }]), "{told:?}");
    assert_eq!(fs::read_to_string(&config).unwrap(), "old");
    // Alone again, a provider sets back what its own command changes.
    let third = ours.begin(&root, &NONE);
    fs::write(&config, "evil").unwrap();
    let found = ours.end(third, &NONE);
    assert!(matches!(found[..], [Finding { outcome: Outcome::SetBack { .. }, .. }]), "{found:?}");
    assert_eq!(fs::read_to_string(&config).unwrap(), "old");
}

#[test]
fn what_was_seen_before_another_provider_s_command_is_set_back_beside_it() {
    let (_keep, root) = root();
    let (state, [ours, others]) = two_providers(&root);
    let config = root.join(".git/config");
    let earlier = ours.begin(&root, &NONE);
    assert!(ours.end(earlier, &NONE).is_empty());
    let long = others.begin(&root, &NONE);
    let short = ours.begin(&root, &NONE);
    fs::write(&config, "evil").unwrap();
    assert_eq!(paths(&ours.end(short, &NONE)), [config.as_path()]);
    assert!(others.end(long, &NONE).is_empty());
    assert_eq!(fs::read_to_string(&config).unwrap(), "old");
    drop((ours, others));
    let left = fs::read_dir(state.path().join("state")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name.as_encoded_bytes().ends_with(b".found")), "{left:?}");
}
