/** This JVM's own hold on a checkpoint. The Python that started it may be gone while it still runs: whoever comes next
  * waits for both. A lock of the operating system, which ends with the process. */
package headrace

import java.nio.channels.FileChannel
import java.nio.file.Path
import java.nio.file.StandardOpenOption.{CREATE, WRITE}
import java.time.Duration

import scala.collection.mutable

object Fence {
  private val Lingers = Duration.ofSeconds(10)
  private val held = mutable.Map.empty[String, FileChannel]

  /** Taken by nobody else: Python has the checkpoint. */
  def take(file: String): Unit = synchronized {
    require(!held.contains(file), s"$file is ours already") // to close it once more would let go of it
    val channel = FileChannel.open(Path.of(file), CREATE, WRITE)
    val till = System.nanoTime + Lingers.toNanos // a JVM whose Python was killed may take it, and notice that then
    while (channel.tryLock() == null) {
      if (System.nanoTime > till) { channel.close(); throw new LogTrouble("checkpoint-in-use", s"another JVM holds $file") }
      Thread.sleep(50)
    }
    held.put(file, channel)
  }

  def give(file: String): Unit = synchronized { held.remove(file).foreach(_.close()) }
}
