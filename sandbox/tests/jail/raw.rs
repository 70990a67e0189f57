//! System calls by number, for attempts that no safe wrapper makes.
#![expect(unsafe_code, reason = "an attacker does not keep to the wrappers")]

use std::ffi::CStr;
use std::io;

use libc::c_long;

/// An argument of a system call.
pub(crate) enum Word<'a> {
    /// A number; never an address.
    Number(i64),
    /// The address of a text.
    Text(&'a CStr),
    /// The address of bytes that the kernel may read and write; it must not go beyond them.
    Bytes(&'a mut [u8]),
}

/// Makes a system call that touches no memory of this process but that of its arguments.
pub(crate) fn call(number: c_long, words: &mut [Word<'_>]) -> io::Result<i64> {
    let mut arguments = [0_i64; 6];
    for (argument, word) in arguments.iter_mut().zip(words) {
        *argument = match word {
            Word::Number(number) => *number,
            Word::Text(text) => text.as_ptr() as i64,
            Word::Bytes(bytes) => bytes.as_mut_ptr() as i64,
        };
    }
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: every pointer among the arguments comes from a live borrow that lasts for the call,
    // and callers pass calls that stay within it and unmap nothing.
    let answer = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
