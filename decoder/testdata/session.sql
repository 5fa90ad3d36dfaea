-- Recorded. Every paragraph is one query, and one transaction unless it says otherwise.

INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload, created_at) VALUES
  ('00000000-0000-4000-8000-000000000001', 'order', 'o-1', 'OrderPlaced', '{"total": 12345678901234567890.123456789012345678901, "note": "naïve \u2603"}', '2026-11-30 22:53:39.123456+00'),
  ('00000000-0000-4000-8000-000000000002', 'order', 'o-1', 'OrderNulled', 'null', '2026-11-30 23:53:39.5+01'),
  ('00000000-0000-4000-8000-000000000003', 'order', '', 'OrderGone', NULL, '0044-03-15 12:00:00+00 BC'),
  ('00000000-0000-4000-8000-000000000004', 'order', ' a.b > * % $ ', 'OrderText', '"scalar"', '12026-01-01 00:00:00+00');

UPDATE outbox SET headers = '{"tenant": "acme", "n": "1"}', published_at = '2026-12-01 00:00:00+00' WHERE aggregate_id = 'o-1';

BEGIN; INSERT INTO feature_outbox (feature_id, feature_version, event_type, routing_key, created_at) VALUES (9007199254740993, 1, 'created', '881f1d4891fffff', '2026-11-30 00:00:00.000001+00'); SAVEPOINT a; INSERT INTO feature_outbox (feature_id, feature_version, event_type, created_at) VALUES (13, 13, 'rolled back', '2026-11-30 00:00:00+00'); ROLLBACK TO SAVEPOINT a; SAVEPOINT b; INSERT INTO feature_outbox (feature_id, feature_version, event_type, created_at) VALUES (-2, 2147483647, 'moved', '2026-11-30 00:00:00+00'); RELEASE SAVEPOINT b; COMMIT;

BEGIN; INSERT INTO feature_outbox (feature_id, feature_version, event_type, created_at) VALUES (14, 14, 'rolled back', '2026-11-30 00:00:00+00'); ROLLBACK;

INSERT INTO outboxevent VALUES (123456789012345678901234567890, 'customer', 'c-1', 'CustomerCreated', '\x00ff5c78'), (2, 'customer', 'c-1', 'CustomerEmptied', ''), (3, 'customer', 'c-1', 'CustomerGone', NULL);

INSERT INTO "Odd ""schema""".kinds VALUES ('k1', 'très agité', '2026-06-01 12:00:00+00', ARRAY['a', NULL, 'b,c'], repeat('x', 3000), 'NaN', true), ('k2', NULL, NULL, NULL, NULL, NULL, NULL);

UPDATE "Odd ""schema""".kinds SET mood = 'calm' WHERE id = 'k1';

UPDATE "Odd ""schema""".kinds SET id = 'k3' WHERE id = 'k2';

DELETE FROM "Odd ""schema""".kinds WHERE id = 'k3';

INSERT INTO whole VALUES (1, 'one'), (NULL, NULL);

UPDATE whole SET b = 'uno' WHERE a = 1;

DELETE FROM whole;

ALTER TABLE whole RENAME COLUMN b TO c;

ALTER TABLE whole ADD COLUMN d int DEFAULT 7;

INSERT INTO whole VALUES (2, 'two');

TRUNCATE whole, outboxevent RESTART IDENTITY CASCADE;

SELECT pg_logical_emit_message(true, 'tidegate', 'heartbeat');

SELECT pg_logical_emit_message(false, '', '\x00ff'::bytea);

SELECT pg_replication_origin_create('elsewhere');

SELECT pg_replication_origin_session_setup('elsewhere');

BEGIN; SELECT pg_replication_origin_xact_setup('1/A0B1C2D3', '2026-01-01 00:00:00+00'); INSERT INTO whole VALUES (3, 'from elsewhere'); COMMIT;
