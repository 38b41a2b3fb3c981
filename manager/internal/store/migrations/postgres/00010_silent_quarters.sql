-- +goose Up

-- How agents checked in during the last day, by quarter hours since 1970: of each
-- quarter how often the managers have looked who is silent, and who was. Who is
-- not in it was heard. Rows go after a day, with or without their agent.
CREATE TABLE watched_quarters (
  quarter BIGINT PRIMARY KEY,
  looks   BIGINT NOT NULL
);
CREATE TABLE silent_quarters (
  quarter  BIGINT NOT NULL,
  agent_id BIGINT NOT NULL,
  late     BIGINT NOT NULL, -- how often it was, of the looks
  offline  BIGINT NOT NULL,
  PRIMARY KEY (quarter, agent_id)
);
