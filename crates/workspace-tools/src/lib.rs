//! The tools of provider-workspace: one file a tool, each with the same parts in the same order
//! (arguments, schema, run, preview, render), and the few types that they share.
//!
//! - [`ReadFile`], [`WriteFile`], [`EditFile`], [`Grep`], [`Glob`] work on the roots of [`Files`].
//! - [`Bash`] runs a command in the jail, by means of [`process`]; [`ShellRead`] discards what it does.
//! - [`SessionStart`], [`SessionRead`], [`SessionWrite`] and [`SessionStop`] run one that outlives its
//!   call, by means of [`process::session`].
//!
//! A tool knows neither the wire nor any async runtime: see the `tool-provider` crate.
#![forbid(unsafe_code)]

pub mod bash;
pub mod change;
pub mod edit_file;
pub mod field;
pub mod glob;
pub mod grep;
pub mod process;
pub mod read_file;
pub mod session_read;
pub mod session_start;
pub mod session_stop;
pub mod session_write;
pub mod shell_session;
pub mod write_file;

mod classify;
mod files;
mod ignore_files;
mod language;
mod lock_wait;
mod prefix;
mod sessions;
mod wildcards;

pub use bash::{Bash, BashSettings, ShellRead};
pub use edit_file::EditFile;
pub use files::Files;
pub use glob::Glob;
pub use grep::Grep;
pub use read_file::ReadFile;
pub use session_read::SessionRead;
pub use session_start::SessionStart;
pub use session_stop::SessionStop;
pub use session_write::SessionWrite;
pub use sessions::Sessions;
pub use shell_session::{SessionSettings, SessionTable, ShellSessions};
pub use write_file::{Overwrite, WriteFile};

/// What one call of these tools may use.
pub type Context<'a> = tool_provider::Context<'a, Files>;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tool_provider::Asks;
    use tool_provider::schema::{Kind, Property, Schema};

    /// Every argument, those of nested objects too.
    fn arguments(schema: &Schema) -> Vec<&'static str> {
        let of = |property: &Property| {
            [vec![property.name], arguments(&property.schema)].concat().into_iter()
        };
        match &schema.kind {
            Kind::Object(properties) => properties.iter().flat_map(of).collect(),
            Kind::Array(items) => arguments(items),
            _ => Vec::new(),
        }
    }

    fn properties(schema: &Schema) -> impl Iterator<Item = &Property> {
        let properties = match &schema.kind {
            Kind::Object(properties) => properties.as_slice(),
            _ => &[],
        };
        properties.iter()
    }

    #[test]
    fn a_name_in_a_table_of_slips_means_one_argument_and_is_none_itself() {
        for spec in [
            crate::bash::spec::spec(),
            crate::bash::shell_read_spec::spec(),
            crate::edit_file::spec::spec(),
            crate::glob::spec::spec(),
            crate::grep::spec::spec(),
            crate::read_file::spec::spec(),
            crate::session_read::spec::spec(),
            crate::session_start::spec::spec(),
            crate::session_stop::spec::spec(),
            crate::session_write::spec::spec(),
            crate::write_file::spec::spec(),
        ] {
            let arguments = arguments(&spec.input);
            let folded: Vec<String> = arguments.iter().map(|name| name.replace('_', "")).collect();
            let mut seen = HashSet::new();
            let others = spec.slips.names.iter().flat_map(|(meant, others)| {
                assert!(arguments.contains(meant), "{}: {meant} is no argument", spec.name);
                others.iter()
            });
            for name in others.chain(spec.slips.remedies.iter().map(|(name, _)| name)) {
                assert!(seen.insert(*name), "{}: {name} stands twice", spec.name);
                assert!(!folded.iter().any(|known| known == name), "{}: {name}", spec.name);
                let plain = name.chars().all(|letter| letter.is_ascii_lowercase());
                assert!(plain, "{}: {name} is never met", spec.name);
            }
            let mut flags = HashSet::new();
            for (name, flag) in spec.slips.flags {
                assert!(flags.insert(*name), "{}: {name} stands twice", spec.name);
                assert!(!folded.iter().any(|known| known == name), "{}: {name}", spec.name);
                let means = |word: &str| properties(&spec.input).find(|other| other.name == word);
                let fits = match flag {
                    Asks::Given(..) => true,
                    Asks::Word(argument, word) => means(argument).is_some_and(
                        |found| matches!(found.schema.kind, Kind::String(words) if words.contains(word)),
                    ),
                    Asks::Argument(argument, _) => means(argument)
                        .is_some_and(|found| matches!(found.schema.kind, Kind::Boolean)),
                };
                assert!(fits, "{}: {name} means no argument", spec.name);
                let is_met =
                    name.len() == 1 || name.chars().all(|letter| letter.is_ascii_lowercase());
                assert!(is_met, "{}: {name} is never met", spec.name);
            }
        }
    }
}
