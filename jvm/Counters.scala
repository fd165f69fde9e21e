/** Counters of rule D3: what became of the rows of each step in a batch, told by tasks to the driver.
  *
  * Every place that counts is a site. A task tells the whole count of its partition at a site, and the driver keeps the
  * last telling: a task that runs twice counts once. */
package headrace

import java.util.concurrent.atomic.AtomicInteger

import scala.collection.mutable

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.util.AccumulatorV2

/** Who tells: a partition of a batch of a run, at a site. */
case class Teller(run: String, batch: Long, site: Int, partition: Int)

case class Told(step: Int, counts: Array[Long])

class Counters extends AccumulatorV2[(Teller, Told), Map[Teller, Told]] {
  private val told = mutable.Map.empty[Teller, Told]

  /** In a task: the counts of a step at a site, by term; whoever counts adds to them. */
  def of(site: Int, step: Int): Array[Long] = synchronized {
    val task = TaskContext.get()
    val batch = task.getLocalProperty(Counters.BATCH)
    val teller = Teller(task.getLocalProperty(Counters.RUN), if (batch == null) -1 else batch.toLong, site, task.partitionId())
    told.getOrElseUpdate(teller, Told(step, new Array[Long](Counters.TERMS.length))).counts
  }

  /** On the driver: what a run's batches counted since it was last asked, and forgets it. */
  def drained(run: String): Map[Long, Map[Int, Array[Long]]] = synchronized {
    val found = told.filter(_._1.run == run).toMap
    told --= found.keys
    found.groupBy(_._1.batch).map { case (batch, tellers) =>
      batch -> tellers.values.groupMapReduce(_.step)(_.counts)((one, other) => one.zip(other).map { case (a, b) => a + b })
    }
  }

  override def isZero: Boolean = synchronized(told.isEmpty)
  override def copy(): Counters = { val other = new Counters; other.told ++= value; other }
  override def copyAndReset(): Counters = new Counters
  override def reset(): Unit = synchronized(told.clear())
  override def add(one: (Teller, Told)): Unit = synchronized(told.put(one._1, one._2))
  override def merge(other: AccumulatorV2[(Teller, Told), Map[Teller, Told]]): Unit = other.value.foreach(add)
  override def value: Map[Teller, Told] = synchronized(told.toMap)
}

object Counters {
  val TERMS: Array[String] = Array("in", "used", "filtered", "late", "dead", "duplicates", "held", "keys", "bytes")
  final val IN = 0
  final val USED = 1
  final val FILTERED = 2
  final val LATE = 3
  final val DEAD = 4
  final val DUPLICATES = 5
  final val HELD = 6 // a difference: rows taken into state less rows that left it
  final val KEYS = 7 // a difference too: keys that have state now less keys that had
  final val BYTES = 8 // and of how large their values are

  // What Spark's streaming engine writes into the properties of its jobs.
  private val RUN = "spark.jobGroup.id"
  private val BATCH = "streaming.sql.batchId"

  private val sites = new AtomicInteger
  private var current: (SparkContext, Counters) = _

  /** A new place that counts. */
  def site(): Int = sites.incrementAndGet()

  /** The session's counters. */
  def open(context: SparkContext): Counters = synchronized {
    if (current == null || (current._1 ne context)) {
      val made = new Counters
      context.register(made) // without a name: those that have one Spark writes as text after every task
      current = (context, made)
    }
    current._2
  }

  /** What a run of a query counted since it was last asked: {batch: {step: {term: rows}}}. */
  def take(run: String): String = synchronized {
    val mapper = new ObjectMapper
    val found = mapper.createObjectNode
    if (current != null) current._2.drained(run).foreach { case (batch, steps) =>
      val node = found.putObject(batch.toString)
      steps.foreach { case (step, counts) =>
        val terms = node.putObject(step.toString)
        TERMS.indices.foreach(i => if (counts(i) != 0) terms.put(TERMS(i), counts(i)))
      }
    }
    mapper.writeValueAsString(found)
  }

  def term(name: String): Int = if (name.isEmpty) -1 else TERMS.indexOf(name)
}
