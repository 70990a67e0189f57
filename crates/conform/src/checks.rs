//! The table of checks: the name of each, what it looks at, and the rule that it enforces.

/// Makes the enumeration and its table from one list, so that no check can be without its rule.
macro_rules! checks {
    ($($variant:ident = $id:literal, $title:literal, $rule:literal;)+) => {
        /// One check.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Check { $($variant),+ }

        impl Check {
            /// All of them, in the order in which they are shown.
            pub(crate) const ALL: &[Check] = &[$(Check::$variant),+];

            /// What the names begin with, up to the dot, in the same order.
            pub(crate) fn groups() -> Vec<&'static str> {
                let mut groups: Vec<_> =
                    Self::ALL.iter().filter_map(|check| check.id().split('.').next()).collect();
                groups.dedup();
                groups
            }

            /// Its name, `group.what`.
            pub(crate) const fn id(self) -> &'static str {
                match self { $(Check::$variant => $id),+ }
            }

            /// What it looks at.
            pub(crate) const fn title(self) -> &'static str {
                match self { $(Check::$variant => $title),+ }
            }

            /// The rule, in a few words, and where it comes from.
            pub(crate) const fn rule(self) -> &'static str {
                match self { $(Check::$variant => $rule),+ }
            }
        }
    };
}

