//! A journal's record: one write that is under way, in a slot of fixed size.
//!
//! All numbers are little-endian. A slot begins with the length of the record's body (`u32`; 0 where
//! the slot is empty) and the body's XXH3 checksum (`u64`). The body is a version byte, a kind byte,
//! device and inode of the directory (`u64` each), what the kind has, and the directory's path to the
//! end:
//!
//! | kind | what follows |
//! |---|---|
//! | 1: a temporary file that may not be there yet | its number (`u64`) |
//! | 2: a temporary file | its number, device and inode (`u64` each) |
//! | 3: a file that is written in place | its device and inode (`u64` each), the length of its name (`u8`) and its name |

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::FileId;

/// The size of a slot in bytes: more than the longest path, the longest name and the rest need.
pub(super) const SLOT: usize = 8192;

/// The bytes of a slot that is empty, as far as they count.
pub(super) const EMPTY: [u8; 4] = [0; 4];

const VERSION: u8 = 1;
const MAX_PATH: usize = 4096;

/// A write that is under way in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The directory.
    pub(crate) directory: FileId,
    /// Its path, absolute and free of links.
    pub(crate) path: PathBuf,
    /// What is written there.
    pub(crate) written: Written,
}

/// What a write under way leaves behind when it is cut short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// A temporary file, which has the name that goes with this number.
    Temporary {
        /// The number.
        number: u64,
        /// Which file it is; absent where it was about to be made, and so is empty if it is there.
        file: Option<FileId>,
    },
    /// A file that has some of its old and some of its new content.
    InPlace {
        /// Its name.
        name: OsString,
        /// Which file it is.
        file: FileId,
    },
}

/// The bytes are no record.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a damaged record")]
pub(super) struct Damaged;

impl Record {
    /// The record's bytes, for the beginning of a slot. `None` where no slot holds it.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let mut body = vec![VERSION, 0];
        put(&mut body, &[self.directory.device, self.directory.inode]);
        body[1] = match &self.written {
            Written::Temporary { number, file: None } => {
                put(&mut body, &[*number]);
                1
            }
            Written::Temporary { number, file: Some(file) } => {
                put(&mut body, &[*number, file.device, file.inode]);
                2
            }
            Written::InPlace { name, file } => {
                put(&mut body, &[file.device, file.inode]);
                body.push(u8::try_from(name.len()).ok()?);
                body.extend_from_slice(name.as_bytes());
                3
            }
        };
        let path = self.path.as_os_str().as_bytes();
        if path.len() > MAX_PATH {
            return None;
        }
        body.extend_from_slice(path);
        let mut slot = u32::try_from(body.len()).ok()?.to_le_bytes().to_vec();
        slot.extend_from_slice(&xxh3_64(&body).to_le_bytes());
        slot.extend_from_slice(&body);
        Some(slot)
    }

    /// Reads a slot; `None` where it is empty.
    pub(super) fn decode(slot: &[u8]) -> Result<Option<Self>, Damaged> {
        let mut head = Reader(slot);
        // A file that ends before its last slot does has nothing but zeros there.
        let length = if slot.len() < EMPTY.len() { 0 } else { head.u32()? };
        if length == 0 {
            return Ok(None);
        }
        let checksum = head.u64()?;
        let body = head.take(usize::try_from(length).map_err(|_| Damaged)?)?;
        if xxh3_64(body) != checksum {
            return Err(Damaged);
        }
        let mut body = Reader(body);
        let (version, kind) = (body.u8()?, body.u8()?);
        if version != VERSION {
            return Err(Damaged);
        }
        let directory = body.id()?;
        let written = match kind {
            1 => Written::Temporary { number: body.u64()?, file: None },
            2 => Written::Temporary { number: body.u64()?, file: Some(body.id()?) },
            3 => {
                let file = body.id()?;
                let length = body.u8()?;
                let name = body.take(length.into())?;
                Written::InPlace { name: name_of(name)?, file }
            }
            _ => return Err(Damaged),
        };
        let path = path_of(body.0)?;
        Ok(Some(Self { directory, path, written }))
    }
}

fn put(body: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| body.extend_from_slice(&number.to_le_bytes()));
}

/// A name that leads nowhere but to an entry of its directory.
fn name_of(bytes: &[u8]) -> Result<OsString, Damaged> {
    let leads_elsewhere = matches!(bytes, b"" | b"." | b"..");
    if leads_elsewhere || bytes.iter().any(|byte| matches!(byte, b'/' | 0)) {
        return Err(Damaged);
    }
    Ok(OsString::from_vec(bytes.to_vec()))
}

