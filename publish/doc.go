// Package publish stores messages in JetStream streams: once each, every aggregate in its order, and so that it can
// be proved afterwards what is there.
//
// Lanes decides what is sent when. Conn is the way to the server. Tail is what a stream already holds, and
// Checkpoint is the proof, kept in NATS, from which the next session goes on.
package publish
