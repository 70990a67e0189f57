//! The fixture of every story: a root, a directory outside it, a jail, and a listener.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use sandbox::{Jail, Policy};
use serde_json::{Value, json};
use tempfile::TempDir;
use tool_provider::Secrets;
use tool_provider::view::View;
use tool_provider::{
    CancelToken, EmitError, Event, EventSink, OutputStream, Payload, Phase, Tool, ToolError,
};
use workspace_fs::{Protection, RootsSpec, StateDirectory, Workspace};
use workspace_tools::process::Spool;
use workspace_tools::{Bash, BashSettings, Context, Files, ShellRead};

/// Long enough for anything that is not stuck, on a loaded machine too.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Fixture {
    pub(crate) root: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) jail: Arc<Jail>,
    stage: Arc<Stage>,
    _directories: [TempDir; 2],
}

/// What a call uses, on whatever thread it runs.
struct Stage {
    bash: Bash,
    shell_read: ShellRead,
    root: PathBuf,
    files: Files,
    secrets: Secrets,
}

/// What a fixture protects.
#[derive(Clone, Copy, PartialEq)]
enum Guard {
    Nothing,
    Git,
}

pub(crate) type Outcome = Result<Payload, ToolError>;

/// What came of a call.
pub(crate) struct Answer {
    pub(crate) events: Vec<Event>,
    pub(crate) outcome: Outcome,
}

/// Takes every event at once, and lets others wait for what it took.
#[derive(Default)]
pub(crate) struct Collector {
    events: Mutex<Vec<Event>>,
    more: Condvar,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// A fixture whose settings `change` adapts.
    pub(crate) fn with(change: impl FnOnce(&mut BashSettings)) -> Self {
        Self::built(Guard::Nothing, change)
    }

    /// A fixture that protects git's places, as a provider does by default. Its state is in `outside`.
    pub(crate) fn guarded(change: impl FnOnce(&mut BashSettings)) -> Self {
        Self::built(Guard::Git, change)
    }

    fn built(guard: Guard, change: impl FnOnce(&mut BashSettings)) -> Self {
        let directories = [TempDir::new().unwrap(), TempDir::new().unwrap()];
        let [root, outside] =
            [0, 1].map(|index: usize| directories[index].path().canonicalize().unwrap());
        let mut settings = BashSettings {
            policy: Policy {
                roots: vec![root.clone()],
                file_workers: 4,
                spawner_program: Some(env!("CARGO_BIN_EXE_provider-workspace").into()),
                ..Policy::default()
            },
            environment: environment(),
            ..BashSettings::default()
        };
        change(&mut settings);
        let mut workspace = workspace(&settings.policy);
        if guard == Guard::Git {
            let state = StateDirectory::at(outside.join("state")).unwrap();
            let protection =
                Protection::of(&workspace, &settings.policy.command_write, Arc::default()).unwrap();
            settings.policy.protected = protection.to_mount();
            settings.policy.file_also = protection.outside().map(Path::to_owned).collect();
            settings.policy.file_private = Some(state.path().to_owned());
            let protection = protection.keeping_in(Some(state));
            workspace = workspace.with_protection(Arc::new(protection));
        }
        let jail = Arc::new(Jail::build(&settings.policy).unwrap());
        let workspace = workspace.with_own_directory(&jail.private().spool).unwrap();
        let level = jail.enforcement().level;
        let spool = Arc::new(Spool::open(&jail.private().spool).unwrap());
        let secrets = settings.environment.secrets().clone();
        let shell_read = ShellRead::new(settings.clone(), jail.clone(), spool.clone());
        let bash = Bash::new(settings, jail.clone(), spool);
        let files = Files::new(Arc::new(workspace), level);
        let stage = Stage { bash, shell_read, root: root.clone(), files, secrets };
        Self { root, outside, jail, stage: Arc::new(stage), _directories: directories }
    }

    pub(crate) fn bash(&self) -> &Bash {
        &self.stage.bash
    }

    /// Runs a call to its end.
    pub(crate) fn run(&self, arguments: Value) -> Answer {
        let collector = Arc::new(Collector::default());
        let outcome = self.run_into(arguments, collector.clone(), &CancelToken::new(), None);
        Answer { events: collector.taken(), outcome }
    }

