package main

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/alecthomas/kong"
)

// wholeNumber reads a number of the command line. (The parser's own words for
// what is none speak of bits, and it takes 010 for 8.)
func wholeNumber(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("number", &text); err != nil {
		return err
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%q is not a whole number", text)
	}
	target.SetInt(number)
	return nil
}
