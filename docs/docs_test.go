// Package docs_test holds the documentation to what the program is.
package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/tidegate-cdc/tidegate/internal/config"
)

// page is one page of the documentation; path is relative to the module.
type page struct{ path, text string }

// pages reads every page, those that are generated too.
func pages(t *testing.T) []page {
	t.Helper()
	var list []page
	for _, pattern := range []string{"../*.md", "*.md", "decisions/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			list = append(list, page{filepath.ToSlash(filepath.Join("docs", file)), read(t, file)})
		}
	}
	if len(list) < 10 {
		t.Fatalf("found %d pages: the documentation is not there", len(list))
	}
	return list
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	code     = regexp.MustCompile("`([^`\n]+)`")
	fenced   = regexp.MustCompile("(?ms)^ *```([a-z]*)\n(.*?)^ *```$")
	aFolder  = regexp.MustCompile(`^[a-z.][\w.-]*(/[\w.*-]+)*/?$`)
	aKey     = regexp.MustCompile(`^(source|postgres|slot|streams\[\]|outboxes\[\]|nats|publish|park|retention|monitor|http|log)(\.[a-z0-9_]+)+$`)
	aCommand = regexp.MustCompile(`\btidegate ([a-z]+)(?: ([a-z]+))?`)
	aMetric  = regexp.MustCompile(`\b(?:tidegate|outbox)_[a-z_]+[a-z]\b`)
	aHeader  = regexp.MustCompile(`\bTidegate-[A-Z][A-Za-z-]*[a-z]\b`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(p.text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := filepath.Join("..", p.path)
			if file != "" {
				target = filepath.Join("..", filepath.Dir(p.path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link %s: %v", p.path, m[1], err)
			} else if anchor != "" && !slices.Contains(anchors(read(t, target)), anchor) {
				t.Errorf("%s: link %s: there is no such heading", p.path, m[1])
			}
		}
	}
}

// anchors gives the names under which a page's headings are linked to.
func anchors(text string) []string {
	var list []string
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		list = append(list, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1]))
	}
	return list
}

// TestPathsExist checks what is written as code and begins with a folder of the module.
func TestPathsExist(t *testing.T) {
	for _, p := range pages(t) {
		for _, m := range code.FindAllStringSubmatch(p.text, -1) {
			first, _, nested := strings.Cut(m[1], "/")
			if _, err := os.Stat(filepath.Join("..", first)); err != nil || !nested || !aFolder.MatchString(m[1]) || first == "bin" {
				continue
			}
			if found, _ := filepath.Glob(filepath.Join("..", m[1])); len(found) == 0 {
				t.Errorf("%s: %s does not exist", p.path, m[1])
			}
		}
	}
}

func TestKeysAreOfTheConfiguration(t *testing.T) {
	known := map[string]bool{}
	for _, k := range config.Keys() {
		for path := k.Path; ; path = path[:strings.LastIndexByte(path, '.')] {
			known[path] = true // the group of a key may be named too
			if !strings.Contains(path, ".") {
				break
			}
		}
		if k.Secret {
			known[k.Path+"_file"] = true
		}
	}
	seen := 0
	for _, p := range pages(t) {
		for _, m := range code.FindAllStringSubmatch(p.text, -1) {
			key, _, _ := strings.Cut(m[1], ":")
			if key == "nats.go" || strings.HasSuffix(key, ".md") || !aKey.MatchString(key) {
				continue
			}
			if seen++; !known[key] {
				t.Errorf("%s: there is no key %s", p.path, key)
			}
		}
	}
	if seen < 50 {
		t.Errorf("found %d keys: they are written in another way now", seen)
	}
}

func TestConfigurationsLoad(t *testing.T) {
	seen := 0
	for _, p := range pages(t) {
		for _, m := range fenced.FindAllStringSubmatch(p.text, -1) {
			if m[1] != "yaml" {
				continue
			}
			seen++
			file := filepath.Join(t.TempDir(), "tidegate.yaml")
			text := regexp.MustCompile(`(?m)^ *creds_file: .*$`).ReplaceAllString(m[2], "") // it is not on this machine
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := config.Load(config.Options{File: file, Environ: []string{}}); err != nil {
				t.Errorf("%s: %v\n%s", p.path, err, m[2])
			}
		}
	}
	if seen < 2 {
		t.Errorf("found %d configurations", seen)
	}
}

// TestCommandsExist compares with docs/commands.md, which is made from the commands themselves.
func TestCommandsExist(t *testing.T) {
	commands := read(t, "commands.md")
	isCommand := func(name string) bool { return strings.Contains(commands, "\n## tidegate "+name+"\n") }
	seen := 0
	for _, p := range pages(t) {
		for _, text := range commandTexts(p.text) {
			m := aCommand.FindStringSubmatch(text)
			if m == nil {
				continue
			}
			seen++
			if !isCommand(m[1]) || m[2] != "" && strings.Contains(commands, "\n## tidegate "+m[1]+" ") && !isCommand(m[1]+" "+m[2]) {
				t.Errorf("%s: there is no command %q", p.path, m[0])
			}
		}
	}
	if seen < 10 {
		t.Errorf("found %d commands", seen)
	}
}

// commandTexts gives what a reader is shown to type: code that begins with the program's name, and lines behind a prompt.
func commandTexts(text string) []string {
	var list []string
	for _, m := range code.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(m[1], "tidegate ") {
			list = append(list, m[1])
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "$ tidegate ") {
			list = append(list, line)
		}
	}
	return list
}

// TestMetricsExist compares with docs/metrics.md, which is made from the registry.
func TestMetricsExist(t *testing.T) {
	metrics := read(t, "metrics.md")
	for _, p := range pages(t) {
		for _, m := range code.FindAllStringSubmatch(p.text, -1) {
			for _, name := range aMetric.FindAllString(m[1], -1) {
				if !strings.Contains(m[1], "/") && !strings.Contains(metrics, "| `"+name+"` |") {
					t.Errorf("%s: there is no metric %s", p.path, name)
				}
			}
		}
	}
}

func TestExitCodesAreExplained(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| (\d) \|`)
	for _, p := range []string{"../README.md", "operations.md"} {
		text := read(t, p)
		for _, m := range rows.FindAllStringSubmatch(read(t, "commands.md"), -1) {
			if !strings.Contains(text, "\n| "+m[1]+" |") {
				t.Errorf("%s does not explain exit code %s", p, m[1])
			}
		}
	}
}

// TestSectionsThatErrorsNameExist looks for the sections of operations.md that the program sends an operator to.
func TestSectionsThatErrorsNameExist(t *testing.T) {
	sections := anchors(read(t, "operations.md"))
	reference := regexp.MustCompile(`docs/operations\.md, \\"([^"\\]+)\\"`)
	err := filepath.WalkDir("..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, m := range reference.FindAllStringSubmatch(read(t, path), -1) {
			if !slices.Contains(sections, anchors("# " + m[1])[0]) {
				t.Errorf("%s: operations.md has no section %q", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
