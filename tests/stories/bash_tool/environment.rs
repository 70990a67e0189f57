//! The environment that a command starts in.

use super::fixture::Fixture;
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![a_command_starts_clean,]
}

fn a_command_starts_clean() {
    let fixture = Fixture::new();
    let result = fixture.result(
        "ls /proc/$$/fd >list; tr '\\n' ' ' <list; echo; \
         ps -o pid=,pgid=,sid= -p $$ | { read pid group session; \
         test $pid = $$ -a $group = $$ -a $session = $$ && echo leader; }; \
         grep -E '^(SigBlk|SigIgn|Umask)' /proc/self/status; \
         yes | head -n 1; echo ${PIPESTATUS[*]}",
    );
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let umask = own.lines().find_map(|line| line.strip_prefix("Umask:\t")).unwrap();
    let output = result["output"].as_str().unwrap();
    let expected = ["0 1 2 ", "leader", &format!("Umask:\t{umask}"), "y", "141 0"];
    for line in expected {
        assert!(output.lines().any(|shown| shown == line), "{line}: {output}");
    }
    // SIGPIPE ended `yes`.
    for name in ["SigBlk", "SigIgn"] {
        assert!(output.contains(&format!("{name}:\t0000000000000000\n")), "{name}: {output}");
    }
}
