/** Consumers on the executors, kept between batches: opening one costs tens of milliseconds and its fetched records. */
package headrace

import java.time.Duration
import java.util
import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.consumer.{ConsumerRecord, OffsetOutOfRangeException}
import org.apache.kafka.common.TopicPartition

/** One consumer over several partitions, with the records fetched but not yet handed out. */
class SharedLog(spec: LogSpec, val partitions: Seq[(String, Int)]) {
  type Rec = ConsumerRecord[Array[Byte], Array[Byte]]
  private val tps = partitions.map { case (topic, p) => new TopicPartition(topic, p) }.toArray
  private val kafka = spec.consumer("max.poll.records" -> "4000", "max.partition.fetch.bytes" -> "4194304")
  kafka.assign(tps.toList.asJava)
  private val fetched = Array.fill[util.List[Rec]](tps.length)(util.List.of())
  private val used = new Array[Int](tps.length)
  private val paused = new Array[Boolean](tps.length)
  /** Per partition: everything below was handed out or holds no record (markers, aborted or compacted records). */
  val position: Array[Long] = Array.fill(tps.length)(-1L)
  @volatile var usedAt: Long = System.nanoTime
  /** The partition, by index, and the record that `next` found. */
  var at = 0
  var record: Rec = _

  def seek(i: Int, offset: Long): Unit = if (offset != position(i)) {
    fetched(i) = util.List.of()
    used(i) = 0
    kafka.seek(tps(i), offset)
    position(i) = offset
  }

  /** Moves to the next record below the ends; false when there is none, or (some position < its end) the wait is over. */
  def next(ends: Array[Long], waitMs: Long): Boolean = {
    if (handOut(ends)) return true
    val till = System.nanoTime + waitMs * 1000000L
    while (tps.indices.exists(i => position(i) < ends(i))) {
      val left = till - System.nanoTime
      if (left < 0) return false
      poll(ends, left)
      if (handOut(ends)) return true
    }
    false
  }

  /** Nothing is left to hand out, and there was no more when it was last fetched. */
  def caughtUp: Boolean = tps.indices.forall(i => used(i) == fetched(i).size && kafka.currentLag(tps(i)).orElse(1L) == 0L)

  /** Goes on with the partition in hand, then the others, so that one large fetch is given out in order. */
  private def handOut(ends: Array[Long]): Boolean = {
    var k = 0
    while (k < tps.length) {
      val i = if (at + k < tps.length) at + k else at + k - tps.length
      if (position(i) < ends(i) && used(i) < fetched(i).size) {
        val r = fetched(i).get(used(i))
        if (r.offset >= ends(i)) position(i) = ends(i) // kept for the next batch
        else {
          used(i) += 1
          position(i) = if (used(i) == fetched(i).size) kafka.position(tps(i)) else r.offset + 1
          at = i
          record = r
          return true
        }
      }
      k += 1
    }
    false
  }

  /** Only partitions that lack records are asked: the others would pile up theirs. */
  private def poll(ends: Array[Long], nanos: Long): Unit = {
    var i = 0
    while (i < tps.length) {
      val wanted = position(i) < ends(i)
      if (wanted == paused(i)) {
        if (wanted) kafka.resume(util.List.of(tps(i))) else kafka.pause(util.List.of(tps(i)))
        paused(i) = !wanted
      }
      i += 1
    }
    val records = try kafka.poll(Duration.ofNanos(nanos)) catch { case e: OffsetOutOfRangeException => throw gone(e) }
    i = 0
    while (i < tps.length) {
      if (position(i) < ends(i)) {
        fetched(i) = records.records(tps(i))
        used(i) = 0
        if (fetched(i).isEmpty) position(i) = kafka.position(tps(i)) // moves over markers, though no record came
      }
      i += 1
    }
  }

  private def gone(e: OffsetOutOfRangeException): LogTrouble = {
    val (tp, wanted) = e.offsetOutOfRangePartitions.asScala.head
    val first = kafka.beginningOffsets(util.List.of(tp)).get(tp)
    val last = kafka.endOffsets(util.List.of(tp)).get(tp)
    new LogTrouble("records-lost", s"topic '${tp.topic}' partition ${tp.partition}: wanted offset $wanted, " +
      s"but there are only [$first, $last): records were removed before they were read")
  }

  /** A stopped query interrupts its tasks, and Kafka's close fails in an interrupted thread. */
  def close(): Unit = {
    val interrupted = Thread.interrupted()
    try kafka.close(Consumers.CloseWithin) finally if (interrupted) Thread.currentThread.interrupt()
  }
}

object Consumers {
  /** How long a record that must be there may take to come, ms. */
  val Patience = 120000L
  val CloseWithin: Duration = Duration.ofSeconds(5)
  private val KeepNanos = TimeUnit.MINUTES.toNanos(1)
  private val idle = new ConcurrentHashMap[(String, Seq[(String, Int)]), SharedLog]

  def take(spec: LogSpec, run: String, partitions: Array[(String, Int)]): SharedLog =
    Option(idle.remove((run, partitions.toSeq))).getOrElse(new SharedLog(spec, partitions.toSeq))

  def give(run: String, log: SharedLog): Unit = {
    log.usedAt = System.nanoTime
    Option(idle.put((run, log.partitions), log)).foreach(_.close())
  }

  private val sweeper = new Thread(() => while (true) {
    Thread.sleep(10000)
    for ((key, log) <- idle.asScala if System.nanoTime - log.usedAt > KeepNanos && idle.remove(key, log)) log.close()
  }, "headrace-consumer-sweeper")
  sweeper.setDaemon(true)
  sweeper.start()
}
