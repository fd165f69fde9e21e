/** Instants at which a test lets this JVM die as kill -9 would: `-Dheadrace.failpoint=after-token@3`, in batch 3 or later.
  *
  * Those of the sink: before-rows, after-rows, before-stores, after-store/LABEL for each, after-token, after-commit. With
  * `@throw` at the end only the query fails. `-Dheadrace.failpoint.file=...` names a file that may say the same while the
  * JVM runs; it is removed when the instant is reached. */
package headrace

import java.nio.file.{Files, Path}

import scala.util.Try

object Failpoint {
  private val Chosen = raw"([^@]+)@(\d+)(@throw)?".r

  def armed(name: String, batch: Long): Boolean = chosen(name, batch).isDefined

  /** `settle` makes true what the name says, where the client would otherwise still hold it back. */
  def reach(name: String, batch: Long)(settle: => Unit): Unit = chosen(name, batch).foreach { found =>
    settle
    file.foreach(Files.deleteIfExists)
    if (found.group(3) != null) throw new IllegalStateException(s"failpoint $name")
    Runtime.getRuntime.halt(137)
  }

  private def chosen(name: String, batch: Long) =
    Option(System.getProperty("headrace.failpoint")).orElse(written).flatMap(Chosen.findFirstMatchIn(_))
      .filter(c => c.group(1) == name && batch >= c.group(2).toLong)

  private def file: Option[Path] = Option(System.getProperty("headrace.failpoint.file")).map(Path.of(_))

  private def written: Option[String] = file.filter(Files.exists(_)).flatMap(f => Try(Files.readString(f)).toOption)
}
