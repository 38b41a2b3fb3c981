// Package checkin is the contract between agent and manager: the request an
// agent posts, the snapshot it gets back, the ETag that versions a snapshot,
// the rules every value must keep, and a client. Both programs import it, and
// nothing else of each other, so that neither can drift from the other.
//
// The wire form is described, with the example bodies of testdata, in
// docs/protocol.md. Fields are added, never renamed or removed: agents and
// managers of other ages take part, and unknown fields are ignored in both
// directions. Only the standard library is used.
package checkin
