package narrows;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.Plugin;

/**
 * One OpenSearch node, as a child of narrows.
 *
 * Standard input holds its settings, one name=value a line, and then an empty line. When that input ends, so does the
 * node. What it wrote stays where the line "stop" came before, or where it does not start: it may be started again.
 * Otherwise what it wrote goes with it: nothing outlives a runner that was killed. It prints the line "ready" when it
 * listens. From then on, a line "collect 0.5" has collections of garbage take this share of the time; 0 leaves those
 * that it needs.
 *
 * The system property narrows.plugins names the classes of plugins that are on the class path; it is empty with an
 * unpacked distribution, whose modules the node finds by itself. narrows.remove names the directory to remove at the
 * end.
 */
public final class OpenSearchNode {
    /** What a later runner knows the directory by, where nobody was left to remove it. */
    private static final String MARKER = "narrows-temporary";

    private static final String COLLECT = "collect ";

    /** Exit code of a node whose port another process has taken. */
    private static final int ADDRESS_TAKEN = 75;

    private OpenSearchNode() {
    }

    /** Asks for collections of garbage so often that they take a share of the time, as those of a full heap do. */
    private static final class Collector extends Thread {
        private volatile double share;

        Collector() {
            super("collector");
            setDaemon(true);
        }

        void take(double asked) {
            share = asked;
            if (!isAlive() && asked > 0) {
                start();
            }
        }

        @Override
        public void run() {
            try {
                while (true) {
                    double now = share;
                    if (now > 0) {
                        long began = System.nanoTime();
                        System.gc();
                        long took = System.nanoTime() - began;
                        TimeUnit.NANOSECONDS.sleep((long) (took * (1 - now) / now));
                    } else {
                        TimeUnit.MILLISECONDS.sleep(20);
                    }
                }
            } catch (InterruptedException ended) {
                return;
            }
        }
    }

    /** A node with plugins from the class path. Releases differ in this constructor, so others never load it. */
    private static final class WithPlugins extends Node {
        WithPlugins(Environment environment, List<Class<? extends Plugin>> plugins) {
            super(environment, plugins, true);
        }
    }

    public static void main(String[] arguments) throws Exception {
        // What the libraries print is for people; the one line that the runner waits for goes to the real output.
        PrintStream out = System.out;
        System.setOut(System.err);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Node node = null;
        try {
            node = start(read(input));
        } catch (Exception | Error error) {
            error.printStackTrace();
            // The runner keeps the last lines only.
            int code = 1;
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                System.err.println(cause);
                // BindException of Java, BindHttpException and BindTransportException of the libraries.
                code = cause.getClass().getSimpleName().startsWith("Bind") ? ADDRESS_TAKEN : code;
            }
            // Threads of what did start would keep the process.
            Runtime.getRuntime().halt(code);
        }
        out.println("ready");
        out.flush();
        boolean isOrdered = false;
        Collector collector = new Collector();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            if (line.startsWith(COLLECT)) {
                collector.take(Double.parseDouble(line.substring(COLLECT.length())));
            }
            isOrdered |= line.equals("stop");
        }
        Node started = node;
        Thread end = new Thread(() -> end(started), "end");
        end.start();
        end.join(TimeUnit.SECONDS.toMillis(5));
        // Whatever hangs on the way down, a runner that vanished leaves nothing behind.
        if (!isOrdered) {
            remove();
        }
        Runtime.getRuntime().halt(0);
    }

    private static Node start(Settings settings) throws Exception {
        Path config = Path.of(settings.get("path.logs")).resolveSibling("config");
        Environment environment = InternalSettingsPreparer.prepareEnvironment(
            settings, Collections.emptyMap(), config, () -> settings.get("node.name"));
        List<Class<? extends Plugin>> plugins = plugins();
        Node node = plugins.isEmpty() ? new Node(environment) : new WithPlugins(environment, plugins);
        return node.start();
    }

    private static void end(Node node) {
        try {
            node.close();
            node.awaitClose(5, TimeUnit.SECONDS);
        } catch (IOException | InterruptedException error) {
            error.printStackTrace();
        }
    }

    private static Settings read(BufferedReader input) throws IOException {
        Settings.Builder settings = Settings.builder();
        String line = input.readLine();
        while (line != null && !line.isEmpty()) {
            int end = line.indexOf('=');
            settings.put(line.substring(0, end), line.substring(end + 1));
            line = input.readLine();
        }
        return settings.build();
    }

    @SuppressWarnings("unchecked")
    private static List<Class<? extends Plugin>> plugins() throws ClassNotFoundException {
        List<Class<? extends Plugin>> plugins = new ArrayList<>();
        for (String name : System.getProperty("narrows.plugins", "").split(",")) {
            if (!name.isEmpty()) {
                plugins.add((Class<? extends Plugin>) Class.forName(name));
            }
        }
        return plugins;
    }

    /** Removes the node's own directory, and the one above if nothing but its marker is left in it. */
    private static void remove() {
        String name = System.getProperty("narrows.remove", "");
        if (name.isEmpty()) {
            return;
        }
        Path directory = Path.of(name);
        // A closing node may still write; what came in between goes in the next round.
        for (int round = 0; round < 5 && Files.exists(directory); round++) {
            try (Stream<Path> paths = Files.walk(directory)) {
                paths.sorted(Comparator.reverseOrder()).forEach(OpenSearchNode::delete);
            } catch (IOException | RuntimeException changed) {
                continue;
            }
        }
        Path above = directory.getParent();
        String[] left = above.toFile().list();
        if (left != null && left.length == 1 && left[0].equals(MARKER)) {
            delete(above.resolve(MARKER));
        }
        delete(above);
    }

    /** A directory that is not empty stays. */
    private static void delete(Path path) {
        try {
            Files.deleteIfExists(path);
        } catch (IOException stays) {
            return;
        }
    }
}
