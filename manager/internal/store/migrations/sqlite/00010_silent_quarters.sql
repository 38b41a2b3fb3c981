-- +goose Up

-- How agents checked in during the last day, by quarter hours since 1970: of each
-- quarter how often the managers have looked who is silent, and who was. Who is
-- not in it was heard. Rows go after a day, with or without their agent.
CREATE TABLE watched_quarters (
  quarter INTEGER PRIMARY KEY,
  looks   INTEGER NOT NULL
);
CREATE TABLE silent_quarters (
  quarter  INTEGER NOT NULL,
  agent_id INTEGER NOT NULL,
  late     INTEGER NOT NULL, -- how often it was, of the looks
  offline  INTEGER NOT NULL,
  PRIMARY KEY (quarter, agent_id)
);
