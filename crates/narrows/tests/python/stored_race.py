"""Reads a race out of the store that narrows wrote it to: python3 stored_race.py http://127.0.0.1:9200 RACE

Needs opensearch-py. Prints the mean service time of each operation, by a query and by an aggregation, and the
operations of the race as it is stored whole.
"""

import json
import sys

from opensearchpy import OpenSearch

url, race = sys.argv[1:]
client = OpenSearch(url, timeout=60)
client.indices.refresh(index="rally-*")
# A store that refuses Rally's templates maps text with a keyword below it.
mapping = client.indices.get_mapping(index="rally-results-*")
fields = next(iter(mapping.values()))["mappings"]["properties"]
operation = "operation" if fields["operation"]["type"] == "keyword" else "operation.keyword"
mean = {"mean": {"max": {"field": "value.mean"}}}
body = {
    "size": 100,
    "query": {"bool": {"filter": [{"match_phrase": {"race-id": race}}, {"match": {"name": "service_time"}}]}},
    "aggs": {"operations": {"terms": {"field": operation, "size": 100}, "aggs": mean}},
}
found = client.search(index="rally-results-*", body=body)
hits = [hit["_source"] for hit in found["hits"]["hits"]]
buckets = found["aggregations"]["operations"]["buckets"]
races = client.search(index="rally-races-*", body={"query": {"match_phrase": {"race-id": race}}})
whole = races["hits"]["hits"][0]["_source"]
print(
    json.dumps(
        {
            "query": {hit["operation"]: hit["value"]["mean"] for hit in hits},
            "aggregation": {bucket["key"]: bucket["mean"]["value"] for bucket in buckets},
            "race": [row["operation"] for row in whole["results"]["op_metrics"]],
        }
    )
)
