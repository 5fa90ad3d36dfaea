package relay

import "sync"

// link is the state of the NATS connection, told by its callbacks and asked by the loop. Nothing is lost between two
// looks: a drop stays counted when the connection is already back.
type link struct {
	mu      sync.Mutex
	up      bool
	drops   uint64
	why     string
	fatal   error
	changed chan struct{}
}

func newLink() *link { return &link{changed: make(chan struct{}, 1)} }

func (l *link) lost(err error) {
	why := "disconnected"
	if err != nil {
		why = err.Error()
	}
	l.change(func() { l.up, l.why, l.drops = false, why, l.drops+1 })
}

func (l *link) back() { l.change(func() { l.up = true }) }

func (l *link) refused(err error) { l.change(func() { l.fatal = err }) }

func (l *link) change(do func()) {
	l.mu.Lock()
	do()
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// linkState is one look at a link.
type linkState struct {
	up    bool
	drops uint64
	why   string
	fatal error
}

func (l *link) state() linkState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return linkState{l.up, l.drops, l.why, l.fatal}
}
