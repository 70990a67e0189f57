//! The plan that the provider works out and sends to the spawner once: plain data.

use std::io;
use std::path::{Path, PathBuf};

use crate::others::Narrowed;
use crate::policy::{Mode, Namespaces, Network, Surroundings};
use crate::rights::{Grant, Rights};
use crate::wire::{Reader, Writer, malformed};

/// What the spawner must set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// How much of the plan to enforce.
    pub(crate) confinement: Confinement,
    /// Whether the spawner may do without system call filters.
    pub(crate) mode: Mode,
    /// Whether the spawner moves into new namespaces. `Auto` here means that it must.
    pub(crate) namespaces: Namespaces,
    pub(crate) network: Network,
    /// What commands may reach. A path comes after every path that holds it.
    pub(crate) grants: Vec<Grant>,
    /// Granted paths whose content comes from another path, with that path: private directories.
    pub(crate) sources: Vec<(PathBuf, PathBuf)>,
    /// Symbolic links on the way to granted paths, each with its target.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    /// Directories within private ones that only lead to what the policy names, to be read-only.
    pub(crate) leading: Vec<PathBuf>,
    /// Directories within granted ones that no command may move away, since they lead to a mask or to
    /// what the policy names.
    pub(crate) held: Vec<PathBuf>,
    /// Files and directories within granted ones to mount read-only, in namespaces only.
    pub(crate) protected: Vec<PathBuf>,
    /// Files and directories within granted ones to hide by mounts, in namespaces only.
    pub(crate) masks: Vec<PathBuf>,
    /// The empty directory on which the spawner mounts the new root.
    pub(crate) staging: PathBuf,
    /// The most processes and threads at once, where the kernel can limit them.
    pub(crate) processes: u64,
    /// What each command has of its own.
    pub(crate) surroundings: Surroundings,
    /// The most bytes of all layers.
    pub(crate) layer_bytes: u64,
    /// Directories that commands may only read, in which nothing is to reach programs outside.
    pub(crate) sealed: Vec<PathBuf>,
    /// The directory in which commands get scratch directories of their own, without namespaces.
    pub(crate) scratch: PathBuf,
}

/// How much the spawner enforces, besides namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confinement {
    /// Nothing.
    None,
    /// Everything but Landlock: capabilities and seccomp.
    WithoutLandlock,
    /// Everything.
    Whole,
}

impl Plan {
    /// The path that the content of the granted `path` comes from.
    pub(crate) fn source<'a>(&'a self, path: &'a Path) -> &'a Path {
        let other = self.sources.iter().find(|(granted, _)| granted == path);
        other.map_or(path, |(_, source)| source)
    }

    /// The private directory that `path` lies in, unless something else that is granted lies between.
    pub(crate) fn private_above(&self, path: &Path) -> Option<&Path> {
        let mounted = self.grants.iter().filter(|grant| grant.rights != Rights::List);
        let above = mounted.filter(|grant| grant.path != path && path.starts_with(&grant.path));
        let nearest = above.max_by_key(|grant| grant.path.components().count())?;
        let is_private = self.sources.iter().any(|(at, _)| *at == nearest.path);
        is_private.then_some(&nearest.path)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut to = Writer::default();
        to.u64(self.confinement as u64);
        to.u64(self.mode as u64);
        to.u64(u64::from(self.namespaces == Namespaces::Never));
        to.u64(u64::from(self.network == Network::Allow));
        to.list(&self.grants, |to, grant| {
            to.os(grant.path.as_os_str());
            to.u64(grant.rights as u64);
            to.optional(grant.identity.map(|(device, _)| device));
            to.u64(grant.identity.map_or(0, |(_, inode)| inode));
        });
        for pairs in [&self.sources, &self.links] {
            to.list(pairs, |to, (path, other)| {
                to.os(path.as_os_str());
                to.os(other.as_os_str());
            });
        }
        for paths in [&self.leading, &self.held, &self.protected, &self.masks] {
            to.list(paths, |to, path| to.os(path.as_os_str()));
        }
        to.os(self.staging.as_os_str());
        to.u64(self.processes);
        to.u64(self.surroundings as u64);
        to.u64(self.layer_bytes);
        to.list(&self.sealed, |to, path| to.os(path.as_os_str()));
        to.os(self.scratch.as_os_str());
        to.0
    }

