package testkit

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Connect connects to a database until the test ends.
func Connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// Exec runs one statement, or without arguments several as one transaction, on a connection of its own.
func Exec(t testing.TB, url, sql string, args ...any) {
	t.Helper()
	conn := dial(t, url)
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Value gives the only value that a query answers, on a connection of its own.
func Value[T any](t testing.TB, url, sql string, args ...any) T {
	t.Helper()
	conn := dial(t, url)
	defer conn.Close(context.Background())
	var value T
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// Column gives the values of a query's only column, on a connection of its own.
func Column[T any](t testing.TB, url, sql string, args ...any) []T {
	t.Helper()
	conn := dial(t, url)
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return values
}

func dial(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
