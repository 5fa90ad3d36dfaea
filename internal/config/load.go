package config

import (
	"cmp"
	"os"
	"slices"

	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// DefaultFile is read when no file is named; it may be missing.
const DefaultFile = "tidegate.yaml"

// FileVariable is the environment variable that names the file when no flag does.
const FileVariable = envPrefix + "CONFIG"

// Options say what a configuration is read from.
type Options struct {
	File    string         // a file that must exist; "": the one FileVariable names, else DefaultFile where it exists
	Environ []string       // "NAME=value"; nil: the process's own
	Flags   *pflag.FlagSet // those of AddFlags that were set; may be nil
}

// Load reads and checks a configuration. An error is of type Problems and holds everything that is wrong; the files
// that secrets and credentials lie in are opened, but no server is asked.
func Load(o Options) (*Config, *Origins, error) {
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	l := newLoader()
	for _, add := range []func(Options){l.addFile, l.addEnvironment, l.addFlags} {
		add(o)
	}
	cfg := l.decode()
	l.derive(cfg)
	l.check(cfg)
	if len(l.problems) > 0 {
		return nil, nil, Problems(l.sorted())
	}
	return cfg, &Origins{seen: l.seen}, nil
}

// loader holds what is known while a configuration is read.
type loader struct {
	keys     map[string]Key
	layers   []layer // the stronger come later
	seen     map[string]seen
	failed   map[string]bool // keys that have a problem of their own: relations are not checked
	problems []Problem
}

// layer is one source of values.
type layer struct {
	values *koanf.Koanf
	origin func(path string) string
}

// seen is a value as it is shown, and where it came from.
type seen struct{ value, origin string }

func newLoader() *loader {
	l := &loader{keys: map[string]Key{}, seen: map[string]seen{}, failed: map[string]bool{}}
	for _, k := range Keys() {
		l.keys[k.Path] = k
	}
	return l
}

// problem notes that the value of path is wrong; only the first problem of a path is kept.
func (l *loader) problem(path, reason, mend string) {
	if l.failed[path] {
		return
	}
	l.failed[path] = true
	s := l.seen[path]
	l.problems = append(l.problems, Problem{Key: path, Value: shorten(s.value), Origin: s.origin, Reason: reason, Mend: mend})
}

// sorted gives the problems in the order of the documentation, those of whole sources and unknown keys first.
func (l *loader) sorted() []Problem {
	place := map[string]int{}
	for i, k := range Keys() {
		place[k.Path] = i + 1
	}
	slices.SortStableFunc(l.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(place[general(a.Key)], place[general(b.Key)]), cmp.Compare(a.Key, b.Key))
	})
	return l.problems
}

// Origins knows where each value of a configuration came from.
type Origins struct{ seen map[string]seen }

// Of names the origin of a key, such as "slot.name" or "streams[0].name": "default", "tidegate.yaml:12",
// "environment TIDEGATE_SLOT_NAME" or "flag --slot". It is "" for a key that does not exist.
func (o *Origins) Of(path string) string { return o.seen[path].origin }
