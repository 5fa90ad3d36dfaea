package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// WriteYAML writes the configuration as YAML that Load reads, each value with its origin behind it. Secrets are masked.
func WriteYAML(w io.Writer, c *Config, o *Origins) error {
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(yamlStruct(reflect.ValueOf(c).Elem(), "", o)); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return e.Close()
}

func yamlStruct(v reflect.Value, path string, o *Origins) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := range v.NumField() {
		name := tag(v.Type().Field(i))
		field, child := v.Field(i), join(path, name)
		if !isShown(v, child) {
			continue
		}
		key := &yaml.Node{Kind: yaml.ScalarNode, Value: name}
		switch field.Kind() {
		case reflect.Struct:
			n.Content = append(n.Content, key, yamlStruct(field, child, o))
		case reflect.Slice:
			list := &yaml.Node{Kind: yaml.SequenceNode}
			for i := range field.Len() {
				list.Content = append(list.Content, yamlStruct(field.Index(i), fmt.Sprintf("%s[%d]", child, i), o))
			}
			n.Content = append(n.Content, key, list)
		default:
			n.Content = append(n.Content, key, yamlLeaf(field, child, o))
		}
	}
	return n
}

func yamlLeaf(v reflect.Value, path string, o *Origins) *yaml.Node {
	leaf := &yaml.Node{}
	if v.Kind() == reflect.String {
		leaf.SetString(showLeaf(v, path))
		if leaf.Value == "" {
			leaf.Style = yaml.DoubleQuotedStyle
		}
	} else {
		leaf.Kind, leaf.Value = yaml.ScalarNode, showLeaf(v, path)
	}
	leaf.LineComment = o.Of(path)
	return leaf
}

// showLeaf is the value as it may be printed.
func showLeaf(v reflect.Value, path string) string {
	for _, k := range Keys() {
		if k.Path == general(path) && k.Secret {
			return maskSecret(k.Path, v.String())
		}
	}
	return formatValue(v)
}

// isShown leaves out what does not apply: parts of the other kind of outbox, and columns that were not given.
func isShown(parent reflect.Value, path string) bool {
	switch p := parent.Interface().(type) {
	case Outbox:
		if last(path) == "columns" {
			return p.Columns != (Columns{})
		}
		return p.Kind != "event" || !forFeature(last(path)) && last(path) != "feature"
	case Columns:
		kind := "event"
		if p.FeatureID != "" {
			kind = "feature"
		}
		return !isOfOtherKind(last(path), kind)
	default:
		return true
	}
}

// WriteJSON writes {"config": …, "origins": {"slot.name": "default", …}}. Secrets are masked.
func WriteJSON(w io.Writer, c *Config, o *Origins) error {
	origins := map[string]string{}
	shown := jsonStruct(reflect.ValueOf(c).Elem(), "", o, origins)
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(map[string]any{"config": shown, "origins": origins}); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	_, err := w.Write(out.Bytes())
	return err
}

func jsonStruct(v reflect.Value, path string, o *Origins, origins map[string]string) map[string]any {
	out := map[string]any{}
	for i := range v.NumField() {
		name := tag(v.Type().Field(i))
		field, child := v.Field(i), join(path, name)
		if !isShown(v, child) {
			continue
		}
		switch field.Kind() {
		case reflect.Struct:
			out[name] = jsonStruct(field, child, o, origins)
		case reflect.Slice:
			items := []any{}
			for i := range field.Len() {
				items = append(items, jsonStruct(field.Index(i), fmt.Sprintf("%s[%d]", child, i), o, origins))
			}
			out[name] = items
		default:
			out[name], origins[child] = jsonLeaf(field, child), o.Of(child)
		}
	}
	return out
}

// jsonLeaf keeps numbers and truth values; all else is text as in YAML.
func jsonLeaf(v reflect.Value, path string) any {
	switch x := v.Interface().(type) {
	case bool, int:
		return x
	default:
		return showLeaf(v, path)
	}
}

// Address is the Postgres URL as it may be printed, without its password.
func Address(url string) string { return maskPostgres(strings.TrimSpace(url)) }
