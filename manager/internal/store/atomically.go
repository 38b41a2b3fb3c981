package store

import (
	"context"

	"gorm.io/gorm"
)

type transactionKey struct{}

// Atomically runs fn in one write transaction. What the methods of the store
// write with the context that fn gets is part of it, and so is what they read
// record by record: nobody else writes between the two. An error of fn takes
// all of it back.
func (s *Store) Atomically(ctx context.Context, fn func(context.Context) error) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		return fn(context.WithValue(ctx, transactionKey{}, tx))
	})
}

func transactionOf(ctx context.Context) (*gorm.DB, bool) {
	tx, within := ctx.Value(transactionKey{}).(*gorm.DB)
	return tx, within
}

// reader is what records are read from: the transaction that the context is
// part of, else the pool.
func (s *Store) reader(ctx context.Context) *gorm.DB {
	if tx, within := transactionOf(ctx); within {
		return tx.WithContext(ctx)
	}
	return s.read.WithContext(ctx)
}
