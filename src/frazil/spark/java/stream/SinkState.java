package frazil.stream;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.classic.SparkSession;

/**
 * What the sink of a stream keeps from batch to batch: the session that its batches are written in. It lives as long as
 * the query's sink; the rows of a batch are released when the batch ends.
 */
public class SinkState {
  private static final ThreadLocal CURRENT = new ThreadLocal();

  private Object settings;
  private SparkSession session;
  private RDD binary;

  /** Returns the state of the sink whose batch this thread is writing, or null. */
  public static SinkState current() {
    return (SinkState) CURRENT.get();
  }

  /** Begin a batch; `rows` are its rows in Spark's binary format, or null if they have another one. */
  void begin(RDD rows) {
    binary = rows;
    CURRENT.set(this);
  }

  /** End the batch; what it has broadcast can be released before the next one. */
  public void end() {
    CURRENT.remove();
    binary = null;
  }

  public boolean isBinary(RDD rows) {
    return rows == binary;
  }

  /** Returns the session of an earlier batch, or null if there was none or its settings were others. */
  public SparkSession session(Object asked) {
    return asked.equals(settings) ? session : null;
  }

  public void keep(Object asked, SparkSession own) {
    settings = asked;
    session = own;
  }
}
