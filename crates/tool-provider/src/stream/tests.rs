use std::hint::spin_loop;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::thread;

use futures_util::StreamExt as _;

use super::*;

/// Whether a poll found the end of a call that ends on another thread while the poll lasts.
fn found_in_one_poll() -> bool {
    /// Longer than a look at an empty queue takes.
    const SPINS: usize = 200;
    let (producer, mut stream) =
        channel(StreamingMode::TerminalOnly, Timing::default(), CancelToken::new());
    let (start, polls) = (Barrier::new(2), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            start.wait();
            while !polls.load(Ordering::Acquire) {
                spin_loop();
            }
            (0..SPINS).for_each(|_| spin_loop());
            producer.finish(Ok(Payload::new()));
        });
        start.wait();
        polls.store(true, Ordering::Release);
        stream.poll_next_unpin(&mut Context::from_waker(Waker::noop())).is_ready()
    })
}

#[test]
fn a_poll_does_not_wait_for_the_end() {
    const ROUNDS: usize = 400;
    let found = (0..ROUNDS).filter(|_| found_in_one_poll()).count();
    // Not none: a poll may be held up by whatever else the machine does.
    assert!(found < ROUNDS / 2, "{found} of {ROUNDS} polls waited");
}

#[tokio::test]
async fn an_end_that_comes_later_wakes_the_reader() {
    let (producer, mut stream) =
        channel(StreamingMode::TerminalOnly, Timing::default(), CancelToken::new());
    assert!(stream.poll_next_unpin(&mut Context::from_waker(Waker::noop())).is_pending());
    // The only thread of this runtime polls both.
    let end = async { producer.finish(Ok(Payload::new())) };
    let (item, delivery) = tokio::join!(stream.next(), end);
    assert!(matches!(item, Some(StreamItem::Outcome(Ok(_)))), "{item:?}");
    assert!(matches!(delivery, Delivery::Queued));
}

/// A caller that reads only whole results gets none of their parts.
#[tokio::test]
async fn parts_that_nobody_reads_are_not_queued() {
    let progress = Event::Progress { message: "half".to_owned(), fraction: None };
    for (partials, expected) in [(Partials::Read, 2), (Partials::Unread, 1)] {
        let streaming = StreamingMode::Streaming(partials);
        let (producer, stream) = channel(streaming, Timing::default(), CancelToken::new());
        assert_eq!(producer.partials(), partials);
        producer.emit(Event::Partial(Payload::new())).unwrap();
        producer.emit(progress.clone()).unwrap();
        producer.finish(Ok(Payload::new()));
        let events = stream.filter(|item| std::future::ready(matches!(item, StreamItem::Event(_))));
        assert_eq!(events.count().await, expected);
    }
}
