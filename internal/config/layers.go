package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	koanfyaml "github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// AddFlags defines the flags of the keys that have one.
func AddFlags(fs *pflag.FlagSet) {
	for _, k := range Keys() {
		if k.Flag != "" {
			fs.String(k.Flag, "", "sets "+k.Path)
		}
	}
}

// addFlags adds the flags that were set.
func (l *loader) addFlags(o Options) {
	if o.Flags == nil {
		return
	}
	values := map[string]any{}
	for _, k := range Keys() {
		if f := o.Flags.Lookup(k.Flag); k.Flag != "" && f != nil && f.Changed {
			values[k.Path] = f.Value.String()
		}
	}
	k := koanf.New(".")
	if err := k.Load(confmap.Provider(values, "."), nil); err != nil {
		l.sourceProblem("flags", err)
	}
	l.layers = append(l.layers, layer{k, func(path string) string { return "flag --" + l.keys[path].Flag }})
}

// addEnvironment adds the variables of the keys. An empty variable counts as not set: compose files and charts pass
// those for what they leave open.
func (l *loader) addEnvironment(o Options) {
	paths := map[string]string{}
	for _, name := range l.variables() {
		paths[envName(name)] = name
	}
	k := koanf.New(".")
	err := k.Load(env.Provider(".", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return o.Environ },
		TransformFunc: func(name, value string) (string, any) {
			path, known := paths[name]
			switch {
			case value == "" || name == FileVariable || isServiceLink(name):
				return "", nil
			case !known:
				l.unknown(name, "environment", nearestVariable(name, paths))
				return "", nil
			case path == "streams" || path == "outboxes":
				return l.list(path, value)
			default:
				return path, value
			}
		},
	}), nil)
	if err != nil {
		l.sourceProblem("environment", err)
	}
	l.layers = append(l.layers, layer{k, func(path string) string {
		list, _, _ := strings.Cut(path, "[")
		return "environment " + envName(list)
	}})
}

// variables lists what can be set by environment: plain keys, their _file forms, and the lists.
func (l *loader) variables() []string {
	paths := []string{"streams", "outboxes"}
	for _, k := range l.keys {
		if k.Env() == "" {
			continue
		}
		paths = append(paths, k.Path)
		if k.Secret {
			paths = append(paths, k.Path+fileSuffix)
		}
	}
	return paths
}

// isServiceLink reports whether Kubernetes sets such a variable for a service that is called tidegate.
func isServiceLink(name string) bool {
	rest := strings.TrimPrefix(name, envPrefix)
	return rest == "PORT" || strings.HasPrefix(rest, "PORT_") || rest == "SERVICE_HOST" || strings.HasPrefix(rest, "SERVICE_PORT")
}

func nearestVariable(name string, paths map[string]string) string {
	var names []string
	for n := range paths {
		names = append(names, n)
	}
	return nearest(name, names)
}

// list reads a list that is given as JSON. Numbers stay text, so that none is rounded.
func (l *loader) list(path, value string) (string, any) {
	d := json.NewDecoder(strings.NewReader(value))
	d.UseNumber()
	var items []any
	if err := d.Decode(&items); err != nil || d.Decode(new(any)) != io.EOF {
		l.seen[path] = seen{value, "environment " + envName(path)}
		l.problem(path, "is not a JSON list", `write it like [{"name": "OUTBOX"}]`)
		return "", nil
	}
	return path, items
}

// addFile adds the file's values.
func (l *loader) addFile(o Options) {
	name, must := fileName(o)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && !must {
		return
	}
	if err != nil {
		l.problems = append(l.problems, Problem{Origin: name, Reason: reason(err), Mend: "name a file that can be read with --config"})
		return
	}
	k, lines := koanf.New("."), map[string]int{}
	if err := parseFile(k, lines, data); err != nil {
		l.sourceProblem(name, err)
		return
	}
	l.layers = append(l.layers, layer{k, func(path string) string { return place(name, lines, path) }})
}

// fileName gives the file to read and whether it must exist.
func fileName(o Options) (string, bool) {
	if o.File != "" {
		return o.File, true
	}
	for _, entry := range o.Environ {
		if name, found := strings.CutPrefix(entry, FileVariable+"="); found && name != "" {
			return name, true
		}
	}
	return DefaultFile, false
}

// parseFile reads a YAML document into k and the lines of its keys into lines.
func parseFile(k *koanf.Koanf, lines map[string]int, data []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := d.Decode(new(yaml.Node)); err == nil {
		return errors.New("holds more than one YAML document")
	}
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		return nil
	}
	if doc.Content[0].Kind != yaml.MappingNode {
		return errors.New("holds no keys at its top")
	}
	// The parser refuses aliases without end, so what it took can be walked.
	if err := k.Load(fileData(data), koanfyaml.Parser()); err != nil {
		return err
	}
	noteLines(lines, "", doc.Content[0])
	return nil
}

// noteLines notes the line of every key and list item in n.
func noteLines(lines map[string]int, path string, n *yaml.Node) {
	switch n.Kind {
	case yaml.AliasNode:
		noteLines(lines, path, n.Alias)
	case yaml.SequenceNode:
		for i, item := range n.Content {
			child := fmt.Sprintf("%s[%d]", path, i)
			lines[child] = item.Line
			noteLines(lines, child, item)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			child := join(path, n.Content[i].Value)
			lines[child] = n.Content[i].Line
			noteLines(lines, child, n.Content[i+1])
		}
	}
}

// place gives file and line of a path, or of the nearest around it that stands in the file.
func place(name string, lines map[string]int, path string) string {
	for p := path; p != ""; p = p[:max(strings.LastIndexAny(p, ".["), 0)] {
		if n := lines[p]; n > 0 {
			return fmt.Sprintf("%s:%d", name, n)
		}
	}
	return name
}

// sourceProblem notes that a whole source cannot be read.
func (l *loader) sourceProblem(name string, err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	l.problems = append(l.problems, Problem{Origin: name, Reason: shorten(text), Mend: "mend the YAML there; docs/configuration.md shows the form"})
}

// reason gives what lies behind an error of the operating system, without the name that is printed beside it.
func reason(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// fileData is a koanf.Provider of bytes that were read already.
type fileData []byte

// ReadBytes gives the bytes.
func (d fileData) ReadBytes() ([]byte, error) { return d, nil }

// Read is not used where a parser is given.
func (d fileData) Read() (map[string]any, error) { return nil, errors.ErrUnsupported }
