//! Finds the known name that a misspelt one probably stands for.

/// The nearest of `known`, where one is near enough to be worth a guess.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Names are short; a long one is no misspelling, and the distance is quadratic.
    if wanted.len() > 64 {
        return None;
    }
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&wanted.to_lowercase(), name), name))
        .filter(|(likeness, _)| *likeness >= 0.75)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, name)| name)
}

/// Whether a text is a known one with one slip: a letter more, less, another or in the wrong place.
#[must_use]
pub fn is_slip(text: &str, known: &str) -> bool {
    text.len() <= 64 && strsim::osa_distance(&text.to_lowercase(), &known.to_lowercase()) == 1
}

/// `did you mean "x"?`, or what there is to choose from where nothing is near.
pub fn suggestion<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(wanted, known.clone()) {
        Some(name) => format!("did you mean {name:?}?"),
        None => {
            let names: Vec<&str> = known.into_iter().collect();
            match names.as_slice() {
                [] => "there are none".to_owned(),
                names => format!("there are: {}", names.join(", ")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_only_what_is_near() {
        let known = ["roots", "read_only_roots", "sandbox", "network"];
        assert_eq!(nearest("root", known), Some("roots"));
        assert_eq!(nearest("readonly_roots", known), Some("read_only_roots"));
        assert_eq!(nearest("Sandbox", known), Some("sandbox"));
        assert_eq!(nearest("zzz", known), None);
        assert!(is_slip("Entr", "enter") && is_slip("retrun", "return"));
        assert!(!is_slip("enter", "enter") && !is_slip("Hello", "home"));
        assert_eq!(nearest(&"roots".repeat(100), known), None);
    }
}
