use sandbox::ExitStatus;

use super::*;

/// What tools print without a network: the command, and the telling part of its output.
const MISSED: &[(&str, &str)] = &[
    (
        "curl -s https://example.org; echo rc=$?",
        "curl: (6) Could not resolve host: example.org\nrc=6",
    ),
    (
        "curl x",
        "curl: (7) Failed to connect to 192.0.2.1 port 443 after 0 ms: Couldn't connect to server",
    ),
    ("curl x", "curl: (28) Resolving timed out after 5000 milliseconds"),
    ("wget x 2>&1 | tail -1", "wget: unable to resolve host address ‘example.org’"),
    (
        "wget x",
        "Resolving example.org (example.org)... failed: Temporary failure in name resolution.",
    ),
    ("wget x", "wget: bad address 'example.org'"),
    ("ping -c1 x", "ping: example.org: Name or service not known"),
    ("ping -c1 192.0.2.1", "ping: connect: Network is unreachable"),
    (
        "git clone https://github.com/a/b",
        "Cloning into 'b'...\nfatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com",
    ),
    (
        "git fetch",
        "ssh: Could not resolve hostname github.com: Temporary failure in name resolution\n\
         fatal: Could not read from remote repository.",
    ),
    ("pip install requests 2>&1 | tail -1", "ERROR: No matching distribution found for requests"),
    (
        "pip install x",
        "WARNING: Retrying (Retry(total=4, connect=None, read=None, redirect=None, status=None)) after \
         connection broken by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object \
         at 0x7f>: Failed to establish a new connection: [Errno -3] Temporary failure in name \
         resolution')': /simple/x/",
    ),
    (
        "python3 a.py",
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='a.org', port=443): Max retries \
         exceeded with url: / (Caused by NameResolutionError(\"HTTPSConnection(host='a.org', port=443): \
         Failed to resolve 'a.org' ([Errno -3] Temporary failure in name resolution)\"))",
    ),
    ("python3 a.py", "socket.gaierror: [Errno -2] Name or service not known"),
    (
        "python3 a.py",
        "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
    ),
    ("python3 a.py", "OSError: [Errno 101] Network is unreachable"),
    ("pytest -q | tail -3", "E   socket.gaierror: [Errno -3] Temporary failure in name resolution"),
    (
        "uv sync",
        "  Caused by: failed to lookup address information: Temporary failure in name resolution",
    ),
    (
        "npm install 2>&1 | tail -20",
        "npm error code EAI_AGAIN\nnpm error syscall getaddrinfo\nnpm error errno EAI_AGAIN",
    ),
    (
        "npm ci || true",
        "npm ERR! request to https://registry.npmjs.org/x failed, reason: getaddrinfo ENOTFOUND \
         registry.npmjs.org",
    ),
    (
        "yarn",
        "error Error: https://registry.yarnpkg.com/x: getaddrinfo EAI_AGAIN registry.yarnpkg.com",
    ),
    (
        "pnpm i",
        " ERR_PNPM_META_FETCH_FAIL  GET https://registry.npmjs.org/x: request to \
         https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org",
    ),
    ("node a.js", "  [cause]: Error: getaddrinfo EAI_AGAIN example.org"),
    ("node a.js", "Error: connect ENETUNREACH 192.0.2.1:443 - Local (0.0.0.0:0)"),
    (
        "go build ./...; echo done",
        "main.go:6:2: github.com/pkg/errors@v0.9.1: Get \"https://proxy.golang.org/github.com/pkg/errors/\
         @v/v0.9.1.zip\": dial tcp: lookup proxy.golang.org on 127.0.0.53:53: read udp: connection refused",
    ),
    (
        "go get x",
        "go: module x: Get \"https://proxy.golang.org/x/@v/list\": dial tcp: lookup proxy.golang.org: \
         Temporary failure in name resolution",
    ),
    (
        "cargo build",
        "warning: spurious network error (3 tries remaining): [6] Could not resolve hostname (Could not \
         resolve host: index.crates.io)",
    ),
    (
        "cargo build 2>&1 | tail -3",
        "Caused by:\n  [6] Could not resolve hostname (Could not resolve host: static.crates.io)",
    ),
    (
        "mvn -q compile",
        "[ERROR] Plugin a:b:1 or one of its dependencies could not be resolved: Could not transfer artifact \
         a:b:pom:1 from/to central (https://repo.maven.apache.org/maven2): Unknown host \
         repo.maven.apache.org: Temporary failure in name resolution -> [Help 1]",
    ),
    ("poetry install", "    | All attempts to connect to pypi.org failed."),
    (
        "mvn dependency:tree",
        "[ERROR] No plugin found for prefix 'dependency' in the current project and in the plugin groups [a, b] \
         available from the repositories [local (/h/.m2/repository), central (https://a.org)] -> [Help 1]",
    ),
    (
        "mvn package",
        "[ERROR] Could not transfer artifact a:b:pom:1: repo.maven.apache.org: Name or service not known",
    ),
    ("java A", "Exception in thread \"main\" java.net.UnknownHostException: example.org"),
    ("./gradlew", "Caused by: java.net.UnknownHostException: services.gradle.org"),
    (
        "apt-get update",
        "Err:1 http://deb.debian.org/debian stable InRelease\n  Temporary failure resolving 'deb.debian.org'",
    ),
    (
        "apt-get update",
        "W: Failed to fetch http://deb.debian.org/debian/dists/stable/InRelease  Temporary failure \
         resolving 'deb.debian.org'",
    ),
    (
        "apk add x",
        "WARNING: fetching https://dl-cdn.alpinelinux.org/x: temporary error (try again later)",
    ),
    (
        "bundle",
        "Could not reach host index.rubygems.org. Check your network connection and try again.",
    ),
    (
        "gem install x",
        "SocketError: Failed to open TCP connection to rubygems.org:443 (getaddrinfo: Temporary failure in \
         name resolution)",
    ),
    (
        "composer install",
        "  curl error 6 while downloading https://repo.packagist.org/packages.json: Could not resolve host: \
         repo.packagist.org",
    ),
    (
        "dotnet restore",
        "a.csproj : error NU1301: Unable to load the service index for source https://api.nuget.org/v3/index.json.",
    ),
    ("nc 192.0.2.1 80", "socket: Operation not permitted"),
    (
        "python3 a.py",
        "  File \"/usr/lib/python3.11/socket.py\", line 233, in __init__\n\
         PermissionError: [Errno 1] Operation not permitted",
    ),
];

/// What only mentions such an error, or is another.
const MENTIONED: &[(&str, &str)] = &[
    ("grep -rn 'resolve host' src", "src/a.c:12:  fail(\"Could not resolve host: %s\", host);"),
    ("cat npm-debug.log", "npm error code ENOTFOUND"),
    ("tail -3 app.log", "socket.gaierror: [Errno -3] Temporary failure in name resolution"),
    ("git log -3 | cat", "    fix: curl: (6) Could not resolve host: x"),
    ("make test", "src/net.rs:40:    \"Temporary failure in name resolution\","),
    ("make test", "test dns::reports_network_is_unreachable ... ok"),
    ("make test", "test says_Network is unreachable ... ok"),
    ("make docs", "- \"Name or service not known\": the name server does not answer"),
    ("./run", "# Network is unreachable"),
    ("make", "    assert_eq!(text, \"Could not resolve host: a\");"),
    ("make", "const REASON = \"getaddrinfo ENOTFOUND registry\";"),
    ("make", "README.md:3:curl: (6) Could not resolve host: example.org"),
    (
        "curl localhost:8080",
        "curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server",
    ),
    (
        "curl http://127.0.0.1:1",
        "curl: (7) Failed to connect to 127.0.0.1 port 1: Connection refused",
    ),
    ("curl x", "curl: (22) The requested URL returned error: 404"),
    ("curl x", "curl: (3) URL using bad/illegal format or missing URL"),
    (
        "pip install x==9",
        "ERROR: Could not find a version that satisfies the requirement x==9 (from versions: 1.0, 2.0)\n\
         ERROR: No matching distribution found for x==9",
    ),
    ("pip install --no-index x", "ERROR: No matching distribution found for x"),
    ("npm test", "npm error code ELIFECYCLE\nnpm error errno 1"),
    (
        "go test ./...",
        "--- FAIL: TestDial (0.00s)\n    a_test.go:9: dial tcp 127.0.0.1:80: connect: connection refused",
    ),
    ("node a.js", "Error: connect ECONNREFUSED 127.0.0.1:5432"),
    ("node a.js", "Error: socket hang up"),
    ("make", "chmod: changing permissions of 'x': Operation not permitted"),
    ("make", "opened the socket; later: chmod: Operation not permitted"),
    ("python3 a.py", "PermissionError: [Errno 1] Operation not permitted: 'x'"),
    ("cargo test", "warning: unused variable: `network`"),
];

#[test]
fn what_tools_print_without_a_network_is_recognised() {
    for (command, output) in MISSED {
        assert!(is_missed(command, output), "{command}: {output}");
    }
}

#[test]
fn what_only_mentions_it_is_not() {
    for (command, output) in MENTIONED {
        assert!(!is_missed(command, output), "{command}: {output}");
    }
}

#[test]
fn text_is_believed_where_nothing_else_is_known_and_a_failure_may_be_hidden() {
    let said = "curl: (6) Could not resolve host: a.org";
    let failed = Ended::With(ExitStatus::Exited(6));
    let fine = Ended::With(ExitStatus::Exited(0));
    for (ended, sought, command, output, needed) in [
        (failed, None, "./x", said, true),
        (failed, None, "./x", "", false),
        (Ended::TimeUp, None, "./x", said, true),
        (fine, None, "./x | tail -3", said, true),
        // A program that ends well shows a log.
        (fine, None, "python3 show.py", said, false),
        (fine, Some(false), "python3 show.py | tail -3", said, false),
        (failed, Some(false), "pytest", said, false),
        (fine, Some(true), "./x", said, true),
        // It says something else, as a program may that tried to send its statistics.
        (fine, Some(true), "make", "done", false),
        (NO_STATISTICS, Some(true), "make", "2 tests failed", false),
        // Tools that were told to be silent.
        (fine, Some(true), "curl -s https://a.org | jq .", "", true),
        (failed, Some(true), "wget -q https://a.org", "", true),
        (failed, Some(true), "make", "building", true),
        (Ended::TimeUp, Some(true), "npm run dev", "ready", false),
    ] {
        assert_eq!(was_needed(ended, sought, command, output), needed, "{command} {sought:?}");
    }
}

const NO_STATISTICS: Ended = Ended::With(ExitStatus::Exited(1));
