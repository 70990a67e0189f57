//! A jail with a root and an outside, and a shell in it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use sandbox::{Command, Jail, Level, Namespaces, Policy, Report, Running, StartError};
use tempfile::TempDir;

/// A jail over `root`, with `outside` beside it.
pub(crate) struct ShellFixture {
    pub(crate) jail: Jail,
    pub(crate) level: Level,
    pub(crate) root: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) _base: TempDir,
}

/// What a command said and what became of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) report: Report,
}

/// A command that runs, with its output being read.
pub(crate) struct Talking {
    pub(crate) running: Running,
    out: JoinHandle<String>,
    err: JoinHandle<String>,
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl ShellFixture {
    /// At a level, with everything else as the policy has it by itself.
    pub(crate) fn at(level: Level) -> Self {
        Self::with(level, |_, _| {})
    }

    /// At a level, over a changed policy. `change` gets the policy and the directory that lies
    /// outside.
    pub(crate) fn with(level: Level, change: impl Fn(&mut Policy, &Path)) -> Self {
        let namespaces = match level {
            Level::Full => Namespaces::Auto,
            _ => Namespaces::Never,
        };
        let fixture = Self::begin(namespaces, change);
        assert_eq!(fixture.level, level, "{:#?}", fixture.jail.enforcement());
        fixture
    }

    pub(crate) fn begin(namespaces: Namespaces, change: impl Fn(&mut Policy, &Path)) -> Self {
        let base = tempfile::Builder::new().prefix("jail-story").tempdir().unwrap();
        let path = base.path().canonicalize().unwrap();
        let (root, outside) = (path.join("root"), path.join("outside"));
        for directory in [&root, &outside, &path.join("private")] {
            fs::create_dir(directory).unwrap();
        }
        fs::write(outside.join("secret"), "SECRET").unwrap();
        let mut policy = Policy {
            roots: vec![root.clone()],
            file_workers: 4,
            namespaces,
            private_in: Some(path.join("private")),
            ..Policy::default()
        };
        change(&mut policy, &outside);
        let jail = Jail::build(&policy).unwrap();
        let level = jail.enforcement().level;
        Self { jail, level, root, outside, _base: base }
    }

    /// A bash command as a provider would start it.
    pub(crate) fn command(&self, script: &str) -> (Command, OwnedFd, OwnedFd) {
        let (out, stdout) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let (err, stderr) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let private = self.jail.private();
        let own = private.home.as_ref().map(|home| home.path.clone());
        let home = own.or_else(|| std::env::var_os("HOME").map(PathBuf::from));
        let env: [(&str, OsString); 6] = [
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("TMPDIR", private.tmp.clone().into()),
            ("XDG_CACHE_HOME", private.cache.clone().into()),
            ("HOME", home.unwrap_or_else(|| "/".into()).into()),
            ("ROOT", self.root.clone().into()),
            ("OUTSIDE", self.outside.clone().into()),
        ];
        let command = Command {
            program: "/bin/bash".into(),
            argv: ["bash", "-c", script].map(OsString::from).to_vec(),
            env: env.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            cwd: self.root.clone(),
            stdin: fs::File::open("/dev/null").unwrap().into(),
            input: sandbox::Input::Fixed,
            stdout,
            stderr,
            limits: None,
        };
        (command, out, err)
    }

    pub(crate) fn start(&self, script: &str) -> Talking {
        let (command, out, err) = self.command(script);
        self.talk(command, out, err).unwrap()
    }

    pub(crate) fn talk(
        &self,
        command: Command,
        out: OwnedFd,
        err: OwnedFd,
    ) -> Result<Talking, StartError> {
        let running = self.jail.start(command)?;
        Ok(Talking { running, out: listen(out), err: listen(err) })
    }

    /// Runs a script to its end.
    pub(crate) fn run(&self, script: &str) -> Outcome {
        self.start(script).end()
    }

    /// Runs a script that must succeed.
    pub(crate) fn succeeds(&self, script: &str) -> String {
        let outcome = self.run(script);
        assert_eq!(outcome.code(), 0, "at level {}: {script}\n{outcome:#?}", self.level);
        outcome.out
    }

    /// Runs a file job and answers with its result.
    pub(crate) fn job<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (say, hear) = channel();
        self.jail.submit(Box::new(move || say.send(job()).unwrap())).unwrap();
        hear.recv().unwrap()
    }

    /// The errno at this level: namespaces hide what Landlock refuses.
    pub(crate) fn refusal(&self, full: i32, kernel: i32) -> i32 {
        if self.level == Level::Full { full } else { kernel }
    }
}

impl Talking {
    pub(crate) fn end(self) -> Outcome {
        let report = self.running.wait().unwrap();
        Outcome { out: self.out.join().unwrap(), err: self.err.join().unwrap(), report }
    }
}

impl Outcome {
    pub(crate) fn code(&self) -> i32 {
        self.report.status.shell_code()
    }
}

fn listen(from: OwnedFd) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = Vec::new();
        fs::File::from(from).read_to_end(&mut text).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// Waits until `file` is there: a command's way to say how far it is.
pub(crate) fn await_file(file: &Path) {
    until(&format!("{} appears", file.display()), || file.exists());
}

/// Waits for a condition that must come true; the timeout allows for a machine under load.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..30_000 {
        if holds() {
            return;
        }
        thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("never: {what}");
}

/// The processes whose command line holds `mark`, as this process sees them.
pub(crate) fn processes(mark: &str) -> Vec<(i32, char)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let read = |name: &str| -> io::Result<Vec<u8>> { fs::read(entry.path().join(name)) };
        let Ok(line) = read("cmdline") else { continue };
        let matches = line.windows(mark.len()).any(|part| part == mark.as_bytes());
        if matches && pid != std::process::id().cast_signed() {
            let stat = read("stat").unwrap_or_default();
            let state = String::from_utf8_lossy(&stat);
            let state = state.rsplit(") ").next().and_then(|rest| rest.chars().next());
            found.push((pid, state.unwrap_or('?')));
        }
    }
    found
}

/// The zombies among this process's children.
pub(crate) fn zombies() -> usize {
    let own = std::process::id();
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| {
            let mut fields = stat.rsplit(") ").next().unwrap_or("").split(' ');
            fields.next() == Some("Z") && fields.next() == Some(own.to_string().as_str())
        })
        .count()
}
