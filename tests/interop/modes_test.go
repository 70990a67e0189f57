package interop

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"provider-workspace/interop/wire"
)

// inEveryMode runs a test for each way of launching.
func inEveryMode(t *testing.T, test func(*testing.T, *launched)) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) { test(t, launch(t, m)) })
	}
}

func TestAHostReadsAFile(t *testing.T) {
	inEveryMode(t, func(t *testing.T, l *launched) {
		if err := l.rpc.Ping(); err != nil {
			t.Fatalf("health: %v", err)
		}

		producer := l.mustCall(t, "Describe", nil)["producer"].(wire.Object)
		if producer["name"] != "workspace" || producer["category"] != "CATEGORY_TOOL" || producer["protocol_version"] != 1.0 {
			t.Errorf("Describe: %s", text(producer))
		}

		schema := l.mustCall(t, "GetSchema", nil)
		if !slices.Contains(toolNames(schema), "read_file") {
			t.Errorf("GetSchema names no read_file: %s", text(schema))
		}

		root := shortTempDir(t)
		file := filepath.Join(root, "notes.txt")
		if err := os.WriteFile(file, []byte("first\nsecond\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		l.configure(t, root)
		events, err := l.invoke(context.Background(), "read_file",
			wire.Object{"path": file, "line_numbers": false})
		if err != nil {
			t.Fatalf("Invoke: %v", err)
		}
		if text := payload(t, events)["text"]; text != "first\nsecond\n" {
			t.Errorf("text is %q", text)
		}
	})
}

func toolNames(schema wire.Object) []string {
	var names []string
	for _, tool := range schema["tools"].([]any) {
		names = append(names, tool.(wire.Object)["name"].(string))
	}
	return names
}

func TestThePluginLogsToTheHostOverTheBroker(t *testing.T) {
	inEveryMode(t, func(t *testing.T, l *launched) {
		l.configure(t, shortTempDir(t))
		select {
		case request := <-l.logs:
			entry := request["entries"].([]any)[0].(wire.Object)
			if entry["message"] == "" || entry["logger"] == "" {
				t.Errorf("an incomplete log request: %s", text(request))
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no log request came")
		}
	})
}

func TestACancelledCallEndsAndLeavesThePluginWell(t *testing.T) {
	root := shortTempDir(t)
	big := filepath.Join(root, "big.txt")
	if err := os.WriteFile(big, []byte(strings.Repeat("a line of text\n", 20<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	small := filepath.Join(root, "small.txt")
	if err := os.WriteFile(small, []byte("still here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inEveryMode(t, func(t *testing.T, l *launched) {
		l.configure(t, root)
		ctx, cancel := context.WithCancel(context.Background())
		// The offset is past the file's end, so that all of it would have to be read.
		stream, err := services.Open(ctx, l.conn, wire.ToolService, "Invoke",
			toolCall("read_file", wire.Object{"path": big, "offset": 1 << 40}))
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(5*time.Millisecond, cancel)
		if _, err := stream.All(); status.Code(err) != codes.Canceled {
			t.Fatalf("expected a cancelled stream, got %v", err)
		}
		events, err := l.invoke(context.Background(), "read_file", wire.Object{"path": small})
		if err != nil || !strings.Contains(payload(t, events)["text"].(string), "still here") {
			t.Fatalf("after a cancel: %v %s", err, text(events))
		}
	})
}

func TestMessagesMayBeLargerThanGRPCsDefault(t *testing.T) {
	inEveryMode(t, func(t *testing.T, l *launched) {
		// 8 MiB in one request; the answer is an error of the tool, not of the transport.
		_, err := l.call("Preview", toolCall("no_such_tool",
			wire.Object{"path": strings.Repeat("x", 8<<20)}))
		if code := status.Code(err); code == codes.OutOfRange || code == codes.ResourceExhausted || code == codes.Unavailable {
			t.Fatalf("a large request was refused by the transport: %v", err)
		}
	})
}

func TestAnUnknownServiceIsUnimplemented(t *testing.T) {
	inEveryMode(t, func(t *testing.T, l *launched) {
		// What a host does that does not know the plugin's category: Describe on each service.
		err := l.conn.Invoke(context.Background(),
			"/pluggableharness.model.v1.ModelService/Describe", &emptypb.Empty{}, &emptypb.Empty{})
		if status.Code(err) != codes.Unimplemented {
			t.Fatalf("expected UNIMPLEMENTED, got %v", err)
		}
	})
}

func TestAPluginEndsAtOnceAndLeavesNoSocket(t *testing.T) {
	inEveryMode(t, func(t *testing.T, l *launched) {
		l.configure(t, shortTempDir(t))
		if len(sockets(t, l.tmp)) == 0 {
			t.Fatal("no socket while the plugin runs: the test looks in the wrong place")
		}
		started := time.Now()
		l.client.Kill()
		if took := time.Since(started); took > 1900*time.Millisecond {
			t.Errorf("the end took %v", took)
		}
		for line := range strings.Lines(l.hostLog.String()) {
			ungraceful := strings.Contains(line, "failed to exit gracefully")
			failed := strings.Contains(line, "plugin process exited") && strings.Contains(line, "error=")
			if ungraceful || failed {
				t.Errorf("not a graceful end: %s", line)
			}
		}
		if runs(l.pid) {
			t.Errorf("process %d still runs", l.pid)
		}
		if left := sockets(t, l.tmp); len(left) > 0 {
			t.Errorf("sockets were left: %v", left)
		}
	})
}

func TestLogLinesReachTheHostAtTheirLevel(t *testing.T) {
	inEveryMode(t, func(t *testing.T, l *launched) {
		l.configure(t, shortTempDir(t))
		l.client.Kill()
		for line := range strings.Lines(l.hostLog.String()) {
			// A line that the host cannot take apart arrives whole, as debug text.
			if strings.Contains(line, `{"@`) {
				t.Errorf("a log line that the host did not understand: %s", line)
			}
		}
	})
}
