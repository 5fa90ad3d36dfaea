package config_test

import (
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/tidegate-cdc/tidegate/internal/config"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

func TestEveryFieldIsADocumentedKey(t *testing.T) {
	documented := map[string]bool{}
	for _, k := range config.Keys() {
		if documented[k.Path] {
			t.Errorf("%s is listed twice", k.Path)
		}
		documented[k.Path] = true
		if k.Doc == "" || !strings.HasSuffix(k.Doc, ".") {
			t.Errorf("%s is explained by %q", k.Path, k.Doc)
		}
	}
	for _, path := range leaves(reflect.TypeFor[config.Config](), "") {
		if !documented[path] {
			t.Errorf("%s is not documented", path)
		}
		delete(documented, path)
	}
	for path := range documented {
		t.Errorf("%s is no field", path)
	}
}

// leaves lists the paths of all fields that hold one value.
func leaves(t reflect.Type, path string) []string {
	switch t.Kind() {
	case reflect.Slice:
		return leaves(t.Elem(), path+"[]")
	case reflect.Struct:
		var all []string
		for i := range t.NumField() {
			name := t.Field(i).Tag.Get("koanf")
			all = append(all, leaves(t.Field(i).Type, strings.TrimPrefix(path+"."+name, "."))...)
		}
		return all
	default:
		return []string{path}
	}
}

func TestNoVariableIsTakenForAKubernetesServiceOrAnother(t *testing.T) {
	names := map[string]string{config.FileVariable: "the file", "TIDEGATE_STREAMS": "streams", "TIDEGATE_OUTBOXES": "outboxes"}
	for _, k := range config.Keys() {
		for _, name := range []string{k.Env(), k.Env() + "_FILE"} {
			if k.Env() == "" || strings.HasSuffix(name, "_FILE") && !k.Secret && !strings.HasSuffix(k.Path, "_file") {
				continue
			}
			if other, taken := names[name]; taken {
				t.Errorf("%s means %s and %s", name, other, k.Path)
			}
			names[name] = k.Path
			if strings.HasPrefix(name, "TIDEGATE_PORT") || strings.HasPrefix(name, "TIDEGATE_SERVICE") {
				t.Errorf("%s may be set by Kubernetes", name)
			}
		}
	}
}

func TestDocumentationIsFresh(t *testing.T) {
	const page = "../../docs/configuration.md"
	if *update {
		if err := os.WriteFile(page, []byte(config.Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != config.Markdown() {
		t.Error("docs/configuration.md is stale: run go generate ./internal/config")
	}
}
