//! What a result says beside its output.

use std::fs::Permissions;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use sandbox::{Level, Limits, Namespaces, Network};
use serde_json::json;

use super::fixture::{Fixture, notice};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_path_outside_is_named_with_the_setting_that_would_grant_it,
        a_program_that_is_a_link_to_what_is_not_granted_is_named,
        a_read_only_root_is_named,
        a_closed_network_is_named_and_every_channel_is_closed needs [Need::Program("python3")],
        two_roots_are_two_file_systems_where_mounts_show_them needs [Need::Program("python3")],
        a_silent_miss_of_the_network_is_named_and_a_log_of_one_is_not
            needs [Need::Program("python3"), Need::Program("curl")],
        where_there_are_no_unix_sockets_no_network_is_asked_for
            needs [Need::Program("python3"), Need::Program("curl")],
        packages_of_the_system_stay_the_operators needs [Need::Rare("apt-get")],
        the_limit_that_was_hit_is_named needs [Need::Program("python3")],
    ]
}

fn a_path_outside_is_named_with_the_setting_that_would_grant_it() {
    let fixture = Fixture::new();
    let secret = fixture.outside.join("secret");
    std::fs::write(&secret, "S").unwrap();
    std::fs::write(fixture.root.join("fine"), "F").unwrap();
    let result = fixture.result(&format!("cat fine; cat {}", secret.display()));
    assert_eq!(result["exit_code"], 1);
    assert!(result["output"].as_str().unwrap().starts_with("Fcat: "), "{result:?}");
    assert!(notice(&result).contains("bash_read"), "{result:?}");
    assert!(notice(&result).contains(secret.to_str().unwrap()), "{result:?}");
    let result = fixture.result("cat missing");
    assert_eq!(notice(&result), "", "a file that is simply not there");
    // The command chooses what its errors name, so nothing is advised that is not there or holds keys.
    let keys = fixture.outside.join(".ssh");
    std::fs::create_dir(&keys).unwrap();
    std::fs::write(keys.join("id"), "K").unwrap();
    for refused in ["/nosuch/file", "/tmp/build", keys.join("id").to_str().unwrap()] {
        let result = fixture.result(&format!("cat {refused}"));
        assert_eq!((result["exit_code"].as_i64(), notice(&result)), (Some(1), ""), "{refused}");
    }
}

fn two_roots_are_two_file_systems_where_mounts_show_them() {
    let other = tempfile::tempdir().unwrap();
    let other = other.path().canonicalize().unwrap();
    let fixture = Fixture::with(|settings| settings.policy.roots.push(other.clone()));
    let is_full = fixture.jail.enforcement().level == Level::Full;
    let rename = "python3 -c 'import os, sys; os.rename(\"a\", sys.argv[1])'";
    for (index, line) in ["ln a", rename, "cp -l a"].into_iter().enumerate() {
        std::fs::write(fixture.root.join("a"), "A").unwrap();
        let target = other.join(index.to_string());
        let result = fixture.result(&format!("{line} {}", target.display()));
        assert_eq!(target.exists(), !is_full, "{line}");
        assert_eq!(result["exit_code"] == 0, !is_full, "{line}");
        assert_eq!(notice(&result).contains("a file system of its own"), is_full, "{result:?}");
    }
    std::fs::write(fixture.root.join("a"), "A").unwrap();
    let moved = fixture.result(&format!("mv a {}/moved && ln {0}/moved {0}/twin", other.display()));
    assert_eq!((moved["exit_code"].as_i64(), notice(&moved)), (Some(0), ""), "{moved:?}");
}

