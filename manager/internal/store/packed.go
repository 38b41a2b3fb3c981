package store

import (
	"bytes"
	"compress/gzip"
	"database/sql/driver"
	"fmt"
	"io"
)

// Packed are bytes that are kept compressed. Snapshots repeat themselves: of a
// large one a twentieth is left.
type Packed []byte

// Value implements driver.Valuer.
func (p Packed) Value() (driver.Value, error) {
	var packed bytes.Buffer
	// The transaction waits for this, and the best compression takes five times
	// as long for a fifth less.
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := writer.Write(p); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return packed.Bytes(), nil
}

// Scan implements sql.Scanner. What an older version has kept is not compressed.
func (p *Packed) Scan(stored any) error {
	var data []byte
	switch stored := stored.(type) {
	case []byte:
		data = stored
	case string:
		data = []byte(stored)
	case nil:
	default:
		return fmt.Errorf("compressed bytes as a %T", stored)
	}
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) { // RFC 1952; JSON does not begin so
		*p = bytes.Clone(data)
		return nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("decompress: %w", err)
	}
	*p, err = io.ReadAll(reader)
	if err != nil {
		return fmt.Errorf("decompress: %w", err)
	}
	return nil
}
