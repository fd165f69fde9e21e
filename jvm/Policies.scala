/** The policies that stand: those of this JVM's queries, each replaced while its query runs.
  *
  * The driver's Python follows the topic, checks what is published and compiles it (src/headrace/spark/deciding.py); here
  * it becomes what tasks go by, from their next row on. */
package headrace

import java.util.{List => JavaList}
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.Column
import org.apache.spark.sql.headrace.BoundColumns

import headrace.deciding.{Judge, Policy}

/** What holds at a moment. Null: there is none. */
final class Standing(val active: Policy, val shadow: Policy)

final class Holder {
  @volatile var standing: Standing = new Standing(null, null)
}

object Policies {
  private val known = new ConcurrentHashMap[String, Holder]

  /** Makes a place for the policies of one step of one query. */
  def join(place: String): Unit = known.put(place, new Holder)

  def leave(place: String): Unit = known.remove(place)

  /** Lets this policy stand. `row`: the columns of the rows to decide about, as DDL; `asked`: columns over them. An
    * empty text takes away what stands. */
  def publish(place: String, shadow: Boolean, text: String, row: String, asked: JavaList[Column]): Unit = {
    val policy = if (text.isEmpty) null else Policy.parse(text, BoundColumns.of(row, asked))
    if (policy != null) new Judge(policy) // compiles what it asks, so that no row waits for that
    val (holder, now) = (of(place), of(place).standing)
    holder.standing = if (shadow) new Standing(now.active, policy) else new Standing(policy, now.shadow)
  }

  def of(place: String): Holder = {
    val found = known.get(place)
    if (found == null) throw new IllegalStateException(s"no policies are followed for $place")
    found
  }
}
