use super::*;
use crate::program::ProgramName;
use crate::waiting::WaitsOn;

fn request(argument: usize) -> Request {
    Request {
        program: c"/bin/sh".to_owned(),
        argv: vec![c"sh".to_owned(), CString::new(vec![b'a'; argument]).unwrap()],
        env: vec![c"A=b".to_owned()],
        cwd: c"/w".to_owned(),
        input: Input::Terminal,
        limits: Limits { processes: Some(7), ..Limits::default() },
    }
}

#[test]
fn a_request_of_any_length_arrives_unchanged() {
    let (here, there) = pair().unwrap();
    for length in [0, 100, INLINE, 130_000, 1_000_000] {
        let sent = request(length);
        send(&here, &sent.encode(), &[here.as_fd(), there.as_fd()]).unwrap();
        let (message, fds) = receive(&there, Blocking::Refused).unwrap();
        assert_eq!(Request::decode(&message).unwrap(), sent);
        assert_eq!(fds.len(), 2);
    }
}

#[test]
fn a_cut_message_is_an_error_at_every_length() {
    let whole = request(30).encode();
    for length in 0..whole.len() {
        assert!(Request::decode(&whole[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn receiving_from_a_closed_end_fails_and_sending_to_it_does_not() {
    let (here, there) = pair().unwrap();
    drop(there);
    assert_eq!(
        receive_report(&here, Blocking::Allowed).unwrap_err().kind(),
        io::ErrorKind::UnexpectedEof
    );
    send_order(&here, Order::Kill).unwrap();
}

#[test]
fn a_report_behind_an_unread_order_is_still_read() {
    let (provider, supervisor) = pair().unwrap();
    let exit = ExitReport {
        wait_status: 256,
        user_us: 1,
        system_us: 2,
        max_rss_kib: 3,
        killed: 4,
        left_running: Programs([
            ProgramName::of(1),
            ProgramName::default(),
            ProgramName::default(),
        ]),
        waiting: Some(Waiting {
            pid: 5,
            on: WaitsOn::NamedPipe,
            program: ProgramName(*b"cat\0\0\0\0\0\0\0\0\0\0\0\0"),
        }),
    };
    send_order(&provider, Order::Signal(15)).unwrap();
    let look = Look { waiting: exit.waiting, ports: vec![3000, 65535] };
    send_look(&supervisor, &look).unwrap();
    exit.send(&supervisor).unwrap();
    drop(supervisor);
    let next = || receive_report(&provider, Blocking::Allowed).unwrap();
    assert_eq!(next(), Message::Look(look));
    assert_eq!(next(), Message::Exit(exit));
    assert_eq!(exit.into_report().status, ExitStatus::Exited(1));
}

#[test]
fn a_reply_in_a_memory_file_is_not_read() {
    let (here, there) = pair().unwrap();
    send(&there, &vec![0; INLINE + 1], &[]).unwrap();
    let refused = receive_report(&here, Blocking::Allowed).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn the_signal_shows_the_file_size_limit() {
    let hit = |wait_status| {
        let exit = ExitReport {
            wait_status,
            user_us: 0,
            system_us: 0,
            max_rss_kib: 0,
            killed: 0,
            left_running: Programs::default(),
            waiting: None,
        };
        exit.into_report().limit
    };
    assert_eq!(hit(libc::SIGXFSZ), Some(LimitHit::FileSize));
    assert_eq!(hit((128 + libc::SIGXFSZ) << 8), Some(LimitHit::FileSize));
    assert_eq!(hit(libc::SIGKILL), None);
}
