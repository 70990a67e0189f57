//! The messages between the provider, the spawner and the supervisors.
//!
//! All of them are processes of one build, so the format can change freely. Both sides treat
//! messages as untrusted: a message that does not parse is an error, never a panic.

use std::ffi::CString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::changes::Changes;
use crate::command::{ExitStatus, Input, LimitHit, Look, Report, Stage};
use crate::policy::Limits;
use crate::program::Programs;
use crate::waiting::Waiting;

pub(crate) use encoding::{Reader, Writer, malformed};

mod encoding;

/// The largest message that a packet holds; a longer one travels in a memory file. This is well
/// below the smallest send buffer that a machine can be set to.
const INLINE: usize = 16 * 1024;
/// The largest message: Linux limits arguments and environment to 6 MiB.
const MOST: u64 = 16 * 1024 * 1024;
/// The most descriptors that travel with one message.
const MOST_FDS: usize = 5;

/// What the provider asks a supervisor to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Send a signal to the command's process group.
    Signal(i32),
    /// Kill the whole call.
    Kill,
    /// The command's own process has ended: end what it left running, and let it clean up first.
    Finish,
    /// Say what the command waits for, and whether it listens on a port.
    Look { at_ports: bool },
}

/// Whether receiving may block until a message arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocking {
    Allowed,
    Refused,
}

/// A supervisor's report about a call that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExitReport {
    /// As from wait(2).
    pub(crate) wait_status: i32,
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
    pub(crate) max_rss_kib: u64,
    pub(crate) killed: u64,
    pub(crate) left_running: Programs,
    pub(crate) waiting: Option<Waiting>,
}

/// What a supervisor sends while its command runs, and at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The answer to [`Order::Look`].
    Look(Look),
    Exit(ExitReport),
    /// What was found in layers, from their keeper, after the exit.
    Changes(Changes),
}

/// A supervisor's first message: whether the command runs.
#[derive(Debug)]
pub(crate) enum StartReport {
    /// The program runs, with this pid in the jail.
    Running(u32),
    /// The program does not run: the step that failed, and its errno.
    Failed(Stage, i32),
}

/// A command as it travels to the spawner, without its descriptors.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) program: CString,
    pub(crate) argv: Vec<CString>,
    pub(crate) env: Vec<CString>,
    pub(crate) cwd: CString,
    pub(crate) input: Input,
    pub(crate) limits: Limits,
}

/// A pair of sockets that keep message boundaries and show the other end's death.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends one message of any length with up to [`MOST_FDS`] − 1 descriptors.
pub(crate) fn send(socket: impl AsFd, message: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    if message.len() <= INLINE {
        return send_packet(socket.as_fd(), b"i", message, fds);
    }
    let file = memfd_create("message", MemfdFlags::CLOEXEC)?;
    let mut rest = message;
    while !rest.is_empty() {
        let written = retry_on_intr(|| rustix::io::write(&file, rest))?;
        rest = &rest[written..];
    }
    let mut with_file = fds.to_vec();
    with_file.push(file.as_fd());
    send_packet(socket.as_fd(), b"m", &(message.len() as u64).to_le_bytes(), &with_file)
}

fn send_packet(
    socket: BorrowedFd<'_>,
    kind: &[u8; 1],
    body: &[u8],
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let parts = [IoSlice::new(kind), IoSlice::new(body)];
    retry_on_intr(|| sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Receives a message from inside the jail. Refuses a memory file: its sender controls it, and
/// reading it could block for ever.
fn receive_reply(socket: impl AsFd, blocking: Blocking) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let (kind, message, fds) = receive_packet(socket, blocking)?;
    if kind == b'i' { Ok((message, fds)) } else { Err(malformed()) }
}

/// Receives a message of any length from the provider.
pub(crate) fn receive(
    socket: impl AsFd,
    blocking: Blocking,
) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let (kind, message, mut fds) = receive_packet(socket, blocking)?;
    match kind {
        b'i' => Ok((message, fds)),
        b'm' => {
            let length = Reader(&message).u64()?;
            let file = fds.pop().ok_or_else(malformed)?;
            Ok((read_file(&file, length)?, fds))
        }
        _ => Err(malformed()),
    }
}

