//! Starting a plugin: its environment, its one line, the connection.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::child::{Child, Exit, Pipes};
use super::log::LogLine;
use super::plugin::Plugin;
use super::stderr::{LogHandler, Tail, follow};
use crate::handshake::{
    Cookie, HandshakeLine, LineError, MultiplexField, is_plugin_variable, variable,
};
use crate::tls::{Identity, Tls, TlsError};

/// Longest handshake line that is read.
const MAX_HANDSHAKE_LINE: u64 = 64 * 1024;

/// How long a plugin that printed nothing useful gets to end and to say why.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Whether host and plugin speak TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Security {
    /// Plain; the socket's file mode keeps others out.
    #[default]
    Plain,
    /// TLS with a certificate of each side, made for this launch.
    AutoMtls,
}

/// Whether brokered connections share the main one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Multiplex {
    /// Each has a socket of its own.
    #[default]
    Off,
    /// All run over one connection.
    On,
}

/// What a plugin sees of our own environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Environment {
    /// All of it, but for the variables of a handshake that we were ourselves launched with.
    #[default]
    Inherit,
    /// Nothing but what is set here.
    Clear,
}

/// Why a plugin could not be launched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The program could not be started.
    #[error("cannot start {program}")]
    Spawn {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It ended, or closed its standard output, without a handshake line.
    #[error("{program} is no plugin for this host, or could not start: it ended {} without a handshake line on its standard output{}", described(*status), quoted(stderr))]
    NoHandshake {
        /// The program.
        program: PathBuf,
        /// How it ended; `None` when it had to be killed.
        status: Option<ExitStatus>,
        /// The last lines of its standard error.
        stderr: String,
    },
    /// It printed something else first.
    #[error("{program} printed no handshake{}", quoted(stderr))]
    Line {
        /// The program.
        program: PathBuf,
        /// What is wrong with the line.
        source: LineError,
        /// The last lines of its standard error.
        stderr: String,
    },
    /// It printed nothing in time.
    #[error("{program} printed no handshake line within {} s{}", limit.as_secs_f32(), quoted(stderr))]
    Timeout {
        /// The program.
        program: PathBuf,
        /// The time that it had.
        limit: Duration,
        /// The last lines of its standard error.
        stderr: String,
    },
    /// It speaks no version that we asked for.
    #[error("the plugin speaks protocol version {found}, this host speaks {offered:?}")]
    Version {
        /// Its choice.
        found: u32,
        /// Ours.
        offered: Vec<u32>,
    },
    /// We asked for multiplexing and it cannot.
    #[error("the plugin cannot multiplex its connections")]
    NoMultiplexing,
    /// We asked for TLS and it sent no certificate.
    #[error("the plugin sent no certificate, though AutoMTLS was asked for")]
    NoCertificate,
    /// TLS could not be set up.
    #[error("cannot set up AutoMTLS")]
    Tls(#[from] TlsError),
    /// The plugin's socket could not be reached.
    #[error("cannot connect to the plugin")]
    Connect(#[source] io::Error),
    /// gRPC could not be started on the connection.
    #[error("cannot speak gRPC with the plugin")]
    Channel(#[from] tonic::transport::Error),
}

/// How to launch a plugin.
#[derive(Clone)]
pub struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Environment,
    variables: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
    cookie: Cookie,
    versions: Vec<u32>,
    security: Security,
    multiplex: Multiplex,
    start_timeout: Duration,
    log: Option<LogHandler>,
    stray: Option<StrayHandler>,
}

/// Receives what a plugin prints on its real standard output after its one line.
type StrayHandler = Arc<dyn Fn(&[u8]) + Send + Sync>;

impl Launch {
    /// Launches `program` with the inherited environment, plain, without multiplexing, and with a
    /// minute to start.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, cookie: Cookie, versions: impl Into<Vec<u32>>) -> Self {
        Launch {
            program: program.into(),
            arguments: Vec::new(),
            environment: Environment::default(),
            variables: Vec::new(),
            directory: None,
            cookie,
            versions: versions.into(),
            security: Security::default(),
            multiplex: Multiplex::default(),
            start_timeout: Duration::from_secs(60),
            log: None,
            stray: None,
        }
    }

    /// Offers these versions of the application's protocol instead.
    #[must_use]
    pub fn offering(mut self, versions: impl Into<Vec<u32>>) -> Self {
        self.versions = versions.into();
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// What the plugin sees of our environment.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Sets a variable. The handshake's own win over it.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// The directory in which the plugin starts; ours, if not set.
    #[must_use]
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Plain or TLS.
    #[must_use]
    pub fn security(mut self, security: Security) -> Self {
        self.security = security;
        self
    }

    /// Multiplexed or not.
    #[must_use]
    pub fn multiplex(mut self, multiplex: Multiplex) -> Self {
        self.multiplex = multiplex;
        self
    }

    /// How long the plugin may take until its handshake line.
    #[must_use]
    pub fn start_timeout(mut self, limit: Duration) -> Self {
        self.start_timeout = limit;
        self
    }

    /// Takes each line that the plugin logs. The handler runs on the runtime's threads and must
    /// not block.
    #[must_use]
    pub fn on_log(mut self, handler: impl Fn(LogLine) + Send + Sync + 'static) -> Self {
        self.log = Some(Arc::new(handler));
        self
    }

    /// Takes what the plugin prints on its real standard output after the handshake line, where it
    /// must print nothing; without a handler that is thrown away. Called like that of
    /// [`Launch::on_log`].
    #[must_use]
    pub fn on_stray_output(mut self, handler: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        self.stray = Some(Arc::new(handler));
        self
    }

    /// Starts the plugin and connects to it.
    ///
    /// # Errors
    /// See [`LaunchError`]. The process is gone when this fails.
    pub async fn start(self) -> Result<Plugin, LaunchError> {
        let identity = match self.security {
            Security::Plain => None,
            Security::AutoMtls => Some(Identity::generate()?),
        };
        let mut command = self.command(identity.as_ref());
        let (mut child, pipes) = Child::spawn(&mut command)
            .map_err(|source| LaunchError::Spawn { program: self.program.clone(), source })?;
        let Pipes { stdout, stderr } = pipes;
        let tail = Tail::default();
        let logs = tokio::spawn(follow(stderr, tail.clone(), self.log.clone()));
        let mut stdout = BufReader::with_capacity(1024, stdout);
        let line = match timeout(self.start_timeout, self.read_line(&mut stdout)).await {
            Ok(Some(line)) => line,
            Ok(None) => {
                let status = last_words(&mut child, logs).await;
                let (program, stderr) = (self.program, tail.text());
                return Err(LaunchError::NoHandshake { program, status, stderr });
            }
            Err(_) => {
                let (program, limit) = (self.program, self.start_timeout);
                return Err(LaunchError::Timeout { program, limit, stderr: tail.text() });
            }
        };
        let line: HandshakeLine = match line.parse() {
            Ok(line) => line,
            Err(source) => {
                last_words(&mut child, logs).await;
                let (program, stderr) = (self.program, tail.text());
                return Err(LaunchError::Line { program, source, stderr });
            }
        };
        tokio::spawn(drain(stdout, self.stray.clone()));
        match self.connect(&line, identity).await {
            Ok(plugin) => Ok(plugin.owning(child)),
            Err(error) => {
                child.terminate(LAST_WORDS).await;
                Err(error)
            }
        }
    }

    async fn connect(
        &self,
        line: &HandshakeLine,
        identity: Option<Identity>,
    ) -> Result<Plugin, LaunchError> {
        self.check(line)?;
        let tls = match (identity, &line.certificate) {
            (None, _) => None,
            (Some(own), Some(peer)) => Some(Tls::new(&own, peer.clone().into())?),
            (Some(_), None) => return Err(LaunchError::NoCertificate),
        };
        Plugin::connect(line, tls, self.multiplex).await
    }

    fn command(&self, identity: Option<&Identity>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        match self.environment {
            Environment::Clear => {
                command.env_clear();
            }
            Environment::Inherit => {
                for (name, _) in std::env::vars_os() {
                    if is_plugin_variable(&name, &self.cookie) {
                        command.env_remove(name);
                    }
                }
            }
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let versions: Vec<_> = self.versions.iter().map(u32::to_string).collect();
        command.env(self.cookie.key, self.cookie.value);
        command.env(variable::VERSIONS, versions.join(","));
        if let Some(identity) = identity {
            command.env(variable::CLIENT_CERT, identity.pem());
        }
        if self.multiplex == Multiplex::On {
            command.env(variable::MULTIPLEX, "true");
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The first line, or `None` when there is none.
    async fn read_line(&self, stdout: &mut BufReader<pipe::Receiver>) -> Option<String> {
        let mut line = String::new();
        match stdout.take(MAX_HANDSHAKE_LINE).read_line(&mut line).await {
            Ok(1..) => Some(line),
            Ok(0) | Err(_) => None,
        }
    }

    fn check(&self, line: &HandshakeLine) -> Result<(), LaunchError> {
        if !self.versions.contains(&line.version) {
            let offered = self.versions.clone();
            return Err(LaunchError::Version { found: line.version, offered });
        }
        if self.multiplex == Multiplex::On && line.multiplex != MultiplexField::Supported {
            return Err(LaunchError::NoMultiplexing);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Launch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launch")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("security", &self.security)
            .field("multiplex", &self.multiplex)
            .finish_non_exhaustive()
    }
}

/// A plugin must not print any more, but one that does must not block on a full pipe.
async fn drain(mut stdout: BufReader<pipe::Receiver>, handler: Option<StrayHandler>) {
    let mut buffer = [0; 512];
    while let Ok(length @ 1..) = stdout.read(&mut buffer).await {
        if let Some(handler) = &handler {
            handler(&buffer[..length]);
        }
    }
}

/// Lets a plugin that failed end, and its last lines arrive.
async fn last_words(child: &mut Child, logs: JoinHandle<()>) -> Option<ExitStatus> {
    match child.end(LAST_WORDS).await {
        Exit::Graceful(status) => {
            // A grandchild may still hold the pipe.
            let _ = timeout(LAST_WORDS, logs).await;
            Some(status)
        }
        Exit::Killed => None,
    }
}

fn described(status: Option<ExitStatus>) -> String {
    status.map_or_else(|| "by our signal".to_owned(), |status| format!("with {status}"))
}

fn quoted(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; its standard error:\n{stderr}") }
}