fn where_there_are_no_unix_sockets_no_network_is_asked_for() {
    let socket = "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'";
    let local = "curl -sS http://localhost:9/";
    for (network, command, says) in [
        (Network::Allow, socket, Some("no unix sockets here (jail level kernel)")),
        (Network::Allow, local, None),
        (Network::Deny, socket, Some("unix ones need the level full")),
        (Network::Deny, local, Some("not even for localhost")),
    ] {
        let fixture = Fixture::with(|settings| {
            settings.policy.namespaces = Namespaces::Never;
            settings.policy.network = network;
        });
        let result = fixture.result(command);
        assert_ne!(result["exit_code"], 0, "{result:?}");
        match says {
            Some(says) => assert!(notice(&result).contains(says), "{result:?}"),
            None => assert_eq!(notice(&result), "", "{result:?}"),
        }
        let shown = fixture.result("echo 'socket: Operation not permitted' >log; cat log; false");
        assert_eq!(notice(&shown), "", "{shown:?}");
    }
    let fixture = Fixture::new();
    if fixture.jail.enforcement().level == Level::Full {
        assert_eq!(fixture.result(socket)["exit_code"], 0);
        assert_eq!(notice(&fixture.result(local)), "");
        let result = fixture.read_result(local);
        assert!(notice(&result).contains("a localhost of its own"), "{result:?}");
    }
}

fn packages_of_the_system_stay_the_operators() {
    let fixture = Fixture::new();
    let installed =
        fixture.result("dpkg -s libc6 | grep ^Status; apt-cache policy libc6 | grep Installed");
    let output = installed["output"].as_str().unwrap();
    assert!(output.contains("install ok installed") && output.contains("Installed: "), "{output}");
    assert!(!output.contains("(none)"), "{output}");
    let result = fixture.result("apt-get install -y no-such-package");
    assert_eq!(result["exit_code"], 100);
    assert!(notice(&result).contains("packages of the system"), "{result:?}");
    let result = fixture.result("apt-get --version >/dev/null");
    assert_eq!(notice(&result), "", "{result:?}");
}

fn a_program_that_is_a_link_to_what_is_not_granted_is_named() {
    let fixture = Fixture::new();
    let program = |path: &Path| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "#!/bin/sh\necho runs\n").unwrap();
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    };
    let python = fixture.outside.join("python");
    program(&python.join("bin/python3"));
    std::fs::create_dir(python.join("lib")).unwrap();
    program(&fixture.outside.join(".ssh/bin/agent"));
    let venv = fixture.root.join(".venv/bin");
    program(&venv.join("pip"));
    std::fs::write(venv.join("pip"), format!("#!{}\n", venv.join("python").display())).unwrap();
    symlink(python.join("bin/python3"), venv.join("python")).unwrap();
    symlink(fixture.outside.join(".ssh/bin/agent"), venv.join("agent")).unwrap();
    for command in [".venv/bin/python", ".venv/bin/pip"] {
        let result = fixture.result(command);
        assert!([126, 127].contains(&result["exit_code"].as_i64().unwrap()), "{result:?}");
        for part in [".venv/bin/python is a link to", "`bash_read`"] {
            assert!(notice(&result).contains(part), "{result:?}");
        }
        assert!(notice(&result).contains(&format!("{:?}", python.to_str().unwrap())), "{result:?}");
    }
    let keys = fixture.result(".venv/bin/agent");
    assert_eq!(notice(&keys), "", "{keys:?}");

    let granted = Fixture::with(|settings| settings.policy.command_read.push(python.clone()));
    std::fs::create_dir(granted.root.join("bin")).unwrap();
    symlink(python.join("bin/python3"), granted.root.join("bin/python")).unwrap();
    let result = granted.result("bin/python");
    assert_eq!((result["output"].as_str(), notice(&result)), (Some("runs\n"), ""), "{result:?}");
}

fn a_read_only_root_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let read_only = directory.path().canonicalize().unwrap();
    std::fs::write(read_only.join("f"), "F").unwrap();
    let fixture = Fixture::with(|settings| {
        settings.policy.read_only_roots.push(read_only.clone());
    });
    let f = read_only.join("f");
    let result = fixture.result(&format!("cat {0}; echo x >{0}", f.display()));
    assert_eq!(result["exit_code"], 1);
    assert!(result["output"].as_str().unwrap().starts_with('F'), "{result:?}");
    assert!(notice(&result).contains(read_only.to_str().unwrap()), "{result:?}");
    assert!(notice(&result).contains("the operator made"), "{result:?}");
    assert!(!notice(&result).contains("bash_write"), "{result:?}");
    assert_eq!(super::fixture::read(f), "F");
}

