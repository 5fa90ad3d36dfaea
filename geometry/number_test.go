package geometry

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// slowNumber is what AppendNumber promises, spelled out.
func slowNumber(v float64) string {
	s := strings.TrimRight(strings.TrimRight(strconv.FormatFloat(v, 'f', Decimals, 64), "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

func TestNumbersAreRoundedAsStrconvRounds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	check := func(v float64) {
		if got, want := string(AppendNumber([]byte("0,"), v)), "0,"+slowNumber(v); got != want {
			t.Fatalf("%v: %s, want %s", v, got, want)
		}
	}
	for range 300_000 {
		check(random.Float64()*360 - 180)
		check((random.Float64() - 0.5) * math.Pow(10, float64(random.IntN(26)-12)))
		// Ties: what ends in a binary fraction, and its neighbours.
		tie := float64(random.IntN(360<<9)-180<<9) / (1 << 9)
		check(tie)
		check(math.Nextafter(tie, 1e3))
		near := (math.Floor(random.Float64()*1e9) + 0.5) / 1e7
		check(near)
		check(math.Nextafter(-near, 0))
		high := (math.Floor(random.Float64()*1e15) + 0.5) / 1e7
		check(high)
		check(math.Nextafter(high, 0))
	}
	for _, v := range []float64{0, math.Copysign(0, -1), 1e-11, -1e-11, 5e-8, -5e-8, 0.00390625, 0.01171875, 99999999.99999999, 1e8, 1e14} {
		check(v)
	}
}
