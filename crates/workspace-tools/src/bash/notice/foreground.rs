//! The command that keeps running as a session what a call of bash left in the background.

/// The longest command that a notice repeats.
const MOST_REPEATED: usize = 160;

/// Words of the shell's grammar: what stands before `&` may be a part of what they begin.
const COMPOUND: [&str; 9] =
    ["case", "do", "for", "function", "if", "select", "then", "until", "while"];

/// The arguments of session_start for what a command left running: a session ends with its shell, so what it
/// is to keep runs in the foreground.
pub(super) fn session(command: &str) -> String {
    match alone(command).filter(|alone| alone.len() <= MOST_REPEATED) {
        Some(alone) => serde_json::json!({"command": alone}).to_string(),
        None => "with the server in the foreground, without &".to_owned(),
    }
}

/// The command up to its one `&`, without what keeps a program from its shell's end.
fn alone(command: &str) -> Option<String> {
    let Background { before, begin } = background(command)?;
    let is_compound = before.split_whitespace().any(|word| COMPOUND.contains(&word));
    if is_compound || before.contains(['(', '{', '`']) || before.contains("<<") {
        return None;
    }
    let (earlier, last) = before.split_at(begin);
    let mut words = last.trim_start();
    while let Some(rest) = ["nohup", "setsid"].iter().find_map(|word| after(words, word)) {
        words = rest;
        while words.starts_with('-') {
            words = words.split_once(char::is_whitespace)?.1.trim_start();
        }
    }
    let alone = format!("{}{}{words}", earlier, if earlier.is_empty() { "" } else { " " });
    (!words.is_empty()).then(|| alone.trim().to_owned())
}

fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(word)?;
    rest.starts_with(char::is_whitespace).then(|| rest.trim_start())
}

/// What a command line puts in the background.
struct Background<'a> {
    /// All that stands before its `&`.
    before: &'a str,
    /// Where the last simple command of that begins.
    begin: usize,
}

/// Finds the only `&` of a command line that puts something in the background.
fn background(command: &str) -> Option<Background<'_>> {
    let mut found = None;
    let mut begin = 0;
    let mut quote = None;
    let mut before = ' ';
    let mut chars = command.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        match (quote, c) {
            (None | Some('"'), '\\') => drop(chars.next()),
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '&') if next == Some('&') => {
                chars.next();
                begin = if found.is_none() { at + 2 } else { begin };
            }
            // Of a redirection, as in 2>&1 and &>file.
            (None, '&') if matches!(before, '>' | '<' | '|') || next == Some('>') => {}
            (None, '&') if found.is_some() => return None,
            (None, '&') => found = Some(at),
            (None, ';' | '|' | '\n') if found.is_none() => begin = at + 1,
            _ => {}
        }
        before = c;
    }
    found.map(|at| Background { before: &command[..at], begin })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_to_the_background_is_repeated_without_that() {
        for (command, expected) in [
            ("npm run dev &", "npm run dev"),
            ("nohup npm run dev > log 2>&1 &", "npm run dev > log 2>&1"),
            ("cd app && setsid -f nohup npm start & disown", "cd app && npm start"),
            (
                "python3 -m http.server 8000 & sleep 1; curl localhost:8000",
                "python3 -m http.server 8000",
            ),
            ("node -e \"a && b & c\" &", "node -e \"a && b & c\""),
            ("node a.js &> log &", "node a.js &> log"),
        ] {
            assert_eq!(alone(command).as_deref(), Some(expected), "{command}");
        }
    }

    #[test]
    fn what_cannot_be_cut_safely_is_not_repeated() {
        for command in [
            "a & b &",
            "docker compose up -d",
            "(npm run dev &)",
            "for x in 1 2; do serve $x & done",
            "bash -c 'serve &'",
            "cat <<E & \nx\nE",
            "&",
        ] {
            assert_eq!(alone(command), None, "{command}");
        }
        assert_eq!(session("a & b &"), "with the server in the foreground, without &");
        assert!(session(&format!("serve {} &", "x".repeat(200))).contains("without &"));
        assert_eq!(session("serve &"), "{\"command\":\"serve\"}");
    }
}
