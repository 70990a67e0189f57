// Package interop drives the real binary through hashicorp/go-plugin itself, as a host does.
package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"provider-workspace/interop/wire"
)

var handshake = plugin.HandshakeConfig{
	ProtocolVersion:  1,
	MagicCookieKey:   "PLUGGABLEHARNESS_AGENT_PLUGIN",
	MagicCookieValue: "pluggableharness-agent-v1-a6f3c9d2-plugin-handshake",
}

// callbackID is where a host serves KernelCallbackService on the broker.
const callbackID = 1

// mode is one way in which a host can launch a plugin.
type mode struct {
	name string
	tls  bool
	mux  bool
}

var modes = []mode{
	{name: "plain"},
	{name: "AutoMTLS", tls: true},
	{name: "multiplexed", mux: true},
	{name: "AutoMTLS+multiplexed", tls: true, mux: true},
}

var services wire.Services

func TestMain(m *testing.M) {
	var err error
	if services, err = wire.Load(); err != nil {
		fmt.Fprintln(os.Stderr, "cannot compile the .proto files:", err)
		os.Exit(1)
	}
	if name := os.Getenv(doomedHostVariable); name != "" {
		runDoomedHost(name)
	}
	os.Exit(runTests(m))
}

// runTests keeps the sockets that go-plugin's host leaves behind out of the temporary directory.
func runTests(m *testing.M) int {
	tmp, err := os.MkdirTemp("/tmp", "pwhost")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(tmp)
	os.Setenv("TMPDIR", tmp)
	return m.Run()
}

func binary() string {
	if path := os.Getenv("PROVIDER_BINARY"); path != "" {
		return path
	}
	path, err := filepath.Abs("../../target/debug/provider-workspace")
	if err != nil {
		panic(err)
	}
	return path
}

// shortTempDir makes a directory whose path leaves room for a socket's name.
func shortTempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// lockedBuffer is a bytes.Buffer for several goroutines.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// toolPlugin is the host's half of the plugin: it serves the host's callbacks when dispensed.
type toolPlugin struct {
	plugin.NetRPCUnsupportedPlugin
	logs chan wire.Object
}

type dispensed struct {
	conn   *grpc.ClientConn
	broker *plugin.GRPCBroker
}

func (*toolPlugin) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

func (p *toolPlugin) GRPCClient(_ context.Context, broker *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	go broker.AcceptAndServe(callbackID, func(options []grpc.ServerOption) *grpc.Server {
		server := grpc.NewServer(options...)
		log := func(_ context.Context, request wire.Object) (wire.Object, error) {
			select {
			case p.logs <- request:
			default: // A test that does not look must not hold the plugin up.
			}
			return nil, nil
		}
		type unary = map[string]func(context.Context, wire.Object) (wire.Object, error)
		handlers := wire.Handlers{Unary: unary{"Log": log}}
		if err := services.Register(server, wire.KernelService, handlers); err != nil {
			panic(err)
		}
		return server
	})
	return &dispensed{conn, broker}, nil
}

// launched is a running plugin and what its host knows of it.
type launched struct {
	client  *plugin.Client
	rpc     plugin.ClientProtocol
	conn    *grpc.ClientConn
	address string
	pid     int
	tmp     string
	hostLog *lockedBuffer
	stdout  *lockedBuffer
	logs    chan wire.Object
}

// clientConfig describes a launch with only the environment that a host gives.
func clientConfig(m mode, tmp string, log io.Writer) *plugin.ClientConfig {
	command := exec.Command(binary())
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + tmp, "TMPDIR=" + tmp}
	if level, chosen := os.LookupEnv("PROVIDER_WORKSPACE_LOG"); chosen {
		command.Env = append(command.Env, "PROVIDER_WORKSPACE_LOG="+level)
	}
	return &plugin.ClientConfig{
		HandshakeConfig:     handshake,
		Cmd:                 command,
		SkipHostEnv:         true,
		AllowedProtocols:    []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:            m.tls,
		GRPCBrokerMultiplex: m.mux,
		StartTimeout:        20 * time.Second,
		Logger: hclog.New(&hclog.LoggerOptions{
			Name: "host", Level: hclog.Trace, Output: log,
		}),
	}
}

