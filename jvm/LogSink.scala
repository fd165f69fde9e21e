/** Rows to Kafka records, in micro-batches and in real time: at least once, every record acknowledged before a batch ends.
  *
  * Rows are (topic string, key binary, value binary, time bigint in micros, headers array<struct<key, value>>), in this
  * order, and optionally `partition int`. A null key goes round robin, any other by murmur2, Java's default. */
package headrace

import java.util

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.producer.{Callback, ProducerRecord, RecordMetadata}
import org.apache.kafka.common.errors.RecordTooLargeException
import org.apache.kafka.common.header.Header
import org.apache.kafka.common.header.internals.RecordHeader
import org.apache.spark.sql.{ForeachWriter, Row}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.python.streaming.PythonForeachWriter
import org.apache.spark.sql.streaming.DataStreamWriter
import org.apache.spark.sql.types.StructType

object LogSink {
  /** Lets a query write to the log; `kafka` are the client's options. Real-time: records leave at once. */
  def attach(writer: DataStreamWriter[Row], kafka: util.Map[String, String], realTime: Boolean): Unit = {
    val batching = if (realTime) Map("linger.ms" -> "0") else Map("linger.ms" -> "5", "batch.size" -> "131072")
    val safe = Map("acks" -> "all", "enable.idempotence" -> "true")
    writer.foreach(new LogSink(batching ++ kafka.asScala ++ safe).asInstanceOf[ForeachWriter[Row]])
  }
}

/** Spark hands its own binary rows only to writers of this Python class, and a foreach is the one sink of ours that
  * real-time mode takes: so the class is borrowed, and no Python runs. Other writers get objects made per row. */
class LogSink(kafka: Map[String, String]) extends PythonForeachWriter(null, new StructType) {
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
    val partition = if (row.numFields > 5 && !row.isNullAt(5)) Int.box(row.getInt(5)) else null
    val time = if (row.isNullAt(3)) null else Long.box(math.max(0L, Math.floorDiv(row.getLong(3), 1000L)))
    val record = new ProducerRecord(row.getUTF8String(0).toString, partition, time, row.getBinary(1), row.getBinary(2), headers(row))
    try producer.kafka.send(record, sent)
    catch { case e: org.apache.kafka.common.KafkaException => failure = e; throw trouble(e) }
  }

  private def headers(row: UnsafeRow): util.List[Header] =
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

  /** The batch may end only when every record of it is acknowledged. */
  override def close(error: Throwable): Unit = if (producer != null) {
    try if (error == null) producer.kafka.flush()
    finally {
      Producers.give(kafka, producer, broken = failure != null)
      producer = null
    }
    if (error == null && failure != null) throw trouble(failure)
  }

  private def trouble(e: Throwable): LogTrouble = {
    val code = if (e.isInstanceOf[RecordTooLargeException]) "record-too-large" else "delivery-failed"
    val found = new LogTrouble(code, s"a record was not written: ${e.getMessage}")
    found.initCause(e)
    found
  }
}
