/** Rows to Kafka records at least once, also in real time: every record is acknowledged before a batch ends.
  *
  * Rows are (topic string, key binary, value binary, time bigint in micros, headers array<struct<key, value>>), in this
  * order, and optionally `partition int`. A null key goes round robin, any other by murmur2, Java's default. */
package headrace

import java.util

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.producer.{Callback, ProducerRecord, RecordMetadata}
import org.apache.kafka.common.KafkaException
import org.apache.kafka.common.errors.RecordTooLargeException
import org.apache.kafka.common.header.Header
import org.apache.kafka.common.header.internals.RecordHeader
import org.apache.spark.sql.{ForeachWriter, Row}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.python.streaming.PythonForeachWriter
import org.apache.spark.sql.streaming.DataStreamWriter
import org.apache.spark.sql.types.StructType

object LogSink {
  /** Records of a batch leave in large requests. */
  val batching: Map[String, String] = Map("linger.ms" -> "5", "batch.size" -> "131072")
  val safe: Map[String, String] = Map("acks" -> "all", "enable.idempotence" -> "true")

  /** Lets a query write to the log; `kafka` are the client's options. Real-time: records leave at once. */
  def attach(writer: DataStreamWriter[Row], kafka: util.Map[String, String], realTime: Boolean): Unit = {
    val pace = if (realTime) Map("linger.ms" -> "0") else batching
    writer.foreach(new LogSink(pace ++ kafka.asScala ++ safe).asInstanceOf[ForeachWriter[Row]])
  }

  /** Lets a query make records and write none of them. */
  def nowhere(writer: DataStreamWriter[Row]): Unit = writer.foreach(new Nowhere().asInstanceOf[ForeachWriter[Row]])

  def record(row: InternalRow): ProducerRecord[Array[Byte], Array[Byte]] = {
    val partition = if (row.numFields > 5 && !row.isNullAt(5)) Int.box(row.getInt(5)) else null
    val time = if (row.isNullAt(3)) null else Long.box(math.max(0L, Math.floorDiv(row.getLong(3), 1000L)))
    new ProducerRecord(row.getUTF8String(0).toString, partition, time, row.getBinary(1), row.getBinary(2), headers(row))
  }

  private def headers(row: InternalRow): util.List[Header] =
    if (row.isNullAt(4)) util.List.of()
    else {
      val array = row.getArray(4)
      val found = new util.ArrayList[Header](array.numElements)
      var i = 0
      while (i < array.numElements) {
        val header = array.getStruct(i, 2)
        found.add(new RecordHeader(header.getUTF8String(0).toString, header.getBinary(1)))
        i += 1
      }
      found
    }

  def trouble(e: Throwable): LogTrouble = {
    val code = if (e.isInstanceOf[RecordTooLargeException]) "record-too-large" else "delivery-failed"
    val found = new LogTrouble(code, s"a record was not written: ${e.getMessage}")
    found.initCause(e)
    found
  }
}

/** Spark hands its own binary rows only to writers of this Python class, and a foreach is the one sink of ours that
  * real-time mode takes: so the class is borrowed, and no Python runs. Other writers get objects made per row. */
class LogSink(kafka: Map[String, String]) extends PythonForeachWriter(null, new StructType) {
  import LogSink.trouble

  @transient private var producer: SharedProducer = _
  @transient private var sent: Callback = _
  @volatile @transient private var failure: Throwable = _

  override def open(partitionId: Long, epochId: Long): Boolean = {
    failure = null
    producer = Producers.take(kafka)
    sent = (_: RecordMetadata, error: Exception) => if (error != null && failure == null) failure = error
    true
  }

  override def process(row: UnsafeRow): Unit = {
    if (failure != null) throw trouble(failure)
    try producer.kafka.send(LogSink.record(row), sent)
    catch { case e: KafkaException => failure = e; throw trouble(e) }
  }

  /** The batch may end only when every record of it is acknowledged. */
  override def close(error: Throwable): Unit = if (producer != null) {
    try if (error == null) producer.kafka.flush()
    finally {
      Producers.give(kafka, producer, broken = failure != null)
      producer = null
    }
    if (error == null && failure != null) throw trouble(failure)
  }
}

/** For a dry run. */
class Nowhere extends PythonForeachWriter(null, new StructType) {
  override def open(partitionId: Long, epochId: Long): Boolean = true
  override def process(row: UnsafeRow): Unit = LogSink.record(row)
  override def close(error: Throwable): Unit = ()
}
