//! `docs/configuration.md`, from the schema that the decoder reads and the host gets.

use super::MADE;
use super::markdown::{code, table};
use super::properties::rows;
use provider_workspace::config::properties;
use provider_workspace::plugin::LOG_VARIABLE;
use tool_provider::schema::Presence;
use workspace_tools::process::environment::{OFFLINE, UNATTENDED};

pub(super) fn page() -> String {
    let presence = |presence| match presence {
        Presence::Required => "required".to_owned(),
        Presence::Default(json) => code(json),
        Presence::Optional => "unset".to_owned(),
    };
    format!(
        "# Configuration\n{MADE}\nThe keys of the provider's block in a host's `agent.hcl`; by \
         hand `--root`, `--read-only-root` and `--config JSON` set them. \
         [agent.hcl](../examples/agent.hcl) has them all with the defaults written out. An unknown \
         key is an error that names the nearest one, null means left out, and everything that is \
         wrong is reported at once. A second Configure replaces the first for new calls.\n\n{}\n\
         ## Environment\n\n{}\n\
         The command line also obeys `NO_COLOR`, `CLICOLOR_FORCE`, `CLICOLOR` and `TERM`, unless \
         `--color` says otherwise.\n\n\
         ### Of commands\n\n\
         A command sees the provider's `HOME`, `LANG`, `LC_*`, `LOGNAME`, `PATH`, `TZ` and `USER`, what \
         `env`, `env_passthrough` and `secret_env` add, `TMPDIR`, `XDG_CACHE_HOME`, the variables of \
         [package managers](toolchains.md), and these, so that no program waits for a person. `env` \
         replaces each.\n\n{}\nWithout a network also these, so that what needs one fails at once:\n\n{}",
        table(&["key", "type", "default", "meaning"], &rows(&properties(), &presence)),
        table(
            &["variable", "meaning"],
            &[vec![
                code(LOG_VARIABLE),
                "Which entries are logged: `error`, `warn`, `info` (the default), `debug`, `trace` \
                 or `off`."
                    .to_owned(),
            ]],
        ),
        table(
            &["variable", "value", "for"],
            &UNATTENDED.map(|set| vec![code(set.name), code(set.value), set.why.to_owned()]),
        ),
        table(
            &["variable", "value", "for"],
            &OFFLINE.map(|set| vec![code(set.name), code(set.value), set.why.to_owned()]),
        ),
    )
}
