//! One of the callers: what it asks for, and what must come of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tool_provider::Call;
use tool_provider::grpc::{ClientError, Failure, InvokeItem, ToolClient, persisted_call};
use tool_provider::{Event, OutputStream, Payload};

use crate::dice::Dice;
use crate::harness::{TEST_TIMEOUT, call};

/// What a file of entries holds before the first one.
pub(crate) const EMPTY: &str = "begin\nend\n";

/// A caller makes no more of them: edits of a large file are another matter.
const MOST_ENTRIES: usize = 5000;

pub(crate) struct Caller {
    number: usize,
    client: ToolClient,
    tools: Arc<[String]>,
    dice: Dice,
    entries: usize,
    soaked: Soaked,
}

/// What came of all calls.
#[derive(Default)]
pub(crate) struct Soaked {
    pub(crate) calls: usize,
    pub(crate) succeeded: usize,
    pub(crate) failed: usize,
    pub(crate) cancelled: usize,
    pub(crate) out_of_time: usize,
    pub(crate) events: usize,
    pub(crate) own: Entries,
    pub(crate) shared: Entries,
}

/// Entries that this caller's edits put into a file.
#[derive(Default)]
pub(crate) struct Entries {
    made: BTreeSet<String>,
    refused: BTreeSet<String>,
    /// Nobody heard whether they were made.
    open: BTreeSet<String>,
}

impl Entries {
    /// Every entry is there once if its edit succeeded, and not at all if it said that it did not.
    pub(crate) fn assert_kept(&self, content: &str) {
        let mut lines = BTreeMap::<_, usize>::new();
        content.lines().for_each(|line| *lines.entry(line).or_default() += 1);
        let count = |entry: &String| lines.get(entry.as_str()).copied().unwrap_or(0);
        for entry in &self.made {
            assert_eq!(count(entry), 1, "the edit {entry} was reported as made");
        }
        for entry in &self.refused {
            assert_eq!(count(entry), 0, "the edit {entry} was reported as not made");
        }
        for entry in &self.open {
            assert!(count(entry) <= 1, "the edit {entry} was made twice");
        }
    }
}

/// How a call came to its end.
enum Outcome {
    Result(Vec<Event>, Payload),
    Failure(Failure),
    /// Its caller let go of it.
    Cancelled,
    /// Its caller's deadline passed before anything was heard.
    OutOfTime,
}

/// When a caller stops listening.
#[derive(Clone, Copy)]
enum WaitFor {
    Outcome,
    CancelAfter(Duration),
    Deadline(Duration),
}

impl Caller {
    pub(crate) fn new(number: usize, client: ToolClient, tools: Arc<[String]>) -> Self {
        let dice = Dice::new(number as u64 + 1);
        Self { number, client, tools, dice, entries: 0, soaked: Soaked::default() }
    }

    pub(crate) async fn call_until(mut self, end: Instant) -> Soaked {
        while Instant::now() < end {
            self.soaked.calls += 1;
            match self.dice.below(12) {
                0 | 1 => self.edit(Shared::No).await,
                2 | 3 => self.edit(Shared::Yes).await,
                4 | 5 => self.command().await,
                6 => self.hiding_command().await,
                7 => self.write().await,
                8 => self.read().await,
                9 => self.search().await,
                10 => self.preview().await,
                _ => self.refused().await,
            }
        }
        self.soaked
    }

    /// Puts a new entry before the end of a file.
    async fn edit(&mut self, shared: Shared) {
        self.entries += 1;
        if self.entries > MOST_ENTRIES {
            return self.read().await;
        }
        let entry = format!("caller {} entry {}", self.number, self.entries);
        let path = match shared {
            Shared::Yes => "shared".to_owned(),
            Shared::No => format!("own-{}", self.number),
        };
        let edit = json!({"path": path, "old_string": "\nend\n", "new_string": format!("\n{entry}\nend\n")});
        let outcome = self.run("edit_file", edit).await;
        let entries = match shared {
            Shared::Yes => &mut self.soaked.shared,
            Shared::No => &mut self.soaked.own,
        };
        let kept = match outcome {
            Outcome::Result(..) => &mut entries.made,
            Outcome::Failure(failure) => match failure.details.get("applied") {
                Some(Value::Bool(true)) => &mut entries.made,
                Some(Value::Bool(false)) => &mut entries.refused,
                // Refused before anything was begun.
                _ if failure.category != "cancelled" => &mut entries.refused,
                _ => &mut entries.open,
            },
            Outcome::Cancelled | Outcome::OutOfTime => &mut entries.open,
        };
        kept.insert(entry);
    }

