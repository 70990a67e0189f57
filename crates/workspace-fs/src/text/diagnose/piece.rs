//! Where in a line a piece of text stands that is not quite like it.

/// More steps are not made for one line.
const MOST_STEPS: usize = 4 << 20;

/// The part of a line that is most like a piece, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) start: usize,
    pub(super) end: usize,
    /// How many bytes have to be changed, added or taken away.
    pub(super) distance: usize,
}

/// The part of `line` with the least distance from `piece`; of those the first. None where finding it
/// costs too much.
pub(super) fn nearest_part(line: &str, piece: &str) -> Option<Part> {
    let (line, piece) = (line.as_bytes(), piece.as_bytes());
    if line.len().saturating_mul(piece.len()) > MOST_STEPS {
        return None;
    }
    // Column by column: of each beginning of the piece its distance from what ends here, and where
    // that started.
    let mut column: Vec<Part> =
        (0..=piece.len()).map(|distance| Part { start: 0, end: 0, distance }).collect();
    let mut best = column[piece.len()];
    for (at, byte) in line.iter().enumerate() {
        let mut diagonal = column[0];
        column[0] = Part { start: at + 1, end: at + 1, distance: 0 };
        for index in 1..=piece.len() {
            let changed = usize::from(piece[index - 1] != *byte);
            let replaced = Part { distance: diagonal.distance + changed, ..diagonal };
            let (left, above) = (column[index], column[index - 1]);
            let added = Part { distance: left.distance + 1, ..left };
            let missing = Part { distance: above.distance + 1, ..above };
            diagonal = left;
            let mut least = replaced;
            for other in [added, missing] {
                if other.distance < least.distance {
                    least = other;
                }
            }
            column[index] = least;
        }
        if column[piece.len()].distance < best.distance {
            best = Part { end: at + 1, ..column[piece.len()] };
        }
    }
    Some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_with_the_fewest_changes_is_found() {
        for (line, piece, start, end, distance) in [
            ("deftotal(self):", "deftotl", 0, 6, 1),
            ("xxdeftotal(self):", "deftotal", 2, 10, 0),
            ("abc", "", 0, 0, 0),
            ("", "abc", 0, 0, 3),
            ("if(a&&b||c){", "a&&d", 3, 6, 1),
        ] {
            let part = Part { start, end, distance };
            assert_eq!(nearest_part(line, piece), Some(part), "{line} {piece}");
        }
        let long = "x".repeat(1 << 20);
        assert_eq!(nearest_part(&long, &long), None);
    }
}
