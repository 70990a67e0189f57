package hostfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Agent is an agent.hcl: six kinds of block, and nothing else.
type Agent struct {
	Required  *Rest      `hcl:"required_providers,block"`
	Providers []Provider `hcl:"provider,block"`
	Policies  []Policy   `hcl:"policy,block"`
	Profiles  []Profile  `hcl:"agent_profile,block"`
	Hooks     []Hook     `hcl:"hook,block"`
	Settings  *Rest      `hcl:"settings,block"`

	// Releases is what required_providers holds, by local name.
	Releases map[string]Release
}

// Rest is a block whose names are not fixed.
type Rest struct {
	Body hcl.Body `hcl:",remain"`
}

// Provider is the block of one provider: which keys it has, the provider says.
type Provider struct {
	Name string   `hcl:"name,label"`
	Body hcl.Body `hcl:",remain"`
}

// Release says where a provider comes from.
type Release struct{ Source, Version string }

// Policy is a rule of who decides on a call.
type Policy struct {
	Name   string            `hcl:"name,label"`
	Match  map[string]string `hcl:"match"`
	Action string            `hcl:"action"`
}

// Profile is what a session may use.
type Profile struct {
	Name  string   `hcl:"name,label"`
	Model *Model   `hcl:"model,block"`
	Tools []string `hcl:"tools,optional"`
}

// Model is what a profile talks to.
type Model struct {
	Primary   ModelName   `hcl:"primary,block"`
	Fallbacks []ModelName `hcl:"fallback,block"`
}

// ModelName is one model of one provider.
type ModelName struct {
	Provider string `hcl:"provider"`
	ID       string `hcl:"id"`
}

// Hook subscribes a provider.
type Hook struct {
	Point    string `hcl:"point,label"`
	Provider string `hcl:"provider"`
	Mode     string `hcl:"mode"`
}

// ParseAgent reads the text of an agent.hcl and says what a host would refuse.
func ParseAgent(text []byte) (*Agent, error) {
	agent := Agent{Releases: map[string]Release{}}
	if err := decode("agent.hcl", text, nil, &agent); err != nil {
		return nil, err
	}
	if agent.Required != nil {
		if err := agent.readReleases(); err != nil {
			return nil, err
		}
	}
	return &agent, errors.Join(agent.duplicates(), agent.misspelt())
}

func (a *Agent) readReleases() error {
	entries, problems := a.Required.Body.JustAttributes()
	if problems.HasErrors() {
		return problems
	}
	for name, entry := range entries {
		var fields map[string]string
		if problems := gohcl.DecodeExpression(entry.Expr, nil, &fields); problems.HasErrors() {
			return problems
		}
		if fields["source"] == "" || fields["version"] == "" {
			return fmt.Errorf("required_providers: %s has no source or no version", name)
		}
		if strings.Contains(fields["source"], "://") {
			return fmt.Errorf("required_providers: %s: a source has no scheme", name)
		}
		a.Releases[name] = Release{Source: fields["source"], Version: fields["version"]}
	}
	return nil
}

// duplicates finds what may be there once only; the library looks at no label.
func (a *Agent) duplicates() error {
	seen := map[string]bool{}
	var twice []error
	note := func(kind, name string) {
		block := fmt.Sprintf("%s %q", kind, name)
		if seen[block] {
			twice = append(twice, fmt.Errorf("duplicate block: %s", block))
		}
		seen[block] = true
	}
	for _, provider := range a.Providers {
		note("provider", provider.Name)
	}
	for _, profile := range a.Profiles {
		note("agent_profile", profile.Name)
	}
	for _, policy := range a.Policies {
		note("policy", policy.Name)
	}
	return errors.Join(twice...)
}