fn path_of(bytes: &[u8]) -> Result<PathBuf, Damaged> {
    let path = Path::new(OsStr::from_bytes(bytes));
    let plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
    let fits = path.is_absolute() && bytes.len() <= MAX_PATH && !bytes.contains(&0);
    if fits && path.components().all(plain) { Ok(path.to_owned()) } else { Err(Damaged) }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Damaged> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u8(&mut self) -> Result<u8, Damaged> {
        Ok(self.take(1)?[0])
    }

    fn u32(&mut self) -> Result<u32, Damaged> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().map_err(|_| Damaged)?))
    }

    fn u64(&mut self) -> Result<u64, Damaged> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().map_err(|_| Damaged)?))
    }

    fn id(&mut self) -> Result<FileId, Damaged> {
        Ok(FileId { device: self.u64()?, inode: self.u64()? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Length and checksum.
    const HEAD: usize = 12;

    fn id() -> impl Strategy<Value = FileId> {
        any::<(u64, u64)>().prop_map(|(device, inode)| FileId { device, inode })
    }

    fn name(longest: usize) -> impl Strategy<Value = Vec<u8>> {
        let byte = any::<u8>().prop_filter("no separator", |byte| !matches!(byte, b'/' | 0));
        proptest::collection::vec(byte, 1..=longest)
            .prop_filter("a name", |name| !matches!(&name[..], b"." | b".."))
    }

    fn record() -> impl Strategy<Value = Record> {
        let written = prop_oneof![
            (any::<u64>(), proptest::option::of(id()))
                .prop_map(|(number, file)| Written::Temporary { number, file }),
            (name(255), id())
                .prop_map(|(name, file)| Written::InPlace { name: OsString::from_vec(name), file }),
        ];
        let path = proptest::collection::vec(name(200), 0..20).prop_map(|parts| {
            let bytes = parts.iter().flat_map(|part| [b"/", &part[..]].concat()).collect();
            PathBuf::from(OsString::from_vec(if parts.is_empty() { b"/".to_vec() } else { bytes }))
        });
        (id(), path, written).prop_map(|(directory, path, written)| Record {
            directory,
            path,
            written,
        })
    }

    proptest! {
        #[test]
        fn a_record_comes_back_as_it_was(record in record(), rest in 0..SLOT) {
            let mut slot = record.encode().unwrap();
            slot.resize(slot.len().max(rest), 0xEE);
            prop_assert!(slot.len() <= SLOT);
            prop_assert_eq!(Record::decode(&slot).unwrap().unwrap(), record);
        }

        #[test]
        fn a_torn_record_is_none(record in record(), at in any::<prop::sample::Index>(), before: u8) {
            let mut slot = record.encode().unwrap();
            let at = at.index(slot.len());
            slot[at..].fill(before);
            let found = Record::decode(&slot);
            // What was there before may be what would have been written.
            prop_assert!(matches!(&found, Err(Damaged) | Ok(None)) || found == Ok(Some(record)));
        }

        #[test]
        fn garbage_is_none(slot in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(!matches!(Record::decode(&slot), Ok(Some(_))));
        }
    }

    /// With the right checksum, so that the fields themselves are what is looked at.
    fn decoded(change: impl FnOnce(&mut Vec<u8>)) -> Result<Option<Record>, Damaged> {
        let written =
            Written::InPlace { name: "name".into(), file: FileId { device: 3, inode: 4 } };
        let directory = FileId { device: 1, inode: 2 };
        let record = Record { directory, path: "/a/b".into(), written };
        let mut body = record.encode().unwrap().split_off(HEAD);
        change(&mut body);
        let mut slot = u32::try_from(body.len()).unwrap().to_le_bytes().to_vec();
        slot.extend_from_slice(&xxh3_64(&body).to_le_bytes());
        slot.extend_from_slice(&body);
        Record::decode(&slot)
    }

    #[test]
    fn what_leads_elsewhere_is_no_record() {
        const NAME: usize = 2 + 4 * 8 + 1;
        assert!(decoded(|_| ()).unwrap().is_some());
        for (what, change) in [
            ("another version", &(|body: &mut Vec<u8>| body[0] = 2) as &dyn Fn(&mut Vec<u8>)),
            ("another kind", &|body| body[1] = 4),
            ("a path as a name", &|body| body[NAME + 1] = b'/'),
            ("a NUL in a name", &|body| body[NAME] = 0),
            ("the directory above as a name", &|body| {
                drop(body.splice(NAME - 1..NAME + 4, *b"\x02.."))
            }),
            ("no name", &|body| drop(body.splice(NAME - 1..NAME + 4, *b"\0"))),
            ("a name that goes on behind the end", &|body| body[NAME - 1] = 200),
            ("a relative path", &|body| assert_eq!(body.remove(NAME + 4), b'/')),
            ("a path with a step up", &|body| body.extend_from_slice(b"/../c")),
            ("no path", &|body| body.truncate(NAME + 4)),
            ("nothing", &|body| body.truncate(1)),
        ] {
            assert_eq!(decoded(change), Err(Damaged), "{what}");
        }
        assert_eq!(Record::decode(&[]), Ok(None));
        assert_eq!(Record::decode(&[0; SLOT]), Ok(None));
        assert_eq!(Record::decode(&[0xFF; SLOT]), Err(Damaged));
    }

    #[test]
    fn what_fits_in_no_slot_is_not_written() {
        let written = Written::Temporary { number: 0, file: None };
        let id = FileId { device: 1, inode: 2 };
        let at = |length: usize| {
            let path = PathBuf::from(format!("/{}", "d/".repeat(length / 2)));
            Record { directory: id, path, written: written.clone() }.encode()
        };
        assert!(at(4094).is_some_and(|slot| slot.len() <= SLOT));
        assert_eq!(at(4098), None);
        let written = Written::InPlace { name: "n".repeat(256).into(), file: id };
        assert_eq!(Record { directory: id, path: "/".into(), written }.encode(), None);
    }
}
