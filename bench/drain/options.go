package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// options say what is measured.
type options struct {
	rows, rounds, aggregates, payload, window int

	shapes   []shape
	tidegate string // the program; empty: it is built
	rivals   []rival
	profile  string // a folder for profiles of the bridge; empty: none are taken
	json     bool
}

// rival is another bridge that takes its turn: another build, or the same one in another environment.
type rival struct {
	name, program string
	env           []string
}

// shape is how the rows of the backlog were committed.
type shape struct {
	name     string
	perTx    int
	describe string
}

var shapes = []shape{
	{"S", 1, "one row a transaction"},
	{"B", 100, "100 rows a transaction"},
}

func parse(args []string, log io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("drain", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.IntVar(&o.rows, "rows", 500_000, "rows in the backlog")
	flags.IntVar(&o.rounds, "rounds", 3, "times that every contender drains it")
	flags.IntVar(&o.aggregates, "aggregates", 10_000, "aggregates that the rows belong to, each with a subject of its own")
	flags.IntVar(&o.payload, "payload", 316, "bytes of a row's JSON payload")
	flags.IntVar(&o.window, "window", 4096, "messages in flight, of the bridge and of the raw publish")
	names := flags.String("shapes", "S,B", "S: one row a transaction; B: 100 rows a transaction")
	flags.StringVar(&o.tidegate, "tidegate", "", "the program to measure (default: built from this module)")
	flags.StringVar(&o.profile, "profile", "", "`folder` for CPU and allocation profiles of the bridge, which then runs inside a child of this program")
	flags.BoolVar(&o.json, "json", false, "print the result as JSON")
	flags.Func("also", "`name=program[,VARIABLE=value...]`: another bridge that takes its turn; no program: the same one", func(s string) error {
		r, err := parseRival(s)
		o.rivals = append(o.rivals, r)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	return o, o.complete(strings.Split(*names, ","))
}

func parseRival(s string) (rival, error) {
	name, rest, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return rival{}, fmt.Errorf("want name=program[,VARIABLE=value...]")
	}
	parts := strings.Split(rest, ",")
	return rival{name: name, program: parts[0], env: parts[1:]}, nil
}

// complete checks the options and makes paths absolute: the programs run in a folder of their own.
func (o *options) complete(names []string) (err error) {
	for _, name := range names {
		i := slices.IndexFunc(shapes, func(s shape) bool { return s.name == name })
		if i < 0 {
			return fmt.Errorf("unknown shape %q: S and B are known", name)
		}
		o.shapes = append(o.shapes, shapes[i])
	}
	for _, n := range []int{o.rows, o.rounds, o.aggregates, o.window} {
		if n <= 0 {
			return fmt.Errorf("rows, rounds, aggregates and window must be above 0")
		}
	}
	if o.payload < leastPayload {
		return fmt.Errorf("a payload has at least %d bytes", leastPayload)
	}
	paths := []*string{&o.tidegate, &o.profile}
	for i := range o.rivals {
		paths = append(paths, &o.rivals[i].program)
	}
	for _, p := range paths {
		if *p == "" {
			continue
		}
		if *p, err = filepath.Abs(*p); err != nil {
			return err
		}
	}
	if o.profile != "" {
		return os.MkdirAll(o.profile, 0o755)
	}
	return nil
}
