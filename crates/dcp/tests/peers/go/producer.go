package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/couchbase/gomemcached"
)

// What the codec's own tables do not name.
const (
	opAllSeqnos = gomemcached.CommandCode(0x48)
	opHello     = gomemcached.CommandCode(0x1f)
	authError   = gomemcached.Status(0x20)
)

// produce serves one connection: every vbucket has the same number of items, one snapshot each.
func produce(vbuckets, items int) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail("listen", err)
	}
	fmt.Println(listener.Addr())
	conn, err := listener.Accept()
	if err != nil {
		fail("accept", err)
	}
	window, outstanding := 0, 0
	send := func(packet *gomemcached.MCRequest) {
		size := packet.Size()
		// Flow control: acknowledgements are read where the window is full.
		for window > 0 && outstanding >= window {
			outstanding -= acknowledged(conn)
		}
		if _, err := packet.Transmit(conn); err != nil {
			fail("send", err)
		}
		outstanding += size
	}
	for {
		var request gomemcached.MCRequest
		if _, err := request.Receive(conn, nil); err != nil {
			if err == io.EOF || strings.Contains(err.Error(), "EOF") || strings.Contains(err.Error(), "reset") {
				fmt.Println("done", outstanding)
				return
			}
			fail("receive", err)
		}
		response := &gomemcached.MCResponse{Opcode: request.Opcode, Opaque: request.Opaque}
		switch request.Opcode {
		case gomemcached.SASL_LIST_MECHS:
			response.Body = []byte("PLAIN")
		case gomemcached.SASL_AUTH:
			if string(request.Key) != "PLAIN" {
				response.Status = authError
			}
		case opAllSeqnos:
			for vb := 0; vb < vbuckets; vb++ {
				response.Body = binary.BigEndian.AppendUint16(response.Body, uint16(vb))
				response.Body = binary.BigEndian.AppendUint64(response.Body, uint64(items))
			}
		case gomemcached.UPR_CONTROL:
			if string(request.Key) == "connection_buffer_size" {
				window = number(string(request.Body))
			}
		case gomemcached.UPR_BUFFERACK:
			outstanding -= int(binary.BigEndian.Uint32(request.Extras))
			continue
		case gomemcached.UPR_STREAMREQ:
			response.Body = binary.BigEndian.AppendUint64(response.Body, 77)
			response.Body = binary.BigEndian.AppendUint64(response.Body, 0)
			if _, err := response.Transmit(conn); err != nil {
				fail("answer", err)
			}
			stream(&request, items, send)
			continue
		}
		if _, err := response.Transmit(conn); err != nil {
			fail("answer", err)
		}
	}
}

func stream(request *gomemcached.MCRequest, items int, send func(*gomemcached.MCRequest)) {
	message := func(opcode gomemcached.CommandCode) *gomemcached.MCRequest {
		return &gomemcached.MCRequest{Opcode: opcode, Opaque: request.Opaque, VBucket: request.VBucket}
	}
	marker := message(gomemcached.UPR_SNAPSHOT)
	marker.Extras = binary.BigEndian.AppendUint64(marker.Extras, 0)
	marker.Extras = binary.BigEndian.AppendUint64(marker.Extras, uint64(items))
	marker.Extras = binary.BigEndian.AppendUint32(marker.Extras, 1)
	send(marker)
	for n := 1; n <= items; n++ {
		mutation := message(gomemcached.UPR_MUTATION)
		mutation.Cas = uint64(n)
		mutation.Key = fmt.Appendf(nil, "key%d", n)
		mutation.Body = fmt.Appendf(nil, "value %d of %d", n, request.VBucket)
		mutation.Extras = make([]byte, 31)
		binary.BigEndian.PutUint64(mutation.Extras[0:], uint64(n))
		binary.BigEndian.PutUint64(mutation.Extras[8:], 1)
		binary.BigEndian.PutUint32(mutation.Extras[16:], 9)
		send(mutation)
	}
	end := message(gomemcached.UPR_STREAMEND)
	end.Extras = make([]byte, 4)
	send(end)
}

// acknowledged reads what the consumer says until it acknowledges.
func acknowledged(conn net.Conn) int {
	for {
		var request gomemcached.MCRequest
		if _, err := request.Receive(conn, nil); err != nil {
			fail("wait for an acknowledgement", err)
		}
		if request.Opcode == gomemcached.UPR_BUFFERACK {
			return int(binary.BigEndian.Uint32(request.Extras))
		}
		fail("wait for an acknowledgement", fmt.Errorf("%v came", request.Opcode))
	}
}
