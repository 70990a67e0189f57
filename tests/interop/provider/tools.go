package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"provider-workspace/interop/wire"
)

func object(required []string, properties wire.Object) wire.Object {
	return wire.Object{
		"type": "SCHEMA_TYPE_OBJECT", "properties": properties, "required": required,
	}
}

func property(kind, description string) wire.Object {
	return wire.Object{"type": "SCHEMA_TYPE_" + kind, "description": description}
}

// text takes an argument that is a text; an optional one may be left out.
func (c call) text(name, otherwise string, required bool) (string, *toolError) {
	switch value := c.arguments[name].(type) {
	case string:
		return value, nil
	case nil:
		if !required {
			return otherwise, nil
		}
	}
	return "", failed("INVALID_ARGUMENTS", "%s must be a text", name)
}

// counterAdd adds to a counter.
type counterAdd struct{ desk *desk }

func (counterAdd) schema() wire.Object {
	return wire.Object{
		"name": "counter_add", "kind": "TOOL_KIND_RESOURCE", "risk": "RISK_CLASS_LOW",
		"description": "Adds to a named counter, which starts at 0, and returns its new value.",
		"input_schema": object([]string{"name"}, wire.Object{
			"name": property("STRING", "The counter."),
			"by":   property("NUMBER", "How much to add, 1 if left out; a whole number."),
		}),
		"output_schema": object([]string{"value"}, wire.Object{
			"value": property("NUMBER", "What the counter is now."),
		}),
		"concurrency":     wire.Object{"safe": true, "key_fields": []any{"name"}},
		"default_timeout": "10s",
	}
}

func (counterAdd) parse(call call) (string, float64, *toolError) {
	name, fault := call.text("name", "", true)
	if fault != nil {
		return "", 0, fault
	}
	switch by := call.arguments["by"].(type) {
	case nil:
		return name, 1, nil
	case float64:
		if by == math.Trunc(by) {
			return name, by, nil
		}
	}
	return "", 0, failed("INVALID_ARGUMENTS", "by must be a whole number")
}

func (t counterAdd) invoke(_ context.Context, call call, _ func(wire.Object) error) (wire.Object, *toolError) {
	name, by, fault := t.parse(call)
	if fault != nil {
		return nil, fault
	}
	config := t.desk.config.Load()
	if config == nil {
		return nil, failed("EXECUTION_FAILED", "the provider is not configured yet")
	}
	value, err := t.desk.counters.add(config.stateDir, name, by)
	if err != nil {
		return nil, failed("EXECUTION_FAILED", "%v", err)
	}
	return wire.Object{"value": value}, nil
}

func (t counterAdd) preview(call call) (string, *toolError) {
	name, by, fault := t.parse(call)
	if fault != nil {
		return "", fault
	}
	return fmt.Sprintf("%s: %+g", name, by), nil
}

// counters are kept in one file.
type counters struct{ mu sync.Mutex }

func (c *counters) add(dir, name string, by float64) (float64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	path := filepath.Join(dir, "counters.json")
	values := map[string]float64{}
	switch text, err := os.ReadFile(path); {
	case err == nil:
		if err := json.Unmarshal(text, &values); err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return 0, err
	}
	values[name] += by
	text, err := json.Marshal(values)
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return 0, err
	}
	return values[name], os.Rename(path+".new", path)
}

// clock tells the time.
type clock struct{}

func (clock) schema() wire.Object {
	return wire.Object{
		"name": "clock", "kind": "TOOL_KIND_DATA_SOURCE", "risk": "RISK_CLASS_READ_ONLY",
		"description": "Tells the time in a time zone.",
		"input_schema": object(nil, wire.Object{
			"zone": property("STRING", "A zone of the tz database, such as Asia/Tokyo; UTC if left out."),
		}),
		"output_schema": object([]string{"time"}, wire.Object{
			"time": property("STRING", "As RFC 3339 writes it."),
		}),
		"concurrency": wire.Object{"safe": true},
		"idempotent":  true,
	}
}

func (clock) invoke(_ context.Context, call call, _ func(wire.Object) error) (wire.Object, *toolError) {
	zone, fault := call.text("zone", "UTC", false)
	if fault != nil {
		return nil, fault
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, failed("NOT_FOUND", "%v", err)
	}
	return wire.Object{"time": time.Now().In(location).Format(time.RFC3339)}, nil
}
