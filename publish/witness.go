package publish

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Witness is what a stream was seen to hold of ours, so that it can be asked later: it is the same stream, and nobody
// has emptied it, as long as it can show the message or has a reason of its own for no longer having it.
type Witness struct {
	Created time.Time `json:"created"` // the stream
	// First is where the stream began then, with a message that was stored at FirstAt.
	First   uint64    `json:"first,omitempty"`
	FirstAt time.Time `json:"first_at,omitzero"`
	// The message at Seq, stored at StoredAt by the server's clock; Seq is 0 where none was seen.
	Seq      uint64    `json:"seq,omitempty"`
	MsgID    string    `json:"msg_id,omitempty"`
	StoredAt time.Time `json:"stored_at,omitzero"`
	// What of the stream's configuration may take the message away by itself: its age (0: any), other limits, consumers.
	MaxAge   time.Duration `json:"max_age,omitempty"`
	Limited  bool          `json:"limited,omitempty"`
	Consumed bool          `json:"consumed,omitempty"`
}

// seen notes everything but the message.
func (w *Witness) seen(i *streamInfo) {
	c := &i.config
	w.Created = i.created
	w.First, w.FirstAt = i.state.First, i.state.FirstAt
	w.MaxAge = c.MaxAge
	w.Limited = c.MaxMsgsPerSubject > 0 || c.AllowRollup || c.Discard == jetstream.DiscardOld && (c.MaxMsgs > 0 || c.MaxBytes > 0)
	w.Consumed = c.Retention != jetstream.LimitsPolicy
}

// isEnough reports whether nothing that i says lets doubt that the stream is the one that was seen, up to the mark.
func (w *Witness) isEnough(i *streamInfo, m Mark) bool {
	if w.Seq == 0 && m.MsgID != "" {
		return false
	}
	begins := i.state.Messages > 0 && (w.Limited || i.state.First <= max(w.First, 1))
	return w.Created.Equal(i.created) && i.state.Last >= m.Seq && (w.Consumed || begins)
}

const (
	// ageSlack is how much sooner than by its configuration the age of a message may have taken it away.
	ageSlack = 2 * time.Second
	// clockSlack is added where a server does not tell its time and ours must do.
	clockSlack = 2 * time.Hour
)

// isPurged reports whether the message, which the same stream no longer has, was certainly removed by hand. Every reason
// that the stream itself may have had, then or now, is believed; so is a message that was deleted alone, between others.
func (w *Witness) isPurged(i *streamInfo, m Mark) bool {
	now := *w
	now.seen(i)
	empty := i.state.Messages == 0
	switch {
	case w.Consumed || now.Consumed, w.expires(i, w.MaxAge), w.expires(i, now.MaxAge):
		return false
	case i.state.First <= w.Seq && !empty:
		return false
	case w.Limited || now.Limited: // such limits leave the last message, which was ours
		return empty && i.state.Last == m.Seq
	}
	return true
}

// expires reports whether a stream that keeps messages for maxAge may have removed this one.
func (w *Witness) expires(i *streamInfo, maxAge time.Duration) bool {
	if w.StoredAt.IsZero() { // the server does not tell
		return maxAge > 0
	}
	now, slack := i.now, ageSlack
	if now.IsZero() {
		now, slack = time.Now(), clockSlack
	}
	return maxAge > 0 && now.Sub(w.StoredAt) >= maxAge-slack
}
