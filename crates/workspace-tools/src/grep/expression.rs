//! What a pattern means, as a tree: what it costs in the worst case, and the automata from it.

use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look,
};

/// How many states an expression may be in at once, at most, where a state counts for as much as it
/// takes to look at it: about 20 ns a byte of text, in the engines that are left when there are too
/// many states for a table. A text for which all of that must be paid is easily made.
pub(super) fn cost(expression: &Hir) -> usize {
    match expression.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Bytes(_)) => 1,
        HirKind::Class(Class::Unicode(class)) if class.is_ascii() => 1,
        // Measured: those of many ranges take several times as long.
        HirKind::Class(Class::Unicode(class)) => 3 + class.ranges().len() / 128,
        HirKind::Capture(capture) => cost(&capture.sub).saturating_add(1),
        HirKind::Repetition(repetition) => {
            let least = repetition.min.max(1);
            let times = repetition.max.map_or(least, |most| most.max(least));
            let once = cost(&repetition.sub).saturating_add(1);
            once.saturating_mul(usize::try_from(times).unwrap_or(usize::MAX))
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(cost).fold(1, usize::saturating_add)
        }
    }
}

/// The expression so that no class in it takes one of these bytes, which are ASCII. No literal has
/// them: such a pattern is refused before.
pub(super) fn without(bytes: &[u8], expression: Hir) -> Hir {
    let each = |parts: Vec<Hir>| parts.into_iter().map(|part| without(bytes, part)).collect();
    match expression.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(Class::Unicode(mut class)) => {
            let taken = bytes.iter().map(|byte| char::from(*byte));
            class.difference(&ClassUnicode::new(taken.map(|c| ClassUnicodeRange::new(c, c))));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(mut class)) => {
            let taken = bytes.iter().map(|byte| ClassBytesRange::new(*byte, *byte));
            class.difference(&ClassBytes::new(taken));
            Hir::class(Class::Bytes(class))
        }
        HirKind::Look(look) => Hir::look(look),
        HirKind::Repetition(mut repetition) => {
            repetition.sub = Box::new(without(bytes, *repetition.sub));
            Hir::repetition(repetition)
        }
        HirKind::Capture(mut capture) => {
            capture.sub = Box::new(without(bytes, *capture.sub));
            Hir::capture(capture)
        }
        HirKind::Concat(parts) => Hir::concat(each(parts)),
        HirKind::Alternation(parts) => Hir::alternation(each(parts)),
    }
}

/// Whether a literal in it has this byte.
pub(super) fn names(byte: u8, expression: &Hir) -> bool {
    match expression.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(_) => false,
        HirKind::Literal(literal) => literal.0.contains(&byte),
        HirKind::Capture(capture) => names(byte, &capture.sub),
        HirKind::Repetition(repetition) => names(byte, &repetition.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().any(|part| names(byte, part))
        }
    }
}

/// The expression where only whole words match.
pub(super) fn as_word(expression: Hir) -> Hir {
    let [start, end] = [Look::WordStartHalfUnicode, Look::WordEndHalfUnicode].map(Hir::look);
    Hir::concat(vec![start, expression, end])
}
