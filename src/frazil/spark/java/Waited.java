package frazil;

import java.net.Socket;
import java.util.List;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.UUID;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;

/** Work of Python's on Spark that somebody waits for. Where nobody does any more, after ctrl-C, its jobs are cancelled. */
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

  static Object ask(String verb, Map told, List objects) {
    Socket served = Python.served();
    if (served == null) return Door.ask(verb, told, objects);
    SparkContext context = SparkSession.active().sparkContext();
    String tag = "frazil-" + UUID.randomUUID();
    Waited waited = new Waited(context, tag, served);
    Timer timer = new Timer("frazil waits", true);
    context.addJobTag(tag);
    timer.schedule(waited, EVERY_MS, EVERY_MS);
    try {
      return Door.ask(verb, told, objects);
    } finally {
      waited.end();
      timer.cancel();
      context.removeJobTag(tag);
    }
  }

  /** What is there to be read twice in a row is for nobody. Every time anew: a job may begin after others were cancelled. */
  public synchronized void run() {
    boolean before = seen;
    seen = Python.isGivenUp(served);
    if (before && seen && !ended) context.cancelJobsWithTag(tag);
  }

  private synchronized void end() {
    ended = true;
  }
}
