/** Instants at which a test lets this JVM die as kill -9 would: `-Dheadrace.failpoint=after-token@3`, in batch 3 or later.
  *
  * Those of the sink: before-rows, after-rows, before-stores, after-store/LABEL for each, after-token, after-commit. With
  * `@throw` at the end only the query fails. */
package headrace

object Failpoint {
  private val Chosen = raw"([^@]+)@(\d+)(@throw)?".r

  def armed(name: String, batch: Long): Boolean = chosen.exists(c => c.group(1) == name && batch >= c.group(2).toLong)

  /** `settle` makes true what the name says, where the client would otherwise still hold it back. */
  def reach(name: String, batch: Long)(settle: => Unit): Unit = if (armed(name, batch)) {
    settle
    if (chosen.exists(_.group(3) != null)) throw new IllegalStateException(s"failpoint $name")
    Runtime.getRuntime.halt(137)
  }

  private def chosen = Option(System.getProperty("headrace.failpoint")).flatMap(Chosen.findFirstMatchIn(_))
}
