/** What the one who watches a query asks, in one call: PySpark's own way takes dozens for each look. */
package headrace

import org.apache.spark.sql.streaming.StreamingQuery

object Watch {

  /** Null once the query has ended; an error if that is how. Else, after so many milliseconds, a JSON list of the batches
    * that have ended since `seen`. */
  def look(query: StreamingQuery, seen: Long, wait: Long): String =
    if (query.awaitTermination(wait)) null else ended(query, seen)

  /** A query with nothing to do tells the number of its next batch now and then: only those that ran count. */
  def ended(query: StreamingQuery, seen: Long): String =
    query.recentProgress.filter(batch => batch.batchId > seen && batch.durationMs.containsKey("addBatch"))
      .map(_.json).mkString("[", ",", "]")
}
