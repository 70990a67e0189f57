//! The one place that writes to a person: standard output and standard error, with explicit
//! errors, colours only on a terminal, and nothing on a terminal that could take it over.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use super::CliError;

/// The exit code of a program that SIGPIPE ended: 128 and its number.
const READER_GONE: u8 = 141;

/// Standard output and standard error.
pub(crate) struct Output {
    stdout: Stream,
    stderr: Stream,
    /// Whether the last thing on standard error is a progress line without an end.
    progress: Progress,
}

#[derive(Clone, Copy)]
struct Stream {
    target: Target,
    paint: Paint,
}

/// Where a stream ends up.
#[derive(Clone, Copy, PartialEq)]
enum Target {
    Terminal,
    Elsewhere,
}

/// Whether text may be coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    Colours,
    Plain,
}

#[derive(Clone, Copy, PartialEq)]
enum Progress {
    None,
    Shown,
}

/// How a piece of text is coloured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ink {
    Bold,
    Italic,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Ink {
    const fn code(self) -> &'static str {
        match self {
            Ink::Bold => "1",
            Ink::Dim => "2",
            Ink::Italic => "3",
            Ink::Red => "31",
            Ink::Green => "32",
            Ink::Yellow => "33",
            Ink::Cyan => "36",
        }
    }
}

impl Paint {
    /// `text` in a colour, where colours are wanted. The text must be escaped already.
    pub(crate) fn ink(self, ink: Ink, text: &str) -> String {
        match self {
            Paint::Colours if !text.is_empty() => format!("\x1b[{}m{text}\x1b[0m", ink.code()),
            _ => text.to_owned(),
        }
    }
}

impl Output {
    pub(crate) fn of_this_process() -> Self {
        let stream = |is_terminal: bool| {
            let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
            let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
            Stream {
                target: if is_terminal { Target::Terminal } else { Target::Elsewhere },
                paint: if is_terminal && !is_set("NO_COLOR") && !is_dumb {
                    Paint::Colours
                } else {
                    Paint::Plain
                },
            }
        };
        Self {
            stdout: stream(io::stdout().is_terminal()),
            stderr: stream(io::stderr().is_terminal()),
            progress: Progress::None,
        }
    }

    /// Whether standard output takes colours.
    pub(crate) fn paint(&self) -> Paint {
        self.stdout.paint
    }

    /// Whether text for standard output has to be escaped: it may hold what a command or a file
    /// wants a terminal to do.
    pub(crate) fn escapes(&self) -> Escape {
        match self.stdout.target {
            Target::Terminal => Escape::Controls,
            Target::Elsewhere => Escape::Nothing,
        }
    }

