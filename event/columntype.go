package event

import "github.com/tidegate-cdc/tidegate/decoder"

// The built-in types that matter here, by their OID in pg_type. A type that is not built in and no domain over one, such
// as an enumeration, is known by its text alone and trusted.
const (
	oidBytea       = 17
	oidText        = 25
	oidJSON        = 114
	oidXML         = 142
	oidFloat4      = 700
	oidFloat8      = 701
	oidBpchar      = 1042
	oidVarchar     = 1043
	oidTimestamp   = 1114
	oidTimestamptz = 1184
	oidJSONB       = 3802

	oidFirstOfUsers = 16384
)

// typeOf gives the type of a relation's column: for a domain the one beneath it, zero when that does not matter here.
func typeOf(c decoder.Column) uint32 {
	switch c.BaseType {
	case "":
		return c.TypeOID
	case "bytea":
		return oidBytea
	case "text":
		return oidText
	case "varchar":
		return oidVarchar
	case "bpchar":
		return oidBpchar
	case "json":
		return oidJSON
	case "jsonb":
		return oidJSONB
	case "xml":
		return oidXML
	case "float4":
		return oidFloat4
	case "float8":
		return oidFloat8
	case "timestamp":
		return oidTimestamp
	case "timestamptz":
		return oidTimestamptz
	}
	return 0
}

// notText refuses types whose text is no name for a thing: it cannot stand in a header or a subject, or is not the
// same every time.
func notText(oid uint32) string {
	switch oid {
	case oidBytea:
		return "type bytea cannot be used"
	case oidJSON, oidJSONB:
		return "type json cannot be used"
	case oidXML:
		return "type xml cannot be used"
	case oidFloat4, oidFloat8:
		return "a floating-point type cannot be used"
	}
	return ""
}

func notTimestamp(oid uint32) string {
	if oid == oidTimestamptz || oid == oidTimestamp || oid >= oidFirstOfUsers {
		return ""
	}
	return "a type other than timestamptz or timestamp cannot be used"
}

func notJSONText(oid uint32) string {
	switch oid {
	case oidJSON, oidJSONB, oidText, oidVarchar, oidBpchar:
		return ""
	}
	if oid >= oidFirstOfUsers {
		return ""
	}
	return "a type other than jsonb, json or text cannot be used"
}
