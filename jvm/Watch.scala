/** What the one who watches a query asks, in one call: PySpark's own way takes dozens for each look. */
package headrace

import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryException}

object Watch {

  /** Null once the query has ended; an error if that is how. Else, after so many milliseconds, a JSON list of the batches
    * that have ended since `seen`. */
  def look(query: StreamingQuery, seen: Long, wait: Long): String =
    try if (query.awaitTermination(wait)) null else ended(query, seen)
    catch { case e: StreamingQueryException => throw told(e) }

  /** A full disk breaks many things, and Spark says which it was: state that cannot be loaded looks like damage then. */
  def told(e: Throwable): Throwable =
    if (LogTrouble.causes(e).exists(cause => String.valueOf(cause.getMessage).contains(DiskFull)))
      new LogTrouble("disk-full", "state or scratch files cannot be written: the disk is full").initCause(e)
    else e

  /** A query with nothing to do tells the number of its next batch now and then: only those that ran count. */
  def ended(query: StreamingQuery, seen: Long): String =
    query.recentProgress.filter(batch => batch.batchId > seen && batch.durationMs.containsKey("addBatch"))
      .map(_.json).mkString("[", ",", "]")

  private val DiskFull = "No space left on device" // as Linux has it, and Java passes it on
}
