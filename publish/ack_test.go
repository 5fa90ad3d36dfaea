package publish

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
)

func TestAckIsReadInEveryFormThatServersSend(t *testing.T) {
	for _, c := range []struct {
		data string
		want pubAck
		fast bool
	}{
		{`{"stream":"S","seq":1}`, pubAck{[]byte("S"), 1, false}, true},
		{`{"stream":"S", "seq":22}`, pubAck{[]byte("S"), 22, false}, true},
		{`{"stream":"S","domain":"hub", "seq":3,"duplicate": true}`, pubAck{[]byte("S"), 3, true}, true},
		{" {\n\t\"duplicate\" : false ,\r \"seq\" : 18446744073709551615 , \"stream\" : \"a b\" } ", pubAck{[]byte("a b"), 1<<64 - 1, false}, true},
		{`{"type":"x","stream":"S","seq":4}`, pubAck{[]byte("S"), 4, false}, false},
		{`{"stream":"S\u0041","seq":5}`, pubAck{[]byte("SA"), 5, false}, false},
		{`{"stream":"S","seq":6,"batch":"b","count":2}`, pubAck{[]byte("S"), 6, false}, false},
	} {
		got, err := readAck(&nats.Msg{Data: []byte(c.data)})
		if err != nil || string(got.stream) != string(c.want.stream) || got.seq != c.want.seq || got.duplicate != c.want.duplicate {
			t.Errorf("%s: %+v, %v", c.data, got, err)
		}
		if _, fast := parseAck([]byte(c.data)); fast != c.fast {
			t.Errorf("%s: without encoding/json %v", c.data, fast)
		}
	}
}

func TestRefusalIsRead(t *testing.T) {
	_, err := readAck(&nats.Msg{Data: []byte(streamFull)})
	var refused *AckError
	if !errors.As(err, &refused) || refused.Code != 503 || refused.ErrCode != 10077 || refused.Description != "maximum messages exceeded" {
		t.Errorf("refusal: %v", err)
	}
	if _, err := readAck(&nats.Msg{Header: nats.Header{"Status": {"503"}}}); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("nobody there: %v", err)
	}
	for _, data := range []string{``, `{`, `[]`, `{}`, `{"stream":"S"}`, `{"seq":1}`, `{"stream":"","seq":1}`, `{"stream":"S","seq":0}`, `+OK`} {
		if got, err := readAck(&nats.Msg{Data: []byte(data)}); !errors.Is(err, errNotAck) {
			t.Errorf("%q: %+v, %v", data, got, err)
		}
	}
}

func TestReadingAnAckAllocatesNothing(t *testing.T) {
	m := &nats.Msg{Data: []byte(`{"stream":"OUTBOX", "seq":1234567, "duplicate":true}`)}
	allocs := testing.AllocsPerRun(1000, func() {
		if _, err := readAck(m); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 0 {
		t.Fatalf("%v allocations", allocs)
	}
}

// What is read by hand is what encoding/json reads.
func FuzzAck(f *testing.F) {
	for _, s := range []string{
		`{"stream":"S","seq":1}`, `{"stream":"S","seq":1,"duplicate":true,"domain":"d"}`, streamFull,
		`{"seq":01,"stream":"S"}`, `{"stream":"S","seq":1,}`, `{"stream":"S","seq":1}{`, `{"stream":"S","seq":1.5}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := parseAck(data)
		if !ok || !json.Valid(data) {
			return
		}
		want, err := decodeAck(data)
		if err != nil || string(got.stream) != string(want.stream) || got.seq != want.seq || got.duplicate != want.duplicate {
			t.Fatalf("%q: %+v, by encoding/json %+v, %v", data, got, want, err)
		}
	})
}
