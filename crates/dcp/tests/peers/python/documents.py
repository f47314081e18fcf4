"""Writes, reads and deletes documents through the couchbase package: documents.py ADDRESS BUCKET ITEMS

User and password come from PEER_USER and PEER_PASSWORD.
"""

import os
import sys
from datetime import timedelta

from couchbase.auth import PasswordAuthenticator
from couchbase.cluster import Cluster
from couchbase.exceptions import CASMismatchException, DocumentExistsException, DocumentNotFoundException
from couchbase.options import ClusterOptions, ReplaceOptions

address, bucket, items = sys.argv[1], sys.argv[2], int(sys.argv[3])
who = PasswordAuthenticator(os.environ["PEER_USER"], os.environ["PEER_PASSWORD"])
cluster = Cluster(f"couchbase://{address}", ClusterOptions(who))
documents = cluster.bucket(bucket).default_collection()
for n in range(items):
    documents.upsert(f"python{n}", {"number": n})
for n in range(items):
    assert documents.get(f"python{n}").content_as[dict] == {"number": n}
before = documents.get("python0")
documents.replace("python0", {"number": "new"}, ReplaceOptions(cas=before.cas))
for wrong, error in [
    (lambda: documents.replace("python0", {}, ReplaceOptions(cas=before.cas)), CASMismatchException),
    (lambda: documents.insert("python1", {}), DocumentExistsException),
    (lambda: documents.get("not there"), DocumentNotFoundException),
]:
    try:
        wrong()
    except error:
        pass
    else:
        sys.exit(f"{error.__name__} was expected")
for n in range(0, items, 2):
    documents.remove(f"python{n}")
cluster.close()
print("done")
