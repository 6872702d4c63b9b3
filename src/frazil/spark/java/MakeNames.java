package frazil;

/** Gives every session that comes later a rule of its own. */
public class MakeNames extends scala.runtime.AbstractFunction1 {
  public Object apply(Object session) {
    return new LakeNames();
  }
}
