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
pub(super) fn only_shows_text(command: &str) -> bool {
    parts(command).iter().all(|part| {
        let mut words = part
            .split_whitespace()
            .skip_while(|word| IN_FRONT.contains(word) || word.contains('=') || is_an_option(word));
        match words.next() {
            None => true,
            Some("git") => words
                .find(|word| !word.starts_with('-'))
                .is_some_and(|word| GIT_SHOWS.contains(&word)),
            Some(word) => {
                let name = word.rsplit('/').next().unwrap_or(word);
                SHOWS_TEXT.contains(&name)
            }
        }
    })
}

/// Of a word in front: `nice -n 5`.
fn is_an_option(word: &str) -> bool {
    word.starts_with('-') || word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The simple commands of a command line, without what is in quotes.
fn parts(command: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    let mut before = ' ';
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        let part = parts.last_mut();
        match (quote, c) {
            (None | Some('"'), '\\') => drop(chars.next()),
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => {
                quote = Some(c);
                part.into_iter().for_each(|part| part.push('_'));
            }
            // Of a redirection, as in 2>&1 and &>file.
            (None, '&') if before == '>' || chars.peek() == Some(&'>') => {}
            (None, ';' | '|' | '&' | '\n' | '(' | ')' | '{' | '}' | '`') => {
                parts.push(String::new())
            }
            (None, c) => part.into_iter().for_each(|part| part.push(c)),
        }
        before = c;
    }
    parts
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
}
