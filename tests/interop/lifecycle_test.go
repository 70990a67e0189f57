package interop

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	plugin "github.com/hashicorp/go-plugin"

	"provider-workspace/interop/wire"
)

// doomedHostVariable makes this test binary act as a host of its own process that is killed.
const doomedHostVariable = "INTEROP_DOOMED_HOST"

// doomedCommand runs in a call of the host that is killed; the number finds it among all processes.
const doomedCommand = "sleep 987654322"

// runDoomedHost launches a plugin in the named mode, begins a command, prints the plugin's pid and waits to be
// killed.
func runDoomedHost(name string) {
	for _, m := range modes {
		if m.name != name {
			continue
		}
		config := clientConfig(m, os.TempDir(), os.Stderr)
		config.Plugins = plugin.PluginSet{"tool": &toolPlugin{}}
		client := plugin.NewClient(config)
		if err := beginCommand(client); err != nil {
			fmt.Fprintln(os.Stderr, "launch:", err)
			os.Exit(1)
		}
		fmt.Println(client.ReattachConfig().Pid)
		select {}
	}
	fmt.Fprintln(os.Stderr, "no such mode:", name)
	os.Exit(1)
}

func beginCommand(client *plugin.Client) error {
	rpc, err := client.Client()
	if err != nil {
		return err
	}
	raw, err := rpc.Dispense("tool")
	if err != nil {
		return err
	}
	conn := raw.(*dispensed).conn
	root, err := os.MkdirTemp(os.TempDir(), "root")
	if err != nil {
		return err
	}
	ctx := context.Background()
	config := wire.Object{"config": wire.Object{"roots": []any{root}, "sandbox": "best_effort"}}
	if _, err := services.Call(ctx, conn, wire.ToolService, "Configure", config); err != nil {
		return err
	}
	_, err = services.Open(ctx, conn, wire.ToolService, "Invoke", toolCall("bash", wire.Object{"command": doomedCommand}))
	return err
}

func TestAPluginDoesNotOutliveItsHost(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			tmp := shortTempDir(t)
			host := exec.Command(os.Args[0])
			host.Env = append(os.Environ(), doomedHostVariable+"="+m.name, "TMPDIR="+tmp)
			host.Stderr = &lockedBuffer{}
			stdout, err := host.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := host.Start(); err != nil {
				t.Fatal(err)
			}
			defer host.Process.Kill()
			var pid int
			if _, err := fmt.Fscan(bufio.NewReader(stdout), &pid); err != nil {
				t.Fatalf("no pid: %v\n%s", err, host.Stderr)
			}
			if !runs(pid) {
				t.Fatalf("plugin %d does not run", pid)
			}
			command := strings.TrimPrefix(doomedCommand, "sleep ")
			eventually(t, 20*time.Second, "the command runs", func() bool { return len(marked(t, command)) > 0 })
			if err := host.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			host.Wait()
			eventually(t, 5*time.Second, "the plugin is gone", func() bool { return !runs(pid) })
			if left := marked(t, command); len(left) > 0 {
				t.Errorf("the plugin is gone and %v run", left)
			}
			// The host's own broker sockets stay: nobody could remove them.
			for _, name := range sockets(t, tmp) {
				if strings.HasPrefix(name, "plugin-rs-") {
					t.Errorf("the plugin left %s", name)
				}
			}
		})
	}
}

func TestSIGTERMEndsAPluginInOrder(t *testing.T) {
	inEveryMode(t, func(t *testing.T, l *launched) {
		if err := syscall.Kill(l.pid, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		eventually(t, 2*time.Second, "the plugin is gone", func() bool { return !runs(l.pid) })
		if left := ownSockets(t, l.tmp); len(left) > 0 {
			t.Errorf("sockets were left: %v", left)
		}
	})
}

// Ctrl-C reaches the whole foreground group, and a file size limit is a failed write, no death.
func TestSomeSignalsDoNotEndAPlugin(t *testing.T) {
	inEveryMode(t, func(t *testing.T, l *launched) {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGXFSZ, syscall.SIGPIPE} {
			if err := syscall.Kill(l.pid, signal); err != nil {
				t.Fatal(err)
			}
			for range 20 {
				if err := l.rpc.Ping(); err != nil {
					t.Fatalf("after %v: %v", signal, err)
				}
			}
		}
	})
}

func TestTheNextStartClearsWhatAKilledPluginLeft(t *testing.T) {
	l := launch(t, mode{})
	if err := syscall.Kill(l.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Second, "the plugin is gone", func() bool { return !runs(l.pid) })
	dead := ownSockets(t, l.tmp)
	if len(dead) == 0 {
		t.Fatal("a killed plugin left no socket: there is nothing to test")
	}
	config := clientConfig(mode{}, l.tmp, l.hostLog)
	config.Plugins = plugin.PluginSet{"tool": &toolPlugin{}}
	next := plugin.NewClient(config)
	defer next.Kill()
	if _, err := next.Client(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the dead sockets are gone", func() bool {
		for _, name := range ownSockets(t, l.tmp) {
			for _, old := range dead {
				if name == old {
					return false
				}
			}
		}
		return true
	})
	if len(ownSockets(t, l.tmp)) == 0 {
		t.Error("the living plugin's socket is gone too")
	}
}

func TestWithoutTheCookieThereIsHelpAndNoHandshake(t *testing.T) {
	for _, env := range [][]string{nil, {handshake.MagicCookieKey + "=something else"}} {
		var stdout, stderr lockedBuffer
		command := exec.Command(binary())
		command.Env, command.Stdout, command.Stderr = env, &stdout, &stderr
		err := command.Run()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 1 {
			t.Errorf("%v: expected exit code 1, got %v", env, err)
		}
		if strings.HasPrefix(stdout.String(), "1|") {
			t.Errorf("%v: a handshake line without the cookie: %q", env, stdout.String())
		}
		if stdout.String()+stderr.String() == "" {
			t.Errorf("%v: no word of help", env)
		}
	}
}

func TestAStartThatFailsSaysWhyOnOneLogLineAndExitsWithOne(t *testing.T) {
	tmp := shortTempDir(t)
	var stdout, stderr lockedBuffer
	command := exec.Command(binary())
	command.Stdout, command.Stderr = &stdout, &stderr
	command.Env = []string{
		handshake.MagicCookieKey + "=" + handshake.MagicCookieValue,
		"PLUGIN_PROTOCOL_VERSIONS=1", "TMPDIR=" + tmp, "PLUGIN_CLIENT_CERT=no certificate",
	}
	err := command.Run()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 1 {
		t.Errorf("expected exit code 1, got %v", err)
	}
	if stdout.String() != "" {
		t.Errorf("standard output: %q", stdout.String())
	}
	if !strings.Contains(stderr.String(), `"@level":"error"`) || !strings.Contains(stderr.String(), "PLUGIN_CLIENT_CERT") {
		t.Errorf("standard error: %q", stderr.String())
	}
	if left := sockets(t, tmp); len(left) > 0 {
		t.Errorf("sockets were left: %v", left)
	}
}

func ownSockets(t *testing.T, dir string) []string {
	var own []string
	for _, name := range sockets(t, dir) {
		if strings.HasPrefix(name, "plugin-rs-") {
			own = append(own, name)
		}
	}
	return own
}
