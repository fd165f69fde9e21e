/** What the driver asks the broker: topics and their partitions, first and last offsets, offsets by time. */
package headrace

import java.time.Duration
import java.util.concurrent.ExecutionException

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.admin.Admin
import org.apache.kafka.clients.consumer.KafkaConsumer
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.errors.{InterruptException, TimeoutException, UnknownTopicOrPartitionException}

/** A failure that Python names: the code is that of a class in `headrace.base.errors`. */
class LogTrouble(code: String, what: String) extends IllegalStateException(s"[headrace:$code] $what")

object LogTrouble {
  /** An error, what caused it, and so on. */
  def causes(e: Throwable): Iterator[Throwable] = Iterator.iterate(e)(_.getCause).takeWhile(_ != null)
}

/** The topics as they are now: the id of each, and all partitions. */
case class Topics(ids: Map[String, String], places: Seq[Place])

class LogBroker(spec: LogSpec) {
  private val names = spec.topics.map(_.topic)
  private val consumer = spec.consumer()
  /** Sees also what is not committed yet. */
  private val raw = spec.consumer("isolation.level" -> "read_uncommitted")
  private val admin = Admin.create((LogSpec.patience ++ spec.kafka).map { case (k, v) => k -> (v: Object) }.asJava)
  private var known: Topics = _
  private var knownAt = 0L

  /** Spark stops a query by interrupting it, but knows only Java's exception for that, not Kafka's unchecked one. */
  def asking[T](body: => T): T = synchronized {
    try body
    catch {
      case e: InterruptException => throw new InterruptedException(e.getMessage)
      case e: TimeoutException => throw new LogTrouble("broker-unreachable", s"no broker answers at ${spec.kafka("bootstrap.servers")}: ${e.getMessage}")
    }
  }

  /** Asked again after some seconds, so that new partitions are noticed. */
  def topics(): Topics = {
    if (known == null || System.nanoTime - knownAt > LogBroker.FreshNanos) {
      val described = admin.describeTopics(names.toList.asJava).topicNameValues.asScala.map { case (name, answer) =>
        name -> (try answer.get catch {
          case e: ExecutionException => e.getCause match {
            case _: UnknownTopicOrPartitionException => throw new LogTrouble("topic-missing", s"topic '$name' does not exist")
            case other => throw other
          }
        })
      }.toMap
      known = Topics(described.map { case (name, d) => name -> d.topicId.toString },
        names.indices.flatMap(t => described(names(t)).partitions.asScala.map(p => Place(t, p.partition)).sortBy(_.partition)))
      knownAt = System.nanoTime
    }
    known
  }

  def tp(p: Place): TopicPartition = new TopicPartition(names(p.topic), p.partition)
  private def place(t: TopicPartition): Place = Place(names.indexOf(t.topic), t.partition)
  private def asked(places: Iterable[Place]) = places.map(tp).toList.asJava

  def earliest(places: Iterable[Place]): Map[Place, Long] =
    if (places.isEmpty) Map.empty
    else consumer.beginningOffsets(asked(places)).asScala.map { case (t, o) => place(t) -> o.longValue }.toMap

  /** With read_committed this is the last stable offset: everything below it is decided. */
  def latest(places: Iterable[Place]): Map[Place, Long] = ends(consumer, places)

  /** Of the given positions, those with nothing behind them, not even an open transaction that may yet commit. */
  def exhausted(at: Map[Place, Long]): Set[Place] = ends(raw, at.keys).collect { case (p, end) if end <= at(p) => p }.toSet

  private def ends(by: KafkaConsumer[_, _], places: Iterable[Place]): Map[Place, Long] =
    by.endOffsets(asked(places)).asScala.map { case (t, o) => place(t) -> o.longValue }.toMap

  /** Per partition the first record at or after a time: its offset and its time; absent if all are earlier. */
  def since(places: Iterable[Place], ms: Long): Map[Place, (Long, Long)] =
    consumer.offsetsForTimes(places.map(p => tp(p) -> java.lang.Long.valueOf(ms)).toMap.asJava).asScala
      .collect { case (t, found) if found != null => place(t) -> ((found.offset, found.timestamp)) }.toMap

  def close(): Unit = {
    consumer.close(LogBroker.Patience)
    raw.close(LogBroker.Patience)
    admin.close(LogBroker.Patience)
  }
}

object LogBroker {
  private val FreshNanos = 5000000000L
  private val Patience = Duration.ofSeconds(5)
}
