//! Makes a matcher of a pattern, or says what is wrong with the pattern.

use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use regex_syntax::ast::{self, Span};
use regex_syntax::hir::Hir;

use super::arguments::{SHOWN, Wanted};
use super::expression::{as_word, names, without};
use super::matcher::Compiled;
use tool_provider::ToolError;
use tool_provider::shorten::shorten;
use workspace_fs::text::hidden::one_line;

/// What a pattern may become in memory: the compiled expression, and the tables that each thread
/// fills while it searches. A pattern comes from a model, and `\w{1000}{1000}` is quickly written.
const COMPILED: usize = 10 * 1024 * 1024;
const TABLES: usize = 16 * 1024 * 1024;
/// How long a pattern may be, in bytes, and how deep. Nothing can stop a pattern that is being
/// compiled: three thousand large classes in it take a second.
const LONGEST: usize = 16 * 1024;
const DEEPEST: u32 = 250;

impl Wanted<'_> {
    /// The pattern, compiled on this thread, which nothing stops.
    ///
    /// # Errors
    /// `invalid_arguments`, with the place of what is wrong.
    pub(super) fn compile_here(self) -> Result<Compiled, ToolError> {
        if self.pattern.is_empty() {
            return Err(ToolError::invalid_arguments(
                "pattern is empty, and an empty pattern matches every line: say what to find",
            )
            .with_hint("read_file shows a file, mode \"files\" with pattern \".\" names files that are not empty"));
        }
        if self.pattern.len() > LONGEST {
            return Err(ToolError::invalid_arguments(format!(
                "pattern is longer than {LONGEST} bytes"
            )));
        }
        if !self.multiline && self.pattern.contains('\n') {
            return Err(needs_multiline());
        }
        // `$` is also to match before the CR of a line that ends in CRLF. The engine then takes a CR
        // anywhere for an end, which the description says. A pattern that is itself about CR is
        // taken as it is: it is refused by the first way to build it, or looked through where matches
        // go over lines, because one may then be about whole CRLFs.
        let (ending, built) = match self.build(LineEnding::CrLf) {
            Err(error) if matches!(error.kind(), ErrorKind::NotAllowed(_)) => {
                (LineEnding::Lf, self.build(LineEnding::Lf))
            }
            Ok(_) if self.multiline && self.is_about_cr() => {
                (LineEnding::Lf, self.build(LineEnding::Lf))
            }
            built => (LineEnding::CrLf, built),
        };
        let plain = built.map_err(|error| self.explain(&error))?;
        let tree = self.tree(ending).map_err(|error| {
            ToolError::invalid_arguments(format!("pattern: {error}")).with_source(error)
        })?;
        Ok(Compiled::new(plain, tree, COMPILED))
    }

    /// Whether it names CR, but LF nowhere.
    fn is_about_cr(self) -> bool {
        let may_be = ["\r", "\\r", "\\x", "\\u", "\\U"];
        may_be.iter().any(|may_be| self.pattern.contains(may_be))
            && self
                .tree(LineEnding::CrLf)
                .is_ok_and(|tree| names(b'\r', &tree) && !names(b'\n', &tree))
    }

    /// What the plain matcher is made of; the matcher itself does not expose it.
    fn tree(self, ending: LineEnding) -> Result<Hir, Box<regex_syntax::Error>> {
        let mut parser = regex_syntax::ParserBuilder::new();
        parser.multi_line(true).crlf(matches!(ending, LineEnding::CrLf)).utf8(false);
        parser.case_insensitive(self.ignore_case).nest_limit(DEEPEST + 1);
        let tree = match (self.fixed_strings, self.ignore_case) {
            (true, false) => Hir::literal(self.pattern.as_bytes()),
            (true, true) => parser.build().parse(&regex_syntax::escape(self.pattern))?,
            (false, _) => parser.build().parse(self.pattern)?,
        };
        let tree = match (self.multiline, ending) {
            (true, _) => tree,
            (false, LineEnding::Lf) => without(b"\n", tree),
            (false, LineEnding::CrLf) => without(b"\r\n", tree),
        };
        Ok(if self.word { as_word(tree) } else { tree })
    }

    fn build(self, ending: LineEnding) -> Result<RegexMatcher, grep_regex::Error> {
        let mut builder = RegexMatcherBuilder::new();
        builder
            .multi_line(true)
            .unicode(true)
            .case_insensitive(self.ignore_case)
            .fixed_strings(self.fixed_strings)
            .word(self.word)
            .size_limit(COMPILED)
            .dfa_size_limit(TABLES)
            .nest_limit(DEEPEST);
        match ending {
            LineEnding::CrLf => builder.crlf(true),
            LineEnding::Lf => builder.line_terminator(Some(b'\n')),
        };
        if self.multiline {
            builder.line_terminator(None);
        }
        builder.build(self.pattern)
    }

    fn explain(self, error: &grep_regex::Error) -> ToolError {
        match error.kind() {
            ErrorKind::NotAllowed(literal) if literal.contains('\n') => return needs_multiline(),
            ErrorKind::Regex(text) if text.contains("size limit") => {
                return ToolError::invalid_arguments(
                    "pattern is too large when it is compiled: the repetitions in it multiply",
                )
                .with_hint("use smaller repetitions, such as + instead of {1,1000}");
            }
            _ => {}
        }
        let mut parser = regex_syntax::ParserBuilder::new();
        let parsed = parser.multi_line(true).nest_limit(DEEPEST).utf8(false).build();
        match { parsed }.parse(self.pattern) {
            Err(regex_syntax::Error::Parse(error)) => match error.kind() {
                ast::ErrorKind::UnsupportedLookAround => self.unsupported(
                    "look-around ((?=…), (?!…), (?<=…), (?<!…)) is not supported",
                    error.span(),
                    "match the text around it too, or give context lines with before and after",
                ),
                ast::ErrorKind::UnsupportedBackreference => self.unsupported(
                    "backreferences (\\1) are not supported",
                    error.span(),
                    "write the alternatives out",
                ),
                kind => self.syntax(&kind.to_string(), error.span()),
            },
            Err(regex_syntax::Error::Translate(error)) => {
                self.syntax(&error.kind().to_string(), error.span())
            }
            _ => ToolError::invalid_arguments(format!("pattern: {error}")),
        }
    }

    fn syntax(self, what: &str, span: &Span) -> ToolError {
        let hint = "escape what is meant literally with a backslash, or set fixed_strings to true";
        self.unsupported(what, span, hint)
    }

    fn unsupported(self, what: &str, span: &Span, hint: &str) -> ToolError {
        // Characters are what a caller counts.
        let at = self.pattern.get(..span.start.offset).map_or(0, |before| before.chars().count());
        let shown = shorten(self.pattern, SHOWN);
        ToolError::invalid_arguments(format!(
            "pattern {}: {what}, at character {}",
            one_line(&shown),
            at + 1
        ))
        .with_detail("position", at + 1)
        .with_hint(hint)
    }
}

