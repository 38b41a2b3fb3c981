package api

import "opensource.internal/manager/internal/store"

// data is the envelope of every answer.
type data[T any] struct {
	Data T `json:"data"`
}

type listData[T any] struct {
	Data []T      `json:"data" nullable:"false"`
	Meta listMeta `json:"meta"`
}

type listMeta struct {
	Total  int64 `json:"total" doc:"How many match, on all pages"`
	Limit  int   `json:"limit"`
	Offset int   `json:"offset"`
}

// answer, created and page are what handlers return.
type answer[T any] struct{ Body data[T] }

type created[T any] struct {
	Location string `header:"Location"`
	Body     data[T]
}

type page[T any] struct{ Body listData[T] }

func respond[T any](value T) *answer[T] { return &answer[T]{data[T]{value}} }

// Paging are the query parameters of every list.
type Paging struct {
	Limit  int    `query:"limit" default:"50" minimum:"1" maximum:"500" doc:"Size of a page"`
	Offset int    `query:"offset" default:"0" minimum:"0" doc:"How many to leave out before the page"`
	Search string `query:"q" maxLength:"100" doc:"Only what contains this in one of its names, addresses or other texts, in any case" example:"web"`
	Sort   string `query:"sort" maxLength:"64" doc:"Field to sort by, with - before it for descending; id if not given" example:"-createdAt"`
}

func (p Paging) options() store.ListOptions {
	return store.ListOptions{Limit: p.Limit, Offset: p.Offset, Search: p.Search, Sort: p.Sort}
}

// respondPage shows the rows of a page as JSON records.
func respondPage[Row, JSON any](rows []Row, total int64, p Paging, show func(Row) JSON) *page[JSON] {
	list := make([]JSON, 0, len(rows))
	for _, row := range rows {
		list = append(list, show(row))
	}
	return &page[JSON]{listData[JSON]{Data: list, Meta: listMeta{Total: total, Limit: p.Limit, Offset: p.Offset}}}
}

// The path parameters and the switch that several requests have.
type ByID struct {
	ID int64 `path:"id" minimum:"1"`
}

type cascading struct {
	ByID
	Cascade bool `query:"cascade" doc:"Delete what depends on the record, too"`
}

type empty struct{}

// withBody is a request with a body; toRecord one about a record as well.
type withBody[B any] struct{ Body B }

type toRecord[B any] struct {
	ByID
	Body B
}
