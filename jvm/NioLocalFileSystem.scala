/** The local file system without Hadoop's habit of forking `chmod` and `ls`: what makes a checkpoint cheap. */
package headrace

import java.net.URI
import java.nio.file.Files
import java.nio.file.attribute.PosixFilePermissions

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{DelegateToFileSystem, FileStatus, LocalFileSystem, Path, RawLocalFileSystem}
import org.apache.hadoop.fs.permission.FsPermission

class NioRawFileSystem extends RawLocalFileSystem {

  /** Hadoop starts a process for this when its native library is absent, as it is in PySpark. */
  override def setPermission(path: Path, permission: FsPermission): Unit = {
    val text = permission.getUserAction.SYMBOL + permission.getGroupAction.SYMBOL + permission.getOtherAction.SYMBOL
    Files.setPosixFilePermissions(pathToFile(path).toPath, PosixFilePermissions.fromString(text))
  }

  /** Asking whether a path is a link starts a process too; checkpoints hold no links. */
  override def getFileLinkStatus(path: Path): FileStatus = getFileStatus(path)

  override def supportsSymlinks(): Boolean = false
}

/** For `spark.hadoop.fs.file.impl`. */
class NioLocalFileSystem extends LocalFileSystem(new NioRawFileSystem)

/** For `spark.hadoop.fs.AbstractFileSystem.file.impl`: the same behind Hadoop's newer interface. */
class NioAbstractFileSystem(uri: URI, conf: Configuration)
    extends DelegateToFileSystem(uri, new NioLocalFileSystem, conf, "file", false) {
  override def getUriDefaultPort: Int = -1
}
