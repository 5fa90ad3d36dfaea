package demo

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/tidegate-cdc/tidegate/geometry"
)

const (
	outboxTable        = "public.outbox"
	featureOutboxTable = "public.feature_outbox"

	// ordersSQL is the demo's own business table, beside those of the migrations.
	ordersSQL = `CREATE TABLE public.orders (
		id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, city text NOT NULL, total_cents int NOT NULL, status text NOT NULL)`

	h3Resolution = 8 // the bridge's default
)

type feature struct {
	id   int64
	at   place
	area bool
}

func (f feature) ewkt() string {
	if f.area {
		return f.at.block()
	}
	return f.at.point()
}

type order struct {
	id   int64
	city string
	step int // in orderEvents: what was last
}

// orderEvents is the life of an order: an aggregate whose events must stay in order.
var orderEvents = [...]string{"OrderPlaced", "OrderPaid", "OrderPacked", "OrderShipped"}

func (w *writer) createFeature(ctx context.Context, tx pgx.Tx) (string, error) {
	f := feature{at: somewhere(w.rand), area: w.rand.IntN(2) == 0}
	err := tx.QueryRow(ctx, "INSERT INTO public.features (geom) VALUES ($1::text::geometry) RETURNING id", f.ewkt()).Scan(&f.id)
	if err != nil {
		return "", fmt.Errorf("create feature: %w", err)
	}
	w.world.features = append(w.world.features, f)
	return featureEvent(ctx, tx, f.id, 1, "created", nil)
}

func (w *writer) moveFeature(ctx context.Context, tx pgx.Tx, i int) (string, error) {
	f := &w.world.features[i]
	f.at = f.at.near(w.rand, 800)
	var version int
	err := tx.QueryRow(ctx, `UPDATE public.features SET geom = $2::text::geometry, version = version + 1, updated_at = now()
		WHERE id = $1 RETURNING version`, f.id, f.ewkt()).Scan(&version)
	if err != nil {
		return "", fmt.Errorf("move feature: %w", err)
	}
	return featureEvent(ctx, tx, f.id, version, "moved", nil)
}

// retireFeature gives the cell with its event: there is no geometry left to compute it from.
func (w *writer) retireFeature(ctx context.Context, tx pgx.Tx, i int) (string, error) {
	f := w.world.features[i]
	w.world.features = slices.Delete(w.world.features, i, i+1)
	var version int
	err := tx.QueryRow(ctx, "DELETE FROM public.features WHERE id = $1 RETURNING version + 1", f.id).Scan(&version)
	if err != nil {
		return "", fmt.Errorf("retire feature: %w", err)
	}
	var key *string
	if cell, ok := geometry.Cell(f.at.lon, f.at.lat, h3Resolution); ok {
		text := cell.String()
		key = &text
	}
	return featureEvent(ctx, tx, f.id, version, "retired", key)
}

func featureEvent(ctx context.Context, tx pgx.Tx, id int64, version int, event string, routingKey *string) (string, error) {
	var row string
	err := tx.QueryRow(ctx, `INSERT INTO public.feature_outbox (feature_id, feature_version, event_type, routing_key)
		VALUES ($1, $2, $3, $4) RETURNING id::text`, id, version, event, routingKey).Scan(&row)
	if err != nil {
		return "", fmt.Errorf("insert into %s: %w", featureOutboxTable, err)
	}
	return featureOutboxTable + "/" + row, nil
}

func (w *writer) placeOrder(ctx context.Context, tx pgx.Tx) (string, error) {
	o := order{city: cities[w.rand.IntN(len(cities))].name}
	total := 500 + w.rand.IntN(20_000)
	err := tx.QueryRow(ctx, "INSERT INTO public.orders (city, total_cents, status) VALUES ($1, $2, $3) RETURNING id",
		o.city, total, orderEvents[0]).Scan(&o.id)
	if err != nil {
		return "", fmt.Errorf("place order: %w", err)
	}
	w.world.orders = append(w.world.orders, o)
	return orderEvent(ctx, tx, o, map[string]any{"city": o.city, "total_cents": total, "currency": "EUR"})
}

// advanceOrder takes an order to its next step, and out of the writer's world with the last.
func (w *writer) advanceOrder(ctx context.Context, tx pgx.Tx, i int) (string, error) {
	w.world.orders[i].step++
	o := w.world.orders[i]
	if o.step == len(orderEvents)-1 {
		w.world.orders = slices.Delete(w.world.orders, i, i+1)
	}
	if _, err := tx.Exec(ctx, "UPDATE public.orders SET status = $2 WHERE id = $1", o.id, orderEvents[o.step]); err != nil {
		return "", fmt.Errorf("advance order: %w", err)
	}
	return orderEvent(ctx, tx, o, map[string]any{"city": o.city})
}

func orderEvent(ctx context.Context, tx pgx.Tx, o order, payload map[string]any) (string, error) {
	payload["order_id"], payload["schema_version"] = o.id, 1
	var row string
	err := tx.QueryRow(ctx, `INSERT INTO public.outbox (aggregate_type, aggregate_id, event_type, payload)
		VALUES ('order', $1::bigint::text, $2, $3) RETURNING id::text`, o.id, orderEvents[o.step], payload).Scan(&row)
	if err != nil {
		return "", fmt.Errorf("insert into %s: %w", outboxTable, err)
	}
	return outboxTable + "/" + row, nil
}
