package interop

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"provider-workspace/interop/hostfile"
	"provider-workspace/interop/wire"
)

// What `init` prints is loaded by a host and gives the tools to the model.
func TestAHostLoadsWhatInitPrints(t *testing.T) {
	printed, _ := initialize(t, binary())
	agent := mustParseAgent(t, printed)

	if release := agent.Releases["workspace"]; release.Source == "" || !strings.HasPrefix(release.Version, "~> ") {
		t.Errorf("required_providers: %+v", release)
	}
	if len(agent.Profiles) != 1 || agent.Profiles[0].Model == nil || agent.Profiles[0].Tools[0] != "workspace.*" {
		t.Errorf("profiles: %+v", agent.Profiles)
	}
	actions := map[string]string{}
	for _, policy := range agent.Policies {
		if policy.Match["provider"] != "workspace" {
			t.Errorf("%s is not of this provider alone", policy.Name)
		}
		actions[policy.Match["kind"]] = policy.Action
	}
	if !maps.Equal(actions, map[string]string{"data_source": "allow", "resource": "ask"}) {
		t.Errorf("policies: %v", actions)
	}
	configureAs(t, agent)
}

// The source and the directories are those that were asked for.
func TestInitWritesWhatWasAskedFor(t *testing.T) {
	printed, _ := initialize(t, binary(), "--source", "github.com/someone/provider-workspace",
		"--root", "src", "--root", "../other", "--read-only-root", "/usr/include")
	agent := mustParseAgent(t, printed)
	if source := agent.Releases["workspace"].Source; source != "github.com/someone/provider-workspace" {
		t.Errorf("source %q", source)
	}
	config, _ := configOf(t, agent, launch(t, modes[0]))
	if text(config["roots"]) != `["src","../other"]` || text(config["read_only_roots"]) != `["/usr/include"]` {
		t.Errorf("%s", text(config))
	}
}

// A name comes back as it was, whatever is in it.
func TestNamesSurviveInitAndHCL(t *testing.T) {
	names := []string{
		`a "quoted" name`, `back\slash`, `\n is no line end`, "a\nline end", "a\ttab", "\x01\x1b[31m\x7f", "\u0085\u2028",
		"${HOME}", "$${HOME}", "$$${HOME}", "$$$${", "%{if true}", "%%{if true}", "%%%{", "${", "%{", "$", "%", "$$", "$\"{", "{}",
		"${ \"}\" }", "é ü 漢字 🦀", "'", "#", "//", "/* */", "~", " ", "x${", "\\${", "\\\\${x}",
	}
	var arguments []string
	for _, name := range names {
		arguments = append(arguments, "--root="+name)
	}
	printed, _ := initialize(t, binary(), arguments...)
	agent := mustParseAgent(t, printed)
	config, _ := configOf(t, agent, launch(t, modes[0]))
	var found []string
	for _, root := range config["roots"].([]any) {
		found = append(found, root.(string))
	}
	if !slices.Equal(found, names) {
		t.Errorf("from\n%q\ncame\n%q\nby\n%s", names, found, printed)
	}
}

// A name that HCL cannot carry is refused rather than changed.
func TestNamesThatHCLCannotCarryAreRefused(t *testing.T) {
	for name, reason := range map[string]string{"caf\xe9": "UTF-8", "cafe\u0301": "composes"} {
		output, err := exec.Command(binary(), "init", "--root", name).CombinedOutput()
		if err == nil || !strings.Contains(string(output), reason) {
			t.Errorf("%q: %v\n%s", name, err, output)
		}
	}
	// Its twin is written as it is.
	if printed, _ := initialize(t, binary(), "--root", "café"); !strings.Contains(string(printed), `"café"`) {
		t.Error(string(printed))
	}
}

// The block for a user's own file names this very program, apart from agent.hcl.
func TestInitNamesThisProgramForDevelopment(t *testing.T) {
	program := filepath.Join(t.TempDir(), "a ${b}\n\"c\"")
	content, err := os.ReadFile(binary())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, content, 0o755); err != nil {
		t.Fatal(err)
	}
	printed, stderr := initialize(t, program, "--dev")
	mustParseAgent(t, printed)
	written, _ := initialize(t, program, "--dev", "--out", filepath.Join(t.TempDir(), "new.hcl"))
	for _, block := range [][]byte{stderr, written} {
		user, err := hostfile.ParseUser(block)
		if err != nil {
			t.Fatalf("%v\n%s", err, block)
		}
		if user.Programs["workspace"] != program {
			t.Errorf("%q, not %q", user.Programs, program)
		}
		if !strings.Contains(string(block), "# For $XDG_CONFIG_HOME/agent/config.hcl (here /config/agent/config.hcl)") {
			t.Errorf("it does not say where it goes:\n%s", block)
		}
	}
}

// Every example is loaded by a host, and accepted by the binary.
func TestAHostLoadsEveryExample(t *testing.T) {
	files, err := filepath.Glob("../../examples/agent*.hcl")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	t.Setenv("REGISTRY_TOKEN", "a-secret-value")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			configureAs(t, mustParseAgent(t, content))
		})
	}
}

