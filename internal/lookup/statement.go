package lookup

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/geometry"
)

// Columns of the answer, in the order of both statements.
const (
	colOrdinal  = iota // int4, from 1
	colSnapshot        // text, in the first row only
	colFound           // bool, null = the feature is missing
	colVersion         // text
	colSRID            // int4, as stored; null = the geometry is null
	colBig             // bool, above MaxBytes
	colValid           // bool, null = the server cannot tell
	colEWKB            // bytea in 4326, null = big or cannot be transformed
	colBroken          // bool, big and with coordinates that are not numbers
	colBox             // float8 west, south, east, north, then the routing point's lon, lat; of the big only
	columns     = colBox + 6
)

// catalog is what the statements need to know of the server.
type catalog struct {
	postgis string // schema of the extension, quoted
	keyType string // type of the ID column, as SQL
}

// relation quotes a "schema.table".
func relation(name string) string {
	return pgx.Identifier(strings.SplitN(name, ".", 2)).Sanitize()
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// features is the derived table of what is wanted of the features.
func (t *Table) features(c catalog) string {
	version := "NULL::text"
	if t.Version != "" {
		version = quote(t.Version) + "::text"
	}
	return fmt.Sprintf("SELECT true AS found, %s AS id, %s AS version, %s::%s.geometry AS geom FROM %s",
		quote(t.ID), version, quote(t.Geom), c.postgis, relation(t.Table))
}

// sql is the statement for a batch: LEFT JOIN, so that a missing feature still gets a row. Its functions do not raise
// on SRIDs without a definition, on kinds that GEOS does not know, nor on coordinates that are no numbers. Each OFFSET 0
// keeps the planner from computing what is below it more than once.
func (t *Table) sql(c catalog) string {
	point := "ST_PointOnSurface"
	if t.Point == geometry.Centroid {
		point = "ST_Centroid"
	}
	return strings.NewReplacer(
		"{features}", t.features(c), "{gis}", c.postgis, "{key}", c.keyType,
		"{assume}", strconv.Itoa(t.AssumeSRID), "{max}", strconv.Itoa(t.maxBytes()), "{point}", point,
	).Replace(`
SELECT ord, CASE WHEN ord = 1 THEN pg_catalog.pg_current_snapshot()::text END,
       found, version, stored, big, valid, CASE WHEN NOT big THEN {gis}.ST_AsEWKB(geom) END,
       big AND NOT valid AND {gis}.ST_IsValidReason(geom) LIKE 'Invalid Coordinate%',
       west, south, east, north, {gis}.ST_X(point), {gis}.ST_Y(point)
  FROM (SELECT *, CASE WHEN big THEN {gis}.ST_XMin(geom) END AS west, CASE WHEN big THEN {gis}.ST_YMin(geom) END AS south,
               CASE WHEN big THEN {gis}.ST_XMax(geom) END AS east, CASE WHEN big THEN {gis}.ST_YMax(geom) END AS north,
               CASE WHEN big AND valid IS NOT NULL THEN {gis}.{point}(geom) END AS point
  FROM (SELECT *, CASE WHEN kind NOT IN ('POLYHEDRALSURFACE', 'TIN', 'TRIANGLE', 'GEOMETRYCOLLECTION')
                       THEN {gis}.ST_IsValid(geom) END AS valid
  FROM (SELECT ord, found, version, stored, big, kind,
               CASE WHEN srid = 4326 THEN {gis}.ST_SetSRID(linear, 4326)
                    WHEN (SELECT true FROM {gis}.spatial_ref_sys AS r WHERE r.srid = asked.srid)
                    THEN {gis}.ST_Transform({gis}.ST_SetSRID(linear, srid), 4326) END AS geom
  FROM (SELECT k.ord::int4, t.found, t.version, {gis}.ST_SRID(t.geom) AS stored,
               COALESCE(NULLIF({gis}.ST_SRID(t.geom), 0), {assume}) AS srid,
               {gis}.ST_MemSize(t.geom) > {max} AS big, {gis}.GeometryType(t.geom) AS kind,
               CASE WHEN {gis}.GeometryType(t.geom) IN
                         ('CIRCULARSTRING', 'COMPOUNDCURVE', 'CURVEPOLYGON', 'MULTICURVE', 'MULTISURFACE')
                    THEN {gis}.ST_CurveToLine(t.geom) ELSE t.geom END AS linear
          FROM unnest($1::text[]) WITH ORDINALITY AS k(id, ord)
          LEFT JOIN ({features}) AS t ON t.id = k.id::{key}
        OFFSET 0) AS asked
        OFFSET 0) AS placed
        OFFSET 0) AS checked
        OFFSET 0) AS measured`)
}

// plainSQL is the statement for one row whose geometry made the server refuse the other: it only asks what is there.
func (t *Table) plainSQL(c catalog) string {
	return strings.NewReplacer("{features}", t.features(c), "{gis}", c.postgis, "{key}", c.keyType).Replace(`
SELECT k.ord::int4, pg_catalog.pg_current_snapshot()::text,
       t.found, t.version, {gis}.ST_SRID(t.geom), false, NULL::bool, NULL::bytea,
       NULL::bool, NULL::float8, NULL::float8, NULL::float8, NULL::float8, NULL::float8, NULL::float8
  FROM unnest($1::text[]) WITH ORDINALITY AS k(id, ord)
  LEFT JOIN ({features}) AS t ON t.id = k.id::{key}`)
}
