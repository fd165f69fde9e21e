/** What a query reads: its topics with their columns and rules of time, and from where to where. */
package headrace

import java.util

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.kafka.clients.consumer.KafkaConsumer
import org.apache.kafka.common.serialization.ByteArrayDeserializer
import org.apache.spark.sql.types._
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** One topic. `time` None: the record's own timestamp is the event time. `idle` None: its partitions are never idle.
  * `marked`: only marks move its frontier (rule T7); they are promises, so it has no disorder and is never idle, else a
  * row could be behind. `table`: its records are versions of rows, and read before any
  * stream at a query's first start (rule J4); `changes`: each says before and after. `counts`: its frontier holds the
  * watermark. Durations in milliseconds. */
case class TopicSpec(topic: String, fields: Array[Field], key: Seq[String], id: Option[String], time: Option[String],
                     disorder: Long, idle: Option[Long], skew: Long, marked: Boolean, table: Boolean, changes: Boolean,
                     counts: Boolean) {
  /** Fields that no record may lack, with the reason it dies of otherwise (rule B1). */
  def required: Map[String, String] =
    time.map(_ -> "missing-time").toMap ++ id.map(_ -> "missing-id") ++ key.map(_ -> "missing-key")

  val timeAt: Int = time.map(name => fields.indexWhere(_.name == name)).getOrElse(-1)
}

/** Where reading starts, or a bounded run ends. */
sealed trait Start
case object Earliest extends Start
case object Latest extends Start
case class FromTime(ms: Long) extends Start
case class FromOffsets(of: Map[(String, Int), Long]) extends Start

/** When real-time batches end: by the clock, so that twins do not end theirs together, whenever each was started.
  * Milliseconds. `answering`: where a twin says that it keeps up (Ending.scala). */
case class Interval(every: Long, phase: Long, answering: Option[String]) {
  def endAfter(now: Long): Long = now + every - math.floorMod(now - phase, every)
}

/** `endOfInput`: where time goes when a bounded run has read everything, in ms, and never beyond; None: it stays. */
case class LogSpec(topics: Array[TopicSpec], start: Start, until: Start, aligned: Boolean, maxRecords: Long,
                   endOfInput: Option[Long], interval: Option[Interval], tasks: Option[Int], kafka: Map[String, String]) {

  def consumer(more: (String, String)*): KafkaConsumer[Array[Byte], Array[Byte]] = LogSpec.consumer(kafka, more: _*)

  /** `topic` is the index into the spec; `e0`, `e1`, ... hold the columns of each topic, null in rows of the others. A
    * table's tombstone has no columns at all: its own `e` is null and `dead` is too. `key` is the record's key; of a
    * table it is the row's key as the text of rule F1. */
  def schema: StructType = {
    val header = new StructType().add("key", StringType, nullable = false).add("value", BinaryType)
    val common = new StructType()
      .add("topic", IntegerType, nullable = false)
      .add("partition", IntegerType, nullable = false)
      .add("offset", LongType, nullable = false)
      .add("time", LongType)
      .add("before", LongType, nullable = false)
      .add("frontier", TimestampType)
      .add("dead", StringType)
      .add("key", BinaryType)
      .add("value", BinaryType)
      .add("headers", ArrayType(header, containsNull = false))
    topics.zipWithIndex.foldLeft(common) { case (all, (t, i)) => all.add(s"e$i", Field.schema(t.fields)) }
  }
}

object LogSpec {
  private val mapper = new ObjectMapper
  /** A broker that is away is worth an error sooner than Kafka's minute. */
  val patience: Map[String, String] = Map("default.api.timeout.ms" -> "20000", "request.timeout.ms" -> "15000")

  def consumer(kafka: Map[String, String], more: (String, String)*): KafkaConsumer[Array[Byte], Array[Byte]] = {
    val properties = new util.HashMap[String, Object]
    properties.put("isolation.level", "read_committed")
    patience.foreach { case (k, v) => properties.put(k, v) }
    kafka.foreach { case (k, v) => properties.put(k, v) }
    more.foreach { case (k, v) => properties.put(k, v) }
    properties.put("enable.auto.commit", "false")
    properties.put("auto.offset.reset", "none")
    properties.put("allow.auto.create.topics", "false")
    new KafkaConsumer(properties, new ByteArrayDeserializer, new ByteArrayDeserializer)
  }

  def parse(options: CaseInsensitiveStringMap): LogSpec = {
    val json = options.get("spec")
    require(json != null, "the log source needs the option 'spec'")
    val kafka = options.asCaseSensitiveMap.asScala.collect { case (k, v) if k.startsWith("kafka.") => k.drop(6) -> v }
    require(kafka.contains("bootstrap.servers"), "the log source needs the option 'kafka.bootstrap.servers'")
    val o = mapper.readTree(json)
    LogSpec(
      topics = o.get("topics").elements.asScala.map(topic).toArray,
      start = start(o.path("start"), "earliest"),
      until = start(o.path("until"), "latest"),
      aligned = o.path("aligned").asBoolean(false),
      maxRecords = number(o.path("max_records")).getOrElse(Long.MaxValue),
      endOfInput = number(o.path("end_of_input")).orElse(Option.when(o.path("end_of_input").asBoolean(false))(Frontier.End)),
      interval = Option.when(o.has("interval"))(o.get("interval")).map(interval),
      tasks = number(o.path("tasks")).map(_.toInt),
      kafka = kafka.toMap)
  }

  private def interval(o: JsonNode): Interval =
    Interval(o.get("every_ms").asLong, o.get("phase_ms").asLong, text(o.path("answering")))

  private def topic(o: JsonNode): TopicSpec = { val marked = o.path("marked").asBoolean(false); TopicSpec(
    topic = o.get("topic").asText,
    fields = Field.parse(o.get("fields")),
    key = if (o.path("key").isArray) o.get("key").elements.asScala.map(_.asText).toSeq else text(o.path("key")).toSeq,
    id = text(o.path("id")),
    time = text(o.path("time")),
    disorder = if (marked) 0 else o.path("disorder_ms").asLong(0),
    idle = if (marked) None else number(o.path("idle_ms")),
    skew = o.path("skew_ms").asLong(60000),
    marked = marked,
    table = o.path("table").asBoolean(false),
    changes = o.path("changes").asBoolean(false),
    counts = o.path("counts").asBoolean(true)) }

  private def start(o: JsonNode, usual: String): Start =
    if (o.isObject) FromOffsets(o.properties.asScala.flatMap { e =>
      e.getValue.properties.asScala.map(p => (e.getKey, p.getKey.toInt) -> p.getValue.asLong)
    }.toMap)
    else if (o.isNumber) FromTime(o.asLong)
    else text(o).getOrElse(usual) match {
      case "earliest" => Earliest
      case "latest" => Latest
      case other => throw new IllegalArgumentException(
        s"'$other' is not earliest, latest, epoch milliseconds or offsets by topic and partition")
    }

  private def text(o: JsonNode): Option[String] = if (o.isTextual) Some(o.asText) else None
  private def number(o: JsonNode): Option[Long] = if (o.isNumber) Some(o.asLong) else None
}