    pub(crate) fn decode(message: &[u8]) -> io::Result<Self> {
        let mut from = Reader(message);
        let confinement = match from.u64()? {
            0 => Confinement::None,
            1 => Confinement::WithoutLandlock,
            2 => Confinement::Whole,
            _ => return Err(malformed()),
        };
        let modes = [Mode::Enforce, Mode::Full, Mode::BestEffort, Mode::Off];
        let number = from.u64()?;
        let mode = modes.into_iter().find(|mode| *mode as u64 == number).ok_or_else(malformed)?;
        let namespaces = if from.u64()? == 1 { Namespaces::Never } else { Namespaces::Auto };
        let network = if from.u64()? == 1 { Network::Allow } else { Network::Deny };
        let grants = from.list(|from| {
            let path = from.path()?;
            let rights = rights(from.u64()?)?;
            let device = from.optional()?;
            let inode = from.u64()?;
            Ok(Grant { path, rights, identity: device.map(|device| (device, inode)) })
        })?;
        let pair = |from: &mut Reader<'_>| Ok((from.path()?, from.path()?));
        Ok(Self {
            confinement,
            mode,
            namespaces,
            network,
            grants,
            sources: from.list(pair)?,
            links: from.list(pair)?,
            leading: from.list(Reader::path)?,
            held: from.list(Reader::path)?,
            protected: from.list(Reader::path)?,
            masks: from.list(Reader::path)?,
            staging: from.path()?,
            processes: from.u64()?,
            surroundings: surroundings(from.u64()?)?,
            layer_bytes: from.u64()?,
            sealed: from.list(Reader::path)?,
            scratch: from.path()?,
        })
    }
}

fn rights(number: u64) -> io::Result<Rights> {
    let all = [
        Rights::List,
        Rights::AsOthers,
        Rights::Read,
        Rights::ReadExecute,
        Rights::Device,
        Rights::ReadWrite,
    ];
    all.into_iter().find(|rights| *rights as u64 == number).ok_or_else(malformed)
}

fn surroundings(number: u64) -> io::Result<Surroundings> {
    let all = [Surroundings::Shared, Surroundings::ThrowAway];
    all.into_iter().find(|known| *known as u64 == number).ok_or_else(malformed)
}

fn why(from: &mut Reader<'_>) -> io::Result<Option<String>> {
    let why = String::from_utf8_lossy(from.bytes()?).into_owned();
    Ok(Some(why).filter(|why| !why.is_empty()))
}

/// The spawner's answer to a plan.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Setup {
    Ready(Ready),
    /// The step that failed, and the errno where there is one.
    Failed {
        step: String,
        errno: Option<i32>,
    },
}

/// What the spawner achieved.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    /// Whether the limit of processes binds root too.
    pub(crate) pid_limit: bool,
    /// Whether mounts hide what others may not read, and not rules on entries.
    pub(crate) narrowed: Narrowed,
    /// Why the limit of processes is for all calls together, and not for each.
    pub(crate) shared_limit: Option<String>,
    /// Why system calls are not filtered, where the plan's mode allows that.
    pub(crate) unfiltered: Option<String>,
}

impl Setup {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut to = Writer::default();
        match self {
            Setup::Ready(Ready { pid_limit, narrowed, shared_limit, unfiltered }) => {
                to.u64(0);
                to.u64(u64::from(*pid_limit));
                to.u64(u64::from(*narrowed == Narrowed::ByMount));
                for why in [shared_limit, unfiltered] {
                    to.bytes(why.as_deref().unwrap_or_default().as_bytes());
                }
            }
            Setup::Failed { step, errno } => {
                to.u64(1);
                to.bytes(step.as_bytes());
                to.optional(errno.map(|number| u64::from(number.unsigned_abs())));
            }
        }
        to.0
    }

    pub(crate) fn decode(message: &[u8]) -> io::Result<Self> {
        let mut from = Reader(message);
        Ok(match from.u64()? {
            0 => {
                let pid_limit = from.u64()? != 0;
                let by_mount = from.u64()? != 0;
                let narrowed = if by_mount { Narrowed::ByMount } else { Narrowed::ByEntry };
                let shared_limit = why(&mut from)?;
                let unfiltered = why(&mut from)?;
                Setup::Ready(Ready { pid_limit, narrowed, shared_limit, unfiltered })
            }
            _ => Setup::Failed {
                step: String::from_utf8_lossy(from.bytes()?).into_owned(),
                errno: from.optional()?.and_then(|number| i32::try_from(number).ok()),
            },
        })
    }
}
