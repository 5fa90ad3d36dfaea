package router

import (
	"strconv"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/geometry"
)

// appendFeature appends the body of a feature's message: one JSON object, its members in a fixed order.
func (r *Route) appendFeature(dst []byte, ev *event.Event, g *geometry.Feature) []byte {
	dst = appendScalar(append(dst, `{"schema_version":`...), ev.SchemaVersion)
	dst = appendString(append(dst, `,"action":`...), ev.EventType)
	dst = appendString(append(dst, `,"feature_id":`...), ev.AggregateID)
	dst = appendScalar(append(dst, `,"event_version":`...), ev.Version)
	dst = append(dst, `,"geometry_version":`...)
	if g != nil {
		dst = appendScalar(dst, g.Version)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"routing_key":`...)
	if len(r.key) > 0 {
		dst = appendString(dst, r.key)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"crs":"EPSG:4326"`...)
	if g != nil {
		dst = appendGeometry(dst, g)
	} else {
		dst = append(dst, `,"geometry":null`...)
	}
	dst = append(dst, `,"occurred_at":`...)
	if ev.CreatedAt.IsZero() {
		return append(dst, "null}"...)
	}
	dst = appendTime(append(dst, '"'), ev.CreatedAt)
	return append(dst, `"}`...)
}

// appendGeometry appends the members that are about the geometry.
func appendGeometry(dst []byte, g *geometry.Feature) []byte {
	dst = append(dst, `,"geometry":`...)
	if g.JSON != nil {
		dst = append(dst, g.JSON...)
	} else {
		dst = append(dst, "null"...)
	}
	if g.HasBBox {
		dst = append(dst, `,"bbox":`...)
		for i, v := range g.BBox {
			dst = append(dst, "[,,,"[i])
			dst = geometry.AppendNumber(dst, v)
		}
		dst = append(dst, ']')
	}
	dst = appendString(append(dst, `,"geometry_status":`...), []byte(g.Status))
	if g.HasValid && (g.JSON != nil || g.HasBBox) {
		dst = append(dst, `,"valid":`...)
		dst = strconv.AppendBool(dst, g.Valid)
	}
	dst = append(dst, `,"source_srid":`...)
	if g.SourceSRID == 0 {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, int64(g.SourceSRID), 10)
}
