//! Binary formats by their first bytes.

/// What a file is by the bytes that its format starts with.
pub(super) fn kind(sample: &[u8]) -> Option<&'static str> {
    matching(sample).map(|(_, _, kind)| *kind).next()
}

/// Like [`kind`], for a file that could still be text in a legacy encoding: what could be the
/// beginning of a word (`BM`, `OTTO`) proves nothing.
pub(super) fn kind_beyond_doubt(sample: &[u8]) -> Option<&'static str> {
    matching(sample)
        .filter(|(_, bytes, _)| !bytes.iter().all(u8::is_ascii_alphanumeric))
        .map(|(_, _, kind)| *kind)
        .next()
}

type Format = (usize, &'static [u8], &'static str);

fn matching(sample: &[u8]) -> impl Iterator<Item = &'static Format> {
    FORMATS
        .iter()
        .filter(move |(at, bytes, _)| sample.get(*at..).is_some_and(|rest| rest.starts_with(bytes)))
}

/// Offset, bytes, name. The most specific of a family first.
#[rustfmt::skip]
const FORMATS: &[Format] = &[
    (0, b"\x89PNG\r\n\x1A\n", "PNG image"),
    (0, b"\xFF\xD8\xFF", "JPEG image"),
    (0, b"GIF87a", "GIF image"),
    (0, b"GIF89a", "GIF image"),
    (8, b"WEBP", "WebP image"),
    (8, b"WAVE", "WAV audio"),
    (8, b"AVI ", "AVI video"),
    (4, b"ftypavif", "AVIF image"),
    (4, b"ftypheic", "HEIC image"),
    (4, b"ftyp", "MP4 video"),
    (0, b"II*\0", "TIFF image"),
    (0, b"MM\0*", "TIFF image"),
    (0, b"\0\0\x01\0", "icon"),
    (0, b"%PDF-", "PDF document"),
    (0, b"PK\x03\x04", "ZIP archive (also docx, xlsx, jar, apk)"),
    (0, b"PK\x05\x06", "empty ZIP archive"),
    (0, b"\x1F\x8B", "gzip data"),
    (4, b"1AY&SY", "bzip2 data"),
    (0, b"\xFD7zXZ\0", "xz data"),
    (0, b"\x28\xB5\x2F\xFD", "Zstandard data"),
    (0, b"\x04\x22\x4D\x18", "LZ4 data"),
    (0, b"7z\xBC\xAF\x27\x1C", "7-Zip archive"),
    (0, b"Rar!\x1A\x07", "RAR archive"),
    (257, b"ustar", "tar archive"),
    (0, b"!<arch>\n", "static library or Debian package"),
    (0, b"\x7FELF", "ELF executable or library"),
    (0, b"\0asm", "WebAssembly module"),
    (0, b"\xCF\xFA\xED\xFE", "Mach-O executable or library"),
    (0, b"\xFE\xED\xFA\xCF", "Mach-O executable or library"),
    (0, b"\xCA\xFE\xBA\xBE", "Java class or universal Mach-O file"),
    (0, b"MZ", "Windows executable or library"),
    (0, b"SQLite format 3\0", "SQLite database"),
    (0, b"\0\x01\0\0\0", "TrueType font"),
    (0, b"OTTO", "OpenType font"),
    (0, b"wOFF", "WOFF font"),
    (0, b"wOF2", "WOFF2 font"),
    (0, b"OggS", "Ogg audio or video"),
    (0, b"fLaC", "FLAC audio"),
    (0, b"ID3\x03", "MP3 audio"),
    (0, b"ID3\x04", "MP3 audio"),
    (0, b"\x1A\x45\xDF\xA3", "Matroska or WebM video"),
    (0, b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "Microsoft Office document"),
    (0, b"PAR1", "Parquet data"),
    (0, b"Obj\x01", "Avro data"),
    (0, b"\x89HDF\r\n\x1A\n", "HDF5 data"),
    (0, b"\x93NUMPY", "NumPy array"),
    (0, b"DIRC", "git index"),
    (0, b"PACK\0\0\0", "git pack"),
    (0, b"\xFFtOc", "git pack index"),
    (0, b"BM", "BMP image"),
];
