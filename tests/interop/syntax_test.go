package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"provider-workspace/interop/hostfile"
)

// doctor reads HCL by itself. Whatever stands in a block that is not the provider's own, it finds fault with
// exactly where the host's library does.
func TestDoctorParsesWhatTheHostParses(t *testing.T) {
	files := []string{
		"", "\n", "# c", "/*", "/* */ /*", "\ufeff" + `settings {}`, "settings {\n}", "settings {}}", "\xff", "settings",
	}
	for _, body := range []string{
		// Arguments and blocks.
		``, `a = 1`, `a=1`, `a = 1 # c`, `a = 1 // c`, `a = 1 /* c */`, "a = /* c\n */ 1", `/* a = 1 */`, `a = 1 b = 2`, `a = 1, b = 2`,
		"a = 1\na = 2", "a =\n1", `a`, `a b`, `a = `, `= 1`, `1 = 1`, `a-b_c = 1`, `-a = 1`, `_a = 1`, `é = 1`, `a == 1`, `a : 1`,
		`a {}`, "a {\n}", `a { b = 1 }`, `a { b = 1, c = 2 }`, `a { b = 1 c = 2 }`, "a { b = 1\n}", "a {\n b = 1 }", `a { b {} }`,
		`a "b" {}`, `a "b" c {}`, `a "b" "c" {}`, `a "${b}" {}`, `a "$${b}" {}`, `a {} b {}`, `a {} # c`, `a "b"`, "a\n{}", "a \"b\n\" {}",
		`"a" = 1`, `a "b" = 1`, `a.b = 1`, `a[0] = 1`, "a {\n", "a {\n}}", `}`, "a = 1\r\nb = 2\r\n", "a = 1\rb = 2", "a = 1\t\nb\t=\t2",
		// Values.
		`a = -1`, `a = - 1`, `a = 1.5e3`, `a = 1.`, `a = .5`, `a = 1e`, `a = 1e+`, `a = 0x10`, `a = 1_000`, `a = 007`, `a = true`, `a = null`,
		`a = b`, `a = b.c`, `a = b . c`, `a = b["c"]`, `a = b[0].c[*].d`, `a = b.*.c`, `a = b.0`, `a = b.0.1`, `a = b.`, `a = b[`, `a = b[]`,
		`a = !b`, `a = b + c * d - e / f % g`, `a = b && c || d`, `a = b == c`, `a = b = c`, `a = b < c`, `a = b =< c`, `a = b +`, `a = + b`,
		`a = b & c`, `a = b ? c : d`, `a = b ? c`, `a = b ? c : d ? e : f`, `a = (b)`, "a = (\nb\n)", `a = ()`, `a = (b`, "a = b +\nc", "a = b\n+ c",
		`a = f()`, `a = f(1, 2)`, `a = f(1, 2,)`, "a = f(\n1,\n2\n)", `a = f(b...)`, `a = f(,)`, `a = f(1 2)`, `a = f(`, `a = x::f(1)`, `a = x::y`, `a = f (1)`,
		// Lists and objects.
		`a = []`, `a = [1]`, `a = [1,]`, `a = [1, 2]`, `a = [,]`, `a = [1 2]`, "a = [\n1,\n2\n]", "a = [\n1\n2\n]", "a = [1 # c\n, 2]", `a = [`, `a = [1`,
		`a = {}`, `a = { b = 1 }`, `a = { b = 1, c = 2 }`, `a = { b = 1, c = 2, }`, `a = { b = 1 c = 2 }`, "a = {\nb = 1\nc = 2\n}", "a = {\nb = 1,\nc = 2\n}",
		`a = { b : 1 }`, `a = { "b" = 1 }`, `a = { (b) = 1 }`, `a = { 1 = 2 }`, `a = { b }`, `a = { b = }`, "a = { b =\n1 }", "a = { b\n= 1 }", `a = { "${b}" = 1 }`,
		"a = {\n# c\nb = 1 # c\n\n\nc = 2\n}", `a = { , }`, `a = { b = 1,, c = 2 }`, "a = { b = 1\n, c = 2 }", `a = {`, `a = { b = 1`, `a = { true = 1 }`, `a = { b == 1 }`,
		`a = [for b in c : b]`, `a = [for b, d in c : d if d]`, "a = [\nfor b in c :\nb\n]", `a = { for b, d in c : b => d }`, `a = { for b, d in c : b => d... }`,
		`a = { for b, d in c : b => d... if d }`, `a = [for b in c]`, `a = [for in c : b]`, `a = { for b in c : b }`, `a = [for]`, `a = [format(1)]`, `a = [for b in c : b,]`,
		// Texts.
		`a = ""`, `a = "b`, "a = \"b\nc\"", `a = "\n\r\t\"\\"`, `a = "\x"`, `a = "\u00e9"`, `a = "\u00g9"`, `a = "\u00e"`, `a = "\U0001F980"`, `a = "\U0001F98"`,
		`a = "${b}"`, `a = "${b"`, `a = "${}"`, `a = "${ b }c${d}"`, `a = "${~ b ~}"`, `a = "${"b"}"`, `a = "${"${b}"}"`, `a = "$${b"`, `a = "$$${b}"`, `a = "$"`, `a = "$b"`,
		"a = \"${\nb\n}\"", `a = "${b}}"`, `a = "%{ if b }c%{ endif }"`, `a = "%{ if b }c%{ else }d%{ endif }"`, `a = "%{ for b in c }${b}%{ endfor }"`, `a = "%%{b"`, `a = "%{"`,
		`a = "%{ x }"`, `a = "%"`, `a = 'b'`, "a = `b`", `a = "b" "c"`, `a = "b" + "c"`, `a = "b"[0]`, `a = "{"`, `a = "}"`, `a = "#"`,
		"a = <<X\nb\nX", "a = <<X\nb\nX\nc = 1", "a = <<-X\n  b\n  X\n", "a = <<X\nb", "a = << X\nb\nX", "a = <<X b\nX", "a = <<X\nX", "a = f(<<X\nb\nX\n)", "a = [<<X\nb\nX\n]",
		"a = <<X\n}\nX", "a = <<X\n\"\n X \n", "a = <<X\r\nb\r\nX\r\n", "a = <<1\nb\n1", "a = <<X\n$${b}\nX",
		// Bytes.
		"a = \"\xff\"", "\xff = 1", "a = \"\x00\"", "\ufeffa = 1", "a = @", "a = ;", "a = 1;", "a = \\", "a = ~b", "a\u00a0= 1",
	} {
		files = append(files, "provider \"other\" {\n"+body+"\n}\n")
	}
	compareSyntax(t, files)
}

