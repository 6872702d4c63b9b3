import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import org.codehaus.commons.compiler.util.resource.MapResourceCreator;
import org.codehaus.commons.compiler.util.resource.Resource;
import org.codehaus.commons.compiler.util.resource.StringResource;

/** Compiles the Java sources of a folder with the compiler that Spark has, against the Spark on the class path. */
public class CompileJava {
  public static void main(String[] given) throws Exception {
    org.codehaus.janino.Compiler compiler = new org.codehaus.janino.Compiler();
    compiler.setIClassLoader(new org.codehaus.janino.ClassLoaderIClassLoader(CompileJava.class.getClassLoader()));
    compiler.setSourceVersion(8);
    compiler.setTargetVersion(8);
    HashMap<String, byte[]> made = new HashMap<>();
    compiler.setClassFileCreator(new MapResourceCreator(made));
    List<Resource> sources = new ArrayList<>();
    try (DirectoryStream<Path> all = Files.newDirectoryStream(Paths.get(given[0]), "*.java")) {
      for (Path one : all) {
        String text = Files.readString(one);
        if (text.startsWith("// Needs ") && !has(text.substring(9, text.indexOf('\n')))) continue;
        sources.add(new StringResource("frazil/" + one.getFileName(), text));
      }
    }
    compiler.compile(sources.toArray(new Resource[0]));
    System.out.println(made.size() + " classes");
  }

  private static boolean has(String name) {
    try {
      Class.forName(name, false, CompileJava.class.getClassLoader());
      return true;
    } catch (ClassNotFoundException e) {
      return false;
    }
  }
}
