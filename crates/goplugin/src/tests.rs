//! Host and plugin of one process, over real sockets: what needs both sides and no launch.

use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_stream::StreamExt as _;
use tonic::transport::Channel;
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::host::{Multiplex, OutputChunk, Plugin, Security};
use crate::pb::StdioData;
use crate::pb::stdio_data::Channel as StdioChannel;
use crate::server::{
    HandshakeEnvironment, HostWatch, Listen, Prepared, STOP_LIMIT, ServeError, Settings,
    StandardStreams, Stdio, Stop, StopReason,
};
use crate::tls::{Identity, Tls, TlsError};
use crate::*;

const COOKIE: Cookie = Cookie { key: "TEST_PLUGIN", value: "yes" };

const MODES: [(Security, Multiplex); 4] = [
    (Security::Plain, Multiplex::Off),
    (Security::AutoMtls, Multiplex::Off),
    (Security::Plain, Multiplex::On),
    (Security::AutoMtls, Multiplex::On),
];

/// A plugin that serves in this process, and the broker that its services see.
struct Running {
    line: HandshakeLine,
    broker: Broker,
    stdio: Stdio,
    stop: Stop,
    served: JoinHandle<Result<(), ServeError>>,
    reason: Arc<Mutex<Option<StopReason>>>,
    directory: tempfile::TempDir,
}

/// The answer of a brokered service says who it is: health is reported for that name alone.
async fn named_service(name: &str) -> Services {
    let (reporter, service) = tonic_health::server::health_reporter();
    reporter.set_service_status(name, ServingStatus::Serving).await;
    Services::new().with(service)
}

async fn answers_to(channel: Channel, name: &str) -> bool {
    let request = HealthCheckRequest { service: name.to_owned() };
    HealthClient::new(channel).check(request).await.is_ok()
}

fn settings(directory: &tempfile::TempDir, variables: &[(&str, &str)], listen: Listen) -> Settings {
    let mut variables: HashMap<_, _> = variables.iter().copied().collect();
    variables.insert("PLUGIN_UNIX_SOCKET_DIR", directory.path().to_str().unwrap());
    variables.insert("PLUGIN_PROTOCOL_VERSIONS", "1,2");
    let lookup = |name: &str| variables.get(name).map(OsString::from);
    Settings {
        cookie: COOKIE,
        versions: vec![1],
        listen,
        environment: HandshakeEnvironment::from_lookup(&COOKIE, lookup),
        host_watch: HostWatch::Ignore,
        standard_streams: StandardStreams::Leave,
    }
}

async fn serve(host: Option<&Identity>, multiplex: Multiplex, listen: Listen) -> Running {
    let directory = tempfile::tempdir().unwrap();
    let pem = host.map(Identity::pem);
    let mut variables = Vec::new();
    if let Some(pem) = &pem {
        variables.push(("PLUGIN_CLIENT_CERT", pem.as_str()));
    }
    if multiplex == Multiplex::On {
        variables.push(("PLUGIN_MULTIPLEX_GRPC", "true"));
    }
    let prepared = Prepared::new(&settings(&directory, &variables, listen)).unwrap();
    let line = prepared.line().clone();
    let (stop, stdio) = (Stop::default(), Stdio::default());
    let reason = Arc::new(Mutex::new(None));
    let (sender, broker) = oneshot::channel();
    let running = {
        let (stop, stdio, reason) = (stop.clone(), stdio.clone(), Arc::clone(&reason));
        async move {
            let services = |broker| {
                let _ = sender.send(broker);
                Services::new()
            };
            let stopping = |why| {
                *reason.lock().unwrap() = Some(why);
                std::future::ready(())
            };
            prepared.run(services, stopping, stop, stdio).await
        }
    };
    let served = tokio::spawn(running);
    Running { line, broker: broker.await.unwrap(), stdio, stop, served, reason, directory }
}

impl Running {
    fn sockets(&self) -> usize {
        let flags = rustix::fs::OFlags::RDONLY;
        let directory = rustix::fs::open(self.directory.path(), flags, rustix::fs::Mode::empty());
        let entries = rustix::fs::Dir::read_from(directory.unwrap()).unwrap();
        entries
            .filter(|entry| !entry.as_ref().unwrap().file_name().to_bytes().starts_with(b"."))
            .count()
    }
}

/// A plugin and a host that is connected to it.
async fn pair(security: Security, multiplex: Multiplex) -> (Running, Plugin) {
    pair_over(security, multiplex, Listen::Unix).await
}

async fn pair_over(security: Security, multiplex: Multiplex, listen: Listen) -> (Running, Plugin) {
    let host = (security == Security::AutoMtls).then(|| Identity::generate().unwrap());
    let running = serve(host.as_ref(), multiplex, listen).await;
    let tls = host.map(|host| pinned(&host, &running.line).unwrap());
    let plugin = Plugin::connect(&running.line, tls, multiplex).await.unwrap();
    (running, plugin)
}

