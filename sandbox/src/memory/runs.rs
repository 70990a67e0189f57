//! Which pieces of a stretch of memory are taken.

/// How many pieces there are at most.
pub(crate) const MOST: usize = 1 << 18;

const BITS: usize = u64::BITS as usize;

/// The pieces, one bit each. Whoever gives a run back says how long it was, so nothing is kept of it.
pub(crate) struct Runs {
    taken: [u64; MOST / BITS],
    len: usize,
    used: usize,
    /// Where the next search starts.
    next: usize,
    /// No piece from here on was taken since all were free.
    top: usize,
}

impl Runs {
    pub(crate) const fn new() -> Self {
        Self { taken: [0; MOST / BITS], len: 0, used: 0, next: 0, top: 0 }
    }

    /// Says how many pieces there are; at first there is none.
    pub(crate) fn grow(&mut self, len: usize) {
        self.len = len.min(MOST);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many are taken.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Takes `count` pieces in a row, the first at a multiple of `align`, which is a power of two.
    pub(crate) fn take(&mut self, count: usize, align: usize) -> Option<usize> {
        let first = self.find(self.next, count, align).or_else(|| self.find(0, count, align))?;
        for (word, mask) in words(first, count) {
            self.taken[word] |= mask;
        }
        self.used += count;
        self.next = first + count;
        self.top = self.top.max(self.next);
        Some(first)
    }

    /// Gives a run back. Where that was the last one, says how many pieces had been in use.
    pub(crate) fn give(&mut self, first: usize, count: usize) -> Option<usize> {
        for (word, mask) in words(first, count) {
            self.taken[word] &= !mask;
        }
        self.used -= count;
        if self.used > 0 {
            return None;
        }
        self.next = 0;
        Some(std::mem::take(&mut self.top))
    }

    fn find(&self, from: usize, count: usize, align: usize) -> Option<usize> {
        let mut first = from.next_multiple_of(align);
        while first.checked_add(count)? <= self.len {
            let last_taken = words(first, count).rev().find_map(|(word, mask)| {
                let taken = self.taken[word] & mask;
                (taken != 0).then(|| (word + 1) * BITS - 1 - taken.leading_zeros() as usize)
            });
            match last_taken {
                None => return Some(first),
                Some(taken) => first = (taken + 1).next_multiple_of(align),
            }
        }
        None
    }
}

/// The words that a run lies in, each with the bits that are the run's.
fn words(first: usize, count: usize) -> impl DoubleEndedIterator<Item = (usize, u64)> {
    let end = first + count;
    (first / BITS..end.div_ceil(BITS)).map(move |word| {
        let start = word * BITS;
        let (from, to) = (first.max(start) - start, end.min(start + BITS) - start);
        (word, (u64::MAX >> (BITS - (to - from))) << from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(len: usize) -> Box<Runs> {
        let mut runs = Box::new(Runs::new());
        runs.grow(len);
        runs
    }

    #[test]
    fn nothing_is_there_before_it_is_given() {
        assert_eq!(Runs::new().take(1, 1), None);
    }

    #[test]
    fn what_does_not_fit_in_a_row_is_refused() {
        let mut runs = runs(200);
        let all: Vec<_> = (0..4).map(|_| runs.take(50, 1).unwrap()).collect();
        assert_eq!((all.as_slice(), runs.take(1, 1)), ([0, 50, 100, 150].as_slice(), None));
        assert_eq!((runs.give(0, 50), runs.give(100, 50)), (None, None));
        assert_eq!(
            (runs.take(51, 1), runs.take(50, 1), runs.take(50, 1)),
            (None, Some(0), Some(100))
        );
    }

    #[test]
    fn a_run_starts_where_it_is_aligned() {
        let mut runs = runs(64);
        assert_eq!(
            (runs.take(1, 1), runs.take(3, 16), runs.take(1, 1)),
            (Some(0), Some(16), Some(19))
        );
        assert_eq!((runs.take(20, 32), runs.take(20, 32)), (Some(32), None));
    }

    #[test]
    fn the_last_one_tells_how_far_it_went() {
        let mut runs = runs(MOST);
        let (first, second) = (runs.take(100, 1).unwrap(), runs.take(MOST - 100, 1).unwrap());
        assert_eq!((runs.used(), runs.give(second, MOST - 100)), (MOST, None));
        assert_eq!((runs.give(first, 100), runs.used()), (Some(MOST), 0));
        assert_eq!(runs.take(MOST, 1), Some(0));
    }

    /// Held against a list of what is taken, over many steps that depend on one another.
    #[test]
    fn no_piece_is_given_twice() {
        let mut runs = runs(1000);
        let (mut owner, mut held) = (vec![false; 1000], Vec::new());
        let mut state = 1_u32;
        let mut below = |limit: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % limit
        };
        for _ in 0..20_000 {
            let (count, align) = (1 + below(150) as usize, 1 << below(5));
            match runs.take(count, align) {
                Some(first) => {
                    assert_eq!(first % align, 0);
                    for piece in &mut owner[first..first + count] {
                        assert!(!std::mem::replace(piece, true));
                    }
                    held.push((first, count));
                }
                None => {
                    let fits = |at: usize| owner[at..at + count].iter().all(|taken| !taken);
                    assert!(!(0..=1000 - count).step_by(align).any(fits));
                    let (first, count) = held.swap_remove(below(held.len() as u32) as usize);
                    owner[first..first + count].fill(false);
                    runs.give(first, count);
                }
            }
            assert_eq!(runs.used(), owner.iter().filter(|taken| **taken).count());
        }
    }
}
