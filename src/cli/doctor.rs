//! `doctor`: what this machine can enforce, what that leaves open, and what of a host's file will not
//! load.

mod levels;
mod shell_read;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sandbox::Channel;
use serde_json::{Value, json};

use super::CliError;
use super::agent_file::AgentFile;
use super::args::DoctorOptions;
use super::files::Source;
use super::host::configuration;
use super::output::Output;
use crate::backend::Report;
use crate::identity;
use crate::plugin::log_level;
use levels::Levels;
use shell_read::ShellRead;
use tool_provider::Payload;
use tool_provider::config::FaultKind;
use tool_provider::view::{ListOrder, Style, View};
use tool_provider::{ConfigureError, Identity};
use workspace_tools::process::outside;

pub(crate) fn run(options: &DoctorOptions, output: Output) -> Result<ExitCode, CliError> {
    let file = AgentFile::find(options.agent_file.as_deref())?;
    let config = match file.as_ref().and_then(AgentFile::config) {
        // A host would configure what the file says.
        Some(config) if options.roots.is_empty() => config.clone(),
        _ => configuration(&options.roots, &mut Source::default())?,
    };
    let diagnosis = Diagnosis { file, ..Diagnosis::of(&config) };
    if options.json {
        output.print_json(&diagnosis.json().to_string())?;
    } else {
        output.print(&output.painter().view(&diagnosis.view()))?;
    }
    let loads = diagnosis.file.as_ref().is_none_or(AgentFile::loads);
    let is_healthy = loads && diagnosis.levels.enforce.is_ok() && diagnosis.shell.is_some();
    Ok(if is_healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The keys that name directories or files.
const PATHS: [&str; 4] = ["roots", "read_only_roots", "bash_read", "bash_write"];

/// What the configuration wants.
#[derive(Clone, Copy, PartialEq)]
enum Chosen {
    Jail,
    NoJail,
}

/// What was found.
struct Diagnosis {
    /// The directories and files that the configuration names, by key, absolute.
    paths: Payload,
    /// Whether the configuration itself wants no jail, whatever this machine could enforce.
    chosen: Chosen,
    /// What is wrong with the level of logging that the environment names, if anything.
    log_problem: Option<String>,
    /// What the settings of `sandbox` achieve.
    levels: Levels,
    shell: Option<PathBuf>,
    /// What shell_read keeps from staying.
    shell_read: Option<ShellRead>,
    git: Option<PathBuf>,
    /// The host's file, where there is one.
    file: Option<AgentFile>,
}

impl Diagnosis {
    fn of(config: &Payload) -> Self {
        let wanted = config.get("shell").and_then(Value::as_str).map(PathBuf::from);
        let usual = || ["/bin/bash", "/bin/sh"].map(PathBuf::from).to_vec();
        let levels = Levels::of(config);
        let shell = wanted
            .map_or_else(usual, |shell| vec![shell])
            .into_iter()
            .find(|path| is_program(path));
        Self {
            paths: PATHS
                .iter()
                .filter_map(|key| Some(((*key).to_owned(), absolute(config.get(*key)?))))
                .collect(),
            chosen: match config.get("sandbox").and_then(Value::as_str) {
                Some("off") => Chosen::NoJail,
                _ => Chosen::Jail,
            },
            log_problem: log_level().err(),
            shell_read: levels
                .report()
                .zip(shell.as_deref())
                .map(|(report, shell)| ShellRead::try_it(&report.jail, shell)),
            levels,
            shell,
            git: on_path("git"),
            file: None,
        }
    }

    fn report(&self) -> Option<&Report> {
        self.levels.report()
    }

    fn view(&self) -> View {
        let mut nodes = Vec::new();
        if self.chosen == Chosen::NoJail {
            nodes.push(View::text(
                "! this configuration has no jail (sandbox = \"off\"); below is what another one would do",
                Style::Warning,
            ));
        }
        if let Some(problem) = &self.log_problem {
            nodes.push(View::text(format!("! {problem}"), Style::Warning));
        }
        match &self.levels.enforce {
            Ok(report) => {
                let level = report.enforcement.level.name();
                let works = format!("✓ sandbox = \"enforce\" works, at the level {level:?}");
                nodes.push(View::text(works, Style::Success));
            }
            Err(error) => nodes.extend(failed(error)),
        }
        nodes.extend(self.levels.view());
        if let Some(report) = self.report() {
            nodes.extend(achieved(report));
        }
        nodes.extend(self.shell_read.iter().flat_map(ShellRead::view));
        nodes.push(program("shell", self.shell.as_deref(), Style::Error));
        nodes.push(program("git", self.git.as_deref(), Style::Warning));
        for (key, paths) in &self.paths {
            nodes.push(View::plain(format!("  {key}: {paths}")));
        }
        nodes.extend(self.file.iter().flat_map(AgentFile::view));
        View::Group(nodes)
    }

    fn json(&self) -> Value {
        let faults: Vec<String> = match &self.levels.enforce {
            Ok(_) => Vec::new(),
            Err(error) => error.faults().iter().map(ToString::to_string).collect(),
        };
        let mut json = json!({
            "enforce": self.levels.enforce.is_ok(), "faults": faults,
            "shell": self.shell, "git": self.git, "jail_chosen": self.chosen == Chosen::Jail,
        });
        // A report of a fault says of which build it is.
        let Identity { name, version, source, protocol_version } = identity::of_this_build();
        json["provider"] = json!({
            "name": name, "version": version, "source": source, "build": identity::BUILD,
            "protocol_version": protocol_version,
        });
        for (key, paths) in &self.paths {
            json[key] = paths.clone();
        }
        if let Some(file) = &self.file {
            json["agent_file"] = file.json();
        }
        if let Some(problem) = &self.log_problem {
            json["log"] = problem.as_str().into();
        }
        self.levels.json(&mut json);
        if let Some(shell_read) = &self.shell_read {
            json["shell_read"] = shell_read.json();
        }
        if let Some(Report { enforcement, notices, .. }) = self.report() {
            json["level"] = enforcement.level.name().into();
            json["landlock_abi"] = enforcement.landlock_abi.into();
            json["left_open"] = enforcement.left_open.clone().into();
            json["notices"] = notices.clone().into();
            let channels = enforcement.channels.states.iter();
            json["channels"] = channels
                .map(|(name, state)| ((*name).to_owned(), state.name().into()))
                .collect::<Payload>()
                .into();
        }
        json
    }
}

/// Why `sandbox = "enforce"` cannot be had.
fn failed(error: &ConfigureError) -> [View; 2] {
    let what = match error.kind() {
        FaultKind::Written => "✗ the configuration is not accepted",
        FaultKind::Machine => "✗ sandbox = \"enforce\" fails",
    };
    let faults = error.faults().iter().map(|fault| View::plain(fault.to_string()));
    let list = View::List { items: faults.collect(), order: ListOrder::Unordered };
    [View::text(what, Style::Error), list]
}

/// What is enforced, and what stays open.
fn achieved(report: &Report) -> Vec<View> {
    let mut nodes = vec![match report.enforcement.landlock_abi {
        Some(abi) => View::plain(format!("  Landlock ABI {abi}")),
        None => View::text("  no Landlock", Style::Warning),
    }];
    nodes.extend(channels(report).map(View::plain));
    let warnings = report.enforcement.left_open.iter().chain(&report.notices);
    nodes.extend(warnings.map(|sentence| View::text(format!("! {sentence}"), Style::Warning)));
    nodes
}

fn program(name: &str, found: Option<&Path>, missing: Style) -> View {
    match found {
        Some(path) => View::text(format!("✓ {name}: {}", path.display()), Style::Success),
        None => View::text(format!("✗ {name}: not found"), missing),
    }
}

/// What of the network and of talking to other processes a command has, by how it has it.
fn channels(report: &Report) -> impl Iterator<Item = String> {
    let of = |wanted: Channel| {
        let states = report.enforcement.channels.states.iter();
        let names: Vec<&str> =
            states.filter(|(_, state)| *state == wanted).map(|(name, _)| *name).collect();
        names.join(", ")
    };
    [
        ("closed to commands", of(Channel::Closed)),
        ("within the jail only", of(Channel::Private)),
        ("as without a jail", of(Channel::Open)),
    ]
    .into_iter()
    .filter(|(_, names)| !names.is_empty())
    .map(|(how, names)| format!("  {how}: {names}"))
}

/// The paths of a setting as the provider takes them, as far as they are paths.
fn absolute(setting: &Value) -> Value {
    let one = |item: &Value| match item.as_str() {
        Some(text) => {
            let home =
                text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
            let path = match (home, std::env::var("HOME")) {
                (Some(rest), Ok(home)) => Ok(PathBuf::from(format!("{home}{rest}"))),
                _ => std::path::absolute(text),
            };
            path.map_or_else(|_| item.clone(), |path| path.to_string_lossy().into())
        }
        None => item.clone(),
    };
    setting.as_array().map_or_else(|| setting.clone(), |items| items.iter().map(one).collect())
}

fn is_program(path: &Path) -> bool {
    outside::check_program(path).is_ok()
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| is_program(path))
}
