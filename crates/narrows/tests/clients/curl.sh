#!/bin/sh
# What people type: curl.sh URL. Prints what it did as a line of JSON, or ends with what does not hold.
set -eu
url=$1
index=documents-of-curl
did=

# ask METHOD PATH [BODY]: the answer; fails as curl does where the status is an error.
ask() {
  curl -sS --fail-with-body --max-time 30 -X "$1" -H 'Content-Type: application/json' ${3+-d "$3"} "$url$2"
}
# holds ANSWER PART...: each part stands in the answer.
holds() {
  answer=$1
  shift
  for part in "$@"; do
    case $answer in
      *"$part"*) ;;
      *) echo "$part is not in $answer" >&2; exit 1 ;;
    esac
  done
}
done_with() { did="$did${did:+,}\"$1\""; }

holds "$(ask PUT /$index '{"settings": {"number_of_shards": 2, "number_of_replicas": 1}, "mappings": {"properties":
  {"n": {"type": "long"}, "word": {"type": "keyword"}, "note": {"type": "text"}}}}')" '"acknowledged":true'
curl -sS --fail --max-time 30 -I "$url/$index" >/dev/null
done_with "create index"

holds "$(ask GET "/_cluster/health/$index?wait_for_status=green")" '"status":"green"' '"number_of_nodes":2'
done_with "cluster health"

lines=$(seq 0 99 | while read -r n; do
  printf '{"index":{"_id":"%s"}}\n{"n":%s,"word":"w%s","note":"number %s"}\n' "$n" "$n" $((n % 5)) "$n"
done)
holds "$(printf '%s\n' "$lines" | curl -sS --fail-with-body --max-time 30 -H 'Content-Type: application/x-ndjson' \
  --data-binary @- "$url/$index/_bulk")" '"errors":false'
done_with bulk

holds "$(ask POST /$index/_refresh)" '"_shards":{"failed":0,"successful":4,"total":4}'
holds "$(ask GET /$index/_count)" '"count":100'
done_with refresh

holds "$(ask POST "/$index/_search" '{"query": {"range": {"n": {"gte": 90}}}, "sort": [{"n": "desc"}], "size": 1}')" \
  '"value":10' '"n":99'
done_with search

holds "$(ask GET "/$index/_search?filter_path=aggregations.**.doc_count" \
  '{"size": 0, "aggs": {"words": {"terms": {"field": "word"}}}}')" \
  '{"aggregations":{"words":{"buckets":[{"doc_count":20},{"doc_count":20},{"doc_count":20},{"doc_count":20},{"doc_count":20}]}}}'
done_with aggregate

holds "$(ask GET /$index/_doc/7)" '"found":true' '"number 7"'
done_with get

holds "$(ask POST /$index/_update/7 '{"doc": {"n": 700}}')" '"result":"updated"' '"_version":2'
holds "$(ask GET /$index/_source/7)" '"n":700'
done_with update

page=$(ask POST "/$index/_search?scroll=1m&size=60" '{"query": {"match": {"note": "number"}}}')
id=$(printf %s "$page" | sed 's/.*"_scroll_id":"\([^"]*\)".*/\1/')
seen=$(printf %s "$page" | grep -o '"_id"' | wc -l)
page=$(ask POST /_search/scroll "{\"scroll\": \"1m\", \"scroll_id\": \"$id\"}")
seen=$((seen + $(printf %s "$page" | grep -o '"_id"' | wc -l)))
[ "$seen" = 100 ] || { echo "$seen hits in two pages" >&2; exit 1; }
holds "$(ask DELETE /_search/scroll "{\"scroll_id\": \"$id\"}")" '"succeeded":true'
done_with scroll

# Many documents in one request, templates, and searches of one moment.
newer=
newly() { newer="$newer${newer:+,}\"$1\""; }
copy=$index-copy
holds "$(ask PUT /_index_template/of-curl "{\"index_patterns\": [\"$index-*\"], \"template\": {\"mappings\":
  {\"properties\": {\"n\": {\"type\": \"long\"}, \"word\": {\"type\": \"keyword\"}}}}}")" '"acknowledged":true'
newly template
ask POST /$index/_refresh >/dev/null
holds "$(ask POST "/_reindex?refresh=true" \
  "{\"source\": {\"index\": \"$index\", \"_source\": [\"n\", \"word\"]}, \"dest\": {\"index\": \"$copy\"}}")" '"created":100'
newly reindex
holds "$(ask GET "/$index*/_field_caps?fields=n*")" '"note"' '"aggregatable":true'
newly "field capabilities"
moment=$(ask POST "/$copy/_search/point_in_time?keep_alive=1m" | sed 's/.*"pit_id":"\([^"]*\)".*/\1/')
holds "$(ask POST "/$copy/_delete_by_query?refresh=true" '{"query": {"range": {"n": {"gte": 90}}}}')" '"deleted":11'
newly "delete by query"
holds "$(ask POST /_search "{\"size\": 0, \"track_total_hits\": true, \"pit\": {\"id\": \"$moment\", \"keep_alive\": \"1m\"}}")" \
  '"value":100'
holds "$(ask DELETE /_search/point_in_time "{\"pit_id\": [\"$moment\"]}")" '"successful":true'
newly "point in time"
holds "$(ask POST "/$copy/_update_by_query?q=word:w1&refresh=true")" '"updated":18'
holds "$(ask GET "/$copy/_count?q=*:*")" '"count":89'
newly "update by query"
holds "$(ask DELETE /$copy)" '"acknowledged":true'
holds "$(ask DELETE /_index_template/of-curl)" '"acknowledged":true'

holds "$(ask DELETE /$index/_doc/8)" '"result":"deleted"'
done_with "delete by id"

# As curl says it: exit code 22.
code=0
answer=$(ask GET /no-such-index/_search 2>/dev/null) || code=$?
[ $code = 22 ] || { echo "curl ended with $code: $answer" >&2; exit 1; }
holds "$answer" '"status":404' '"type":"index_not_found_exception"'
done_with error

holds "$(ask DELETE /$index)" '"acknowledged":true'
done_with "delete index"
printf '{"did":[%s],"newer":[%s]}\n' "$did" "$newer"
