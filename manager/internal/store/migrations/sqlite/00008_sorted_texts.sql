-- +goose Up

-- Nothing to do: the order of texts is that of their bytes here.
SELECT 1;
