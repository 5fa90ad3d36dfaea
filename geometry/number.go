package geometry

import (
	"bytes"
	"math"
	"strconv"
)

// Decimals is the number of decimals of a published coordinate: about a centimetre.
const Decimals = 7

const (
	scale    = 1e7
	maxFixed = 1e8 // below it, a product with scale still tells halves apart
)

// AppendNumber appends v as a JSON number of at most 7 decimals, rounded exactly as strconv does, without trailing
// zeros and never as -0. v must be finite.
func AppendNumber(dst []byte, v float64) []byte {
	a := math.Abs(v)
	if a >= maxFixed {
		return appendSlow(dst, v)
	}
	scaled := float64(a * scale)
	whole := math.Floor(scaled)
	frac := scaled - whole
	if frac == 0.5 {
		// The product was rounded, but never across a half: only here is the direction in doubt.
		return appendSlow(dst, v)
	}
	n := uint64(whole)
	if frac > 0.5 {
		n++
	}
	if v < 0 && n > 0 {
		dst = append(dst, '-')
	}
	return appendFixed(dst, n)
}

// appendFixed appends n / 10^7.
func appendFixed(dst []byte, n uint64) []byte {
	dst = appendUint(dst, uint32(n/scale))
	frac := uint32(n % scale)
	if frac == 0 {
		return dst
	}
	digits := [1 + Decimals]byte{'.'}
	for i := Decimals; i > 0; i-- {
		digits[i] = '0' + byte(frac%10)
		frac /= 10
	}
	end := Decimals
	for digits[end] == '0' {
		end--
	}
	return append(dst, digits[:end+1]...)
}

// appendUint is strconv.AppendUint for the small numbers that degrees are.
func appendUint(dst []byte, n uint32) []byte {
	switch {
	case n < 10:
		return append(dst, '0'+byte(n))
	case n < 100:
		return append(dst, '0'+byte(n/10), '0'+byte(n%10))
	case n < 1000:
		return append(dst, '0'+byte(n/100), '0'+byte(n/10%10), '0'+byte(n%10))
	default:
		return strconv.AppendUint(dst, uint64(n), 10)
	}
}

func appendSlow(dst []byte, v float64) []byte {
	if math.Abs(v) >= 1e15 {
		return strconv.AppendFloat(dst, v, 'g', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, v, 'f', Decimals, 64)
	dst = bytes.TrimRight(bytes.TrimRight(dst, "0"), ".")
	if string(dst[start:]) == "-0" {
		return append(dst[:start], '0')
	}
	return dst
}

// appendFull appends v with every digit that it has.
func appendFull(dst []byte, v float64) []byte {
	return strconv.AppendFloat(dst, v+0, 'f', -1, 64) // -0 + 0 is 0
}
