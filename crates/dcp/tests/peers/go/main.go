// Independent clients and an independent producer for the tests: what they see goes to standard output, a line each.
//
//	peers gocbcore ADDRESS BUCKET     streams every vbucket up to where it is, through gocbcore's DCPAgent
//	peers gomemcached ADDRESS BUCKET  the same through gomemcached's UprFeed
//	peers producer VBUCKETS ITEMS     a producer on gomemcached's codec; its address is the first line
//
// User and password come from PEER_USER and PEER_PASSWORD.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

const patience = 30 * time.Second

func fail(what string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
	os.Exit(1)
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		fail("a number", err)
	}
	return value
}

func main() {
	user, password := os.Getenv("PEER_USER"), os.Getenv("PEER_PASSWORD")
	if len(os.Args) != 4 {
		fail("arguments", fmt.Errorf("%v", os.Args))
	}
	switch os.Args[1] {
	case "gocbcore":
		throughGocbcore(os.Args[2], os.Args[3], user, password)
	case "gomemcached":
		throughGomemcached(os.Args[2], os.Args[3], user, password)
	case "producer":
		produce(number(os.Args[2]), number(os.Args[3]))
	default:
		fail("mode", fmt.Errorf("%s is not known", os.Args[1]))
	}
}