fn pinned(own: &Identity, line: &HandshakeLine) -> Result<Tls, TlsError> {
    Tls::new(own, line.certificate.clone().unwrap().into())
}

#[tokio::test]
async fn a_host_calls_a_plugin_in_every_mode() {
    for listen in [Listen::Unix, Listen::Tcp] {
        for (security, multiplex) in MODES {
            let (running, plugin) = pair_over(security, multiplex, listen).await;
            plugin.ping().await.unwrap();
            assert_eq!(plugin.protocol_version(), 1);
            let sockets = if listen == Listen::Unix { 1 } else { 0 };
            assert_eq!(running.sockets(), sockets);
            plugin.kill().await;
            running.served.await.unwrap().unwrap();
            assert_eq!(*running.reason.lock().unwrap(), Some(StopReason::Shutdown));
        }
    }
}

#[tokio::test]
async fn services_are_brokered_both_ways_in_every_mode() {
    for (security, multiplex) in MODES {
        let (running, plugin) = pair(security, multiplex).await;
        plugin.serve_callbacks(1, named_service("of the host").await).await.unwrap();
        let to_host = running.broker.dial(1).await.unwrap();
        assert!(answers_to(to_host.clone(), "of the host").await);
        assert!(!answers_to(to_host, "of the plugin").await);

        let id = running.broker.next_id();
        let _served = running
            .broker
            .accept_and_serve(id, named_service("of the plugin").await)
            .await
            .unwrap();
        let to_plugin = plugin.broker().dial(id).await.unwrap();
        assert!(answers_to(to_plugin, "of the plugin").await);
        plugin.kill().await;
    }
}

#[tokio::test]
async fn a_dial_may_come_long_after_the_service_was_announced_and_be_repeated() {
    for (security, multiplex) in MODES {
        let (running, plugin) = pair(security, multiplex).await;
        plugin.serve_callbacks(1, named_service("host").await).await.unwrap();
        plugin.ping().await.unwrap();
        for _ in 0..3 {
            assert!(answers_to(running.broker.dial(1).await.unwrap(), "host").await);
        }
    }
}

#[tokio::test]
async fn an_id_that_nobody_serves_fails_after_five_seconds() {
    let (by_socket, _plugin) = pair(Security::Plain, Multiplex::Off).await;
    let (by_knock, _plugin) = pair(Security::Plain, Multiplex::On).await;
    let started = std::time::Instant::now();
    let (by_socket, by_knock) = tokio::join!(by_socket.broker.dial(9), by_knock.broker.dial(9));
    for failed in [by_socket, by_knock] {
        let error = failed.unwrap_err();
        assert!(matches!(error, BrokerError::Timeout { id: 9 }), "{error:?}");
    }
    assert!(started.elapsed() >= Duration::from_secs(5));
}

#[tokio::test]
async fn a_thousand_knocks_reach_the_services_that_they_announced() {
    let (running, plugin) = pair(Security::Plain, Multiplex::On).await;
    let services = Arc::new(Mutex::new(Vec::new()));
    for round in 0..1000 {
        // Accept and dial race each other, from both sides at once.
        let id = plugin.broker().next_id();
        let name = format!("service {round}");
        let accept = async {
            let routes = named_service(&name).await;
            let served = running.broker.accept_and_serve(id, routes).await.unwrap();
            services.lock().unwrap().push(served);
        };
        let dial = async {
            let channel = plugin.broker().dial(id).await.unwrap();
            assert!(answers_to(channel, &name).await, "{name}");
        };
        tokio::join!(dial, accept);
        plugin.ping().await.unwrap();
        services.lock().unwrap().clear();
    }
}

#[tokio::test]
async fn concurrent_dials_do_not_take_each_others_streams() {
    for security in [Security::Plain, Security::AutoMtls] {
        let (running, plugin) = pair(security, Multiplex::On).await;
        let mut served = Vec::new();
        for id in 1..=16 {
            let routes = named_service(&format!("service {id}")).await;
            served.push(running.broker.accept_and_serve(id, routes).await.unwrap());
        }
        let dials = (1..=16).map(|id| {
            let broker = plugin.broker().clone();
            tokio::spawn(async move {
                let channel = broker.dial(id).await.unwrap();
                answers_to(channel, &format!("service {id}")).await
            })
        });
        for dial in dials.collect::<Vec<_>>() {
            assert!(dial.await.unwrap());
        }
    }
}

#[tokio::test]
async fn a_brokered_socket_goes_with_its_service_and_all_go_at_the_end() {
    let (running, plugin) = pair(Security::Plain, Multiplex::Off).await;
    let first = running.broker.accept_and_serve(1, named_service("a").await).await.unwrap();
    let _second = running.broker.accept_and_serve(2, named_service("b").await).await.unwrap();
    assert!(answers_to(plugin.broker().dial(1).await.unwrap(), "a").await);
    assert_eq!(running.sockets(), 3);
    drop(first);
    while running.sockets() > 2 {
        tokio::task::yield_now().await;
    }
    running.stop.request(StopReason::Signal);
    let Running { served, directory, reason, .. } = running;
    served.await.unwrap().unwrap();
    assert_eq!(*reason.lock().unwrap(), Some(StopReason::Signal));
    let left = std::process::id();
    let pattern = format!("{}{left}-", listener::SOCKET_PREFIX);
    let handle =
        rustix::fs::open(directory.path(), rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty());
    for entry in rustix::fs::Dir::read_from(handle.unwrap()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(!name.starts_with(&pattern), "{name} was left");
    }
}

