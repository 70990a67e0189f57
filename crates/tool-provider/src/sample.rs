//! A small tool whose work each test makes up.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::schema::{Kind, Property, Schema};
use crate::view::View;
use crate::{Concurrency, Context, Payload, RiskClass, Slips, Tool, ToolError, ToolKind, ToolSpec};

type Run = Box<dyn Fn(&Payload, &Context<'_>) -> Result<Payload, ToolError> + Send + Sync>;

/// The spec of a tool that takes this.
pub(crate) fn spec(name: &'static str, input: Schema) -> ToolSpec {
    ToolSpec {
        name,
        kind: ToolKind::DataSource,
        risk: RiskClass::ReadOnly,
        description: String::new(),
        input,
        output: Schema::object(Vec::new()),
        slips: Slips::default(),
        streaming: false,
        concurrency: Concurrency::Exclusive,
        default_timeout: Duration::from_secs(60),
        idempotent: true,
    }
}

/// A tool with one optional argument, `text`, and one result field of the same name.
pub(crate) struct Sample {
    spec: ToolSpec,
    run: Run,
}

impl Sample {
    pub(crate) fn tool(
        name: &'static str,
        kind: ToolKind,
        run: impl Fn(&Payload, &Context<'_>) -> Result<Payload, ToolError> + Send + Sync + 'static,
    ) -> Arc<dyn Tool> {
        let shape = || Schema::object(vec![Property::optional("text", Kind::String(&[]), "")]);
        Arc::new(Self {
            spec: ToolSpec {
                kind,
                output: shape(),
                streaming: true,
                ..spec(
                    name,
                    Schema::object(vec![Property::required("text", Kind::String(&[]), "")]),
                )
            },
            run: Box::new(run),
        })
    }
}

impl Tool for Sample {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, arguments: &Payload, context: &Context<'_>) -> Result<Payload, ToolError> {
        (self.run)(arguments, context)
    }

    fn preview(&self, arguments: &Payload, context: &Context<'_>) -> Result<View, ToolError> {
        assert!(context.begin_commit().is_err(), "a preview can never commit");
        Ok(View::plain(arguments["text"].as_str().unwrap_or_default()))
    }

    fn render_call(&self, _: &Payload) -> View {
        View::plain("a call")
    }

    fn render_result(&self, _: &Payload) -> View {
        View::plain("a result")
    }
}

/// The object that `json!` made.
pub(crate) fn object(value: Value) -> Payload {
    let Value::Object(map) = value else { panic!("an object is wanted") };
    map
}
