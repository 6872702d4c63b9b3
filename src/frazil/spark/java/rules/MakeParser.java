package frazil.rules;

import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** Wraps the parser of later sessions. */
public class MakeParser extends scala.runtime.AbstractFunction2 {
  public Object apply(Object session, Object parser) {
    return LakeParser.over((ParserInterface) parser);
  }
}
