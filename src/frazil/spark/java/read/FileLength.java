package frazil.read;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;

public class FileLength implements Callable {
  private static final int THREADS = 32;
  private static final long MOST = 1L << 34;
  public final Path path;
  private final String about;
  public long length;

  /** A file has at least one split, and at most as many as a file of 16 GiB. */
  FileLength(Path path, long fileLength, String about) {
    this.path = path;
    this.about = about;
    this.length = Math.min(Math.max(fileLength, 1L), MOST);
  }

  /** Look up the lengths of local files, which is cheap; those of remote files, one request each, only on demand. */
  public static void find(List files, boolean asksOthers) {
    ArrayList asked = new ArrayList();
    for (Object one : files) {
      FileLength file = (FileLength) one;
      if ("file".equals(file.path.toUri().getScheme())) file.look();
      else if (asksOthers) asked.add(file);
    }
    if (asked.isEmpty()) return;
    ExecutorService threads =
        Executors.newFixedThreadPool(Math.min(THREADS, asked.size()));
    try {
      for (Object one : threads.invokeAll(asked)) ((Future) one).get();
    } catch (ExecutionException e) {
      throw new IllegalArgumentException(e.getCause().getMessage());
    } catch (InterruptedException e) {
      throw new IllegalArgumentException("Cannot take over planned files: interrupted");
    } finally {
      threads.shutdownNow();
    }
  }

  private void look() {
    File file = new File(path.toUri().getPath());
    length = file.length();
    if (length == 0) throw wrong(file.getPath(), file.exists() ? "it is empty" : "there is no such file");
  }

  public Object call() {
    try {
      length = path.getFileSystem(SparkContext.getOrCreate().hadoopConfiguration())
          .getFileStatus(path).getLen();
      if (length == 0) throw wrong(path.toString(), "it is empty");
    } catch (FileNotFoundException e) {
      throw wrong(path.toString(), "there is no such file");
    } catch (IOException e) {
      throw wrong(path.toString(), e.toString());
    }
    return null;
  }

  private IllegalArgumentException wrong(String name, String reason) {
    return new IllegalArgumentException("Cannot read data file " + name + ": " + reason + about);
  }
}