// The first example has every key, and its values are the defaults.
func TestTheExampleHasEveryKeyWithItsDefault(t *testing.T) {
	content, err := os.ReadFile("../../examples/agent.hcl")
	if err != nil {
		t.Fatal(err)
	}
	l := launch(t, modes[0])
	config, _ := configOf(t, mustParseAgent(t, content), l)
	for _, attribute := range attributes(t, l) {
		fields := attribute.(map[string]any)
		name := fields["name"].(string)
		if config[name] == nil {
			t.Errorf("%s is missing", name)
		}
		declared, ok := fields["default_json"].(string)
		if !ok {
			continue
		}
		var wanted any
		if err := json.Unmarshal([]byte(declared), &wanted); err != nil {
			t.Fatal(err)
		}
		// An object's own default says nothing; those of its keys do.
		if object, ok := wanted.(map[string]any); ok {
			for _, inner := range list(fields["object_attributes"]) {
				inner := inner.(map[string]any)
				if declared, ok := inner["default_json"].(string); ok {
					var value any
					if err := json.Unmarshal([]byte(declared), &value); err != nil {
						t.Fatal(err)
					}
					object[inner["name"].(string)] = value
				}
			}
		}
		if !reflect.DeepEqual(config[name], wanted) {
			t.Errorf("%s is %s, not %s", name, text(config[name]), text(wanted))
		}
	}
}

// What a host refuses is refused here: else the tests above would show nothing.
func TestTheReaderIsAsStrictAsAHost(t *testing.T) {
	whole := `
required_providers {
  workspace = {
    source  = "github.com/someone/provider-workspace"
    version = "~> 0.1"
  }
}
provider "workspace" {
  roots = ["."]
}
policy "reads" {
  match  = { kind = "data_source" }
  action = "allow"
}
agent_profile "default" {
  model {
    primary {
      provider = "m"
      id       = "n"
    }
  }
  tools = ["workspace.*"]
}
hook "session-end" {
  provider = "workspace"
  mode     = "observe"
}
settings {
  log_level = "info"
}
`
	if _, err := hostfile.ParseAgent([]byte(whole)); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{
		"provider \"workspace\" {\n}\n", "agent_profile \"default\" {\n}\n", "required_providers {\n}\n", "settings {\n}\n",
		"tools \"x\" {\n}\n", "x = 1\n", "provider {\n}\n", "policy \"p\" {\n  action = \"allow\"\n}\n",
		"policy \"p\" {\n  match = {}\n  action = \"maybe\"\n}\n", "hook \"x\" { provider = \"a\", mode = \"observe\" }\n",
		"agent_profile \"p\" {\n  tool = []\n}\n", "agent_profile \"p\" {\n  tools = [\"workspace\"]\n}\n",
	} {
		if _, err := hostfile.ParseAgent([]byte(whole + more)); err == nil {
			t.Errorf("accepted: %s", more)
		}
	}
}

// initialize runs init in a directory of its own and returns what it writes to standard output and standard error.
func initialize(t *testing.T, program string, arguments ...string) (stdout, stderr []byte) {
	t.Helper()
	command := exec.Command(program, append([]string{"init"}, arguments...)...)
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "XDG_CONFIG_HOME=/config")
	var errors strings.Builder
	command.Stderr = &errors
	printed, err := command.Output()
	if err != nil {
		t.Fatalf("init %q: %v\n%s", arguments, err, errors.String())
	}
	return printed, []byte(errors.String())
}

func mustParseAgent(t *testing.T, content []byte) *hostfile.Agent {
	t.Helper()
	agent, err := hostfile.ParseAgent(content)
	if err != nil {
		t.Fatalf("%v\n%s", err, content)
	}
	for _, provider := range agent.Providers {
		if _, ok := agent.Releases[provider.Name]; !ok {
			t.Errorf("provider %q is not in required_providers: nothing would be loaded, without a word", provider.Name)
		}
	}
	return agent
}

// configOf is what a host sends with Configure, and the variables that it sets for the provider.
func configOf(t *testing.T, agent *hostfile.Agent, l *launched) (map[string]any, map[string]string) {
	t.Helper()
	if len(agent.Providers) != 1 || agent.Providers[0].Name != "workspace" {
		t.Fatalf("providers: %+v", agent.Providers)
	}
	config, environment, err := agent.Providers[0].Config(attributes(t, l))
	if err != nil {
		t.Fatal(err)
	}
	return config, environment
}

// configureAs launches the binary as the host of this file would and configures it.
func configureAs(t *testing.T, agent *hostfile.Agent) {
	t.Helper()
	config, environment := configOf(t, agent, launch(t, modes[0]))
	home := shortTempDir(t)
	for _, key := range []string{"roots", "read_only_roots", "bash_read", "bash_write"} {
		for _, path := range list(config[key]) {
			if inside, ok := strings.CutPrefix(path.(string), "~/"); ok {
				if err := os.MkdirAll(filepath.Join(home, inside), 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	// As it is written, on any machine that the tests run on.
	config["sandbox"] = "best_effort"
	variables := []string{"HOME=" + home}
	for name, value := range environment {
		variables = append(variables, fmt.Sprintf("%s=%s", name, value))
	}
	l := launch(t, modes[0], variables...)
	l.mustCall(t, "Configure", wire.Object{"config": config})
}

// attributes is the schema of the configuration.
func attributes(t *testing.T, l *launched) []any {
	t.Helper()
	return list(l.mustCall(t, "GetSchema", nil)["config_schema"].(wire.Object)["attributes"])
}

func list(value any) []any {
	items, _ := value.([]any)
	return items
}
