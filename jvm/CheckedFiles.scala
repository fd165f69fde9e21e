/** Checkpoint files with a checksum beside each, so that a flipped byte in one is found and not believed.
  *
  * Spark writes checksums for the files of its state stores, not for its logs: a digit of an offset that changed on the
  * disk would be read as it stands, and rows would be lost in silence. The form is Spark's own, a small JSON `<file>.crc`.
  * Set as `spark.sql.streaming.checkpointFileManagerClass`. */
package headrace

import scala.concurrent.ExecutionContext

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, Path}
import org.apache.spark.sql.execution.streaming.checkpointing.{ChecksumCancellableFSDataOutputStream, ChecksumFSDataInputStream, FileContextBasedCheckpointFileManager}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

class CheckedFiles(folder: Path, conf: Configuration) extends FileContextBasedCheckpointFileManager(folder, conf) {
  private val here = ExecutionContext.parasitic // small files: a thread would cost more than it saves

  // state/<operator>/<partition>: there Spark sees to the checksums itself, through this very manager.
  private val partition = folder.getName.forall(_.isDigit) && folder.getParent.getName.forall(_.isDigit)

  /** The old checksum goes first, then comes the file, then its checksum: a crash in between leaves a file that is not
    * checked, never one that seems bad. A file that may not be written again keeps its own. */
  override def createAtomic(file: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream = {
    val out = super.createAtomic(file, overwriteIfPossible)
    if (partition || (!overwriteIfPossible && exists(file))) return out
    super.delete(sumOf(file))
    new ChecksumCancellableFSDataOutputStream(out, file, super.createAtomic(sumOf(file), true), here)
  }

  /** Read twice, and the first time to the end: Spark's logs close their files without listening to what close says. */
  override def open(file: Path): FSDataInputStream = {
    if (!partition && exists(sumOf(file))) new ChecksumFSDataInputStream(super.open(file), file, super.open(sumOf(file)), here).close()
    super.open(file)
  }

  override def delete(file: Path): Unit = {
    if (!partition) super.delete(sumOf(file)) // first: a checksum without its file would be met by the next of that name
    super.delete(file)
  }

  private def sumOf(file: Path) = new Path(s"$file.crc")
}
