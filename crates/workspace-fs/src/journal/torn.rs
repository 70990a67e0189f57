//! Whether a file has the content that an interrupted write in place leaves.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::FileStat;

/// What a file's content is, beside the old and the new content of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The old one: nothing was written yet.
    Old,
    /// The new one: all was written.
    New,
    /// Some of both, as a write leaves it that is cut short.
    Torn,
    /// Another one: somebody has changed the file since.
    Other,
}

/// A write that is cut short ends between two pages, or at its end.
const PAGE: usize = 4096;

/// How much of each file is read at once.
const PIECE: usize = 64 * PAGE;

/// Compares a file with the old and the new content, page by page.
///
/// Torn is a file of which every page is the old or the new one. The new content is laid over the old
/// one from its beginning, and the file is cut to its new length last; so a page may also begin with
/// the end of the new content and go on with the old one.
pub(super) fn content(
    file: BorrowedFd<'_>,
    old: BorrowedFd<'_>,
    new: BorrowedFd<'_>,
) -> rustix::io::Result<Content> {
    let [size, old_size, new_size] = {
        let size = |file| FileStat::of(file).map(|stat| stat.size);
        [size(file)?, size(old)?, size(new)?]
    };
    let possible = old_size..=old_size.max(new_size);
    if size != new_size && !possible.contains(&size) {
        return Ok(Content::Other);
    }
    let (mut is_old, mut is_new) = (size == old_size, size == new_size);
    let mut buffers = [(); 3].map(|()| vec![0; PIECE]);
    let mut position = 0;
    while position < size {
        let [file_piece, old_piece, new_piece] = &mut buffers;
        let pieces = [
            fill(file, file_piece, position)?,
            fill(old, old_piece, position)?,
            fill(new, new_piece, position)?,
        ];
        for start in (0..pieces[0].len()).step_by(PAGE) {
            let [page, old, new] = pieces.map(|piece| {
                let start = start.min(piece.len());
                &piece[start..piece.len().min(start + PAGE)]
            });
            is_old &= page == old;
            is_new &= page == new;
            if page != old && page != new && !is_laid_over(page, new, old) {
                return Ok(Content::Other);
            }
        }
        if pieces[0].is_empty() {
            // It became shorter while it was read.
            return Ok(Content::Other);
        }
        position += pieces[0].len() as u64;
    }
    Ok(match (is_old, is_new) {
        (true, _) => Content::Old,
        (_, true) => Content::New,
        _ => Content::Torn,
    })
}

/// Whether the page is the last one of the new content and behind that the old one's.
fn is_laid_over(page: &[u8], new: &[u8], old: &[u8]) -> bool {
    new.len() < old.len()
        && page.len() == old.len()
        && page.starts_with(new)
        && page.ends_with(&old[new.len()..])
}

fn fill<'b>(
    file: BorrowedFd<'_>,
    buffer: &'b mut [u8],
    position: u64,
) -> rustix::io::Result<&'b [u8]> {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::io::pread(file, &mut buffer[filled..], position + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(&buffer[..filled])
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    use proptest::prelude::*;

    use super::*;

    fn check(file: &[u8], old: &[u8], new: &[u8]) -> Content {
        let [file, old, new] = [file, old, new].map(|bytes| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            file
        });
        content(file.as_fd(), old.as_fd(), new.as_fd()).unwrap()
    }

    fn laid_over(old: &[u8], new: &[u8], written: usize) -> Vec<u8> {
        [&new[..written], old.get(written..).unwrap_or_default()].concat()
    }

    #[test]
    fn another_content_is_not_taken_for_a_torn_one() {
        let old = [vec![b'o'; 3 * PAGE], b"old end".to_vec()].concat();
        let new = [vec![b'n'; 2 * PAGE], b"new end".to_vec()].concat();
        assert_eq!(check(&old, &old, &new), Content::Old);
        assert_eq!(check(&new, &old, &new), Content::New);
        assert_eq!(check(&laid_over(&old, &new, PAGE), &old, &new), Content::Torn);
        assert_eq!(check(&laid_over(&old, &new, new.len()), &old, &new), Content::Torn);
        for (what, file) in [
            ("a part of a page", laid_over(&old, &new, 100)),
            ("cut short", old[..2 * PAGE].to_vec()),
            ("empty", Vec::new()),
            ("longer", [&old[..], b"!"].concat()),
            ("changed at its end", [&laid_over(&old, &new, PAGE)[..3 * PAGE], b"old End"].concat()),
            ("changed at its start", [b"!", &old[1..]].concat()),
        ] {
            assert_eq!(check(&file, &old, &new), Content::Other, "{what}");
        }
        assert_eq!(check(b"x=2 y=1", b"x=1 y=1", b"x=2 y=2"), Content::Other);
        assert_eq!(check(b"", b"", b"new"), Content::Old);
        assert_eq!(check(b"", b"old", b""), Content::New);
        assert_eq!(check(b"", b"old", b"new"), Content::Other);
        assert_eq!(check(b"neold", b"coold", b"ne"), Content::Torn);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_moment_of_a_write_is_known(
            old_size in 0..9 * PAGE,
            new_size in 0..9 * PAGE,
            pages in 0usize..10,
        ) {
            let (old, new) = (vec![b'o'; old_size], vec![b'n'; new_size]);
            let written = (pages * PAGE).min(new_size);
            let file = laid_over(&old, &new, written);
            let expected = match &file {
                file if *file == old => Content::Old,
                file if *file == new => Content::New,
                _ => Content::Torn,
            };
            prop_assert_eq!(check(&file, &old, &new), expected);
        }
    }
}