    /// Runs a command to its end, which must be a result.
    pub(crate) fn result(&self, command: &str) -> Payload {
        let answer = self.run(json!({ "command": command }));
        answer.outcome.unwrap_or_else(|error| panic!("{command}: {error} {:?}", error.details()))
    }

    /// Runs a command in a directory to its end, which must be a result.
    pub(crate) fn result_in(&self, directory: &Path, command: &str) -> Payload {
        let answer = self.run(json!({ "command": command, "cwd": directory.to_str().unwrap() }));
        answer.outcome.unwrap_or_else(|error| panic!("{command}: {error} {:?}", error.details()))
    }

    /// Runs a call whose events go to `sink`.
    pub(crate) fn run_into(
        &self,
        arguments: Value,
        sink: Arc<dyn EventSink>,
        cancel: &CancelToken,
        deadline: Option<Instant>,
    ) -> Outcome {
        self.start(arguments, sink, cancel, deadline).recv().unwrap()
    }

    /// Starts a call as the provider does: on a file worker of the jail.
    pub(crate) fn start(
        &self,
        arguments: Value,
        sink: Arc<dyn EventSink>,
        cancel: &CancelToken,
        deadline: Option<Instant>,
    ) -> Receiver<Outcome> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let (stage, cancel) = (self.stage.clone(), cancel.clone());
        let (answer, answered) = channel();
        let job = move || {
            let phase = Phase::default();
            let context = Context {
                state: &stage.files,
                session_id: "",
                working_directory: stage.root.to_str(),
                sink: &*sink,
                cancel: &cancel,
                deadline,
                phase: &phase,
                secrets: &stage.secrets,
            };
            let outcome = stage.bash.run(&arguments, &context);
            // The answer comes last, so that nothing of the call is left when it is there.
            drop((stage, sink, cancel));
            answer.send(outcome).unwrap();
        };
        self.jail.submit(Box::new(job)).unwrap();
        answered
    }

    /// Starts a call of shell_read, on a file worker too.
    pub(crate) fn start_reading(
        &self,
        command: &str,
        sink: Arc<Collector>,
        cancel: &CancelToken,
        deadline: Option<Instant>,
    ) -> Receiver<Outcome> {
        let (stage, cancel) = (self.stage.clone(), cancel.clone());
        let Value::Object(arguments) = json!({ "command": command }) else { unreachable!() };
        let (answer, answered) = channel();
        let job = move || {
            let context = Context {
                state: &stage.files,
                session_id: "",
                working_directory: stage.root.to_str(),
                sink: &*sink,
                cancel: &cancel,
                deadline,
                phase: &Phase::default(),
                secrets: &stage.secrets,
            };
            let outcome = stage.shell_read.run(&arguments, &context);
            drop((stage, sink, cancel));
            answer.send(outcome).unwrap();
        };
        self.jail.submit(Box::new(job)).unwrap();
        answered
    }

    /// Runs a command of shell_read to its end.
    pub(crate) fn read(&self, command: &str) -> Outcome {
        self.start_reading(command, Arc::default(), &CancelToken::new(), None).recv().unwrap()
    }

    /// The same, where it must be a result.
    pub(crate) fn read_result(&self, command: &str) -> Payload {
        self.read(command)
            .unwrap_or_else(|error| panic!("{command}: {error} {:?}", error.details()))
    }

    pub(crate) fn shell_read(&self) -> &ShellRead {
        &self.stage.shell_read
    }

    /// Runs another tool than bash, on a file worker too.
    pub(crate) fn other(&self, tool: Box<dyn Tool<Files>>, arguments: Value) -> Outcome {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let stage = self.stage.clone();
        let (answer, answered) = channel();
        let job = move || {
            let context = Context {
                state: &stage.files,
                session_id: "",
                working_directory: None,
                sink: &Collector::default(),
                cancel: &CancelToken::new(),
                deadline: None,
                phase: &Phase::default(),
                secrets: &stage.secrets,
            };
            answer.send(tool.run(&arguments, &context)).unwrap();
        };
        self.jail.submit(Box::new(job)).unwrap();
        answered.recv().unwrap()
    }

    /// Shows what a call would do.
    pub(crate) fn preview(&self, arguments: Value) -> Result<View, ToolError> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let context = Context {
            state: &self.stage.files,
            session_id: "",
            working_directory: None,
            sink: &Collector::default(),
            cancel: &CancelToken::new(),
            deadline: None,
            phase: &Phase::default(),
            secrets: &self.stage.secrets,
        };
        self.stage.bash.preview(&arguments, &context)
    }

    /// Runs a call and cancels it once it has printed `cue`.
    pub(crate) fn cancelled(&self, arguments: Value, cue: &str) -> Answer {
        let collector = Arc::new(Collector::default());
        let cancel = CancelToken::new();
        let answer = self.start(arguments, collector.clone(), &cancel, None);
        collector.wait_for(cue);
        cancel.cancel();
        let outcome = answer.recv().unwrap();
        Answer { events: collector.taken(), outcome }
    }
}