    /// Writes text to standard output.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), CliError> {
        self.bytes(text.as_bytes())
    }

    /// Writes what a command printed: as it is, or escaped where a terminal would obey it.
    pub(crate) fn relay(&mut self, to: Relay, data: &[u8]) -> Result<(), CliError> {
        let stream = match to {
            Relay::Stdout => self.stdout,
            Relay::Stderr => self.stderr,
        };
        let escaped;
        let data = match stream.target {
            Target::Elsewhere => data,
            Target::Terminal => {
                escaped = escape(&String::from_utf8_lossy(data));
                escaped.as_bytes()
            }
        };
        match to {
            Relay::Stdout => self.bytes(data),
            Relay::Stderr => {
                self.end_progress();
                written(io::stderr().write_all(data))
            }
        }
    }

    fn bytes(&mut self, data: &[u8]) -> Result<(), CliError> {
        self.end_progress();
        let mut stdout = io::stdout().lock();
        written(stdout.write_all(data).and_then(|()| stdout.flush()))
    }

    /// Shows what goes on, on one line of a terminal that the next replaces.
    pub(crate) fn progress(&mut self, message: &str) {
        if self.stderr.target == Target::Elsewhere {
            return;
        }
        let line: String = escape(message).chars().filter(|char| *char != '\n').take(78).collect();
        let line = self.stderr.paint.ink(Ink::Dim, &line);
        // A progress line that is lost is no loss.
        let _ = write!(io::stderr(), "\r\x1b[K{line}");
        self.progress = Progress::Shown;
    }

    fn end_progress(&mut self) {
        if self.progress == Progress::Shown {
            let _ = io::stderr().write_all(b"\r\x1b[K");
            self.progress = Progress::None;
        }
    }

    /// Tells of something on standard error.
    pub(crate) fn note(&mut self, label: &str, ink: Ink, text: &str) {
        self.end_progress();
        // Nobody can be told that standard error cannot be written.
        let _ = io::stderr().write_all(self.note_line(label, ink, text).as_bytes());
    }

    fn note_line(&self, label: &str, ink: Ink, text: &str) -> String {
        let text = match self.stderr.target {
            Target::Terminal => escape(text),
            Target::Elsewhere => text.to_owned(),
        };
        format!("{} {text}\n", self.stderr.paint.ink(ink, &format!("{label}:")))
    }

    /// Tells why a command failed. The exit code is 1; where the reader went away it is that of a
    /// program which SIGPIPE ended, and nothing is said.
    pub(crate) fn failure(&mut self, error: &CliError) -> ExitCode {
        if matches!(error, CliError::OutputClosed) {
            return ExitCode::from(READER_GONE);
        }
        self.note("error", Ink::Red, &error.to_string());
        for cause in error.causes() {
            self.note("  because", Ink::Dim, &cause);
        }
        if let Some(hint) = error.hint() {
            self.note("hint", Ink::Cyan, &hint);
        }
        ExitCode::FAILURE
    }

    /// Tells a program why a command failed, in the form of a call's last event.
    pub(crate) fn failure_as_json(&mut self, error: &CliError) -> ExitCode {
        match self.print(&format!("{}\n", error.as_json())) {
            // Somebody should hear of it.
            Err(CliError::Io { .. }) => self.failure(error),
            Err(CliError::OutputClosed) => ExitCode::from(READER_GONE),
            _ => ExitCode::FAILURE,
        }
    }

    /// What clap has to say: a wrong command line, or the help that was asked for.
    pub(crate) fn refusal(&mut self, refusal: &clap::Error) -> ExitCode {
        // Nobody can be told that nothing can be written.
        let _ = refusal.print();
        u8::try_from(refusal.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
    }

    /// The page of help for who started this by hand.
    pub(crate) fn help(&mut self, page: &clap::builder::StyledStr) {
        let text = match self.stderr.paint {
            Paint::Colours => page.ansi().to_string(),
            Paint::Plain => page.to_string(),
        };
        let _ = io::stderr().write_all(text.as_bytes());
    }

    pub(crate) fn completions(
        &mut self,
        shell: clap_complete::Shell,
    ) -> Result<ExitCode, CliError> {
        let mut script = Vec::new();
        let mut command = super::command();
        let name = command.get_name().to_owned();
        clap_complete::generate(shell, &mut command, name, &mut script);
        self.bytes(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Which of a command's streams is relayed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Relay {
    Stdout,
    Stderr,
}

/// What is done to text from files and commands before it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    /// Control characters are spelt out.
    Controls,
    /// Nothing: a program reads it.
    Nothing,
}

impl Escape {
    pub(crate) fn apply(self, text: &str) -> String {
        match self {
            Escape::Controls => escape(text),
            Escape::Nothing => text.to_owned(),
        }
    }
}

/// Spells out what a terminal would obey: control characters but line feed and tab, and those that
/// turn the direction of text.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' | '\t' => escaped.push(character),
            // The ordinary end of a line elsewhere.
            '\r' if characters.peek() == Some(&'\n') => {}
            _ if is_command(character) => {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "{}", character.escape_default());
            }
            _ => escaped.push(character),
        }
    }
    escaped
}

fn is_command(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{061c}')
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn written(result: io::Result<()>) -> Result<(), CliError> {
    result.map_err(|source| match source.kind() {
        io::ErrorKind::BrokenPipe => CliError::OutputClosed,
        _ => CliError::Io { what: "write the output", source },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelt_out_and_text_is_not() {
        assert_eq!(escape("a\tb\nc é 漢 🙂"), "a\tb\nc é 漢 🙂");
        assert_eq!(escape("\x1b[2J\x07"), "\\u{1b}[2J\\u{7}");
        assert_eq!(escape("\u{9b}31m \u{202e}evil"), "\\u{9b}31m \\u{202e}evil");
        assert_eq!(escape("dos\r\nline\rback"), "dos\nline\\rback");
    }

    #[test]
    fn colours_come_only_where_they_are_wanted() {
        assert_eq!(Paint::Plain.ink(Ink::Red, "x"), "x");
        assert_eq!(Paint::Colours.ink(Ink::Red, "x"), "\x1b[31mx\x1b[0m");
    }
}
