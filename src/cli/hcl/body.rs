//! Files and blocks.

use super::expression::expression;
use super::scan::{LineEnds, Scanner};
use super::template::label;
use super::{Attribute, Block, Body, SyntaxError};

/// Reads a whole file.
///
/// # Errors
/// The first thing that is no HCL.
pub(crate) fn parse(bytes: &[u8]) -> Result<Body, SyntaxError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        SyntaxError { line, problem: "this is not UTF-8, and HCL is".to_owned() }
    })?;
    let mut scanner = Scanner::new(text.strip_prefix('\u{feff}').unwrap_or(text));
    let body = items(&mut scanner)?;
    match scanner.rest().is_empty() {
        true => Ok(body),
        false => Err(scanner.error(format!("{} closes nothing: take it out", scanner.seen()))),
    }
}

/// Arguments and blocks, up to what is neither.
fn items(scanner: &mut Scanner<'_>) -> Result<Body, SyntaxError> {
    let mut body = Body::default();
    loop {
        scanner.skip()?;
        if scanner.take_line_end() {
            continue;
        }
        if scanner.rest().is_empty() || scanner.next_is("}") {
            return Ok(body);
        }
        let line = scanner.line();
        let Some(name) = scanner.take_name() else {
            let problem = "an argument or a block begins with a name, not with";
            return Err(scanner.error(format!("{problem} {}", scanner.seen())));
        };
        scanner.skip()?;
        if scanner.next_is("=") {
            let attribute = attribute(scanner, name, line)?;
            if let Some(first) = body.attribute(name) {
                let problem =
                    format!("{name} is on line {} already: keep one of the two", first.line);
                return Err(SyntaxError { line, problem });
            }
            body.attributes.push(attribute);
            if !scanner.is_line_over() {
                let problem = "behind the value of an argument the line ends; found";
                return Err(scanner.error(format!("{problem} {}", scanner.seen())));
            }
        } else {
            body.blocks.push(block(scanner, name, line)?);
        }
    }
}

/// What stands behind the name of an argument. Its blanks are skipped.
fn attribute(scanner: &mut Scanner<'_>, name: &str, line: usize) -> Result<Attribute, SyntaxError> {
    scanner.expect("=", name)?;
    scanner.skip()?;
    if scanner.is_line_over() {
        return Err(scanner.error(format!("{name} has no value: write one on its line")));
    }
    let value = expression(scanner)?;
    scanner.skip()?;
    Ok(Attribute { name: name.to_owned(), line, value })
}

/// What stands behind the name of a block.
fn block(scanner: &mut Scanner<'_>, kind: &str, line: usize) -> Result<Block, SyntaxError> {
    let mut labels = Vec::new();
    while !scanner.take("{") {
        labels.push(match scanner.take_name() {
            Some(name) => name.to_owned(),
            None if scanner.take("\"") => label(scanner)?,
            None => {
                let problem = format!("behind {kind:?} comes = or {{, not");
                return Err(scanner.error(format!("{problem} {}", scanner.seen())));
            }
        });
        scanner.skip()?;
    }
    let body = scanner.within(LineEnds::Count, |scanner| braced(scanner, kind, line))?;
    scanner.skip()?;
    match scanner.is_line_over() {
        true => Ok(Block { kind: kind.to_owned(), labels, line, body }),
        false => {
            let problem = format!("behind the }} of {kind:?} the line ends; found");
            Err(scanner.error(format!("{problem} {}", scanner.seen())))
        }
    }
}

/// A body behind its `{`: on lines of its own, or one argument on the same line.
fn braced(scanner: &mut Scanner<'_>, kind: &str, line: usize) -> Result<Body, SyntaxError> {
    scanner.skip()?;
    if !scanner.is_line_over() {
        return on_one_line(scanner, kind);
    }
    let body = items(scanner)?;
    match scanner.take("}") {
        true => Ok(body),
        false => {
            let problem = format!("the block {kind:?} that begins here is never closed: add a }}");
            Err(SyntaxError { line, problem })
        }
    }
}

fn on_one_line(scanner: &mut Scanner<'_>, kind: &str) -> Result<Body, SyntaxError> {
    let line = scanner.line();
    let mut body = Body::default();
    if let Some(name) = scanner.take_name() {
        scanner.skip()?;
        if !scanner.next_is("=") {
            let problem = "a block on one line holds no other block: write it on several lines";
            return Err(SyntaxError { line, problem: problem.to_owned() });
        }
        body.attributes.push(attribute(scanner, name, line)?);
    }
    match scanner.take("}") {
        true => Ok(body),
        false => Err(scanner.error(format!(
            "the block {kind:?} is on one line and may hold one argument only: write each argument \
             on a line of its own, and }} on the last"
        ))),
    }
}
