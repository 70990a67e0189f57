// A minimal plugin on hashicorp/go-plugin itself: what the provider's start is compared with.
package main

import (
	"context"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

type nothing struct{ plugin.NetRPCUnsupportedPlugin }

func (nothing) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

func (nothing) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

func main() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  1,
			MagicCookieKey:   "PLUGGABLEHARNESS_AGENT_PLUGIN",
			MagicCookieValue: "pluggableharness-agent-v1-a6f3c9d2-plugin-handshake",
		},
		Plugins:    plugin.PluginSet{"tool": nothing{}},
		GRPCServer: plugin.DefaultGRPCServer,
	})
}
