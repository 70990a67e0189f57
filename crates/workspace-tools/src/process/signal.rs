//! The names of signals.

/// The names of the signals 1 to 31, which are the same on x86-64 and arm64.
const NAMES: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// The name of a signal; a real-time signal has only its number.
#[must_use]
pub fn signal_name(signal: i32) -> String {
    usize::try_from(signal)
        .ok()
        .and_then(|number| NAMES.get(number.checked_sub(1)?))
        .map_or_else(|| format!("SIG{signal}"), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_their_usual_names() {
        let names = [1, 9, 15, 25, 31, 34, 0].map(signal_name);
        let expected = ["SIGHUP", "SIGKILL", "SIGTERM", "SIGXFSZ", "SIGSYS", "SIG34", "SIG0"];
        assert_eq!(names, expected);
    }
}
