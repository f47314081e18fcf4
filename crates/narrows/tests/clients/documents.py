"""What users of opensearch-py and of elasticsearch-py do: documents.py opensearchpy|elasticsearch URL

Prints what it did as a line of JSON, or ends with the assertion that does not hold.
"""

import importlib
import json
import sys

INDEX = "documents-of-python"
SETTINGS = {"number_of_shards": 2, "number_of_replicas": 1}
PROPERTIES = {"n": {"type": "long"}, "word": {"type": "keyword"}, "note": {"type": "text"}}


def main(module, url):
    library = importlib.import_module(module)
    helpers = importlib.import_module(f"{module}.helpers")
    connect = library.OpenSearch if module == "opensearchpy" else library.Elasticsearch
    client = connect([url], timeout=180)
    did = []
    assert client.ping() and client.info()["version"]["number"][:2] in ("2.", "7."), client.info()

    made = client.indices.create(
        index=INDEX, body={"settings": SETTINGS, "mappings": {"properties": PROPERTIES}}
    )
    assert made["acknowledged"] and client.indices.exists(index=INDEX), made
    shown = client.indices.get_mapping(index=INDEX)[INDEX]["mappings"]["properties"]
    assert shown == PROPERTIES, shown
    did.append("create index")

    health = client.cluster.health(index=INDEX, wait_for_status="green")
    assert health["status"] == "green" and health["number_of_nodes"] == 2, health
    did.append("cluster health")

    documents = (
        {"_index": INDEX, "_id": n, "n": n, "word": f"w{n % 5}", "note": f"number {n}"}
        for n in range(100)
    )
    assert helpers.bulk(client, documents, chunk_size=40) == (100, [])
    did.append("bulk")

    assert client.indices.refresh(index=INDEX)["_shards"] == {"total": 4, "successful": 4, "failed": 0}
    assert client.count(index=INDEX)["count"] == 100
    did.append("refresh")

    body = {"query": {"range": {"n": {"gte": 90}}}, "sort": [{"n": "desc"}], "size": 3}
    hits = client.search(index=INDEX, body=body)["hits"]
    assert hits["total"] == {"value": 10, "relation": "eq"}, hits
    assert [hit["_source"]["n"] for hit in hits["hits"]] == [99, 98, 97], hits
    did.append("search")

    aggregations = {"words": {"terms": {"field": "word"}, "aggs": {"mean": {"avg": {"field": "n"}}}}}
    answer = client.search(index=INDEX, body={"size": 0, "aggregations": aggregations})
    buckets = answer["aggregations"]["words"]["buckets"]
    found = {bucket["key"]: (bucket["doc_count"], bucket["mean"]["value"]) for bucket in buckets}
    assert found == {f"w{k}": (20, 47.5 + k) for k in range(5)}, found
    did.append("aggregate")

    got = client.get(index=INDEX, id="7")
    assert got["found"] and got["_source"] == {"n": 7, "word": "w2", "note": "number 7"}, got
    did.append("get")

    answer = client.update(index=INDEX, id="7", body={"doc": {"n": 700}})
    assert answer["result"] == "updated" and answer["_version"] == 2, answer
    assert client.get(index=INDEX, id="7")["_source"]["n"] == 700
    did.append("update")

    query = {"query": {"match": {"note": "number"}}}
    scanned = {hit["_id"] for hit in helpers.scan(client, query, index=INDEX, size=30)}
    assert scanned == {str(n) for n in range(100)}, scanned
    did.append("scroll")
    newer = at_once(client, module)

    assert client.delete(index=INDEX, id="8")["result"] == "deleted"
    assert not client.exists(index=INDEX, id="8")
    did.append("delete by id")

    kinds = library.exceptions
    for kind, wrong, request in [
        (kinds.NotFoundError, "index_not_found_exception", lambda: client.search(index="no-such-index", body={})),
        (kinds.ConflictError, "version_conflict_engine_exception", lambda: client.create(index=INDEX, id="7", body={})),
        (kinds.RequestError, "resource_already_exists_exception", lambda: client.indices.create(index=INDEX)),
    ]:
        try:
            request()
            raise AssertionError(f"{wrong} was not raised")
        except kind as error:
            assert error.error == wrong, error
    did.append("error")

    assert client.indices.delete(index=INDEX)["acknowledged"]
    assert not client.indices.exists(index=INDEX)
    did.append("delete index")
    print(json.dumps({"version": library.__versionstr__, "did": did, "newer": newer}))


def at_once(client, module):
    """Many documents in one request, templates, and searches of one moment."""
    copy, did = f"{INDEX}-copy", []
    properties = {"n": {"type": "long"}, "word": {"type": "keyword"}}
    body = {"index_patterns": [f"{INDEX}-*"], "template": {"mappings": {"properties": properties}}}
    assert client.indices.put_index_template(name="of-python", body=body)["acknowledged"]
    did.append("template")

    client.indices.refresh(index=INDEX)
    body = {"source": {"index": INDEX, "_source": ["n", "word"]}, "dest": {"index": copy}}
    made = client.reindex(body=body, refresh=True)
    assert (made["created"], made["failures"]) == (100, []), made
    shown = client.indices.get_mapping(index=copy)[copy]["mappings"]["properties"]
    assert shown == properties, shown
    did.append("reindex")

    fields = client.field_caps(index=f"{INDEX}*", fields="n*")["fields"]
    assert sorted(fields) == ["n", "note"] and fields["n"]["long"]["aggregatable"], fields
    did.append("field capabilities")

    if module == "opensearchpy":
        moment = client.create_pit(index=copy, params={"keep_alive": "1m"})["pit_id"]
    else:
        moment = client.open_point_in_time(index=copy, keep_alive="1m")["id"]
    gone = client.delete_by_query(index=copy, body={"query": {"range": {"n": {"gte": 90}}}}, refresh=True)
    assert gone["deleted"] == 11, gone
    did.append("delete by query")

    body = {"size": 33, "sort": ["n"], "pit": {"id": moment, "keep_alive": "1m"}}
    seen = []
    while hits := client.search(body=body)["hits"]["hits"]:
        seen += [hit["_source"]["n"] for hit in hits]
        body["search_after"] = hits[-1]["sort"]
    assert sorted(seen) == sorted([*range(7), 700, *range(8, 100)]), seen
    if module == "opensearchpy":
        ended = client.delete_pit(body={"pit_id": [moment]})["pits"]
        assert ended == [{"successful": True, "pit_id": moment}], ended
    else:
        assert client.close_point_in_time(body={"id": moment})["succeeded"]
    did.append("point in time")

    updated = client.update_by_query(index=copy, q="word:w1", refresh=True)
    assert updated["updated"] == 18 and client.count(index=copy)["count"] == 89, updated
    did.append("update by query")

    assert client.indices.delete(index=copy)["acknowledged"]
    assert client.indices.delete_index_template(name="of-python")["acknowledged"]
    return did


if __name__ == "__main__":
    main(*sys.argv[1:])
