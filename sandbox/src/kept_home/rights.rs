//! What a HOME was kept under: everything that gives commands more rights than other jails' have. A file in
//! a HOME can be an order to a later command, so a HOME never passes to a jail of other rights.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use xxhash_rust::xxh3::xxh3_128;

use super::{RIGHTS, write_whole};
use crate::policy::{Mode as PolicyMode, Network, Policy};

/// How commands are kept apart from the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    Namespaces,
    Landlock,
}

/// The rights of a jail's commands as lines, each a word and its value. Written beside each HOME, for a
/// person to read and to be compared: the key alone could be the same by chance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rights(Vec<u8>);

/// The first line: whoever writes other lines writes another number.
const FORM: &str = "form 1";

/// No honest file is longer.
const MOST: usize = 4 << 20;

impl Rights {
    /// Those of jails of this policy, where the operator's home is `home`.
    pub(crate) fn of(policy: &Policy, home: Option<&Path>, means: Means) -> Self {
        let mut lines = vec![
            ("uid", rustix::process::geteuid().as_raw().to_string().into_bytes()),
            (
                "isolation",
                word(match means {
                    Means::Namespaces => "namespaces",
                    Means::Landlock => "landlock",
                }),
            ),
            // It may leave out system call filters, which is known only when the jail is built.
            (
                "mode",
                word(match policy.mode {
                    PolicyMode::BestEffort => "best_effort",
                    PolicyMode::Off => "off",
                    PolicyMode::Enforce | PolicyMode::Full => "enforce",
                }),
            ),
            (
                "network",
                word(match policy.network {
                    Network::Allow => "allow",
                    Network::Deny => "deny",
                }),
            ),
        ];
        lines.extend(home.map(|home| ("home", path(home))));
        let settings = [
            ("root", &policy.roots),
            ("read_only_root", &policy.read_only_roots),
            ("bash_read", &policy.command_read),
            ("bash_write", &policy.command_write),
        ];
        for (name, paths) in settings {
            // Two paths of one directory are one right.
            let mut resolved: Vec<_> = paths
                .iter()
                .map(|given| path(&given.canonicalize().unwrap_or_else(|_| given.clone())))
                .collect();
            resolved.sort();
            resolved.dedup();
            lines.extend(resolved.into_iter().map(|value| (name, value)));
        }
        let mut besides: Vec<_> = policy.rights_besides.iter().map(|line| word(line)).collect();
        besides.sort();
        besides.dedup();
        lines.extend(besides.into_iter().map(|value| ("besides", value)));
        let mut text = format!("{FORM}\n").into_bytes();
        for (name, value) in lines {
            text.extend_from_slice(name.as_bytes());
            text.push(b' ');
            text.extend(escaped(&value));
            text.push(b'\n');
        }
        Self(text)
    }

    /// The name of the directory for these rights.
    pub(crate) fn key(&self) -> String {
        format!("{:032x}", xxh3_128(&self.0))
    }

    pub(super) fn write(&self, to: &OwnedFd) -> rustix::io::Result<()> {
        write_whole(to, RIGHTS, &self.0)
    }

    /// The values of the lines that begin with one of `names`.
    pub(super) fn paths(&self, names: &[&str]) -> Vec<PathBuf> {
        self.lines()
            .filter(|(name, _)| names.iter().any(|wanted| wanted.as_bytes() == *name))
            .map(|(_, value)| OsString::from_vec(plain(value)).into())
            .collect()
    }

    /// The other lines, for a person.
    pub(super) fn others(&self, names: &[&str]) -> Vec<String> {
        self.lines()
            .filter(|(name, _)| !names.iter().any(|wanted| wanted.as_bytes() == *name))
            .map(|(name, value)| {
                let name = if name == b"besides" { String::new() } else { lossy(name) + " " };
                name + &lossy(value)
            })
            .collect()
    }

