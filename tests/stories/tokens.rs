//! What a model reads is short.

#[path = "../../benches/model_view.rs"]
mod model_view;

use crate::harness::Fixture;
use crate::trials::Trial;
use model_view::readings;

pub(crate) fn trials() -> Vec<Trial> {
    trials![what_a_model_reads_is_hardly_longer_than_the_plain_form]
}

async fn what_a_model_reads_is_hardly_longer_than_the_plain_form() {
    let mut fixture = Fixture::configured().await;
    let root = fixture.path("");
    let readings = readings(&mut fixture.client, &root).await.unwrap();
    let mut compared = 0;
    for reading in &readings {
        if let Some(most) = reading.most() {
            assert!(reading.tokens as f64 <= most, "{}: {} > {most}", reading.name, reading.tokens);
            compared += 1;
        }
    }
    assert!(compared >= 10, "{compared}");
    let specs = readings.iter().filter(|reading| reading.name.starts_with("all "));
    assert_eq!(specs.count(), 2, "of the six tools, and of sessions");
    fixture.end().await;
}
