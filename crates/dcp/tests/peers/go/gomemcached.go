package main

import (
	"fmt"
	"time"

	"github.com/couchbase/gomemcached"
	memcached "github.com/couchbase/gomemcached/client"
)

func throughGomemcached(address, bucket, user, password string) {
	client, err := memcached.Connect("tcp", address)
	if err != nil {
		fail("connect", err)
	}
	if _, err := client.Auth(user, password); err != nil {
		fail("authenticate", err)
	}
	if _, err := client.SelectBucket(bucket); err != nil {
		fail("select the bucket", err)
	}
	seqnos := map[uint16]uint64{}
	stats, err := client.StatsMap("vbucket-seqno")
	if err != nil {
		fail("ask for sequence numbers", err)
	}
	for name, value := range stats {
		var vb uint16
		if n, _ := fmt.Sscanf(name, "vb_%d:high_seqno", &vb); n == 1 && name == fmt.Sprintf("vb_%d:high_seqno", vb) {
			seqnos[vb] = uint64(number(value))
		}
	}
	feed, err := client.NewUprFeed()
	if err != nil {
		fail("make a feed", err)
	}
	if err := feed.UprOpen("peers-gomemcached", 0, 64<<10); err != nil {
		fail("open the feed", err)
	}
	if err := feed.StartFeed(); err != nil {
		fail("start the feed", err)
	}
	for vb, end := range seqnos {
		if err := feed.UprRequestStream(vb, vb, 0, 0, 0, end, 0, 0); err != nil {
			fail("open a stream", err)
		}
	}
	open := len(seqnos)
	limit := time.After(patience)
	for open > 0 {
		select {
		case event, ok := <-feed.C:
			if !ok {
				fail("read the feed", feed.GetError())
			}
			switch event.Opcode {
			case gomemcached.UPR_STREAMREQ:
				if event.Status != gomemcached.SUCCESS {
					fail("open a stream", fmt.Errorf("status %v", event.Status))
				}
				fmt.Printf("opened %d %d %d\n", event.VBucket, len(*event.FailoverLog), (*event.FailoverLog)[0][0])
			case gomemcached.UPR_SNAPSHOT:
				fmt.Printf("marker %d %d %d\n", event.VBucket, event.SnapstartSeq, event.SnapendSeq)
			case gomemcached.UPR_MUTATION:
				fmt.Printf("mutation %d %d %s %d %s\n", event.VBucket, event.Seqno, event.Key, event.Flags, event.Value)
			case gomemcached.UPR_DELETION:
				fmt.Printf("deletion %d %d %s\n", event.VBucket, event.Seqno, event.Key)
			case gomemcached.UPR_EXPIRATION:
				fmt.Printf("expiration %d %d %s\n", event.VBucket, event.Seqno, event.Key)
			case gomemcached.UPR_STREAMEND:
				fmt.Printf("end %d <nil>\n", event.VBucket)
				open--
			}
		case <-limit:
			fail("streams", fmt.Errorf("they did not end"))
		}
	}
	feed.Close()
	fmt.Println("done")
}
