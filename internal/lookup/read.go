package lookup

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/tidegate-cdc/tidegate/geometry"
)

// fill turns one row of the answer into r's Feature.
func fill(r *Row, values [][]byte) {
	f := r.Feature
	version := f.Version[:0] // its memory is used again
	f.Reset()
	switch {
	case values[colFound] == nil:
		f.Status = geometry.StatusMissing
		return
	case values[colSRID] == nil:
		f.Status = geometry.StatusNull
	case isTrue(values[colBig]):
		fillBig(f, values)
	case values[colEWKB] == nil:
		f.Status = geometry.StatusUnsupported
	default:
		encode(f, values[colEWKB], r.Table)
	}
	if srid := values[colSRID]; srid != nil {
		f.SourceSRID = int32(binary.BigEndian.Uint32(srid))
	}
	if carriesGeometry(f.Status) && values[colValid] != nil {
		f.Valid, f.HasValid = isTrue(values[colValid]), true
	}
	if v := values[colVersion]; v != nil {
		f.Version = append(version, v...)
		compare(f, r.Version)
	}
}

// encode gives no error: what PostGIS itself wrote and the encoder cannot read is a kind of geometry it does not know.
func encode(f *geometry.Feature, ewkb []byte, t *Table) {
	if err := geometry.Encode(f, ewkb, geometry.Options{Point: t.Point, MaxBytes: t.MaxBytes}); err != nil {
		f.Reset()
		f.Status = geometry.StatusUnsupported
	}
}

// compare says when the feature is not of the event's version. A status that names a lack of geometry stays.
func compare(f *geometry.Feature, wanted []byte) {
	if wanted == nil || f.Status != geometry.StatusOK {
		return
	}
	switch c := compareVersions(f.Version, wanted); {
	case c > 0:
		f.Status = geometry.StatusNewer
	case c < 0:
		f.Status = geometry.StatusStale
	}
}

// fillBig takes bbox and routing point as the server computed them, since the geometry stayed there. What could be
// wrong is left out: a box wider than half the world may as well be one that crosses the antimeridian.
func fillBig(f *geometry.Feature, values [][]byte) {
	f.Status = geometry.StatusOmittedTooLarge
	if isTrue(values[colBroken]) {
		f.Status = geometry.StatusInvalidCoordinates
		return
	}
	box, known := floats(values[colBox : colBox+4])
	if !known {
		return
	}
	west, south, east, north := box[0], box[1], box[2], box[3]
	if !(south >= -90 && north <= 90) || math.IsInf(west, 0) || math.IsInf(east, 0) {
		f.Status = geometry.StatusInvalidCoordinates
		return
	}
	if !(west >= -180 && east <= 180 && east-west <= 180) {
		return
	}
	f.BBox, f.HasBBox = [4]float64{west, south, east, north}, true
	if p, known := floats(values[colBox+4 : colBox+6]); known && within(p[0], p[1], f.BBox) {
		f.Lon, f.Lat, f.HasPoint = p[0], p[1], true
	}
}

func within(lon, lat float64, box [4]float64) bool {
	return lon >= box[0] && lon <= box[2] && lat >= box[1] && lat <= box[3]
}

// giveUp marks a feature that was found, but whose geometry made PostGIS raise cause.
func giveUp(f *geometry.Feature, cause error) {
	if f.Status == geometry.StatusMissing || f.Status == geometry.StatusNull {
		return
	}
	f.Status = geometry.StatusUnsupported
	if strings.HasPrefix(message(cause), "transform: ") { // PROJ's complaints are about coordinates
		f.Status = geometry.StatusInvalidCoordinates
	}
}

// giveUpKey marks a row for which even the plain question failed: SQLSTATE class 22 means that its id is no value of
// the key's type, so that there can be no such feature.
func giveUpKey(f *geometry.Feature, cause error) {
	f.Reset()
	f.Status = geometry.StatusUnsupported
	if strings.HasPrefix(sqlState(cause), "22") {
		f.Status = geometry.StatusMissing
	}
}

// carriesGeometry reports whether "valid" is said of a geometry of this status.
func carriesGeometry(s geometry.Status) bool {
	return s == geometry.StatusOK || s == geometry.StatusOmittedTooLarge
}

func isTrue(v []byte) bool { return len(v) == 1 && v[0] == 1 }

func floats(values [][]byte) (numbers [4]float64, known bool) {
	for i, v := range values {
		if len(v) != 8 {
			return numbers, false
		}
		numbers[i] = math.Float64frombits(binary.BigEndian.Uint64(v))
	}
	return numbers, true
}
