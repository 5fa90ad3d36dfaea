// Package geometry turns a PostGIS geometry, as EWKB in EPSG:4326, into what a message carries: RFC 7946 GeoJSON, a
// bounding box and the point by which the feature is routed, with the H3 cell and subject tokens of that point.
//
// Points, lines, polygons and their multi forms are encoded, with or without Z. Other types, and shapes that cross
// the antimeridian, are named StatusUnsupported: nothing is published that could be wrong.
package geometry

// Status says what a message's geometry is worth.
type Status string

// The values of Status.
const (
	StatusOK    Status = "ok"
	StatusNewer Status = "newer" // of a later version than the event
	StatusStale Status = "stale" // of an earlier version than the event

	StatusMissing Status = "missing" // the feature's row is gone
	StatusNull    Status = "null"    // the row has no geometry
	StatusEmpty   Status = "empty"   // the geometry has no position

	StatusOmittedTooLarge    Status = "omitted_too_large"
	StatusUnsupported        Status = "unsupported"
	StatusInvalidCoordinates Status = "invalid_coordinates" // not finite, or no place on Earth
)

// PointMode is the choice of the point by which a feature is routed.
type PointMode uint8

// The choices of PointMode.
const (
	Surface  PointMode = iota // a point on the feature, the one that ST_PointOnSurface gives
	Centroid                  // the planar centroid, the one that ST_Centroid gives; it may lie outside of the feature
)

// Options are the choices that Encode leaves to the configuration.
type Options struct {
	Point PointMode
	// MaxBytes is the longest GeoJSON that is kept; a longer one becomes StatusOmittedTooLarge, with its bounding box
	// and point. Zero or less: no limit.
	MaxBytes int
}

// Feature is the geometry of one feature as it is published. It is made to be used again: its slices are valid until
// the next Encode or Reset.
type Feature struct {
	Status Status

	// JSON is an RFC 7946 geometry object, nil when none is published.
	JSON []byte

	// BBox is west, south, east, north in degrees, at full precision: AppendNumber rounds it as JSON is rounded.
	BBox    [4]float64
	HasBBox bool

	// Lon and Lat are the routing point in degrees, taken on the published geometry at full precision.
	Lon, Lat float64
	HasPoint bool

	// Valid is what ST_IsValid says.
	Valid    bool
	HasValid bool

	// Version is the version of the feature's row as text, nil when the row is missing.
	Version []byte

	// SourceSRID is the reference system of the stored geometry; 0 is unknown.
	SourceSRID int32

	shape shape
	json  []byte
	cross []float64 // where the scan line crosses
}

// keepBytes is the largest buffer that a Feature keeps for the next geometry: one huge coastline must not leave every
// pooled Feature huge.
const keepBytes = 64 << 10

// Reset empties f and keeps its memory, as far as that is not excessive.
func (f *Feature) Reset() {
	f.shape.trim()
	if cap(f.json) > keepBytes {
		f.json = nil
	}
	if cap(f.cross)*8 > keepBytes {
		f.cross = nil
	}
	*f = Feature{shape: f.shape, json: f.json, cross: f.cross}
}
