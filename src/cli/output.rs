//! The one place that writes to a person: standard output and standard error, with explicit
//! errors, colours only where they are wanted, and no control sequences of others on a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::AutoStream;
use anstream::stream::RawStream;
use rustix::fs::FileType;
use rustix::termios::tcgetwinsize;

use super::CliError;
use super::args::ColorChoice;
use super::exit;
use super::paint::{Escape, Ink, Layout, Paint, Painter, StyleFilter, cut, escape};
use tool_provider::OutputStream;
use workspace_fs::text::hidden::is_hidden;

/// Standard output and standard error.
#[derive(Clone, Copy)]
pub(crate) struct Output {
    stdout: Stream,
    stderr: Stream,
}

/// Whether the last thing on the terminal is a progress line without an end. There is one terminal
/// a process, and the plugin's log writes to it from another place.
static PROGRESS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Whether the last thing that was written ended in the middle of a line. A progress line would
/// overwrite it.
static IN_A_LINE: AtomicBool = AtomicBool::new(false);

#[derive(Clone, Copy)]
struct Stream {
    target: Target,
    paint: Paint,
    /// How many columns the terminal has, if it is one and says so.
    width: Option<usize>,
}

/// Where a stream ends up.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    Terminal,
    Elsewhere,
    /// The next program, which may well draw on the same terminal.
    Pipe,
}

impl Stream {
    fn of(stream: &(impl RawStream + std::os::fd::AsFd), color: ColorChoice) -> Self {
        let is_pipe = || {
            let stat = rustix::fs::fstat(stream);
            stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
        };
        let target = match stream.is_terminal() {
            true => Target::Terminal,
            false if is_pipe() => Target::Pipe,
            false => Target::Elsewhere,
        };
        let is_coloured = match color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => AutoStream::choice(stream) == anstream::ColorChoice::Always,
        };
        let paint = if is_coloured { Paint::Colours } else { Paint::Plain };
        let size = tcgetwinsize(stream).ok().filter(|size| size.ws_col > 0);
        Self {
            target,
            paint,
            width: size.filter(|_| target == Target::Terminal).map(|size| size.ws_col.into()),
        }
    }

    /// What has to be done to text from files and commands. What is coloured ends on a terminal,
    /// be it behind a pager.
    fn escape(self) -> Escape {
        match (self.target, self.paint) {
            (Target::Terminal, _) | (_, Paint::Colours) => Escape::Controls,
            (_, Paint::Plain) => Escape::Nothing,
        }
    }
}

impl Output {
    /// Those of this process, coloured as `color` says.
    pub(crate) fn of_this_process(color: ColorChoice) -> Self {
        Self { stdout: Stream::of(&io::stdout(), color), stderr: Stream::of(&io::stderr(), color) }
    }

    /// What paints for standard output.
    pub(crate) fn painter(&self) -> Painter {
        let Stream { paint, width, .. } = self.stdout;
        Painter { paint, escape: self.stdout.escape(), width }
    }

    /// How a search's hits are laid out on standard output.
    pub(crate) fn layout(&self) -> Layout {
        match self.stdout.target {
            Target::Terminal => Layout::Headings,
            Target::Pipe | Target::Elsewhere => Layout::Lines,
        }
    }

    /// Whether somebody sees what is written to standard error as it is written.
    pub(crate) fn is_watched(&self) -> bool {
        self.stderr.target == Target::Terminal
    }

    /// Writes text to standard output.
    pub(crate) fn print(&self, text: &str) -> Result<(), CliError> {
        self.bytes(text.as_bytes())
    }

    /// Writes one JSON text and a line break. What is hidden is escaped in its strings, which changes
    /// nothing of what they mean: the terminal may be another program's.
    pub(crate) fn print_json(&self, json: &str) -> Result<(), CliError> {
        self.print(&format!("{}\n", escaped_json(json)))
    }

    /// Writes what a command printed: as it is, or, where a terminal would obey it, without colours and
    /// with all else spelled out. `styles` knows what came before on the stream.
    pub(crate) fn relay(
        &self,
        to: OutputStream,
        data: &[u8],
        styles: &mut StyleFilter,
    ) -> Result<(), CliError> {
        let stream = match to {
            OutputStream::Stdout => self.stdout,
            OutputStream::Stderr => self.stderr,
        };
        let escaped;
        let data = match stream.escape() {
            Escape::Nothing => data,
            Escape::Controls => {
                escaped = escape(&String::from_utf8_lossy(&styles.push(data)));
                escaped.as_bytes()
            }
        };
        match to {
            OutputStream::Stdout => self.bytes(data),
            OutputStream::Stderr => {
                self.end_progress();
                if self.is_watched() {
                    note_end_of(data);
                }
                written(io::stderr().write_all(data))
            }
        }
    }

    fn bytes(&self, data: &[u8]) -> Result<(), CliError> {
        self.end_progress();
        if self.stdout.target == Target::Terminal {
            note_end_of(data);
        }
        let mut stdout = io::stdout().lock();
        written(stdout.write_all(data).and_then(|()| stdout.flush()))
    }

    /// Shows what goes on, on one line of a terminal that the next replaces.
    pub(crate) fn progress(&self, message: &str) {
        // A pager that reads what we print draws where the line would be.
        let is_alone = self.stdout.target != Target::Pipe;
        if !self.is_watched() || !is_alone || IN_A_LINE.load(Ordering::Relaxed) {
            return;
        }
        let line = Escape::Controls.on_one_line(message);
        let line = cut(&line, self.stderr.width.unwrap_or(80).saturating_sub(1));
        let line = self.stderr.paint.ink(Ink::Dim, line);
        // A progress line that is lost is no loss.
        let _ = write!(io::stderr(), "\r\x1b[K{line}");
        PROGRESS_SHOWN.store(true, Ordering::Relaxed);
    }

