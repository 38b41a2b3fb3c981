package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sort"
	"unicode/utf8"
)

// readJSON returns the documents of a JSON file, one after the other. Types are
// exact there: no number is taken for a text.
func readJSON(file string, data []byte) ([]*value, error) {
	if line, valid := checkText(data); !valid {
		return nil, oneFault(Place{File: file, Line: line}, "the file is not UTF-8 text")
	}
	r := &jsonReader{file: file, data: data, decoder: json.NewDecoder(bytes.NewReader(data))}
	for i, b := range data {
		if b == '\n' {
			r.lines = append(r.lines, i+1)
		}
	}
	r.decoder.UseNumber()
	var documents []*value
	for r.decoder.More() {
		read, err := r.read(0)
		if err != nil {
			return nil, r.explain(err)
		}
		documents = append(documents, read)
	}
	return documents, nil
}

type jsonReader struct {
	file    string
	data    []byte
	lines   []int // where each line but the first begins
	decoder *json.Decoder
	values  int
}

// explain turns the decoder's error into a fault.
func (r *jsonReader) explain(err error) error {
	var syntax *json.SyntaxError
	var found *FaultsError
	switch {
	case errors.As(err, &found):
		return err
	case errors.As(err, &syntax) && int(syntax.Offset) < len(r.data):
		at := int(syntax.Offset)
		if syntax.Offset != r.decoder.InputOffset() { // then it is behind the character
			at--
		}
		return oneFault(r.placeOf(at), "not JSON: %v", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return oneFault(r.placeOf(len(r.data)), "not JSON: it ends too early")
	}
	return oneFault(r.placeOf(int(r.decoder.InputOffset())), "not JSON: %v", err)
}

// next is the place of the next token.
func (r *jsonReader) next() Place {
	offset := int(r.decoder.InputOffset())
	for offset < len(r.data) && bytes.IndexByte([]byte(" \t\r\n,:"), r.data[offset]) >= 0 {
		offset++
	}
	return r.placeOf(offset)
}

func (r *jsonReader) placeOf(offset int) Place {
	offset = max(0, min(offset, len(r.data)))
	line := sort.SearchInts(r.lines, offset+1)
	start := 0
	if line > 0 {
		start = r.lines[line-1]
	}
	return Place{r.file, line + 1, utf8.RuneCount(r.data[start:offset]) + 1}
}

func (r *jsonReader) read(depth int) (*value, error) {
	at := r.next()
	if r.values++; r.values > maxValues {
		return nil, oneFault(at, "more than %d values", maxValues)
	}
	if depth > maxDepth {
		return nil, oneFault(at, "nested deeper than any manifest (%d levels)", maxDepth)
	}
	token, err := r.decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case nil:
		return &value{kind: kindNull, at: at}, nil
	case string:
		return &value{kind: kindText, text: token, at: at}, nil
	case json.Number:
		return &value{kind: kindNumber, text: token.String(), at: at}, nil
	case bool:
		text := "false"
		if token {
			text = "true"
		}
		return &value{kind: kindBool, text: text, at: at}, nil
	}
	if token == json.Delim('[') {
		return r.readList(at, depth)
	}
	return r.readMapping(at, depth)
}

func (r *jsonReader) readList(at Place, depth int) (*value, error) {
	list := &value{kind: kindList, at: at}
	for r.decoder.More() {
		item, err := r.read(depth + 1)
		if err != nil {
			return nil, err
		}
		list.items = append(list.items, item)
	}
	_, err := r.decoder.Token() // the end
	return list, err
}

func (r *jsonReader) readMapping(at Place, depth int) (*value, error) {
	mapping := &value{kind: kindMapping, at: at}
	for r.decoder.More() {
		key := r.next()
		token, err := r.decoder.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string) // the decoder takes no other
		read, err := r.read(depth + 1)
		if err != nil {
			return nil, err
		}
		if err := mapping.addField(name, key, read); err != nil {
			return nil, err
		}
	}
	_, err := r.decoder.Token() // the end
	return mapping, err
}