// The same of whole files in which letters were dropped, doubled and put elsewhere. Left out are texts with
// templates, whose pieces doctor takes one by one.
func TestDoctorParsesDamagedFilesAsTheHostDoes(t *testing.T) {
	content, err := os.ReadFile("../../examples/agent-network.hcl")
	if err != nil {
		t.Fatal(err)
	}
	const letters = "{}[]()=,\"\n #/*$%.:<-?!a1"
	random := rand.New(rand.NewPCG(1, 2))
	var files []string
	for range 200 {
		damaged := []byte(string(content))
		for range 1 + random.IntN(3) {
			at := random.IntN(len(damaged))
			switch random.IntN(3) {
			case 0:
				damaged = append(damaged[:at:at], damaged[at+1:]...)
			case 1:
				damaged = append(damaged[:at:at], append([]byte{letters[random.IntN(len(letters))]}, damaged[at:]...)...)
			default:
				damaged[at] = letters[random.IntN(len(letters))]
			}
		}
		files = append(files, string(damaged))
	}
	compareSyntax(t, files)
}

// compareSyntax tells where doctor's word on the syntax of files is not the host's. Most of its time each waits for a
// process, so several run at once.
func compareSyntax(t *testing.T, files []string) {
	t.Helper()
	var all sync.WaitGroup
	turns := make(chan struct{}, 8)
	for _, content := range files {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			_, problems := hclsyntax.ParseConfig([]byte(content), "agent.hcl", hcl.InitialPos)
			found, err := diagnose(t, []byte(content))
			if err != nil {
				t.Error(err)
			} else if problems.HasErrors() == found.Parsed {
				t.Errorf("%q\nthe host: %v\ndoctor: %+v", content, problems, found)
			}
		})
	}
	all.Wait()
}

// What a host refuses or passes over in silence is what doctor finds.
func TestDoctorFindsWhatAHostRefuses(t *testing.T) {
	whole, _ := initialize(t, binary())
	if found, err := diagnose(t, whole); err != nil || len(found.Problems) != 0 || found.Name != "workspace" {
		t.Fatalf("%v %+v", err, found)
	}
	for _, change := range [][2]string{
		{"policy \"workspace_reads\"", "polizy \"workspace_reads\""}, {"provider \"workspace\"", "provider"}, {"required_providers {", "required_providers \"x\" {"},
		{"source  =", "sauce   ="}, {"github.com/", "https://github.com/"}, {"primary {", "secondary {"}, {"  action = \"ask\"\n", ""}, {"\"ask\"", "\"asks\""},
		{"kind = \"resource\"", "kind = \"resources\""}, {"kind = \"resource\"", "king = \"resource\""}, {"workspace.*", "workspace"},
		{"required_providers {", "agent_profile \"default\" {\n  tools = []\n}\nrequired_providers {"}, {"  workspace = {", "  x {\n  }\n  workspace = {"},
	} {
		changed := strings.Replace(string(whole), change[0], change[1], 1)
		if changed == string(whole) {
			t.Fatalf("%q is not in it", change[0])
		}
		if _, err := hostfile.ParseAgent([]byte(changed)); err == nil {
			t.Errorf("%q: the host takes it", change)
		}
		if found, err := diagnose(t, []byte(changed)); err != nil || len(found.Problems) == 0 {
			t.Errorf("%q: doctor finds nothing: %v", change, err)
		}
	}
}

type diagnosis struct {
	Path     string
	Name     string
	Parsed   bool
	Problems []struct {
		Line    int
		Problem string
	}
}

// diagnose is what doctor says of a file.
func diagnose(t *testing.T, content []byte) (found diagnosis, err error) {
	file := filepath.Join(t.TempDir(), "agent.hcl")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return found, err
	}
	output, err := exec.Command(binary(), "doctor", "--json", "--agent-file", file).Output()
	// Its exit code judges the machine, too.
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return found, err
	}
	said := struct {
		File *diagnosis `json:"agent_file"`
	}{&found}
	if err := json.Unmarshal(output, &said); err != nil || found.Path == "" {
		return found, fmt.Errorf("%v\n%s\n%s", err, output, content)
	}
	return found, nil
}
