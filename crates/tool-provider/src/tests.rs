//! Stories over the whole provider with small tools made for them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};

use crate::config::Values;
use crate::sample::{Sample, object};
use crate::schema::{Kind, Property};
use crate::view::{Style, View};
use crate::*;

struct Fixture {
    provider: Provider,
}

/// A backend with one tool, whose block may say how many calls run at once.
pub(crate) struct OneTool(pub(crate) Arc<dyn Tool>);

impl Backend for OneTool {
    type State = ();

    fn keys(&self) -> Vec<Property> {
        let number = |name, most, json| {
            Property::with_default(name, Kind::Range { min: 1, max: most }, json, "")
        };
        let limits = Kind::Object(vec![number("open_files", 10_000, "4096")]);
        vec![
            Property::required("name", Kind::String(&[]), ""),
            Property::with_default("mode", Kind::String(&["plain", "loud"]), "\"plain\"", ""),
            Property::with_default("limits", limits, "{}", ""),
            number("max_concurrent_calls", 100, "64"),
        ]
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![self.0.clone()]
    }

    fn configure(&self, block: &Payload) -> Result<Configuration<()>, ConfigureError> {
        let mut faults = Vec::new();
        let values = Values::read(block, &self.keys(), &mut faults);
        if let Some(error) = ConfigureError::of(faults) {
            return Err(error);
        }
        let most = values.whole("max_concurrent_calls").expect("it has a default");
        Ok(Configuration {
            state: (),
            tools: self.tools(),
            workers: Arc::new(Threads),
            secrets: Secrets::default(),
            max_concurrent_calls: usize::try_from(most).unwrap(),
        })
    }
}

pub(crate) const SAMPLE: Identity =
    Identity { name: "sample", version: "1.0.0", source: "", protocol_version: 1 };

/// A block with the key that has to be there.
pub(crate) fn named(block: Value) -> Payload {
    let mut block = object(block);
    block.insert("name".to_owned(), json!("sample"));
    block
}

impl Fixture {
    fn with(tool: &Arc<dyn Tool>, block: Value) -> Self {
        let fixture = Self::unconfigured(tool);
        fixture.configure(block).unwrap();
        fixture
    }

    fn unconfigured(tool: &Arc<dyn Tool>) -> Self {
        Self { provider: Provider::new(SAMPLE, OneTool(tool.clone())) }
    }

    fn configure(&self, block: Value) -> Result<(), ConfigureError> {
        self.provider.configure(&named(block))
    }
}

fn call(tool: &str) -> Call {
    Call {
        id: "1".to_owned(),
        tool: tool.to_owned(),
        arguments: object(json!({"text": "hello"})),
        ..Call::default()
    }
}

/// All events, and the one that ended the stream.
async fn collect(mut stream: EventStream) -> (Vec<Event>, Outcome) {
    let mut events = Vec::new();
    loop {
        match stream.next().await.expect("a stream ends with its terminal event") {
            StreamItem::Event(event) => events.push(event),
            StreamItem::Outcome(outcome) => {
                assert!(stream.next().await.is_none(), "nothing follows the terminal event");
                return (events, outcome);
            }
        }
    }
}

fn output(text: &'static str) -> Event {
    Event::Output { stream: OutputStream::Stdout, data: Bytes::from_static(text.as_bytes()) }
}

fn echo() -> Arc<dyn Tool> {
    Sample::tool("echo", ToolKind::DataSource, |arguments, _| Ok(arguments.clone()))
}

#[tokio::test]
async fn events_come_in_order_and_one_result_ends_them() {
    let tool = Sample::tool("talk", ToolKind::DataSource, |arguments, context| {
        context.sink.emit(output("a")).unwrap();
        context.sink.emit(Event::Progress { message: "half".into(), fraction: None }).unwrap();
        context.sink.emit(output("b")).unwrap();
        Ok(arguments.clone())
    });
    let fixture = Fixture::with(&tool, json!({}));
    let (events, outcome) = collect(fixture.provider.invoke(call("talk"))).await;
    assert_eq!(events.len(), 3);
    assert_eq!((&events[0], &events[2]), (&output("a"), &output("b")));
    assert_eq!(outcome.unwrap(), object(json!({"text": "hello", "tool": "talk"})));
}

#[tokio::test]
async fn a_slow_reader_slows_the_tool_down_and_loses_nothing() {
    const EVENTS: usize = 5000;
    let tool = Sample::tool("flood", ToolKind::DataSource, |_, context| {
        for _ in 0..EVENTS {
            context.sink.emit(output("0123456789")).unwrap();
        }
        Ok(Payload::new())
    });
    let fixture = Fixture::with(&tool, json!({}));
    let (events, outcome) = collect(fixture.provider.invoke(call("flood"))).await;
    assert_eq!(events.len(), EVENTS);
    outcome.unwrap();
}