#[derive(Clone, Copy)]
enum LineEnding {
    Lf,
    CrLf,
}

fn needs_multiline() -> ToolError {
    ToolError::invalid_arguments(
        "pattern holds a line feed, but a search without multiline looks at one line at a time",
    )
    .with_hint("set multiline to true")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tool_provider::Category;

    fn wanted(pattern: &str) -> Wanted<'_> {
        Wanted { pattern, ignore_case: false, fixed_strings: false, word: false, multiline: false }
    }

    #[test]
    fn what_is_wrong_with_a_pattern_is_reported_with_its_place() {
        for (pattern, what) in [
            ("foo(", "unclosed group, at character 4"),
            ("a{", "at character 2"),
            ("é[", "at character 2"),
            ("(?<=x)y", "look-around"),
            ("x(?!y)", "look-around"),
            (r"(a)\1", "backreferences"),
            (r"foo\nbar", "without multiline"),
            ("foo\nbar", "without multiline"),
            ("", "pattern is empty"),
            (r"\w{1000}{1000}", "too large"),
            (r"\p{Nonsense}", "at character 1"),
        ] {
            let error = wanted(pattern).compile_here().expect_err(pattern);
            assert_eq!(error.category(), Category::InvalidArguments);
            assert!(error.message().contains(what), "{pattern}: {error}");
            assert!(error.hint().is_some(), "{pattern}");
        }
        let deep = "(".repeat(300) + &")".repeat(300);
        assert!(wanted(&deep).compile_here().is_err());
        assert!(wanted(&"x".repeat(LONGEST + 1)).compile_here().is_err());
    }

    #[test]
    fn plain_and_unusual_patterns_are_taken() {
        for pattern in
            ["--release", "-> x", "-1", "(a|a)*$", r"a\r$", r"[\r\n]x", r"\s+", "}", r"\bé"]
        {
            let pattern = wanted(pattern);
            assert!(pattern.compile_here().is_ok(), "{pattern:?}");
        }
        let fixed = Wanted { fixed_strings: true, ..wanted("foo(") };
        assert!(fixed.compile_here().is_ok());
        let multiline = Wanted { multiline: true, ..wanted(r"foo\nbar") };
        assert!(multiline.compile_here().is_ok());
    }
}
