//! Keys by name, as a terminal spells them.

use tool_provider::nearest::is_slip;

/// What keys stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Press {
    /// Bytes to type.
    Bytes(Vec<u8>),
    /// Only a terminal has this key, or gives it a meaning.
    OnlyOnTerminal(Vec<u8>),
    /// Ctrl and a letter: on a terminal the byte, without one what a terminal would make of it.
    Control(u8),
}

/// A part of what a call's keys type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// A key, as it was named.
    Press(String, Press),
    /// Words that name no key: typed as they are.
    Text(String),
    /// A word that is meant to name a key, and there is none of that name.
    Unknown(String),
}

/// How a program wants arrow keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrows {
    Usual,
    /// In the way of programs that asked for it.
    Application,
}

/// Keys with a spelling of their own, after ESC `[`.
const NAMED: [(&str, &str); 20] = [
    ("home", "1~"),
    ("insert", "2~"),
    ("delete", "3~"),
    ("end", "4~"),
    ("pageup", "5~"),
    ("pagedown", "6~"),
    ("f1", "11~"),
    ("f2", "12~"),
    ("f3", "13~"),
    ("f4", "14~"),
    ("f5", "15~"),
    ("f6", "17~"),
    ("f7", "18~"),
    ("f8", "19~"),
    ("f9", "20~"),
    ("f10", "21~"),
    ("f11", "23~"),
    ("f12", "24~"),
    ("s-tab", "Z"),
    ("btab", "Z"),
];

const ARROWS: [(&str, u8); 4] = [("up", b'A'), ("down", b'B'), ("right", b'C'), ("left", b'D')];

/// Keys that are a byte of their own.
const PLAIN: [&str; 7] = ["enter", "return", "tab", "space", "esc", "escape", "backspace"];

/// What stands in front of keys and of nothing else.
const LONG_MODIFIERS: [&str; 9] =
    ["ctrl", "control", "alt", "meta", "shift", "super", "cmd", "option", "win"];

/// The names of all keys that have one, in small letters.
fn names() -> impl Iterator<Item = &'static str> {
    let special = NAMED.iter().map(|(name, _)| *name);
    PLAIN.into_iter().chain(special).chain(ARROWS.iter().map(|(name, _)| *name))
}

/// What is typed for keys that are named in order, separated by blanks or commas. Words that name no key are
/// text: several in a row with the blanks between them, unless each is one character, a key of its own.
pub(crate) fn keys(named: &str, arrows: Arrows) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut words: Vec<&str> = Vec::new();
    let text = |words: &mut Vec<&str>, keys: &mut Vec<Key>| {
        let are_keys = words.iter().all(|word| word.chars().count() == 1);
        let text = words.join(if are_keys { "" } else { " " });
        words.clear();
        if !text.is_empty() {
            keys.push(Key::Text(text));
        }
    };
    for word in named.split_whitespace() {
        match pressed(word, arrows) {
            Some(pressed) => {
                text(&mut words, &mut keys);
                keys.extend(pressed);
            }
            None if is_meant_as_key(word) => keys.push(Key::Unknown(word.to_owned())),
            None => words.push(word),
        }
    }
    text(&mut words, &mut keys);
    keys
}

/// The keys that a word names: one, or several with commas between them.
fn pressed(word: &str, arrows: Arrows) -> Option<Vec<Key>> {
    let key = |name: &str| Some(Key::Press(name.to_owned(), press(name, arrows)?));
    if let Some(key) = key(word) {
        return Some(vec![key]);
    }
    let names = word.strip_suffix(',').unwrap_or(word);
    names.split(',').map(key).collect()
}

