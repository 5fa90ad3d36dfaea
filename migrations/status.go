package migrations

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// The states of a migration.
const (
	Applied      = "applied"
	Pending      = "pending"
	NeedsPostGIS = "needs postgis"
)

// Status is a migration in a database.
type Status struct {
	Migration
	State     string
	AppliedAt time.Time // zero unless applied
}

// List gives the state of every migration. It changes nothing in the database.
func List(ctx context.Context, conn string) ([]Status, error) {
	config, err := parse(conn)
	if err != nil {
		return nil, err
	}
	config.ValidateConnect = nil // a standby can say as much
	db, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	defer db.Close(context.WithoutCancel(ctx))
	applied, err := appliedAt(ctx, db)
	if err != nil {
		return nil, err
	}
	gis, err := postGIS(ctx, db)
	if err != nil {
		return nil, err
	}
	var all []Status
	for _, m := range All() {
		s := Status{Migration: m, State: Pending}
		if at, done := applied[m.Version]; done {
			s.State, s.AppliedAt = Applied, at
		} else if m.PostGIS && gis == "" {
			s.State = NeedsPostGIS
		}
		all = append(all, s)
	}
	return all, nil
}

// appliedAt reads the versions that were applied, none where the table is missing.
func appliedAt(ctx context.Context, db *pgx.Conn) (map[int64]time.Time, error) {
	applied := map[int64]time.Time{}
	var exists bool
	if err := db.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", versionTable).Scan(&exists); err != nil || !exists {
		return applied, err
	}
	rows, err := db.Query(ctx, "SELECT version_id, tstamp FROM "+versionTable+" WHERE is_applied")
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", versionTable, err)
	}
	var (
		version int64
		at      time.Time
	)
	_, err = pgx.ForEachRow(rows, []any{&version, &at}, func() error {
		applied[version] = at
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", versionTable, err)
	}
	return applied, nil
}
