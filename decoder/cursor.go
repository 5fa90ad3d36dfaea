package decoder

import (
	"bytes"
	"encoding/binary"
)

// cursor reads one message from its beginning to its end. It is the only code that indexes wire bytes. The first
// read that does not fit is remembered as the fault; it and every later read give zero values, so a caller looks at
// the fault once, behind its last read, and before it believes a number that it allocates by.
type cursor struct {
	data  []byte
	off   int
	fault string
}

// left is how many bytes have not been read; none once there is a fault.
func (c *cursor) left() int {
	if c.fault != "" {
		return 0
	}
	return len(c.data) - c.off
}

// fail records why the message cannot be read, unless an earlier reason is known.
func (c *cursor) fail(fault string) {
	if c.fault == "" {
		c.fault = fault
	}
}

// bytes gives the next n bytes, which alias the message; n comes from the wire and may be anything.
func (c *cursor) bytes(n uint32, short string) []byte {
	if c.fault != "" || uint64(n) > uint64(len(c.data)-c.off) {
		c.fail(short)
		return nil
	}
	end := c.off + int(n)
	b := c.data[c.off:end:end]
	c.off = end
	return b
}

func (c *cursor) uint8(short string) byte {
	if b := c.bytes(1, short); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) uint16(short string) uint16 {
	if b := c.bytes(2, short); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) uint32(short string) uint32 {
	if b := c.bytes(4, short); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) uint64(short string) uint64 {
	if b := c.bytes(8, short); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// cstring gives the bytes up to the next NUL and reads past it.
func (c *cursor) cstring(short string) []byte {
	if c.fault != "" {
		return nil
	}
	n := bytes.IndexByte(c.data[c.off:], 0)
	if n < 0 {
		c.fail(short)
		return nil
	}
	b := c.data[c.off : c.off+n : c.off+n]
	c.off += n + 1
	return b
}

// skip reads what is left without a look at it.
func (c *cursor) skip() { c.off += c.left() }

// end checks that nothing is left.
func (c *cursor) end() {
	if c.left() > 0 {
		c.fail("trailing bytes")
	}
}
