package api

import (
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"opensource.internal/agent/checkin"
)

// oddities are values of a check-in that are not what they have to be, by field.
type oddities map[string]string

// decodeTolerant decodes what json.Unmarshal refuses: a value that is not what
// its field has to be is left out and noted, and so costs no more than itself.
// The JSON has to be valid.
func decodeTolerant(data json.RawMessage, into reflect.Value, field string, odd oddities) {
	err := json.Unmarshal(data, into.Addr().Interface())
	if err == nil {
		return
	}
	into.SetZero()
	if _, parsesItself := into.Addr().Interface().(json.Unmarshaler); !parsesItself {
		switch into.Kind() {
		case reflect.Pointer:
			into.Set(reflect.New(into.Type().Elem()))
			decodeTolerant(data, into.Elem(), field, odd)
			if into.Elem().IsZero() {
				into.SetZero()
			}
			return
		case reflect.Struct:
			if decodeMembers(data, into, field, odd) {
				return
			}
		case reflect.Map:
			if decodeEntries(data, into, field, odd) {
				return
			}
		case reflect.Slice:
			if decodeItems(data, into, field, odd) {
				return
			}
		}
	}
	odd[field] = wrongValue(err)
}

// wrongValue says what is wrong with a single value.
func wrongValue(err error) string {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return "must not be of type " + wrongType.Value
	}
	return "is not a time such as 2026-01-02T15:04:05Z" // nothing else parses itself
}

func decodeMembers(data json.RawMessage, into reflect.Value, field string, odd oddities) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return false
	}
	for i := range into.NumField() {
		name, _, _ := strings.Cut(into.Type().Field(i).Tag.Get("json"), ",")
		for key, member := range members {
			if strings.EqualFold(key, name) {
				decodeTolerant(member, into.Field(i), join(field, name), odd)
			}
		}
	}
	return true
}

// decodeEntries leaves out entries of which nothing can be taken.
func decodeEntries(data json.RawMessage, into reflect.Value, field string, odd oddities) bool {
	var entries map[string]json.RawMessage
	if json.Unmarshal(data, &entries) != nil {
		return false
	}
	into.Set(reflect.MakeMapWithSize(into.Type(), len(entries)))
	for key, entry := range entries {
		value := reflect.New(into.Type().Elem()).Elem()
		if decodeTolerant(entry, value, join(field, key), odd); !value.IsZero() {
			into.SetMapIndex(reflect.ValueOf(key), value)
		}
	}
	return true
}

// decodeItems leaves out items of which nothing can be taken.
func decodeItems(data json.RawMessage, into reflect.Value, field string, odd oddities) bool {
	var items []json.RawMessage
	if json.Unmarshal(data, &items) != nil {
		return false
	}
	for _, item := range items {
		value := reflect.New(into.Type().Elem()).Elem()
		if decodeTolerant(item, value, field, odd); !value.IsZero() {
			into.Set(reflect.Append(into, value))
		}
	}
	return true
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

// oddReports logs what was left out of the check-ins of an agent, once, and
// again when that is something else: agents come every 30 seconds.
type oddReports struct {
	mu   sync.Mutex
	last map[agentKey]string
}

// The most of what is logged of one check-in, and of how many agents it is
// remembered: names of agents can be made up.
const (
	oddFields = 10
	oddAgents = 1000
)

func (o *oddReports) tell(log *slog.Logger, told *told) {
	var words []string
	for _, field := range slices.Sorted(maps.Keys(told.odd)) {
		words = append(words, field+" "+told.odd[field])
	}
	text := strings.Join(words[:min(len(words), oddFields)], "; ")
	o.mu.Lock()
	known := o.last[told.key()] == text
	if len(words) == 0 {
		delete(o.last, told.key())
	} else if !known {
		if o.last == nil || len(o.last) >= oddAgents {
			o.last = map[agentKey]string{}
		}
		o.last[told.key()] = text
	}
	o.mu.Unlock()
	if len(words) > 0 && !known {
		log.Warn("left out of a check-in what is not as it has to be; the rest is kept",
			"site", told.siteID, "agent", told.hostname, "fields", checkin.CleanMessage(text, checkin.MaxMessage), "total", len(words))
	}
}
