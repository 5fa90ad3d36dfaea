package arch

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// ban is an import that a package must not have, directly or through another package of this module, and why.
type ban struct{ path, reason string }

// pure are the packages whose answer depends on their arguments alone.
var pure = []string{"decoder", "event", "geometry", "router"}

var impure = []ban{
	{"os", "reads the machine"},
	{"io/fs", "reads the machine"},
	{"io/ioutil", "reads the machine"},
	{"net", "talks to others"},
	{"database/sql", "talks to others"},
	{"syscall", "talks to the system"},
	{"log", "a library returns errors"},
	{"math/rand", "an answer must be repeatable"},
	{"crypto/rand", "an answer must be repeatable"},
	{"context", "nothing here waits"},
	{module + "/slot", "the arrow points the other way"},
	{module + "/publish", "the arrow points the other way"},
	{module + "/internal", "the arrow points the other way"},
	{module + "/migrations", "the arrow points the other way"},
	{"github.com/jackc", "the source is not its business"},
	{"github.com/nats-io", "the destination is not its business"},
}

// arrows are the imports that a package must not have beyond those of the pure packages.
var arrows = map[string][]ban{
	"decoder": {{module, "bytes come first: it knows none of our packages"}},
	"event": {
		{module + "/geometry", "an event does not need a geometry"},
		{module + "/router", "the arrow points the other way"},
		{"github.com/uber/h3-go", "cells are the geometry's"},
	},
	"geometry": {
		{module + "/event", "a geometry is of no event"},
		{module + "/decoder", "a geometry is of no message"},
		{module + "/router", "the arrow points the other way"},
	},
	"publish": {
		{"github.com/jackc", "the destination knows no source"},
		{"github.com/uber/h3-go", "a message is routed before it is published"},
		{"github.com/twpayne/go-geom", "a message is routed before it is published"},
		{module + "/slot", "the destination knows no source"},
		{module + "/geometry", "a message is routed before it is published"},
		{module + "/router", "a message is routed before it is published"},
		{module + "/internal", "the arrow points the other way"},
	},
	"slot": {
		{"github.com/nats-io", "the source knows no destination"},
		{module + "/publish", "the source knows no destination"},
		{module + "/router", "rows are routed by who takes them"},
		{module + "/internal", "the arrow points the other way"},
	},
	"internal/oracle": {
		{module + "/slot", "it must not be wrong as the bridge is"},
		{module + "/publish", "it must not be wrong as the bridge is"},
		{module + "/router", "it must not be wrong as the bridge is"},
		{module + "/internal/relay", "it must not be wrong as the bridge is"},
	},
}

func TestPurePackagesReachNothingThatActs(t *testing.T) {
	files := source(t)
	for _, pkg := range pure {
		checkImports(t, files, pkg, impure)
	}
}

func TestArrowsPointInward(t *testing.T) {
	files := source(t)
	for pkg, bans := range arrows {
		checkImports(t, files, pkg, bans)
	}
}

// checkImports follows the imports of a package within the module, so that a ban cannot be passed by.
func checkImports(t *testing.T, files []*file, pkg string, bans []ban) {
	t.Helper()
	if !slices.ContainsFunc(files, func(f *file) bool { return f.pkg == pkg }) {
		t.Errorf("there is no package %s", pkg)
	}
	seen := map[string]bool{}
	todo := []string{pkg}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		if seen[at] {
			continue
		}
		seen[at] = true
		for _, f := range files {
			if f.pkg == at {
				todo = append(todo, checkFile(t, f, pkg, bans)...)
			}
		}
	}
}

// checkFile reports a file's banned imports and gives the packages of this module that it imports besides.
func checkFile(t *testing.T, f *file, pkg string, bans []ban) []string {
	t.Helper()
	var allowed []string
	for _, name := range f.imports {
		i := slices.IndexFunc(bans, func(b ban) bool { return under(name, b.path) })
		if i >= 0 {
			t.Errorf("%s imports %s, which %s must not reach: %s", f.path, name, pkg, bans[i].reason)
		} else if under(name, module) {
			allowed = append(allowed, strings.TrimPrefix(name, module+"/"))
		}
	}
	return allowed
}

