/** Another number of partitions for the keyed state of a checkpoint that nobody runs from.
  *
  * Spark's own rewriter (that of `spark.streamingCheckpointManager.repartition`) reads a state and writes it anew, each
  * row where its key's place is (Placed). The wheel's lists belong to a partition and not to a key, so they are left out on
  * the way and made again from the keys: each says in the first bytes of its state when time next has something to say
  * to it. Spark would add a batch of its own for this, and refuse while one is unfinished; here the batch keeps its
  * number, so that its token and its plan stay true. */
package org.apache.spark.sql.headrace

import java.util.ArrayDeque

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryCheckpointMetadata
import org.apache.spark.sql.execution.streaming.state.StateRewriter
import org.apache.spark.sql.functions.{col, lit}
import org.apache.spark.sql.types.{BinaryType, DataType, LongType}

import _root_.headrace.{Stage, Wheel, WheelStore}
import _root_.headrace.steps.{BlobReader, Step, Times}

object Rescale {
  private val mapper = new ObjectMapper

  /** Reads the state after a batch and writes it into `folder`, as the state after that same batch, in so many
    * partitions. Gives the ids of what it wrote, as a commit names them: {operator: [[id] for each partition]}. */
  def apply(session: SparkSession, from: String, folder: String, batch: Long, partitions: Int): String = {
    val watermark = new StreamingQueryCheckpointMetadata(session, from).commitLog.get(batch).get.nextBatchWatermarkMs
    val spread = (state: DataFrame) => new Spreading(state, partitions, watermark).apply()
    val hadoop = session.sessionState.newHadoopConf()
    val ids = new StateRewriter(session, batch, batch, folder, hadoop, Some(from), Some(spread), None).run()
    mapper.writeValueAsString(ids.get.map { case (operator, stores) => operator.toString -> stores }.asJava)
  }
}

/** The state of one operator on its way: rows of partition_key, key_bytes, value_bytes, column_family_name, as Spark's
  * reader gives them and its writer takes them. */
private class Spreading(state: DataFrame, partitions: Int, watermark: Long) {
  import Spreading._

  def apply(): DataFrame = {
    val wheels = col("partition_key.slot").bitwiseAND(lit(Stage.WHEEL)) === lit(Stage.WHEEL)
    val timers = turning(state.where(wheels))
    val now = if (watermark <= 0) Times.NONE else watermark
    val spread = state.where(!wheels).repartition(partitions, col("partition_key.slot").bitwiseAND(lit(Stage.PLACE)))
    spread.mapPartitions((rows: Iterator[Row]) => new Turned(now, timers).apply(rows))(ExpressionEncoder(state.schema))
  }

  /** The rows of the timer that turns a wheel: the same in all partitions, but for which of its two moments it has. */
  private def turning(wheels: DataFrame): Array[Row] = {
    val rows = wheels.where(col("column_family_name") =!= KEYS).collect()
    rows.headOption.toArray.flatMap(first => rows.filter(moment(_) == moment(first)).distinctBy(_.getString(FAMILY)))
  }
}

private object Spreading {
  final val KEY = 1
  final val VALUE = 2
  final val FAMILY = 3
  final val KEYS = "state" // the column family of the kernel's values

  /** When a timer fires; its key is the moment and the key, in one order or the other. */
  def moment(timer: Row): Long = {
    val key = unsafe(timer.getAs[Array[Byte]](KEY), 2)
    key.getLong(if (timer.getString(FAMILY).endsWith("keyToTimestamp")) 1 else 0)
  }

  def unsafe(bytes: Array[Byte], fields: Int): UnsafeRow = {
    val row = new UnsafeRow(fields)
    row.pointTo(bytes, bytes.length)
    row
  }
}

/** The rows of a new partition, and behind them a wheel for its keys. */
private class Turned(now: Long, timers: Array[Row]) extends WheelStore {
  import Spreading._

  private val lists = new ArrayDeque[Row]
  private val wheel = new Wheel(this)
  private val keyBytes = UnsafeProjection.create(Array[DataType](LongType, BinaryType))
  private val valueBytes = UnsafeProjection.create(Array[DataType](BinaryType))

  def apply(rows: Iterator[Row]): Iterator[Row] = {
    wheel.open()
    rows.flatMap { row =>
      if (row.getString(FAMILY) == KEYS) enter(row)
      Iterator.single(row) ++ kept
    } ++ Iterator.single(()).flatMap(_ => (if (wheel.close()) timers.iterator else Iterator.empty) ++ kept)
  }

  private def enter(row: Row): Unit = {
    val key = unsafe(row.getAs[Array[Byte]](KEY), 2)
    val in = new BlobReader(unsafe(row.getAs[Array[Byte]](VALUE), 1).getBinary(0))
    Step.checkVersion(in.byte())
    val due = in.long()
    if (due != Times.NEVER) wheel.add(due, key.getLong(0), key.getBinary(1), now)
  }

  private def kept: Iterator[Row] = Iterator.continually(lists.poll()).takeWhile(_ != null)

  override def get(name: Array[Byte]): Array[Byte] = null
  override def put(name: Array[Byte], bytes: Array[Byte]): Unit = {
    // Copied: `getBytes` gives the projection's own buffer where a row just fills it.
    val key = keyBytes(InternalRow(Stage.WHEEL, name)).copy().getBytes
    lists.add(Row(Row(Stage.WHEEL, name), key, valueBytes(InternalRow(bytes)).copy().getBytes, KEYS))
  }
  override def remove(name: Array[Byte]): Unit = {}
}
