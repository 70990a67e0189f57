//! A launched provider with a directory of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use goplugin::host::{Exit, Launch, Plugin};
use provider_workspace::plugin::{COOKIE, PROTOCOL_VERSION};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::{Value, json};
use tool_provider::Call;
use tool_provider::grpc::{ClientError, Failure, ToolClient};
use tool_provider::{Event, Payload};

/// The binary under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_provider-workspace");

/// Long enough for any machine; a story that waits this long has failed.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A launched provider. Its root is `root`, its temporary directory is `tmp`, and both lie in a
/// directory that goes with the story.
pub(crate) struct Fixture {
    directory: tempfile::TempDir,
    pub(crate) plugin: Plugin,
    pub(crate) client: ToolClient,
}

impl Fixture {
    /// Launched, and not configured.
    pub(crate) async fn launched() -> Self {
        Self::launched_with(|launch| launch).await
    }

    /// Launched in another way than plainly.
    pub(crate) async fn launched_with(change: impl FnOnce(Launch) -> Launch) -> Self {
        Self::launched_as(Path::new(PROGRAM), change).await
    }

    /// Another program, launched in another way than plainly.
    pub(crate) async fn launched_as(program: &Path, change: impl FnOnce(Launch) -> Launch) -> Self {
        let directory = Self::directory();
        let launch = change(launch_in(program.to_str().unwrap(), directory.path()));
        Self::start(directory, launch).await
    }

    /// Launched by another program, which ends by turning into it, such as a shell that sets a limit
    /// first. `prepare` gets the directory before that.
    pub(crate) async fn launched_by(
        wrapper: &str,
        arguments: &[&str],
        prepare: impl FnOnce(&Path),
    ) -> Self {
        let directory = Self::directory();
        prepare(directory.path());
        let launch = launch_in(wrapper, directory.path());
        let launch = arguments.iter().fold(launch, |launch, argument| launch.arg(*argument));
        Self::start(directory, launch).await
    }

    /// Clears away what a killed process left in its temporary directory.
    pub(crate) fn clear_tmp(&self) {
        let tmp = self.directory.path().join("tmp");
        for name in names(&tmp).into_iter().filter(|name| name.starts_with(SOCKETS)) {
            std::fs::remove_dir_all(tmp.join(name)).unwrap();
        }
    }

    /// Launched once more in the same directory, whatever became of the process before.
    pub(crate) async fn relaunch(&mut self) {
        self.relaunch_with(|launch| launch).await;
    }

    /// [`Fixture::relaunch`], in another way than plainly.
    pub(crate) async fn relaunch_with(&mut self, change: impl FnOnce(Launch) -> Launch) {
        let launch = change(launch_in(PROGRAM, self.directory.path()));
        let plugin = launch.start().await.unwrap();
        self.client = ToolClient::new(plugin.channel());
        std::mem::replace(&mut self.plugin, plugin).kill().await;
    }

    fn directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for name in ["root", "tmp"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        directory
    }

    async fn start(directory: tempfile::TempDir, launch: Launch) -> Self {
        let plugin = launch.start().await.unwrap();
        let client = ToolClient::new(plugin.channel());
        Self { directory, plugin, client }
    }

    /// Launched, with its root configured.
    pub(crate) async fn configured() -> Self {
        let mut fixture = Self::launched().await;
        fixture.configure(json!({})).await.unwrap();
        fixture
    }

    /// Configures the root, and what else is said.
    pub(crate) async fn configure(&mut self, more: Value) -> Result<(), ClientError> {
        let mut config = object(more);
        config.entry("roots").or_insert_with(|| json!(["root"]));
        self.client.configure(config).await
    }

    /// A path in the root.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("root").join(name)
    }

    /// A client on another connection to the same process.
    pub(crate) async fn second_client(&self) -> ToolClient {
        let is_socket = |path: &PathBuf| {
            std::os::unix::fs::FileTypeExt::is_socket(
                &std::fs::symlink_metadata(path).unwrap().file_type(),
            )
        };
        let socket = self.sockets().into_iter().find(is_socket).unwrap();
        let connector = tower::service_fn(move |_| {
            let socket = socket.clone();
            async move {
                let stream = tokio::net::UnixStream::connect(socket).await?;
                Ok::<_, std::io::Error>(hyper_util::rt::TokioIo::new(stream))
            }
        });
        let endpoint = tonic::transport::Endpoint::from_static("http://localhost");
        ToolClient::new(endpoint.connect_with_connector(connector).await.unwrap())
    }

    /// The plugin's sockets.
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        sockets_in(&self.directory.path().join("tmp"))
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// Runs a call to its end.
    pub(crate) async fn call(
        &mut self,
        tool: &str,
        arguments: Value,
    ) -> (Vec<Event>, Result<Payload, Failure>) {
        let (events, outcome) = self.client.invoke_to_end(call(tool, arguments)).await.unwrap();
        if let Err(failure) = &outcome {
            assert_stands_alone(failure);
        }
        (events, outcome)
    }

    /// The result of a call that succeeds, without events before it.
    pub(crate) async fn result(&mut self, tool: &str, arguments: Value) -> Payload {
        let (events, outcome) = self.call(tool, arguments).await;
        assert_eq!(events, []);
        outcome.unwrap()
    }

    /// The failure of a call that fails.
    pub(crate) async fn failure(&mut self, tool: &str, arguments: Value) -> Failure {
        self.call(tool, arguments).await.1.expect_err("the call should fail")
    }

    /// A number that the kernel knows of the plugin's process, such as `VmHWM` in KiB.
    pub(crate) fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
    }

    /// How many descriptors the plugin's process has open. Only root can see it: the process is closed
    /// to others of its user.
    pub(crate) fn descriptors(&self) -> Option<usize> {
        Some(std::fs::read_dir(format!("/proc/{}/fd", self.pid())).ok()?.count())
    }

    /// The journals of writes under way, and what else is with them.
    pub(crate) fn journals(&self) -> Vec<String> {
        journals_in(self.directory.path())
    }

    /// How many jails have directories of their own in the plugin's temporary directory.
    pub(crate) fn jails(&self) -> usize {
        jails_in(&self.directory.path().join("tmp")).len()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.plugin.pid().unwrap()
    }

    /// Ends the plugin and checks that it left nothing.
    pub(crate) async fn end(self) {
        drop(self.end_and_keep().await);
    }

    /// [`Fixture::end`], and the directory stays for as long as what this returns.
    pub(crate) async fn end_and_keep(self) -> tempfile::TempDir {
        let tmp = self.directory.path().join("tmp");
        let exit = self.plugin.kill().await;
        assert!(matches!(exit, Exit::Graceful(status) if status.success()), "{exit:?}");
        assert!(names(&tmp).is_empty(), "left behind: {:?}", names(&tmp));
        let journals = journals_in(self.directory.path());
        assert!(journals.is_empty(), "a journal was left behind: {journals:?}");
        self.directory
    }
}

