//! Characters that cannot be seen, or change how others are seen.

/// Whether a character cannot be seen, or changes how others are seen. A line break and a tab are
/// none of these: they are what text is made of.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Soft hyphen, Arabic letter mark, Mongolian vowel separator.
        '\u{ad}' | '\u{61c}' | '\u{180e}' => true,
        // Zero-width characters, direction marks, separators, embeddings and overrides.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        // Byte-order mark, interlinear annotations, tags.
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}
