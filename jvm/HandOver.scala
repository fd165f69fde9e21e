/** The shuffle of real-time mode inside one process: a row goes from task to task through a queue.
  *
  * Spark's own goes over sockets even here. There a row is serialized, waits for a thread that wakes every millisecond,
  * and passes two threads of the network: in the bank, at 200 payments a second, half of all wakings on the machine were
  * theirs. Here the task that reads is the only one to wake. */
package org.apache.spark.shuffle.headrace

import java.util.ArrayDeque
import java.util.concurrent.{ArrayBlockingQueue, ConcurrentHashMap, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger

import org.apache.spark.{ShuffleDependency, SparkEnv, TaskContext}
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle.{BaseShuffleHandle, ShuffleHandle, ShuffleReader, ShuffleReadMetricsReporter, ShuffleWriteMetricsReporter, ShuffleWriter}
import org.apache.spark.shuffle.streaming.StreamingShuffleManager
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** Named in `spark.shuffle.manager.incremental`, where the master is local. */
class HandOver extends StreamingShuffleManager {
  override def registerShuffle[K, V, C](id: Int, dependency: ShuffleDependency[K, V, C]): ShuffleHandle =
    new HandOverHandle(id, dependency.rdd.partitions.length, dependency)

  override def getWriter[K, V](handle: ShuffleHandle, map: Long, task: TaskContext, metrics: ShuffleWriteMetricsReporter): ShuffleWriter[K, V] =
    new HandOverWriter(handle.asInstanceOf[HandOverHandle[K, V, _]], map, metrics)

  override def getReader[K, C](
      handle: ShuffleHandle, firstMap: Int, lastMap: Int, first: Int, last: Int, task: TaskContext,
      metrics: ShuffleReadMetricsReporter): ShuffleReader[K, C] = {
    require(last == first + 1, s"a real-time task reads one partition, not $first to $last")
    new HandOverReader(handle.asInstanceOf[HandOverHandle[K, _, C]], first, task, metrics)
  }

  override def unregisterShuffle(id: Int): Boolean = {
    Meeting.close(id)
    true
  }
}

object HandOver {
  /** Shuffles whose tasks have not all ended. */
  def open: Int = Meeting.count
}

/** What the writers and readers of one shuffle share. */
private final class Meeting(val writers: Int, readers: Int) {
  val queues: Array[ArrayBlockingQueue[AnyRef]] = Array.fill(readers)(new ArrayBlockingQueue[AnyRef](Meeting.ROOM))
  val reading = new AtomicInteger(readers) // tasks that have not ended
}

private object Meeting {
  /** Rows that wait for one task; who writes then waits too. */
  val ROOM = 256

  /** Stands in a queue behind the last row of a writer. */
  object End

  private val open = new ConcurrentHashMap[Int, Meeting]

  def of(handle: HandOverHandle[_, _, _]): Meeting =
    open.computeIfAbsent(handle.shuffleId, _ => new Meeting(handle.writers, handle.dependency.partitioner.numPartitions))

  def close(shuffle: Int): Unit = open.remove(shuffle)

  def count: Int = open.size
}

/** `writers`: how many tasks write. */
class HandOverHandle[K, V, C](id: Int, val writers: Int, dependency: ShuffleDependency[K, V, C]) extends BaseShuffleHandle(id, dependency)

private final class HandOverWriter[K, V](handle: HandOverHandle[K, V, _], map: Long, metrics: ShuffleWriteMetricsReporter)
    extends ShuffleWriter[K, V] {
  private val queues = Meeting.of(handle).queues
  private val partitioner = handle.dependency.partitioner

  override def write(rows: Iterator[Product2[K, V]]): Unit = {
    while (rows.hasNext) {
      val row = rows.next()
      // A copy: whoever makes the rows makes the next one in the same bytes.
      queues(partitioner.getPartition(row._1)).put(row._2.asInstanceOf[UnsafeRow].copy())
      metrics.incRecordsWritten(1)
    }
    queues.foreach(_.put(Meeting.End))
  }

  override def getPartitionLengths(): Array[Long] = new Array[Long](queues.length)

  override def stop(success: Boolean): Option[MapStatus] =
    if (success) Some(MapStatus(SparkEnv.get.blockManager.shuffleServerId, getPartitionLengths(), map)) else None
}

private final class HandOverReader[K, C](handle: HandOverHandle[K, _, C], place: Int, task: TaskContext, metrics: ShuffleReadMetricsReporter)
    extends ShuffleReader[K, C] {
  private val meeting = Meeting.of(handle)
  private val queue = meeting.queues(place)
  task.addTaskCompletionListener[Unit](_ => if (meeting.reading.decrementAndGet() == 0) Meeting.close(handle.shuffleId))

  /** Until every writer has ended. One that fails never does: then Spark stops this task too. */
  override def read(): Iterator[Product2[K, C]] = new Iterator[Product2[K, C]] {
    private val taken = new ArrayDeque[AnyRef](Meeting.ROOM)
    private var writing = meeting.writers
    private var row: AnyRef = _

    override def hasNext: Boolean = {
      while (row == null && writing > 0) {
        if (taken.isEmpty) await()
        taken.poll() match {
          case Meeting.End => writing -= 1
          case next => row = next
        }
      }
      row != null
    }

    override def next(): Product2[K, C] = {
      if (!hasNext) throw new NoSuchElementException
      val given = row
      row = null
      metrics.incRecordsRead(1)
      (place.asInstanceOf[K], given.asInstanceOf[C])
    }

    /** Takes all that is there, or waits for one. */
    private def await(): Unit = while (taken.isEmpty && queue.drainTo(taken) == 0) {
      val first = queue.poll(HandOverReader.LOOK_MS, TimeUnit.MILLISECONDS)
      if (first == null) task.killTaskIfInterrupted() else taken.add(first)
    }
  }
}

private object HandOverReader {
  val LOOK_MS = 1000L
}
