package interop

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The checker of providers, on a provider that shares no code with it.

// report is what `conform --json` prints.
type report struct {
	Untestable string
	Checks     []struct {
		ID       string
		Outcome  string
		Why      []string
		Findings []finding
		Remarks  []finding
	}
}

type finding struct{ Seen, Expected string }

// ids returns the checks that ended in a way.
func (r report) ids(outcome string) []string {
	ids := []string{}
	for _, check := range r.Checks {
		if check.Outcome == outcome {
			ids = append(ids, check.ID)
		}
	}
	return ids
}

// desk builds the provider.
func desk(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "desk")
	if output, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "./provider").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return path
}

// conform checks a provider. What settings holds besides, the checker's file does too.
func conform(t *testing.T, provider string, settings wireSettings) (report, int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "conform.json")
	content, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary(), "conform", provider, "--json", "--limit", "60", "--config", file,
		// It waits for as long as the limit is; see TestAnOrphanOfGoPluginIsARemark.
		"--skip", "end.host_death")
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var found report
	if err := json.Unmarshal(output, &found); err != nil {
		t.Fatalf("%v\n%s%s", err, output, &stderr)
	}
	return found, command.ProcessState.ExitCode()
}

type wireSettings struct {
	Config      map[string]any    `json:"config,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
	Calls       map[string]any    `json:"calls,omitempty"`
}

func TestAForeignProviderKeepsEveryRule(t *testing.T) {
	provider := desk(t)
	long := []string{"-c", "while :; do echo tick >> ticks; sleep 0.1; done"}
	cases := map[string]struct {
		settings wireSettings
		// What cannot be tried, with a word of the reason.
		notReached map[string]string
	}{
		"as it is": {
			// Nothing in a counter's or a clock's schema says how a call of it fails.
			notReached: map[string]string{"preview.failing": "calls.NAME.failing"},
		},
		"configured": {
			settings: wireSettings{
				Config: map[string]any{"state_dir": "{folder}/inner"},
				Calls: map[string]any{
					"counter_add": map[string]any{"good": map[string]any{"name": "a", "by": 2}, "process": false},
					"clock":       map[string]any{"failing": map[string]any{"zone": "No/Where"}, "process": false},
					"run_program": map[string]any{
						"good":    map[string]any{"program": "cat", "args": []string{"known.txt"}},
						"failing": map[string]any{"program": "no-such-program"},
						"long":    map[string]any{"program": "/bin/sh", "args": long},
						"process": true,
					},
				},
			},
		},
		"only reading": {
			settings: tools("clock"),
			notReached: map[string]string{
				"preview.failing": "calls.NAME.failing", "invoke.working_directory": "a path or a command",
				"invoke.cancel": "run long", "invoke.deadline": "run long", "end.busy": "run long",
			},
		},
		"without a process": {
			settings: tools("counter_add,clock"),
			notReached: map[string]string{
				"preview.failing": "calls.NAME.failing", "invoke.working_directory": "a path or a command",
				"invoke.cancel": "run long", "invoke.deadline": "run long", "end.busy": "run long",
			},
		},
		"without a tool": {
			settings: tools(""),
			notReached: map[string]string{
				"invoke.unconfigured": "no operation", "invoke.invalid_arguments": "no operation",
				"preview.tree": "no operation", "preview.side_effects": "no operation",
				"preview.failing": "calls.NAME.failing", "invoke.working_directory": "a path or a command",
				"invoke.cancel": "run long", "invoke.deadline": "run long", "end.busy": "run long",
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, code := conform(t, provider, c.settings)
			if failed := found.ids("fail"); code != 0 || len(failed) > 0 {
				t.Errorf("exit code %d, failed: %s", code, text(found))
			}
			for _, check := range found.Checks {
				if check.Outcome != "not_reached" {
					continue
				}
				if word := c.notReached[check.ID]; word == "" || !strings.Contains(strings.Join(check.Why, " "), word) {
					t.Errorf("%s was not reached: %q", check.ID, check.Why)
				}
			}
			wanted := slices.Sorted(maps.Keys(c.notReached))
			if reached := found.ids("not_reached"); !slices.Equal(wanted, slices.Sorted(slices.Values(reached))) {
				t.Errorf("not reached are %q, not %q", reached, wanted)
			}
		})
	}
}

func tools(names string) wireSettings {
	return wireSettings{Environment: map[string]string{"DESK_TOOLS": names}}
}

// What go-plugin's own servers do by nature is reported and is no failure.
func TestAnOrphanOfGoPluginIsARemark(t *testing.T) {
	command := exec.Command(binary(), "conform", desk(t), "--json", "--limit", "2",
		"--only", "end.host_death")
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	var found report
	if err := json.Unmarshal(output, &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Checks) != 1 || found.Checks[0].Outcome != "remark" {
		t.Error(text(found))
	}
}

// A guess that is refused says nothing against a provider; the operator's own block does.
func TestAConfigurationThatCannotBeGuessedIsNoFailure(t *testing.T) {
	provider := desk(t)
	settings := tools("clock")
	settings.Config = map[string]any{"state_dir": "{folder}/no-such-directory"}
	found, code := conform(t, provider, settings)
	if failed := found.ids("fail"); code != 1 || !slices.Equal(failed, []string{"config.accepted"}) {
		t.Errorf("exit code %d: %s", code, text(found))
	}
}