fn a_closed_network_is_named_and_every_channel_is_closed() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let ports = (udp.local_addr().unwrap().port(), tcp.local_addr().unwrap().port());
    let attempt = |network: Network| {
        let fixture = Fixture::with(|settings| settings.policy.network = network);
        let path = fixture.outside.join("s.sock");
        let _unix = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let script = format!(
            "import socket as s\n\
             tries = (lambda: s.socket(2, 2).sendto(b'x', ('127.0.0.1', {})),\n\
             \x20 lambda: s.create_connection(('127.0.0.1', {}), 5),\n\
             \x20 lambda: s.socket(1).connect('{}'))\n\
             for f in tries:\n\
             \x20 try: f(); print('OPEN')\n\
             \x20 except OSError as e: print('closed', e.errno)\n",
            ports.0,
            ports.1,
            path.display(),
        );
        let answer = fixture.run(json!({"command": "python3 -", "stdin": script}));
        answer.result()["output"].as_str().unwrap().to_owned()
    };
    // Where UDP within a private network goes nowhere, sending it is no error.
    udp.set_nonblocking(true).unwrap();
    let denied = attempt(Network::Deny);
    assert!(denied.lines().filter(|line| *line == "OPEN").count() <= 1, "{denied}");
    assert!(denied.lines().nth(1).unwrap().starts_with("closed"), "{denied}");
    assert!(denied.lines().nth(2).unwrap().starts_with("closed"), "{denied}");
    assert!(udp.recv_from(&mut [0; 8]).is_err(), "a packet came out of the jail");
    let allowed = attempt(Network::Allow);
    assert!(allowed.starts_with("OPEN\nOPEN\nclosed"), "{allowed}");
    assert!(udp.recv_from(&mut [0; 8]).is_ok());

    let fixture = Fixture::new();
    let result = fixture
        .result("python3 -c \"import socket; socket.create_connection(('192.0.2.1', 80), 5)\"");
    assert!(notice(&result).contains("network"), "{result:?}");
}

/// Where the kernel counts what had no route, no text is believed alone.
fn a_silent_miss_of_the_network_is_named_and_a_log_of_one_is_not() {
    let fixture = Fixture::new();
    let is_full = fixture.jail.enforcement().level == Level::Full;
    let log = "curl: (6) Could not resolve host: example.org";
    std::fs::write(fixture.root.join("log"), log).unwrap();
    let show = "python3 -c 'print(open(\"log\").read())'";
    assert_eq!(notice(&fixture.result(show)), "", "it ended well");
    for piped in [format!("{show} | tail -1"), format!("{show}; exit 3")] {
        let result = fixture.result(&piped);
        assert_eq!(notice(&result).contains("network"), !is_full, "{result:?}");
    }
    for missed in ["curl -s http://192.0.2.1/", "curl -s http://192.0.2.1/ | cat"] {
        let result = fixture.result(missed);
        assert_eq!(notice(&result).contains("network"), is_full, "{result:?}");
    }
    let said = fixture.result("curl -sS http://192.0.2.1/ || true");
    assert!(notice(&said).contains("network"), "{said:?}");
}

fn the_limit_that_was_hit_is_named() {
    let fixture = Fixture::with(|settings| {
        settings.policy.limits = Limits {
            file_size_bytes: Some(100_000),
            open_files: Some(64),
            memory_bytes: Some(256 << 20),
            ..Limits::default()
        };
    });
    let result = fixture.result("head -c 200000 /dev/zero >big");
    assert!(notice(&result).contains("limits.file_size_bytes (100000)"), "{result:?}");
    assert_eq!(std::fs::metadata(fixture.root.join("big")).unwrap().len(), 100_000);
    let result = fixture.result("head -c 50000 /dev/zero >small");
    assert_eq!((&result["exit_code"], notice(&result)), (&json!(0), ""));
    let result = fixture.result("python3 -c \"f = [open('/dev/null') for i in range(100)]\"");
    assert!(notice(&result).contains("limits.open_files (64"), "{result:?}");
    let result = fixture.result("python3 -c \"x = bytearray(1 << 30)\"");
    assert!(notice(&result).contains("limits.memory_bytes"), "{result:?}");
}
