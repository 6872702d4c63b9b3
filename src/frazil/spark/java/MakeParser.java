package frazil;

import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** Gives every session that comes later a parser that knows lakes. */
public class MakeParser extends scala.runtime.AbstractFunction2 {
  public Object apply(Object session, Object parser) {
    return LakeParser.over((ParserInterface) parser);
  }
}
