//! Expressions: whether they are well formed, and what those come to that need no host.

use super::scan::{LineEnds, Scanner, is_name};
use super::template::{heredoc, quoted_template};
use super::{Attribute, Item, SyntaxError, Value};

/// Two-letter operators come before the one-letter ones that they begin with.
const OPERATORS: [&str; 13] =
    ["||", "&&", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%"];

/// An expression, with the blanks behind it skipped.
pub(super) fn expression(scanner: &mut Scanner<'_>) -> Result<Value, SyntaxError> {
    let mut value = operand(scanner)?;
    while let Some(operator) = operator(scanner) {
        scanner.take(operator);
        operand(scanner)?;
        value = Value::Unknown;
    }
    if scanner.take("?") {
        nested(scanner, scanner.line_ends)?;
        scanner.expect(":", "a choice with ? has two results")?;
        nested(scanner, scanner.line_ends)?;
        value = Value::Unknown;
    }
    Ok(value)
}

/// The operator that comes next. `=>` is none, nor is what begins a comment.
fn operator(scanner: &Scanner<'_>) -> Option<&'static str> {
    let is_comment = scanner.next_is("//") || scanner.next_is("/*");
    OPERATORS.into_iter().find(|operator| !is_comment && scanner.next_is(operator))
}

/// An expression one level deeper.
fn nested(scanner: &mut Scanner<'_>, line_ends: LineEnds) -> Result<Value, SyntaxError> {
    scanner.within(line_ends, expression)
}

/// What operators stand between, with the blanks before and behind it.
fn operand(scanner: &mut Scanner<'_>) -> Result<Value, SyntaxError> {
    scanner.skip()?;
    for sign in ["-", "!"] {
        if scanner.take(sign) {
            let value = scanner.within(scanner.line_ends, operand)?;
            return Ok(match value {
                Value::Number(number) if sign == "-" => Value::Number(-number),
                _ => Value::Unknown,
            });
        }
    }
    let mut value = term(scanner)?;
    scanner.skip()?;
    while is_access(scanner) {
        access(scanner)?;
        scanner.skip()?;
        value = Value::Unknown;
    }
    Ok(value)
}

fn is_access(scanner: &Scanner<'_>) -> bool {
    scanner.next_is("[") || scanner.next_is(".") && !scanner.next_is("...")
}

/// `.name`, `.0`, `.*`, `[key]`, `[*]`.
fn access(scanner: &mut Scanner<'_>) -> Result<(), SyntaxError> {
    if scanner.take("[") {
        return scanner.within(LineEnds::Skipped, |scanner| {
            scanner.skip()?;
            if !scanner.take("*") {
                expression(scanner)?;
            }
            scanner.skip()?;
            scanner.expect("]", "an index")
        });
    }
    scanner.take(".");
    scanner.skip()?;
    if scanner.take("*") || scanner.take_name().is_some() {
        return Ok(());
    }
    let length = digits(scanner.rest());
    if length == 0 {
        return Err(scanner.error(format!("behind a . comes a name, not {}", scanner.seen())));
    }
    scanner.take_bytes(length);
    match scanner.rest().strip_prefix('.').map_or(0, digits) {
        0 => Ok(()),
        _ => Err(scanner.error("two numbers behind dots are one number: write [0][1]")),
    }
}

fn term(scanner: &mut Scanner<'_>) -> Result<Value, SyntaxError> {
    if scanner.take("\"") {
        return quoted_template(scanner);
    }
    if scanner.take("(") {
        let value = nested(scanner, LineEnds::Skipped)?;
        scanner.within(LineEnds::Skipped, Scanner::skip)?;
        scanner.expect(")", "an expression in parentheses")?;
        return Ok(value);
    }
    if scanner.take("[") {
        return scanner.within(LineEnds::Skipped, list);
    }
    if scanner.take("{") {
        return object(scanner);
    }
    if scanner.next_is("<<") {
        return heredoc(scanner);
    }
    if digits(scanner.rest()) > 0 {
        return number(scanner);
    }
    match scanner.take_name() {
        Some("true") => Ok(Value::Bool(true)),
        Some("false") => Ok(Value::Bool(false)),
        Some("null") => Ok(Value::Null),
        Some(_) => {
            call(scanner)?;
            Ok(Value::Unknown)
        }
        None => Err(scanner.error(format!("a value is missing before {}", scanner.seen()))),
    }
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn number(scanner: &mut Scanner<'_>) -> Result<Value, SyntaxError> {
    let text = scanner.rest();
    let mut length = digits(text);
    let fraction = text[length..].strip_prefix('.').map_or(0, digits);
    if fraction > 0 {
        length += 1 + fraction;
    }
    if let Some(power) = text[length..].strip_prefix(['e', 'E']) {
        let sign = usize::from(power.starts_with(['+', '-']));
        let exponent = digits(&power[sign..]);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    let text = scanner.take_bytes(length);
    // Digits that are no number there are none; what is too large for it stays unknown.
    Ok(text
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
        .map_or(Value::Unknown, Value::Number))
}

/// The arguments behind a function's name, where it is one.
fn call(scanner: &mut Scanner<'_>) -> Result<(), SyntaxError> {
    scanner.skip()?;
    let is_call = scanner.next_is("::");
    while scanner.take("::") {
        scanner.skip()?;
        if scanner.take_name().is_none() {
            return Err(scanner.error(format!("behind :: comes a name, not {}", scanner.seen())));
        }
        scanner.skip()?;
    }
    if !is_call && !scanner.next_is("(") {
        return Ok(());
    }
    scanner.expect("(", "a call")?;
    scanner.within(LineEnds::Skipped, |scanner| {
        loop {
            scanner.skip()?;
            if scanner.take(")") {
                return Ok(());
            }
            expression(scanner)?;
            if scanner.take("...") {
                scanner.skip()?;
                return scanner.expect(")", "a call");
            }
            if !scanner.take(",") {
                return scanner.expect(")", "a call");
            }
        }
    })
}

/// A list behind its `[`.
fn list(scanner: &mut Scanner<'_>) -> Result<Value, SyntaxError> {
    scanner.skip()?;
    if scanner.take_word("for") {
        return every(scanner, "]");
    }
    let mut items = Vec::new();
    loop {
        scanner.skip()?;
        if scanner.take("]") {
            return Ok(Value::List(items));
        }
        let line = scanner.line();
        items.push(Item { line, value: expression(scanner)? });
        if !scanner.take(",") {
            scanner.expect("]", "a list takes , between items")?;
            return Ok(Value::List(items));
        }
    }
}

/// An object behind its `{`: an end of line stands for a comma.
fn object(scanner: &mut Scanner<'_>) -> Result<Value, SyntaxError> {
    let is_every = scanner.within(LineEnds::Skipped, |scanner| {
        scanner.skip()?;
        Ok(scanner.take_word("for"))
    })?;
    if is_every {
        return scanner.within(LineEnds::Skipped, |scanner| every(scanner, "}"));
    }
    scanner.within(LineEnds::Count, |scanner| {
        let mut entries = Vec::new();
        loop {
            scanner.skip()?;
            if scanner.take("}") {
                return Ok(Value::Object(entries));
            }
            if scanner.take_line_end() {
                continue;
            }
            entries.extend(entry(scanner)?);
            if !scanner.take(",") && !scanner.is_line_over() {
                scanner.expect("}", "an object takes , or a new line between entries")?;
                return Ok(Value::Object(entries));
            }
            if scanner.rest().is_empty() {
                return Err(scanner.error("an object is never closed: add a }"));
            }
        }
    })
}

/// `key = value` or `key : value`. One whose key only the host can evaluate is not known.
fn entry(scanner: &mut Scanner<'_>) -> Result<Option<Attribute>, SyntaxError> {
    let line = scanner.line();
    let start = scanner.rest();
    let value = expression(scanner)?;
    let written = start[..start.len() - scanner.rest().len()].trim_end();
    let key = match value {
        // A bare name is itself, whatever variables there are.
        _ if is_name(written) => Some(written.to_owned()),
        Value::Text(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    if scanner.next_is("==") || !(scanner.take("=") || scanner.take(":")) {
        let problem = "behind a key comes = or :, not";
        return Err(scanner.error(format!("{problem} {}", scanner.seen())));
    }
    let value = expression(scanner)?;
    Ok(key.map(|name| Attribute { name, line, value }))
}

/// What `for` makes, behind that word: `for k, v in list : value if condition`.
fn every(scanner: &mut Scanner<'_>, close: &str) -> Result<Value, SyntaxError> {
    let context = "an expression with for";
    variables(scanner, context)?;
    expression(scanner)?;
    scanner.expect(":", context)?;
    expression(scanner)?;
    if close == "}" {
        scanner.expect("=>", context)?;
        expression(scanner)?;
        scanner.take("...");
        scanner.skip()?;
    }
    if scanner.take_word("if") {
        expression(scanner)?;
    }
    scanner.expect(close, context)?;
    Ok(Value::Unknown)
}

/// `k, v in`.
pub(super) fn variables(scanner: &mut Scanner<'_>, context: &str) -> Result<(), SyntaxError> {
    for _ in 0..2 {
        scanner.skip()?;
        if scanner.take_name().is_none() {
            return Err(
                scanner.error(format!("{context}: a name is missing before {}", scanner.seen()))
            );
        }
        scanner.skip()?;
        if !scanner.take(",") {
            break;
        }
    }
    match scanner.take_word("in") {
        true => Ok(()),
        false => Err(scanner.error(format!("{context}: in is missing before {}", scanner.seen()))),
    }
}
