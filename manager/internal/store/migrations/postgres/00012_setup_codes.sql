-- +goose Up

-- The code that whoever makes the first account in a browser has to know: one
-- at most, and none once there is somebody.
CREATE TABLE setup_codes (
  id         BIGINT PRIMARY KEY CHECK (id = 1),
  hash       BYTEA NOT NULL, -- SHA-256 of the code
  created_at TIMESTAMPTZ NOT NULL
);
