import com.couchbase.client.dcp.Client;
import com.couchbase.client.dcp.StreamFrom;
import com.couchbase.client.dcp.StreamTo;
import com.couchbase.client.dcp.highlevel.DatabaseChangeListener;
import com.couchbase.client.dcp.highlevel.Deletion;
import com.couchbase.client.dcp.highlevel.FailoverLog;
import com.couchbase.client.dcp.highlevel.FlowControlMode;
import com.couchbase.client.dcp.highlevel.Mutation;
import com.couchbase.client.dcp.highlevel.SnapshotDetails;
import com.couchbase.client.dcp.highlevel.StreamEnd;
import com.couchbase.client.dcp.highlevel.StreamFailure;
import com.couchbase.client.dcp.message.StreamEndReason;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Streams every vbucket up to where it is through Couchbase's DCP client and prints what it sees, a line each:
 * {@code Streams ADDRESS BUCKET}. User and password come from PEER_USER and PEER_PASSWORD.
 */
public class Streams {
  private static final int WINDOW_BYTES = 64 << 10;
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final PrintStream OUT =
      new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, StandardCharsets.UTF_8);

  private static synchronized void line(String format, Object... values) {
    OUT.printf(format + "%n", values);
  }

  private static void fail(String what, Object why) {
    System.err.println(what + ": " + why);
    System.exit(1);
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length != 2) {
      fail("arguments", "ADDRESS BUCKET");
    }
    Client client =
        Client.builder()
            .connectionString("couchbase://" + arguments[0])
            .bucket(arguments[1])
            .credentials(System.getenv("PEER_USER"), System.getenv("PEER_PASSWORD"))
            .flowControl(WINDOW_BYTES)
            .bootstrapTimeout(PATIENCE)
            .build();
    Listener seen = new Listener();
    client.listener(seen, FlowControlMode.AUTOMATIC);
    client.connect().block(PATIENCE);
    client.initializeState(StreamFrom.BEGINNING, StreamTo.NOW).block(PATIENCE);
    seen.ended = new CountDownLatch(client.numPartitions());
    client.startStreaming().block(PATIENCE);
    if (!seen.ended.await(PATIENCE.toSeconds(), TimeUnit.SECONDS)) {
      fail("streams", seen.ended.getCount() + " did not end");
    }
    client.disconnect().block(PATIENCE);
    line("done");
    OUT.flush();
    System.exit(0);
  }

  private static class Listener implements DatabaseChangeListener {
    volatile CountDownLatch ended;
    private final Set<Integer> opened = new HashSet<>();

    @Override
    public void onFailoverLog(FailoverLog log) {
      // It is told before a stream is asked for, too.
      if (opened.add(log.getVbucket())) {
        line("opened %d %d %s", log.getVbucket(), log.getEntries().size(),
            Long.toUnsignedString(log.getEntries().get(0).getUuid()));
      }
    }

    @Override
    public void onSnapshot(SnapshotDetails snapshot) {
      line("marker %d %d %d", snapshot.getVbucket(), snapshot.getMarker().getStartSeqno(),
          snapshot.getMarker().getEndSeqno());
    }

    @Override
    public void onMutation(Mutation mutation) {
      line("mutation %d %d %s %d %s", mutation.getVbucket(), mutation.getOffset().getSeqno(), mutation.getKey(),
          mutation.getFlagsAsInt(), new String(mutation.getContent(), StandardCharsets.UTF_8));
    }

    @Override
    public void onDeletion(Deletion deletion) {
      String kind = deletion.isDueToExpiration() ? "expiration" : "deletion";
      line("%s %d %d %s", kind, deletion.getVbucket(), deletion.getOffset().getSeqno(), deletion.getKey());
    }

    @Override
    public void onStreamEnd(StreamEnd end) {
      boolean well = end.getReason() == StreamEndReason.OK;
      line("end %d %s", end.getVbucket(), well ? "<nil>" : end.getReason());
      ended.countDown();
    }

    @Override
    public void onFailure(StreamFailure failure) {
      fail("the stream of vbucket " + failure.getVbucket(), failure.getCause());
    }
  }
}