    /// Takes the progress line away, where there is one.
    pub(crate) fn end_progress(&self) {
        if PROGRESS_SHOWN.swap(false, Ordering::Relaxed) {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }

    /// Begins a line behind the ^C that a terminal shows where Ctrl-C was pressed.
    pub(crate) fn interrupted(&self) {
        self.end_progress();
        if self.is_watched() {
            IN_A_LINE.store(false, Ordering::Relaxed);
            let _ = io::stderr().write_all(b"\n");
        }
    }

    /// Prints a note on standard error.
    pub(crate) fn note(&self, label: &str, ink: Ink, text: &str) {
        self.end_progress();
        let text = self.stderr.escape().apply(text);
        let label = self.stderr.paint.ink(ink, &format!("{label}:"));
        let start = if IN_A_LINE.swap(false, Ordering::Relaxed) { "\n" } else { "" };
        // There is no way to report that standard error cannot be written.
        let _ = io::stderr().write_all(format!("{start}{label} {text}\n").as_bytes());
    }

    /// Asks on standard error; the answer is read elsewhere.
    pub(crate) fn ask(&self, question: &str) {
        self.end_progress();
        let _ = write!(io::stderr(), "{} ", self.stderr.paint.ink(Ink::Bold, question));
    }

    /// The exit code of a command. Prints why it failed, as JSON where a program reads it.
    pub(crate) fn exit_code(
        &self,
        outcome: Result<ExitCode, CliError>,
        is_for_programs: bool,
    ) -> ExitCode {
        match outcome {
            Ok(code) => code,
            Err(error) if is_for_programs => self.failure_as_json(&error),
            Err(error) => self.failure(&error),
        }
    }

    /// Says that the person stopped it, which is no error.
    pub(crate) fn stopped(&self) {
        self.note("stopped", Ink::Yellow, "by Ctrl-C");
    }

    /// Prints why a command failed. Where the reader went away nothing is printed.
    pub(crate) fn failure(&self, error: &CliError) -> ExitCode {
        if matches!(error, CliError::Interrupted) {
            self.stopped();
        } else if !matches!(error, CliError::OutputClosed) {
            self.note("error", Ink::Red, &error.to_string());
            for cause in error.causes() {
                self.note("  because", Ink::Dim, &cause);
            }
            if let Some(hint) = error.hint() {
                self.note("hint", Ink::Cyan, &hint);
            }
        }
        exit::of_error(error)
    }

    /// Prints why a command failed for a program, in the form of a call's last event.
    fn failure_as_json(&self, error: &CliError) -> ExitCode {
        match self.print_json(&error.as_json().to_string()) {
            // Somebody should hear of it.
            Err(CliError::Io { .. }) => self.failure(error),
            Err(CliError::OutputClosed) => exit::of_error(&CliError::OutputClosed),
            _ => exit::of_error(error),
        }
    }

    /// The page of help that was asked for.
    pub(crate) fn page(&self, page: &clap::builder::StyledStr) -> Result<(), CliError> {
        self.print(&styled(page, self.stdout.paint))
    }

    /// What is wrong with the command line, or the page of help for who wrote none.
    pub(crate) fn refusal(&self, page: &clap::builder::StyledStr) {
        // There is no way to report that nothing can be written.
        let _ = io::stderr().write_all(styled(page, self.stderr.paint).as_bytes());
    }
}

fn styled(page: &clap::builder::StyledStr, paint: Paint) -> String {
    match paint {
        Paint::Colours => page.ansi().to_string(),
        Paint::Plain => page.to_string(),
    }
}

fn note_end_of(data: &[u8]) {
    if let Some(last) = data.last() {
        IN_A_LINE.store(*last != b'\n', Ordering::Relaxed);
    }
}

fn written(result: io::Result<()>) -> Result<(), CliError> {
    result.map_err(|source| match source.kind() {
        io::ErrorKind::BrokenPipe => CliError::OutputClosed,
        _ => CliError::Io { what: "write the output", source },
    })
}

/// JSON with every hidden character escaped. JSON has them in its strings alone: serde_json writes no
/// others, and escapes those below U+0020 itself.
fn escaped_json(json: &str) -> Cow<'_, str> {
    let hides = |c: char| c > '\u{7e}' && is_hidden(c);
    if !json.contains(hides) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if hides(c) {
            let units = &mut [0; 2];
            for unit in c.encode_utf16(units) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_coloured_is_escaped_also_in_a_pipe() {
        let stream = |target, paint| Stream { target, paint, width: None };
        assert_eq!(stream(Target::Elsewhere, Paint::Plain).escape(), Escape::Nothing);
        assert_eq!(stream(Target::Elsewhere, Paint::Colours).escape(), Escape::Controls);
        assert_eq!(stream(Target::Terminal, Paint::Plain).escape(), Escape::Controls);
    }

    #[test]
    fn json_shows_nothing_that_a_terminal_obeys_and_means_the_same() {
        let value = json!({"text": "a\u{9b}2J\u{202e}b\u{e0001}\u{1b}c 漢 é"});
        let text = value.to_string();
        let escaped = escaped_json(&text);
        assert!(escaped.contains(r"a\u009b2J\u202eb\udb40\udc01"), "{escaped}");
        assert!(escaped.contains("漢 é"));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }
}
