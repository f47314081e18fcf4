package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/couchbase/gocbcore/v10"
	"github.com/couchbase/gocbcore/v10/memd"
)

type observer struct {
	mutex sync.Mutex
	ended *sync.WaitGroup
}

func (o *observer) line(format string, values ...any) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	fmt.Printf(format+"\n", values...)
}

func (o *observer) SnapshotMarker(m gocbcore.DcpSnapshotMarker) {
	o.line("marker %d %d %d", m.VbID, m.StartSeqNo, m.EndSeqNo)
}
func (o *observer) Mutation(m gocbcore.DcpMutation) {
	o.line("mutation %d %d %s %d %s", m.VbID, m.SeqNo, m.Key, m.Flags, m.Value)
}
func (o *observer) Deletion(d gocbcore.DcpDeletion) {
	o.line("deletion %d %d %s", d.VbID, d.SeqNo, d.Key)
}
func (o *observer) Expiration(e gocbcore.DcpExpiration) {
	o.line("expiration %d %d %s", e.VbID, e.SeqNo, e.Key)
}
func (o *observer) End(end gocbcore.DcpStreamEnd, err error) {
	o.line("end %d %v", end.VbID, err)
	o.ended.Done()
}
func (o *observer) CreateCollection(gocbcore.DcpCollectionCreation)     {}
func (o *observer) DeleteCollection(gocbcore.DcpCollectionDeletion)     {}
func (o *observer) FlushCollection(gocbcore.DcpCollectionFlush)         {}
func (o *observer) CreateScope(gocbcore.DcpScopeCreation)               {}
func (o *observer) DeleteScope(gocbcore.DcpScopeDeletion)               {}
func (o *observer) ModifyCollection(gocbcore.DcpCollectionModification) {}
func (o *observer) OSOSnapshot(gocbcore.DcpOSOSnapshot)                 {}
func (o *observer) SeqNoAdvanced(gocbcore.DcpSeqNoAdvanced)             {}

func throughGocbcore(address, bucket, user, password string) {
	config := &gocbcore.DCPAgentConfig{
		BucketName:     bucket,
		UserAgent:      "peers",
		SeedConfig:     gocbcore.SeedConfig{MemdAddrs: []string{address}},
		SecurityConfig: gocbcore.SecurityConfig{Auth: gocbcore.PasswordAuthProvider{Username: user, Password: password}},
		// Nothing speaks HTTP there.
		EnableCCCPPoller: true,
		DCPConfig:        gocbcore.DCPConfig{UseExpiryOpcode: true, BufferSize: 64 << 10},
	}
	agent, err := gocbcore.CreateDcpAgent(config, "peers-gocbcore", memd.DcpOpenFlagProducer)
	if err != nil {
		fail("create an agent", err)
	}
	ready := make(chan error, 1)
	_, err = agent.WaitUntilReady(time.Now().Add(patience), gocbcore.WaitUntilReadyOptions{},
		func(_ *gocbcore.WaitUntilReadyResult, err error) { ready <- err })
	if err == nil {
		err = <-ready
	}
	if err != nil {
		fail("wait until it is ready", err)
	}
	var seqnos []gocbcore.VbSeqNoEntry
	_, err = agent.GetVbucketSeqnos(0, memd.VbucketStateActive, gocbcore.GetVbucketSeqnoOptions{},
		func(entries []gocbcore.VbSeqNoEntry, err error) { seqnos = entries; ready <- err })
	if err == nil {
		err = <-ready
	}
	if err != nil {
		fail("ask for sequence numbers", err)
	}
	var ended sync.WaitGroup
	seen := &observer{ended: &ended}
	for _, entry := range seqnos {
		ended.Add(1)
		vb := entry.VbID
		_, err := agent.OpenStream(vb, memd.DcpStreamAddFlagActiveOnly, 0, 0, entry.SeqNo, 0, 0, seen,
			gocbcore.OpenStreamOptions{}, func(log []gocbcore.FailoverEntry, err error) {
				if err == nil {
					seen.line("opened %d %d %d", vb, len(log), log[0].VbUUID)
				}
				ready <- err
			})
		if err == nil {
			err = <-ready
		}
		if err != nil {
			fail("open a stream", err)
		}
	}
	all := make(chan struct{})
	go func() { ended.Wait(); close(all) }()
	select {
	case <-all:
	case <-time.After(patience):
		fail("streams", fmt.Errorf("they did not end"))
	}
	if err := agent.Close(); err != nil {
		fail("close the agent", err)
	}
	seen.line("done")
}
