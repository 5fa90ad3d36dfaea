-- +goose Up
-- Rows that cannot be published, and the rows of their aggregates that wait behind them. The bridge writes it; the
-- commands "tidegate parked" read it and set the state. A row that is published after all is deleted here; one that is
-- given up stays as 'discarded'.
CREATE TABLE IF NOT EXISTS tidegate.parked (
    id             bigint      PRIMARY KEY GENERATED ALWAYS AS IDENTITY (CACHE 1),
    source         text        NOT NULL,
    -- The row's place in the source's history, compared byte by byte; of a row that was read from its table a name of it.
    position       text        COLLATE "C" NOT NULL,
    ord            bigint      NOT NULL DEFAULT 0, -- below 0: read from its table, which comes before all positions
    table_name     text        NOT NULL,
    row_id         bytea,      -- bytes, here and below: a database of encoding SQL_ASCII may hold any
    aggregate      bytea       NOT NULL DEFAULT '', -- rows of one aggregate have the same; empty: unknown
    aggregate_type bytea,
    aggregate_id   bytea,
    event_type     bytea,
    -- The row as it was; all NULL where it was larger than publish.max_row.
    columns        text[],
    types          bigint[],
    vals           bytea[],
    bytes          bigint      NOT NULL DEFAULT 0, -- what vals come to
    committed_at   timestamptz,
    xid            bigint      NOT NULL DEFAULT 0,
    state          text        NOT NULL CHECK (state IN ('parked', 'held', 'retry', 'releasing', 'discard', 'discarded')),
    attempts       integer     NOT NULL DEFAULT 0,
    last_error     text        NOT NULL DEFAULT '',
    stream         text,       -- state releasing: whether it was published is seen in this stream
    from_seq       bigint,     -- behind this sequence
    parked_at      timestamptz NOT NULL DEFAULT now(),
    changed_at     timestamptz NOT NULL DEFAULT now(),
    UNIQUE (source, position),
    CHECK ((columns IS NULL) = (vals IS NULL) AND (columns IS NULL) = (types IS NULL))
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0,
    autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000
);

-- What is not resolved: few rows, however many were discarded.
CREATE INDEX IF NOT EXISTS parked_unresolved_idx ON tidegate.parked (source, state, ord, position) WHERE state <> 'discarded';
