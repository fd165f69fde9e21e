/** This JVM's own hold on a checkpoint. The Python that started it may be gone while it still runs: whoever comes next
  * waits for both. A lock of the operating system, which ends with the process. */
package headrace

import java.nio.channels.FileChannel
import java.nio.file.Path
import java.nio.file.StandardOpenOption.{CREATE, WRITE}

import scala.collection.mutable

object Fence {
  private val held = mutable.Map.empty[String, FileChannel]

  /** Taken by nobody else: Python has the checkpoint. */
  def take(file: String): Unit = synchronized {
    require(!held.contains(file), s"$file is ours already") // to close it once more would let go of it
    val channel = FileChannel.open(Path.of(file), CREATE, WRITE)
    if (channel.tryLock() == null) { channel.close(); throw new IllegalStateException(s"$file is locked") }
    held.put(file, channel)
  }

  def give(file: String): Unit = synchronized { held.remove(file).foreach(_.close()) }
}