    fn lines(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let lines = self.0.split(|byte| *byte == b'\n').skip(1);
        lines.filter_map(|line| {
            let at = line.iter().position(|byte| *byte == b' ')?;
            Some((&line[..at], &line[at + 1..]))
        })
    }
}

/// Reads the rights of a HOME from its directory.
pub(super) fn read(from: &OwnedFd) -> rustix::io::Result<Rights> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(from, RIGHTS, flags, Mode::empty())?;
    let (mut text, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let length = rustix::io::read(&file, &mut piece)?;
        text.extend_from_slice(piece.get(..length).unwrap_or_default());
        match length {
            0 => return Ok(Rights(text)),
            _ if text.len() > MOST => return Err(Errno::FBIG),
            _ => {}
        }
    }
}

fn word(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn path(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// The value on one line: `%` and control characters as `%` and two digits.
fn escaped(value: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(value.len());
    for byte in value {
        match byte {
            b'%' | 0..0x20 | 0x7f => text.extend(format!("%{byte:02x}").bytes()),
            _ => text.push(*byte),
        }
    }
    text
}

fn plain(text: &[u8]) -> Vec<u8> {
    let (mut value, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((first, after)) = rest.split_first() {
        let byte = (*first == b'%')
            .then(|| std::str::from_utf8(after.get(..2)?).ok())
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        value.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_on_its_line_and_comes_back() {
        for value in ["/plain", "/a b", "/new\nline", "/100%", "/%41\u{7f}", "/ü\u{9b}"] {
            let line = escaped(value.as_bytes());
            assert!(!line.contains(&b'\n'), "{value:?}");
            assert_eq!(plain(&line), value.as_bytes(), "{value:?}");
        }
    }

    #[test]
    fn every_right_is_a_part_of_the_key_and_the_order_is_not() {
        let policy = Policy {
            roots: vec!["/r/a".into(), "/r/b".into()],
            rights_besides: vec!["variable A".to_owned(), "variable B".to_owned()],
            ..Policy::default()
        };
        let home = Some(Path::new("/h"));
        let key = |policy: &Policy| Rights::of(policy, home, Means::Namespaces).key();
        let same = Policy {
            roots: vec!["/r/b".into(), "/r/a".into()],
            rights_besides: vec!["variable B".to_owned(), "variable A".to_owned()],
            mode: PolicyMode::Full,
            ..Policy::default()
        };
        assert_eq!(key(&policy), key(&same));
        let paths = |path: &str| vec![PathBuf::from(path)];
        let others = [
            Policy { roots: paths("/r/a"), ..policy.clone() },
            Policy { read_only_roots: paths("/ro"), ..policy.clone() },
            Policy { command_read: paths("/ro"), ..policy.clone() },
            Policy { command_write: paths("/ro"), ..policy.clone() },
            Policy { network: Network::Allow, ..policy.clone() },
            Policy { mode: PolicyMode::BestEffort, ..policy.clone() },
            Policy { rights_besides: vec!["variable A".to_owned()], ..policy.clone() },
        ];
        let mut keys: Vec<String> = others.iter().map(key).collect();
        keys.push(key(&policy));
        keys.push(Rights::of(&policy, home, Means::Landlock).key());
        let other = Some(Path::new("/other"));
        keys.push(Rights::of(&policy, other, Means::Namespaces).key());
        let all = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }

    #[test]
    fn the_lines_say_for_whom_it_is() {
        let policy = Policy {
            roots: vec!["/r/new\nline".into()],
            rights_besides: vec!["variable TOKEN".to_owned()],
            ..Policy::default()
        };
        let rights = Rights::of(&policy, None, Means::Landlock);
        assert_eq!(rights.paths(&["root"]), [Path::new("/r/new\nline")]);
        let others = rights.others(&["root", "uid"]);
        let expected = ["isolation landlock", "mode enforce", "network deny", "variable TOKEN"];
        assert_eq!(others, expected);
    }
}