// misspelt finds words that are not those that a host knows.
func (a *Agent) misspelt() error {
	var unknown []error
	check := func(where, word string, known ...string) {
		if !slices.Contains(known, word) {
			unknown = append(unknown, fmt.Errorf("%s: %q is none of %q", where, word, known))
		}
	}
	for _, policy := range a.Policies {
		check(policy.Name, policy.Action, "allow", "ask", "deny")
		for key, value := range policy.Match {
			check(policy.Name, key, "kind", "provider", "tool_name", "risk")
			if key == "kind" {
				check(policy.Name, value, "data_source", "resource")
			}
		}
	}
	for _, profile := range a.Profiles {
		for _, tool := range profile.Tools {
			if provider, name, ok := strings.Cut(tool, "."); !ok || provider == "" || name == "" {
				unknown = append(unknown, fmt.Errorf("%s: %q is no PROVIDER.TOOL", profile.Name, tool))
			}
		}
	}
	for _, hook := range a.Hooks {
		check(hook.Point, hook.Mode, "observe", "transform", "veto")
	}
	return errors.Join(unknown...)
}

// Config is what a host sends with Configure: the provider's block against the schema that the provider declares,
// null for what is left out. The variables are those of the block's environment.
func (p *Provider) Config(attributes []any) (config map[string]any, environment map[string]string, err error) {
	context := &hcl.EvalContext{Functions: map[string]function.Function{"env": env}}
	var split struct {
		Environment *Rest    `hcl:"environment,block"`
		Rest        hcl.Body `hcl:",remain"`
	}
	if problems := gohcl.DecodeBody(p.Body, context, &split); problems.HasErrors() {
		return nil, nil, problems
	}
	environment = map[string]string{}
	if split.Environment != nil {
		entries, problems := split.Environment.Body.JustAttributes()
		for name, entry := range entries {
			var value string
			problems = append(problems, gohcl.DecodeExpression(entry.Expr, context, &value)...)
			environment[name] = value
		}
		if problems.HasErrors() {
			return nil, nil, problems
		}
	}
	value, problems := hcldec.Decode(split.Rest, spec(attributes), context)
	if problems.HasErrors() {
		return nil, nil, problems
	}
	text, err := ctyjson.Marshal(value, value.Type())
	if err != nil {
		return nil, nil, err
	}
	return config, environment, json.Unmarshal(text, &config)
}

// spec is the schema of a configuration in the library's words.
func spec(attributes []any) hcldec.Spec {
	types := map[string]cty.Type{
		"ATTR_TYPE_STRING": cty.String, "ATTR_TYPE_NUMBER": cty.Number, "ATTR_TYPE_BOOL": cty.Bool,
		"ATTR_TYPE_LIST_STRING": cty.List(cty.String), "ATTR_TYPE_LIST_NUMBER": cty.List(cty.Number),
		"ATTR_TYPE_MAP_STRING": cty.Map(cty.String), "ATTR_TYPE_OBJECT": cty.DynamicPseudoType,
	}
	spec := hcldec.ObjectSpec{}
	for _, attribute := range attributes {
		fields := attribute.(map[string]any)
		name := fields["name"].(string)
		required, _ := fields["required"].(bool)
		spec[name] = &hcldec.AttrSpec{Name: name, Type: types[fields["type"].(string)], Required: required}
	}
	return spec
}

// env is the one function that a host offers.
var env = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "name", Type: cty.String}},
	Type:   function.StaticReturnType(cty.String),
	Impl: func(arguments []cty.Value, _ cty.Type) (cty.Value, error) {
		value, ok := os.LookupEnv(arguments[0].AsString())
		if !ok {
			return cty.NilVal, fmt.Errorf("%s is not set", arguments[0].AsString())
		}
		return cty.StringVal(value), nil
	},
})

// User is a user's file of a host.
type User struct {
	Overrides *Rest `hcl:"dev_overrides,block"`

	// Programs is what dev_overrides holds, by local name.
	Programs map[string]string
}

// ParseUser reads the text of a user's file.
func ParseUser(text []byte) (*User, error) {
	user := User{Programs: map[string]string{}}
	if err := decode("config.hcl", text, nil, &user); err != nil || user.Overrides == nil {
		return &user, err
	}
	entries, problems := user.Overrides.Body.JustAttributes()
	for name, entry := range entries {
		var path string
		problems = append(problems, gohcl.DecodeExpression(entry.Expr, nil, &path)...)
		user.Programs[name] = path
	}
	if problems.HasErrors() {
		return nil, problems
	}
	return &user, nil
}
