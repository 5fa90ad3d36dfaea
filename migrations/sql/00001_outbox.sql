-- +goose Up
-- The generic outbox: a row carries its payload. A table of this name that exists already is left as it is.
CREATE TABLE IF NOT EXISTS public.outbox (
    id             uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    -- Insert order, for reads of the table; CACHE 1, so that no session hands out numbers it took earlier.
    seq            bigint      NOT NULL GENERATED ALWAYS AS IDENTITY (CACHE 1) UNIQUE,
    aggregate_type text        NOT NULL,
    aggregate_id   text        NOT NULL,
    event_type     text        NOT NULL,
    payload        jsonb,      -- NULL is published as an empty body
    headers        jsonb,      -- an object of strings; published when outboxes[].columns.headers names it
    traceparent    text,       -- W3C trace context; published when outboxes[].columns.traceparent names it
    created_at     timestamptz NOT NULL DEFAULT now(),
    published_at   timestamptz -- stays NULL: only a polling relay marks rows
) WITH (
    -- By a fixed number of changes: shares of a table that is all inserts and deletes come too late.
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0,
    autovacuum_vacuum_insert_threshold = 50000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 20000
);