fn launch_in(program: &str, directory: &Path) -> Launch {
    Launch::new(program, COOKIE, [PROTOCOL_VERSION])
        .env("TMPDIR", directory.join("tmp"))
        .env("XDG_STATE_HOME", directory.join("state"))
        .current_dir(directory)
}

fn journals_in(directory: &Path) -> Vec<String> {
    let writes = directory.join("state/provider-workspace/writes");
    if writes.is_dir() { names(&writes) } else { Vec::new() }
}

/// The sockets in the directories that providers made for them in a temporary directory.
fn sockets_in(tmp: &Path) -> Vec<PathBuf> {
    let own = names(tmp).into_iter().filter(|name| name.starts_with(SOCKETS));
    let own = own.map(|name| tmp.join(name));
    own.flat_map(|own| names(&own).into_iter().map(move |name| own.join(name))).collect()
}

/// The private directories of jails.
fn jails_in(tmp: &Path) -> Vec<String> {
    let jails = names(tmp).into_iter().filter(|name| name.starts_with(JAILS));
    let inside = jails.flat_map(|jail| names(&tmp.join(jail)));
    inside.filter(|name| name.starts_with("jail-")).collect()
}

const SOCKETS: &str = "plugin-rs-";
const JAILS: &str = "provider-workspace-";

/// A call of the story's session.
pub(crate) fn call(tool: &str, arguments: Value) -> Call {
    Call {
        id: "call-1".to_owned(),
        tool: tool.to_owned(),
        arguments: object(arguments),
        session_id: "session-1".to_owned(),
        turn_id: "turn-1".to_owned(),
        ..Call::default()
    }
}

pub(crate) fn object(value: Value) -> Payload {
    let Value::Object(map) = value else { panic!("an object is wanted") };
    map
}

/// The status code and the failure that a refused call carries.
pub(crate) fn refusal(error: ClientError) -> (tonic::Code, Failure) {
    match error {
        ClientError::Refused { failure, status } => (status.code(), failure),
        other => panic!("no refusal: {other}"),
    }
}

/// Fails unless a failure's message alone is enough to act on: a host shows its model nothing else.
pub(crate) fn assert_stands_alone(failure: &Failure) {
    let Failure { category, message, details, .. } = failure;
    let text = |name: &str| details.get(name).and_then(Value::as_str);
    let mut facts: Vec<String> = Vec::new();
    facts.extend(["hint", "setting"].into_iter().filter_map(text).map(str::to_owned));
    // Of a version its first digits identify it.
    if category == "concurrency_conflict" {
        facts.extend(text("current_version").map(|version| version.chars().take(12).collect()));
    }
    for name in ["nearest_first_line", "line"] {
        facts.extend(details.get(name).and_then(Value::as_u64).map(|line| line.to_string()));
    }
    for name in ["output", "text"] {
        let lines = text(name).into_iter().flat_map(str::lines);
        facts.extend(lines.rev().find(|line| !line.is_empty()).map(str::to_owned));
    }
    if let Some(similar) = details.get("similar").and_then(Value::as_array) {
        facts.extend(similar.first().and_then(Value::as_str).map(str::to_owned));
    }
    for fact in facts {
        assert!(message.contains(&fact), "{category}: {fact:?} is missing in: {message}");
    }
    let most = if text("output").is_some() || text("text").is_some() { 64 << 10 } else { 8 << 10 };
    assert!(message.len() <= most, "{category}: {} bytes: {message}", message.len());
}

/// Waits until a process is gone.
pub(crate) fn wait_for_end(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    let limit = TEST_TIMEOUT.try_into().unwrap();
    let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit)).unwrap();
    assert_eq!(ended, 1, "the process still runs");
}

/// What is in a directory.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
