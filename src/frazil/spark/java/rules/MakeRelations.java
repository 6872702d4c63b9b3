package frazil.rules;

/** Makes the rule for later sessions. */
public class MakeRelations extends scala.runtime.AbstractFunction1 {
  public Object apply(Object session) {
    return new LakeRelations();
  }
}
