package interop

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"provider-workspace/interop/hostfile"
	"provider-workspace/interop/wire"
)

// A host compares a lock entry with what the binary says of itself, letter by letter, and the entry's sum with
// the program that it is about to run.
func TestTheLockEntryThatIsPackedFitsTheBinary(t *testing.T) {
	out := t.TempDir()
	stem, platform := pack(t, out)

	entry, err := os.ReadFile(stem + ".lock.hcl")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := hostfile.ParseLock(fmt.Appendf(nil, "lock_file_version = %d\n\n%s", hostfile.LockVersion, entry))
	if err != nil {
		t.Fatalf("%v\n%s", err, entry)
	}
	if len(lock.Providers) != 1 {
		t.Fatalf("%d providers", len(lock.Providers))
	}
	locked := lock.Providers[0]

	producer := launch(t, modes[0]).mustCall(t, "Describe", nil)["producer"].(wire.Object)
	// protojson leaves an empty text out.
	source, _ := producer["source"].(string)
	if locked.Source != source || locked.Version != producer["version"] || locked.Name != producer["name"] {
		t.Errorf("the entry is of %q %q %q; Describe: %s", locked.Name, locked.Source, locked.Version, text(producer))
	}

	archive := fmt.Sprintf("%s_%s.tar.gz", stem, platform)
	if sum := "sha256:" + sumOfMember(t, archive, "provider-workspace"); locked.Checksums[platform] != sum {
		t.Errorf("the entry has %q, the program %q", locked.Checksums[platform], sum)
	}
	check := exec.Command("sha256sum", "--check", "--strict", stem+"_SHA256SUMS")
	check.Dir = out
	if printed, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, printed)
	}
}

// pack packs a program that becomes the binary: what counts is who it is, and packing a debug build takes long.
func pack(t *testing.T, out string) (stem, platform string) {
	t.Helper()
	built := t.TempDir()
	stub := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\"\n", binary())
	if err := os.WriteFile(filepath.Join(built, "provider-workspace"), []byte(stub), 0o755); err != nil {
		t.Fatal(err)
	}
	said := identity(t)
	platform = "linux_" + runtime.GOARCH
	command := exec.Command("python3", ".ci/archive.py", "--name", "provider-workspace", "--version", said["version"],
		"--source", said["source"], "--build", said["build"], "--out", out, platform+"=any="+built)
	command.Dir = "../.."
	printed, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	stem = filepath.Join(out, "provider-workspace_"+said["version"])
	for _, file := range []string{stem + "_" + platform + ".tar.gz", stem + "_SHA256SUMS", stem + ".lock.hcl"} {
		if !strings.Contains(string(printed), file+"\n") {
			t.Errorf("%s is not named:\n%s", file, printed)
		}
	}
	return stem, platform
}

// identity is what a build says to the person who packs it.
func identity(t *testing.T) map[string]string {
	t.Helper()
	output, err := exec.Command(binary(), "doctor", "--json").Output()
	// Its exit code judges the machine.
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var found struct {
		Provider struct{ Version, Source, Build string }
	}
	if err := json.Unmarshal(output, &found); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return map[string]string{
		"version": found.Provider.Version, "source": found.Provider.Source, "build": found.Provider.Build,
	}
}

// sumOfMember is the sum of a file in an archive.
func sumOfMember(t *testing.T, archive, name string) string {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	members := tar.NewReader(unpacked)
	for {
		header, err := members.Next()
		if err != nil {
			t.Fatalf("no %s in %s: %v", name, archive, err)
		}
		if header.Name == name {
			sum := sha256.New()
			if _, err := io.Copy(sum, members); err != nil {
				t.Fatal(err)
			}
			return hex.EncodeToString(sum.Sum(nil))
		}
	}
}
