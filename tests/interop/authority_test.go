package interop

import (
	"context"
	"net"
	"net/url"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// What a client sends as :authority decides whether h2 lets a request in before any code of ours
// runs. go-plugin's own host is not hit by this (the other tests); tools that dial the socket
// themselves may be.
func TestWhichAuthoritiesAreServed(t *testing.T) {
	l := launch(t, mode{})
	dialer := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", l.address)
	})
	cases := []struct {
		name    string
		target  string
		options []grpc.DialOption
		served  bool
	}{
		{"unix:///path", "unix://" + l.address, nil, true},
		{"unix:path", "unix:" + l.address, nil, true},
		{"unix:path with authority localhost", "unix:" + l.address, []grpc.DialOption{grpc.WithAuthority("localhost")}, true},
		{"go-plugin's dummy target", "passthrough:///unused", []grpc.DialOption{dialer}, true},
		{"an empty target", "passthrough:///", []grpc.DialOption{dialer, grpc.WithAuthority("plugin")}, true},
		{"the escaped path as authority", "unix:" + l.address, []grpc.DialOption{grpc.WithAuthority(url.PathEscape(l.address))}, false},
		{"the raw path as authority", "unix:" + l.address, []grpc.DialOption{grpc.WithAuthority(l.address)}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			options := append(c.options, grpc.WithTransportCredentials(insecure.NewCredentials()))
			conn, err := grpc.NewClient(c.target, options...)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			err = checkHealth(conn)
			if served := err == nil; served != c.served {
				t.Fatalf("served: %v (%v)", served, err)
			}
			// The refusal reads as a broken connection or a protocol error, never as a wrong answer.
			if code := status.Code(err); err != nil && code != codes.Internal && code != codes.Unavailable {
				t.Errorf("refused with %v", err)
			}
		})
	}
}
