package router

import (
	"strconv"

	"github.com/tidegate-cdc/tidegate/event"
	"github.com/tidegate-cdc/tidegate/geometry"
)

// locate finds the routing key and cell of ev. The row's key wins; where it is a cell, it is the cell too. What the
// row does not say comes from the geometry's point.
func (r *Route) locate(ev *event.Event, g *geometry.Feature) {
	r.key, r.cell = r.key[:0], 0
	if r.config.Table.Kind != event.KindFeature {
		return
	}
	r.key = append(r.key, ev.RoutingKey...)
	if cell, ok := geometry.ParseCell(ev.RoutingKey); ok {
		r.cell = cell
		return
	}
	if g == nil || !g.HasPoint || len(r.key) > 0 && !r.usesH3 {
		return
	}
	if cell, ok := geometry.Cell(g.Lon, g.Lat, r.config.H3Resolution); ok {
		r.cell = uint64(cell)
		if len(r.key) == 0 {
			r.key = geometry.AppendCell(r.key, r.cell)
		}
	}
}

// appendSubject appends ev's subject.
func (r *Route) appendSubject(dst []byte, ev *event.Event) []byte {
	for _, e := range r.subject {
		switch e.token {
		case literal:
			dst = append(dst, e.text...)
		case aggregateType:
			dst = AppendToken(dst, ev.AggregateType)
		case aggregateID:
			dst = AppendToken(dst, ev.AggregateID)
		case eventType:
			dst = AppendToken(dst, ev.EventType)
		case routingKey:
			dst = AppendToken(dst, r.key)
		case h3Cells:
			dst = geometry.AppendCellTokens(dst, r.cell, r.config.H3Resolution)
		case partition:
			dst = strconv.AppendUint(dst, hash(ev.AggregateID)%e.modulo, 10)
		}
	}
	return dst
}

// hash is FNV-1a with 64 bits. It decides on subjects: it may never change.
func hash(v []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range v {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}
