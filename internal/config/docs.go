package config

//go:generate go test . -run TestDocumentationIsFresh -update

import (
	"fmt"
	"reflect"
	"strings"
)

// Markdown is the page of all keys.
func Markdown() string {
	var b strings.Builder
	b.WriteString(docsHead)
	group := ""
	for _, k := range Keys() {
		if g := docsGroup(k.Path); g != group {
			group = g
			fmt.Fprintf(&b, "\n## %s\n\n| Key | Default | Form | Meaning |\n|---|---|---|---|\n", groupTitle(g))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Path, docsDefault(k), docsForm(k), docsMeaning(k))
	}
	return b.String()
}

const docsHead = `<!-- Generated from internal/config/keys.go by "go generate ./internal/config": do not edit. -->

# Configuration

tidegate reads YAML: the file that ` + "`--config`" + ` or ` + "`TIDEGATE_CONFIG`" + ` names, else ` + "`tidegate.yaml`" + ` where it exists. Flags win over
environment variables, these over the file, and the file over the defaults. ` + "`tidegate config show`" + ` prints the result with the origin
of each value, ` + "`tidegate config check`" + ` everything that is wrong.

- **Environment.** Every key is also a variable: ` + "`TIDEGATE_`" + ` and the path in upper case with ` + "`_`" + ` for each dot, such as
  ` + "`TIDEGATE_SLOT_NAME`" + `. The two lists are given as JSON in ` + "`TIDEGATE_STREAMS` and `TIDEGATE_OUTBOXES`" + `, and replace the file's. An empty
  variable counts as not set; an unknown one is an error. The variables that Kubernetes sets for a service named ` + "`tidegate`" + ` are ignored.
- **Secrets.** A key marked *secret* can also be given as a file: ` + "`postgres.url_file`, `TIDEGATE_NATS_PASSWORD_FILE`" + `. The line end at
  the end of the file does not count. Secrets are never printed.
- **Forms.** Durations: ` + "`500ms`, `10s`, `168h`" + `. Sizes: ` + "`512KiB`, `64MiB`, `2GiB`" + `. Percent: ` + "`50%`" + `.
- **Lists.** ` + "`[]`" + ` stands for an item. Without ` + "`streams`" + ` there is one stream, ` + "`OUTBOX`" + `; without ` + "`outboxes`" + ` there is one
  outbox, ` + "`public.outbox`" + ` of kind event.
- **Columns.** Of ` + "`outboxes[].columns`" + ` only what differs needs to be written. ` + "`\"\"`" + ` unmaps a column.
- *Later* marks values that are known but not in this version: they are refused, never ignored.

## An example

` + "```yaml" + `
postgres:
  url: postgres://tidegate@db.example:5432/app?sslmode=verify-full
  # the password: PGPASSFILE, PGPASSWORD or postgres.url_file
slot: {name: tidegate, snapshot: publish}
streams:
  - {name: OUTBOX, replicas: 3}
outboxes:
  - table: public.outbox
    stream: OUTBOX
  - table: public.feature_outbox
    kind: feature
    stream: OUTBOX
    feature: {table: public.features}
nats:
  url: nats://nats.example:4222
  creds_file: /etc/tidegate/nats.creds
` + "```" + `
`

func docsGroup(path string) string {
	if strings.HasPrefix(path, "outboxes[].") && strings.Count(path, ".") == 2 {
		return path[:strings.LastIndex(path, ".")]
	}
	group, _, _ := strings.Cut(path, ".")
	return group
}

func groupTitle(group string) string { return strings.ReplaceAll(group, "[]", "") }

func docsDefault(k Key) string {
	if k.Default == "" {
		return ""
	}
	return "`" + k.Default + "`"
}

func docsForm(k Key) string {
	form := typeName(reflect.New(fieldType(k.Path)).Elem())
	if len(k.Values) > 0 {
		form = "`" + strings.Join(k.Values, "`, `") + "`"
		form = strings.ReplaceAll(form, "``", "empty")
	}
	if k.Secret {
		form += ", *secret*"
	}
	return form
}

func docsMeaning(k Key) string {
	doc := strings.ReplaceAll(k.Doc, "|", `\|`)
	if k.Flag != "" {
		doc += " Flag `--" + k.Flag + "`."
	}
	switch {
	case len(k.Later) > 0 && k.Later[0] == anyOther:
		doc += " *Later:* every value but the default."
	case len(k.Later) > 0:
		doc += " *Later:* `" + strings.Join(k.Later, "`, `") + "`."
	}
	return doc
}

// fieldType finds the type of a key's field.
func fieldType(path string) reflect.Type {
	t := reflect.TypeFor[Config]()
	for name := range strings.SplitSeq(strings.ReplaceAll(path, "[]", ""), ".") {
		if t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		for i := range t.NumField() {
			if tag(t.Field(i)) == name {
				t = t.Field(i).Type
				break
			}
		}
	}
	return t
}
