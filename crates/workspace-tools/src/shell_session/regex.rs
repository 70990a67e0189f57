//! The patterns that a call waits for.

use regex_automata::meta::{Config, Regex};

use tool_provider::ToolError;

/// The most memory that one pattern may take: it comes from the model.
const MOST_BYTES: usize = 1 << 20;

/// Compiles the pattern in the argument `name`. `^` and `$` mean lines.
///
/// # Errors
/// `invalid_arguments` for one that is none.
pub(crate) fn compile(name: &str, pattern: &str) -> Result<Regex, ToolError> {
    let config = Config::new().nfa_size_limit(Some(MOST_BYTES)).hybrid_cache_capacity(MOST_BYTES);
    let syntax = regex_automata::util::syntax::Config::new().multi_line(true);
    Regex::builder().configure(config).syntax(syntax).build(pattern).map_err(|error| {
        let problem = match error.syntax_error() {
            Some(syntax) => syntax.to_string(),
            None => error.to_string(),
        };
        ToolError::invalid_arguments(format!("{name} is no regular expression: {problem}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_ends_and_what_is_wrong_is_said() {
        assert!(compile("until", "^b$").unwrap().is_match("a\nb\nc"));
        let wrong = compile("until", "(a").unwrap_err();
        assert!(wrong.message().contains("unclosed group"), "{wrong}");
        assert!(compile("until", "(?:a{1000}){1000}").is_err());
    }
}
