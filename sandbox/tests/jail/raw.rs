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

/// Reads eight bytes of another process.
pub(crate) fn process_vm_readv(pid: i32, address: u64) -> io::Result<[u8; 8]> {
    let mut bytes = [0; 8];
    vm_call(libc::SYS_process_vm_readv, pid, &mut bytes, address).map(|_| bytes)
}

/// Writes eight bytes into another process.
pub(crate) fn process_vm_writev(pid: i32, address: u64, mut bytes: [u8; 8]) -> io::Result<i64> {
    vm_call(libc::SYS_process_vm_writev, pid, &mut bytes, address)
}

fn vm_call(number: c_long, pid: i32, bytes: &mut [u8; 8], address: u64) -> io::Result<i64> {
    let mut here = [(bytes.as_mut_ptr() as u64).to_ne_bytes(), 8_u64.to_ne_bytes()].concat();
    let mut there = [address.to_ne_bytes(), 8_u64.to_ne_bytes()].concat();
    // The first vector points at `bytes`, which is borrowed until the call is over, and no other
    // memory of this process is named.
    let words = &mut [
        Word::Number(pid.into()),
        Word::Bytes(&mut here),
        Word::Number(1),
        Word::Bytes(&mut there),
        Word::Number(1),
        Word::Number(0),
    ];
    call(number, words)
}

/// Makes a system call by its number for 32-bit programs, with one argument. The kernel kills the
/// process that may not.
#[cfg(target_arch = "x86_64")]
pub(crate) fn call_32_bit(number: u32, argument: u32) -> i32 {
    let answer: i32;
    // SAFETY: the interrupt takes its arguments from registers and touches no memory for the
    // numbers that callers pass; rbx, which the compiler keeps for itself, is put back.
    unsafe {
        std::arch::asm!(
            "xchg rbx, {argument}",
            "int 0x80",
            "xchg rbx, {argument}",
            argument = inout(reg) u64::from(argument) => _,
            inlateout("eax") number => answer,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    answer
}

/// Starts a child that shares nothing with this process, with further flags of clone(2). The child
/// ends at once.
pub(crate) fn clone(flags: i32) -> io::Result<i32> {
    // SAFETY: without CLONE_VM the child has a copy of everything; it calls nothing but _exit.
    let pid =
        unsafe { libc::syscall(libc::SYS_clone, i64::from(flags | libc::SIGCHLD), 0, 0, 0, 0) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: ends this process without touching its memory.
        0 => unsafe { libc::_exit(0) },
        pid => {
            // SAFETY: a null status is allowed.
            unsafe { libc::waitpid(pid as i32, std::ptr::null_mut(), 0) };
            Ok(pid as i32)
        }
    }
}

/// Makes the parent of this process its tracer.
pub(crate) fn trace_me() -> io::Result<()> {
    call(libc::SYS_ptrace, &mut [Word::Number(libc::PTRACE_TRACEME.into())]).map(|_| ())
}

/// A pair of unix sockets, which are closed with the process.
pub(crate) fn socket_pair(kind: i32) -> io::Result<i64> {
    let mut pair = [0; 8];
    let [family, kind] = [libc::AF_UNIX, kind].map(|n| Word::Number(n.into()));
    call(libc::SYS_socketpair, &mut [family, kind, Word::Number(0), Word::Bytes(&mut pair)])
}

/// Starts a child that waits for its end.
pub(crate) fn fork_and_stay() -> io::Result<i64> {
    clone_and_stay(0)
}

/// The same with further flags of clone(2).
pub(crate) fn clone_and_stay(flags: i32) -> io::Result<i64> {
    // SAFETY: without CLONE_VM, which nobody passes, the child has a copy of everything; it calls
    // nothing but pause.
    match unsafe { libc::syscall(libc::SYS_clone, i64::from(flags | libc::SIGCHLD), 0, 0, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        0 => loop {
            // SAFETY: takes no argument and touches no memory.
            unsafe { libc::pause() };
        },
        pid => Ok(pid),
    }
}

/// Becomes the tracer of a process, which is to stop once more when it ends.
pub(crate) fn trace_to_the_end(pid: i32) -> io::Result<i64> {
    let words = [libc::PTRACE_SEIZE.into(), pid.into(), 0, libc::PTRACE_O_TRACEEXIT.into()];
    call(libc::SYS_ptrace, &mut words.map(Word::Number))
}
