package frazil;

import java.net.Socket;
import java.util.List;
import java.util.Timer;
import java.util.TimerTask;
import java.util.UUID;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;

/** Cancels the Spark jobs of a request when its caller gives up, after ctrl-C. */
public class Waited extends TimerTask {
  private static final long EVERY_MS = 200L;

  private final SparkContext context;
  private final String tag;
  private final Socket served;
  private boolean ended;
  private boolean seen;

  private Waited(SparkContext context, String tag, Socket served) {
    this.context = context;
    this.tag = tag;
    this.served = served;
  }

  public static Object ask(Request request, List objects) {
    Socket served = Python.served();
    if (served == null) return request.ask(objects);
    SparkContext context = SparkSession.active().sparkContext();
    String tag = "frazil-" + UUID.randomUUID();
    Waited waited = new Waited(context, tag, served);
    Timer timer = new Timer("frazil waits", true);
    context.addJobTag(tag);
    timer.schedule(waited, EVERY_MS, EVERY_MS);
    try {
      return request.ask(objects);
    } finally {
      waited.end();
      timer.cancel();
      context.removeJobTag(tag);
    }
  }

  /** Two consecutive polls with unread data mean that the caller gave up; more jobs may start after a cancellation. */
  public synchronized void run() {
    boolean before = seen;
    seen = Python.isGivenUp(served);
    if (before && seen && !ended) context.cancelJobsWithTag(tag);
  }

  private synchronized void end() {
    ended = true;
  }
}
