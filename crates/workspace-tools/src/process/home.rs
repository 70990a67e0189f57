//! The variables of a command whose HOME is the jail's own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sandbox::{Home, Sharing};

use super::package_managers;

/// Where programs install others in a HOME.
const PROGRAMS: [&str; 7] = [
    ".local/bin",
    "go/bin",
    ".cargo/bin",
    ".prefix/bin",
    ".prefix/pnpm",
    ".prefix/pnpm/bin",
    ".prefix/gems/bin",
];

/// Adds the variables of `home`; `tmp` is for what ends with the jail.
pub(super) fn add(variables: &mut BTreeMap<OsString, OsString>, home: &Home, tmp: &Path) {
    variables.insert("HOME".into(), home.path.clone().into());
    if let Some(path) = variables.get(&OsString::from("PATH")).and_then(|path| ordered(path, home))
    {
        variables.insert("PATH".into(), path);
    }
    // Gradle asks whoever holds a lock of this directory for it, over the loopback, which ends at the jail.
    let gradle = match home.sharing {
        Sharing::First => &home.path,
        Sharing::Later => tmp,
    };
    variables.insert("GRADLE_USER_HOME".into(), gradle.join(".gradle").into());
    variables.extend(of_java(&home.path, tmp).into_iter().flatten());
    let path = variables.get(&OsString::from("PATH")).cloned();
    variables.extend(package_managers::variables(home, path.as_deref()));
}

/// The search path with the home's own programs last: an earlier command may have put them there, under the
/// names of others. `None` where no variable can hold it.
fn ordered(path: &OsString, home: &Home) -> Option<OsString> {
    let is_own = |entry: &PathBuf| {
        entry.starts_with(&home.path) && !home.shown.iter().any(|shown| entry.starts_with(shown))
    };
    let (own, mut entries): (Vec<PathBuf>, Vec<PathBuf>) =
        std::env::split_paths(path).partition(is_own);
    for entry in own.into_iter().chain(PROGRAMS.map(|programs| home.path.join(programs))) {
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    std::env::join_paths(entries).ok()
}

/// Java takes the home from the user's entry in /etc/passwd and keeps temporary files in /tmp, whatever the
/// environment says. The variables that every Java obeys make it print a line each time; those of these
/// programs do not.
fn of_java(home: &Path, tmp: &Path) -> Option<[(OsString, OsString); 3]> {
    let options = format!("-Duser.home={} -Djava.io.tmpdir={}", home.to_str()?, tmp.to_str()?);
    let is_plain = |c: char| c.is_alphanumeric() || "/.-_= ".contains(c);
    // The programs' start scripts split it into words.
    let blanks = options.chars().filter(|c| *c == ' ').count();
    let plain = blanks == 1 && options.chars().all(is_plain);
    let names = ["ANT_OPTS", "GRADLE_OPTS", "MAVEN_OPTS"];
    plain.then(|| names.map(|name| (name.into(), options.clone().into())))
}

#[cfg(test)]
mod tests {
    use sandbox::Lifetime;

    use super::*;

    fn home(path: &str, shown: &[&str], sharing: Sharing) -> Home {
        Home {
            path: path.into(),
            at: "/state/home".into(),
            lifetime: Lifetime::Kept,
            sharing,
            shown: shown.iter().map(PathBuf::from).collect(),
            overlays: Vec::new(),
        }
    }

    fn variables(home: &Home) -> BTreeMap<String, String> {
        let path = "/h/.local/bin:/usr/bin:/h/.cargo/bin:/bin";
        let own = [("HOME", "/h"), ("PATH", path)];
        let mut variables: BTreeMap<OsString, OsString> =
            own.map(|(name, value)| (name.into(), value.into())).into();
        add(&mut variables, home, Path::new("/p/tmp"));
        let text = |value: OsString| value.into_string().unwrap();
        variables.into_iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    #[test]
    fn programs_that_a_command_may_have_made_come_last() {
        let seen = variables(&home("/h", &["/h/.cargo/bin"], Sharing::First));
        let own = "/h/.local/bin:/h/go/bin:/h/.prefix/bin:/h/.prefix/pnpm:/h/.prefix/pnpm/bin:\
            /h/.prefix/gems/bin";
        assert_eq!(seen["PATH"], format!("/usr/bin:/h/.cargo/bin:/bin:{own}"));
        assert_eq!(seen["GRADLE_USER_HOME"], "/h/.gradle");
        assert_eq!(seen["GRADLE_OPTS"], "-Duser.home=/h -Djava.io.tmpdir=/p/tmp");
    }

    #[test]
    fn a_home_is_told_to_java_and_gradle_is_apart_from_other_jails() {
        let seen = variables(&home("/state/home", &[], Sharing::Later));
        let own = PROGRAMS.map(|programs| format!("/state/home/{programs}")).join(":");
        let path = format!("/h/.local/bin:/usr/bin:/h/.cargo/bin:/bin:{own}");
        assert_eq!((&seen["PATH"], seen["HOME"].as_str()), (&path, "/state/home"));
        assert_eq!(seen["GRADLE_USER_HOME"], "/p/tmp/.gradle");
        assert_eq!(seen["MAVEN_OPTS"], "-Duser.home=/state/home -Djava.io.tmpdir=/p/tmp");
        let spaced = variables(&home("/state/a home", &[], Sharing::First));
        assert_eq!(spaced.get("MAVEN_OPTS"), None, "it would be two words");
    }
}
