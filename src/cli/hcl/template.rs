//! Texts in quotes, and those between two markers.

use unicode_normalization::UnicodeNormalization as _;

use super::expression::{expression, variables};
use super::scan::{LineEnds, Scanner};
use super::{SyntaxError, Value};

/// A text behind its first quote. With something to fill in, it is not known.
pub(super) fn quoted_template(scanner: &mut Scanner<'_>) -> Result<Value, SyntaxError> {
    let start = scanner.line();
    let mut text = String::new();
    let mut is_known = true;
    loop {
        if scanner.take("\"") {
            break;
        }
        if scanner.take("$${") {
            text.push_str("${");
        } else if scanner.take("%%{") {
            text.push_str("%{");
        } else if scanner.take("${") {
            is_known = false;
            scanner.within(LineEnds::Skipped, filled_in)?;
        } else if scanner.take("%{") {
            is_known = false;
            scanner.within(LineEnds::Skipped, directive)?;
        } else {
            text.push(letter(scanner, start)?);
        }
    }
    // A host composes what it reads.
    Ok(if is_known { Value::Text(text.nfc().collect()) } else { Value::Unknown })
}

/// A block's label behind its first quote: a text with nothing to fill in.
pub(super) fn label(scanner: &mut Scanner<'_>) -> Result<String, SyntaxError> {
    let line = scanner.line();
    match quoted_template(scanner)? {
        Value::Text(text) => Ok(text),
        _ => {
            let problem = "a block's label is a plain text, without ${ and %{";
            Err(SyntaxError { line, problem: problem.to_owned() })
        }
    }
}

fn letter(scanner: &mut Scanner<'_>, start: usize) -> Result<char, SyntaxError> {
    match scanner.take_char() {
        Some('\\') => escape(scanner),
        Some(letter) if letter != '\n' => Ok(letter),
        _ => {
            let problem = "the text that begins here has no closing quote on its line";
            Err(SyntaxError { line: start, problem: problem.to_owned() })
        }
    }
}

/// What stands behind a backslash.
fn escape(scanner: &mut Scanner<'_>) -> Result<char, SyntaxError> {
    let wrong = |scanner: &Scanner<'_>| {
        scanner.error(
            "behind \\ in a text comes one of n r t \" \\ uNNNN UNNNNNNNN; \\\\ is a backslash",
        )
    };
    let digits = match scanner.take_char() {
        Some('n') => return Ok('\n'),
        Some('r') => return Ok('\r'),
        Some('t') => return Ok('\t'),
        Some(letter @ ('"' | '\\')) => return Ok(letter),
        Some('u') => 4,
        Some('U') => 8,
        _ => return Err(wrong(scanner)),
    };
    let code = scanner
        .rest()
        .get(..digits)
        .filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let Some(letter) = code.and_then(|code| u32::from_str_radix(code, 16).ok()) else {
        return Err(wrong(scanner));
    };
    scanner.take_bytes(digits);
    Ok(char::from_u32(letter).unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// What stands behind `${`.
fn filled_in(scanner: &mut Scanner<'_>) -> Result<(), SyntaxError> {
    scanner.take("~");
    expression(scanner)?;
    close(scanner, "a text with ${")
}

/// What stands behind `%{`.
fn directive(scanner: &mut Scanner<'_>) -> Result<(), SyntaxError> {
    let context = "a text with %{";
    scanner.take("~");
    scanner.skip()?;
    match scanner.take_name() {
        Some("if") => drop(expression(scanner)?),
        Some("for") => {
            variables(scanner, context)?;
            expression(scanner)?;
        }
        Some("else" | "endif" | "endfor") => {}
        _ => {
            let problem = "behind %{ comes if, else, endif, for or endfor; %%{ is a plain %{";
            return Err(scanner.error(problem));
        }
    }
    close(scanner, context)
}

fn close(scanner: &mut Scanner<'_>, context: &str) -> Result<(), SyntaxError> {
    scanner.skip()?;
    scanner.take("~");
    scanner.expect("}", context)
}

/// A text between two lines, from its `<<` on. What stands in it is not looked at.
pub(super) fn heredoc(scanner: &mut Scanner<'_>) -> Result<Value, SyntaxError> {
    let start = scanner.line();
    scanner.take("<<");
    scanner.take("-");
    let marker = scanner.take_name();
    let is_alone = scanner.next_is("\n") || scanner.next_is("\r\n");
    let Some(marker) = marker.filter(|_| is_alone) else {
        return Err(scanner.error("behind << comes a name, and then the line ends"));
    };
    scanner.take_line_end();
    while !scanner.rest().is_empty() {
        let line = scanner.rest().split('\n').next().unwrap_or_default();
        let content = line.trim_end_matches('\r');
        if content.trim_matches([' ', '\t']) == marker {
            scanner.take_bytes(content.len());
            return Ok(Value::Unknown);
        }
        scanner.take_bytes(line.len());
        scanner.take_line_end();
    }
    let problem =
        format!("the text that begins here is never closed: add a line with {marker} alone");
    Err(SyntaxError { line: start, problem })
}
