//! How numbers, texts and lists lie in a message. What is read is untrusted: all of it is checked.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::policy::Limits;
use crate::program::ProgramName;
use crate::waiting::{Waiting, WaitsOn};

pub(crate) fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a message of the jail's processes is malformed")
}

/// Writes numbers and length-prefixed bytes.
#[derive(Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.u64(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    pub(crate) fn os(&mut self, value: &OsStr) {
        self.bytes(value.as_bytes());
    }

    pub(crate) fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.u64(items.len() as u64);
        for item in items {
            each(self, item);
        }
    }

    pub(crate) fn optional(&mut self, value: Option<u64>) {
        self.u64(u64::from(value.is_some()));
        self.u64(value.unwrap_or_default());
    }

    pub(crate) fn waiting(&mut self, waiting: Option<Waiting>) {
        self.optional(waiting.map(|waiting| u64::from(waiting.pid)));
        if let Some(waiting) = waiting {
            self.u64(match waiting.on {
                WaitsOn::Terminal => 0,
                WaitsOn::NamedPipe => 1,
                WaitsOn::Input => 2,
            });
            self.bytes(&waiting.program.0);
        }
    }

    pub(crate) fn limits(&mut self, limits: &Limits) {
        self.optional(limits.memory_bytes);
        self.optional(limits.processes);
        self.optional(limits.file_size_bytes);
        self.optional(limits.open_files);
    }
}

/// Reads what [`Writer`] wrote.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn u64(&mut self) -> io::Result<u64> {
        let (head, rest) = self.0.split_first_chunk().ok_or_else(malformed)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*head))
    }

    pub(crate) fn bytes(&mut self) -> io::Result<&'a [u8]> {
        let length = usize::try_from(self.u64()?).map_err(|_| malformed())?;
        let (head, rest) = self.0.split_at_checked(length).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn path(&mut self) -> io::Result<PathBuf> {
        Ok(OsString::from_vec(self.bytes()?.to_vec()).into())
    }

    pub(crate) fn c_string(&mut self) -> io::Result<CString> {
        CString::new(self.bytes()?).map_err(|_| malformed())
    }

    pub(crate) fn list<T>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> io::Result<T>,
    ) -> io::Result<Vec<T>> {
        (0..self.u64()?).map(|_| each(self)).collect()
    }

    pub(crate) fn optional(&mut self) -> io::Result<Option<u64>> {
        let there = self.u64()? != 0;
        let value = self.u64()?;
        Ok(there.then_some(value))
    }

    pub(crate) fn waiting(&mut self) -> io::Result<Option<Waiting>> {
        let Some(pid) = self.optional()? else { return Ok(None) };
        let on = match self.u64()? {
            0 => WaitsOn::Terminal,
            1 => WaitsOn::NamedPipe,
            2 => WaitsOn::Input,
            _ => return Err(malformed()),
        };
        let pid = u32::try_from(pid).map_err(|_| malformed())?;
        let program = self.program()?;
        Ok(Some(Waiting { pid, on, program }))
    }

    pub(crate) fn program(&mut self) -> io::Result<ProgramName> {
        self.bytes()?.try_into().map(ProgramName).map_err(|_| malformed())
    }

    pub(crate) fn limits(&mut self) -> io::Result<Limits> {
        Ok(Limits {
            memory_bytes: self.optional()?,
            processes: self.optional()?,
            file_size_bytes: self.optional()?,
            open_files: self.optional()?,
        })
    }
}
