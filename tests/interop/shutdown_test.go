package interop

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"provider-workspace/interop/wire"
)

// ending is what a call said until its stream ended, and how that ended.
type ending struct {
	responses []wire.Object
	err       error
}

// begin starts a command that says its pid in a file and then runs until it is stopped. Its end comes through the
// channel.
func (l *launched) begin(t *testing.T, root, command string) <-chan ending {
	t.Helper()
	marker := filepath.Join(root, "pid")
	os.Remove(marker)
	stream, err := services.Open(context.Background(), l.conn, wire.ToolService, "Invoke",
		toolCall("bash", wire.Object{"command": "echo $$ >pid.new; mv pid.new pid; " + command}))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "the command runs", func() bool {
		_, err := os.Stat(marker)
		return err == nil
	})
	ended := make(chan ending, 1)
	go func() {
		responses, err := stream.All()
		ended <- ending{responses, err}
	}()
	return ended
}

// marked lists the processes that were started with this marker in their environment or arguments.
func marked(t *testing.T, marker string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(arguments), marker) && runs(pid) {
			found = append(found, pid)
		}
	}
	return found
}

// A host closes its broker, calls Shutdown, and closes the connection with the answer: what a running call still
// has to say comes before that.
func TestRunningCallsHaveTheirEndBeforeShutdownIsAnswered(t *testing.T) {
	commands := map[string]string{
		"a command that ends when it is asked":   "sleep 987654321",
		"a command that does not end when asked": "trap '' TERM; sleep 987654321; sleep 987654321",
	}
	for name, command := range commands {
		t.Run(name, func(t *testing.T) {
			inEveryMode(t, func(t *testing.T, l *launched) {
				root := shortTempDir(t)
				l.configure(t, root)
				ended := l.begin(t, root, command)
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				if err := l.conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
					t.Fatalf("Shutdown: %v", err)
				}
				if left := marked(t, "987654321"); len(left) > 0 {
					t.Errorf("Shutdown was answered and %v run", left)
				}
				l.conn.Close()
				end := <-ended
				if end.err != nil {
					t.Fatalf("the call has no end of its own: %v", end.err)
				}
				last := end.responses[len(end.responses)-1]["event"].(wire.Object)
				failure, _ := last["error"].(wire.Object)
				if failure["category"] != "TOOL_ERROR_CATEGORY_CANCELLED" {
					t.Errorf("the call ended with %s", text(last))
				}
				eventually(t, 5*time.Second, "the plugin is gone", func() bool { return !runs(l.pid) })
			})
		})
	}
}

// Kill is what a host calls: it closes the broker first.
func TestAHostsKillIsAnEndInOrder(t *testing.T) {
	for _, level := range []string{"off", "info", "trace"} {
		t.Run(level, func(t *testing.T) {
			t.Setenv("PROVIDER_WORKSPACE_LOG", level)
			inEveryMode(t, func(t *testing.T, l *launched) {
				root := shortTempDir(t)
				l.configure(t, root)
				ended := l.begin(t, root, "sleep 987654321")
				l.client.Kill()
				if end := <-ended; end.err != nil && end.err != io.EOF {
					t.Errorf("the call has no end of its own: %v", end.err)
				}
				if runs(l.pid) {
					t.Error("the plugin runs")
				}
				if left := marked(t, "987654321"); len(left) > 0 {
					t.Errorf("%v run", left)
				}
				if strings.Contains(l.hostLog.String(), "plugin failed to exit gracefully") {
					t.Errorf("the host had to kill the plugin:\n%s", l.hostLog)
				}
			})
		})
	}
}

// Both ways to a host's log end in it. An entry takes one of them.
func TestEachLogEntryReachesTheHostOnce(t *testing.T) {
	for _, level := range []string{"info", "debug", "trace"} {
		t.Run(level, func(t *testing.T) {
			t.Setenv("PROVIDER_WORKSPACE_LOG", level)
			inEveryMode(t, func(t *testing.T, l *launched) {
				root := shortTempDir(t)
				l.configure(t, root)
				for range 3 {
					if _, err := l.invoke(context.Background(), "bash", wire.Object{"command": "true"}); err != nil {
						t.Fatal(err)
					}
				}
				l.client.Kill()
				seen := map[string]int{}
				levels := map[string]bool{}
				for {
					var request wire.Object
					select {
					case request = <-l.logs:
					default:
					}
					if request == nil {
						break
					}
					for _, entry := range request["entries"].([]any) {
						entry := entry.(wire.Object)
						fields, _ := entry["fields"].(wire.Object)
						for _, name := range []string{"level", "session_id"} {
							if _, has := fields[name]; has {
								t.Errorf("a field %s: %s", name, text(entry))
							}
						}
						seen[text(wire.Object{"m": entry["message"], "t": entry["time"]})]++
						levels[entry["level"].(string)] = true
						// The same entry on standard error would be a line with its message and call.
						if message := entry["message"].(string); message == "configured" &&
							strings.Contains(l.hostLog.String(), "configured") {
							t.Errorf("%q came both ways:\n%s", message, l.hostLog)
						}
					}
				}
				for entry, times := range seen {
					if times > 1 {
						t.Errorf("%d times: %s", times, entry)
					}
				}
				if wanted := "LOG_LEVEL_DEBUG"; level != "info" && !levels[wanted] {
					t.Errorf("no entry of %s came: %v", wanted, levels)
				}
				if !levels["LOG_LEVEL_INFO"] {
					t.Errorf("no entry of INFO came: %v", levels)
				}
			})
		})
	}
}
