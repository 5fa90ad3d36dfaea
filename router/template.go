package router

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/tidegate-cdc/tidegate/event"
)

// element is a stretch of a subject template: literal text, or the value of a token.
type element struct {
	token  token
	text   string // of a literal
	modulo uint64 // of a partition
}

type token uint8

const (
	literal token = iota
	aggregateType
	aggregateID
	eventType
	routingKey
	h3Cells
	partition
)

// vocabulary are the tokens in the order in which an error lists them.
var vocabulary = []struct {
	name    string
	token   token
	feature bool // only for kind feature
}{
	{"aggregate_type", aggregateType, false},
	{"aggregate_id", aggregateID, false},
	{"event_type", eventType, false},
	{"partition:N", partition, false},
	{"collection", aggregateType, true},
	{"feature_id", aggregateID, true},
	{"routing_key", routingKey, true},
	{"h3", h3Cells, true},
}

const (
	partitionPrefix = "partition:"
	maxPartitions   = 1 << 20
)

// parseTemplate reads a subject template for an outbox of a kind.
func parseTemplate(s string, kind event.Kind) ([]element, error) {
	var elements []element
	for rest := s; rest != ""; {
		text, after, opened := strings.Cut(rest, "{")
		if strings.Contains(text, "}") {
			return nil, errors.New("a } without a { before it")
		}
		if text != "" {
			elements = append(elements, element{text: text})
		}
		if !opened {
			break
		}
		name, after, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("the { before %q is not closed", name)
		}
		e, err := parseToken(name, kind)
		if err != nil {
			return nil, err
		}
		elements = append(elements, e)
		rest = after
	}
	return elements, checkTemplate(elements)
}

func parseToken(name string, kind event.Kind) (element, error) {
	if count, ok := strings.CutPrefix(name, partitionPrefix); ok {
		n, err := strconv.ParseUint(count, 10, 64)
		if err != nil || n < 1 || n > maxPartitions {
			return element{}, fmt.Errorf("token {%s}: want a number of partitions from 1 to %d, as in {partition:16}", name, maxPartitions)
		}
		return element{token: partition, modulo: n}, nil
	}
	for _, v := range vocabulary {
		switch {
		case v.name != name || v.token == partition:
		case v.feature && kind != event.KindFeature:
			return element{}, fmt.Errorf("token {%s} is only for an outbox of kind feature; use one of %s", name, tokenList(kind))
		default:
			return element{token: v.token}, nil
		}
	}
	return element{}, fmt.Errorf("unknown token {%s}; did you mean {%s}? There are %s", name, nearest(name, kind), tokenList(kind))
}

// checkTemplate checks the subject as a whole, each value standing for one plain token.
func checkTemplate(elements []element) error {
	probe := render(elements, func(element) string { return "x" })
	switch {
	case probe == "":
		return errors.New("it is empty; name at least a prefix, as in orders.{aggregate_id}")
	case strings.HasPrefix(probe, ".") || strings.HasSuffix(probe, ".") || strings.Contains(probe, ".."):
		return errors.New("a dot has no token at one of its sides")
	case strings.HasPrefix(probe, "$") || strings.HasPrefix(probe, "_INBOX."):
		return errors.New("subjects that begin with $ or _INBOX belong to the server; choose another prefix")
	}
	for _, e := range elements {
		for _, r := range e.text {
			if notLiteral(r) {
				return fmt.Errorf("%q must not stand in a subject", r)
			}
		}
	}
	return checkH3(elements)
}

func notLiteral(r rune) bool {
	return r == ' ' || r == '*' || r == '>' || unicode.IsControl(r) || r == unicode.ReplacementChar
}

// checkH3 makes sure that the tokens of a cell stand between dots, so that an area can be subscribed to.
func checkH3(elements []element) error {
	for i, e := range elements {
		if e.token != h3Cells {
			continue
		}
		before := i == 0 || strings.HasSuffix(elements[i-1].text, ".")
		after := i == len(elements)-1 || strings.HasPrefix(elements[i+1].text, ".")
		if !before || !after {
			return errors.New("token {h3} becomes several tokens: put a dot before and behind it")
		}
	}
	return nil
}

func render(elements []element, value func(element) string) string {
	var b strings.Builder
	for _, e := range elements {
		if e.token == literal {
			b.WriteString(e.text)
		} else {
			b.WriteString(value(e))
		}
	}
	return b.String()
}

// filter gives the wildcard subject that covers every subject of the template.
func filter(elements []element, resolution int) string {
	wild := render(elements, func(e element) string {
		if e.token == h3Cells {
			return "*" + strings.Repeat(".*", resolution)
		}
		return "*"
	})
	tokens := strings.Split(wild, ".")
	for i, t := range tokens {
		if strings.Contains(t, "*") {
			tokens[i] = "*"
		}
	}
	return strings.Join(tokens, ".")
}
