//! What a command line runs, as far as a notice has to know.

/// Programs that print what is in files, so that an error in their output need not be theirs, and words
/// that run nothing.
const SHOWS_TEXT: [&str; 58] = [
    "[",
    "ack",
    "ag",
    "awk",
    "base64",
    "bat",
    "cat",
    "cd",
    "column",
    "comm",
    "cut",
    "diff",
    "done",
    "echo",
    "egrep",
    "esac",
    "exit",
    "export",
    "expr",
    "false",
    "fgrep",
    "fi",
    "file",
    "find",
    "fold",
    "for",
    "grep",
    "head",
    "in",
    "jq",
    "journalctl",
    "less",
    "ls",
    "more",
    "nl",
    "od",
    "paste",
    "printf",
    "pwd",
    "rev",
    "rg",
    "sed",
    "set",
    "shuf",
    "sort",
    "stat",
    "strings",
    "tac",
    "tail",
    "tee",
    "test",
    "tr",
    "true",
    "uniq",
    "unset",
    "wc",
    "xxd",
    "zcat",
];

/// What git does without a network, whatever it prints.
const GIT_SHOWS: [&str; 8] =
    ["blame", "branch", "cat-file", "diff", "grep", "log", "show", "status"];

/// Words in front of the one that names the program.
const IN_FRONT: [&str; 13] = [
    "!", "command", "do", "elif", "else", "env", "if", "nice", "then", "time", "until", "while",
    "xargs",
];

/// Whether nothing that the command line names does anything but show text.
pub(in super::super) fn only_shows_text(command: &str) -> bool {
    parts(command).iter().all(|part| {
        let mut words = words(part);
        match words.next() {
            None => true,
            Some("git") => words
                .find(|word| !word.starts_with('-'))
                .is_some_and(|word| GIT_SHOWS.contains(&word)),
            Some(word) => SHOWS_TEXT.contains(&name(word)),
        }
    })
}

/// Whose words the lines of a command's output are.
pub(in super::super) struct Speakers {
    /// The programs of a command that only shows text. `None` where any line may be of a program.
    programs: Option<Vec<String>>,
}

impl Speakers {
    pub(in super::super) fn of(command: &str) -> Self {
        let names = || {
            let shells = ["bash", "dash", "sh"].map(str::to_owned);
            let parts = parts(command);
            let named = parts.iter().filter_map(|part| words(part).next().map(name));
            shells.into_iter().chain(named.map(str::to_owned)).collect()
        };
        Self { programs: only_shows_text(command).then(names) }
    }

    /// Whether a line may be a program's own, as far as can be known: where all of them only show text, it
    /// begins with the name of one, or of the shell.
    pub(in super::super) fn say(&self, line: &str) -> bool {
        let Some(programs) = &self.programs else { return true };
        line.split_once(": ").is_some_and(|(program, _)| {
            // What was printed before may end without a new line.
            programs.iter().any(|it| name(program).ends_with(it.as_str()))
        })
    }
}

/// Whether a simple command of the line runs this program.
pub(super) fn runs(command: &str, program: &str) -> bool {
    parts(command).iter().any(|part| words(part).next().map(name) == Some(program))
}

/// Whether the shell may end well although a program in it failed.
pub(in super::super) fn hides_failures(command: &str) -> bool {
    let chained = bare(command).replace("&&", " ");
    chained.trim_end().contains(['|', ';', '&', '\n', '`', '('])
}

/// Whether what the command line runs is to change git's settings, or cannot be known.
pub(in super::super) fn changes_settings_of_git(command: &str) -> bool {
    const CHANGES: [&str; 4] = ["config", "remote", "sparse-checkout", "submodule"];
    let changes = |part: &String| {
        let mut words = words(part);
        // Behind `-C DIR` it is the second one.
        words.next().map(name) == Some("git")
            && words.filter(|word| !word.starts_with('-')).take(2).any(|it| CHANGES.contains(&it))
    };
    !command.contains("git ") || parts(command).iter().any(changes)
}

/// The program of a simple command, and its arguments.
fn words(part: &str) -> impl Iterator<Item = &str> {
    part.split_whitespace()
        .skip_while(|word| IN_FRONT.contains(word) || word.contains('=') || is_an_option(word))
}

fn name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Of a word in front: `nice -n 5`.
fn is_an_option(word: &str) -> bool {
    word.starts_with('-') || word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The simple commands of a command line, without what is in quotes.
fn parts(command: &str) -> Vec<String> {
    let ends = [';', '|', '&', '\n', '(', ')', '{', '}', '`'];
    bare(command).split(ends).map(str::to_owned).collect()
}

/// A command line without what is in quotes, and without the `&` of redirections.
fn bare(command: &str) -> String {
    let mut bare = String::new();
    let mut quote = None;
    let mut before = ' ';
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => drop(chars.next()),
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => {
                quote = Some(c);
                bare.push('_');
            }
            // As in 2>&1 and &>file.
            (None, '&') if before == '>' || chars.peek() == Some(&'>') => {}
            (None, c) => bare.push(c),
        }
        before = c;
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_shows_text_is_told_from_what_may_do_more() {
        for shows in [
            "cat log",
            "cd src && grep -rn \"a|b; curl\" . 2>&1 | head -5",
            "LC_ALL=C rg x; echo $?",
            "for f in *.log; do tail -3 $f; done",
            "git log -3 | cat",
            "git --no-pager diff",
            "find . -name '*.rs' | xargs -n 1 grep -l x",
            "if grep -q x y; then cat y; fi",
            "",
        ] {
            assert!(only_shows_text(shows), "{shows}");
        }
        for does in [
            "curl x",
            "cat a; npm install 2>&1 | tail",
            "git fetch | cat",
            "git -c a=b push",
            "make",
            "FOO=1 pip install x",
            "echo $(curl x)",
            "x=`wget y`",
            "(cd a && cargo build)",
        ] {
            assert!(!only_shows_text(does), "{does}");
        }
    }

    #[test]
    fn what_may_hide_a_failure_is_told_from_what_ends_with_it() {
        for hides in ["a | tail", "a; b", "a || true", "a\nb", "x=$(a)", "a &"] {
            assert!(hides_failures(hides), "{hides}");
        }
        for ends in ["a", "cd x && a 2>&1", "a &>log && b\n", "python3 -c 'a(b); c'"] {
            assert!(!hides_failures(ends), "{ends}");
        }
    }

    #[test]
    fn a_line_is_of_a_program_where_it_begins_with_its_name() {
        for line in
            ["cat: x: Permission denied", "/usr/bin/cat: x", "bash: line 1: x: Is a directory"]
        {
            assert!(Speakers::of("cd a && cat x | head").say(line), "{line}");
        }
        assert!(!Speakers::of("cat log").say("touch: x: Permission denied"));
        assert!(Speakers::of("make").say("touch: x: Permission denied"));
    }
}
