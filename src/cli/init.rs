//! `init`: an `agent.hcl` with which a host loads this provider and gives its tools to the model.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::CliError;
use super::args::InitOptions;
use super::files;
use super::hcl::quoted;
use super::output::Output;
use super::paint::{Ink, StyleFilter};
use crate::identity;
use tool_provider::OutputStream;

/// The file that a host reads, in the directory that it runs in.
pub(crate) const AGENT_FILE: &str = "agent.hcl";

/// What the blocks of the file call this provider.
pub(crate) const LOCAL_NAME: &str = identity::of_this_build().name;

/// Which releases will do: those of this major version from this minor one on.
pub(crate) const VERSIONS: &str =
    concat!("~> ", env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));

/// Stands where a source has to be written.
pub(crate) const NO_SOURCE: &str = "github.com/OWNER/provider-workspace";

pub(super) fn run(options: &InitOptions, output: Output) -> Result<ExitCode, CliError> {
    let file = agent_file(options)?;
    let override_block = if options.dev { Some(dev_overrides()?) } else { None };
    let Some(path) = target(options) else {
        output.print(&file)?;
        // Apart from the file, so that either can be redirected.
        if let Some(block) = override_block {
            output.relay(
                OutputStream::Stderr,
                format!("\n{block}").as_bytes(),
                &mut StyleFilter::default(),
            )?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    match options.force {
        true => files::write(path, file.as_bytes())?,
        false => files::create(path, file.as_bytes())?,
    }
    let next = "name your model in it, then see what `provider-workspace doctor` says";
    output.note("written", Ink::Green, &format!("{}: {next}", path.display()));
    if let Some(block) = override_block {
        output.print(&block)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the file goes, unless it is printed.
fn target(options: &InitOptions) -> Option<&Path> {
    options.out.as_deref().or_else(|| options.write.then(|| Path::new(AGENT_FILE)))
}

fn agent_file(options: &InitOptions) -> Result<String, CliError> {
    let required = required_provider(options.source.as_deref());
    let directories = directories(options)?;
    Ok(format!(
        r#"# Read by the host that runs in this directory.

required_providers {{
  # The blocks below call the provider by this name.
  {LOCAL_NAME} = {{
{required}
  }}
}}

provider "{LOCAL_NAME}" {{
  # Directories that the tools may use, and nothing else. A relative one starts where the host runs.
{directories}
}}

agent_profile "default" {{
  model {{
    primary {{
      provider = "MODEL_PROVIDER" # Replace: the name of a model's provider in required_providers.
      id       = "MODEL_ID"       # Replace: the model's own name.
    }}
  }}

  # A profile without this list has no tools. A single one is "{LOCAL_NAME}.read_file".
  tools = ["{LOCAL_NAME}.*"]
}}

# What leaves all as it is runs: read_file, grep, glob, shell_read, session_read.
policy "{LOCAL_NAME}_reads" {{
  match  = {{ provider = "{LOCAL_NAME}", kind = "data_source" }}
  action = "allow"
}}

# What may change something waits for a person's yes: edit_file, write_file, bash, session_start and others.
policy "{LOCAL_NAME}_changes" {{
  match  = {{ provider = "{LOCAL_NAME}", kind = "resource" }}
  action = "ask"
}}

# Tells the provider when the session ends, so that it ends what session_start left running.
hook "session-end" {{
  provider = "{LOCAL_NAME}"
  mode     = "observe"
}}
"#
    ))
}

/// Where the host finds releases, and which of them will do.
fn required_provider(given: Option<&str>) -> String {
    let known = given.or(Some(identity::SOURCE).filter(|source| !source.is_empty()));
    let replace = if known.is_some() { "" } else { " # Replace OWNER." };
    let source = known.unwrap_or(NO_SOURCE);
    format!("    source  = \"{source}\"{replace}\n    version = \"{VERSIONS}\"")
}

/// The keys that name directories. Whoever names only what may be read wants nothing written.
fn directories(options: &InitOptions) -> Result<String, CliError> {
    let current = [PathBuf::from(".")];
    let roots = match (options.roots.as_slice(), options.read_only_roots.is_empty()) {
        ([], true) => current.as_slice(),
        (roots, _) => roots,
    };
    let roots = list("--root", roots)?;
    if options.read_only_roots.is_empty() {
        return Ok(format!("  roots = {roots}"));
    }
    let read_only = list("--read-only-root", &options.read_only_roots)?;
    Ok(format!("  roots           = {roots}\n  read_only_roots = {read_only}"))
}

fn list(what: &'static str, paths: &[PathBuf]) -> Result<String, CliError> {
    let paths: Vec<String> =
        paths.iter().map(|path| name(what, path.as_os_str())).collect::<Result<_, _>>()?;
    Ok(format!("[{}]", paths.join(", ")))
}

fn name(what: &'static str, name: &OsStr) -> Result<String, CliError> {
    quoted(name).map_err(|reason| CliError::Unwritable { what, name: name.into(), reason })
}

/// What makes a host run this very program instead of a release.
fn dev_overrides() -> Result<String, CliError> {
    let program = std::env::current_exe()
        .map_err(|source| CliError::Io { what: "find this program", source })?;
    let program = name("this program", program.as_os_str())?;
    Ok(format!(
        "# For {}, not for {AGENT_FILE}: the host\n# runs this program instead of a release.\n\
         dev_overrides {{\n  {LOCAL_NAME} = {program}\n}}\n",
        user_file()
    ))
}

/// The host's file of a user, by its name and where that is.
fn user_file() -> String {
    const FILE: &str = "$XDG_CONFIG_HOME/agent/config.hcl";
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let directory = variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")));
    match directory
        .and_then(|path| path.join("agent/config.hcl").into_os_string().into_string().ok())
    {
        // A line's end would end the comment.
        Some(path) if !path.contains(char::is_control) => format!("{FILE} (here {path})"),
        _ => FILE.to_owned(),
    }
}
