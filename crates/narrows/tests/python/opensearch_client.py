"""An ordinary client of OpenSearch against a cluster: python3 opensearch_client.py http://127.0.0.1:9200

Needs opensearch-py. Takes NARROWS_USER and NARROWS_PASSWORD from the environment where a cluster asks for them;
checks there that it lets nobody in without. Prints OK, or ends with the assertion that does not hold.
"""

import os
import sys

from opensearchpy import OpenSearch, helpers
from opensearchpy.exceptions import (
    AuthenticationException,
    ConflictError,
    NotFoundError,
    RequestError,
)

INDEX = "python-client"


def main(url):
    client = connect(url)
    info = client.info()
    assert info["version"]["number"] == "7.10.2", info
    assert client.ping()
    nodes = client.cluster.health(wait_for_nodes=">=1")["number_of_nodes"]

    client.indices.delete(index=INDEX, ignore=[404])
    made = client.indices.create(
        index=INDEX,
        body={
            "settings": {"number_of_shards": 2, "number_of_replicas": 1 if nodes > 1 else 0},
            "mappings": {"properties": {"n": {"type": "long"}, "place": {"type": "geo_point"}}},
        },
    )
    assert made["acknowledged"] and made["index"] == INDEX, made
    assert client.indices.exists(index=INDEX)
    assert not client.indices.exists(index="no-such-index")
    health = client.cluster.health(index=INDEX, wait_for_status="green")
    assert health["status"] == "green" and not health["timed_out"], health
    refused(RequestError, "resource_already_exists_exception", lambda: client.indices.create(index=INDEX))

    documents(client)
    bulks(client)
    searches(client)
    cluster(client, nodes)

    assert client.indices.delete(index=INDEX)["acknowledged"]
    refused(NotFoundError, "index_not_found_exception", lambda: client.count(index=INDEX))
    print("OK")


def refused(kind, wrong, request):
    """The error of this kind that a request ends with, which calls what is wrong so."""
    try:
        request()
    except kind as error:
        assert error.error == wrong, error
        return error
    raise AssertionError(f"{wrong} was not raised")


def connect(url):
    """A client with credentials where they are asked for."""
    stranger = OpenSearch(url, timeout=60)
    try:
        stranger.info()
        return stranger
    except AuthenticationException as error:
        assert error.status_code == 401 and error.error == "security_exception", error
    user, password = os.environ["NARROWS_USER"], os.environ["NARROWS_PASSWORD"]
    wrong = OpenSearch(url, timeout=60, http_auth=(user, password + "x"))
    error = refused(AuthenticationException, "security_exception", wrong.info)
    assert error.status_code == 401, error
    return OpenSearch(url, timeout=60, http_auth=(user, password))


def documents(client):
    answer = client.index(index=INDEX, id="a/b c", body={"n": 1}, refresh=True)
    assert answer["result"] == "created", answer
    answer = client.get(index=INDEX, id="a/b c")
    assert answer["found"] and answer["_source"] == {"n": 1}, answer
    assert client.exists(index=INDEX, id="a/b c")
    assert client.get_source(index=INDEX, id="a/b c") == {"n": 1}
    twice = lambda: client.create(index=INDEX, id="a/b c", body={"n": 2})
    refused(ConflictError, "version_conflict_engine_exception", twice)
    assert client.index(index=INDEX, body={"n": 3})["_id"]
    assert client.delete(index=INDEX, id="a/b c")["result"] == "deleted"
    assert not client.exists(index=INDEX, id="a/b c")
    try:
        client.get(index=INDEX, id="a/b c")
        raise AssertionError("a deleted document was read")
    except NotFoundError as error:
        assert error.info["found"] is False, error.info
    unfit = lambda: client.index(index=INDEX, body={"place": "nowhere"})
    refused(RequestError, "mapper_parsing_exception", unfit)


def bulks(client):
    actions = ({"_index": INDEX, "_id": n, "n": n, "place": [n % 90, 45]} for n in range(2500))
    done, errors = helpers.bulk(client, actions, chunk_size=1000, refresh=True)
    assert (done, errors) == (2500, []), (done, errors)
    assert client.count(index=INDEX)["count"] == 2501
    mixed = [
        {"_op_type": "create", "_index": INDEX, "_id": 1, "n": 1},
        {"_op_type": "delete", "_index": INDEX, "_id": 2},
    ]
    done, errors = helpers.bulk(client, mixed, raise_on_error=False)
    assert done == 1 and errors[0]["create"]["status"] == 409, (done, errors)
    streamed = helpers.streaming_bulk(client, ({"_index": INDEX, "n": n} for n in range(10)))
    assert all(ok for ok, _ in streamed)
    answer = client.bulk(body='{"index":{}}\n{"n":1}\n', index=INDEX, filter_path="errors,took")
    assert answer["errors"] is False and "items" not in answer, answer
    assert client.indices.refresh(index=INDEX)["_shards"]["failed"] == 0
    assert client.indices.flush(index=INDEX)["_shards"]["failed"] == 0
    assert client.indices.forcemerge(index=INDEX, max_num_segments=1)["_shards"]["failed"] == 0
    assert client.count(index=INDEX, body={"query": {"match_all": {}}})["count"] == 2511


