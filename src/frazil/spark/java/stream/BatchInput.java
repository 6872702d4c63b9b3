package frazil.stream;

import frazil.Door;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The identity of a batch's input: a digest of the offsets in its query's checkpoint. It is the same when the batch is run
 * again, and in a copy of the checkpoint unless the copy has diverged.
 */
public class BatchInput {
  private static final String COUNTED = "{\"logOffset\"";

  /** Returns the digest, or null if the checkpoint does not have the offsets. */
  static String digest(String checkpoint, long batch, Configuration settings) {
    try {
      List lines = lines(new Path(checkpoint, "offsets/" + batch), settings);
      if (lines == null) return null;
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      // The first lines are a version and the query's settings, which differ between copies.
      for (int i = 2; i < lines.size(); i++) {
        add(digest, (String) lines.get(i));
        List files = files(checkpoint + "/sources/" + (i - 2), (String) lines.get(i), settings);
        for (int j = 0; j < files.size(); j++) add(digest, (String) files.get(j));
      }
      return new BigInteger(1, digest.digest()).shiftRight(192).toString(16);
    } catch (java.security.GeneralSecurityException e) {
      throw new IllegalStateException(e);
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException("Cannot read " + checkpoint + ", a stream's checkpoint", e);
    }
  }

  private static void add(MessageDigest digest, String line) {
    digest.update((line + "\n").getBytes(StandardCharsets.UTF_8));
  }

  /** Returns the files of a source whose offsets are only counters; its log has their names. */
  private static List files(String source, String offset, Configuration settings) throws java.io.IOException {
    ArrayList names = new ArrayList();
    if (!offset.startsWith(COUNTED)) return names;
    Object number = ((Map) Door.parse(offset)).get("logOffset");
    List logged = lines(new Path(source, number.toString()), settings);
    if (logged == null) logged = lines(new Path(source, number + ".compact"), settings);
    if (logged == null) return names;
    String own = "\"batchId\":" + number + "}";
    for (int i = 0; i < logged.size(); i++) if (((String) logged.get(i)).endsWith(own)) names.add(logged.get(i));
    Collections.sort(names);
    return names;
  }

  private static List lines(Path path, Configuration settings) throws java.io.IOException {
    FileSystem files = path.getFileSystem(settings);
    if (!files.exists(path)) return null;
    BufferedReader in = new BufferedReader(new InputStreamReader(files.open(path), StandardCharsets.UTF_8));
    try {
      ArrayList lines = new ArrayList();
      for (String line = in.readLine(); line != null; line = in.readLine()) lines.add(line);
      return lines;
    } finally {
      in.close();
    }
  }
}
