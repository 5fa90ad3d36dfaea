-- Made before the slot. Every paragraph is one query.

CREATE TYPE mood AS ENUM ('calm', 'très agité');

CREATE DOMAIN short_code AS varchar(8) CHECK (VALUE <> '');

CREATE DOMAIN moment AS timestamptz;

CREATE TABLE public.outbox (
    id             uuid PRIMARY KEY,
    seq            bigint GENERATED ALWAYS AS IDENTITY,
    aggregate_type text NOT NULL,
    aggregate_id   text NOT NULL,
    event_type     varchar(40) NOT NULL,
    payload        jsonb,
    headers        jsonb,
    created_at     timestamptz NOT NULL,
    published_at   timestamptz
);

CREATE TABLE public.feature_outbox (
    id              bigserial PRIMARY KEY,
    feature_id      bigint NOT NULL,
    feature_version int NOT NULL,
    event_type      text NOT NULL,
    routing_key     text,
    schema_version  int NOT NULL DEFAULT 2,
    created_at      timestamptz NOT NULL
);

CREATE TABLE public.outboxevent (
    id            numeric(30) PRIMARY KEY,
    aggregatetype varchar(255) NOT NULL,
    aggregateid   varchar(255) NOT NULL,
    type          varchar(255) NOT NULL,
    payload       bytea
);

CREATE SCHEMA "Odd ""schema""";

CREATE TABLE "Odd ""schema""".kinds (
    id    short_code PRIMARY KEY,
    mood  mood,
    at    moment,
    tags  text[],
    big   text,
    ratio double precision,
    flag  boolean,
    gone  int
);

ALTER TABLE "Odd ""schema""".kinds DROP COLUMN gone;

ALTER TABLE "Odd ""schema""".kinds ALTER COLUMN big SET STORAGE EXTERNAL;

CREATE TABLE public.whole (a int, b text);

ALTER TABLE public.whole REPLICA IDENTITY FULL;

CREATE PUBLICATION capture FOR TABLE public.outbox, public.feature_outbox, public.outboxevent, "Odd ""schema""".kinds, public.whole;
