// What users of opensearch-go do: go URL. Prints what it did as a line of JSON, or ends with what does not hold.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/opensearch-project/opensearch-go/v4"
	"github.com/opensearch-project/opensearch-go/v4/opensearchapi"
	"github.com/opensearch-project/opensearch-go/v4/opensearchutil"
)

const index = "documents-of-go"

type document struct {
	N    int    `json:"n"`
	Word string `json:"word"`
	Note string `json:"note"`
}

var did []string

// check ends the program where something does not hold.
func check(holds bool, what ...any) {
	if !holds {
		panic(fmt.Sprint(what...))
	}
}

// must returns an answer that came without an error.
func must[T any](answer T, err error) T {
	check(err == nil, err)
	return answer
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	config := opensearch.Config{Addresses: []string{os.Args[1]}}
	client := must(opensearchapi.NewClient(opensearchapi.Config{Client: config}))
	indices(ctx, client)
	bulk(ctx, client)
	searches(ctx, client)
	documents(ctx, client)
	scroll(ctx, client)
	removals(ctx, client)
	check(client.Close() == nil)

	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if strings.HasPrefix(module.Path, "github.com/opensearch-project/opensearch-go") {
			out := map[string]any{"version": strings.TrimPrefix(module.Version, "v"), "did": did}
			fmt.Println(string(must(json.Marshal(out))))
		}
	}
}

func indices(ctx context.Context, client *opensearchapi.Client) {
	body := `{"settings": {"number_of_shards": 2, "number_of_replicas": 1}, "mappings": {"properties":
		{"n": {"type": "long"}, "word": {"type": "keyword"}, "note": {"type": "text"}}}}`
	create := opensearchapi.IndicesCreateReq{Index: index, Body: strings.NewReader(body)}
	check(must(client.Indices.Create(ctx, create)).Acknowledged)
	exists := opensearchapi.IndicesExistsReq{Indices: []string{index}}
	check(must(client.Indices.Exists(ctx, exists)).StatusCode == 200)
	did = append(did, "create index")

	health := must(client.Cluster.Health(ctx, &opensearchapi.ClusterHealthReq{
		Indices: []string{index},
		Params:  opensearchapi.ClusterHealthParams{WaitForStatus: "green"},
	}))
	check(health.Status == "green" && health.NumberOfNodes == 2, health)
	did = append(did, "cluster health")
}

func bulk(ctx context.Context, client *opensearchapi.Client) {
	settings := opensearchutil.BulkIndexerConfig{Index: index, Client: client, NumWorkers: 2, FlushBytes: 2000}
	indexer := must(opensearchutil.NewBulkIndexer(settings))
	for n := range 100 {
		source := must(json.Marshal(document{n, fmt.Sprintf("w%d", n%5), fmt.Sprintf("number %d", n)}))
		item := opensearchutil.BulkIndexerItem{
			Action: "index", DocumentID: fmt.Sprint(n), Body: bytes.NewReader(source),
		}
		err := indexer.Add(ctx, item)
		check(err == nil, err)
	}
	err := indexer.Close(ctx)
	check(err == nil, err)
	stats := indexer.Stats()
	check(stats.NumFlushed == 100 && stats.NumFailed == 0, stats)
	did = append(did, "bulk")

	refresh := opensearchapi.IndicesRefreshReq{Index: []string{index}}
	answer := must(client.Indices.Refresh(ctx, &refresh))
	var shards opensearchapi.ResponseShards
	check(json.Unmarshal(asJSON(answer.Shards), &shards) == nil && shards.Total == 4 && shards.Failed == 0, shards)
	did = append(did, "refresh")
}

func asJSON(value any) []byte {
	return must(json.Marshal(value))
}

func search(ctx context.Context, client *opensearchapi.Client, body string) *opensearchapi.SearchResp {
	return must(client.Search(ctx, &opensearchapi.SearchReq{
		Indices: []string{index}, Body: strings.NewReader(body),
	}))
}

