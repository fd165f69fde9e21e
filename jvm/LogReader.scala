/** A task of the log source: reads its share of the partitions, decodes each record once, gives typed rows. */
package headrace

import org.apache.kafka.clients.consumer.ConsumerRecord
import org.apache.kafka.common.record.{TimestampType => KafkaTime}
import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, SpecificInternalRow}
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming.{PartitionOffset, SupportsRealTimeRead}
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus
import org.apache.spark.unsafe.types.UTF8String

/** Records [from, to) of a partition; `to` is Long.MaxValue in real-time mode. */
case class Slice(place: Place, from: Long, to: Long, top: Long, seen: Long)

/** What one task reads. `before`: the watermark of the batch before. `now` judges the future: fixed when planned, so that
  * a replay judges alike, or LogStream.LiveClock. `end`: when a real-time batch is over, by the clock, where nobody knows
  * better (Ending.scala). `task`: its number. */
case class Share(slices: Array[Slice], before: Long, now: Long, end: Long, task: Int) extends InputPartition

/** Where a real-time task stopped; what it learned comes by the accumulator. */
case class Stop(next: Seq[(Place, Long)]) extends PartitionOffset

/** Holds the accumulator: a factory is deserialized inside a running task, which is when Spark ties an accumulator to
  * the task. An InputPartition is deserialized before that, and would never report. */
class LogReaders(spec: LogSpec, run: String, learned: Learned) extends PartitionReaderFactory {
  override def createReader(share: InputPartition): PartitionReader[InternalRow] =
    new LogReader(spec, run, share.asInstanceOf[Share], learned)
}

class LogReader(spec: LogSpec, run: String, share: Share, learned: Learned) extends SupportsRealTimeRead[InternalRow] {
  import Part.None

  private val slices = share.slices
  private val names = slices.map(s => spec.topics(s.place.topic).topic)
  private val log = Consumers.take(spec, run, slices.map(s => (spec.topics(s.place.topic).topic, s.place.partition)))
  private val ends = slices.map(_.to)
  private val tops = slices.map(_.top)
  private val seen = slices.map(_.seen)
  private val rows = new LogRows(spec, share.before)
  private val ending = Ending.of(run)
  private var kept = 0L     // when it was last seen to keep up
  private var failed = true // a consumer that failed is not kept
  private var finished = false

  // Spark closes no real-time reader, and a task that is stopped asks for no offset either.
  Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => close()))
  slices.indices.foreach(i => log.seek(i, slices(i).from))
  failed = false

  override def get(): InternalRow = rows.row

  /** Marks carry time and no row: they are passed over here. */
  override def next(): Boolean = {
    failed = true
    while (log.next(ends, Consumers.Patience)) if (row(share.now)) { failed = false; return true }
    slices.indices.foreach { i =>
      if (log.position(i) < ends(i)) throw new LogTrouble("log",
        s"topic '${names(i)}' partition ${slices(i).place.partition}: nothing came for ${Consumers.Patience} ms at offset ${log.position(i)}, wanted up to ${ends(i)}")
    }
    failed = false
    false
  }

  /** False ends the batch for this task, so it is given only when the time is over: Spark's, or sooner its own. */
  override def nextWithTimeout(ms: java.lang.Long): RecordStatus = {
    failed = true
    var now = System.currentTimeMillis
    val till = System.nanoTime + ms * 1000000 // the clock may be set back meanwhile
    def left = (till - System.nanoTime) / 1000000
    var more = true
    while (more && left > 0 && !isOver(now)) {
      val found = log.next(ends, math.max(0, math.min(left, patience(now))))
      now = System.currentTimeMillis
      if (math.abs(now - kept) >= Ending.Often / 2 && log.caughtUp) { kept = now; ending.foreach(_.keepsUp(share.task, now)) }
      if (found) {
        seen(log.at) = now
        if (row(now)) {
          failed = false
          val r = log.record
          return if (r.timestampType == KafkaTime.LOG_APPEND_TIME) RecordStatus.newStatusWithArrivalTimeMs(r.timestamp)
          else RecordStatus.newStatusWithoutArrivalTime(true)
        }
      } else more = slices.indices.exists(i => log.position(i) < ends(i)) // tables that are loaded have ends
    }
    failed = false
    RecordStatus.newStatusWithoutArrivalTime(false)
  }

  private def isOver(now: Long): Boolean = ending.map(_.isOver(now)).getOrElse(now >= share.end)
  private def patience(now: Long): Long = ending.map(_.patience(now)).getOrElse(share.end - now)

  /** Fills the row from the record in hand; false if it was a mark. */
  private def row(now: Long): Boolean = {
    val i = log.at
    val place = slices(i).place
    val topic = spec.topics(place.topic)
    val mark = LogReader.mark(log.record)
    if (mark != None) {
      if (topic.marked && mark > tops(i)) tops(i) = mark
      return false
    }
    val time = rows.fill(place, log.record, now)
    if (!topic.marked && time > tops(i)) tops(i) = time
    true
  }

  /** The end of a real-time task. */
  override def getOffset: PartitionOffset = Stop(slices.indices.map(i => slices(i).place -> log.position(i)))

  override def close(): Unit = if (!finished) {
    finished = true
    slices.indices.foreach(i => learned.add(Lesson(slices(i).place, log.position(i), tops(i), seen(i))))
    if (failed) log.close() else Consumers.give(run, log)
  }
}

