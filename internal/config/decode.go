package config

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/knadh/koanf/v2"
)

// decode checks the shape of every layer, puts the layers on top of each other and fills a Config from the result.
func (l *loader) decode() *Config {
	var cfg Config
	merged := koanf.New(".")
	for _, layer := range l.layers {
		l.checkShape(reflect.TypeFor[Config](), "", layer.values.Raw(), layer.origin)
		if err := merged.Merge(layer.values); err != nil {
			l.sourceProblem("configuration", err)
		}
	}
	raw := merged.Raw()
	if _, isList := raw["streams"].([]any); !isList {
		raw["streams"] = []any{map[string]any{"name": defaultStream}}
	}
	if _, isList := raw["outboxes"].([]any); !isList {
		raw["outboxes"] = []any{map[string]any{"table": defaultOutbox}}
	}
	l.fillStruct(reflect.ValueOf(&cfg).Elem(), "", raw)
	return &cfg
}

// The lists where none are given: the table that the migrations make, and a stream for it.
const (
	defaultStream = "OUTBOX"
	defaultOutbox = "public.outbox"
)

// checkShape notes keys that do not exist, and values where keys should be.
func (l *loader) checkShape(t reflect.Type, path string, raw any, origin func(string) string) {
	switch {
	case raw == nil:
	case t.Kind() == reflect.Struct:
		fields, ok := raw.(map[string]any)
		if !ok {
			l.misshapen(path, raw, origin, "is a value where keys are expected", "write keys below it, such as "+l.exampleBelow(path))
			return
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			l.checkField(t, join(path, name), name, fields[name], origin)
		}
	case t.Kind() == reflect.Slice:
		items, ok := raw.([]any)
		if !ok {
			l.misshapen(path, raw, origin, "is not a list", "write one item a line, each behind a dash")
			return
		}
		for i, item := range items {
			l.checkShape(t.Elem(), fmt.Sprintf("%s[%d]", path, i), item, origin)
		}
	default:
		switch raw.(type) {
		case map[string]any, []any:
			l.misshapen(path, raw, origin, "takes one value", "write the value behind the key")
		}
	}
}

func (l *loader) checkField(t reflect.Type, path, name string, raw any, origin func(string) string) {
	for i := range t.NumField() {
		if tag(t.Field(i)) == name {
			l.checkShape(t.Field(i).Type, path, raw, origin)
			return
		}
	}
	secret, isFile := strings.CutSuffix(path, fileSuffix)
	if isFile && l.keys[general(secret)].Secret {
		return
	}
	l.unknown(path, origin(path), nearest(general(path), l.paths()))
}