    /// A command whose output has to come whole and in order.
    async fn command(&mut self) {
        let count = *self.dice.pick(&[1, 10, 1000, 20_000]);
        let outcome =
            self.run("bash", json!({"command": format!("seq {count}; echo err >&2; exit 3")}));
        if let Outcome::Result(events, result) = outcome.await {
            let whole: String = (1..=count).map(|number| format!("{number}\n")).collect();
            assert_eq!(streamed(&events, OutputStream::Stdout), whole.as_bytes());
            assert_eq!(streamed(&events, OutputStream::Stderr), b"err\n");
            let exits = events.iter().filter(|event| matches!(event, Event::Exit { code: 3, .. }));
            assert_eq!(exits.count(), 1);
            assert!(matches!(events.last(), Some(Event::Exit { .. })));
            assert_eq!(result["exit_code"], 3);
            assert_eq!(result.contains_key("full_output_path"), whole.len() > 16_000);
        }
    }

    /// A command that leaves a process behind in a session of its own.
    async fn hiding_command(&mut self) {
        let command = "setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo left";
        if let Outcome::Result(_, result) = self.run("bash", json!({"command": command})).await {
            assert_eq!(result["output"], "left\n");
            assert!(result["notice"].as_str().unwrap().contains("left running"), "{result:?}");
        }
    }

    async fn write(&mut self) {
        let length = *self.dice.pick(&[0, 100, 300_000]);
        let content = format!("{}\n", "w".repeat(length));
        let path = format!("new/{}/{}", self.number, self.dice.below(20));
        self.run("write_file", json!({"path": path, "content": content})).await;
    }

    async fn read(&mut self) {
        let path = format!("own-{}", self.dice.below(super::CALLERS));
        if let Outcome::Result(_, result) = self.run("read_file", json!({"path": path})).await {
            // Whoever reads sees a whole file.
            let text = result["text"].as_str().unwrap();
            assert!(result.contains_key("next_offset") || text.ends_with("end\n"), "{text}");
        }
    }

    async fn search(&mut self) {
        let (tool, arguments) = match self.dice.once_in(2) {
            true => ("grep", json!({"pattern": "caller 1 ", "path": "shared", "limit": 5})),
            false => ("glob", json!({"pattern": "own-*"})),
        };
        match self.tools.iter().any(|known| known == tool) {
            true => drop(self.run(tool, arguments).await),
            false => self.read().await,
        }
    }

    async fn preview(&mut self) {
        let path = format!("own-{}", self.number);
        let edit = call("edit_file", json!({"path": path, "old_string": "end", "new_string": "x"}));
        self.client.render("1", persisted_call(&edit)).await.unwrap();
        self.client.preview(edit).await.unwrap();
        self.soaked.succeeded += 1;
    }

    async fn refused(&mut self) {
        let wrong = [
            ("read_file", json!({"path": "nowhere"})),
            ("read_file", json!({"path": "/etc/passwd"})),
            ("edit_file", json!({"path": "shared", "old_string": "x", "new_string": 3})),
            ("bash", json!({"command": ""})),
            ("nothing", json!({})),
        ];
        let (tool, arguments) = self.dice.pick(&wrong).clone();
        let outcome = self.run(tool, arguments).await;
        assert!(!matches!(outcome, Outcome::Result(..)), "{tool} did what it cannot");
    }