object LogReader {
  /** The header of a control record: nothing older than this follows in the partition (rule T7); microseconds as text. */
  val Mark = "hr-mark"

  private def mark(r: ConsumerRecord[Array[Byte], Array[Byte]]): Long = {
    val header = r.headers.lastHeader(Mark)
    if (header == null) return Part.None
    try new String(header.value, "US-ASCII").trim.toLong catch { case _: NumberFormatException => Part.None }
  }
}

/** Makes the source's row of a record. One row is reused, as Spark allows. */
class LogRows(spec: LogSpec, before: Long) {
  import LogRows._
  import Part.None

  private val schema = spec.schema
  private val records = spec.topics.map(Records.of)
  val row = new SpecificInternalRow(schema)
  row.setLong(Before, before)

  /** Returns the event time if it may move the frontier, else None: a poisoned clock never does (rule T2). */
  def fill(place: Place, r: ConsumerRecord[Array[Byte], Array[Byte]], now: Long): Long = {
    row.setInt(Topic, place.topic)
    row.setInt(Partition, place.partition)
    row.setLong(Offset, r.offset)
    row.update(Value, r.value)
    var other = 0
    while (other < records.length) { row.setNullAt(First + other); other += 1 }
    try {
      val time = decoded(place.topic, r, now)
      row.setLong(Time, time)
      row.update(Key, records(place.topic).key)
      row.update(First + place.topic, records(place.topic).row)
      row.setNullAt(DeadOf)
      row.setNullAt(Headers)
      time
    } catch {
      case dead: Dead =>
        row.setNullAt(Time)
        row.update(Key, r.key)
        row.update(DeadOf, UTF8String.fromString(dead.getMessage))
        row.update(Headers, headers(r))
        None
    }
  }

  private def decoded(t: Int, r: ConsumerRecord[Array[Byte], Array[Byte]], now: Long): Long = {
    val time = records(t).take(r)
    val skew = spec.topics(t).skew
    if (time > (now + skew) * 1000)
      throw new Dead("future", s"${WireTime.show(time)} is more than $skew ms ahead of ${WireTime.show(now * 1000)}")
    time
  }

  private def headers(r: ConsumerRecord[Array[Byte], Array[Byte]]): GenericArrayData =
    new GenericArrayData(r.headers.toArray.map(h => new GenericInternalRow(Array[Any](UTF8String.fromString(h.key), h.value)): Any))
}

object LogRows {
  val Topic = 0
  val Partition = 1
  val Offset = 2
  val Time = 3
  val Before = 4
  val DeadOf = 6
  val Key = 7
  val Value = 8
  val Headers = 9
  /** Of the columns `e0`, `e1`, ... */
  val First = 10
}
