package interop

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"os"
	"strconv"
	"testing"
	"time"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
)

// checkHealth is the smallest call that a stranger could make.
func checkHealth(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_, err := health.NewHealthClient(conn).Check(ctx, &health.HealthCheckRequest{Service: "plugin"})
	return err
}

// hostLikeCertificate has all that go-plugin's own certificates have, but another key.
func hostLikeCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "localhost", Organization: []string{"HashiCorp"}},
		DNSNames:              []string{"localhost"},
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		SerialNumber:          big.NewInt(7),
		NotBefore:             time.Now().Add(-time.Minute),
		NotAfter:              time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestOnlyTheHostThatLaunchedAPluginIsServed(t *testing.T) {
	for _, m := range modes {
		if !m.tls {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			l := launch(t, m)
			impostors := map[string]credentials.TransportCredentials{
				"without TLS": insecure.NewCredentials(),
				"without a certificate": credentials.NewTLS(&tls.Config{
					InsecureSkipVerify: true, ServerName: "localhost",
				}),
				"with another certificate": credentials.NewTLS(&tls.Config{
					InsecureSkipVerify: true, ServerName: "localhost",
					Certificates: []tls.Certificate{hostLikeCertificate(t)},
				}),
			}
			for name, credentials := range impostors {
				conn, err := grpc.NewClient("unix:"+l.address, grpc.WithTransportCredentials(credentials))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if err := checkHealth(conn); err == nil {
					t.Errorf("an impostor %s was served", name)
				}
				if err := l.rpc.Ping(); err != nil {
					t.Errorf("after an impostor %s the real host is not served: %v", name, err)
				}
			}
		})
	}
}

func TestThePlainSocketIsForItsUserAlone(t *testing.T) {
	l := launch(t, mode{})
	info, err := os.Stat(l.address)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the socket's mode is %o", mode)
	}
}

func TestAGroupMayUseTheSocketWhenTheHostSaysSo(t *testing.T) {
	var log lockedBuffer
	tmp := shortTempDir(t)
	config := clientConfig(mode{}, tmp, &log)
	config.Plugins = plugin.PluginSet{"tool": &toolPlugin{}}
	config.UnixSocketConfig = &plugin.UnixSocketConfig{Group: strconv.Itoa(os.Getgid())}
	client := plugin.NewClient(config)
	defer client.Kill()
	address, err := client.Start()
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	info, err := os.Stat(address.String())
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o660 {
		t.Errorf("the socket's mode is %o", mode)
	}
}
