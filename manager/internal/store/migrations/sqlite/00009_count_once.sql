-- +goose Up

-- Nothing to do: a row that is updated leaves nothing behind here.
SELECT 1;
