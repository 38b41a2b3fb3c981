// Package show has the JSON forms of records, and makes them of what is stored:
// the API answers with them, and the command line prints them for scripts. What
// is not set is null, never an empty text, and times are in UTC.
package show
