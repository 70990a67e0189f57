//! A small tool provider that keeps every rule, until a variable names one to break: what the
//! checker is checked with.
//!
//! It uses the wire's own messages, because ours would not let it misbehave.

mod answers;
mod declared;
mod fault;
mod raw;
mod run;

use std::error::Error;
use std::io::Write as _;
use std::process::{Command, ExitCode, Stdio};

use goplugin::server::{
    CookieCheck, HandshakeEnvironment, HostWatch, Settings, StandardStreams, serve,
};
use goplugin::{Cookie, Services};
use tool_provider::grpc::handshake::{COOKIE_KEY, COOKIE_VALUE};

pub(crate) use fault::VARIABLE;

use answers::Provider;
use fault::Fault;

const COOKIE: Cookie = Cookie { key: COOKIE_KEY, value: COOKIE_VALUE };

/// Serves, where the checker launched this process as its provider.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    Fault::from_process().map(provider_main)
}

fn provider_main(fault: Fault) -> ExitCode {
    let environment = environment(&fault);
    let is_launched = environment.launched_by_host(&COOKIE) == CookieCheck::Launched;
    if !is_launched && !fault.is("runs-without-cookie") {
        let _ = writeln!(std::io::stderr(), "this is a plugin; a host launches it");
        return ExitCode::FAILURE;
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let served = runtime.map_err(Into::into).and_then(|runtime| {
        let served = runtime.block_on(serve_with(fault, environment));
        runtime.shutdown_background();
        served
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve_with(fault: Fault, environment: HandshakeEnvironment) -> Result<(), Box<dyn Error>> {
    if fault.is("crashes-the-host's-log") {
        let _ = writeln!(std::io::stderr(), "{{\"@message\":5}}");
    }
    if fault.is("leaves-a-process") {
        let mut sleep = Command::new("sleep");
        sleep
            .arg("600")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
    }
    if fault.is("leaves-a-socket") {
        // Closed at once; its name stays.
        std::os::unix::net::UnixListener::bind(std::env::temp_dir().join("plugin-left"))?;
    }
    let provider = Provider::new(fault.clone());
    if fault.is("serves-nothing-of-go-plugin") || fault.is("is-deaf-to-sigterm") {
        return raw::serve(provider, &fault).await;
    }
    let word = match () {
        () if fault.is("floods-stdout") => "a".repeat(70 << 10),
        () if fault.is("prints-on-stdout") => "hello".to_owned(),
        () => String::new(),
    };
    let prints = !word.is_empty();
    let settings = Settings {
        environment,
        versions: vec![if fault.is("speaks-another-version") { 2 } else { 1 }],
        host_watch: match fault.is("outlives-its-host") {
            true => HostWatch::Ignore,
            false => HostWatch::Follow,
        },
        standard_streams: match prints {
            true => StandardStreams::Leave,
            false => StandardStreams::Stream,
        },
        ..Settings::new(COOKIE, [1])
    };
    let stopping = provider.clone();
    let services = |broker| {
        provider.has_broker(broker);
        if prints {
            let _ = writeln!(std::io::stdout(), "{word}");
        }
        let services = Services::new().with(provider.clone().into_server());
        match fault.is("serves-any-service") {
            true => services.with(raw::AsModel(provider.into_server())),
            false => services,
        }
    };
    serve(settings, services, |_| async move { stopping.stop() }).await?;
    Ok(())
}

/// The handshake's variables, or what a faulty provider makes of them.
fn environment(fault: &Fault) -> HandshakeEnvironment {
    HandshakeEnvironment::from_lookup(&COOKIE, |name| {
        let value = std::env::var_os(name);
        match name {
            "PLUGIN_CLIENT_CERT" if fault.is("has-no-tls") => None,
            // What is neither empty nor true prints the seventh field and does not multiplex.
            "PLUGIN_MULTIPLEX_GRPC" if fault.is("prints-a-seventh-field") => Some("false".into()),
            "PLUGIN_MULTIPLEX_GRPC" if fault.is("lies-about-multiplexing") => {
                value.map(|_| "false".into())
            }
            _ => value,
        }
    })
}
