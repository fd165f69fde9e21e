/** Ends the JVM at once when the Python process that started it is gone. */
package headrace

object Lifeline {

  /** The gateway exits when its stdin ends, but Spark's shutdown hooks then take seconds, in which queries go on and
    * would write beside their successor. Hooks run side by side, so one that finds the parent dead ends it all. */
  def hold(): Unit = {
    val parent = ProcessHandle.current.parent
    Runtime.getRuntime.addShutdownHook(new Thread(() => if (!parent.map[Boolean](_.isAlive).orElse(false)) Runtime.getRuntime.halt(1)))
  }
}
