//! Puts the version together.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=PROVIDER_VERSION={}", version()?);
    Ok(())
}

/// The crate's version, with `PROVIDER_BUILD` as its metadata: what Describe reports.
fn version() -> Result<String, Box<dyn Error>> {
    println!("cargo:rerun-if-env-changed=PROVIDER_BUILD");
    let version = std::env::var("CARGO_PKG_VERSION")?;
    let build = std::env::var("PROVIDER_BUILD").unwrap_or_default();
    let is_metadata = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    match build.bytes().all(is_metadata) {
        true if build.is_empty() => Ok(version),
        true => Ok(format!("{version}+{build}")),
        false => Err(format!("PROVIDER_BUILD={build:?} is no build metadata of a version").into()),
    }
}
