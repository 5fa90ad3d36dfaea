package demo

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// city is where features are made. All lie at places where swapped coordinates are seen at once.
type city struct {
	name     string
	lon, lat float64
}

var cities = [...]city{
	{"Berlin", 13.4050, 52.5200},
	{"Paris", 2.3522, 48.8566},
	{"Lisboa", -9.1393, 38.7223},
	{"Oslo", 10.7522, 59.9139},
	{"Athina", 23.7275, 37.9838},
	{"Nairobi", 36.8219, -1.2921},
	{"Cape Town", 18.4241, -33.9249},
	{"Mumbai", 72.8777, 19.0760},
	{"Singapore", 103.8198, 1.3521},
	{"Tokyo", 139.6503, 35.6762},
	{"Sydney", 151.2093, -33.8688},
	{"Auckland", 174.7633, -36.8485},
	{"Honolulu", -157.8583, 21.3069},
	{"Vancouver", -123.1207, 49.2827},
	{"Ciudad de México", -99.1332, 19.4326},
	{"New York", -74.0060, 40.7128},
	{"Bogotá", -74.0721, 4.7110},
	{"São Paulo", -46.6333, -23.5505},
	{"Reykjavík", -21.9426, 64.1466},
	{"Dakar", -17.4677, 14.7167},
}

// place is a position near a city, in degrees.
type place struct {
	city     string
	lon, lat float64
}

// somewhere chooses a position within some 5 km of a city's middle.
func somewhere(r *rand.Rand) place {
	c := cities[r.IntN(len(cities))]
	return place{c.name, c.lon, c.lat}.near(r, 5000)
}

// near moves by up to metres in each direction.
func (p place) near(r *rand.Rand, metres float64) place {
	const metresPerDegree = 111_320
	p.lat += (2*r.Float64() - 1) * metres / metresPerDegree
	p.lon += (2*r.Float64() - 1) * metres / (metresPerDegree * math.Cos(p.lat*math.Pi/180))
	return p
}

// point is the position as EWKT.
func (p place) point() string { return fmt.Sprintf("SRID=4326;POINT(%.7f %.7f)", p.lon, p.lat) }

// block is a rectangle of some 50 by 80 m around the position, as EWKT. It runs clockwise, as many sources store it.
func (p place) block() string {
	const h = 0.00035
	w := h * 1.5 / math.Cos(p.lat*math.Pi/180)
	return fmt.Sprintf("SRID=4326;POLYGON((%[1]f %[2]f,%[1]f %[4]f,%[3]f %[4]f,%[3]f %[2]f,%[1]f %[2]f))",
		p.lon-w, p.lat-h, p.lon+w, p.lat+h)
}