    /// Runs a call, mostly to its end.
    async fn run(&mut self, tool: &str, arguments: Value) -> Outcome {
        let wait_for = match self.dice.below(6) {
            0 => WaitFor::CancelAfter(Duration::from_micros(self.dice.throw() % 30_000)),
            1 => WaitFor::Deadline(Duration::from_millis(1 + self.dice.throw() % 60)),
            _ => WaitFor::Outcome,
        };
        let session_id = format!("session-{}", self.number);
        let mut asked = Call { session_id, ..call(tool, arguments) };
        if let WaitFor::Deadline(limit) = wait_for {
            asked.deadline = Some(Instant::now() + limit);
        }
        let deadline = asked.deadline;
        let limit = match wait_for {
            WaitFor::CancelAfter(limit) => limit,
            WaitFor::Outcome | WaitFor::Deadline(_) => TEST_TIMEOUT * 4,
        };
        let outcome =
            match (tokio::time::timeout(limit, listen(&mut self.client, asked)).await, wait_for) {
                (Ok(Ok(outcome)), _) => outcome,
                (Err(_), WaitFor::CancelAfter(_)) => Outcome::Cancelled,
                (Err(_), _) => panic!("{tool}: no end in {limit:?}"),
                // The transport watches the deadline as well.
                (Ok(Err(ClientError::Status(status))), WaitFor::Deadline(_))
                    if deadline.is_some_and(|deadline| deadline <= Instant::now()) =>
                {
                    let codes = [tonic::Code::DeadlineExceeded, tonic::Code::Cancelled];
                    assert!(codes.contains(&status.code()), "{tool}: {status:?}");
                    Outcome::OutOfTime
                }
                (Ok(Err(error)), _) => panic!("{tool}: {error:?}"),
            };
        match &outcome {
            Outcome::Result(events, _) => {
                self.soaked.succeeded += 1;
                self.soaked.events += events.len();
            }
            Outcome::Failure(failure) => {
                assert_ne!(failure.category, "unknown", "{tool}: {failure:?}");
                match &*failure.category {
                    "timeout" => self.soaked.out_of_time += 1,
                    _ => self.soaked.failed += 1,
                }
            }
            Outcome::Cancelled => self.soaked.cancelled += 1,
            Outcome::OutOfTime => self.soaked.out_of_time += 1,
        }
        outcome
    }
}

#[derive(Clone, Copy)]
enum Shared {
    Yes,
    No,
}

/// Every event of a call up to its only last one.
async fn listen(client: &mut ToolClient, call: Call) -> Result<Outcome, ClientError> {
    let mut stream = client.invoke(call).await?;
    let mut events = Vec::new();
    let mut outcome = None;
    while let Some(item) = stream.next().await {
        assert!(outcome.is_none(), "an event after the last");
        match item? {
            InvokeItem::Event(event) => events.push(event),
            InvokeItem::Result(result) => {
                outcome = Some(Outcome::Result(std::mem::take(&mut events), result))
            }
            InvokeItem::Failure(failure) => outcome = Some(Outcome::Failure(failure)),
        }
    }
    outcome.ok_or(ClientError::Unfinished)
}

fn streamed(events: &[Event], wanted: OutputStream) -> Vec<u8> {
    let pieces = events.iter().filter_map(|event| match event {
        Event::Output { stream, data, .. } if *stream == wanted => Some(data.as_ref()),
        _ => None,
    });
    pieces.collect::<Vec<&[u8]>>().concat()
}

impl Soaked {
    pub(crate) fn plus(self, other: &Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            succeeded: self.succeeded + other.succeeded,
            failed: self.failed + other.failed,
            cancelled: self.cancelled + other.cancelled,
            out_of_time: self.out_of_time + other.out_of_time,
            events: self.events + other.events,
            ..self
        }
    }
}

impl fmt::Display for Soaked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, succeeded, failed, cancelled, out_of_time, events, .. } = self;
        write!(
            f,
            "{calls} calls: {succeeded} succeeded with {events} events, {failed} refused, \
             {cancelled} cancelled, {out_of_time} out of time"
        )
    }
}