func searches(ctx context.Context, client *opensearchapi.Client) {
	hits := search(ctx, client, `{"query": {"range": {"n": {"gte": 90}}}, "sort": [{"n": "desc"}], "size": 3}`).Hits
	check(hits.Total.Value == 10 && hits.Total.Relation == "eq" && len(hits.Hits) == 3, hits)
	var first document
	check(json.Unmarshal(hits.Hits[0].Source, &first) == nil && first.N == 99, first)
	did = append(did, "search")

	answer := search(ctx, client, `{"size": 0, "aggs": {"words": {"terms": {"field": "word"},
		"aggs": {"mean": {"avg": {"field": "n"}}}}}}`)
	var found struct {
		Words struct {
			Buckets []struct {
				Key   string
				Count int `json:"doc_count"`
				Mean  struct{ Value float64 }
			}
		}
	}
	check(json.Unmarshal(answer.Aggregations, &found) == nil && len(found.Words.Buckets) == 5, found)
	for _, bucket := range found.Words.Buckets {
		mean := 47.5 + float64(bucket.Key[1]-'0')
		check(bucket.Count == 20 && math.Abs(bucket.Mean.Value-mean) < 1e-9, bucket)
	}
	did = append(did, "aggregate")
}

func documents(ctx context.Context, client *opensearchapi.Client) {
	read := func() (seen document) {
		got := must(client.Document.Get(ctx, opensearchapi.DocumentGetReq{Index: index, DocumentID: "7"}))
		check(got.Found && json.Unmarshal(got.Source, &seen) == nil, got)
		return seen
	}
	check(read() == document{7, "w2", "number 7"})
	did = append(did, "get")

	update := opensearchapi.UpdateReq{
		Index: index, DocumentID: "7", Body: strings.NewReader(`{"doc": {"n": 700}}`),
	}
	updated := must(client.Update(ctx, update))
	check(updated.Result == "updated" && updated.Version == 2 && read().N == 700, updated)
	did = append(did, "update")
}

func scroll(ctx context.Context, client *opensearchapi.Client) {
	size := 30
	first := must(client.Search(ctx, &opensearchapi.SearchReq{
		Indices: []string{index},
		Body:    strings.NewReader(`{"query": {"match": {"note": "number"}}}`),
		Params:  opensearchapi.SearchParams{Scroll: time.Minute, Size: &size},
	}))
	seen, hits, id := map[string]bool{}, first.Hits.Hits, *first.ScrollID
	for len(hits) > 0 {
		for _, hit := range hits {
			seen[hit.ID] = true
		}
		next := must(client.Scroll.Get(ctx, opensearchapi.ScrollGetReq{
			ScrollID: id, Params: opensearchapi.ScrollGetParams{Scroll: time.Minute},
		}))
		hits, id = next.Hits.Hits, *next.ScrollID
	}
	check(len(seen) == 100, seen)
	freed := must(client.Scroll.Delete(ctx, opensearchapi.ScrollDeleteReq{ScrollIDs: []string{id}}))
	check(freed.Succeeded && freed.NumFreed == 2, freed)
	did = append(did, "scroll")
}

func removals(ctx context.Context, client *opensearchapi.Client) {
	one := opensearchapi.DocumentDeleteReq{Index: index, DocumentID: "8"}
	check(must(client.Document.Delete(ctx, one)).Result == "deleted")
	there, err := client.Document.Exists(ctx, opensearchapi.DocumentExistsReq{Index: index, DocumentID: "8"})
	check(there.StatusCode == 404, there, err)
	did = append(did, "delete by id")

	var wrong *opensearch.StructError
	_, err = client.Search(ctx, &opensearchapi.SearchReq{Indices: []string{"no-such-index"}})
	check(errors.As(err, &wrong) && wrong.Status == 404 && wrong.Err.Type == "index_not_found_exception", err)
	again := opensearchapi.DocumentCreateReq{Index: index, DocumentID: "7", Body: strings.NewReader("{}")}
	_, err = client.Document.Create(ctx, again)
	check(errors.As(err, &wrong) && wrong.Err.Type == "version_conflict_engine_exception", err)
	did = append(did, "error")

	all := opensearchapi.IndicesDeleteReq{Indices: []string{index}}
	check(must(client.Indices.Delete(ctx, all)).Acknowledged)
	gone, err := client.Indices.Exists(ctx, opensearchapi.IndicesExistsReq{Indices: []string{index}})
	check(gone.StatusCode == 404, gone, err)
	did = append(did, "delete index")
}
