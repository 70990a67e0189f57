//! The Rust of the `.proto` files, which is checked in: no build of a crate here compiles them.
//!
//! protox compiles them, so that no protoc is needed on the machine either.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use tonic_prost_build::Builder;

use crate::root;

/// What one module's messages are made of, and where they go.
struct Module {
    /// The directory of the `.proto` files, from the repository's root.
    protos: &'static str,
    /// What the names of its packages begin with.
    packages: &'static str,
    /// The directory of the generated files, from the repository's root. It holds nothing else.
    generated: &'static str,
    configure: fn(Builder) -> Builder,
}

/// Each module has a codec and packages of its own, and knows nothing of the others'.
const MODULES: &[Module] = &[
    Module {
        protos: "crates/goplugin/proto",
        packages: "plugin",
        generated: "crates/goplugin/src/generated",
        configure: |builder| builder,
    },
    Module {
        protos: "crates/goplugin/examples/greeter",
        packages: "greeter",
        generated: "crates/goplugin/examples/greeter/generated",
        configure: |builder| builder.build_transport(false),
    },
    Module {
        protos: "proto",
        packages: "pluggableharness.",
        generated: "crates/tool-provider/src/grpc/generated",
        configure: |builder| {
            builder
                .codec_path("crate::grpc::codec::Codec")
                .bytes(".pluggableharness.tool.v1.ToolEvent.OutputChunk.data")
        },
    },
    Module {
        protos: "proto",
        packages: "opentelemetry.",
        generated: "crates/otlp/src/generated",
        configure: |builder| builder.build_server(false),
    },
];

/// Generated files by their path.
type Files = BTreeMap<PathBuf, String>;

/// Writes the generated files of all modules, and removes those of packages that are gone.
pub(crate) fn write() -> Result<(), Box<dyn Error>> {
    for module in MODULES {
        let generated = module.generate()?;
        for path in module.present()?.into_keys().filter(|path| !generated.contains_key(path)) {
            fs::remove_file(path)?;
        }
        fs::create_dir_all(root().join(module.generated))?;
        for (path, text) in generated {
            fs::write(path, text)?;
        }
    }
    Ok(())
}

impl Module {
    /// What should be in the module's directory.
    fn generate(&self) -> Result<Files, Box<dyn Error>> {
        let protos = root().join(self.protos);
        let mut sources = Vec::new();
        find(&protos, &mut sources)?;
        sources.sort();
        let mut descriptors = protox::compile(&sources, [&protos])?;
        // Of what is imported, nothing is generated: prost-types has it.
        descriptors.file.retain(|file| {
            file.package().starts_with(self.packages) || file.package().starts_with("google.")
        });
        let scratch = tempfile::tempdir()?;
        let builder = tonic_prost_build::configure().out_dir(scratch.path());
        (self.configure)(builder).emit_rerun_if_changed(false).compile_fds(descriptors)?;
        let files = read(scratch.path())?;
        let directory = root().join(self.generated);
        let moved =
            |(path, text): (PathBuf, String)| Some((directory.join(path.file_name()?), text));
        Ok(files.into_iter().filter_map(moved).collect())
    }

    /// What is in the module's directory.
    fn present(&self) -> Result<Files, Box<dyn Error>> {
        let directory = root().join(self.generated);
        if directory.is_dir() { read(&directory) } else { Ok(Files::new()) }
    }
}

fn read(directory: &Path) -> Result<Files, Box<dyn Error>> {
    let mut files = Files::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let text = fs::read_to_string(&path)?;
        files.insert(path, text);
    }
    Ok(files)
}

fn find(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension() == Some(OsStr::new("proto")) {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_checked_in_is_what_the_protos_say() {
        for module in MODULES {
            let (generated, present) = (module.generate().unwrap(), module.present().unwrap());
            assert!(!generated.is_empty(), "{} has no messages", module.generated);
            let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&present), names(&generated), "in {}", module.generated);
            let stale: Vec<_> =
                generated.iter().filter(|(path, text)| present[*path] != **text).collect();
            let stale: Vec<_> = stale.into_iter().map(|(path, _)| path).collect();
            assert!(stale.is_empty(), "`cargo run -p xtask -- messages` renews {stale:?}");
        }
    }
}