fn environment() -> workspace_tools::process::Environment {
    use workspace_tools::process::{Environment, Requested};
    Environment::choose(std::env::vars_os(), Requested::default()).unwrap()
}

fn workspace(policy: &Policy) -> Workspace {
    let texts = |paths: &[PathBuf]| {
        paths.iter().map(|path| path.to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    Workspace::open(&RootsSpec {
        roots: texts(&policy.roots),
        read_only_roots: texts(&policy.read_only_roots),
        locks: Arc::default(),
    })
    .unwrap()
}

impl Answer {
    pub(crate) fn result(&self) -> &Payload {
        self.outcome.as_ref().unwrap_or_else(|error| panic!("{error} {:?}", error.details()))
    }

    pub(crate) fn error(&self) -> &ToolError {
        match &self.outcome {
            Ok(payload) => panic!("a result: {payload:?}"),
            Err(error) => error,
        }
    }

    /// What was streamed, as (stream, text) with neighbours of one stream joined.
    pub(crate) fn streamed(&self) -> Vec<(OutputStream, String)> {
        let mut joined: Vec<(OutputStream, Vec<u8>)> = Vec::new();
        for event in &self.events {
            let Event::Output { stream, data } = event else { continue };
            match joined.last_mut() {
                Some((last, bytes)) if last == stream => bytes.extend_from_slice(data),
                _ => joined.push((*stream, data.to_vec())),
            }
        }
        let text = |bytes| String::from_utf8(bytes).unwrap();
        joined.into_iter().map(|(stream, bytes)| (stream, text(bytes))).collect()
    }

    /// The exit status that was reported, and that it came after all output.
    pub(crate) fn exit(&self) -> (i32, Option<String>) {
        let at = self.events.iter().position(|event| matches!(event, Event::Exit { .. }));
        let at = at.unwrap_or_else(|| panic!("no exit status: {:?}", self.events));
        let later = &self.events[at + 1..];
        assert!(
            !later.iter().any(|event| matches!(event, Event::Output { .. } | Event::Exit { .. })),
            "after the exit status: {later:?}"
        );
        match &self.events[at] {
            Event::Exit { code, signal } => (*code, signal.clone()),
            _ => unreachable!(),
        }
    }
}

impl Collector {
    pub(crate) fn taken(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    /// Waits for a report of progress that ends with `cue`.
    pub(crate) fn wait_for_progress(&self, cue: &str) {
        self.wait_until(cue, |events| {
            events.iter().any(
                |event| matches!(event, Event::Progress { message, .. } if message.ends_with(cue)),
            )
        });
    }

    /// Waits until the output so far contains `cue`.
    pub(crate) fn wait_for(&self, cue: &str) {
        self.wait_until(cue, |events| {
            let output: Vec<u8> = events
                .iter()
                .filter_map(|event| match event {
                    Event::Output { data, .. } => Some(data.to_vec()),
                    _ => None,
                })
                .flatten()
                .collect();
            String::from_utf8_lossy(&output).contains(cue)
        });
    }

    fn wait_until(&self, cue: &str, seen: impl Fn(&[Event]) -> bool) {
        let events = self.events.lock().unwrap();
        let (_events, timeout) =
            self.more.wait_timeout_while(events, TEST_TIMEOUT, |events| !seen(events)).unwrap();
        assert!(!timeout.timed_out(), "{cue:?} never came");
    }
}

impl EventSink for Collector {
    fn emit_until(&self, event: Event, _deadline: Option<Instant>) -> Result<(), EmitError> {
        self.events.lock().unwrap().push(event);
        self.more.notify_all();
        Ok(())
    }
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// A result's notice, or nothing.
pub(crate) fn notice(result: &Payload) -> &str {
    result.get("notice").and_then(Value::as_str).unwrap_or_default()
}
