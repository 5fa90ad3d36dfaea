package config

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// The Go type of a field says how its value is written: time.Duration "10s", int64 a size "64MiB", float64 a share
// "50%", int a number.

// valueError says what is wrong with a value and how it is written.
type valueError struct{ reason, mend string }

// parseValue reads raw, as YAML, JSON or the environment gave it, into v.
func parseValue(v reflect.Value, raw any) *valueError {
	text, isText := raw.(string)
	if !isText {
		text = fmt.Sprint(raw)
	}
	if f, ok := raw.(float64); ok {
		text = strconv.FormatFloat(f, 'f', -1, 64)
	}
	switch v.Interface().(type) {
	case string:
		if _, number := raw.(json.Number); !isText || number {
			return &valueError{"is not text", "put it in quotes"}
		}
		v.SetString(text)
		return nil
	case bool:
		return parseBool(v, text)
	case time.Duration:
		return parseDuration(v, text)
	case int64:
		return parseSize(v, text)
	case float64:
		return parsePercent(v, text)
	default:
		return parseInt(v, text)
	}
}

func parseBool(v reflect.Value, s string) *valueError {
	switch s {
	case "true", "false":
		v.SetBool(s == "true")
		return nil
	default:
		return &valueError{"is neither true nor false", "write true or false"}
	}
}

func parseInt(v reflect.Value, s string) *valueError {
	n, err := strconv.ParseInt(s, 10, strconv.IntSize)
	if err != nil {
		return &valueError{"is not a whole number", "write it with digits alone"}
	}
	v.SetInt(n)
	return nil
}

func parseDuration(v reflect.Value, s string) *valueError {
	d, err := time.ParseDuration(s)
	if err != nil {
		return &valueError{"is not a duration", "write it like 500ms, 10s, 5m or 168h"}
	}
	v.SetInt(int64(d))
	return nil
}

func parsePercent(v reflect.Value, s string) *valueError {
	n, found := strings.CutSuffix(s, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
	if !found || err != nil || !(f >= 0 && f <= 100) {
		return &valueError{"is not a share", "write it like 50%, from 0% to 100%"}
	}
	v.SetFloat(f / 100)
	return nil
}

// sizeUnits are tried in order: longer names before those that they end with.
func sizeUnits() []sizeUnit {
	return []sizeUnit{
		{"KiB", 1 << 10},
		{"MiB", 1 << 20},
		{"GiB", 1 << 30},
		{"TiB", 1 << 40},
		{"kB", 1e3},
		{"KB", 1e3},
		{"MB", 1e6},
		{"GB", 1e9},
		{"TB", 1e12},
		{"B", 1},
	}
}

type sizeUnit struct {
	name  string
	bytes int64
}

func parseSize(v reflect.Value, s string) *valueError {
	unit := sizeUnit{bytes: 1}
	for _, u := range sizeUnits() {
		if rest, found := strings.CutSuffix(s, u.name); found {
			s, unit = strings.TrimSpace(rest), u
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case s == "" && unit.name == "":
		n = 0
	case err != nil || n < 0:
		return &valueError{"is not a size", "write it like 512KiB, 64MiB or 2GiB"}
	case n > math.MaxInt64/unit.bytes:
		return &valueError{"is too large a size", "write a smaller one"}
	}
	v.SetInt(n * unit.bytes)
	return nil
}

// formatValue writes v so that parseValue reads it back.
func formatValue(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return formatDuration(x)
	case int64:
		return formatSize(x)
	case float64:
		return strconv.FormatFloat(x*100, 'g', 12, 64) + "%"
	default:
		return fmt.Sprint(x)
	}
}

func formatDuration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func formatSize(n int64) string {
	best := sizeUnit{"", 1}
	for _, u := range sizeUnits()[:4] {
		if n != 0 && n%u.bytes == 0 {
			best = u
		}
	}
	return strconv.FormatInt(n/best.bytes, 10) + best.name
}

// typeName says in the documentation how a value is written.
func typeName(v reflect.Value) string {
	switch v.Interface().(type) {
	case string:
		return "text"
	case bool:
		return "true or false"
	case time.Duration:
		return "duration"
	case int64:
		return "size"
	case float64:
		return "percent"
	default:
		return "number"
	}
}
