package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/tidegate-cdc/tidegate"

// file is one source file of the module, tests left out.
type file struct {
	path    string // from the module's root, with slashes
	pkg     string // its folder from there; "" is the root
	name    string // of the package clause
	imports []string
	set     *token.FileSet
	tree    *ast.File
}

// at gives a node's place as path:line.
func (f *file) at(node ast.Node) string {
	return f.path + ":" + strconv.Itoa(f.set.Position(node.Pos()).Line)
}

// source reads the module. The tools are a module of their own and are left out.
func source(t *testing.T) []*file {
	t.Helper()
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	var files []*file
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && skipped(path, entry.Name()) {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parse(root, path)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("found %d source files below %s: the module is not there", len(files), root)
	}
	return files
}

func skipped(path, name string) bool {
	if name == "testdata" || strings.HasPrefix(name, ".") {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil
}

func parse(root, path string) (*file, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return nil, err
	}
	f := &file{path: filepath.ToSlash(rel), name: tree.Name.Name, set: set, tree: tree}
	if dir := filepath.ToSlash(filepath.Dir(rel)); dir != "." {
		f.pkg = dir
	}
	for _, spec := range tree.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		f.imports = append(f.imports, name)
	}
	return f, nil
}

// under reports whether an import path is a package or lies below it.
func under(path, pkg string) bool { return path == pkg || strings.HasPrefix(path, pkg+"/") }

// calls gives every use of name from the package that the file imports as path: time.Now.
func (f *file) calls(path string, names ...string) []ast.Node {
	local := f.localName(path)
	if local == "" {
		return nil
	}
	var found []ast.Node
	ast.Inspect(f.tree, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == local {
			for _, name := range names {
				if selector.Sel.Name == name {
					found = append(found, selector)
				}
			}
		}
		return true
	})
	return found
}

// localName is what the file calls an imported package, empty when it does not import it.
func (f *file) localName(path string) string {
	for _, spec := range f.tree.Imports {
		if spec.Path.Value != strconv.Quote(path) {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path[strings.LastIndexByte(path, '/')+1:]
	}
	return ""
}