#[tokio::test]
async fn before_configure_nothing_runs_but_probes_are_answered() {
    let fixture = Fixture::unconfigured(&echo());
    let (_, outcome) = collect(fixture.provider.invoke(call("echo"))).await;
    let error = outcome.expect_err("no roots");
    assert_eq!(error.category(), Category::PermissionDenied);
    assert_eq!(error.message(), "not configured");

    let probe = Call { tool: "echo".to_owned(), ..Call::default() };
    let error = fixture.provider.preview(probe).await.expect_err("no arguments");
    assert_eq!(error.category(), Category::InvalidArguments);
    let error = fixture.provider.preview(call("eco")).await.expect_err("no such tool");
    assert_eq!(error.category(), Category::NotFound);
    assert!(error.message().contains("echo"), "{error}");
    let error = fixture.provider.preview(call("echo")).await.expect_err("no roots");
    assert_eq!(error.category(), Category::PermissionDenied);

    fixture.configure(json!({})).unwrap();
    assert_eq!(fixture.provider.preview(call("echo")).await.unwrap(), View::plain("hello"));
    collect(fixture.provider.invoke(call("echo"))).await.1.unwrap();
}

#[tokio::test]
async fn unknown_tools_and_bad_arguments_are_refused_without_running_anything() {
    let ran = Arc::new(AtomicUsize::new(0));
    let counter = ran.clone();
    let tool = Sample::tool("echo", ToolKind::DataSource, move |arguments, _| {
        counter.fetch_add(1, Ordering::SeqCst);
        Ok(arguments.clone())
    });
    let fixture = Fixture::with(&tool, json!({}));
    let (_, outcome) = collect(fixture.provider.invoke(call("ecko"))).await;
    assert_eq!(outcome.expect_err("unknown").category(), Category::NotFound);
    let wrong = Call { arguments: object(json!({"txt": 1})), ..call("echo") };
    let (_, outcome) = collect(fixture.provider.invoke(wrong)).await;
    assert_eq!(outcome.expect_err("invalid").category(), Category::InvalidArguments);
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_panic_is_the_failure_of_its_own_call() {
    let tool = Sample::tool("fragile", ToolKind::DataSource, |arguments, _| {
        assert!(arguments["text"] != "boom", "it went boom");
        Ok(arguments.clone())
    });
    let fixture = Fixture::with(&tool, json!({}));
    let bad = Call { arguments: object(json!({"text": "boom"})), ..call("fragile") };
    let (_, outcome) = collect(fixture.provider.invoke(bad)).await;
    let error = outcome.expect_err("a panic");
    assert_eq!(error.category(), Category::Unknown);
    assert_eq!(error.details()["raw"], "it went boom");
    collect(fixture.provider.invoke(call("fragile"))).await.1.unwrap();
}

#[tokio::test]
async fn a_result_that_does_not_fit_its_schema_never_goes_out() {
    let tool = Sample::tool("liar", ToolKind::DataSource, |_, _| Ok(object(json!({"text": null}))));
    let fixture = Fixture::with(&tool, json!({}));
    let error = collect(fixture.provider.invoke(call("liar"))).await.1.expect_err("null");
    assert_eq!(error.category(), Category::Unknown);
    assert!(error.details()["raw"].as_str().unwrap().contains("text"));
}

#[tokio::test]
async fn dropping_the_stream_cancels_at_once_although_nothing_is_sent() {
    let (sender, receiver) = mpsc::channel();
    let (started, has_started) = mpsc::channel();
    let tool = Sample::tool("wait", ToolKind::Resource, move |_, context| {
        let (wake, woken) = mpsc::channel();
        context.cancel.on_cancel(move || wake.send(()).unwrap());
        started.send(()).unwrap();
        woken.recv().unwrap();
        sender.send(context.sink.emit(output("late"))).unwrap();
        Ok(Payload::new())
    });
    let fixture = Fixture::with(&tool, json!({}));
    let stream = fixture.provider.invoke(call("wait"));
    has_started.recv().unwrap();
    drop(stream);
    assert!(receiver.recv().unwrap().is_err(), "nobody takes events after a cancel");
}

#[tokio::test]
async fn a_writer_that_waits_for_room_is_woken_by_a_cancel() {
    let (sender, receiver) = mpsc::channel();
    let tool = Sample::tool("flood", ToolKind::DataSource, move |_, context| {
        let refused = loop {
            if let Err(refused) = context.sink.emit(output("0123456789")) {
                break refused;
            }
        };
        sender.send(refused).unwrap();
        Ok(Payload::new())
    });
    let fixture = Fixture::with(&tool, json!({}));
    let mut stream = fixture.provider.invoke(call("flood"));
    assert!(matches!(stream.next().await, Some(StreamItem::Event(_))));
    drop(stream);
    assert_eq!(receiver.recv().unwrap(), EmitError::Closed);
}

#[tokio::test]
async fn the_stream_ends_in_time_even_if_the_tool_does_not() {
    let (release, released) = mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let tool = Sample::tool("stuck", ToolKind::Resource, move |_, context| {
        let _ = released.lock().unwrap().recv();
        assert!(context.begin_commit().is_err(), "what was given up must not change anything");
        Ok(Payload::new())
    });
    let fixture = Fixture::with(&tool, json!({}));
    let deadline = Instant::now() + Duration::from_millis(300);
    let stuck = Call { deadline: Some(deadline), ..call("stuck") };
    let error = collect(fixture.provider.invoke(stuck)).await.1.expect_err("time is up");
    assert_eq!((error.category(), error.is_retryable()), (Category::Timeout, true));
    release.send(()).unwrap();
    fixture.provider.shut_down().await;
}

#[tokio::test]
async fn past_its_point_of_no_return_a_call_is_waited_for() {
    let tool = Sample::tool("commit", ToolKind::Resource, |_, context| {
        context.begin_commit()?;
        // Past every deadline, in the middle of a write.
        while context.deadline.is_some_and(|end| Instant::now() < end + Duration::from_millis(100))
        {
            std::thread::park_timeout(Duration::from_millis(20));
        }
        Ok(Payload::new())
    });
    let fixture = Fixture::with(&tool, json!({}));
    let deadline = Instant::now() + Duration::from_millis(200);
    let late = Call { deadline: Some(deadline), ..call("commit") };
    collect(fixture.provider.invoke(late)).await.1.unwrap();
}

#[tokio::test]
async fn shutting_down_cancels_what_runs_and_never_calls_it_a_success() {
    let (started, has_started) = mpsc::channel();
    let tool = Sample::tool("apply", ToolKind::Resource, move |_, context| {
        let (wake, woken) = mpsc::channel();
        context.cancel.on_cancel(move || wake.send(()).unwrap());
        started.send(()).unwrap();
        woken.recv().unwrap();
        Ok(object(json!({"version": "v2"})))
    });
    let fixture = Fixture::with(&tool, json!({}));
    let stream = fixture.provider.invoke(call("apply"));
    has_started.recv().unwrap();
    let ((_, outcome), ()) = tokio::join!(collect(stream), fixture.provider.shut_down());
    let error = outcome.expect_err("cancelled");
    assert_eq!(error.category(), Category::Cancelled);
    assert_eq!(
        (&error.details()["applied"], &error.details()["version"]),
        (&json!(true), &json!("v2"))
    );
    let error = collect(fixture.provider.invoke(call("apply"))).await.1.expect_err("closed");
    assert_eq!(error.category(), Category::Cancelled);
}

/// Threads, whose second call is over before `submit` returns, which waits for a word.
struct Late {
    calls: AtomicUsize,
    word: std::sync::Mutex<mpsc::Receiver<()>>,
}

impl Workers for Late {
    fn submit(&self, job: Job) -> Result<(), ToolError> {
        Threads.submit(job)?;
        if self.calls.fetch_add(1, Ordering::Relaxed) == 1 {
            let _ = self.word.lock().unwrap().recv();
        }
        Ok(())
    }
}

/// [`OneTool`] with such threads.
struct OneLate(OneTool, Arc<Late>);

impl Backend for OneLate {
    type State = ();

    fn keys(&self) -> Vec<Property> {
        self.0.keys()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.tools()
    }

    fn configure(&self, block: &Payload) -> Result<Configuration<()>, ConfigureError> {
        Ok(Configuration { workers: self.1.clone(), ..self.0.configure(block)? })
    }
}

#[tokio::test]
async fn the_end_waits_for_who_hands_a_call_over() {
    let (say, word) = mpsc::channel();
    let late = Late { calls: AtomicUsize::new(0), word: std::sync::Mutex::new(word) };
    let late = Arc::new(late);
    let gate = Arc::new(Barrier::new(2));
    let held = gate.clone();
    let tool = Sample::tool("hold", ToolKind::DataSource, move |arguments, _| {
        if arguments["text"] == "hold" {
            held.wait();
            held.wait();
        }
        Ok(Payload::new())
    });
    let provider = Provider::new(SAMPLE, OneLate(OneTool(tool), late.clone()));
    provider.configure(&named(json!({"max_concurrent_calls": 1}))).unwrap();
    let named = |name: &str| Call { arguments: object(json!({ "text": name })), ..call("hold") };
    let first = provider.invoke(named("hold"));
    gate.wait();
    let second = provider.invoke(named("second"));
    drop(first);
    // The thread of the first call now hands over the second.
    gate.wait();
    collect(second).await.1.unwrap();
    assert!(provider.shut_down().now_or_never().is_none());
    say.send(()).unwrap();
    provider.shut_down().await;
    assert_eq!(Arc::strong_count(&late), 2, "only this test and the backend have it");
}

#[tokio::test]
async fn calls_beyond_the_limit_wait_for_their_turn_in_order_until_their_deadline() {
    let gate = Arc::new(Barrier::new(2));
    let held = gate.clone();
    let (begun, order) = mpsc::channel();
    let tool = Sample::tool("hold", ToolKind::DataSource, move |arguments, _| {
        begun.send(arguments["text"].clone()).unwrap();
        if arguments["text"] == "hold" {
            held.wait();
            held.wait();
        }
        Ok(Payload::new())
    });
    let fixture = Fixture::with(&tool, json!({"max_concurrent_calls": 1}));
    let named = |name: &str| Call { arguments: object(json!({ "text": name })), ..call("hold") };
    let first = fixture.provider.invoke(named("hold"));
    gate.wait();
    let second = fixture.provider.invoke(named("second"));
    let cancelled = fixture.provider.invoke(named("cancelled"));
    let third = fixture.provider.invoke(named("third"));
    drop(cancelled);
    let soon = Some(Instant::now() + Duration::from_millis(20));
    let late = fixture.provider.invoke(Call { deadline: soon, ..named("late") });
    let error = collect(late).await.1.expect_err("its turn does not come");
    assert_eq!(
        (error.category(), error.kind()),
        (Category::ConcurrencyConflict, ToolErrorKind::RateLimit)
    );
    assert!(error.is_retryable());
    assert!(error.message().contains("1 calls run"), "{error:?}");
    gate.wait();
    for stream in [first, second, third] {
        collect(stream).await.1.unwrap();
    }
    let order: Vec<Value> = order.try_iter().collect();
    assert_eq!(order, ["hold", "second", "third"]);
    for _ in 0..100 {
        collect(fixture.provider.invoke(call("hold"))).await.1.unwrap();
    }
}

#[tokio::test]
async fn a_second_configure_leaves_running_calls_alone() {
    let gate = Arc::new(Barrier::new(2));
    let held = gate.clone();
    let tool = Sample::tool("hold", ToolKind::DataSource, move |_, _| {
        held.wait();
        Ok(Payload::new())
    });
    let fixture = Fixture::with(&tool, json!({}));
    let running = fixture.provider.invoke(call("hold"));
    fixture.configure(json!({"max_concurrent_calls": 3})).unwrap();
    fixture
        .configure(json!({"max_concurrent_calls": 0}))
        .expect_err("a faulty one changes nothing");
    gate.wait();
    collect(running).await.1.unwrap();
    let next = fixture.provider.invoke(call("hold"));
    gate.wait();
    collect(next).await.1.unwrap();
}

#[test]
fn what_was_stored_is_shown_by_the_tool_that_made_it_or_as_it_is() {
    let fixture = Fixture::unconfigured(&echo());
    let render = |stored: Stored| fixture.provider.render(&stored);
    let known = object(json!({"tool": "echo", "later": 1}));
    assert_eq!(render(Stored::Result(known)), View::plain("a result"));
    let call = Stored::Call { tool: "echo".to_owned(), arguments: Payload::new() };
    assert_eq!(render(call), View::plain("a call"));
    assert!(matches!(render(Stored::Result(Payload::new())), View::Code { .. }));
    let details = object(json!({"hint": "try b"}));
    let failure = Stored::Failure { category: "not_found".into(), message: "no a".into(), details };
    assert!(matches!(render(failure), View::Group(nodes) if nodes.len() == 2));
    // What a call had done before it was ended is shown as its result would be.
    let details = object(json!({"tool": "echo", "output": "raw"}));
    let message = "over: ask for more\nOutput so far:\nraw".into();
    let ended = Stored::Failure { category: "timeout".into(), message, details };
    let View::Group(nodes) = render(ended) else { panic!("one node") };
    let what = View::text("timeout: over: ask for more", Style::Error);
    assert_eq!(nodes, [what, View::plain("a result")], "nothing twice");
}