// paths lists every key and every group of keys.
func (l *loader) paths() []string {
	all := map[string]bool{}
	for path := range l.keys {
		for path != "" {
			all[strings.TrimSuffix(path, "[]")] = true
			path = path[:max(strings.LastIndex(path, "."), 0)]
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (l *loader) exampleBelow(path string) string {
	below := slices.Sorted(maps.Keys(l.keys))
	i := slices.IndexFunc(below, func(p string) bool { return strings.HasPrefix(p, general(path)+".") })
	return last(below[i])
}

// unknown notes a key or variable that does not exist.
func (l *loader) unknown(name, origin, near string) {
	reason, mend := "is not a key of this program", "remove it; docs/configuration.md lists every key"
	if near != "" {
		mend = "did you mean " + near + "?"
	}
	switch general(name) {
	case "poll", "outboxes[].feature.unannounced", "outboxes[].unannounced":
		reason, mend = "is not in this version", "remove it"
	}
	l.problems = append(l.problems, Problem{Key: name, Origin: origin, Reason: reason, Mend: mend})
}

func (l *loader) misshapen(path string, raw any, origin func(string) string, reason, mend string) {
	l.seen[path] = seen{l.shown(path, fmt.Sprint(raw)), origin(path)}
	l.problem(path, reason, mend)
}

func (l *loader) fillStruct(v reflect.Value, path string, raw map[string]any) {
	for i := range v.NumField() {
		name := tag(v.Type().Field(i))
		field, child := v.Field(i), join(path, name)
		switch field.Kind() {
		case reflect.Struct:
			below, _ := raw[name].(map[string]any)
			l.fillStruct(field, child, below)
		case reflect.Slice:
			items, _ := raw[name].([]any)
			l.seen[child] = seen{origin: l.origin(child)}
			field.Set(reflect.MakeSlice(field.Type(), len(items), len(items)))
			for i, item := range items {
				below, _ := item.(map[string]any)
				l.fillStruct(field.Index(i), fmt.Sprintf("%s[%d]", child, i), below)
			}
		default:
			l.fillLeaf(field, child, raw[name], raw[name+fileSuffix])
		}
	}
}

// fillLeaf sets a field to what was given, to the content of the file that was given for a secret, or to the default.
func (l *loader) fillLeaf(v reflect.Value, path string, raw, file any) {
	key := l.keys[general(path)]
	origin := l.origin(path)
	if key.Secret && file != nil && (raw == nil || l.strength(path+fileSuffix) >= l.strength(path)) {
		origin = l.origin(path + fileSuffix)
		if raw != nil && l.strength(path+fileSuffix) == l.strength(path) {
			l.seen[path] = seen{l.shown(path, fmt.Sprint(raw)), origin}
			l.problem(path, "is given twice, as "+last(path)+" and as "+last(path)+fileSuffix, "keep one of the two")
			return
		}
		raw, origin = l.readSecret(path, fmt.Sprint(file), origin)
	}
	if raw == nil {
		raw, origin = key.Default, "default"
		if key.Default == "" {
			v.SetZero()
			l.seen[path] = seen{l.shown(path, formatGiven(v)), origin}
			return
		}
		if v.Kind() == reflect.String {
			v.SetString(key.Default)
			l.seen[path] = seen{l.shown(path, key.Default), origin}
			return
		}
	}
	l.seen[path] = seen{l.shown(path, fmt.Sprint(raw)), origin}
	if err := parseValue(v, raw); err != nil {
		l.problem(path, err.reason, err.mend)
		_ = parseValue(v, key.Default) // so that relations to it are still checked
		return
	}
	l.checkAllowed(key, path, v)
}

// formatGiven is formatValue with nothing for what is not given.
func formatGiven(v reflect.Value) string {
	if v.IsZero() {
		return ""
	}
	return formatValue(v)
}

// checkAllowed notes a value that the key does not allow, or not in this version.
func (l *loader) checkAllowed(key Key, path string, v reflect.Value) {
	value := formatValue(v)
	isDefault := value == key.Default || formatGiven(v) == key.Default
	switch {
	case slices.Contains(key.Later, value), slices.Contains(key.Later, anyOther) && !isDefault:
		l.problem(path, "is not in this version", "remove it, or write "+quoted(key.Default))
	case len(key.Values) > 0 && !slices.Contains(key.Values, value):
		mend := "write " + alternatives(key.Values)
		if near := nearest(value, key.Values); near != "" && len(key.Values) > 1 {
			mend += "; did you mean " + near + "?"
		}
		l.problem(path, "is not allowed", mend)
	}
}

func quoted(value string) string {
	if value == "" {
		return `""`
	}
	return value
}

func alternatives(values []string) string {
	var words []string
	for _, v := range values {
		words = append(words, quoted(v))
	}
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// readSecret gives the content of a file without the line end that editors leave.
func (l *loader) readSecret(path, file, origin string) (any, string) {
	data, err := os.ReadFile(file)
	text := strings.TrimRight(string(data), "\r\n")
	origin += ", file " + file
	if err == nil && text != "" {
		return text, origin
	}
	why := "is empty"
	if err != nil {
		why = reason(err)
	}
	l.problems = append(l.problems, Problem{
		Key: path + fileSuffix, Value: file, Origin: l.origin(path + fileSuffix),
		Reason: "read secret: " + why, Mend: "name a file that holds the secret and that this user can read",
	})
	l.failed[path] = true
	return nil, origin
}

// origin names the strongest layer that has the path.
func (l *loader) origin(path string) string {
	if i := l.strength(path); i >= 0 {
		return l.layers[i].origin(path)
	}
	return "default"
}

// strength is the index of the strongest layer that has the path, or the list that it lies in; -1 for none.
func (l *loader) strength(path string) int {
	list, _, _ := strings.Cut(path, "[")
	for i := len(l.layers) - 1; i >= 0; i-- {
		if l.layers[i].values.Get(list) != nil {
			return i
		}
	}
	return -1
}

// shown is a value as it may be printed.
func (l *loader) shown(path, value string) string {
	if l.keys[general(path)].Secret {
		return maskSecret(general(path), value)
	}
	return value
}

func tag(f reflect.StructField) string { return f.Tag.Get("koanf") }

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// general gives a path as Keys has it: "streams[2].name" as "streams[].name".
func general(path string) string {
	open, end := strings.IndexByte(path, '['), strings.IndexByte(path, ']')
	if open < 0 || end < open {
		return path
	}
	return path[:open+1] + path[end:] // no list lies inside another
}
