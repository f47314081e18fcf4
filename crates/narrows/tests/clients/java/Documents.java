import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

import org.apache.hc.core5.http.HttpHost;
import org.opensearch.client.json.JsonData;
import org.opensearch.client.json.jackson.JacksonJsonpMapper;
import org.opensearch.client.opensearch.OpenSearchClient;
import org.opensearch.client.opensearch._types.FieldValue;
import org.opensearch.client.opensearch._types.HealthStatus;
import org.opensearch.client.opensearch._types.OpenSearchException;
import org.opensearch.client.opensearch._types.Result;
import org.opensearch.client.opensearch._types.SortOrder;
import org.opensearch.client.opensearch._types.Time;
import org.opensearch.client.opensearch.core.BulkRequest;
import org.opensearch.client.opensearch.core.search.Hit;
import org.opensearch.client.transport.OpenSearchTransport;
import org.opensearch.client.transport.Version;
import org.opensearch.client.transport.httpclient5.ApacheHttpClient5TransportBuilder;
import org.opensearch.client.transport.httpclient5.ResponseException;

/** What users of opensearch-java do: Documents URL. Prints what it did as a line of JSON, or ends with what fails. */
public final class Documents {
    private static final String INDEX = "documents-of-java";
    private static final List<String> DID = new ArrayList<>();

    /** A document, as Jackson writes and reads it. */
    public static final class Document {
        public int n;
        public String word;
        public String note;

        static Document of(int n) {
            Document made = new Document();
            made.n = n;
            made.word = "w" + n % 5;
            made.note = "number " + n;
            return made;
        }
    }

    /** An action that may fail. */
    private interface Action {
        void run() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        HttpHost host = HttpHost.create(arguments[0]);
        try (OpenSearchTransport transport = ApacheHttpClient5TransportBuilder.builder(host)
                .setMapper(new JacksonJsonpMapper()).build()) {
            OpenSearchClient client = new OpenSearchClient(transport);
            indices(client);
            bulk(client);
            searches(client);
            documents(client);
            scroll(client);
            removals(client);
        }
        String did = DID.stream().map(step -> '"' + step + '"').collect(Collectors.joining(","));
        System.out.println("{\"version\":\"" + Version.VERSION + "\",\"did\":[" + did + "]}");
    }

