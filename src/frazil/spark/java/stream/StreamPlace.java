package frazil.stream;

/** An offset of a stream, as text. */
public class StreamPlace extends org.apache.spark.sql.execution.streaming.Offset {
  private final String json;

  public StreamPlace(String json) {
    this.json = json;
  }

  public String json() {
    return json;
  }
}
