//! A plugin with a service of its own, and its host: the program launches itself.

use std::error::Error;
use std::io::Write as _;

use goplugin::host::{Launch, Security};
use goplugin::server::{CookieCheck, HandshakeEnvironment, Settings, hclog, serve};
use goplugin::{Cookie, Services};
use tonic::{Request, Response, Status};
use tracing::level_filters::LevelFilter;

// What tonic generates from greeter.proto.
mod pb;
use pb::greeter_client::GreeterClient;
use pb::greeter_server::{Greeter, GreeterServer};
use pb::{GreetReply, GreetRequest};

/// Both sides know it. It is no secret: it tells a plugin that a host launched it, not a person.
const COOKIE: Cookie = Cookie { key: "GREETER_PLUGIN", value: "a-fixed-text" };

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    match HandshakeEnvironment::from_process(&COOKIE).launched_by_host(&COOKIE) {
        CookieCheck::Launched => plugin().await,
        CookieCheck::Missing | CookieCheck::Wrong => host().await,
    }
}

struct Polite;

#[tonic::async_trait]
impl Greeter for Polite {
    async fn greet(&self, request: Request<GreetRequest>) -> Result<Response<GreetReply>, Status> {
        let GreetRequest { name } = request.into_inner();
        tracing::info!(name, "greeting");
        Ok(Response::new(GreetReply { text: format!("Hello, {name}!") }))
    }
}

async fn plugin() -> Result<(), Box<dyn Error>> {
    hclog::init("greeter", LevelFilter::INFO)?;
    let services = |_broker| Services::new().with(GreeterServer::new(Polite));
    serve(Settings::new(COOKIE, [1]), services, |_reason| async {}).await?;
    Ok(())
}

async fn host() -> Result<(), Box<dyn Error>> {
    let plugin = Launch::new(std::env::current_exe()?, COOKIE, [1])
        .security(Security::AutoMtls)
        .on_log(|line| {
            let _ = writeln!(std::io::stderr(), "{} {}", line.level, line.message);
        })
        .start()
        .await?;
    let mut greeter = GreeterClient::new(plugin.channel());
    let reply = greeter.greet(GreetRequest { name: "world".to_owned() }).await?;
    writeln!(std::io::stdout(), "{}", reply.into_inner().text)?;
    plugin.kill().await;
    Ok(())
}
