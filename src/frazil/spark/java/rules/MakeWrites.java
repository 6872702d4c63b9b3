package frazil.rules;

/** Makes the rule for later sessions. */
public class MakeWrites extends scala.runtime.AbstractFunction1 {
  public Object apply(Object session) {
    return new LakeWrites();
  }
}
