package frazil;

import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.UserGroupInformation;
import software.amazon.awssdk.auth.credentials.AwsCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;
import software.amazon.awssdk.auth.credentials.AwsSessionCredentials;

/**
 * The keys of one table's files, as the driver sent them last. Hadoop's file system for S3 asks for them at each request,
 * so a task that outlives its keys goes on with newer ones.
 *
 * <p>The driver sends keys as Spark sends Hadoop's own tokens: they are among the secrets of the user whom tasks run as.
 * Those that came with the query are used where they last longer, as on an executor that has just started.
 */
public class TableKeys implements AwsCredentialsProvider {
  private final UserGroupInformation user;
  private final Text name;
  private final String[] first;

  public TableKeys(URI place, Configuration settings) throws IOException {
    this.user = UserGroupInformation.getCurrentUser();
    this.name = new Text(settings.get("fs.s3a.frazil.keys", ""));
    this.first = new String[] {
      settings.get("fs.s3a.frazil.keys.end", "0"), settings.get("fs.s3a.access.key", ""),
      settings.get("fs.s3a.secret.key", ""), settings.get("fs.s3a.session.token", "")
    };
  }

  public AwsCredentials resolveCredentials() {
    byte[] sent = this.user.getCredentials().getSecretKey(this.name);
    String[] found = this.first;
    if (sent != null) {
      String[] newer = new String(sent, StandardCharsets.UTF_8).split("\n", -1);
      if (newer.length == 4 && Long.parseLong(newer[0]) >= Long.parseLong(found[0])) {
        found = newer;
      }
    }
    return AwsSessionCredentials.create(found[1], found[2], found[3]);
  }
}
