//! The levels that a story can have on this machine, whichever it grants by itself.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::harness::PROGRAM;
use crate::trials::namespaces_are_refused;

/// A way to run the provider.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Machine {
    /// As it is.
    Plain,
    /// It grants no namespaces.
    WithoutNamespaces,
}

/// Allows no namespace in the one that it runs in, and runs a program there.
const REFUSED: &str = "echo 0 >/proc/sys/user/max_user_namespaces &&
    exec setpriv --bounding-set=-sys_admin --inh-caps=-all --ambient-caps=-all \"$@\"";

impl Machine {
    /// The program and the first arguments with which the provider runs on it.
    pub(crate) fn words(self) -> &'static [&'static str] {
        match self {
            Machine::Plain => &[PROGRAM],
            Machine::WithoutNamespaces => &[
                "unshare",
                "--user",
                "--map-current-user",
                "--keep-caps",
                "sh",
                "-c",
                REFUSED,
                "sh",
                PROGRAM,
            ],
        }
    }
}

/// How this machine can run the provider: at the level that it grants, and at the one below.
pub(crate) fn machines() -> &'static [Machine] {
    static GRANTED: OnceLock<bool> = OnceLock::new();
    let are_granted = GRANTED.get_or_init(|| {
        let mut probe = Command::new("unshare");
        probe.args(["--user", "--map-current-user", "--keep-caps", "true"]).stderr(Stdio::null());
        !namespaces_are_refused() && probe.status().is_ok_and(|status| status.success())
    });
    match are_granted {
        true => &[Machine::Plain, Machine::WithoutNamespaces],
        false => &[Machine::Plain],
    }
}
