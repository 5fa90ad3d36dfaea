package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/tidegate-cdc/tidegate/internal/config"
	"github.com/tidegate-cdc/tidegate/internal/exit"
	"github.com/tidegate-cdc/tidegate/internal/parking"
)

func newParkedCmd(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "parked",
		Short: "Rows that could not be published: list, show, retry, discard",
		Long: "A row that cannot be published is put aside in the table tidegate.parked of the source database, and with park.order: hold\n" +
			"the later rows of its aggregate behind it. These commands show them and say what is to become of them; the bridge does it.",
	}
	s.addFileFlag(cmd)
	return group(cmd, newParkedListCmd(s), newParkedShowCmd(s), newParkedRetryCmd(s), newParkedDiscardCmd(s))
}

// office is what a command on parked rows works with.
type office struct {
	cfg  *config.Config
	conn *pgx.Conn
	desk *parking.Desk
}

// atDesk runs do with the configured source's parked rows, and gives a failure its exit code and what to do.
func (s *settings) atDesk(cmd *cobra.Command, do func(context.Context, *office) error) error {
	cfg, _, err := s.load(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	conn, err := connectOperator(ctx, cfg.Postgres.URL)
	if err != nil {
		return explainParked(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	desk, err := parking.OpenDesk(ctx, conn, cfg.Source.Name)
	if err != nil {
		return explainParked(err)
	}
	return explainParked(do(ctx, &office{cfg: cfg, conn: conn, desk: desk}))
}

// connectOperator connects to the server that takes writes.
func connectOperator(ctx context.Context, url string) (*pgx.Conn, error) {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	c.RuntimeParams["application_name"] = "tidegate_parked"
	if c.ValidateConnect == nil {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return pgx.ConnectConfig(ctx, c)
}

// explainParked gives a failure its exit code and what to do.
func explainParked(err error) error {
	var (
		coded     *exit.Error
		missing   *parking.MissingError
		privilege *parking.PrivilegeError
		none      *parking.NotFoundError
		ambiguous *parking.AmbiguousError
		state     *parking.StateError
	)
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.As(err, &coded):
		return err
	case errors.As(err, &missing):
		return &exit.Error{Code: exit.Postgres, Err: err, Hint: missing.Hint()}
	case errors.As(err, &privilege):
		return &exit.Error{Code: exit.Postgres, Err: err, Hint: privilege.Hint()}
	case errors.As(err, &none):
		return &exit.Error{Code: exit.Usage, Err: err, Hint: none.Hint()}
	case errors.As(err, &ambiguous):
		return &exit.Error{Code: exit.Usage, Err: err, Hint: ambiguous.Hint()}
	case errors.As(err, &state):
		return &exit.Error{Code: exit.Found, Err: err, Hint: state.Hint()}
	case errors.Is(err, parking.ErrUsage):
		return &exit.Error{Code: exit.Usage, Err: err, Hint: "such as 17, or public.outbox:42; tidegate parked list shows both"}
	}
	return &exit.Error{Code: exit.Postgres, Err: oneLine(err), Hint: connectHint(err, "postgres.url")}
}

// oneID is for a command that takes one row.
func oneID(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return &exit.Error{
		Code: exit.Usage, Err: fmt.Errorf("%s: wants the ID of one row, and was given %q", cmd.CommandPath(), args),
		Hint: "such as 17, or public.outbox:42; tidegate parked list shows both",
	}
}
