//! Checks what the environment says that this build is: `src/identity.rs` reads the results.

#[path = "src/identity/source.rs"]
mod source;

use std::env::VarError;
use std::process::ExitCode;

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/identity/source.rs");
    match emit() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            println!("cargo::error={problem}");
            ExitCode::FAILURE
        }
    }
}

fn emit() -> Result<(), String> {
    let (source, build) = (source()?, build()?);
    let version = variable("CARGO_PKG_VERSION")?;
    let version = if build.is_empty() { version } else { format!("{version} ({build})") };
    println!("cargo::rustc-env=PROVIDER_SOURCE={source}");
    println!("cargo::rustc-env=PROVIDER_BUILD={build}");
    println!("cargo::rustc-env=PROVIDER_VERSION_AND_BUILD={version}");
    Ok(())
}

/// `PROVIDER_SOURCE`: where this build will be found, as a lock file names it.
fn source() -> Result<String, String> {
    let source = variable("PROVIDER_SOURCE")?;
    if !source.is_empty() {
        source::check(&source).map_err(|problem| format!("PROVIDER_SOURCE: {problem}"))?;
    }
    Ok(source)
}

/// `PROVIDER_BUILD`: which build of the version this is, for people.
fn build() -> Result<String, String> {
    let build = variable("PROVIDER_BUILD")?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    match build.bytes().all(is_plain) {
        true => Ok(build),
        false => Err(format!("PROVIDER_BUILD: {build:?} is not letters, digits, - . and _")),
    }
}

/// A variable, empty where it is not set.
fn variable(name: &str) -> Result<String, String> {
    println!("cargo::rerun-if-env-changed={name}");
    match std::env::var(name) {
        Ok(value) => Ok(value),
        Err(VarError::NotPresent) => Ok(String::new()),
        Err(error) => Err(format!("{name}: {error}")),
    }
}