// launch starts the plugin, with further variables in its environment.
func launch(t testing.TB, m mode, variables ...string) *launched {
	t.Helper()
	l := &launched{
		tmp:     shortTempDir(t),
		hostLog: &lockedBuffer{},
		stdout:  &lockedBuffer{},
		logs:    make(chan wire.Object, 256),
	}
	config := clientConfig(m, l.tmp, l.hostLog)
	config.Cmd.Env = append(config.Cmd.Env, variables...)
	config.Plugins = plugin.PluginSet{"tool": &toolPlugin{logs: l.logs}}
	config.SyncStdout = l.stdout
	l.client = plugin.NewClient(config)
	t.Cleanup(l.client.Kill)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the host's log:\n%s", l.hostLog)
		}
	})
	address, err := l.client.Start()
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	l.address = address.String()
	l.pid = l.client.ReattachConfig().Pid
	if l.rpc, err = l.client.Client(); err != nil {
		t.Fatalf("client: %v", err)
	}
	raw, err := l.rpc.Dispense("tool")
	if err != nil {
		t.Fatalf("dispense: %v", err)
	}
	l.conn = raw.(*dispensed).conn
	return l
}

// call makes a unary call on the tool service.
func (l *launched) call(name string, request wire.Object) (wire.Object, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return services.Call(ctx, l.conn, wire.ToolService, name, request)
}

func (l *launched) mustCall(t testing.TB, name string, request wire.Object) wire.Object {
	t.Helper()
	response, err := l.call(name, request)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return response
}

// configure gives the plugin one root. The jail is another test's business.
func (l *launched) configure(t testing.TB, root string) {
	t.Helper()
	l.mustCall(t, "Configure", wire.Object{
		"config": wire.Object{"roots": []any{root}, "sandbox": "best_effort", "bash_read": nil},
	})
}

// invoke runs a tool to its end and returns its events.
func (l *launched) invoke(ctx context.Context, tool string, arguments wire.Object) ([]wire.Object, error) {
	stream, err := services.Open(ctx, l.conn, wire.ToolService, "Invoke", toolCall(tool, arguments))
	if err != nil {
		return nil, err
	}
	responses, err := stream.All()
	var events []wire.Object
	for _, response := range responses {
		events = append(events, response["event"].(wire.Object))
	}
	return events, err
}

func toolCall(tool string, arguments wire.Object) wire.Object {
	return wire.Object{"call": wire.Object{
		"id": "call-1", "tool_name": tool, "arguments": arguments,
		"call_context": wire.Object{"session_id": "session-1", "turn_id": "turn-1"},
	}}
}

// payload returns the payload of the one result that ends the events.
func payload(t testing.TB, events []wire.Object) wire.Object {
	t.Helper()
	if len(events) == 0 {
		t.Fatal("no events")
	}
	result, ok := events[len(events)-1]["result"].(wire.Object)
	if !ok {
		t.Fatalf("the last event is no result: %s", text(events[len(events)-1]))
	}
	return result["payload"].(wire.Object)
}

func text(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

// sockets lists the socket files of a directory.
func sockets(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		if entry.Type()&os.ModeSocket != 0 {
			found = append(found, entry.Name())
		}
		// A plugin's own directory for its sockets; it goes with the plugin, and counts until it has.
		if entry.IsDir() && strings.HasPrefix(entry.Name(), "plugin-rs-") {
			found = append(found, entry.Name())
		}
	}
	return found
}

// eventually waits until the condition holds.
func eventually(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// runs reports whether a process exists and is no zombie.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, afterName, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(afterName, "Z")
}