/// Whether a word that names no key looks as if it did: a key with a modifier, a function key, or the name
/// of a key with a slip in it.
fn is_meant_as_key(word: &str) -> bool {
    let bare = without_brackets(word);
    let folded = bare.to_lowercase();
    let is_function_key = folded.strip_prefix('f').is_some_and(|number| {
        (1..=2).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    let has_modifier = bare.split_once(['-', '+']).is_some_and(|(modifier, key)| {
        modifier_bits(modifier).is_some() && names().any(|known| known.eq_ignore_ascii_case(key))
            || LONG_MODIFIERS.contains(&modifier.to_lowercase().as_str())
    });
    let parts = bare.rsplit_once(['-', '+']);
    let key = parts.filter(|parts| modifier_bits(parts.0).is_some()).map_or(bare, |parts| parts.1);
    // In capitals as keys are named, so that no text is taken for one.
    let is_misspelt = key.len() > 3
        && key.starts_with(|first: char| first.is_ascii_uppercase())
        && names().any(|known| is_slip(key, known));
    is_function_key || has_modifier || is_misspelt
}

/// A key's name as vim spells it, without what stands around it.
fn without_brackets(name: &str) -> &str {
    name.strip_prefix('<').and_then(|name| name.strip_suffix('>')).unwrap_or(name)
}

/// What a key of this name stands for; `None` for one that there is not. Spellings of tmux, of vim and of
/// browsers are known.
fn press(given: &str, arrows: Arrows) -> Option<Press> {
    let name = without_brackets(given);
    if let Some(letter) = name.strip_prefix('^')
        && letter.chars().count() == 1
    {
        return control(letter.chars().next()?).map(Press::Control);
    }
    known(name, arrows)
}

fn known(name: &str, arrows: Arrows) -> Option<Press> {
    let folded = name.to_lowercase();
    let folded = match folded.as_str() {
        "arrowup" | "uparrow" => "up",
        "arrowdown" | "downarrow" => "down",
        "arrowleft" | "leftarrow" => "left",
        "arrowright" | "rightarrow" => "right",
        "pgup" | "ppage" => "pageup",
        "pgdn" | "pgdown" | "npage" => "pagedown",
        "del" | "dc" => "delete",
        "ins" | "ic" => "insert",
        "shift+tab" | "shift-tab" => "s-tab",
        folded => folded,
    };
    let plain = match folded {
        "enter" | "return" | "cr" => Some(b'\n'),
        "tab" => Some(b'\t'),
        "space" => Some(b' '),
        _ => None,
    };
    if let Some(byte) = plain {
        return Some(Press::Bytes(vec![byte]));
    }
    let terminal = |bytes: &[u8]| Some(Press::OnlyOnTerminal(bytes.to_vec()));
    match folded {
        "esc" | "escape" => return terminal(b"\x1b"),
        "backspace" | "bspace" | "bs" => return terminal(b"\x7f"),
        _ => {}
    }
    if let Some((_, letter)) = ARROWS.iter().find(|(arrow, _)| *arrow == folded) {
        let introducer = if arrows == Arrows::Application { b'O' } else { b'[' };
        return terminal(&[0x1b, introducer, *letter]);
    }
    if let Some((_, rest)) = NAMED.iter().find(|(key, _)| *key == folded) {
        return terminal(&[b"\x1b[", rest.as_bytes()].concat());
    }
    let (modifiers, key) = name.rsplit_once(['-', '+'])?;
    if let Some(bytes) = with_modifiers(modifiers, key) {
        return terminal(&bytes);
    }
    let key = if key.eq_ignore_ascii_case("space") { " " } else { key };
    let mut characters = key.chars();
    let (Some(character), None) = (characters.next(), characters.next()) else { return None };
    match modifier_bits(modifiers) {
        Some(CTRL) => control(character).map(Press::Control),
        Some(ALT) => {
            let mut bytes = vec![0x1b];
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            terminal(&bytes)
        }
        _ => None,
    }
}

/// An arrow or another special key together with Shift, Alt or Ctrl, as xterm spells it.
fn with_modifiers(modifiers: &str, key: &str) -> Option<Vec<u8>> {
    let bits = modifiers.split(['-', '+']).map(modifier_bits).sum::<Option<u8>>()?;
    let key = key.to_lowercase();
    let modified = 1 + bits;
    if let Some((_, letter)) = ARROWS.iter().find(|(arrow, _)| *arrow == key) {
        return Some(format!("\x1b[1;{modified}{}", char::from(*letter)).into_bytes());
    }
    let (_, rest) = NAMED.iter().find(|(name, _)| *name == key)?;
    Some(format!("\x1b[{};{modified}~", rest.strip_suffix('~')?).into_bytes())
}

/// What a terminal adds up for the keys that are held.
const SHIFT: u8 = 1;
const ALT: u8 = 2;
const CTRL: u8 = 4;

fn modifier_bits(modifier: &str) -> Option<u8> {
    match modifier.to_lowercase().as_str() {
        "s" | "shift" => Some(SHIFT),
        "m" | "alt" | "meta" => Some(ALT),
        "c" | "ctrl" | "control" => Some(CTRL),
        _ => None,
    }
}

/// The byte of Ctrl and a character.
fn control(character: char) -> Option<u8> {
    match character.to_ascii_uppercase() {
        character @ '@'..='_' => u8::try_from(character).ok().map(|byte| byte & 0x1f),
        ' ' => Some(0),
        '?' => Some(0x7f),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_spelt_as_terminals_spell_them() {
        let bytes = |name| match press(name, Arrows::Usual) {
            Some(Press::Bytes(bytes) | Press::OnlyOnTerminal(bytes)) => bytes,
            Some(Press::Control(byte)) => vec![byte],
            None => panic!("{name}"),
        };
        for (name, expected) in [
            ("Enter", "\n"),
            ("Tab", "\t"),
            ("Esc", "\u{1b}"),
            ("C-c", "\u{3}"),
            ("Ctrl+D", "\u{4}"),
            ("C-[", "\u{1b}"),
            ("M-x", "\u{1b}x"),
            ("Up", "\u{1b}[A"),
            ("PageDown", "\u{1b}[6~"),
            ("F5", "\u{1b}[15~"),
            ("S-Tab", "\u{1b}[Z"),
            ("Shift+Tab", "\u{1b}[Z"),
            ("^C", "\u{3}"),
            ("<C-c>", "\u{3}"),
            ("<CR>", "\n"),
            ("ArrowUp", "\u{1b}[A"),
            ("Control+C", "\u{3}"),
            ("C-Left", "\u{1b}[1;5D"),
            ("Shift+Up", "\u{1b}[1;2A"),
            ("Ctrl+Shift+Right", "\u{1b}[1;6C"),
            ("C-PageDown", "\u{1b}[6;5~"),
        ] {
            assert_eq!(bytes(name), expected.as_bytes(), "{name}");
        }
        let application = press("left", Arrows::Application);
        assert_eq!(application, Some(Press::OnlyOnTerminal(b"\x1bOD".to_vec())));
        for name in ["", "x", "C-", "C-xx", "Hyper-x", "enterr", "C-ä"] {
            assert_eq!(press(name, Arrows::Usual), None, "{name}");
        }
    }

    #[test]
    fn words_that_name_no_key_are_text() {
        let spelt = |named: &str| {
            let spell = |key| match key {
                Key::Text(text) => text,
                Key::Press(name, _) => format!("<{name}>"),
                Key::Unknown(word) => format!("?{word}?"),
            };
            keys(named, Arrows::Usual).into_iter().map(spell).collect::<Vec<_>>().join("|")
        };
        for (named, expected) in [
            ("Esc :wq Enter", "<Esc>|:wq|<Enter>"),
            ("Esc :w new file Enter", "<Esc>|:w new file|<Enter>"),
            ("j j d d", "jjdd"),
            ("Up,Up, Enter", "<Up>|<Up>|<Enter>"),
            ("C-c C-d", "<C-c>|<C-d>"),
            ("a,b ^", "a,b ^"),
            ("", ""),
            ("Entr F13 Ctrl+Enter Cmd+K <C-Entr>", "?Entr?|?F13?|?Ctrl+Enter?|?Cmd+K?|?<C-Entr>?"),
            ("s-expression c-style f1x Foo C-xx", "s-expression c-style f1x Foo C-xx"),
            ("Hello Delta Enter", "Hello Delta|<Enter>"),
        ] {
            assert_eq!(spelt(named), expected, "{named}");
        }
    }
}
