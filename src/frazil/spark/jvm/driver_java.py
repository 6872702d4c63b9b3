"""The Java of relations: classes the driver compiles when they are first needed, with the compiler Spark ships.

Spark asks a `FileIndex` for the files of a query while it plans it. `PlannedFiles` is one that asks Python, and turns
the answer, an Arrow stream of paths, sizes and constants for each file, into Spark's objects at once: one call of
Py4J for each object would cost about 0.15 ms, this costs about 2 µs.

`listFiles` gives Python the pushed filters as JSON (`write`), takes its answer (bytes, or text: an error to raise) and
applies filters on constants itself, with Spark's own evaluation: Spark does not test those again. An expression that
`write` does not know becomes `["?"]`, which Python takes as "may be true".

Spark cuts files by their lengths and reads nothing behind. Local files are looked at. Where the last part of each file
is read to its end (`scan_java.py`), lengths of others are what manifests say, and no request is made before a file is
read. Elsewhere, as in a session that only has a view of a frame, the file system is asked for each.

Paths of files carry the table and the snapshot behind a `#` (`mark`), which file systems pass over: Spark's own errors
about a file, from wherever they come, then say what it is of.

`table` is what Spark's optimiser learns rows and distinct values from, and its plans the table's name.

`PruneBeforeJoins` is an optimiser rule that `attach` adds to a session: it plans filtered relations a little earlier,
so that Spark chooses joins by what is left of a table, and so that `explain` shows how many files are.

`ParquetById` is Spark's Parquet reader for relations whose columns do not show their field ids: they are put on what is
asked of files, so that these are read by id, and stand nowhere else.

Executors never see these classes: what travels to them is the list of files, and Spark's own reader.
"""

from __future__ import annotations

CLASS_NAME = "PlannedFiles"
RULE_NAME = "PruneBeforeJoins"
READER_NAME = "ParquetById"