checks! {
    Cookie = "launch.cookie", "refuses to run without the host's cookie",
        "go-plugin: without the exact cookie (PLUGGABLEHARNESS_AGENT_PLUGIN) a plugin says so on stderr, prints nothing on stdout and exits with an error";
    Line = "launch.line", "prints a handshake line that a host can use",
        "go-plugin: the first line is 1|VERSION|unix or tcp|ADDRESS|grpc|, with a certificate or a seventh field only when asked for";
    Stdout = "launch.stdout", "prints nothing else on stdout, ever",
        "go-plugin: standard output belongs to the handshake; a host throws away what follows, and stops reading at a line of 64 KiB";
    Stderr = "launch.stderr", "writes nothing on stderr that crashes a host",
        "hclog: in a JSON line the keys @level, @message and @timestamp are strings; another type panics a Go host";
    Version = "launch.version", "chooses a protocol version that the host offers",
        "go-plugin: of the offered versions the highest common one; the tool protocol's is 1";
    Health = "launch.health", "reports its health under go-plugin's name",
        "go-plugin: grpc.health.v1 answers SERVING for the service \"plugin\"";
    Foreign = "launch.foreign_service", "answers UNIMPLEMENTED for a service that it lacks",
        "host: a dev override's category is found by asking each category's service in turn";
    AutoMtls = "launch.tls", "speaks TLS when asked, and with nobody but the host",
        "go-plugin: with PLUGIN_CLIENT_CERT set both sides show a certificate, and no other client is served";
    Multiplexing = "launch.multiplex", "multiplexes when asked, or says that it cannot",
        "go-plugin: a seventh field of true means that connections share one; a plugin that cannot leaves it out or says false";

    Identity = "describe.identity", "says who it is",
        "Describe MUST be implemented; its producer stands in for a lock file's name, version and source";
    SemanticVersion = "describe.version", "has a semantic version",
        "ProducerRef: version is a semantic version";
    Category = "describe.category", "says that it is a tool provider of protocol version 1",
        "ProducerRef: category TOOL, protocol_version that of the tool protocol";

    SchemaAnswers = "schema.answers", "lists its operations before it is configured",
        "GetSchema MUST be answered cheaply, and hosts ask before Configure; one ToolSchema an operation";
    SchemaStable = "schema.stable", "lists the same operations again",
        "GetSchema MUST be re-queryable: what is declared is static";
    Names = "schema.names", "gives every operation a name of its own",
        "ToolSchema.name: unique within the provider";
    Descriptions = "schema.descriptions", "describes every operation",
        "ToolSchema.description MUST be there: the model chooses by it";
    Kinds = "schema.kind", "gives every operation a kind",
        "ToolSchema.kind MUST be resource, data_source or interactive; unspecified is never sent";
    Risks = "schema.risk", "gives every operation a risk that fits its kind",
        "a resource is low to critical, never read_only; data_source and interactive are read_only";
    InputShapes = "schema.input", "declares arguments in the common subset",
        "input_schema MUST be in the common subset of JSON Schema: an object, of five types and no others";
    OutputShapes = "schema.output", "declares results in the common subset",
        "output_schema MUST be there for every operation: an object in the same subset, as a payload is one";
    Concurrency = "schema.concurrency", "declares concurrency where it belongs",
        "ConcurrencySpec MUST be declared but for interactive operations, where it MUST NOT be";
    KeyFields = "schema.key_fields", "names key fields that exist",
        "key_fields are names of input_schema's fields, and mean something only where safe is true";
    TerminatesTurn = "schema.terminates_turn", "ends a turn only with a resource",
        "terminates_turn MAY be true only on a resource; a host rejects it elsewhere";
    DefaultTimeout = "schema.default_timeout", "declares deadlines that are times",
        "default_timeout is the deadline that a host applies: more than nothing, and a valid Duration";
    Extras = "schema.extras", "declares slash commands and hook points that exist",
        "supported_hook_points names some of the eight hook points; a slash command has a name and a template";

    Hooks = "hook.answers", "answers the hooks that it advertises",
        "HookSubscriberService: the answer's variant fits the mode; a transform's payload comes back, a veto decides";

    ConfigSchema = "config.schema", "declares its configuration properly",
        "ConfigAttribute: a block has each name once, types are known, inner keys only in objects, a secret is one string";
    ConfigDefaults = "config.defaults", "has defaults that are what they say",
        "default_json is a JSON text: what holds where the attribute is left out";
    Accepted = "config.accepted", "accepts a configuration that fits",
        "Configure takes what the provider's own ConfigSchema allows";
    NullIsLeftOut = "config.null", "takes null for left out",
        "host: every attribute that is not written arrives as null";
    UnknownKey = "config.unknown_key", "answers a key that it does not know",
        "host: it checks names itself, but hands an object over unchecked; a slip in there must break nothing";
    WrongType = "config.wrong_type", "answers a value of another type",
        "host: it checks types itself, but hands an object over unchecked; a slip in there must break nothing";
    MissingRequired = "config.missing_required", "refuses a configuration that lacks what is required",
        "Configure MUST reject missing required fields with a structured error; null is missing";
    Secrets = "config.secrets", "never repeats a secret",
        "a received secret MUST NOT be in an event, rendered output, a log line or an error";

    Unconfigured = "invoke.unconfigured", "answers a call before it is configured",
        "a plugin MUST classify every failure: also that there is no configuration yet";
    OneEnd = "invoke.one_end", "ends every call with one result or error",
        "exactly one of result or error MUST close the stream, and nothing follows it";
    Events = "invoke.events", "sends events that say what they are",
        "a ToolEvent has one of its six choices set, an output chunk its stream, a result its payload";
    LeadEvents = "invoke.lead_events", "sends lead-up events only where it said so",
        "streaming = false: no output_chunk, progress or partial_result before the terminal event";
    ExitStatus = "invoke.exit_status", "reports an exit status for processes, and only for them",
        "exit_status MUST come once from an operation that is a child process, and MUST NOT from any other";
    ExitCode = "invoke.exit_code", "reports what the process exited with",
        "exit_status is the child process's: its exit_code, or the signal that ended it";
    OutputSchema = "invoke.output_schema", "gives results that fit their schema",
        "result.payload MUST conform to output_schema; a host throws away one that does not";
    Failures = "invoke.failures", "fails by an error event, not by a status",
        "exactly one of result or error MUST close the stream: one that ends with a status is an unknown failure to a host";
    UnknownOperation = "invoke.unknown_operation", "refuses an operation that it does not have",
        "tool_name matches a ToolSchema.name; a call of any other has no result";
    InvalidArguments = "invoke.invalid_arguments", "refuses arguments that do not fit",
        "a failure is classified: of input that fails input_schema it is invalid_arguments, which MUST NOT be retried as it is";
    Sparse = "invoke.sparse", "answers a request that lacks what it should have",
        "host: an action's call has no working directory; and nothing that is left out may crash a provider";
    ReadOnly = "invoke.read_only", "changes nothing by a data source",
        "a data_source is read-only: it runs without anybody's approval";
    Idempotent = "invoke.idempotent", "ends up the same when it is called again, where it says so",
        "idempotent is true only where the same call again cannot produce another end state: a host retries by it";
    WorkingDirectory = "invoke.working_directory", "takes relative paths from the working directory",
        "a process-backed operation, or one that reads files, MUST resolve relative paths against call_context.working_directory";
    ChunkOrder = "invoke.chunk_order", "keeps the order of output",
        "output_chunk ordering within a stream MUST be preserved";
    Concurrent = "invoke.concurrent", "runs what it calls safe side by side",
        "safe = true: concurrent calls are generally safe";
    Cancelled = "invoke.cancel", "stops a call whose stream is closed",
        "a cancel lands: nothing of the call goes on, and the provider answers the next";
    Deadline = "invoke.deadline", "ends a call at its deadline",
        "a call that exceeds a host's deadline (grpc-timeout) is a timeout, and nothing of it goes on";

    ErrorCategory = "error.category", "classifies every failure",
        "ToolError.category MUST be one of the taxonomy; unspecified is never sent";
    ErrorMessage = "error.message", "says what went wrong",
        "ToolError.message MUST be there, for a human";
    ProcessCrashed = "error.process_crashed", "never says that it crashed itself",
        "process_crashed is made by hosts alone";
    UnknownDetails = "error.unknown_details", "shows what is behind an unknown failure",
        "an unknown error MUST include the raw underlying error in details";
    StatusDetails = "status.details", "has details that can be read, if a status has some",
        "gRPC: grpc-status-details-bin is a google.rpc.Status of the same code; a ToolError has a category and a message";
    Unavailable = "status.unavailable", "never answers UNAVAILABLE",
        "UNAVAILABLE reads as a crashed plugin and feeds a circuit breaker";

    PreviewProbe = "preview.probe", "answers a preview without arguments",
        "host: every operation's preview is probed without arguments, before Configure; UNIMPLEMENTED means that it has none";
    PreviewTree = "preview.tree", "previews what a call would do",
        "Preview describes the call's effect as a RenderTree, or is UNIMPLEMENTED";
    PreviewSideEffects = "preview.side_effects", "changes nothing by a preview",
        "Preview MUST NOT mutate anything, whatever the call's kind";
    PreviewFailing = "preview.failing", "previews a call that would fail",
        "Preview of a call that would fail is a tree or a refusal, and changes nothing";

    RenderPersisted = "render.persisted", "shows what a host stored",
        "host: Render gets the stored events of before and after a call, also of failures that a host made; or it is UNIMPLEMENTED";
    RenderVersion = "render.unknown_version", "refuses a schema version that it does not know",
        "RenderRequest.schema_version names how the payload is written; another than known cannot be read";
    RenderGarbage = "render.garbage", "survives a payload that is none",
        "Render of any bytes is a tree or a refusal";

    CallbackLog = "callbacks.log", "logs to the host properly, if it does",
        "KernelCallbackService.Log: an entry has a level, and a session is the one of the call";
    CallbacksOptional = "callbacks.optional", "starts before the host serves callbacks",
        "host: its stream of the broker is dialled from inside a handler, never while starting up";

    Survives = "life.survives", "lives through all of this",
        "a provider that dies in a call misbehaves itself: it is process_crashed to the host";
    Interrupt = "life.interrupt", "ignores SIGINT",
        "go-plugin: Ctrl-C reaches the whole terminal; the host decides when a plugin ends";
    Shutdown = "end.shutdown", "ends when it is told to",
        "go-plugin: GRPCController.Shutdown is answered and the process ends by itself; a host kills after two seconds";
    Busy = "end.busy", "ends when it is told to in the middle of a call",
        "Shutdown ends running calls, with all their processes";
    Terminate = "end.terminate", "ends at SIGTERM",
        "go-plugin: SIGTERM keeps its default, which ends a process";
    HostDeath = "end.host_death", "ends when its host dies",
        "go-plugin leaves an orphan then, which nobody ends; so the best end themselves";
    Orphans = "end.orphans", "leaves no process behind",
        "nothing that a provider started outlives it";
    Sockets = "end.sockets", "leaves no socket behind",
        "go-plugin: nobody but the plugin removes its sockets, and it does at Shutdown";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_count_as_the_table_does() {
        for document in [include_str!("../../../README.md"), include_str!("../../../CHANGELOG.md")]
        {
            assert!(document.contains(&format!("{} rules", Check::ALL.len())));
        }
    }
}
