//! Patterns beside names that hold what a pattern takes for wildcards, such as `app/[slug]/page.tsx`.

use std::borrow::Cow;

use tool_provider::{Category, Payload, ToolError};

use crate::field::{Field, NOTICE, Text};

/// How much of a pattern's beginning, in bytes, are names as they stand: whole parts without wildcards,
/// and parts in brackets or braces that `exists` finds as they are written, at least one. `exists` is
/// asked for the pattern up to the end of such a part.
pub(crate) fn named(pattern: &str, exists: impl Fn(&str) -> bool) -> Option<usize> {
    let (mut named, mut start) = (None, 0);
    for part in pattern.split('/') {
        let end = start + part.len();
        if part.contains(['*', '?', '\\']) {
            break;
        }
        if part.contains(['[', '{']) {
            if !exists(&pattern[..end]) {
                break;
            }
            named = Some(end);
        }
        start = end + 1;
    }
    named
}

/// A name as a pattern that means it and nothing else.
pub(crate) fn escaped(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if matches!(c, '[' | ']' | '{' | '}' | '*' | '?' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Runs a search, and once more with the brackets of its pattern as part of names where it finds nothing:
/// `**/[slug]/*.tsx` is far more often meant so than as one of four characters.
///
/// # Errors
/// Those of the search.
pub(crate) fn search_or_literally(
    arguments: &Payload,
    pattern: Field<Text>,
    is_empty: impl Fn(&Payload) -> bool,
    search: impl Fn(&Payload) -> Result<Payload, ToolError>,
) -> Result<Payload, ToolError> {
    let found = search(arguments);
    let literal = pattern.get(arguments).and_then(with_literal_brackets);
    // `[user-id]` is no valid class.
    let may_be_meant_so = match &found {
        Ok(found) => is_empty(found),
        Err(error) => error.category() == Category::InvalidArguments,
    };
    let (Some(literal), true) = (literal, may_be_meant_so) else { return found };
    let mut again = arguments.clone();
    pattern.put(&mut again, literal);
    let mut literally = match search(&again) {
        Ok(literally) if !is_empty(&literally) => literally,
        Ok(_) | Err(_) => return found,
    };
    let taken = "[…] was taken literally: as one of those characters it matches nothing.";
    let notice = match NOTICE.get(&literally) {
        Some(notice) => format!("{taken} {notice}"),
        None => taken.to_owned(),
    };
    NOTICE.put(&mut literally, notice);
    Ok(literally)
}

/// A pattern in which brackets are part of names; none where it has none, or escapes some itself.
fn with_literal_brackets(pattern: &str) -> Option<String> {
    if !pattern.contains('[') || pattern.contains('\\') || json_list(pattern).is_some() {
        return None;
    }
    Some(pattern.replace('[', "\\[").replace(']', "\\]"))
}

/// The parts of a pattern between the separators; those within braces and brackets part nothing.
pub(crate) fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut braces, mut in_class, mut is_escaped) = (0_usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => {
                is_escaped = false;
                continue;
            }
            '\\' => is_escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            _ if c == separator && braces == 0 && !in_class => {
                parts.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The patterns of a list such as `*.ts,*.tsx`; none where it is one pattern. What a name with a comma
/// needs, a part without wildcards, makes it no list of this kind. A list in JSON is one in any case.
pub(crate) fn list(text: &str) -> Option<Vec<Cow<'_, str>>> {
    if let Some(list) = json_list(text) {
        return Some(list.into_iter().map(Cow::Owned).collect());
    }
    let parts: Vec<&str> = split(text, ',').into_iter().map(str::trim).collect();
    let are_patterns = parts.iter().all(|part| part.contains(['*', '?']));
    (parts.len() > 1 && are_patterns).then(|| parts.into_iter().map(Cow::Borrowed).collect())
}

/// The texts of a list in JSON, at least one. No name and no pattern for one looks like that.
pub(crate) fn json_list(text: &str) -> Option<Vec<String>> {
    let is_list = text.trim_start().starts_with('[') && text.trim_end().ends_with("\"]");
    let list: Vec<String> = is_list.then(|| serde_json::from_str(text).ok()).flatten()?;
    (!list.is_empty()).then_some(list)
}

/// What a notice says of a pattern of which the beginning was taken for names.
pub(crate) fn taken_literally(named: &str) -> String {
    format!("{named} was taken literally, since it exists.")
}

/// Why a pattern that found nothing may be written wrongly.
pub(crate) fn remedy(pattern: &str) -> Option<&'static str> {
    let is_home = pattern == "~" || pattern.starts_with("~/");
    Some(if is_home {
        "~ is not expanded: write the path out."
    } else if pattern.contains(',') && !pattern.contains('{') && list(pattern).is_none() {
        "A comma parts patterns only where each has a * or ?; alternatives are {a,b}."
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_brackets_are_names_where_they_exist() {
        let exists = |path: &str| ["app/[slug]", "app/[slug]/[id].ts", "{a} b"].contains(&path);
        let named = |pattern: &'static str| named(pattern, exists).map(|end| &pattern[..end]);
        assert_eq!(named("app/[slug]/*"), Some("app/[slug]"));
        assert_eq!(named("app/[slug]/[id].ts"), Some("app/[slug]/[id].ts"));
        assert_eq!(named("app/[slug]/[no].ts"), Some("app/[slug]"));
        assert_eq!(named("app/[slug]/x/y"), Some("app/[slug]"));
        assert_eq!(named("{a} b"), Some("{a} b"));
        for pattern in ["app/[id]/*", "**/[slug]", "*.{rs,ts}", "app/x", "app/\\[slug\\]"] {
            assert_eq!(named(pattern), None, "{pattern}");
        }
        assert_eq!(escaped("[a] {b}?"), "\\[a\\] \\{b\\}\\?");
    }

    #[test]
    fn brackets_are_taken_literally_where_the_pattern_escapes_nothing() {
        assert_eq!(with_literal_brackets("**/[...rest]/*").as_deref(), Some("**/\\[...rest\\]/*"));
        for pattern in ["**/*.rs", "\\[a\\]", "\\[a][b]"] {
            assert_eq!(with_literal_brackets(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn a_list_is_one_only_where_each_part_is_a_pattern() {
        let patterns = |text: &'static str| list(text).map(|list| list.join(" "));
        assert_eq!(patterns("**/*.ts, **/*.tsx").as_deref(), Some("**/*.ts **/*.tsx"));
        assert_eq!(patterns(r#"["*.md", "a,b.txt"]"#).as_deref(), Some("*.md a,b.txt"));
        assert_eq!(list("[]"), None);
        assert_eq!(list(r#"["*.md", 1]"#), None);
        assert_eq!(list("*.{ts,tsx}"), None);
        assert_eq!(list("[a,b]*"), None);
        assert_eq!(list("*,v"), None);
        assert_eq!(list("a,b.txt"), None);
        assert_eq!(list("*.ts\\,*.x"), None);
    }
}
