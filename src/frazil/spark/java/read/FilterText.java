package frazil.read;

import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNaN;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.StartsWith;
import org.apache.spark.sql.catalyst.expressions.Year;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** A pushed filter as JSON for Python; an unknown expression becomes `["?"]`, which may be true. */
public class FilterText {
  private final Map shown;

  /** `shown` maps the SQL of the shown forms of some columns to their JSON. */
  FilterText(Map shown) {
    this.shown = shown;
  }

  public String of(Expression filter) {
    StringBuilder text = new StringBuilder();
    write(filter, text);
    return text.toString();
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

  /** Returns whether a CASE is one condition guarded by another, and null otherwise. */
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