/// Receives one packet and splits off its kind. If the other end is closed this fails with
/// [`io::ErrorKind::UnexpectedEof`].
fn receive_packet(
    socket: impl AsFd,
    blocking: Blocking,
) -> io::Result<(u8, Vec<u8>, Vec<OwnedFd>)> {
    let mut buffer = vec![0; INLINE + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut flags = RecvFlags::CMSG_CLOEXEC;
    flags.set(RecvFlags::DONTWAIT, blocking == Blocking::Refused);
    let mut once_more = true;
    let message = loop {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        match recvmsg(&socket, &mut parts, &mut control, flags) {
            Err(Errno::INTR) => {}
            // The other end closed without reading our message. What it sent before is still queued
            // behind this error.
            Err(Errno::CONNRESET) if once_more => once_more = false,
            other => break other?,
        }
    };
    let mut fds = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            fds.extend(received);
        }
    }
    match buffer.get(..message.bytes).and_then(<[u8]>::split_first) {
        None => Err(io::ErrorKind::UnexpectedEof.into()),
        Some((kind, body)) => Ok((*kind, body.to_vec(), fds)),
    }
}

fn read_file(file: &OwnedFd, length: u64) -> io::Result<Vec<u8>> {
    if length > MOST {
        return Err(malformed());
    }
    let mut message = vec![0; usize::try_from(length).map_err(|_| malformed())?];
    let mut at = 0;
    while at < message.len() {
        match retry_on_intr(|| rustix::io::pread(file, &mut message[at..], at as u64))? {
            0 => return Err(malformed()),
            count => at += count,
        }
    }
    Ok(message)
}

/// Sends an order to a supervisor. It is no error if the supervisor has ended.
pub(crate) fn send_order(control: impl AsFd, order: Order) -> io::Result<()> {
    let mut message = Writer::default();
    match order {
        Order::Signal(signal) => message.u64(u64::from(signal.unsigned_abs())),
        Order::Kill => message.u64(u64::MAX),
        Order::Finish => message.u64(u64::MAX - 1),
        Order::Look { at_ports } => {
            message.u64(u64::MAX - 2);
            message.u64(u64::from(at_ports));
        }
    }
    match send(control, &message.0, &[]) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::PIPE) => Ok(()),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::CONNRESET) => Ok(()),
        other => other,
    }
}

/// The supervisor's side of [`send_order`].
pub(crate) fn receive_order(control: impl AsFd) -> io::Result<Order> {
    let (message, _) = receive(control, Blocking::Refused)?;
    let mut from = Reader(&message);
    match from.u64()? {
        u64::MAX => Ok(Order::Kill),
        order if order == u64::MAX - 1 => Ok(Order::Finish),
        order if order == u64::MAX - 2 => Ok(Order::Look { at_ports: from.u64()? != 0 }),
        signal => i32::try_from(signal).map(Order::Signal).map_err(|_| malformed()),
    }
}

/// Stands where a report has a wait status, of 32 bits.
const LOOK: u64 = u64::MAX;

/// The same of changes.
const CHANGES: u64 = u64::MAX - 1;

/// Receives a supervisor's report.
pub(crate) fn receive_report(control: impl AsFd, blocking: Blocking) -> io::Result<Message> {
    let (message, _) = receive_reply(control, blocking)?;
    let mut from = Reader(&message);
    let wait_status = match from.u64()? {
        LOOK => {
            let ports = from.list(|from| u16::try_from(from.u64()?).map_err(|_| malformed()))?;
            return Ok(Message::Look(Look { waiting: from.waiting()?, ports }));
        }
        CHANGES => return Ok(Message::Changes(Changes::decode(&mut from)?)),
        status => status as u32 as i32,
    };
    Ok(Message::Exit(ExitReport {
        wait_status,
        user_us: from.u64()?,
        system_us: from.u64()?,
        max_rss_kib: from.u64()?,
        killed: from.u64()?,
        left_running: Programs([from.program()?, from.program()?, from.program()?]),
        waiting: from.waiting()?,
    }))
}

/// The supervisor's answer to [`Order::Look`].
pub(crate) fn send_look(control: impl AsFd, look: &Look) -> io::Result<()> {
    let mut message = Writer::default();
    message.u64(LOOK);
    message.list(&look.ports, |to, port| to.u64(u64::from(*port)));
    message.waiting(look.waiting);
    send(control, &message.0, &[])
}

