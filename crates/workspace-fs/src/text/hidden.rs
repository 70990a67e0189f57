//! Characters that cannot be seen, or change how others are seen: the one list of them, and text in
//! which they are spelt out.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex_syntax::hir::{Class, ClassUnicode, HirKind};

/// Whether a character cannot be seen, or changes how others are seen. A line break and a tab are
/// none of these: they are what text is made of.
///
/// These are Unicode's `Default_Ignorable_Code_Point`, `Bidi_Control`, `Cc`, `Zl` and `Zp`, the
/// interlinear annotations, and the Braille pattern without dots, which is drawn as a blank.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\0'..='\u{7f}' => c.is_ascii_control(),
        '\u{80}'..='\u{9f}' => true,
        // Soft hyphen, grapheme joiner, Arabic letter mark.
        '\u{ad}' | '\u{34f}' | '\u{61c}' => true,
        // Fillers and inherent vowels of Hangul, Khmer and Mongolian, Mongolian variation selectors.
        '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' => true,
        // Zero-width characters, direction marks, separators, embeddings and overrides.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        // Braille blank, Hangul fillers, variation selectors, byte order mark.
        '\u{2800}' | '\u{3164}' | '\u{ffa0}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' => true,
        // Not assigned but to be ignored, interlinear annotations.
        '\u{fff0}'..='\u{fffb}' => true,
        // Controls of shorthand and of musical notation, tags, more variation selectors.
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// Lines of text for a person in which everything can be seen: what is hidden is spelt out, as in
/// `\u{202e}`. What makes an emoji, or joins the letters of a script that is written so, stays.
///
/// A name is shown by [`name::shown`](super::name::shown) instead, which keeps nothing hidden and can
/// be given back.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    spelt_out(text, |_| false)
}

/// [`visible`] for the inside of a sentence: it stays on its line.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    spelt_out(text, |c| matches!(c, '\n' | '\t'))
}

/// The characters of a text that [`visible`] spells out.
pub fn hidden_in(text: &str) -> impl Iterator<Item = char> {
    let mut before = None;
    let mut characters = text.chars().peekable();
    std::iter::from_fn(move || {
        loop {
            let c = characters.next()?;
            let hides = is_hidden(c) && !belongs(before, c, characters.peek().copied());
            before = Some(c);
            if hides {
                return Some(c);
            }
        }
    })
}

fn spelt_out(text: &str, also: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(|c| is_hidden(c) || also(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut before = None;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let hides = is_hidden(c) && !belongs(before, c, characters.peek().copied());
        if hides || also(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
        before = Some(c);
    }
    Cow::Owned(shown)
}

/// Whether a hidden character is an ordinary part of the text around it.
fn belongs(before: Option<char>, c: char, after: Option<char>) -> bool {
    let (Some(before), after) = (before, after.unwrap_or('\0')) else { return false };
    match c {
        // Text or picture; a keycap is a digit, this and a frame.
        '\u{fe0e}' | '\u{fe0f}' => {
            is_pictograph(before) || after == '\u{20e3}' && matches!(before, '0'..='9' | '#' | '*')
        }
        '\u{200c}' | '\u{200d}' if is_joined(before) && is_joined(after) => true,
        // The parts of one picture; a part may end in a skin tone or a selector.
        '\u{200d}' => {
            let ends_part = matches!(before, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}');
            (ends_part || is_pictograph(before)) && is_pictograph(after)
        }
        _ => false,
    }
}

/// Whether a character is of a script in which it matters whether letters are joined: from Arabic to
/// Myanmar, from Khmer to Tai Tham.
fn is_joined(c: char) -> bool {
    matches!(c, '\u{600}'..='\u{109f}' | '\u{1780}'..='\u{1aaf}') && !is_hidden(c)
}

fn is_pictograph(c: char) -> bool {
    static PICTOGRAPHS: LazyLock<ClassUnicode> = LazyLock::new(|| {
        let parsed = regex_syntax::parse(r"\p{Extended_Pictographic}").map(|hir| hir.into_kind());
        match parsed {
            Ok(HirKind::Class(Class::Unicode(class))) => class,
            _ => ClassUnicode::empty(),
        }
    });
    let ranges = PICTOGRAPHS.ranges();
    let at = ranges.partition_point(|range| range.end() < c);
    ranges.get(at).is_some_and(|range| range.start() <= c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_what_unicode_says() {
        let listed = r"[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Cc}\p{Zl}\p{Zp}\x{2800}\x{fff9}-\x{fffb}--[\n\t]]";
        let listed = regex_syntax::parse(listed).unwrap().into_kind();
        let HirKind::Class(Class::Unicode(listed)) = listed else { panic!("no class") };
        let hidden = ('\0'..=char::MAX).filter(|c| is_hidden(*c));
        let ranges = listed.iter().flat_map(|range| range.start()..=range.end());
        assert!(hidden.eq(ranges));
    }

    #[test]
    fn what_hides_is_spelt_out_and_stays_on_its_line() {
        assert_eq!(visible("ls\t-l\n"), "ls\t-l\n");
        assert_eq!(
            visible("rm \u{202e}fr\u{200b} \u{1b}[2K\r"),
            "rm \\u{202e}fr\\u{200b} \\u{1b}[2K\\r"
        );
        assert_eq!(
            visible("a\u{3164}\u{2800}\u{fe0f}\u{e0101}"),
            r"a\u{3164}\u{2800}\u{fe0f}\u{e0101}"
        );
        assert_eq!(one_line("a\nb\x1b[2Jc\u{202e}d\te"), r"a\nb\u{1b}[2Jc\u{202e}d\te");
        assert!(matches!(one_line("src/größe 漢 🙂.rs"), Cow::Borrowed(_)));
    }

    #[test]
    fn emoji_and_joined_letters_stay_readable() {
        for text in [
            "I ❤\u{fe0f} it",
            "☎\u{fe0e}",
            "1\u{fe0f}\u{20e3}",
            "👩\u{200d}🚀",
            "👍🏽",
            "🏳\u{fe0f}\u{200d}🌈",
            "👩🏽\u{200d}🚀",
            "می\u{200c}خواهم",
            "क\u{94d}\u{200d}ष",
        ] {
            assert_eq!(visible(text), text);
        }
        for (text, shown) in [
            ("a\u{fe0f}", r"a\u{fe0f}"),
            ("1\u{fe0f}", r"1\u{fe0f}"),
            ("❤\u{fe0f}\u{fe0f}", "❤\u{fe0f}\\u{fe0f}"),
            ("❤\u{fe01}", r"❤\u{fe01}"),
            ("❤\u{e0101}", r"❤\u{e0101}"),
            ("pass\u{200d}word", r"pass\u{200d}word"),
            ("❤\u{200d}x", r"❤\u{200d}x"),
            ("خ\u{200c}", r"خ\u{200c}"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }
}