    private static void check(boolean holds, Object what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private static void indices(OpenSearchClient client) throws Exception {
        boolean acknowledged = client.indices().create(index -> index.index(INDEX)
                .settings(settings -> settings.numberOfShards(2).numberOfReplicas(1))
                .mappings(mapping -> mapping.properties("n", field -> field.long_(it -> it))
                        .properties("word", field -> field.keyword(it -> it))
                        .properties("note", field -> field.text(it -> it)))).acknowledged();
        check(acknowledged && client.indices().exists(index -> index.index(INDEX)).value(), INDEX);
        var properties = client.indices().getMapping(index -> index.index(INDEX)).get(INDEX).mappings().properties();
        check(properties.size() == 3 && properties.get("word").isKeyword(), properties);
        DID.add("create index");

        var health = client.cluster().health(of -> of.index(INDEX).waitForStatus(HealthStatus.Green));
        check(health.status() == HealthStatus.Green && health.numberOfNodes() == 2, health);
        DID.add("cluster health");
    }

    private static void bulk(OpenSearchClient client) throws Exception {
        for (int from = 0; from < 100; from += 50) {
            BulkRequest.Builder request = new BulkRequest.Builder().index(INDEX);
            for (int n = from; n < from + 50; n++) {
                Document source = Document.of(n);
                request.operations(one -> one.index(it -> it.id(String.valueOf(source.n)).document(source)));
            }
            var answer = client.bulk(request.build());
            check(!answer.errors() && answer.items().size() == 50, answer);
        }
        DID.add("bulk");

        var shards = client.indices().refresh(index -> index.index(INDEX)).shards();
        check(shards.total() == 4 && shards.failed() == 0, shards);
        check(client.count(of -> of.index(INDEX)).count() == 100, INDEX);
        DID.add("refresh");
    }

    private static void searches(OpenSearchClient client) throws Exception {
        var hits = client.search(search -> search.index(INDEX).size(3)
                .query(query -> query.range(range -> range.field("n").gte(JsonData.of(90))))
                .sort(sort -> sort.field(field -> field.field("n").order(SortOrder.Desc))), Document.class).hits();
        check(hits.total().value() == 10, hits.total());
        List<Integer> found = hits.hits().stream().map(hit -> hit.source().n).toList();
        check(found.equals(List.of(99, 98, 97)), found);
        DID.add("search");

        var answer = client.search(search -> search.index(INDEX).size(0)
                .aggregations("words", of -> of.terms(terms -> terms.field("word"))
                        .aggregations("mean", mean -> mean.avg(avg -> avg.field("n")))), Document.class);
        var buckets = answer.aggregations().get("words").sterms().buckets().array();
        check(buckets.size() == 5, buckets);
        for (var bucket : buckets) {
            double mean = 47.5 + (bucket.key().charAt(1) - '0');
            check(bucket.docCount() == 20, bucket.docCount());
            check(Math.abs(bucket.aggregations().get("mean").avg().value() - mean) < 1e-9, bucket.key());
        }
        DID.add("aggregate");
    }

    private static Document read(OpenSearchClient client) throws Exception {
        var got = client.get(of -> of.index(INDEX).id("7"), Document.class);
        check(got.found(), "not found");
        return got.source();
    }

    private static void documents(OpenSearchClient client) throws Exception {
        Document before = read(client);
        check(before.n == 7 && before.word.equals("w2") && before.note.equals("number 7"), before.n);
        DID.add("get");

        var updated = client.update(of -> of.index(INDEX).id("7").doc(Map.of("n", 700)), Document.class);
        check(updated.result() == Result.Updated && updated.version() == 2, updated.result());
        check(read(client).n == 700, "not updated");
        DID.add("update");
    }

    private static void scroll(OpenSearchClient client) throws Exception {
        Time minute = Time.of(time -> time.time("1m"));
        var first = client.search(search -> search.index(INDEX).size(30).scroll(minute)
                .query(query -> query.match(it -> it.field("note").query(FieldValue.of("number")))), Document.class);
        Set<String> seen = new HashSet<>();
        List<Hit<Document>> hits = first.hits().hits();
        String id = first.scrollId();
        while (!hits.isEmpty()) {
            hits.forEach(hit -> seen.add(hit.id()));
            String from = id;
            var next = client.scroll(of -> of.scrollId(from).scroll(minute), Document.class);
            hits = next.hits().hits();
            id = next.scrollId();
        }
        check(seen.size() == 100, seen);
        String last = id;
        check(client.clearScroll(of -> of.scrollId(last)).numFreed() == 2, last);
        DID.add("scroll");
    }

    /** Of 400, 401, 403, 404 and 405 this client reads the answer; of others it hands on status and text. */
    private static void fails(int status, String type, Action action) throws Exception {
        try {
            action.run();
        } catch (OpenSearchException error) {
            check(error.status() == status && error.error().type().equals(type), error);
            return;
        } catch (ResponseException error) {
            check(error.status() == status && error.getMessage().contains(type), error);
            return;
        }
        throw new AssertionError(type + " was not thrown");
    }

    private static void removals(OpenSearchClient client) throws Exception {
        check(client.delete(of -> of.index(INDEX).id("8")).result() == Result.Deleted, "not deleted");
        check(!client.exists(of -> of.index(INDEX).id("8")).value(), "still there");
        DID.add("delete by id");

        fails(404, "index_not_found_exception",
                () -> client.search(search -> search.index("no-such-index"), Document.class));
        fails(409, "version_conflict_engine_exception",
                () -> client.create(of -> of.index(INDEX).id("7").document(Document.of(7))));
        DID.add("error");

        check(client.indices().delete(index -> index.index(INDEX)).acknowledged(), INDEX);
        check(!client.indices().exists(index -> index.index(INDEX)).value(), INDEX);
        DID.add("delete index");
    }
}
