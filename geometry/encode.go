package geometry

import "fmt"

// Encode makes f the published form of a geometry: EWKB in EPSG:4326 (or without a reference system), as
// ST_AsEWKB(ST_Transform(geom, 4326)) gives it. It sets Status to ok, empty, unsupported, invalid_coordinates or
// omitted_too_large, with JSON, BBox and the point where there are any, and leaves Valid, Version and SourceSRID alone.
//
// An error wraps ErrMalformed or names a wrong reference system; Status is then unsupported. Encode never panics, and
// what it allocates is bounded by the length of ewkb.
func Encode(f *Feature, ewkb []byte, o Options) error {
	f.Status, f.JSON = StatusUnsupported, nil
	f.BBox, f.HasBBox = [4]float64{}, false
	f.Lon, f.Lat, f.HasPoint = 0, 0, false

	status, err := f.shape.decode(ewkb)
	if err != nil {
		return fmt.Errorf("encode geometry: %w", err)
	}
	if srid := f.shape.srid; srid != 0 && srid != 4326 {
		return fmt.Errorf("encode geometry: SRID %d: want 4326", srid)
	}
	switch {
	case status != StatusOK:
		f.Status = status
	case f.shape.wellFormed():
		f.publish(o)
	}
	return nil
}

// publish fills f from its shape.
func (f *Feature) publish(o Options) {
	box, status := f.shape.settle()
	f.Status = status
	if status != StatusOK {
		return
	}
	f.BBox, f.HasBBox = box, true
	f.locate(o.Point)
	w := writer{buf: f.json[:0], limit: o.MaxBytes}
	if w.geometry(&f.shape) {
		f.JSON = w.buf
	} else {
		f.Status = StatusOmittedTooLarge
	}
	f.json = w.buf
}

// locate sets the routing point.
func (f *Feature) locate(mode PointMode) {
	if mode == Centroid {
		f.Lon, f.Lat = f.shape.centroid()
	} else {
		f.Lon, f.Lat, f.cross = f.shape.surface(f.cross)
	}
	f.HasPoint = true
}
