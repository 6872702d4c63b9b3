package frazil.read;

import frazil.Python;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.net.URI;
import java.net.URISyntaxException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogColumnStat;
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat$;
import org.apache.spark.sql.catalyst.catalog.CatalogTable$;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType$;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The `FileIndex` from which Spark gets the files of a relation while it plans a query. It calls Python and converts the
 * answer, an Arrow stream of the path, size and constants of each file: about 2 µs a file, whereas a Py4J call for each
 * object would take 150.
 *
 * <p>Python receives the pushed filters as JSON (`FilterText`) and returns bytes, or a text, which is an error to raise.
 * Filters on constants are evaluated here by Spark's own expressions: Spark does not test them again.
 *
 * <p>Spark splits files by their lengths and reads nothing beyond. The lengths of local files are looked up. If the last
 * split of each file is read to its end (`ScanToEnd`), those of remote files are taken from manifests, without a request.
 * Otherwise, as in a session that only has a view of a data frame, the file system is queried for each file.
 *
 * <p>Paths carry the table and the snapshot after a `#` (`mark`), which file systems ignore, so that Spark's own errors
 * about a file name them. Queries do not see the suffix (`PlainFileNames`, `ScanToEnd`).
 *
 * <p>Executors never see this class: they receive the list of files, and Spark's own reader.
 */
public class PlannedFiles implements FileIndex, Cloneable {
  private final Function planner;
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
  private String note = "";
  private Map shown = new HashMap();
  private String asked;
  private byte[] answered;

  public PlannedFiles(
      Function planner, String word, String key, String root, StructType constants, String name,
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

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    ArrayList filters = new ArrayList(CollectionConverters.asJava(partitionFilters));
    filters.addAll(CollectionConverters.asJava(dataFilters));
    return read(ask(filters), test(partitionFilters), !isReadToEnd);
  }

  /** Returns the same files for a scan that reads each to its end, whatever length its manifest gives. */
  public PlannedFiles readToEnd() {
    try {
      PlannedFiles found = (PlannedFiles) clone();
      found.isReadToEnd = true;
      return found;
    } catch (CloneNotSupportedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Returns the answer for these filters; the request of `pruned` is not repeated. */
  private synchronized byte[] ask(Collection filters) {
    TreeSet texts = new TreeSet();
    for (Object one : filters) {
      texts.add("," + new FilterText(shown).of((Expression) one));
    }
    StringBuilder all = new StringBuilder("[\"and\"");
    for (Object text : texts) all.append(text);
    String request = all.append(']').toString();
    if (request.equals(asked)) return answered;
    Object answer = Python.ask(planner, word + request);
    if (!(answer instanceof byte[])) throw new IllegalArgumentException(String.valueOf(answer));
    asked = request;
    answered = (byte[]) answer;
    return answered;
  }

  /** Returns the files under filters that are known before Spark plans joins, which then has their size. */
  public PlannedFiles pruned(Collection filters) {
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
    } catch (IOException e) {
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

  /** Returns the table for Spark's plans, with its name and statistics. */
  public CatalogTable table() throws ReflectiveOperationException {
    HashMap known = new HashMap();
    String[] parts = columns.isEmpty() ? new String[0] : columns.split("\0", -1);
    for (int i = 0; i + 2 < parts.length; i += 3)
      known.put(parts[i], new CatalogColumnStat(
          number(Math.min(Long.parseLong(parts[i + 1]), rows)), scala.Option.empty(), scala.Option.empty(),
          "!".equals(parts[i + 2]) ? number(0L) : scala.Option.empty(),
          scala.Option.empty(), scala.Option.empty(), scala.Option.empty(), 2));
    CatalogStatistics stats = new CatalogStatistics(scala.math.BigInt.apply(bytes), number(rows),
        scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(known)));
    // New Spark versions add parameters; all but the first four have defaults.
    Constructor constructor = CatalogTable.class.getConstructors()[0];
    Object[] made = new Object[constructor.getParameterTypes().length];
    made[0] = new TableIdentifier(name);
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

  /** The SQL of the shown forms of some columns, with their JSON. */
  public void setShown(Map forms) { shown = forms; }

  private static ArrowStreamReader open(byte[] stream) {
    return new ArrowStreamReader(
        new ByteArrayInputStream(stream),
        ArrowUtils.rootAllocator().newChildAllocator("frazil files", 0, Long.MAX_VALUE));
  }

  private static void close(ArrowStreamReader reader) {
    try { reader.close(); } catch (IOException e) { }
  }

  private BasePredicate test(Seq filters) {
    Expression all = null;
    for (Object one : CollectionConverters.asJava(filters)) {
      Expression filter = (Expression) one;
      all = all == null ? filter : new And(all, filter);
    }
    if (all == null) return null;
    AttributeReference[] input = new AttributeReference[constants.fields().length];
    Seq fresh = DataTypeUtils.toAttributes(constants);
    for (int i = 0; i < input.length; i++) input[i] = (AttributeReference) fresh.apply(i);
    for (Object one : CollectionConverters.asJava(all.references().toSeq())) {
      AttributeReference used = (AttributeReference) one;
      for (int i = 0; i < input.length; i++)
        if (constants.fields()[i].name().equalsIgnoreCase(used.name())) input[i] = used;
    }
    Seq schema = CollectionConverters.asScala(Arrays.asList((Object[]) input)).toList();
    return Predicate$.MODULE$.create(all, schema);
  }

  private Seq read(byte[] stream, BasePredicate test, boolean asksForLengths) {
    ArrayList rows = new ArrayList();
    ArrayList files = new ArrayList();
    String mark;
    ArrowStreamReader reader = open(stream);
    try {
      Map metadata = reader.getVectorSchemaRoot().getSchema().getCustomMetadata();
      mark = (String) metadata.get("mark");
      String about = metadata.get("about") == null ? "" : (String) metadata.get("about");
      while (reader.loadNextBatch()) {
        List vectors = reader.getVectorSchemaRoot().getFieldVectors();
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
    } catch (IOException e) {
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

  private static final Set MARKED = new HashSet(Arrays.asList((Object[]) new String[] {
      "file", "hdfs", "viewfs", "s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "oss"}));

  /** Returns the path with the suffix for errors, for file systems that are known to ignore it. */
  private static Path marked(Path path, String mark) {
    URI uri = path.toUri();
    if (mark == null || !MARKED.contains(uri.getScheme())) return path;
    try {
      return new Path(new URI(uri.getScheme(), uri.getAuthority(), uri.getPath(), null, mark));
    } catch (URISyntaxException e) {
      return path;
    }
  }

  public Seq rootPaths() {
    ArrayList paths = new ArrayList();
    // Spark truncates long texts, so the counts come before the location.
    if (!note.isEmpty()) paths.add(new Path(note));
    paths.add(new Path(root));
    return CollectionConverters.asScala(paths).toList();
  }

  public String[] inputFiles() {
    List found = CollectionConverters.asJava(read(ask(new ArrayList()), null, false));
    String[] paths = new String[found.size()];
    for (int i = 0; i < paths.length; i++) {
      PartitionDirectory one = (PartitionDirectory) found.get(i);
      String path = ((FileStatusWithMetadata) one.files().apply(0))
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
}
