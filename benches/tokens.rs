//! What a model reads of each tool, in tokens.
//!
//! `cargo bench --bench tokens`. Nothing here depends on the machine's speed.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

mod measurement;
mod model_view;
#[expect(dead_code, reason = "this bench takes no times")]
mod running;

use goplugin::host::Security;

use measurement::{Goal, Measurement};
use model_view::{Reading, readings};
use running::{Outcome, launch, verdict};

fn main() -> Outcome<()> {
    let directory = tempfile::tempdir()?;
    let root = directory.path().join("root");
    #[expect(clippy::disallowed_methods, reason = "a bench prepares its own files")]
    std::fs::create_dir(&root)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let readings = runtime.block_on(async {
        let (plugin, mut client) = launch(directory.path(), &root, Security::Plain).await?;
        let readings = readings(&mut client, &root).await?;
        plugin.kill().await;
        Outcome::Ok(readings)
    })?;
    println!("{:<42} {:>7} {:>7} {:>7}", "tokens of", "ours", "plain", "most");
    for reading in &readings {
        let Reading { name, tokens, plain, .. } = reading;
        let number = |number: Option<usize>| number.map_or("-".to_owned(), |n| n.to_string());
        let most = reading.most();
        let met = most.map_or("", |most| verdict(*tokens as f64 <= most));
        println!(
            "{name:<42} {tokens:>7} {:>7} {:>7} {met}",
            number(plain.map(|(_, plain)| plain)),
            most.map_or("-".to_owned(), |most| format!("{most:.0}")),
        );
        Measurement {
            name,
            value: *tokens as f64,
            unit: "tokens",
            peer: plain.map(|(of, plain)| (of, plain as f64)),
            goal: most.map_or(Goal::None, |most| Goal::ValueAtMost(most.floor())),
        }
        .print();
    }
    Ok(())
}
