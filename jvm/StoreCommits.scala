/** The stores of a flow, as the driver's JVM reaches them: they are Python's, and told of their files at a batch's commit. */
package headrace

import java.util.concurrent.ConcurrentHashMap

/** Implemented in Python (src/headrace/spark/storing.py). */
trait StoreCommits {
  /** Commits the files of a batch to the flow's n-th store; `files` are paths, a line each. Gives "" or "code: what". */
  def commit(flow: String, batch: Long, store: Int, files: String): String

  /** A batch is committed everywhere, and nobody waits. */
  def tidy(): Unit
}

/** Those of this JVM's queries, by the folder that their rows are staged in. */
object StoreCommits {
  private val known = new ConcurrentHashMap[String, StoreCommits]

  def join(folder: String, stores: StoreCommits): Unit = known.put(folder, stores)
  def leave(folder: String): Unit = known.remove(folder)
  def tidy(folder: String): Unit = known.get(folder).tidy()

  /** Raises what the store refused, under the code of the Python error. */
  def commit(folder: String, flow: String, batch: Long, store: Int, files: Seq[String]): Unit = {
    val refused = known.get(folder).commit(flow, batch, store, files.mkString("\n"))
    if (refused.nonEmpty) {
      val Array(code, what) = refused.split(": ", 2)
      throw new LogTrouble(code, what)
    }
  }
}