def searches(client):
    """Documents 0 to 2499 of the bulks, but for the deleted one, and some without ids of their own."""
    body = {"query": {"range": {"n": {"gte": 100, "lt": 120}}}, "sort": [{"n": "desc"}], "size": 5}
    found = client.search(index=INDEX, body=body)
    assert found["hits"]["total"] == {"value": 20, "relation": "eq"}, found["hits"]["total"]
    assert [hit["_source"]["n"] for hit in found["hits"]["hits"]] == [119, 118, 117, 116, 115], found
    body["search_after"] = found["hits"]["hits"][-1]["sort"]
    assert client.search(index=INDEX, body=body)["hits"]["hits"][0]["_id"] == "114"
    body = {
        "size": 0,
        "track_total_hits": True,
        "query": {"bool": {"filter": [{"exists": {"field": "place"}}], "must_not": [{"term": {"n": 7}}]}},
        "aggs": {"by": {"histogram": {"field": "n", "interval": 1000}, "aggs": {"m": {"max": {"field": "n"}}}}},
    }
    found = client.search(index=INDEX, body=body, preference="_local")
    assert found["hits"]["total"]["value"] == 2498, found["hits"]
    counts = [(b["key"], b["doc_count"], b["m"]["value"]) for b in found["aggregations"]["by"]["buckets"]]
    assert counts == [(0.0, 998, 999.0), (1000.0, 1000, 1999.0), (2000.0, 500, 2499.0)], counts
    box = {"geo_bounding_box": {"place": {"top_left": [9.5, 50], "bottom_right": [12, 40]}}}
    assert client.count(index=INDEX, body={"query": box})["count"] == 84
    several = client.msearch(body=[{"index": INDEX}, {"size": 0}, {"index": "gone"}, {}])["responses"]
    assert [answer["status"] for answer in several] == [200, 404], several
    unknown = lambda: client.search(index=INDEX, body={"query": {"knn": {"n": 1}}})
    error = refused(RequestError, "parsing_exception", unknown)
    assert error.info["error"]["col"] == 11, error.info
    pools = client.cat.thread_pool(thread_pool_patterns="search", format="json")
    assert {row["name"] for row in pools} == {"search"}, pools


def cluster(client, nodes):
    name = "indices.recovery.max_bytes_per_sec"
    client.cluster.put_settings(body={"persistent": {name: "80mb"}})
    settings = client.cluster.get_settings(flat_settings=True)
    assert settings["persistent"][name] == "80mb", settings
    client.cluster.put_settings(body={"persistent": {name: None}})
    assert name not in client.cluster.get_settings(flat_settings=True)["persistent"]
    unknown = lambda: client.cluster.put_settings(body={"persistent": {"indices.recovery.no_such": 1}})
    refused(RequestError, "illegal_argument_exception", unknown)

    client.indices.put_settings(index=INDEX, body={"index": {"refresh_interval": "5s"}})
    shown = client.indices.get_settings(index=INDEX)[INDEX]["settings"]["index"]
    assert shown["refresh_interval"] == "5s" and shown["number_of_shards"] == "2", shown
    client.indices.put_mapping(index=INDEX, body={"properties": {"word": {"type": "keyword"}}})
    mapping = client.indices.get_mapping(index=INDEX)[INDEX]["mappings"]
    assert set(mapping["properties"]) == {"n", "place", "word"}, mapping
    assert client.indices.get(index=INDEX)[INDEX]["aliases"] == {}

    stats = client.nodes.stats()
    assert stats["_nodes"] == {"total": nodes, "successful": nodes, "failed": 0}, stats["_nodes"]
    addresses = [node["http"]["publish_address"] for node in client.nodes.info()["nodes"].values()]
    assert len(addresses) == nodes and all(":" in address for address in addresses), addresses

    rows = client.cat.indices(index=INDEX, format="json", bytes="b")
    assert rows[0]["docs.count"] == "2511" and rows[0]["health"] == "green", rows
    assert int(rows[0]["store.size"]) > 0, rows
    assert len(client.cat.nodes(format="json")) == nodes
    assert client.cat.health(format="json")[0]["status"] == "green"
    assert len(client.cat.shards(index=INDEX, format="json")) in (2, 4)
    assert INDEX in client.cat.indices(v=True)
    shards = client.indices.recovery(index=INDEX)[INDEX]["shards"]
    assert {shard["stage"] for shard in shards} == {"DONE"}, shards
    rows = client.cat.recovery(index=INDEX, format="json", h="index,shard,stage,bytes_percent")
    assert len(rows) == len(shards) and rows[0]["stage"] == "done", rows
    assert client.cluster.remote_info() == {}


if __name__ == "__main__":
    main(sys.argv[1])
