package store_test

import (
	"testing"

	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t testing.TB) *store.Store { return storetest.Open(t) })
}
