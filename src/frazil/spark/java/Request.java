package frazil;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import org.apache.spark.sql.connector.catalog.CatalogManager;

/**
 * A request to Python: its verb and its keys, which sessions/requests.py declares.
 *
 * <p>A test reads the keys from these sources. Methods that make requests for several verbs take the verb first; keys of
 * a request are added by the method that names its verb, or by one that it hands the request to.
 */
public class Request {
  private final String verb;
  private final LinkedHashMap keys = new LinkedHashMap();

  public Request(String verb) {
    this.verb = verb;
  }

  /** A request about names that are looked up in the current catalog and namespace. */
  public static Request inPlace(String verb) {
    CatalogManager catalogs = Door.session().sessionState().catalogManager();
    return new Request(verb)
        .with("current", catalogs.currentCatalog().name())
        .with("namespace", Door.names(catalogs.currentNamespace()));
  }

  public static Request ofText(String verb, String text) {
    return inPlace(verb).with("text", text);
  }

  public Request with(String key, Object value) {
    keys.put(key, value);
    return this;
  }

  public String verb() {
    return verb;
  }

  public Object ask() {
    return ask(Collections.EMPTY_LIST);
  }

  /** Send the request with Java objects, which are handed over as they are. */
  public Object ask(List objects) {
    return Door.ask(verb, Door.text(keys), objects);
  }

  /** Send the request; return its answer parsed as JSON: a map, a list, a string, or null. */
  public Object read() {
    Object answer = ask();
    return answer == null ? null : Door.parse((String) answer);
  }
}
