package pgcluster

import "maps"

// Options says what cluster to make. The zero value is one that trusts loopback, for logical decoding, without fsync.
type Options struct {
	// BinDir is the folder of initdb and postgres; empty: FindBinaries.
	BinDir string
	// Conf is added to the settings, over the defaults.
	Conf map[string]string
	// HBA replaces the rules for connections by TCP. The Unix socket always trusts.
	HBA []string
	// Password, when not empty, is the superuser's; connections by TCP then need one (scram-sha-256).
	Password string
	// TLS, when not nil, turns TLS on; connections by TCP then need it.
	TLS *TLS
}

// TLS holds the server's certificate and key and the authority of its clients, all in PEM.
type TLS struct{ Cert, Key, ClientCA []byte }

// defaults are the settings of a cluster that is thrown away: safe from a crash of PostgreSQL, not from one of the
// machine. Shared memory in the cluster's folder: nothing is left in /dev/shm after a kill.
func defaults() map[string]string {
	return map[string]string{
		"listen_addresses":           "127.0.0.1",
		"wal_level":                  "logical",
		"max_wal_senders":            "20",
		"max_replication_slots":      "20",
		"max_connections":            "100",
		"fsync":                      "off",
		"password_encryption":        "scram-sha-256", // 13 would make md5
		"dynamic_shared_memory_type": "mmap",
		"timezone":                   "UTC",
		"log_timezone":               "UTC",
		"log_line_prefix":            "%m [%p] %q%u@%d %a ",
		"logging_collector":          "off",
	}
}

func (o Options) settings() map[string]string {
	all := defaults()
	if o.TLS != nil {
		all["ssl"] = "on"
		all["ssl_cert_file"] = "server.crt"
		all["ssl_key_file"] = "server.key"
		if o.TLS.ClientCA != nil {
			all["ssl_ca_file"] = "clients.crt"
		}
	}
	maps.Copy(all, o.Conf)
	return all
}

// rules gives the lines of pg_hba.conf.
func (o Options) rules() []string {
	lines := []string{"local all all trust", "local replication all trust"}
	if o.HBA != nil {
		return append(lines, o.HBA...)
	}
	kind, method := "host", "trust"
	if o.TLS != nil {
		kind = "hostssl"
	}
	if o.Password != "" {
		method = "scram-sha-256"
	}
	return append(lines,
		kind+" all all 127.0.0.1/32 "+method,
		kind+" replication all 127.0.0.1/32 "+method)
}
