//! Compiles our `.proto` files with protox, so that no protoc is needed on the machine, and puts the
//! version together.
#![expect(clippy::disallowed_methods, reason = "a build script reads our own sources, no user's")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// The package of go-plugin's own services.
const TRANSPORT: &str = "plugin";
/// What the packages of OTLP begin with.
const TELEMETRY: &str = "opentelemetry.";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rustc-env=PROVIDER_VERSION={}", version()?);
    let mut files = Vec::new();
    find(Path::new("proto"), &mut files)?;
    files.sort();
    let descriptors = protox::compile(&files, ["proto"])?;
    // The transport knows nothing of the service, and neither of telemetry: each has a codec of its own.
    let of = |is_wanted: fn(&str) -> bool| {
        let mut some = descriptors.clone();
        some.file.retain(|file| is_wanted(file.package()));
        some
    };
    tonic_prost_build::configure().compile_fds(of(|package| package == TRANSPORT))?;
    tonic_prost_build::configure()
        .build_server(false)
        .compile_fds(of(|package| package.starts_with(TELEMETRY)))?;
    tonic_prost_build::configure()
        .codec_path("crate::service::codec::Codec")
        .bytes(".pluggableharness.tool.v1.ToolEvent.OutputChunk.data")
        .compile_fds(of(|package| !package.starts_with(TELEMETRY) && package != TRANSPORT))?;
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

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    Ok(())
}
