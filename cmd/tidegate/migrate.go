package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/tidegate-cdc/tidegate/internal/config"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/migrations"
	"github.com/tidegate-cdc/tidegate/slot"
)

const installPostGIS = "CREATE EXTENSION postgis; in this database, as a superuser, then tidegate migrate up; or tidegate migrate up --postgis"

// migrateCmd holds what the migrate commands share.
type migrateCmd struct {
	settings *settings
	url      string
}

func newMigrateCmd(s *settings) *cobra.Command {
	m := &migrateCmd{settings: s}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Make the outbox tables",
		Long: "Makes the tables public.outbox, public.features and public.feature_outbox and the schema tidegate. Tables of these names\n" +
			"that exist already are left as they are. The spatial ones need the extension PostGIS: where it is missing they wait for\n" +
			"it and are named; with an outbox of kind feature in the configuration that is an error.",
	}
	s.addFileFlag(cmd)
	cmd.PersistentFlags().StringVar(&m.url, "url", "", "the database, instead of the configuration's postgres.url; no configuration is read then")
	return group(cmd, m.newUpCmd(), m.newStatusCmd(), m.newSQLCmd())
}

// target gives the database, and whether the configuration needs PostGIS there.
func (m *migrateCmd) target(cmd *cobra.Command) (url string, spatial bool, err error) {
	if cmd.Flags().Changed("url") {
		if err := config.CheckPostgresURL(m.url); err != nil {
			return "", false, &exit.Error{Code: exit.Usage, Err: fmt.Errorf("--url %w", err), Hint: "write it like postgres://user@host:5432/database"}
		}
		return m.url, false, nil
	}
	cfg, _, err := m.settings.load(cmd)
	if err != nil {
		return "", false, err
	}
	for _, o := range cfg.Outboxes {
		spatial = spatial || o.Kind == "feature"
	}
	return cfg.Postgres.URL, spatial, nil
}

func (m *migrateCmd) newUpCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Apply what has not been applied",
		Long:  "Applies what has not been applied. It may run any number of times, also at the same time as another: one waits for the other.",
		Args:  noArgs,
	}
	postgis := cmd.Flags().Bool("postgis", false, "create the extension PostGIS where it is missing")
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		url, spatial, err := m.target(cmd)
		if err != nil {
			return err
		}
		r, err := migrations.Up(cmd.Context(), url, migrations.Options{
			CreatePostGIS:  *postgis,
			RequirePostGIS: spatial,
			Waiting:        func() { fmt.Fprintln(cmd.ErrOrStderr(), "waiting for another migration of this database to end") },
		})
		if r != nil {
			if printErr := printApplied(cmd, r, *asJSON); printErr != nil {
				return printErr
			}
		}
		return explainMigration(err)
	}
	return cmd
}

func printApplied(cmd *cobra.Command, r *migrations.Result, asJSON bool) error {
	w := cmd.OutOrStdout()
	if asJSON {
		return printJSON(w, map[string]any{"applied": migrationNames(r.Applied), "waiting": migrationNames(r.Waiting), "kept": append([]string{}, r.Kept...)})
	}
	for _, m := range r.Applied {
		fmt.Fprintf(w, "applied %d %s\n", m.Version, m.Name)
	}
	for _, text := range r.Kept {
		fmt.Fprintf(w, "kept: %s\n", text)
	}
	for _, m := range r.Waiting {
		fmt.Fprintf(w, "not applied: %d %s needs PostGIS, which is not installed in this database\n  what to do: %s\n", m.Version, m.Name, installPostGIS)
	}
	if len(r.Applied)+len(r.Waiting) == 0 {
		fmt.Fprintln(w, "nothing to do: everything is applied")
	}
	return nil
}

func migrationNames(all []migrations.Migration) []string {
	names := []string{}
	for _, m := range all {
		names = append(names, m.Name)
	}
	return names
}

func (m *migrateCmd) newStatusCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Print which migrations have been applied",
		Long:  "Prints the state of each migration: applied, pending or needs postgis. It changes nothing.",
		Args:  noArgs,
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		url, _, err := m.target(cmd)
		if err != nil {
			return err
		}
		list, err := migrations.List(cmd.Context(), url)
		if err != nil {
			return explainMigration(err)
		}
		if *asJSON {
			return printJSON(cmd.OutOrStdout(), statusJSON(list))
		}
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "VERSION\tNAME\tSTATE\tAPPLIED AT")
		for _, s := range list {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", s.Version, s.Name, s.State, appliedAt(s))
		}
		return w.Flush()
	}
	return cmd
}

func statusJSON(list []migrations.Status) []map[string]any {
	all := []map[string]any{}
	for _, s := range list {
		all = append(all, map[string]any{"version": s.Version, "name": s.Name, "state": s.State, "applied_at": appliedAt(s)})
	}
	return all
}

func appliedAt(s migrations.Status) string {
	if s.AppliedAt.IsZero() {
		return ""
	}
	return s.AppliedAt.UTC().Format(time.RFC3339)
}

func (m *migrateCmd) newSQLCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sql",
		Short: "Print the migrations as SQL for a DBA",
		Long:  "Prints what up would do as SQL, for psql. It may be run again. No database is asked.",
		Args:  noArgs,
	}
	postgis := cmd.Flags().Bool("postgis", false, "also create the extension PostGIS")
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		script, err := migrations.Script(*postgis)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(cmd.OutOrStdout(), map[string]string{"sql": script})
		}
		_, err = fmt.Fprint(cmd.OutOrStdout(), script)
		return err
	}
	return cmd
}

// explainMigration gives a failure its exit code and what to do.
func explainMigration(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	e := &exit.Error{Code: exit.Postgres, Err: oneLine(err)}
	var (
		pg      *pgconn.PgError
		connect *pgconn.ConnectError
	)
	switch errors.As(err, &pg); {
	case errors.Is(err, migrations.ErrNoPostGIS):
		e.Err, e.Hint = err, installPostGIS
	case pg != nil && (pg.Code == "0A000" || pg.Code == "58P01"):
		e.Hint = "install PostGIS on the database server, such as: apt-get install postgresql-15-postgis-3"
	case pg != nil && pg.Code == "42501" && !errors.As(err, &connect):
		e.Hint = "run it as the owner of the database, or let a DBA run what tidegate migrate sql prints"
	default:
		e.Hint = connectHint(err, "postgres.url (or --url)")
	}
	return e
}

// connectHint says what can be done about an error of the server or of the way to it, "" where that is not known. The
// way is written in url.
func connectHint(err error, url string) string {
	if hint := slot.Explain(err); hint != "" {
		return hint
	}
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return "check host, port and database in " + url + ", and that the server is running"
	}
	return ""
}

// oneLine brings an error of pgx, which gives each address that it tried a line, into the form of this program's.
func oneLine(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	return errors.New(strings.ReplaceAll(text, "failed to connect", "connect"))
}
