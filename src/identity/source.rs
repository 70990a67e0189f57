//! The source of a provider: the address of a forge, as a lock file has it. The build script reads
//! this file too, so it stands on `std` alone.

/// Whether `source` is a forge's address: `HOST/OWNER/NAME`, without a scheme.
///
/// # Errors
/// What is wrong with it, and what would be right.
pub(crate) fn check(source: &str) -> Result<(), String> {
    let wanted = "write the address of its forge without a scheme, such as \
                  github.com/OWNER/provider-workspace";
    if let Some((scheme, _)) = source.split_once("://") {
        return Err(format!("{source:?} begins with {scheme}://: {wanted}"));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte);
    let parts: Vec<&str> = source.split('/').collect();
    let is_address = parts.len() >= 3
        && parts[0].contains('.')
        && parts.iter().all(|part| !part.is_empty() && part.bytes().all(is_plain))
        && !source.ends_with(".git");
    if is_address { Ok(()) } else { Err(format!("{source:?} is not an address: {wanted}")) }
}
