// Package hostfile reads the files that a host reads, with the HCL library that it reads them with, and as
// strictly: what is unknown, missing or there twice is an error.
package hostfile

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// LockVersion is the one version of a lock file that there is.
const LockVersion = 1

// Lock is a lock file.
type Lock struct {
	Version   int            `hcl:"lock_file_version"`
	Providers []LockProvider `hcl:"provider,block"`
}

// LockProvider is the entry of one provider.
type LockProvider struct {
	Name       string            `hcl:"name,label"`
	Source     string            `hcl:"source"`
	Version    string            `hcl:"version"`
	ResolvedAt string            `hcl:"resolved_at"`
	Checksums  map[string]string `hcl:"checksums"`
}

// ParseLock reads the text of a lock file.
func ParseLock(text []byte) (*Lock, error) {
	var lock Lock
	if err := decode("agent.lock.hcl", text, nil, &lock); err != nil {
		return nil, err
	}
	if lock.Version != LockVersion {
		return nil, fmt.Errorf("lock_file_version %d", lock.Version)
	}
	for _, provider := range lock.Providers {
		if _, err := time.Parse(time.RFC3339, provider.ResolvedAt); err != nil {
			return nil, fmt.Errorf("provider %q: resolved_at: %w", provider.Name, err)
		}
	}
	return &lock, nil
}

// decode reads a whole file into a struct that names everything that may stand in it.
func decode(name string, text []byte, context *hcl.EvalContext, into any) error {
	file, problems := hclsyntax.ParseConfig(text, name, hcl.InitialPos)
	if !problems.HasErrors() {
		problems = gohcl.DecodeBody(file.Body, context, into)
	}
	if problems.HasErrors() {
		return problems
	}
	return nil
}
