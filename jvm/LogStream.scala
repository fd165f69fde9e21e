/** The driver's side of the log source: plans batches, learns from them, and says what time it is for the query.
  *
  * Every batch is the source's own: it asks for one when there are records, and for an empty one when the watermark has
  * moved and timers must fire. Spark's batches without data are switched off, so the offsets are the whole schedule
  * (rule R3), and each row can be given the watermark of the batch before (rule R1). */
package headrace

import java.util
import java.util.UUID

import scala.collection.immutable.SortedMap
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming._

class LogStream(spec: LogSpec, checkpoint: String) extends MicroBatchStream with SupportsTriggerAvailableNow
    with SupportsRealTimeMode with ReportsSourceMetrics {
  import LogStream._
  import Part.None

  private val spark = SparkSession.active
  private val run = UUID.randomUUID.toString // executors keep consumers under it
  private val names = spec.topics.map(_.topic).toSeq
  private val broker = new LogBroker(spec)
  private val cut = new BatchCut(spec, broker)
  private val kept = new Kept(checkpoint, spark.sparkContext.hadoopConfiguration, names)
  private val learned = new Learned
  spark.sparkContext.register(learned)

  private var bound: Option[Map[Place, Long]] = scala.None // of a bounded run
  private lazy val left = kept.settled                     // by the process before
  private var settled: Option[Settled] = scala.None        // after the last batch; empty if nobody asks for a watermark
  private var moving = true                                // may the running batch move the watermark? See `announce`
  private var running: LogOffset = _                       // the end of the batch that runs
  private var realTimeFrom: Option[LogOffset] = scala.None // real-time mode: where the running batch began
  @volatile private var gauges = Map.empty[String, String]

  // -- where a run begins and ends

  override def initialOffset(): Offset = broker.asking(kept.start.getOrElse {
    val now = System.currentTimeMillis
    val topics = broker.topics()
    val loads = toLoad(topics.places)
    val parts = begin(topics.places).map { case (p, at) => p -> Part(at, at, None, now, load = loads.getOrElse(p, 0L)) }
    val first = LogOffset(names, topics.ids, SortedMap.from(parts), None, None, now)
    kept.start = first
    first
  })

  /** Tables are read from their beginning, wherever the streams start. */
  private def begin(places: Seq[Place]): Map[Place, Long] = {
    val (tables, streams) = places.partition(p => spec.topics(p.topic).table)
    broker.earliest(tables) ++ found(spec.start, streams)
  }

  /** The ends of tables that are read before any stream. A bounded run needs that only of those that do not count: the
    * others have their place in time beside the streams. */
  private def toLoad(places: Seq[Place]): Map[Place, Long] = {
    val tables = places.filter(p => spec.topics(p.topic).table)
    bound match {
      case Some(ends) => ends.filter { case (p, _) => tables.contains(p) && !spec.topics(p.topic).counts }
      case scala.None => broker.latest(tables)
    }
  }

  private def found(at: Start, places: Seq[Place]): Map[Place, Long] = at match {
    case Earliest => broker.earliest(places)
    case Latest => broker.latest(places)
    case FromTime(ms) => fromTime(places, ms)
    case FromOffsets(of) =>
      val first = broker.earliest(places)
      places.map(p => p -> of.getOrElse((names(p.topic), p.partition), first(p))).toMap
  }

  private def fromTime(places: Seq[Place], ms: Long): Map[Place, Long] = {
    val ends = broker.latest(places)
    val found = broker.since(places, ms)
    places.map(p => p -> found.get(p).map(_._1).getOrElse(ends(p))).toMap
  }

  override def prepareForTriggerAvailableNow(): Unit = broker.asking {
    val places = broker.topics().places
    bound = Some(found(spec.until, places))
  }

  override def deserializeOffset(json: String): Offset = LogOffset.parse(json, names)
  override def commit(end: Offset): Unit = {}
  override def stop(): Unit = { Ending.forget(run); broker.asking(broker.close()) }

  private def loading(parts: Map[Place, Part]): Boolean = parts.exists { case (_, x) => x.loading }

  // -- micro-batches

  override def latestOffset(): Offset = throw new UnsupportedOperationException("latestOffset(start, limit) is used")
  override def getDefaultReadLimit: ReadLimit = ReadLimit.allAvailable // max_records is our own affair

  /** The end of the next batch, or `start` itself, which says: nothing to do. */
  override def latestOffset(start: Offset, limit: ReadLimit): Offset = broker.asking {
    val prev = start.asInstanceOf[LogOffset]
    val now = System.currentTimeMillis
    val topics = checked(prev)
    val ends = bound.getOrElse(broker.latest(topics.places))
    val old = withNew(prev.parts, topics.places.filter(ends.contains), now)
    for ((p, x) <- old; end <- ends.get(p) if end < x.to && bound.isEmpty) throw recreated(p, s"it ends at offset $end, but was read up to ${x.to}")
    val after = settledAfter(prev)
    val from = old.map { case (p, x) => p -> x.to }
    val want = from.map { case (p, at) => p -> math.max(at, ends.getOrElse(p, at)) }
    val (to, aligned) =
      if (loading(old)) (cut.shared(from, old.map { case (p, x) => p -> math.max(x.to, x.load) }), prev.aligned)
      else cut(from, want, prev.aligned)
    val parts = old.map { case (p, x) =>
      val seen = if (want(p) > x.to) now else if (x.to > x.from) math.max(x.seen, after.ended) else x.seen
      p -> Part(x.to, to(p), after.tops.getOrElse(p, None), seen, open = want(p) > to(p), load = x.load)
    }
    gauges = measured(parts, want, after.watermark, now)
    moving = parts.exists { case (_, x) => x.to > x.from } || ticks(parts, after.watermark, now)
    val due = after.watermark > prev.watermark // the watermark has moved: a batch must run under it
    if (moving || due) LogOffset(names, topics.ids, parts, after.watermark, aligned, now) else prev
  }

  /** Would the watermark move now, though nothing was read? Then an empty batch lets it. With the clock it moves all the
    * time: a step a second is enough, counted from the end of the last batch, so that slow ones leave a pause too. */
  private def ticks(parts: Map[Place, Part], watermark: Long, now: Long): Boolean =
    settled.exists(s => bound.isDefined || now - s.ended >= TickMs) && next(parts, watermark, now) > watermark

  private def checked(prev: LogOffset): Topics = {
    val topics = broker.topics()
    for ((name, id) <- topics.ids; before <- prev.ids.get(name) if before != id)
      throw new LogTrouble("topic-recreated", s"topic '$name' was deleted and made anew since it was last read")
    topics
  }

  private def recreated(p: Place, why: String) =
    new LogTrouble("topic-recreated", s"topic '${names(p.topic)}' partition ${p.partition} was made anew: $why")

  /** Partitions that appeared since then are read from their beginning. */
  private def withNew(parts: SortedMap[Place, Part], places: Seq[Place], now: Long): SortedMap[Place, Part] =
    parts ++ broker.earliest(places.filterNot(parts.contains)).map { case (p, at) => p -> Part(at, at, None, now) }

  /** What holds after the batch that ended at `prev`: told in this process, or kept by the one before. */
  private def settledAfter(prev: LogOffset): Settled = {
    if (settled.isEmpty) settled = left.filter(_.at == prev.at)
    settled.getOrElse(Settled(prev.at, prev.at, prev.watermark, tops(prev)))
  }

  private def tops(end: LogOffset): Map[Place, Long] = {
    val told = learned.value
    end.parts.map { case (p, x) => p -> math.max(x.top, told.get(p).map(_.top).getOrElse(None)) }
  }

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = {
    running = end.asInstanceOf[LogOffset]
    val before = start.asInstanceOf[LogOffset].watermark
    grouped(running.parts.toSeq.map { case (p, x) => Slice(p, x.from, x.to, x.top, x.seen) }, before, running.at)
  }

  /** Few tasks, each with a fixed share of the partitions, since a task costs more than a partition; a share with nothing
    * to read gets none. */
  private def grouped(slices: Seq[Slice], before: Long, now: Long, end: Long = Long.MaxValue): Array[InputPartition] = {
    val places = broker.asking(broker.topics()).places
    val tasks = spec.tasks.getOrElse(cores).max(1)
    val shares = slices.groupBy(s => places.indexOf(s.place) % tasks).toSeq.sortBy(_._1).map(_._2)
    val wanted = shares.filter(_.exists(s => s.to > s.from)).zipWithIndex
    wanted.map { case (share, task) => Share(share.toArray, before, now, end, task): InputPartition }.toArray
  }

  /** Real-time mode has more slots than cores, since its tasks never end: each of ours would keep threads awake. */
  private def cores: Int = {
    val slots = spark.sparkContext.defaultParallelism
    if (spark.sparkContext.isLocal) slots.min(Runtime.getRuntime.availableProcessors) else slots
  }

  override def createReaderFactory(): PartitionReaderFactory = new LogReaders(spec, run, learned)

  // -- time

  /** The watermark after the batch that has just run; called once per batch, before Spark commits it. A batch that only
    * fires what was due moves nothing: with the clock running, each would call for another. */
  def announce(): Long = broker.asking {
    realTimeFrom.foreach(from => running = endOfRealTime(from))
    val now = System.currentTimeMillis
    val reached = tops(running)
    val parts = running.parts.map { case (p, x) => // what this batch has read was there until now: it is not silent yet
      p -> x.copy(top = reached(p), seen = if (x.to > x.from && realTimeFrom.isEmpty) now else x.seen)
    }
    val found = Settled(running.at, now, if (moving) next(parts, running.watermark, now) else running.watermark, reached)
    kept.settled = found
    settled = Some(found)
    found.watermark
  }

  private def next(parts: Map[Place, Part], watermark: Long, now: Long): Long = if (loading(parts)) watermark else {
    val reached = parts.toSeq.map { case (p, x) =>
      Reached(p, x.top, x.seen, caughtUp = !x.open, finished = bound.exists(b => x.to >= b.getOrElse(p, x.to)))
    }
    Frontier.watermark(spec, reached, watermark, now, bound.isDefined, quiet => broker.exhausted(quiet.map(p => p -> parts(p).to).toMap))
  }

  // -- real-time mode: one long batch; where it ended is what its tasks say

  override def planInputPartitions(start: Offset): Array[InputPartition] = broker.asking {
    Thread.currentThread.setPriority(Thread.MIN_PRIORITY) // it plans beside a twin whose rows somebody waits for
    val prev = start.asInstanceOf[LogOffset]
    val parts = withNew(prev.parts, checked(prev).places, System.currentTimeMillis)
    val after = settledAfter(prev)
    moving = true
    realTimeFrom = Some(prev.copy(parts = parts, watermark = after.watermark))
    val load = loading(parts)
    val slices = parts.toSeq.collect { case (p, x) if x.loading || !load =>
      Slice(p, x.to, if (load) x.load else Long.MaxValue, after.tops.getOrElse(p, None), x.seen)
    }
    val now = System.currentTimeMillis
    val shares = grouped(slices, prev.watermark, LiveClock, spec.interval.map(_.endAfter(now)).getOrElse(Long.MaxValue))
    spec.interval.foreach(interval => Ending.begin(run, new Ending(interval, shares.length, now)))
    shares
  }

  override def mergeOffsets(stops: Array[PartitionOffset]): Offset = broker.asking {
    val end = if (settled.exists(_.at == running.at)) running else endOfRealTime(realTimeFrom.get)
    running = end
    end
  }

  private def endOfRealTime(from: LogOffset): LogOffset = {
    val told = learned.value
    val ends = broker.latest(from.parts.keys)
    val parts = from.parts.map { case (p, x) =>
      val l = told.getOrElse(p, Lesson(p, x.to, x.top, x.seen))
      p -> Part(x.to, math.max(l.next, x.to), x.top, math.max(x.seen, l.seen), open = ends(p) > l.next, load = x.load)
    }
    from.copy(parts = parts, at = System.currentTimeMillis)
  }

  // -- what is shown

  /** In all: `behind`, `watermark`, the `slowest` partition. Per partition, as `payments/0.behind`, `.frontier`, `.idle`. */
  private def measured(parts: Map[Place, Part], want: Map[Place, Long], watermark: Long, now: Long): Map[String, String] = {
    def named(p: Place) = s"${names(p.topic)}/${p.partition}"
    val each = parts.flatMap { case (p, x) =>
      val idle = !x.open && x.to == x.from && spec.topics(p.topic).idle.exists(now - x.seen >= _)
      Seq(s"${named(p)}.behind" -> (want(p) - x.to).toString, s"${named(p)}.idle" -> idle.toString) ++
        (if (x.top == None) Nil else Seq(s"${named(p)}.frontier" -> WireTime.show(x.top)))
    }
    val timed = parts.toSeq.filter { case (p, x) => x.top != None && spec.topics(p.topic).counts }
    val slowest = timed.sortBy { case (p, x) => Frontier.of(spec, Reached(p, x.top, x.seen, caughtUp = false, finished = false)) }.headOption
    each ++ Map("behind" -> want.map { case (p, end) => end - parts(p).to }.sum.toString) ++
      slowest.map { case (p, _) => "slowest" -> named(p) } ++
      (if (watermark == None) Nil else Seq("watermark" -> WireTime.show(watermark * 1000)))
  }

  override def metrics(latest: util.Optional[Offset]): util.Map[String, String] = gauges.asJava
}

object LogStream {
  /** At most one empty batch in this time, when only the clock moves the watermark. */
  val TickMs = 1000L
  /** In place of a planning time: real-time tasks ask the clock themselves. */
  val LiveClock = 0L
}