func TestPurePackagesHaveNoClockAndNoGoroutine(t *testing.T) {
	for _, f := range source(t) {
		if !slices.Contains(pure, f.pkg) {
			continue
		}
		for _, node := range f.calls("time", "Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker") {
			t.Errorf("%s: %s has no clock: the time is an argument", f.at(node), f.pkg)
		}
		ast.Inspect(f.tree, func(node ast.Node) bool {
			if _, ok := node.(*ast.GoStmt); ok {
				t.Errorf("%s: %s starts no goroutine", f.at(node), f.pkg)
			}
			return true
		})
	}
}

func TestNothingImportsACommand(t *testing.T) {
	for _, f := range source(t) {
		for _, name := range f.imports {
			if under(name, module+"/cmd") {
				t.Errorf("%s imports %s: a command is wiring that nothing builds on", f.path, name)
			}
		}
	}
}

// testOnly are the packages that only tests may import.
var testOnly = []string{"testing", module + "/internal/testkit"}

func TestProgramImportsNothingThatIsForTests(t *testing.T) {
	for _, f := range source(t) {
		if under(f.pkg, "internal/testkit") {
			continue
		}
		for _, name := range f.imports {
			for _, banned := range testOnly {
				if under(name, banned) {
					t.Errorf("%s imports %s, which is for tests", f.path, name)
				}
			}
		}
	}
}

func TestOnlyMainEndsTheProcess(t *testing.T) {
	for _, f := range source(t) {
		if path.Base(f.path) == "main.go" && f.name == "main" {
			continue
		}
		for _, node := range append(f.calls("os", "Exit"), f.calls("log", "Fatal", "Fatalf", "Fatalln")...) {
			t.Errorf("%s: only main.go ends the process: return an error", f.at(node))
		}
	}
}

func TestNothingRunsBeforeMain(t *testing.T) {
	for _, f := range source(t) {
		for _, declared := range f.tree.Decls {
			if fn, ok := declared.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: no init: work before main cannot fail, be ordered or be tested", f.at(fn))
			}
		}
	}
}

func TestNothingSleeps(t *testing.T) {
	for _, f := range source(t) {
		for _, node := range f.calls("time", "Sleep") {
			t.Errorf("%s: a sleep cannot be cancelled: wait on a timer and the context", f.at(node))
		}
	}
}

func TestContextIsTheFirstParameter(t *testing.T) {
	for _, f := range source(t) {
		ast.Inspect(f.tree, func(node ast.Node) bool {
			signature, ok := node.(*ast.FuncType)
			if !ok || signature.Params == nil {
				return true
			}
			for i, parameter := range signature.Params.List {
				if i > 0 && isContext(parameter.Type) && !takesTest(signature) {
					t.Errorf("%s: the context is the first parameter", f.at(parameter))
				}
			}
			return true
		})
	}
}

func isContext(expression ast.Expr) bool {
	selector, ok := expression.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := selector.X.(*ast.Ident)
	return ok && pkg.Name == "context" && selector.Sel.Name == "Context"
}

// takesTest reports whether the first parameter is a testing.TB, which by custom stands before the context.
func takesTest(signature *ast.FuncType) bool {
	selector, ok := signature.Params.List[0].Type.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "TB"
}

func TestPackagesAreNamedByWhatTheyDo(t *testing.T) {
	vague := []string{"util", "utils", "common", "types", "pkg", "helpers", "misc", "base", "shared"}
	for _, f := range source(t) {
		for _, part := range append(strings.Split(f.pkg, "/"), f.name) {
			if slices.Contains(vague, part) {
				t.Errorf("%s: %q says nothing about what is inside", f.path, part)
			}
		}
	}
}
