// A tool provider that shares no code with this repository's own: written in Go, on go-plugin
// itself, from the protocol's pages and its .proto files. What every other provider is like to the
// checker (`provider-workspace conform`), and to nobody else.
//
// It keeps counters in a file, tells the time, and runs programs.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"provider-workspace/interop/wire"
)

// toolsVariable leaves out all tools but those that it names, separated by commas.
const toolsVariable = "DESK_TOOLS"

// callbackID is where a host serves its callbacks on the broker.
const callbackID = 1

func main() {
	services, err := wire.Load()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	log := hclog.New(&hclog.LoggerOptions{Name: "desk", Level: hclog.Info, JSONFormat: true})
	desk := &desk{log: log, programs: newPrograms()}
	desk.services = services
	desk.tools = chosen([]tool{counterAdd{desk}, clock{}, runProgram{desk}})
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  1,
			MagicCookieKey:   "PLUGGABLEHARNESS_AGENT_PLUGIN",
			MagicCookieValue: "pluggableharness-agent-v1-a6f3c9d2-plugin-handshake",
		},
		Plugins:    plugin.PluginSet{"tool": served{desk: desk}},
		GRPCServer: plugin.DefaultGRPCServer,
		Logger:     log,
	})
	// The server has ended, whatever ran for it.
	desk.programs.killAll()
}

func chosen(all []tool) []tool {
	names, isSet := os.LookupEnv(toolsVariable)
	if !isSet {
		return all
	}
	var some []tool
	for _, tool := range all {
		for name := range strings.SplitSeq(names, ",") {
			if tool.schema()["name"] == name {
				some = append(some, tool)
			}
		}
	}
	return some
}

// served is the plugin as go-plugin takes it.
type served struct {
	plugin.NetRPCUnsupportedPlugin
	desk *desk
}

func (s served) GRPCServer(broker *plugin.GRPCBroker, server *grpc.Server) error {
	s.desk.broker = broker
	return s.desk.services.Register(server, wire.ToolService, s.desk.handlers())
}

func (served) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("this is no host")
}

// tool is one operation.
type tool interface {
	schema() wire.Object
	// invoke ends with a payload or an error; send takes what comes before.
	invoke(ctx context.Context, call call, send func(wire.Object) error) (wire.Object, *toolError)
}

// previewer is a tool that can tell what a call would do.
type previewer interface {
	preview(call call) (string, *toolError)
}

type call struct {
	arguments        wire.Object
	workingDirectory string
}

// toolError is a failure by the protocol's taxonomy.
type toolError struct {
	category string
	message  string
}

func failed(category, format string, arguments ...any) *toolError {
	return &toolError{"TOOL_ERROR_CATEGORY_" + category, fmt.Sprintf(format, arguments...)}
}

// desk is the provider.
type desk struct {
	log      hclog.Logger
	services wire.Services
	broker   *plugin.GRPCBroker
	tools    []tool
	programs *programs
	config   atomic.Pointer[config]
	counters counters
}

// config is the block of agent.hcl.
type config struct {
	stateDir string
}

func (d *desk) handlers() wire.Handlers {
	type unary = map[string]func(context.Context, wire.Object) (wire.Object, error)
	type streaming = map[string]func(context.Context, wire.Object, func(wire.Object) error) error
	return wire.Handlers{
		Unary: unary{
			"Describe": d.describe, "GetSchema": d.getSchema, "Configure": d.configure,
			"Preview": d.preview,
			// Render is optional, and a host's own form of these payloads will do.
		},
		Streaming: streaming{"Invoke": d.invoke},
	}
}

func (*desk) describe(context.Context, wire.Object) (wire.Object, error) {
	return wire.Object{"producer": wire.Object{
		"name": "desk", "version": "0.1.0", "source": "example.com/tools/desk",
		"category": "CATEGORY_TOOL", "protocol_version": 1,
	}}, nil
}

func (d *desk) getSchema(context.Context, wire.Object) (wire.Object, error) {
	schemas := []any{}
	for _, tool := range d.tools {
		schemas = append(schemas, tool.schema())
	}
	return wire.Object{
		"tools": schemas,
		"config_schema": wire.Object{"attributes": []any{wire.Object{
			"name": "state_dir", "type": "ATTR_TYPE_STRING", "required": true,
			"description": "The directory in which the counters are kept; it must be there.",
		}}},
	}, nil
}

func (d *desk) configure(_ context.Context, request wire.Object) (wire.Object, error) {
	block, _ := request["config"].(wire.Object)
	dir, _ := block["state_dir"].(string)
	if dir == "" {
		return nil, status.Error(codes.InvalidArgument, "state_dir must name a directory")
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "state_dir: %v", err)
	} else if !info.IsDir() {
		return nil, status.Errorf(codes.InvalidArgument, "state_dir: %s is no directory", dir)
	}
	d.config.Store(&config{stateDir: dir})
	d.log.Info("configured", "state_dir", dir)
	go d.tellHost("configured")
	return wire.Object{}, nil
}

// tellHost writes to the host's own log, where there is one.
func (d *desk) tellHost(message string) {
	conn, err := d.broker.Dial(callbackID)
	if err != nil {
		d.log.Warn("no host takes log entries", "error", err)
		return
	}
	defer conn.Close()
	entry := wire.Object{"level": "LOG_LEVEL_INFO", "logger": "desk", "message": message}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request := wire.Object{"entry": entry, "entries": []any{entry}}
	if _, err := d.services.Call(ctx, conn, wire.KernelService, "Log", request); err != nil {
		d.log.Warn("the host took no log entry", "error", err)
	}
}

// find returns the tool that a request calls, and the call.
func (d *desk) find(request wire.Object) (tool, call, *toolError) {
	sent, _ := request["call"].(wire.Object)
	name, _ := sent["tool_name"].(string)
	arguments, _ := sent["arguments"].(wire.Object)
	context, _ := sent["call_context"].(wire.Object)
	directory, _ := context["working_directory"].(string)
	for _, tool := range d.tools {
		if tool.schema()["name"] == name {
			return tool, call{arguments, directory}, nil
		}
	}
	return nil, call{}, failed("NOT_FOUND", "there is no tool %q", name)
}

func (d *desk) preview(_ context.Context, request wire.Object) (wire.Object, error) {
	tool, call, fault := d.find(request)
	if fault != nil {
		return nil, status.Error(codes.NotFound, fault.message)
	}
	teller, ok := tool.(previewer)
	if !ok {
		return nil, status.Error(codes.Unimplemented, "this tool has no preview")
	}
	text, fault := teller.preview(call)
	if fault != nil {
		return nil, status.Error(codes.InvalidArgument, fault.message)
	}
	root := wire.Object{"text": wire.Object{"content": text}}
	return wire.Object{"preview": wire.Object{"root": root}}, nil
}

func (d *desk) invoke(ctx context.Context, request wire.Object, send func(wire.Object) error) error {
	event := func(event wire.Object) error { return send(wire.Object{"event": event}) }
	tool, call, fault := d.find(request)
	var payload wire.Object
	if fault == nil {
		payload, fault = tool.invoke(ctx, call, event)
	}
	if fault != nil {
		return event(wire.Object{"error": wire.Object{
			"category": fault.category, "message": fault.message,
		}})
	}
	return event(wire.Object{"result": wire.Object{"payload": payload}})
}
