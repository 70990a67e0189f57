//! Compiles our `.proto` files with protox, so that no protoc is needed on the machine.
#![expect(clippy::disallowed_methods, reason = "a build script reads our own sources, no user's")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// The package of go-plugin's own services.
const TRANSPORT: &str = "plugin";
/// What the packages of the kernel's protocol begin with.
const SERVICE: &str = "pluggableharness.";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let mut files = Vec::new();
    find(Path::new("proto"), &mut files)?;
    files.sort();
    let descriptors = protox::compile(&files, ["proto"])?;
    // The transport knows nothing of the service, so that each has a codec of its own.
    let (mut transport, mut service) = (descriptors.clone(), descriptors);
    transport.file.retain(|file| !file.package().starts_with(SERVICE));
    service.file.retain(|file| file.package() != TRANSPORT);
    tonic_prost_build::configure().compile_fds(transport)?;
    tonic_prost_build::configure()
        .codec_path("crate::service::codec::Codec")
        .bytes(".pluggableharness.tool.v1.ToolEvent.OutputChunk.data")
        .compile_fds(service)?;
    Ok(())
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