SOURCE = r"""
import java.io.ByteArrayInputStream;
import java.util.ArrayList;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.*;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.*;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

public class PlannedFiles implements FileIndex, Cloneable {
  private final java.util.function.Function planner;
  private final String word;
  private final String key;
  private final String root;
  private final StructType constants;
  private final String name;
  private final String columns;
  private long bytes;
  private long rows;
  private boolean isPruned = false;
  private boolean isReadToEnd = false;

  public PlannedFiles(
      java.util.function.Function planner, String word, String key, String root, StructType constants, String name,
      String bytes, String rows, String columns) {
    this.planner = planner;
    this.word = word;
    this.key = key;
    this.root = root;
    this.constants = constants;
    this.name = name;
    this.bytes = Long.parseLong(bytes);
    this.rows = Long.parseLong(rows);
    this.columns = columns;
  }

  private String note = "";
  private java.util.Map shown = new java.util.HashMap();
  private String asked;
  private byte[] answered;

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    ArrayList filters = new ArrayList(CollectionConverters.asJava(partitionFilters));
    filters.addAll(CollectionConverters.asJava(dataFilters));
    return read(ask(filters), test(partitionFilters), !isReadToEnd);
  }

  /** The same files for a scan that reads each to its end, however long it is said to be. */
  public PlannedFiles readToEnd() {
    try {
      PlannedFiles found = (PlannedFiles) clone();
      found.isReadToEnd = true;
      return found;
    } catch (CloneNotSupportedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The answer for these filters; what `pruned` asked is not asked again. */
  private synchronized byte[] ask(java.util.Collection filters) {
    java.util.TreeSet texts = new java.util.TreeSet();
    for (Object one : filters) {
      StringBuilder text = new StringBuilder(",");
      write((Expression) one, text);
      texts.add(text.toString());
    }
    StringBuilder all = new StringBuilder("[\"and\"");
    for (Object text : texts) all.append(text);
    String request = all.append(']').toString();
    if (request.equals(asked)) return answered;
    Object answer = KeptThreads.ask(planner, word + request);
    if (!(answer instanceof byte[])) throw new IllegalArgumentException(String.valueOf(answer));
    asked = request;
    answered = (byte[]) answer;
    return answered;
  }

  /** The same files under filters that are known before Spark plans joins: it has their size, and can show it. */
  public PlannedFiles pruned(java.util.Collection filters) {
    PlannedFiles found = new PlannedFiles(planner, word, key, root, constants, name, "0", "0", columns);
    found.shown = shown;
    byte[] answer = found.ask(filters);
    ArrowStreamReader reader = open(answer);
    long size = 0;
    try {
      String total = (String) reader.getVectorSchemaRoot().getSchema().getCustomMetadata().get("total-files");
      long files = 0;
      while (reader.loadNextBatch()) {
        ArrowColumnVector sizes = new ArrowColumnVector(
            (FieldVector) reader.getVectorSchemaRoot().getFieldVectors().get(1));
        ArrowColumnVector counts = new ArrowColumnVector(
            (FieldVector) reader.getVectorSchemaRoot().getFieldVectors().get(2));
        int rows = reader.getVectorSchemaRoot().getRowCount();
        for (int row = 0; row < rows; row++) {
          size += sizes.getLong(row);
          found.rows += counts.getLong(row);
        }
        files += rows;
      }
      found.note = files + (total == null ? "" : " of " + total) + " files (" + size + " bytes)";
    } catch (java.io.IOException e) {
      throw new IllegalArgumentException("Cannot take over planned files: " + e);
    } finally {
      close(reader);
    }
    found.bytes = Math.max(size, 1L);
    found.rows = Math.min(found.rows, rows);
    found.isPruned = true;
    return found;
  }

  public boolean isPruned() { return isPruned; }

  /** The table as Spark's plans name it, with what its optimiser may know. */
  public CatalogTable table() throws ReflectiveOperationException {
    java.util.HashMap known = new java.util.HashMap();
    String[] parts = columns.isEmpty() ? new String[0] : columns.split("\0", -1);
    for (int i = 0; i + 2 < parts.length; i += 3)
      known.put(parts[i], new CatalogColumnStat(
          number(Math.min(Long.parseLong(parts[i + 1]), rows)), scala.Option.empty(), scala.Option.empty(),
          "!".equals(parts[i + 2]) ? number(0L) : scala.Option.empty(),
          scala.Option.empty(), scala.Option.empty(), scala.Option.empty(), 2));
    CatalogStatistics stats = new CatalogStatistics(scala.math.BigInt.apply(bytes), number(rows),
        scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(known)));
    // Every Spark adds parts to a table. All have defaults but for the first four.
    java.lang.reflect.Constructor constructor = CatalogTable.class.getConstructors()[0];
    Object[] made = new Object[constructor.getParameterTypes().length];
    made[0] = new org.apache.spark.sql.catalyst.TableIdentifier(name);
    made[1] = CatalogTableType$.MODULE$.EXTERNAL();
    made[2] = CatalogStorageFormat$.MODULE$.empty();
    made[3] = new StructType();
    for (int i = 4; i < made.length; i++)
      made[i] = CatalogTable$.class.getMethod("$lessinit$greater$default$" + (i + 1), new Class[0])
          .invoke(CatalogTable$.MODULE$, new Object[0]);
    CatalogTable bare = (CatalogTable) constructor.newInstance(made);
    for (int i = 4; i < made.length; i++)
      if ("stats".equals(bare.productElementName(i))) made[i] = new scala.Some(stats);
    return (CatalogTable) constructor.newInstance(made);
  }

  private static scala.Option number(long value) { return new scala.Some(scala.math.BigInt.apply(value)); }

  /** What users see of some columns, as SQL, with the JSON that stands for it. */
  public void setShown(java.util.Map forms) { shown = forms; }

  private static ArrowStreamReader open(byte[] stream) {
    return new ArrowStreamReader(
        new ByteArrayInputStream(stream),
        ArrowUtils.rootAllocator().newChildAllocator("frazil files", 0, Long.MAX_VALUE));
  }

  private static void close(ArrowStreamReader reader) {
    try { reader.close(); } catch (java.io.IOException e) { }
  }

  private BasePredicate test(Seq filters) {
    Expression all = null;
    for (Object one : CollectionConverters.asJava(filters)) {
      Expression filter = (Expression) one;
      all = all == null ? filter : new And(all, filter);
    }
    if (all == null) return null;
    AttributeReference[] input = new AttributeReference[constants.fields().length];
    Seq fresh = org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes(constants);
    for (int i = 0; i < input.length; i++) input[i] = (AttributeReference) fresh.apply(i);
    for (Object one : CollectionConverters.asJava(all.references().toSeq())) {
      AttributeReference used = (AttributeReference) one;
      for (int i = 0; i < input.length; i++)
        if (constants.fields()[i].name().equalsIgnoreCase(used.name())) input[i] = used;
    }
    Seq schema = CollectionConverters.asScala(java.util.Arrays.asList((Object[]) input)).toList();
    return Predicate$.MODULE$.create(all, schema);
  }

  private Seq read(byte[] stream, BasePredicate test, boolean asksForLengths) {
    ArrayList rows = new ArrayList();
    ArrayList files = new ArrayList();
    String mark;
    ArrowStreamReader reader = open(stream);
    try {
      java.util.Map told = reader.getVectorSchemaRoot().getSchema().getCustomMetadata();
      mark = (String) told.get("mark");
      String about = told.get("about") == null ? "" : (String) told.get("about");
      while (reader.loadNextBatch()) {
        java.util.List vectors = reader.getVectorSchemaRoot().getFieldVectors();
        ArrowColumnVector paths = new ArrowColumnVector((FieldVector) vectors.get(0));
        ArrowColumnVector sizes = new ArrowColumnVector((FieldVector) vectors.get(1));
        ColumnVector[] values = new ColumnVector[vectors.size() - 3];
        for (int i = 0; i < values.length; i++)
          values[i] = new ArrowColumnVector((FieldVector) vectors.get(i + 3));
        int count = reader.getVectorSchemaRoot().getRowCount();
        ColumnarBatch batch = new ColumnarBatch(values, count);
        for (int row = 0; row < count; row++) {
          InternalRow value = batch.getRow(row).copy();
          if (test != null && !test.eval(value)) continue;
          rows.add(value);
          files.add(new FileLength(new Path(paths.getUTF8String(row).toString()), sizes.getLong(row), about));
        }
      }
    } catch (java.io.IOException e) {
      throw new IllegalArgumentException("Cannot take over planned files: " + e);
    } finally {
      close(reader);
    }
    FileLength.find(files, asksForLengths);
    ArrayList found = new ArrayList();
    for (int i = 0; i < files.size(); i++) {
      FileLength one = (FileLength) files.get(i);
      FileStatus[] file = new FileStatus[1];
      file[0] = new FileStatus(one.length, false, 1, 134217728L, 0L, marked(one.path, mark));
      found.add(PartitionDirectory.apply((InternalRow) rows.get(i), file));
    }
    return CollectionConverters.asScala(found).toList();
  }

  private static final java.util.Set MARKED = new java.util.HashSet(java.util.Arrays.asList((Object[]) new String[] {
      "file", "hdfs", "viewfs", "s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "oss"}));

  /** The path with what Spark's errors about the file should tell, for file systems that are known to pass over it. */
  private static Path marked(Path path, String mark) {
    java.net.URI uri = path.toUri();
    if (mark == null || !MARKED.contains(uri.getScheme())) return path;
    try {
      return new Path(new java.net.URI(uri.getScheme(), uri.getAuthority(), uri.getPath(), null, mark));
    } catch (java.net.URISyntaxException e) {
      return path;
    }
  }

  public Seq rootPaths() {
    ArrayList paths = new ArrayList();
    // Spark cuts long texts off, so what is left of the table comes before where it is.
    if (!note.isEmpty()) paths.add(new Path(note));
    paths.add(new Path(root));
    return CollectionConverters.asScala(paths).toList();
  }

  public String[] inputFiles() {
    java.util.List found = CollectionConverters.asJava(read(ask(new ArrayList()), null, false));
    String[] paths = new String[found.size()];
    for (int i = 0; i < paths.length; i++) {
      PartitionDirectory one = (PartitionDirectory) found.get(i);
      String path = ((org.apache.spark.sql.execution.datasources.FileStatusWithMetadata) one.files().apply(0))
          .getPath().toUri().toString();
      paths[i] = path.indexOf('#') < 0 ? path : path.substring(0, path.indexOf('#'));
    }
    return paths;
  }

  public void refresh() { }
  public long sizeInBytes() { return bytes; }
  public StructType partitionSchema() { return constants; }
  public boolean isTimeTravel() { return false; }
  public scala.Option metadataOpsTimeNs() { return scala.Option.empty(); }
  public String toString() { return "PlannedFiles(" + key + ")"; }
  public int hashCode() { return key.hashCode(); }
  public boolean equals(Object other) {
    if (!(other instanceof PlannedFiles)) return false;
    PlannedFiles that = (PlannedFiles) other;
    return that.key.equals(key) && that.isReadToEnd == isReadToEnd
        && that.isPruned == isPruned && (!isPruned || that.asked.equals(asked));
  }

  private void writeAll(Seq filters, StringBuilder out) {
    for (Object one : CollectionConverters.asJava(filters)) {
      out.append(',');
      write((Expression) one, out);
    }
  }

  private void write(Expression e, StringBuilder out) {
    String name = e.getClass().getSimpleName();
    Object form = shown.isEmpty() || e.children().isEmpty() ? null : shown.get(e.sql());
    if (form != null) {
      out.append((String) form);
    } else if (e instanceof Attribute) {
      out.append("[\"col\",");
      quote(((Attribute) e).name(), out);
      out.append(']');
    } else if (e instanceof GetStructField) {
      GetStructField get = (GetStructField) e;
      out.append("[\"part\",");
      write(get.child(), out);
      out.append(',');
      quote(get.childSchema().fields()[get.ordinal()].name(), out);
      out.append(']');
    } else if (e instanceof Literal) {
      literal(((Literal) e).value(), ((Literal) e).dataType(), out);
    } else if (e instanceof In) {
      out.append("[\"In\",");
      write(((In) e).value(), out);
      writeAll(((In) e).list(), out);
      out.append(']');
    } else if (e instanceof InSet) {
      out.append("[\"In\",");
      write(((InSet) e).child(), out);
      for (Object one : CollectionConverters.asJava(((InSet) e).hset())) {
        out.append(',');
        literal(one, ((InSet) e).child().dataType(), out);
      }
      out.append(']');
    } else if (e instanceof CaseWhen && isGuard((CaseWhen) e)) {
      scala.Tuple2 branch = (scala.Tuple2) ((CaseWhen) e).branches().apply(0);
      out.append("[\"And\",");
      write((Expression) branch._1(), out);
      out.append(',');
      write((Expression) branch._2(), out);
      out.append(']');
    } else if (e instanceof Cast) {
      Cast cast = (Cast) e;
      out.append("[\"Cast\",");
      write(cast.child(), out);
      out.append(',');
      quote(cast.child().dataType().catalogString(), out);
      out.append(',');
      quote(cast.dataType().catalogString(), out);
      out.append(',');
      quote(cast.timeZoneId().isDefined() ? (String) cast.timeZoneId().get() : "", out);
      out.append(']');
    } else if (e instanceof And || e instanceof Or || e instanceof Not || e instanceof EqualTo
        || e instanceof EqualNullSafe || e instanceof LessThan || e instanceof LessThanOrEqual
        || e instanceof GreaterThan || e instanceof GreaterThanOrEqual || e instanceof IsNull
        || e instanceof IsNotNull || e instanceof IsNaN || e instanceof StartsWith || e instanceof Year) {
      out.append("[\"").append(name).append('"');
      writeAll(e.children(), out);
      out.append(']');
    } else {
      out.append("[\"?\"]");
    }
  }

  /** Whether a case is a test that counts where another one holds, and is null elsewhere. */
  private static boolean isGuard(CaseWhen e) {
    if (!(e.dataType() instanceof BooleanType) || e.branches().size() != 1) return false;
    if (e.elseValue().isEmpty()) return true;
    Object other = e.elseValue().get();
    return other instanceof Literal && ((Literal) other).value() == null;
  }

  private static void literal(Object value, DataType type, StringBuilder out) {
    out.append("[\"lit\",");
    quote(type.catalogString(), out);
    out.append(',');
    if (value == null) {
      out.append("null");
    } else if (value instanceof byte[]) {
      StringBuilder hex = new StringBuilder();
      byte[] all = (byte[]) value;
      for (int i = 0; i < all.length; i++) {
        hex.append(Character.forDigit((all[i] >> 4) & 15, 16)).append(Character.forDigit(all[i] & 15, 16));
      }
      quote(hex.toString(), out);
    } else if (value instanceof Decimal) {
      quote(((Decimal) value).toJavaBigDecimal().toPlainString(), out);
    } else {
      quote(value.toString(), out);
    }
    out.append(']');
  }

  private static void quote(String text, StringBuilder out) {
    out.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') out.append('\\').append(c);
      else if (c < 32) out.append(String.format("\\u%04x", new Object[] {new Integer(c)}));
      else out.append(c);
    }
    out.append('"');
  }
}

/**
 * Asks Python. Py4J opens a connection for each thread of Java that asks, which costs a thread of Python too, and keeps
 * both when the thread has ended. Spark's threads come and go: other threads ask for them, which stay.
 */
class KeptThreads implements java.util.concurrent.ThreadFactory {
  private static final java.util.concurrent.ExecutorService THREADS = new java.util.concurrent.ThreadPoolExecutor(
      0, Integer.MAX_VALUE, Long.MAX_VALUE, java.util.concurrent.TimeUnit.NANOSECONDS,
      new java.util.concurrent.SynchronousQueue(), new KeptThreads());

  public Thread newThread(Runnable work) {
    Thread made = new Thread(work, "frazil planning");
    made.setDaemon(true);
    return made;
  }

  static Object ask(java.util.function.Function planner, String request) {
    if (isConnected(planner)) return planner.apply(request);
    java.util.concurrent.Future answer = THREADS.submit(new Question(planner, request));
    try {
      return answer.get();
    } catch (java.util.concurrent.ExecutionException e) {
      throw new IllegalArgumentException(e.getCause().getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalArgumentException("Cannot plan the files of a query: interrupted");
    }
  }

  /** Whether this thread has a connection already, as those that Python calls have, or needs none of its own. */
  private static boolean isConnected(Object planner) {
    if (!java.lang.reflect.Proxy.isProxyClass(planner.getClass())) return true;
    try {
      Object handler = java.lang.reflect.Proxy.getInvocationHandler(planner);
      java.lang.reflect.Field field = handler.getClass().getDeclaredField("gateway");
      field.setAccessible(true);
      Object client = ((py4j.Gateway) field.get(handler)).getCallbackClient();
      return !(client instanceof py4j.Py4JPythonClientPerThread)
          || ((py4j.Py4JPythonClientPerThread) client).getPerThreadConnection() != null;
    } catch (ReflectiveOperationException e) {
      return true;
    }
  }
}

class Question implements java.util.concurrent.Callable {
  private final java.util.function.Function planner;
  private final String request;

  Question(java.util.function.Function planner, String request) {
    this.planner = planner;
    this.request = request;
  }

  public Object call() { return planner.apply(request); }
}

/** How long a file is: what its manifest says, or what it is. */
class FileLength implements java.util.concurrent.Callable {
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
  static void find(java.util.List files, boolean asksOthers) {
    ArrayList asked = new ArrayList();
    for (Object one : files) {
      FileLength file = (FileLength) one;
      if ("file".equals(file.path.toUri().getScheme())) file.look();
      else if (asksOthers) asked.add(file);
    }
    if (asked.isEmpty()) return;
    java.util.concurrent.ExecutorService threads =
        java.util.concurrent.Executors.newFixedThreadPool(Math.min(THREADS, asked.size()));
    try {
      for (Object one : threads.invokeAll(asked)) ((java.util.concurrent.Future) one).get();
    } catch (java.util.concurrent.ExecutionException e) {
      throw new IllegalArgumentException(e.getCause().getMessage());
    } catch (InterruptedException e) {
      throw new IllegalArgumentException("Cannot take over planned files: interrupted");
    } finally {
      threads.shutdownNow();
    }
  }

  private void look() {
    java.io.File file = new java.io.File(path.toUri().getPath());
    length = file.length();
    if (length == 0) throw wrong(file.getPath(), file.exists() ? "it is empty" : "there is no such file");
  }

  public Object call() {
    try {
      length = path.getFileSystem(org.apache.spark.SparkContext.getOrCreate().hadoopConfiguration())
          .getFileStatus(path).getLen();
      if (length == 0) throw wrong(path.toString(), "it is empty");
    } catch (java.io.FileNotFoundException e) {
      throw wrong(path.toString(), "there is no such file");
    } catch (java.io.IOException e) {
      throw wrong(path.toString(), e.toString());
    }
    return null;
  }

  private IllegalArgumentException wrong(String name, String reason) {
    return new IllegalArgumentException("Cannot read data file " + name + ": " + reason + about);
  }
}

class ParquetById extends org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat {
  private final StructType known;

  ParquetById(StructType known) { this.known = known; }

  /** Spark's own reader is what travels, so that it must be another object than this. */
  public scala.Function1 buildReaderWithPartitionValues(
      org.apache.spark.sql.SparkSession session, StructType dataSchema, StructType partitionSchema,
      StructType requiredSchema, Seq filters, scala.collection.immutable.Map options,
      org.apache.hadoop.conf.Configuration conf) {
    return new org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat().buildReaderWithPartitionValues(
        session, known, partitionSchema, (StructType) told(requiredSchema, known), filters, options, conf);
  }

  /** What is asked for, which may be some parts of a column only, with what is known of each field by its name. */
  private static DataType told(DataType asked, DataType known) {
    if (asked instanceof StructType && known instanceof StructType) {
      StructField[] fields = ((StructType) asked).fields();
      StructField[] made = new StructField[fields.length];
      for (int i = 0; i < fields.length; i++) {
        made[i] = fields[i];
        StructField[] all = ((StructType) known).fields();
        for (int j = 0; j < all.length; j++)
          if (all[j].name().equals(fields[i].name()))
            made[i] = new StructField(fields[i].name(), told(fields[i].dataType(), all[j].dataType()),
                fields[i].nullable(), all[j].metadata());
      }
      return new StructType(made);
    }
    if (asked instanceof ArrayType && known instanceof ArrayType)
      return new ArrayType(told(((ArrayType) asked).elementType(), ((ArrayType) known).elementType()),
          ((ArrayType) asked).containsNull());
    if (asked instanceof MapType && known instanceof MapType)
      return new MapType(told(((MapType) asked).keyType(), ((MapType) known).keyType()),
          told(((MapType) asked).valueType(), ((MapType) known).valueType()), ((MapType) asked).valueContainsNull());
    return asked;
  }
}

class PruneBeforeJoins extends org.apache.spark.sql.catalyst.rules.Rule {
  public org.apache.spark.sql.catalyst.trees.TreeNode apply(org.apache.spark.sql.catalyst.trees.TreeNode plan) {
    return plan.transformDown(new PruneFilteredRelation());
  }
}

class PruneFilteredRelation extends scala.runtime.AbstractPartialFunction {
  private static org.apache.spark.sql.execution.datasources.LogicalRelation relation(Object node) {
    if (!(node instanceof org.apache.spark.sql.catalyst.plans.logical.Filter)) return null;
    Object child = ((org.apache.spark.sql.catalyst.plans.logical.Filter) node).child();
    if (!(child instanceof org.apache.spark.sql.execution.datasources.LogicalRelation)) return null;
    org.apache.spark.sql.execution.datasources.LogicalRelation found =
        (org.apache.spark.sql.execution.datasources.LogicalRelation) child;
    if (!(found.relation() instanceof org.apache.spark.sql.execution.datasources.HadoopFsRelation)) return null;
    Object files = ((org.apache.spark.sql.execution.datasources.HadoopFsRelation) found.relation()).location();
    return files instanceof PlannedFiles && !((PlannedFiles) files).isPruned() ? found : null;
  }

  public boolean isDefinedAt(Object node) { return relation(node) != null; }

  public Object applyOrElse(Object node, scala.Function1 other) {
    org.apache.spark.sql.execution.datasources.LogicalRelation found = relation(node);
    if (found == null) return other.apply(node);
    org.apache.spark.sql.catalyst.plans.logical.Filter filter =
        (org.apache.spark.sql.catalyst.plans.logical.Filter) node;
    org.apache.spark.sql.execution.datasources.HadoopFsRelation files =
        (org.apache.spark.sql.execution.datasources.HadoopFsRelation) found.relation();
    ArrayList conjuncts = new ArrayList();
    split(filter.condition(), conjuncts);
    PlannedFiles left = ((PlannedFiles) files.location()).pruned(conjuncts);
    Object pruned = new org.apache.spark.sql.execution.datasources.HadoopFsRelation(
        left, files.partitionSchema(), files.dataSchema(),
        files.bucketSpec(), files.fileFormat(), files.options(), files.sparkSession());
    Object[] parts = new Object[found.productArity()];
    for (int i = 0; i < parts.length; i++) parts[i] = i == 0 ? pruned : found.productElement(i);
    try {
      for (int i = 0; i < parts.length; i++)
        if ("catalogTable".equals(found.productElementName(i))) parts[i] = new scala.Some(left.table());
    } catch (ReflectiveOperationException e) {
      throw new IllegalArgumentException("Cannot describe planned files: " + e);
    }
    org.apache.spark.sql.catalyst.trees.TreeNode relation = found.makeCopy(parts);
    return new org.apache.spark.sql.catalyst.plans.logical.Filter(
        filter.condition(), (org.apache.spark.sql.catalyst.plans.logical.LogicalPlan) relation);
  }

  private static void split(Expression condition, ArrayList into) {
    if (condition instanceof And) {
      split(((And) condition).left(), into);
      split(((And) condition).right(), into);
    } else {
      into.add(condition);
    }
  }
}
"""
