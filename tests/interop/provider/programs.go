package main

import (
	"context"
	"encoding/base64"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"provider-workspace/interop/wire"
)

// mostOutput is how much of a program's output is in the result.
const mostOutput = 32 << 10

// runProgram runs a program and streams what it prints.
type runProgram struct{ desk *desk }

func (runProgram) schema() wire.Object {
	args := property("ARRAY", "Its arguments; no shell looks at them.")
	args["items"] = property("STRING", "One argument.")
	return wire.Object{
		"name": "run_program", "kind": "TOOL_KIND_RESOURCE", "risk": "RISK_CLASS_HIGH",
		"description": "Runs a program in the working directory.",
		"input_schema": object([]string{"program"}, wire.Object{
			"program": property("STRING", "The program: a path, or a name that is looked for in PATH."),
			"args":    args,
		}),
		"output_schema": object([]string{"output"}, wire.Object{
			"output": property("STRING", "The end of what it printed."),
		}),
		"streaming":       true,
		"concurrency":     wire.Object{"safe": false},
		"default_timeout": "300s",
	}
}

func (runProgram) parse(call call) (string, []string, *toolError) {
	program, fault := call.text("program", "", true)
	if fault != nil {
		return "", nil, fault
	}
	var args []string
	switch list := call.arguments["args"].(type) {
	case nil:
	case []any:
		for _, item := range list {
			arg, ok := item.(string)
			if !ok {
				return "", nil, failed("INVALID_ARGUMENTS", "args must be texts")
			}
			args = append(args, arg)
		}
	default:
		return "", nil, failed("INVALID_ARGUMENTS", "args must be a list")
	}
	return program, args, nil
}

func (t runProgram) preview(call call) (string, *toolError) {
	program, args, fault := t.parse(call)
	if fault != nil {
		return "", fault
	}
	return strings.Join(append([]string{program}, args...), " "), nil
}

func (t runProgram) invoke(ctx context.Context, call call, send func(wire.Object) error) (wire.Object, *toolError) {
	program, args, fault := t.parse(call)
	if fault != nil {
		return nil, fault
	}
	output := &output{send: send}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = call.workingDirectory
	cmd.Stdout = output.of("OUTPUT_STREAM_STDOUT")
	cmd.Stderr = output.of("OUTPUT_STREAM_STDERR")
	// All that it starts ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := t.desk.programs.start(cmd); err != nil {
		switch {
		case errors.Is(err, exec.ErrNotFound), errors.Is(err, syscall.ENOENT):
			return nil, failed("NOT_FOUND", "%v", err)
		case errors.Is(err, syscall.EACCES):
			return nil, failed("PERMISSION_DENIED", "%v", err)
		}
		return nil, failed("EXECUTION_FAILED", "%v", err)
	}
	err := t.desk.programs.wait(cmd)
	if cmd.ProcessState == nil {
		return nil, failed("EXECUTION_FAILED", "%v", err)
	}
	exit := wire.Object{"exit_code": cmd.ProcessState.ExitCode()}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		exit["signal"] = status.Signal().String()
	}
	_ = send(wire.Object{"exit_status": exit})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, failed("TIMEOUT", "%s was killed at the deadline", program)
	case ctx.Err() != nil:
		return nil, failed("CANCELLED", "%s was killed", program)
	case err != nil:
		return nil, failed("EXECUTION_FAILED", "%s: %v", program, err)
	}
	return wire.Object{"output": output.end()}, nil
}

// output streams what a program prints and keeps the end of it.
type output struct {
	mu   sync.Mutex
	send func(wire.Object) error
	kept []byte
}

type outputStream struct {
	*output
	name string
}

func (o *output) of(name string) outputStream { return outputStream{o, name} }

func (o outputStream) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = append(o.kept, data...)
	if more := len(o.kept) - mostOutput; more > 0 {
		o.kept = o.kept[more:]
	}
	chunk := wire.Object{"stream": o.name, "data": base64.StdEncoding.EncodeToString(data)}
	return len(data), o.send(wire.Object{"output_chunk": chunk})
}

func (o *output) end() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.ToValidUTF8(string(o.kept), "\uFFFD")
}

// programs are those that run.
type programs struct {
	mu     sync.Mutex
	ended  bool
	groups map[int]bool
}

func newPrograms() *programs { return &programs{groups: map[int]bool{}} }

func (p *programs) start(cmd *exec.Cmd) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return errors.New("the provider ends")
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.groups[cmd.Process.Pid] = true
	return nil
}

func (p *programs) wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.groups, cmd.Process.Pid)
	// What it left in the background.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return err
}

func (p *programs) killAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for group := range p.groups {
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
}