#[tokio::test]
async fn impostors_are_turned_away_and_the_host_carries_on() {
    let host = Identity::generate().unwrap();
    let running = serve(Some(&host), Multiplex::Off, Listen::Unix).await;
    let plugin =
        Plugin::connect(&running.line, Some(pinned(&host, &running.line).unwrap()), Multiplex::Off)
            .await
            .unwrap();
    plugin.ping().await.unwrap();

    // With a certificate of its own that says the very same.
    let impostor = Identity::generate().unwrap();
    let tls = pinned(&impostor, &running.line).unwrap();
    assert!(is_turned_away(Plugin::connect(&running.line, Some(tls), Multiplex::Off).await).await);
    // Without TLS.
    assert!(is_turned_away(Plugin::connect(&running.line, None, Multiplex::Off).await).await);
    plugin.ping().await.unwrap();

    // A host notices a plugin that is not the one that it launched.
    let other = serve(Some(&host), Multiplex::Off, Listen::Unix).await;
    let tls = pinned(&host, &running.line).unwrap();
    assert!(is_turned_away(Plugin::connect(&other.line, Some(tls), Multiplex::Off).await).await);
}

async fn is_turned_away(connected: Result<Plugin, host::LaunchError>) -> bool {
    match connected {
        Ok(plugin) => plugin.ping().await.is_err(),
        Err(_) => true,
    }
}

#[tokio::test]
async fn the_host_may_connect_again_over_tls() {
    let host = Identity::generate().unwrap();
    let running = serve(Some(&host), Multiplex::Off, Listen::Unix).await;
    for _ in 0..2 {
        let tls = pinned(&host, &running.line).unwrap();
        let plugin = Plugin::connect(&running.line, Some(tls), Multiplex::Off).await.unwrap();
        plugin.ping().await.unwrap();
    }
}

#[tokio::test]
async fn printed_output_reaches_the_host_also_what_came_before_it_listened() {
    for (security, multiplex) in MODES {
        let (running, plugin) = pair(security, multiplex).await;
        let print = |channel: StdioChannel, text: &str| {
            running.stdio.push(StdioData { channel: channel.into(), data: text.into() });
        };
        print(StdioChannel::Stdout, "early");
        let mut output = std::pin::pin!(plugin.output());
        assert_eq!(output.next().await.unwrap().unwrap(), OutputChunk::Stdout("early".into()));
        print(StdioChannel::Stderr, "late");
        assert_eq!(output.next().await.unwrap().unwrap(), OutputChunk::Stderr("late".into()));
    }
}

#[tokio::test]
async fn an_application_that_does_not_stop_is_not_waited_for_as_long_as_a_host_waits() {
    let directory = tempfile::tempdir().unwrap();
    let prepared = Prepared::new(&settings(&directory, &[], Listen::Unix)).unwrap();
    let stop = Stop::default();
    stop.request(StopReason::Shutdown);
    let hanging = |_| std::future::pending();
    let started = std::time::Instant::now();
    prepared.run(|_| Services::new(), hanging, stop, Stdio::default()).await.unwrap();
    let took = started.elapsed();
    assert!(took >= STOP_LIMIT && STOP_LIMIT < Duration::from_secs(2), "{took:?}");
}

#[tokio::test]
async fn a_second_raw_connection_does_not_disturb_a_multiplexed_session() {
    let (running, plugin) = pair(Security::AutoMtls, Multiplex::On).await;
    plugin.ping().await.unwrap();
    let mut intruder = listener::connect(&running.line.address).await.unwrap();
    let mut byte = [0];
    let read = tokio::io::AsyncReadExt::read(&mut intruder, &mut byte).await;
    assert!(matches!(read, Ok(0) | Err(_)));
    plugin.ping().await.unwrap();
}

#[tokio::test]
async fn a_plugin_without_a_common_version_offers_its_lowest_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings(&directory, &[], Listen::Unix);
    settings.versions = vec![9, 7];
    let prepared = Prepared::new(&settings).unwrap();
    assert_eq!(prepared.line().version, 7);
}

#[tokio::test]
async fn a_certificate_that_is_none_ends_the_start_instead_of_serving_plainly() {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(&directory, &[("PLUGIN_CLIENT_CERT", "nonsense")], Listen::Unix);
    let refused = Prepared::new(&settings);
    assert!(matches!(refused.err(), Some(ServeError::Tls(TlsError::PeerCertificate(_)))));
}
