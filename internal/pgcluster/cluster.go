// Package pgcluster makes throwaway PostgreSQL clusters from the programs that are installed: one folder, one postmaster
// that is our own child, loopback only. A cluster is gone, processes and folder, when Remove returns, and also when
// this process ends without calling it.
package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/internal/leash"
)

// Superuser is the user that owns every cluster.
const Superuser = "postgres"

// Cluster is one PostgreSQL cluster. Its methods may be called by several goroutines.
type Cluster struct {
	bin     string
	dir     string
	owner   *owner
	leash   *leash.Leash
	options Options

	port    atomic.Int32
	process atomic.Pointer[postmaster] // the last one that was started

	mu         sync.Mutex // held while the cluster starts or stops
	conf       map[string]string
	wasStarted bool
}

// New makes a cluster that is not started yet. ctx bounds initdb.
func New(ctx context.Context, options Options) (*Cluster, error) {
	bin := options.BinDir
	if bin == "" {
		found, err := FindBinaries()
		if err != nil {
			return nil, err
		}
		bin = found
	}
	owner, err := findOwner()
	if err != nil {
		return nil, err
	}
	dir, err := owner.makeDir("tidegate-pg-")
	if err != nil {
		return nil, err
	}
	held, err := leash.Hold(dir)
	if err != nil {
		os.Remove(dir)
		return nil, err
	}
	c := &Cluster{bin: bin, dir: dir, owner: owner, leash: held, options: options, conf: options.settings()}
	if err := c.fill(ctx); err != nil {
		return nil, errors.Join(err, c.Remove())
	}
	return c, nil
}

// fill writes what lies in the cluster's folder.
func (c *Cluster) fill(ctx context.Context) error {
	port, err := FreePort()
	if err != nil {
		return err
	}
	c.port.Store(int32(port))
	if err := c.makeData(ctx); err != nil {
		return err
	}
	return c.writeFiles()
}

// Remove stops the cluster at once and removes its folder. Only its first call acts.
func (c *Cluster) Remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	_, stopErr := c.Stop(ctx, Immediate)
	if err := c.leash.Release(); err != nil {
		return err
	}
	return stopErr
}

// DataDir is the data folder.
func (c *Cluster) DataDir() string { return filepath.Join(c.dir, "data") }

// Port is the loopback port, the same after every restart.
func (c *Cluster) Port() int { return int(c.port.Load()) }

// URL is how the superuser connects to a database by TCP.
func (c *Cluster) URL(database string) string {
	user := url.User(Superuser)
	if c.options.Password != "" {
		user = url.UserPassword(Superuser, c.options.Password)
	}
	mode := "disable"
	if c.options.TLS != nil {
		mode = "require"
	}
	u := url.URL{
		Scheme: "postgres", User: user, Host: "127.0.0.1:" + strconv.Itoa(c.Port()), Path: "/" + database,
		RawQuery: "sslmode=" + mode,
	}
	return u.String()
}

// Connect connects the superuser by the Unix socket, which needs neither password nor TLS.
func (c *Cluster) Connect(ctx context.Context, database string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=disable", c.dir, c.Port(), Superuser, database))
}

// Log is what the cluster has logged so far.
func (c *Cluster) Log() string {
	text, err := os.ReadFile(c.logPath())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (c *Cluster) logPath() string { return filepath.Join(c.dir, "postgres.log") }

// Set changes a setting. It counts from the next Start, or Reload where PostgreSQL allows that.
func (c *Cluster) Set(name, value string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conf[name] = value
	return c.writeConf()
}

// writeConf writes the settings that go over postgresql.conf.
func (c *Cluster) writeConf() error {
	var text strings.Builder
	fmt.Fprintf(&text, "port = %d\nunix_socket_directories = '%s'\n", c.Port(), c.dir)
	for _, name := range slices.Sorted(maps.Keys(c.conf)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, strings.ReplaceAll(c.conf[name], "'", "''"))
	}
	return c.write("cluster.conf", text.String())
}

// writeFiles writes settings, rules and certificates into the data folder.
func (c *Cluster) writeFiles() error {
	files := map[string]string{"pg_hba.conf": strings.Join(c.options.rules(), "\n") + "\n"}
	if tls := c.options.TLS; tls != nil {
		files["server.crt"], files["server.key"] = string(tls.Cert), string(tls.Key)
		if tls.ClientCA != nil {
			files["clients.crt"] = string(tls.ClientCA)
		}
	}
	for name, text := range files {
		if err := c.write(name, text); err != nil {
			return err
		}
	}
	return c.writeConf()
}

// write puts a file that only the owner can read into the data folder.
func (c *Cluster) write(name, text string) error {
	path := filepath.Join(c.DataDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return c.owner.give(path)
}
