package frazil;

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
  final Path path;
  private final String about;
  long length;

  /** A file has a part to read, and none is cut into more parts than one of 16 GiB. */
  FileLength(Path path, long told, String about) {
    this.path = path;
    this.about = about;
    this.length = Math.min(Math.max(told, 1L), MOST);
  }

  /** Look at local files, which costs nothing, and where that is asked for, at others, which is a request for each. */
  static void find(List files, boolean asksOthers) {
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
