//! `home`: the HOMEs that are kept for commands, and their removal.

use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use sandbox::{Cleared, HomeEntry, Homes, Size};
use serde_json::{Value, json};
use workspace_fs::text::name;

use super::CliError;
use super::args::HomeOptions;
use super::output::Output;
use crate::homes;
use tool_provider::view::{Style, View};

pub(super) fn run(options: &HomeOptions, output: Output) -> Result<ExitCode, CliError> {
    let path = homes::open(&std::env::vars_os().collect())?;
    let homes = Homes::open(&path)?;
    let entries = homes.list()?;
    let Some(wanted) = &options.clear else {
        return list(&homes, &entries, &path, options, output);
    };
    let chosen: Vec<&HomeEntry> = match (wanted, options.all) {
        (None, true) => entries.iter().collect(),
        (Some(key), false) => vec![named(&entries, key)?],
        _ => return Err(CliError::ClearWhat),
    };
    clear(&homes, &chosen, options, output)
}

/// The one HOME whose key begins like this.
fn named<'a>(entries: &'a [HomeEntry], key: &str) -> Result<&'a HomeEntry, CliError> {
    let mut found = entries.iter().filter(|entry| !key.is_empty() && entry.key.starts_with(key));
    match (found.next(), found.next()) {
        (Some(entry), None) => Ok(entry),
        (None, _) => Err(CliError::NoHome { key: key.to_owned(), which: "no" }),
        (Some(_), Some(_)) => Err(CliError::NoHome { key: key.to_owned(), which: "more than one" }),
    }
}

fn list(
    homes: &Homes,
    entries: &[HomeEntry],
    path: &Path,
    options: &HomeOptions,
    output: Output,
) -> Result<ExitCode, CliError> {
    let sizes: Vec<Option<Size>> =
        entries.iter().map(|entry| homes.size(&entry.key).ok()).collect();
    if options.json {
        let listed: Vec<Value> =
            entries.iter().zip(&sizes).map(|(entry, size)| as_json(entry, *size)).collect();
        output.print_json(&json!({"directory": path, "homes": listed}).to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    if entries.is_empty() {
        output.print(&format!("No HOME is kept in {}.\n", path.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = entries.iter().zip(&sizes).map(|(entry, size)| {
        vec![
            entry.key.get(..SHORT).unwrap_or(&entry.key).to_owned(),
            size.map_or_else(|| "?".to_owned(), shown),
            used(entry),
            entry.roots.iter().map(|root| name::of(root)).collect::<Vec<_>>().join(", "),
            entry.rights.join(", "),
        ]
    });
    let headers = ["KEY", "SIZE", "LAST USED", "ROOTS", "RIGHTS"].map(str::to_owned).to_vec();
    let table = View::Table { headers, rows: rows.collect() };
    let place = View::text(format!("in {}", path.display()), Style::Dim);
    output.print(&output.painter().view(&View::Group(vec![table, place])))?;
    Ok(ExitCode::SUCCESS)
}

/// So many digits of a key are shown, and mean one HOME.
const SHORT: usize = 12;

fn clear(
    homes: &Homes,
    chosen: &[&HomeEntry],
    options: &HomeOptions,
    output: Output,
) -> Result<ExitCode, CliError> {
    let (mut removed, mut in_use) = (Vec::new(), Vec::new());
    for entry in chosen {
        match homes.clear(&entry.key)? {
            Cleared::InUse => in_use.push(entry.key.as_str()),
            Cleared::Removed | Cleared::Missing => removed.push(entry.key.as_str()),
        }
    }
    if options.json {
        output.print_json(&json!({"removed": removed, "in_use": in_use}).to_string())?;
    } else {
        let lines = removed.iter().map(|key| format!("removed {key}\n"));
        let kept = in_use.iter().map(|key| format!("in use, not removed: {key}\n"));
        output.print(&lines.chain(kept).collect::<String>())?;
    }
    // Whoever names one wants that one gone.
    Ok(if in_use.is_empty() || options.all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn as_json(entry: &HomeEntry, size: Option<Size>) -> Value {
    let since = entry.last_used.and_then(|used| used.duration_since(SystemTime::UNIX_EPOCH).ok());
    json!({
        "key": entry.key,
        "path": name::of(&entry.at),
        "roots": entry.roots.iter().map(|root| name::of(root)).collect::<Vec<_>>(),
        "rights": entry.rights,
        "in_use": entry.in_use,
        "last_used_unix": since.map(|since| since.as_secs()),
        "bytes": size.map(|size| size.bytes),
        "bytes_complete": size.map(|size| size.complete),
    })
}

fn used(entry: &HomeEntry) -> String {
    if entry.in_use {
        return "now".to_owned();
    }
    let Some(Ok(ago)) = entry.last_used.map(|used| SystemTime::now().duration_since(used)) else {
        return "?".to_owned();
    };
    match ago.as_secs() {
        seconds @ 0..3600 => format!("{} min ago", seconds / 60),
        seconds @ 3600..172_800 => format!("{} h ago", seconds / 3600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

fn shown(size: Size) -> String {
    let least = if size.complete { "" } else { "> " };
    let (count, unit) = match size.bytes {
        bytes @ 0..1_048_576 => (bytes.div_ceil(1024), "KiB"),
        bytes @ 1_048_576..10_737_418_240 => (bytes >> 20, "MiB"),
        bytes => (bytes >> 30, "GiB"),
    };
    format!("{least}{count} {unit}")
}