/// Reports what a command changed in its layers.
pub(crate) fn send_changes(control: impl AsFd, changes: &Changes) -> io::Result<()> {
    let mut message = Writer::default();
    message.u64(CHANGES);
    changes.encode(&mut message);
    send(control, &message.0, &[])
}

impl ExitReport {
    /// The supervisor's side of [`receive_report`].
    pub(crate) fn send(&self, control: impl AsFd) -> io::Result<()> {
        let mut message = Writer::default();
        message.u64(u64::from(self.wait_status as u32));
        message.u64(self.user_us);
        message.u64(self.system_us);
        message.u64(self.max_rss_kib);
        message.u64(self.killed);
        self.left_running.0.iter().for_each(|name| message.bytes(&name.0));
        message.waiting(self.waiting);
        send(control, &message.0, &[])
    }

    pub(crate) fn into_report(self) -> Report {
        let signal = self.wait_status & 0x7f;
        let status = match signal {
            0 => ExitStatus::Exited((self.wait_status >> 8) & 0xff),
            signal => ExitStatus::Signaled(signal),
        };
        let too_large = status.shell_code() == 128 + libc::SIGXFSZ;
        Report {
            status,
            user_time: Duration::from_micros(self.user_us),
            system_time: Duration::from_micros(self.system_us),
            max_rss_bytes: self.max_rss_kib.saturating_mul(1024),
            processes_killed: self.killed,
            left_running: self.left_running,
            waiting: self.waiting,
            limit: too_large.then_some(LimitHit::FileSize),
            changes: None,
            sought_network: None,
        }
    }
}

impl StartReport {
    /// Sends this to the provider, with the command's pidfd if it runs.
    pub(crate) fn send(&self, control: impl AsFd, pidfd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut message = Writer::default();
        match self {
            StartReport::Running(pid) => {
                message.u64(u64::MAX);
                message.u64(u64::from(*pid));
            }
            StartReport::Failed(stage, errno) => {
                message.u64(*stage as u64);
                message.u64(u64::from(errno.unsigned_abs()));
            }
        }
        let sent = send(&control, &message.0, pidfd.as_slice());
        match pidfd {
            // Such as where other processes of the user have too many descriptors in flight. The provider
            // does without this one, and not without the report: what comes next would be taken for it.
            Some(_) if sent.is_err() => send(control, &message.0, &[]),
            _ => sent,
        }
    }

    /// The provider's side of [`StartReport::send`].
    pub(crate) fn receive(control: impl AsFd) -> io::Result<(Self, Option<OwnedFd>)> {
        let (message, mut fds) = receive_reply(control, Blocking::Allowed)?;
        let mut from = Reader(&message);
        let report = match from.u64()? {
            u64::MAX => StartReport::Running(u32::try_from(from.u64()?).map_err(|_| malformed())?),
            stage => {
                let stage = usize::try_from(stage).ok().and_then(|n| Stage::ALL.get(n));
                let errno = i32::try_from(from.u64()?).map_err(|_| malformed())?;
                StartReport::Failed(*stage.ok_or_else(malformed)?, errno)
            }
        };
        Ok((report, fds.pop()))
    }
}

impl Request {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut to = Writer::default();
        to.bytes(self.program.to_bytes());
        to.bytes(self.cwd.to_bytes());
        to.list(&self.argv, |to, text| to.bytes(text.to_bytes()));
        to.list(&self.env, |to, text| to.bytes(text.to_bytes()));
        to.u64(match self.input {
            Input::Fixed => 0,
            Input::Pipe => 1,
            Input::Terminal => 2,
        });
        to.limits(&self.limits);
        to.0
    }

    pub(crate) fn decode(message: &[u8]) -> io::Result<Self> {
        let mut from = Reader(message);
        Ok(Self {
            program: from.c_string()?,
            cwd: from.c_string()?,
            argv: from.list(Reader::c_string)?,
            env: from.list(Reader::c_string)?,
            input: match from.u64()? {
                0 => Input::Fixed,
                1 => Input::Pipe,
                2 => Input::Terminal,
                _ => return Err(malformed()),
            },
            limits: from.limits()?,
        })
    }
}

#[cfg(test)]
mod tests;
